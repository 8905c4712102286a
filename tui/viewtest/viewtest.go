// Package viewtest is what the tests of every screen have in common: frames that
// are kept as files, what a frame may hold, keys, and the test data beside the
// repository. Its flag -update writes the frames anew.
package viewtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// testdata is that of the package under test, wherever a test goes.
var testdata, _ = filepath.Abs("testdata")

// Golden compares a frame with testdata/name.txt. The escape character is written
// as ␛, so that the files are text.
func Golden(t testing.TB, name, frame string) {
	t.Helper()
	path := filepath.Join(testdata, name+".txt")
	got := strings.ReplaceAll(frame, "\x1b", "␛") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test with -update makes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test with -update accepts it):\n--- want\n%s--- got\n%s", path, want, got)
	}
}

// Fits fails unless the frame has at most h rows of at most w cells.
func Fits(t testing.TB, frame string, w, h int) {
	t.Helper()
	rows := strings.Split(frame, "\n")
	if len(rows) > max(h, 1) {
		t.Fatalf("%d rows on %d×%d", len(rows), w, h)
	}
	for _, r := range rows {
		if n := ansi.StringWidth(r); n > w {
			t.Fatalf("a row of %d cells on %d×%d: %q", n, w, h, r)
		}
	}
}

// Hostile would drive, deceive or break a terminal in every way that we know of.
const Hostile = "A\x1b[2J\x1b[31mB\x1b]0;owned\x07\x1b]52;c;cHduZWQ=\x07\x1bPq#0\x1b\\\x9b2J\x9d0;x\x9c" +
	"\x00\x07\x08\x7f\u202eevil\u2066\u200b\ufeff\xff\xfe\xc3\r\n\t\u0301\u0301\u0301\u0301👩‍👩‍👧🏽⚠️\U000E0041\x0e\x1b(0\x1b[?1049h\x1b[6n界Z"

// OnlySGR fails unless the frame holds printable text, line ends and SGR, which
// is what a canvas may write. where is the place in the test.
func OnlySGR(t testing.TB, where, frame string) {
	t.Helper()
	var state byte
	after := "" // what came before
	p := ansi.NewParser()
	for rest := frame; rest != ""; {
		seq, width, n, next := ansi.DecodeSequence(rest, state, p)
		switch {
		case seq == "\n":
		case strings.HasPrefix(seq, "\x1b["):
			if ansi.Cmd(p.Command()).Final() != 'm' || ansi.Cmd(p.Command()).Prefix() != 0 {
				t.Fatalf("%s: a sequence that is not ours: %q", where, seq)
			}
		case width == 0 && after != "" && after[0] >= ' ' && strings.TrimLeftFunc(seq, func(r rune) bool { return unicode.Is(unicode.Mn, r) }) == "":
			// Marks stand on the letter before them, which the parser gives by itself
			// when it is ASCII.
		case width == 0:
			t.Fatalf("%s: %q (of no width)", where, seq)
		case strings.ContainsAny(seq, "\u202e\u2066\u200b\ufeff\u200d\ufe0f\U000E0041"):
			t.Fatalf("%s: %q", where, seq)
		}
		for _, r := range seq {
			if !strings.HasPrefix(seq, "\x1b[") && r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) {
				t.Fatalf("%s: control character %q", where, seq)
			}
		}
		state, rest, after = next, rest[n:], seq
	}
}

// Key is a key as Bubble Tea names it.
func Key(name string) tea.KeyMsg {
	alt := strings.HasPrefix(name, "alt+")
	name = strings.TrimPrefix(name, "alt+")
	for k := tea.KeyType(-100); k < 200; k++ {
		if k != tea.KeyRunes && k.String() != "" && k.String() == name && k != tea.KeySpace {
			return tea.KeyMsg{Type: k, Alt: alt}
		}
	}
	if name == " " {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}, Alt: alt}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name), Alt: alt}
}

// Shared is a file or folder of the test data that is not committed: below
// REFBOX_DATA, or else below the folder "shared" beside the repository. The test
// is skipped without it.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	data := os.Getenv("REFBOX_DATA")
	if data == "" {
		data = filepath.Join(root(t), "..", "shared")
	}
	full := filepath.Join(append([]string{data}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no test data at %s: set REFBOX_DATA, or put the shared folder beside the repository", full)
	}
	return full
}

// root is the repository's folder.
func root(t testing.TB) string {
	t.Helper()
	for dir := filepath.Dir(testdata); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod above %s", testdata)
		}
	}
}

// Recordings are the folders of the recordings in the test data, sorted by name;
// without any the test is skipped.
func Recordings(t testing.TB) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(Shared(t, "recordings"), "*", "events.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Skip("no recordings in the test data")
	}
	for i := range logs {
		logs[i] = filepath.Dir(logs[i])
	}
	return logs
}
