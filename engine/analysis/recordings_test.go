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
