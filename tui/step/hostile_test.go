package step

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"refbox/engine/transcript"
	"refbox/tui/canvas"
)

// hostile strings: sequences, titles, clipboard writes, bidi, NUL, C1, combining
// marks without end, half a rune.
var hostile = []string{
	"\x1b]0;owned\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1b[2J\x1b[H", "\x1b[?1049h", "\x1bP+q544e\x1b\\", "\x9b31m", "\u009b2J",
	"\u202eevil\u202c", "\u2066\u2069\u200f", "\x00\x01\x7f", strings.Repeat("e\u0301\u0301\u0301\u0301", 50), "\xff\xfe", "\U0001F468\u200d\U0001F469",
	"\r\n\r", "\x0e(0lqqk\x0f", "{\"\x1b[31m\":1", "```\x1b[31m\n", "| a\x1b[5m | b |\n|---|---|\n",
}

// clean fails when a frame holds anything but printable text.
func clean(t testing.TB, frame string) {
	t.Helper()
	for i, r := range frame {
		if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029) {
			t.Fatalf("rune %U at %d of the frame: %q", r, i, frame[max(0, i-40):min(len(frame), i+40)])
		}
	}
}

func TestHostileTextNeverReachesTheTerminal(t *testing.T) {
	s := newSession(t)
	all := strings.Join(hostile, " ")
	s.user(all)
	s.says("# " + all + "\n\n" + all + "\n\n```bash\n" + all + "\n```\n- " + all)
	for _, h := range hostile {
		s.call("Bash"+h, `{"command":`+quoted(h+"; systemctl stop x"+h)+`,"description":`+quoted(h)+`}`, h, true, "")
		s.call("Edit", `{"file_path":`+quoted("/etc/"+h)+`,"old_string":`+quoted(h)+`,"new_string":`+quoted(h+"x")+`}`, h, false, "")
		s.block(`{"type":"thinking","thinking":` + quoted(h) + `}`)
	}
	s.bash("echo", `{"`+all+`":"`+all+`"}`)
	s.b.WriteString(all + "\n")
	x := opened(t, s.write(), 100, 30)
	x.press("R")
	for i := range x.step.track().tr.Len() {
		x.goTo(i)
		clean(t, x.text())
		x.press("enter")
		clean(t, x.text())
		x.press("y")
		clean(t, strings.ReplaceAll(x.copied, "\u200d", "")) // joins emoji: harmless in a clipboard
		x.press("esc", "esc")
	}
	for _, key := range []string{"i", "U", "F"} {
		x.press(key)
		clean(t, x.text())
		x.press("esc")
	}
	clean(t, strings.Join(x.s.Crumbs(), " "))
}

// A line of ten megabytes: folded, opened, searched, left.
func TestGiantLine(t *testing.T) {
	s := newSession(t)
	s.user("go")
	s.bash("cat big", strings.Repeat("x\x1b[31my", 2_500_000)+" haystack")
	s.says("after")
	x := opened(t, s.write(), 100, 30)
	x.goTo(1)
	h, _ := x.step.track().chosen()
	if p, _, _ := x.step.track().page(x.step.track().pageKey(h, x.step, x.step.track().asked.page.width)); p.folded == 0 || len(p.rows) > 400 {
		t.Errorf("%d parts folded, %d rows", p.folded, len(p.rows))
	}
	x.press("enter", "pgdown")
	clean(t, x.text())
	x.press("/")
	x.answer("haystack")
	x.at(1)
	x.press(".")
	x.at(2)
	if rows := len(lay(full(t, x, 1), judged{}, look{width: 20, open: true}).rows); rows > maxRows+1 {
		t.Errorf("%d rows", rows)
	}
}

func full(t testing.TB, x *stage, i int) *transcript.Full {
	t.Helper()
	f, err := x.step.track().tr.FullLimit(i, openLimit)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever a body holds, a page is made of rows that fit, and of no controls.
func TestPagesFit(t *testing.T) {
	roles := []transcript.Role{
		transcript.PartMessage, transcript.PartReasoning, transcript.PartDescription, transcript.PartCommand, transcript.PartCode, transcript.PartInput,
		transcript.PartPath, transcript.PartQuery, transcript.PartOld, transcript.PartNew, transcript.PartPatch, transcript.PartOutput, transcript.PartError,
		transcript.PartData, transcript.PartMedia, transcript.PartSealed,
	}
	piece := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.SampledFrom([]string{
		"\n", "\t", " ", "日本語", "a very long word that is wrapped", "**", "- ", "1. ", "> ", "```\n", "|", "[x](y)", "<b>", "&amp;", `{"a":[1,`, `"}]`, "NaN", "\\",
	}))
	rapid.Check(t, func(r *rapid.T) {
		f := &transcript.Full{Step: transcript.Step{Head: transcript.Head{Kind: transcript.ToolCall, Class: transcript.Shell, AtMS: -1, DurationMS: -1}}}
		for range rapid.IntRange(1, 4).Draw(r, "parts") {
			f.Parts = append(f.Parts, transcript.Part{
				Role: rapid.SampledFrom(roles).Draw(r, "role"), Label: rapid.SampledFrom([]string{"", "python", "bash", "x"}).Draw(r, "label"),
				Text: transcript.NewText(strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(r, "text"), "")),
			})
		}
		l := look{width: rapid.IntRange(1, 90).Draw(r, "width"), open: rapid.Bool().Draw(r, "open"), private: rapid.Bool().Draw(r, "private"), color: rapid.Bool().Draw(r, "color")}
		p := lay(f, judged{}, l)
		width := max(8, l.width)
		c := canvas.New(width, len(p.rows))
		for y, row := range p.rows {
			if len(row.cells) > width {
				r.Fatalf("row %d has %d cells of %d", y, len(row.cells), width)
			}
			if n := len(row.cells); n > 0 && row.cells[0].R == canvas.Cont {
				r.Fatalf("row %d begins with half a rune", y)
			}
			c.PutCells(0, y, row.cells)
		}
		frame := c.Flatten(plainOut)
		for _, x := range frame {
			if x != '\n' && (x < ' ' || x >= 0x7f && x < 0xa0) {
				r.Fatalf("rune %U in a page", x)
			}
		}
	})
}

// A transcript that is replaced by a shorter one while it is shown.
func TestReplacedWhileShown(t *testing.T) {
	path := demo(t)
	x := opened(t, path, 100, 30)
	x.press("G")
	s := newSession(t)
	for i := range 20 {
		s.user(fmt.Sprint("other ", i))
	}
	if err := os.WriteFile(path+".new", []byte(s.b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	for x.step.track().tr.Len() != 20 {
		<-x.s.Feed()
		x.s.Advance(x.Now())
		x.draw()
	}
	x.settle()
	x.shows("other 19")
}

// Leaving while everything still runs ends what runs.
func TestLeaveAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.jsonl")
	s := newSession(t)
	for i := range 3000 {
		s.bash(fmt.Sprintf("echo %d", i), strings.Repeat("words ", 500))
	}
	s.path = path
	s.write()
	scr, err := Open(path, path, -1)
	if err != nil {
		t.Fatal(err)
	}
	scr.Advance((*stage)(nil).Now())
	scr.Draw(canvas.New(120, 30))
	scr.track().seek("absent", 0, 1, false)
	scr.Close()
	if err := context.Cause(scr.ctx); err == nil {
		t.Error("it goes on")
	}
}
