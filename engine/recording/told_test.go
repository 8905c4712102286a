package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

// What is wrong with each published recording, era and world's fields aside: the
// irregularities of recordings.md, section 9.
var irregular = map[string][]string{
	"durable-job-queue-20260814-194238-round-001": {
		"missing_result [luna-queue-builder]", "foreign_transcript luna-queue-builder-transcript.live.json", "foreign_analysis luna-queue-builder-analysis.json",
	},
	"durable-job-queue-fog-20260814-161914":        {"missing_result [deepseek-queue-builder luna-queue-builder]"},
	"durable-job-queue-oracle-20260813-170828":     {"missing_file arena.json", "missing_result [queue-three-agent queue-two-agent]"},
	"first-build-20260813-085352":                  {"missing_file match.json", "missing_file arena.json"},
	"first-build-real-20260813-090331":             {"missing_file match.json", "missing_file arena.json", "missing_result [glm-builder luna-builder]"},
	"first-build-real-20260813-093450":             {"missing_file match.json", "missing_file arena.json", "missing_result [deepseek-builder]", "usage_missing luna-builder-transcript.json"},
	"first-contact-20260813-074110":                {"missing_file match.json", "missing_file arena.json"},
	"infra-core-durable-job-queue-round-002":       {"torn_transcript deepseek-queue-builder-transcript.live.json"},
	"infra-core-first-build-real-round-003":        {"missing_result [deepseek-builder]"},
	"infra-core-primary-failover-round-002":        nil,
	"oracle-smoke-2-round-002":                     {"missing_file arena.json"},
	"primary-failover-real-20260813-130342":        {"missing_file arena.json", "missing_result [deepseek-failover-engineer luna-failover-engineer]", "usage_missing glm-failover-engineer-transcript.json"},
	"traffic-surge-oracle-smoke":                   nil,
	"zero-downtime-rollout-oracle-20260813-183622": {"missing_file arena.json"},
	"zero-downtime-rollout-real-20260813-123033":   {"missing_file arena.json", "missing_result [deepseek-rollout-engineer]", "usage_missing luna-rollout-engineer-transcript.json"},
	"first-build-real-20260814-075912-round-003": {
		"missing_file arena.json", "missing_result [glm-builder luna-builder]",
		"foreign_transcript glm-builder-transcript.live.json", "foreign_analysis glm-builder-analysis.json",
		"foreign_transcript luna-builder-transcript.live.json", "foreign_analysis luna-builder-analysis.json",
	},
}

func TestKnownIrregularitiesAreFoundAndNoOthers(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		want, known := irregular[filepath.Base(dir)]
		if !known {
			continue // newer than the list
		}
		report, err := verifyFolder(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range report.Findings {
			what := f.File
			if f.Code == "missing_result" {
				what = f.Text[strings.Index(f.Text, "["):]
			}
			if f.Code != "era" {
				got = append(got, f.Code+" "+what)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", filepath.Base(dir), got, want)
		}
	}
}

// copyOf is a copy of a published recording that may be changed.
func copyOf(t *testing.T, name string) string {
	t.Helper()
	from := shared.Shared(t, "recordings", name)
	to := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func move(t *testing.T, dir, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, from))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, to))
	write(t, filepath.Join(dir, to), string(data))
}

