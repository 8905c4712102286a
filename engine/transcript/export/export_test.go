package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"refbox/engine/analysis"
	"refbox/engine/internal/shared"
	"refbox/engine/recording"
	"refbox/engine/redact"
	"refbox/engine/transcript"
)

func open(t testing.TB, file string) *transcript.Transcript {
	t.Helper()
	tr, err := transcript.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() }) //nolint:errcheck // only read
	return tr
}

func save(t testing.TB, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// forms are every form of a source, by name.
func forms(t testing.TB, s Source) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, write := range map[string]func(b *bytes.Buffer, s Source) (int, error){
		"atif":     func(b *bytes.Buffer, s Source) (int, error) { return ATIF(context.Background(), b, s) },
		"markdown": func(b *bytes.Buffer, s Source) (int, error) { return Markdown(context.Background(), b, s) },
		"cast v2":  func(b *bytes.Buffer, s Source) (int, error) { return Cast(context.Background(), b, s, false) },
		"cast v3":  func(b *bytes.Buffer, s Source) (int, error) { return Cast(context.Background(), b, s, true) },
	} {
		var b bytes.Buffer
		if s.Redact != nil {
			s.Redact = &redact.Redactor{}
		}
		if _, err := write(&b, s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b.String()
	}
	return out
}

// sources are every transcript at hand: of all harnesses, of the reference's
// heats, and of ours.
func sources(t *testing.T, use func(name string, s Source)) {
	t.Helper()
	heats := []string{filepath.Join("..", "..", "..", "recordings", "primary-failover")}
	heats = append(heats, shared.Recordings(t)...)
	for _, dir := range heats {
		rec, err := recording.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Load(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, seat := range rec.World(rec.Len()).Seats() {
			s, err := OpenSeat(context.Background(), rec, seat.ID)
			if err != nil {
				continue // none was recorded, or one of another heat
			}
			s.Redact = &redact.Redactor{}
			use(filepath.Base(dir)+"/"+seat.ID, s)
			s.T.Close() //nolint:errcheck // only read
		}
		rec.Close()
	}
	err := filepath.WalkDir(shared.Shared(t, "transcripts"), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		tr, err := transcript.Open(file)
		if err != nil {
			return nil // a licence, a note
		}
		defer tr.Close()
		use(d.Name(), Source{T: tr, Redact: &redact.Redactor{}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every trajectory holds the rules of strict readers, and comes back through our
// own importer with the same calls, outcomes and judgements.
func TestATIFIsStrictAndComesBack(t *testing.T) {
	n, evaluated := 0, 0
	sources(t, func(name string, s Source) {
		n++
		var b bytes.Buffer
		steps, err := ATIF(context.Background(), &b, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkATIF(t, name, b.Bytes(), steps)
		if s.Evaluation != nil {
			evaluated++
			if !strings.Contains(b.String(), `"infrastructure_evaluation":{`) {
				t.Errorf("%s: the referee's evaluation is missing", name)
			}
		}
		back := open(t, save(t, "trajectory.json", b.String()))
		if err := back.Load(context.Background()); err != nil {
			t.Fatal(err)
		}
		if f := back.Info().Format; f != "atif" {
			t.Errorf("%s: comes back as %s", name, f)
		}
		calls := func(tr *transcript.Transcript, want func(agent int) bool) (list []string) {
			for i := range tr.Len() {
				if h := tr.Head(i); h.Kind == transcript.ToolCall && want(h.Agent) && !h.Has(transcript.Duplicate) {
					failed := h.Outcome == transcript.Failed || h.Outcome == transcript.TimedOut || h.Outcome == transcript.Cancelled
					list = append(list, fmt.Sprintf("%s %v", h.Tool, failed))
				}
			}
			return list
		}
		main := 0
		if len(s.Agents) > 0 {
			main = s.Agents[0]
		}
		was := calls(s.T, func(agent int) bool { return agent == main })
		is := calls(back, func(agent int) bool { return agent == 0 })
		if !slices.Equal(was, is) {
			t.Errorf("%s: calls were %q, come back as %q", name, was, is)
		}
		x, err := analysis.Of(context.Background(), s.T, main)
		if err != nil {
			t.Fatal(err)
		}
		y, err := analysis.Of(context.Background(), back, 0)
		if err != nil {
			t.Fatal(err)
		}
		kinds := func(a analysis.Analysis) (list []analysis.Kind) {
			for _, s := range a.Steps {
				list = append(list, s.Kind)
			}
			return list
		}
		if !slices.Equal(kinds(x), kinds(y)) && x.Metrics.ToolErrors == y.Metrics.ToolErrors {
			t.Errorf("%s: kinds were %v, come back as %v", name, kinds(x), kinds(y))
		}
	})
	if n < 20 || evaluated < 12 {
		t.Errorf("only %d transcripts, %d of heats", n, evaluated)
	}
}

var atifKeys = map[string]string{
	"root":   "schema_version session_id trajectory_id agent steps notes final_metrics continued_trajectory_ref subagent_trajectories extra",
	"agent":  "name version model_name tool_definitions extra",
	"step":   "step_id timestamp source message model_name reasoning_effort reasoning_content tool_calls metrics observation is_copied_context llm_call_count extra",
	"call":   "tool_call_id function_name arguments extra",
	"result": "source_call_id content subagent_trajectory_ref extra",
	"metric": "prompt_tokens completion_tokens cached_tokens cost_usd prompt_token_ids completion_token_ids logprobs extra",
	"final":  "total_prompt_tokens total_completion_tokens total_cached_tokens total_cost_usd total_steps extra",
}

// checkATIF is what strict validators enforce: no unknown key, sequential numbers,
// results that name a call of their own step, unique ids of embedded trajectories.
func checkATIF(t *testing.T, name string, b []byte, steps int) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(b, &root); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	known := func(what string, m map[string]any) {
		for k := range m {
			if !slices.Contains(strings.Fields(atifKeys[what]), k) {
				t.Errorf("%s: the unknown key %q in a %s", name, k, what)
			}
		}
	}
	list := func(v any) []any { l, _ := v.([]any); return l }
	ids, refs, counted := map[string]bool{}, []string{}, 0
	var check func(root map[string]any)
	check = func(root map[string]any) {
		known("root", root)
		if root["schema_version"] != "ATIF-v1.7" || root["session_id"] == "" {
			t.Errorf("%s: %v %v", name, root["schema_version"], root["session_id"])
		}
		agent := root["agent"].(map[string]any)
		known("agent", agent)
		if agent["name"] == "" || agent["version"] == "" {
			t.Errorf("%s: agent %v", name, agent)
		}
		if len(list(root["steps"])) == 0 {
			t.Errorf("%s: no steps", name)
		}
		for i, v := range list(root["steps"]) {
			counted++
			step := v.(map[string]any)
			known("step", step)
			source := step["source"]
			if step["step_id"] != float64(i+1) || source != "user" && source != "agent" && source != "system" {
				t.Errorf("%s: step %v of %v where %d is due", name, step["step_id"], source, i+1)
			}
			if _, ok := step["message"].(string); !ok {
				t.Errorf("%s: step %d has no message", name, i+1)
			}
			if source != "agent" && (step["tool_calls"] != nil || step["metrics"] != nil || step["model_name"] != nil) {
				t.Errorf("%s: step %d of the %v does what only agents do", name, i+1, source)
			}
			calls := map[any]bool{}
			for _, c := range list(step["tool_calls"]) {
				call := c.(map[string]any)
				known("call", call)
				if _, ok := call["arguments"].(map[string]any); !ok || call["function_name"] == "" {
					t.Errorf("%s: step %d calls %v", name, i+1, call)
				}
				calls[call["tool_call_id"]] = true
			}
			if m, ok := step["metrics"].(map[string]any); ok {
				known("metric", m)
			}
			if o, ok := step["observation"].(map[string]any); ok {
				for _, r := range list(o["results"]) {
					res := r.(map[string]any)
					known("result", res)
					if id := res["source_call_id"]; id != nil && !calls[id] {
						t.Errorf("%s: step %d has a result of %v, which it did not call", name, i+1, id)
					}
					for _, ref := range list(res["subagent_trajectory_ref"]) {
						refs = append(refs, ref.(map[string]any)["trajectory_id"].(string))
					}
				}
			}
		}
		if m, ok := root["final_metrics"].(map[string]any); ok {
			known("final", m)
			if m["total_steps"] != float64(len(list(root["steps"]))) {
				t.Errorf("%s: %v steps in all", name, m["total_steps"])
			}
		}
		for _, sub := range list(root["subagent_trajectories"]) {
			m := sub.(map[string]any)
			id, _ := m["trajectory_id"].(string)
			if id == "" || ids[id] {
				t.Errorf("%s: an embedded trajectory is called %q", name, id)
			}
			ids[id] = true
			check(m)
		}
	}
	check(root)
	for _, r := range refs {
		if !ids[r] {
			t.Errorf("%s: refers to the trajectory %q, which is not there", name, r)
		}
	}
	if counted != steps {
		t.Errorf("%s: %d steps were said, %d written", name, steps, counted)
	}
}

// Casts are read back with their time running on, and draw only.
func TestCasts(t *testing.T) {
	sources(t, func(name string, s Source) {
		for _, v3 := range []bool{false, true} {
			var b bytes.Buffer
			n, err := Cast(context.Background(), &b, s, v3)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			frames, last := 0, 0.0
			for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
				if i == 0 {
					continue
				}
				frames++
				var f []any
				if err := json.Unmarshal([]byte(line), &f); err != nil || len(f) != 3 {
					t.Fatalf("%s: %q %v", name, line, err)
				}
				at := f[0].(float64)
				if !v3 && at < last || at < 0 {
					t.Errorf("%s: %v after %v", name, at, last)
				}
				last = at
				if data := f[2].(string); replayable(data) != data {
					t.Errorf("%s: %q does more than draw", name, data)
				}
			}
			if frames != n {
				t.Errorf("%s: %d frames were said, %d written", name, n, frames)
			}
			if n == 0 {
				continue
			}
			back := open(t, save(t, "x.cast", b.String()))
			if err := back.Load(context.Background()); err != nil || back.Info().Format != "asciicast" || len(back.Integrity().Findings) > 0 {
				t.Errorf("%s: comes back as %s, %v %v", name, back.Info().Format, back.Integrity().Findings, err)
			}
		}
	})
}

type writes func(b []byte)

func (w writes) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Calls that run at once are in a cast by the order in which they end, and their
// outputs are not all in memory until then.
func TestCastOfCallsThatRunAtOnce(t *testing.T) {
	const calls, size = 48, BodyLimit / 2
	at := func(s int, line string) string {
		return strings.Replace(line, "10:00:00", fmt.Sprintf("10:%02d:%02d", s/60, s%60), 1)
	}
	var session strings.Builder
	for i := range calls {
		session.WriteString(at(i, claude("assistant", fmt.Sprint("a", i), fmt.Sprintf(`[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"run %d"}}]`, i, i))))
	}
	for i := range calls {
		call := calls - 1 - i/2*2 // from the last to the first, two of them at a time
		if i%2 == 0 {
			call--
		}
		session.WriteString(at(100+i/2, claude("user", fmt.Sprint("u", i), fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d","content":"ends %d %s"}]`, call, call, strings.Repeat("x", size)))))
	}
	s := Source{T: open(t, save(t, "s.jsonl", session.String()))}
	if err := s.T.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	session.Reset()
	before, most := held(), uint64(0)
	var order []int
	frames, err := Cast(context.Background(), writes(func(b []byte) {
		most = max(most, held())
		call := 0
		if _, words, ok := bytes.Cut(b, []byte(`"ends `)); ok {
			fmt.Sscan(string(words[:min(len(words), 8)]), &call) //nolint:errcheck // the order tells
			order = append(order, call)
		}
	}), s, true)
	if err != nil || frames != 2*calls {
		t.Fatalf("%d frames, %v", frames, err)
	}
	var want []int
	for i := calls - 2; i >= 0; i -= 2 {
		want = append(want, i, i+1)
	}
	if !slices.Equal(order, want) {
		t.Errorf("ended in the order %v, want %v", order, want)
	}
	if most > before+16*size {
		t.Errorf("%d bytes were held for outputs of %d", most-before, size)
	}
}

func TestReplayable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\r\n":                              "plain\r\n",
		"\x1b[31mred\x1b[0m \x1b[2J\x1b[10;4Hx":  "\x1b[31mred\x1b[0m \x1b[2J\x1b[10;4Hx",
		"a\x1b]52;c;aGk=\x07b":                   "ab",
		"a\x1b]0;title\x1b\\b":                   "ab",
		"a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\": "ab",
		"a\x1b[6nb\x1b[cc\x1b[14td":              "abcd",
		"a\x1bPq#0\x1b\\b\x1b_x\x1b\\c":          "abc",
		"\x1b[?25l\x1b[?1000hx\x1b[?2004l":       "\x1b[?25lx",
		"a\x1bcb\x07c\x0ed":                      "abcd",
		"a\u009b31mb\u009dx":                     "a31mbx",
		"a\u202eb\u200bc":                        "abc",
		"größe 漢字":                               "größe 漢字",
	} {
		if got := replayable(in); got != want {
			t.Errorf("%q became %q, should be %q", in, got, want)
		}
	}
}

// A session that tries to get out of its block, its line, its cell.
func TestMarkdownHoldsHostileText(t *testing.T) {
	line := func(role, id, content string) string {
		return `{"type":"` + role + `","uuid":"` + id + `","sessionId":"s","timestamp":"2026-01-02T10:00:00.000Z","message":{"role":"` + role + `","content":` + content + "}}\n"
	}
	file := save(t, "s.jsonl", line("user", "u1", `"# heading\nwords\n===\n  ---\n![p](http://x/y.png) <script>alert(1)</script>\n\u001b]0;t\u0007\u202e"`)+
		line("assistant", "a1", "[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":\"echo '```'\\n# not a heading\",\"description\":\"# x\\n## y\"}}]")+
		line("user", "u2", "[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"````\\n<img src=x>\\n\\u001b[31mred\\u001b[0m\"}]"))
	md := forms(t, Source{T: open(t, file), Redact: &redact.Redactor{}})["markdown"]
	fence := ""
	for _, l := range strings.Split(md, "\n") {
		switch {
		case fence == "" && strings.HasPrefix(l, "```"):
			fence = l[:strings.LastIndex(l, "`")+1]
		case fence != "" && l == fence:
			fence = ""
		case fence == "":
			if strings.Contains(l, "<script") || strings.Contains(l, "![") || strings.Contains(l, "<img") ||
				strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "# s") && !strings.HasPrefix(l, "## ") {
				t.Errorf("outside of a block: %q", l)
			}
			if body := strings.Trim(l, "> "); strings.HasPrefix(l, ">") && body != "" && strings.Trim(body, "=-") == "" {
				t.Errorf("%q makes a heading of the words above it", l)
			}
		}
		if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x202e }) {
			t.Errorf("a control character in %q", l)
		}
	}
	if fence != "" {
		t.Error("a block does not end")
	}
	if strings.Count(md, "\n## ") != 2 {
		t.Errorf("two steps, but\n%s", md)
	}
}
