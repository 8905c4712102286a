package telling

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
	"refbox/engine/recording"
	"refbox/engine/season"
)

func checked(t *testing.T, dir string) season.Checks {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	list, err := Check(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func said(list season.Checks, code string) (texts string) {
	for _, c := range list {
		if c.Code == code {
			texts += string(c.Verdict) + ": " + c.Where + ": " + c.Text + "\n"
		}
	}
	return texts
}

// TestRecordedHeats: no recorded heat has an analysis that is not of its transcript,
// and the one known contamination is the only one found (seasons reference, section
// 2.2).
func TestRecordedHeats(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(shared.Shared(t, "recordings"), "*", "events.jsonl"))
	if err != nil || len(dirs) == 0 {
		t.Skip("no recordings")
	}
	analyses := 0
	for _, log := range dirs {
		dir := filepath.Dir(log)
		list := checked(t, dir)
		for _, c := range list {
			if c.Verdict == season.Broken {
				t.Errorf("%s: %+v", filepath.Base(dir), c)
			}
			if c.Code == "T1" && c.Verdict == season.Holds {
				analyses++
			}
			if c.Code == "T2" && c.Verdict == season.Note && filepath.Base(dir) != "infra-core-durable-job-queue-round-002" {
				t.Errorf("%s: %+v", filepath.Base(dir), c)
			}
		}
	}
	if analyses < 5 {
		t.Errorf("only %d analyses were recomputed", analyses)
	}
	list := checked(t, shared.Shared(t, "recordings", "infra-core-durable-job-queue-round-002"))
	if s := said(list, "T2"); !strings.Contains(s, "note: luna-queue-builder: names what a player must not read, and it won") || !strings.Contains(s, "adapters/oracle-queue.sh") {
		t.Errorf("%s", s)
	}
	if s := said(list, "T3"); !strings.Contains(s, "note: deepseek-queue-builder") {
		t.Errorf("%s", s)
	}
}

// A changed transcript, or a changed analysis, is found out.
func TestAnotherTranscript(t *testing.T) {
	from := shared.Shared(t, "recordings", "infra-core-durable-job-queue-round-002")
	for _, x := range []struct {
		name, file, old, new, want string
	}{
		{"none", "", "", "", ""},
		{"transcript", "glm-queue-builder-transcript.json", `"model"`, `"model" `, "is of a transcript that is here"},
		{"start", "glm-queue-builder-analysis.json", `"started_after_ms": `, `"started_after_ms": 1`, "has the transcript's actions"},
		{"count", "glm-queue-builder-analysis.json", `"tool_calls": `, `"tool_calls": 1`, "counts its own actions"},
	} {
		dir := filepath.Join(t.TempDir(), "heat")
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if x.file != "" {
			name := filepath.Join(dir, x.file)
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			other := strings.Replace(string(data), x.old, x.new, 1)
			if other == string(data) {
				t.Fatalf("%s: %q is not there", x.name, x.old)
			}
			if err := os.Chmod(name, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := said(checked(t, dir), "T1")
		if broken := strings.Contains(s, "broken: glm-queue-builder"); broken != (x.want != "") || !strings.Contains(s, x.want) {
			t.Errorf("%s: %s", x.name, s)
		}
	}
}