// A live copy is told by the final file too, and a final file by the usage.
func TestForeignTranscripts(t *testing.T) {
	other := shared.Shared(t, "recordings", "infra-core-first-build-real-round-003")
	swap := func(t *testing.T, dir, name string) {
		data, err := os.ReadFile(filepath.Join(other, "glm-builder-transcript.live.json"))
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(dir, name))
		write(t, filepath.Join(dir, name), string(data))
	}
	for name, c := range map[string]struct {
		of     string
		change func(t *testing.T, dir string)
		want   string
	}{
		"not a beginning of the final file, no usage charged": {"primary-failover-real-20260813-130342", func(t *testing.T, dir string) {
			swap(t, dir, "glm-failover-engineer-transcript.live.json")
		}, "foreign_transcript glm-failover-engineer-transcript.live.json"},
		"a beginning of the final file, no usage charged": {"primary-failover-real-20260813-130342", func(t *testing.T, dir string) {
			move(t, dir, "glm-failover-engineer-transcript.json", "glm-failover-engineer-transcript.live.json")
		}, ""},
		"the final file": {"infra-core-primary-failover-round-002", func(t *testing.T, dir string) {
			swap(t, dir, "glm-failover-engineer-transcript.json")
		}, "foreign_transcript glm-failover-engineer-transcript.json"},
		"another seat's": {"infra-core-primary-failover-round-002", func(t *testing.T, dir string) {
			move(t, dir, "luna-failover-engineer-transcript.live.json", "glm-failover-engineer-transcript.live.json")
		}, "foreign_transcript glm-failover-engineer-transcript.live.json"},
		"the nested layout": {"infra-core-primary-failover-round-002", func(t *testing.T, dir string) {
			move(t, dir, "luna-failover-engineer-transcript.live.json", "agents/glm-failover-engineer/transcript.live.json")
			os.Remove(filepath.Join(dir, "glm-failover-engineer-transcript.live.json"))
		}, "foreign_transcript agents/glm-failover-engineer/transcript.live.json"},
		"no transcript at all": {"infra-core-primary-failover-round-002", func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, "glm-failover-engineer-transcript.live.json"))
			write(t, filepath.Join(dir, "glm-failover-engineer-transcript.live.json"), `{"steps":[1,2,3]}`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, c.of)
			c.change(t, dir)
			report, err := verifyFolder(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range report.Findings {
				if strings.HasPrefix(f.Code, "foreign_transcript") {
					got += f.Code + " " + f.File
				}
			}
			if got != c.want {
				t.Fatalf("got %q, want %q; all: %+v", got, c.want, report.Findings)
			}
		})
	}
}

// One match under two names is noted in a list, on both, and only there.
func TestSameMatchTwice(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		writeHeat(t, filepath.Join(root, name))
		if i > 0 {
			move(t, root, "a/events.jsonl", name+"/events.jsonl")
		}
	}
	move(t, root, "c/match.json", "c/other.json")
	write(t, filepath.Join(root, "c", eventsFile), line(0, 0, note))
	list, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // marking twice changes nothing
		got := ""
		for _, s := range list {
			for _, f := range s.Integrity.Findings {
				if f.Code == sameMatch {
					got += fmt.Sprintf("%s: %s %s\n", s.Name, f.Text, s.Badge)
				}
			}
		}
		if strings.Count(got, "\n") != 2 || !strings.Contains(got, "a: the same match is recorded under 1 other names: b notes") || !strings.Contains(got, "b: the same match is recorded under 1 other names: a") {
			t.Fatalf("%s", got)
		}
		MarkSame(list)
	}
	MarkSame(list[:1])
	for _, f := range list[0].Integrity.Findings {
		if f.Code == sameMatch {
			t.Fatalf("alone it is still noted: %+v", f)
		}
	}
}

func TestBundleIsNoSecondName(t *testing.T) {
	list := []Summary{{Path: "h/one", Name: "one", likeness: "x"}, {Path: "h/one.tar.gz", Name: "one.tar.gz", likeness: "x"}}
	MarkSame(list)
	if n := len(list[0].Integrity.Findings) + len(list[1].Integrity.Findings); n > 0 {
		t.Fatalf("%+v", list)
	}
}

// A transcript is anybody's JSON.
func FuzzTold(f *testing.F) {
	f.Add([]byte(`{"schema_version":2,"usage":{"input_tokens":1,"output_tokens":2},"tool_trace":[{"id":"a","name":"Bash","input":{"command":"x"},"output":"y","started_after_ms":1,"duration_ms":2}],"timing":{"total_duration_ms":3,"model_rounds":[{"started_after_ms":0,"duration_ms":1,"usage":{"input_tokens":1,"output_tokens":2}}]}}`))
	f.Add([]byte(`{"schema_version":2,"usage":null,"tool_trace":null,"timing":{"model_rounds":[{"usage":{"input_tokens":-1}}]}}`))
	f.Add([]byte(`{"schema_version":2,"tool_trace":[{"started_after_ms":18446744073709551615,"duration_ms":18446744073709551615,"input":[],"output":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := readTold(data)
		b := readTold(data)
		charged := []checkpoint{{1, tokens{1, 2}, true}}
		a.verdict = a.judge(charged, nil)
		b.judge(charged, &a)
		act := a.activity(charged, nil)
		for _, c := range act.Calls {
			if c.EndMS < c.StartMS {
				t.Fatalf("%+v", c)
			}
		}
	})
}
