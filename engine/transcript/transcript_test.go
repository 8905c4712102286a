package transcript

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

// opened opens and reads a record to its end.
func opened(t testing.TB, path string) *Transcript {
	t.Helper()
	tr, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	if err := tr.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	check(t, tr)
	return tr
}

// written opens a record that is written here, under a name that tells nothing.
func written(t testing.TB, content string) *Transcript {
	t.Helper()
	return opened(t, put(t, t.TempDir(), "record", content))
}

func put(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// check holds every transcript to what the package promises.
func check(t testing.TB, tr *Transcript) {
	t.Helper()
	last := map[int]int64{}
	for i := range tr.Len() {
		s := tr.Step(i)
		if s.Index != i {
			t.Errorf("step %d says it is %d", i, s.Index)
		}
		if at, ok := last[s.Agent]; ok && s.AtMS < at {
			t.Errorf("step %d is at %d ms, behind one at %d ms", i, s.AtMS, at)
		}
		last[s.Agent] = s.AtMS
		if s.DurationMS < -1 {
			t.Errorf("step %d lasts %d ms", i, s.DurationMS)
		}
		if bad := unclean(s.Title + s.Tool + s.File); bad != "" {
			t.Errorf("step %d: title or tool hold %s", i, bad)
		}
		f, err := tr.Full(i)
		if err != nil {
			t.Errorf("full step %d: %v", i, err)
			continue
		}
		for _, p := range f.Parts {
			if bad := unclean(strings.ReplaceAll(p.Text.String(), "\n", "") + p.Label); bad != "" {
				t.Errorf("step %d: part %s holds %s", i, p.Role, bad)
			}
			if p.Role == PartSealed && p.Text.Raw() != "" {
				t.Errorf("step %d hands out sealed content", i)
			}
			if p.Text.Size() < int64(len(p.Text.Raw())) {
				t.Errorf("step %d: part %s is smaller than what is there of it", i, p.Role)
			}
			if p.Role == PartReasoning && !s.Has(Private) {
				t.Errorf("step %d holds reasoning and is not private", i)
			}
		}
	}
	for _, f := range tr.Integrity().Findings {
		if f.Step >= tr.Len() {
			t.Errorf("finding %s points at step %d of %d", f.Code, f.Step, tr.Len())
		}
		if bad := unclean(f.Text + f.File); bad != "" {
			t.Errorf("finding %s holds %s", f.Code, bad)
		}
	}
	steps := 0
	for _, a := range tr.Agents() {
		steps += a.Steps
	}
	if steps != tr.Len() {
		t.Errorf("the agents have %d steps of %d", steps, tr.Len())
	}
	tr.Totals()
	tr.Spent(tr.Len())
}

func unclean(s string) string {
	for _, c := range s {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return "a control character"
		}
	}
	return ""
}

func codes(tr *Transcript) []string {
	var found []string
	for _, f := range tr.Integrity().Findings {
		found = append(found, f.Code)
	}
	return found
}

