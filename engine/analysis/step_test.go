package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
	"refbox/engine/transcript"
)

func openTranscript(t testing.TB, file string) *transcript.Transcript {
	t.Helper()
	tr, err := transcript.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() }) //nolint:errcheck // only read
	if err := tr.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return tr
}

func verdicts(a Analysis) map[int]string {
	out := map[int]string{}
	for _, s := range a.Steps {
		out[s.Index] = fmt.Sprint(s.Kind, s.Also, s.Changed, s.ChangedBefore, s.StartedMS, s.DurationMS, s.Success, len(s.Effects))
	}
	return out
}

// A transcript read by its importer is judged as its trace is, and a Judge that
// goes through it step by step finds the same.
func TestStepsAreJudgedAsTheTraceIs(t *testing.T) {
	n := 0
	for _, dir := range shared.Recordings(t) {
		files, _ := filepath.Glob(filepath.Join(dir, "*-transcript*.json"))
		for _, file := range files {
			trace := readTrace(t, file)
			if len(trace) == 0 {
				continue
			}
			name := filepath.Base(dir) + "/" + filepath.Base(file)
			tr := openTranscript(t, file)
			got, err := Of(context.Background(), tr)
			if err != nil {
				t.Fatal(err)
			}
			want := Analyse(trace)
			w, g := verdicts(want), verdicts(got)
			for i, v := range w {
				n++
				if g[i] != v {
					t.Errorf("%s %d: %s by the step, %s by the trace", name, i, g[i], v)
				}
			}
			open := 0 // begun, and not in the trace yet
			for i := range tr.Len() {
				if h := tr.Head(i); Acts(h) && h.Outcome == transcript.Unfinished {
					open++
				}
			}
			if len(w)+open != len(g) {
				t.Errorf("%s: %d actions of %d, %d unfinished", name, len(g), len(w), open)
			}
			if open > 0 {
				continue
			}
			if x, y := fmt.Sprint(want.Architecture), fmt.Sprint(got.Architecture); x != y {
				t.Errorf("%s: %s by the steps, %s by the trace", name, y, x)
			}
			judgeAgrees(t, name, tr, got)
		}
	}
	t.Logf("%d actions", n)
}

// judgeAgrees holds a Judge, advanced in small bits, to an analysis of the same
// transcript whose actions began in order.
func judgeAgrees(t *testing.T, name string, tr *transcript.Transcript, want Analysis) {
	t.Helper()
	j := NewJudge(tr)
	for !j.Advance(3) {
	}
	if j.Len() != tr.Len() {
		t.Fatalf("%s: %d of %d steps were passed", name, j.Len(), tr.Len())
	}
	at, last, ordered := 0, int64(-1), true
	for i := range tr.Len() {
		kind, changed := j.Kind(i)
		s, ok := j.Step(i)
		if ok != (kind != "") {
			t.Fatalf("%s: step %d is of kind %q, and an action: %v", name, i, kind, ok)
		}
		if !ok {
			continue
		}
		ordered = ordered && s.StartedMS >= last
		last = s.StartedMS
		w := want.Steps[at]
		at++
		if ordered && (kind != w.Kind || changed != w.Changed || s.ChangedBefore != w.ChangedBefore || fmt.Sprint(s.Effects) != fmt.Sprint(w.Effects)) {
			t.Errorf("%s: step %d is %s (changed %v), should be %s (%v)", name, i, kind, changed, w.Kind, w.Changed)
		}
	}
	if at != len(want.Steps) {
		t.Errorf("%s: %d actions of %d", name, at, len(want.Steps))
	}
}

// Every format's samples are judged without a step that fails; what only looks is
// never taken for a change.
func TestSamplesOfEveryHarness(t *testing.T) {
	total := map[Kind]int{}
	err := filepath.WalkDir(shared.Shared(t, "transcripts"), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		tr, err := transcript.Open(file)
		if err != nil {
			return nil // a licence, a note
		}
		defer tr.Close()
		a, err := Of(context.Background(), tr)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			return nil
		}
		if clock, _ := tr.Clock(); clock == transcript.NoClock && (a.Metrics.FirstMutationMS != nil || a.Metrics.LastObservedMS != nil) {
			t.Errorf("%s: times of a record without a clock", file)
		}
		for _, s := range a.Steps {
			total[s.Kind]++
			switch s.Class {
			case transcript.Read, transcript.Search, transcript.Browse, transcript.Delegate:
				if s.Kind == Mutation || s.Kind == Lifecycle {
					t.Errorf("%s %d: %s %q is %s", file, s.Index, s.Tool, clip(s.Text(), 80), s.Kind)
				}
			case transcript.Write, transcript.Edit:
				if s.Kind != Mutation && s.Success && !strings.Contains(s.Text(), "tmp") {
					t.Errorf("%s %d: %s %q is %s", file, s.Index, s.Tool, clip(s.Text(), 80), s.Kind)
				}
			}
		}
		t.Logf("%-40s %-14s %v first change %v", filepath.Base(file), tr.Info().Format, a.Metrics.ToolCalls, a.Metrics.FirstMutationMS)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total[Mutation] == 0 || total[Discovery] == 0 {
		t.Errorf("kinds are %v", total)
	}
}

