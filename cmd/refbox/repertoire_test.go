package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refbox/engine/export/exporttest"
	"refbox/tui/viewtest"
)

// corpus is what a hostile guest, agent or file may say: known tricks, and bytes that
// are thrown together of the parts of tricks.
func corpus() map[string]string {
	out := exporttest.Strings()
	for _, name := range []string{"markup", "close", "url", "template"} {
		delete(out, name) // a page's tricks
	}
	parts := []string{"\x1b", "[", "]", "52;c;", "0;", "2;", "?1049", "?2026", "h", "l", "m", "J", "6n", "c", "\x9b", "\x9d", "\u009b", "\u0090", "P", "X", "^", "_",
		"\a", "\x1b\\", "\x9c", "\x00", "\x7f", "\b", "\r", "\n", "\t", "\x0e", "\u202e", "\u2066", "\u200d", "\ufe0f", "\u2028", "\ufeff", "\U000e0041", "界", "\u0301",
		"a", " ", ";", "38;2;1;2;3", "8;;http://x", "#8", "(0", "%G", "\xff", "\xc3", "\xed\xa0\x80", "\x1bc", "!p", "$", "\"", "<", "/"}
	r := rand.New(rand.NewPCG(11, 4))
	for i := range 4 {
		var b strings.Builder
		for range 40 {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		out[fmt.Sprint("fuzz", i)] = b.String()
	}
	return out
}

// Whatever console, actions, events, evidence, result files and file names hold, the
// terminal in front of which the program runs receives only what the program itself
// draws with: on the screens of a heat, in the stepper, in the lobby, on leaving.
func TestTerminalReceivesOnlyOurOwn(t *testing.T) {
	names := slices.Sorted(maps.Keys(corpus()))
	if testing.Short() {
		names = []string{"c1", "escapes", "fuzz0", "invalid"}
	}
	for _, name := range names {
		s := corpus()[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			dir := exporttest.Hostile(t, s)
			told := hostileTranscript(s)
			seats, err := os.ReadDir(filepath.Join(dir, "seats"))
			if err != nil {
				t.Fatal(err)
			}
			for _, seat := range seats {
				for file, data := range map[string]string{"transcript.json": told, "result.json": `{"success":true,"summary":` + inJSON(s) + `,` + inJSON(s) + `:[` + inJSON(s) + `]}`, "brief.md": s} {
					if err := os.WriteFile(filepath.Join(dir, "seats", seat.Name(), file), []byte(data), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			home := filepath.Join(b.path("data"), "refbox", "recordings")
			// A file whose name is not UTF-8 is not found by what reads transcripts.
			transcript := b.path("t" + strings.NewReplacer("/", "_", "\x00", "_").Replace(strings.ToValidUTF8(s[:min(len(s), 100)], "")) + ".json")
			err = errors.Join(os.MkdirAll(home, 0o755), os.Symlink(dir, filepath.Join(home, filepath.Base(dir))), os.WriteFile(transcript, []byte(told), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			const escape = "\x1b"
			for _, tour := range []struct {
				args []string
				keys []string
			}{
				{[]string{"replay", dir}, []string{" ", "G", "y", "w", "j", "enter", escape, escape, "i", "j", escape, "j", "j", "\r", "k", "\r", "y", escape, "\t", "\t", "j", "+", escape, escape,
					"2", "t", "j", "j", "U", escape, escape, "/", "e", "\r", "n", "?", escape, "a", "c", "\x1d"}},
				{[]string{"step", transcript}, []string{"j", "y", "j", "R", "U", escape, "F", escape, "i", escape, "/", "x", "\r"}},
				{nil, []string{"j", "j", "G", "k", "/", "h", escape, "?", escape}},
			} {
				scr := b.show(100, 30, tour.args...)
				scr.shows("help") // else the terminal itself echoes what is typed
				scr.walk(tour.keys...)
				select {
				case <-scr.ended:
					t.Errorf("refbox %.80q has ended by itself:\n%s", tour.args, scr.text())
				default:
				}
				scr.walk("\x03", "\x03", "q", "q")
				select {
				case <-scr.ended:
				case <-time.After(30 * time.Second):
					t.Fatalf("refbox %.80q does not leave:\n%s", tour.args, scr.text())
				}
				out := scr.output()
				if err := viewtest.Repertoire(out); err != nil {
					t.Errorf("refbox %.80q: %v", tour.args, err)
				}
				if bytes.Count(out, []byte("\x1b[?2026h")) < 5 {
					t.Errorf("refbox %.80q has drawn next to nothing: %q", tour.args, out)
				}
			}
		})
	}
}

func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// hostileTranscript is a transcript in the reference's form, in whose every field s is.
func hostileTranscript(s string) string {
	quoted := inJSON(s)
	call := `{"id":"a","name":` + quoted + `,"input":{"command":` + quoted + `,` + quoted + `:1},"output":` + quoted + `,"started_after_ms":1,"duration_ms":2}`
	return `{"schema_version":2,"model":` + quoted + `,"outcome":{"status":` + quoted + `,"result":` + quoted + `},"usage":{"input_tokens":1},"messages":[{"role":"assistant","content":` +
		quoted + `}],"tool_trace":[` + call + `,` + strings.Replace(call, `"a"`, `"b"`, 1) + `],"timing":{"model_rounds":[{"started_after_ms":0,"duration_ms":1,"usage":{"input_tokens":1}}]}}`
}