func finding(t testing.TB, tr *Transcript, code string) Finding {
	t.Helper()
	for _, f := range tr.Integrity().Findings {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("no finding %s, there are %q", code, codes(tr))
	return Finding{}
}

func n(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

func ofKind(tr *Transcript, k Kind) []Step {
	var found []Step
	for i := range tr.Len() {
		if s := tr.Step(i); s.Kind == k {
			found = append(found, s)
		}
	}
	return found
}

func titles(steps []Step) []string {
	var found []string
	for _, s := range steps {
		found = append(found, s.Title)
	}
	return found
}

func TestRecordings(t *testing.T) {
	var files, calls int
	for _, dir := range shared.Recordings(t) {
		names, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, name := range names {
			if !strings.Contains(name, "-transcript") && !strings.HasSuffix(name, "-analysis.json") {
				continue
			}
			files++
			tr := opened(t, name)
			if want := map[bool]string{true: "analysis", false: "reference"}[strings.HasSuffix(name, "-analysis.json")]; tr.Info().Format != want {
				t.Errorf("%s is taken for %s", name, tr.Info().Format)
			}
			if tr.Len() == 0 && !strings.Contains(name, "luna-queue-builder-analysis") { // two of these are empty
				t.Errorf("%s: no steps", name)
			}
			calls += len(ofKind(tr, ToolCall))
		}
	}
	if files < 40 || calls < 500 {
		t.Errorf("only %d files with %d calls", files, calls)
	}
}

func TestReferenceJoinsTraceAndRounds(t *testing.T) {
	tr := opened(t, shared.Shared(t, "recordings", "infra-core-primary-failover-round-002", "luna-failover-engineer-transcript.json"))
	calls := ofKind(tr, ToolCall)
	if len(calls) != 24 {
		t.Fatalf("%d calls", len(calls))
	}
	for i, c := range calls {
		if c.Pos != i || c.DurationMS < 0 || c.Outcome != Succeeded {
			t.Errorf("call %d is trace item %d, %d ms, %s", i, c.Pos, c.DurationMS, c.Outcome)
		}
	}
	if calls[1].AtMS != 7447 || calls[1].Title != "Inspect failover files and running services" {
		t.Errorf("%+v", calls[1])
	}
	tot := tr.Totals()
	if n(tot.Input) != 128643 || n(tot.Output) != 5725 || n(tot.CacheRead) != 112443 || tot.Method != "stated by the harness" {
		t.Errorf("%+v", tot)
	}
	if spent := tr.Spent(tr.Len()); n(spent.Input) != 128643 {
		t.Errorf("rounds add up to %d", n(spent.Input))
	}
	if clock, _ := tr.Clock(); clock != Relative {
		t.Errorf("clock %s", clock)
	}
}

func TestReferenceTorn(t *testing.T) {
	tr := opened(t, shared.Shared(t, "recordings", "infra-core-durable-job-queue-round-002", "deepseek-queue-builder-transcript.live.json"))
	if f := finding(t, tr, "damaged"); f.Severity != Break || f.Offset != 1566720 {
		t.Errorf("%+v", f)
	}
	finding(t, tr, "trace-behind-damage")
	if calls := ofKind(tr, ToolCall); len(calls) != 17 || calls[16].Pos != 16 {
		t.Errorf("%d calls", len(calls))
	}
}

// Traces apart from words, as two dialects of the reference write them.
func TestReferenceWordsApart(t *testing.T) {
	tr := written(t, `{"schema_version":2,"harness":"opencode","tool_trace":[
	{"id":"b","name":"bash","input":{"command":"systemctl restart x"},"output":"no","is_error":true,"read_only":false,"started_after_ms":3209,"duration_ms":10},
	{"id":"a","name":"read","input":{"filePath":"/etc/x"},"output":"text","is_error":false,"read_only":true,"started_after_ms":3166,"duration_ms":5}],
	"messages":[{"role":"assistant","content":"all done"}],"usage":{"input_tokens":33,"output_tokens":5,"cache_read_tokens":100,"cost_usd":null,"estimated_cost_usd":0.25},
	"outcome":{"status":"completed","message":"bye"},"model":"m"}`)
	if got := titles(ofKind(tr, ToolCall)); !slices.Equal(got, []string{"/etc/x", "systemctl restart x"}) {
		t.Errorf("%q", got)
	}
	if s := tr.Step(tr.Len() - 1); s.Title != "all done" {
		t.Errorf("the last step is %q", s.Title)
	}
	finding(t, tr, "trace-order")
	tot := tr.Totals()
	if n(tot.Input) != 133 || n(tot.CostMicroUSD) != 250_000 || tot.CostMethod != "estimated by the harness" {
		t.Errorf("%+v", tot)
	}
	if c := ofKind(tr, ToolCall)[1]; c.Outcome != Failed || c.Class != Shell || c.Pos != 0 {
		t.Errorf("%+v", c)
	}
}

func TestAnalysisDocument(t *testing.T) {
	tr := opened(t, shared.Shared(t, "seeds", "analysis.json"))
	if tr.Len() != 19 || tr.Info().Territory != "failover-three" {
		t.Fatalf("%d steps, %+v", tr.Len(), tr.Info())
	}
	f, err := tr.Full(17)
	if err != nil {
		t.Fatal(err)
	}
	if f.AtMS != 221375 || f.ReferenceKind == "" || !f.Has(Truncated) || !strings.HasSuffix(f.Command(), "…") || f.Pos != 18 {
		t.Errorf("%+v", f)
	}
	finding(t, tr, "digest")
}