// What a call's arguments say is not a command: a prompt that speaks of rm -rf
// removes nothing.
func TestWordsOfOtherToolsAreNoCommands(t *testing.T) {
	for _, tc := range []struct {
		class transcript.Class
		tool  string
		input string
		want  Kind
	}{
		{transcript.Delegate, "Task", `{"prompt":"run; rm -rf /etc/a; systemctl restart b"}`, Discovery},
		{transcript.Search, "Grep", `{"pattern":"x; rm -rf /etc/a"}`, Discovery},
		{transcript.Browse, "WebSearch", `{"query":"how to; reboot"}`, Discovery},
		{transcript.Other, "mcp__x__y", `{"note":"; rm -rf /etc"}`, Discovery},
		{transcript.Write, "save_it", `{"path":"/etc/a.conf","content":"x"}`, Mutation},
		{transcript.Edit, "str_replace_editor", `{"command":"str_replace","path":"/etc/a.conf","old_str":"a","new_str":"b"}`, Mutation},
		{transcript.Read, "str_replace_editor", `{"command":"view","path":"/etc/a.conf"}`, Discovery},
		{transcript.Shell, "view", `{"command":"rm /etc/a.conf"}`, Mutation},
	} {
		if got := Classify(Action{Class: tc.class, Tool: tc.tool, Input: json.RawMessage(tc.input), Success: true}, true); got.Kind != tc.want {
			t.Errorf("%s %s is %s, should be %s", tc.tool, tc.input, got.Kind, tc.want)
		}
	}
}

// A step whose result comes later is judged anew, and what follows from it.
func TestResultThatComesLater(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	var log bytes.Buffer
	event := func(kind, more string) {
		fmt.Fprintf(&log, `{"schema_version":1,"sequence":%d,"elapsed_ms":%d,"kind":%q,"territory":"one","agent":"a",%s}`+"\n",
			bytes.Count(log.Bytes(), []byte("\n")), log.Len(), kind, more)
	}
	save := func() {
		if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	event("agent_action_started", `"action":1,"channel":"sftp","machine":"host","command":"sftp"`)
	event("agent_action_started", `"action":2,"channel":"exec","machine":"host","command":"curl -s http://127.0.0.1:8080/health"`)
	save()
	tr := openTranscript(t, file)
	j := NewJudge(tr)
	j.Advance(100)
	if k, _ := j.Kind(1); k != Discovery {
		t.Errorf("a check before any change is %s", k)
	}
	event("agent_action_finished", `"action":1,"took_ms":3,"exit":0,"output":"write /etc/a.conf\n"`)
	save()
	if _, err := tr.Refresh(); err != nil {
		t.Fatal(err)
	}
	j.Advance(100)
	if k, changed := j.Kind(0); k != Mutation || !changed {
		t.Errorf("a written file is %s", k)
	}
	if k, _ := j.Kind(1); k != Validation {
		t.Errorf("a check after a change is %s", k)
	}
	if j.Next(-1, 1) != 0 || j.Next(0, 1, Validation) != 1 || j.Next(1, -1, Mutation) != 0 || j.Next(0, 1) != -1 {
		t.Error("the next change, check or mutation is not found")
	}
}

// The actions of a heat of ours, seat by seat, each on its own machine.
func TestObservedActions(t *testing.T) {
	tr := openTranscript(t, filepath.Join("..", "..", "recordings", "primary-failover", "events.jsonl"))
	j := NewJudge(tr)
	for !j.Advance(5) {
	}
	for i, agent := range tr.Agents() {
		if i == 0 {
			continue
		}
		a, err := Of(context.Background(), tr, i)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v %+v", agent.ID, a.Metrics, a.Architecture)
		if len(a.Steps) == 0 {
			t.Errorf("%s did nothing", agent.ID)
		}
		at := 0
		for k := range tr.Len() {
			if h := tr.Head(k); h.Agent == i && Acts(h) {
				if kind, _ := j.Kind(k); kind != a.Steps[at].Kind {
					t.Errorf("%s: %q is %s in the log, %s for the seat", agent.ID, a.Steps[at].Text(), kind, a.Steps[at].Kind)
				}
				at++
			}
		}
	}
}
