package analysis

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

// readTrace reads the tool trace of a transcript in the reference's own form;
// enough for tests of this package.
func readTrace(t testing.TB, file string) []Action {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Trace []struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Input    json.RawMessage `json:"input"`
			Output   string          `json:"output"`
			IsError  bool            `json:"is_error"`
			Started  int64           `json:"started_after_ms"`
			Duration int64           `json:"duration_ms"`
		} `json:"tool_trace"`
	}
	if json.Unmarshal(b, &doc) != nil {
		return nil // a torn copy: the importer's business
	}
	var out []Action
	for i, s := range doc.Trace {
		out = append(out, Action{Index: i, ID: s.ID, Tool: s.Name, Input: s.Input, Output: s.Output, Success: !s.IsError,
			StartedMS: s.Started, DurationMS: s.Duration})
	}
	return out
}

// recordedActions are the actions of every transcript and analysis at hand, by
// file.
func recordedActions(t testing.TB) map[string][]Action {
	t.Helper()
	out := map[string][]Action{}
	for _, dir := range shared.Recordings(t) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, f := range files {
			name := filepath.Base(filepath.Dir(f)) + "/" + filepath.Base(f)
			switch {
			case strings.Contains(f, "-transcript"):
				if a := readTrace(t, f); len(a) > 0 {
					out[name] = a
				}
			case strings.HasSuffix(f, "-analysis.json"):
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				ref, err := ReadReference(b)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				out[name] = ref.Actions
			}
		}
	}
	if len(out) == 0 {
		t.Skip("no transcripts beside the recordings")
	}
	return out
}

// No junk in any summary: units are names that systemd would accept, paths are
// whole and written, nothing temporary, nothing that was only mentioned.
func TestNoJunkInSummaries(t *testing.T) {
	for name, actions := range recordedActions(t) {
		noJunk(t, name, Analyse(actions))
	}
}

func noJunk(t *testing.T, name string, a Analysis) {
	t.Helper()
	text := map[string]bool{}
	for _, s := range a.Steps {
		for _, e := range s.Effects {
			if e.Changes() {
				text[e.Target] = true
			}
		}
	}
	for _, u := range a.Architecture.ServiceUnits {
		if strings.ContainsAny(u, "/$*=… \"'") || strings.HasPrefix(u, "-") || !strings.Contains(u, ".") {
			t.Errorf("%s: %q is no unit", name, u)
		}
	}
	for _, p := range a.Architecture.PersistentPaths {
		if strings.ContainsAny(p, "$*?=…\"'{}\x00\n") || !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") || p == "/" ||
			strings.HasPrefix(p, "/tmp") || strings.HasPrefix(p, "/dev") || strings.HasPrefix(p, "/proc") || strings.HasSuffix(p, ".tmp") ||
			strings.HasSuffix(p, ".wtest") || strings.HasPrefix(p, "/nix/store") {
			t.Errorf("%s: %q is no persistent path", name, p)
		}
		if !text[p] {
			t.Errorf("%s: nothing changed %q", name, p)
		}
	}
	for _, tech := range a.Architecture.Technologies {
		if tech == "Redis" || tech == "Node.js" || tech == "Nginx" || tech == "Rust" || tech == "Ruby" {
			t.Errorf("%s: %s is only a word there", name, tech)
		}
	}
}

// A cut command must not be read worse than it has to: on analyses beside a
// whole transcript, nearly all kinds agree.
func TestCutCommandsAgreeWithWholeOnes(t *testing.T) {
	all := recordedActions(t)
	same, n := 0, 0
	for name, cut := range all {
		base, ok := strings.CutSuffix(name, "-analysis.json")
		if !ok {
			continue
		}
		whole := all[base+"-transcript.json"]
		if whole == nil {
			whole = all[base+"-transcript.live.json"]
		}
		kinds := map[int]Kind{}
		for _, s := range Analyse(whole).Steps {
			kinds[s.Index] = s.Kind
		}
		for _, s := range Analyse(cut).Steps {
			k, ok := kinds[s.Index]
			if !ok {
				continue
			}
			n++
			if k == s.Kind {
				same++
				continue
			}
			t.Logf("%s %d: %s when cut, %s as a whole", name, s.Index, s.Kind, k)
		}
	}
	t.Logf("%d of %d agree", same, n)
	if n == 0 {
		t.Skip("no analysis beside its transcript")
	}
	if float64(same) < 0.95*float64(n) {
		t.Errorf("only %d of %d kinds agree", same, n)
	}
}

func BenchmarkCommands(b *testing.B) {
	var actions []Action
	for _, a := range recordedActions(b) {
		actions = append(actions, a...)
	}
	n := 0
	for _, a := range actions {
		n += len(a.Text())
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		for _, a := range actions {
			Classify(a, true)
		}
	}
}
