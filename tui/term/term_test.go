package term

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"refbox/tui/canvas"
)

func show(t *Term) string {
	lines := strings.Split(t.String(), "\n")
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "|")
}

func TestSequences(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"wrap", "abcdefghijkl", "abcdefghij|kl"},
		{"pending wrap", "abcdefghij\rX", "Xbcdefghij"},
		{"autowrap cannot go off", "\x1b[?7labcdefghijkl", "abcdefghij|kl"},
		{"backspace", "abc\b\bX", "aXc"},
		{"tab", "a\tb", "a       b"},
		{"tab stops", "\x1b[3g\x1b[5G\x1bH\ra\tb", "a   b"},
		{"line feeds", "1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5"},
		{"nel", "a\x1bEb", "a|b"},
		{"ind and ri", "a\x1bDb\x1bMc", "a c| b"},
		{"ri scrolls", "a\x1b[H\x1bMb", "b|a"},
		{"cup", "\x1b[2;3Hx\x1b[99;99Hy", "|  x||         y"},
		{"el", "abcdef\x1b[3D\x1b[K", "abc"},
		{"el 1", "abcdef\x1b[3D\x1b[1K", "    ef"},
		{"ed", "ab\r\ncd\r\nef\x1b[2;2H\x1b[J", "ab|c"},
		{"ed 1", "ab\r\ncd\r\nef\x1b[2;1H\x1b[1J", "| d|ef"},
		{"ed 2", "ab\r\ncd\x1b[2Jx", "|  x"},
		{"ich", "abc\x1b[2G\x1b[2@", "a  bc"},
		{"dch", "abcdef\x1b[2G\x1b[2P", "adef"},
		{"ech", "abcdef\x1b[2G\x1b[2X", "a  def"},
		{"rep", "ab\x1b[3b", "abbbb"},
		{"rep of nothing", "\x1b[9bx", "x"},
		{"irm", "abc\x1b[1G\x1b[4hX\x1b[4lY", "XYbc"},
		{"il", "1\r\n2\r\n3\x1b[2H\x1b[L", "1||2|3"},
		{"dl", "1\r\n2\r\n3\x1b[1H\x1b[M", "2|3"},
		{"region", "\x1b[2;3r\x1b[1H0\r\n1\r\n2\r\n3\r\n4", "0|3|4"},
		{"region keeps the rest", "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3H\n\nx", "a||x|d"},
		{"su and sd", "1\r\n2\r\n3\x1b[S\x1b[2T", "||2|3"},
		{"origin", "\x1b[2;3r\x1b[?6hx\x1b[9;1Hy", "|x|y"},
		{"decaln", "\x1b#8", "EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE"},
		{"save and restore", "ab\x1b7\x1b[3;3Hx\x1b8c", "abc||  x"},
		{"alt screen", "main\x1b[?1049hALT\x1b[?1049l!", "main!"},
		{"alt shown", "main\x1b[?1049h\x1b[HALT", "ALT"},
		{"line drawing", "\x1b(0lqk\x1b(Bq", "┌─┐q"},
		{"shift out", "\x1b)0\x0eq\x0fq", "─q"},
		{"osc swallowed", "a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b]52;c;eA==\x07", "abc"},
		{"osc with runes", "a\x1b]0;✔ \u009c\x07b", "ab"},
		{"dcs swallowed", "a\x1bPq#0~~\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"},
		{"unclosed osc ends", "a\x1b]" + strings.Repeat("x", maxSequence-1) + "b", "ab"},
		{"can cancels", "a\x1b[3\x18b", "ab"},
		{"rune cancels", "a\x1b[3é", "aé"},
		{"controls inside", "ab\x1b[\b1mX", "aX"},
		{"ris", "abc\x1bcd", "d"},
		{"soft reset", "\x1b[2;3r\x1b[4h\x1b[!p\x1b[Hab\x1b[HX", "Xb"},
		{"wide", "カナx", "カナx"},
		{"wide wraps", "123456789カ", "123456789|カ"},
		{"half overwritten", "カナ\x1b[2Gx", " xナ"},
		{"half deleted", "カナb\x1b[2G\x1b[P", " ナb"},
		{"combining", "e\u0301x", "éx"},
		{"zwj and selectors", "⚠\ufe0f👨\u200d👩", "⚠👨👩"},
		{"invalid", "a\xff\xc3(b", "a\ufffd\ufffd(b"},
		{"raw c1", "a\x9bmb", "a\ufffdmb"},
		{"nul and del", "a\x00\x7fb", "ab"},
		{"lnm", "\x1b[20ha\nb", "a|b"},
		{"hpa vpa", "\x1b[3`x\x1b[2dy", "  x|   y"},
		{"huge numbers", "\x1b[99999999999999999999;99999999999999999999Hx\x1b[99999999999999999999Ay", "         y|||         x"},
		{"many parameters", "\x1b[" + strings.Repeat("1;", 500) + "mx", "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			term := New(10, 4)
			term.Write([]byte(tc.in))
			if got := show(term); got != tc.want {
				t.Errorf("%q\n got %q\nwant %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestStyles(t *testing.T) {
	term := New(20, 2)
	term.Write([]byte("\x1b[1;31ma\x1b[22;39mb\x1b[38;5;200mc\x1b[38;2;1;2;3md\x1b[48:2::4:5:6me\x1b[0;97;100mf\x1b[7;4mg\x1b[4:0mh\x1b[mi\x1b[38:5:9;1mj"))
	want := []canvas.Style{
		{Fg: canvas.Palette(1), Attr: canvas.Bold}, {}, {Fg: canvas.Palette(200)}, {Fg: canvas.RGB(1, 2, 3)},
		{Fg: canvas.RGB(1, 2, 3), Bg: canvas.RGB(4, 5, 6)}, {Fg: canvas.Palette(15), Bg: canvas.Palette(8)},
		{Fg: canvas.Palette(15), Bg: canvas.Palette(8), Attr: canvas.Reverse | canvas.Underline},
		{Fg: canvas.Palette(15), Bg: canvas.Palette(8), Attr: canvas.Reverse}, {}, {Fg: canvas.Palette(9), Attr: canvas.Bold},
	}
	for i, cell := range term.Line(0) {
		if cell.S != want[i] {
			t.Errorf("%c has style %+v, want %+v", cell.R, cell.S, want[i])
		}
	}
}

func TestReplies(t *testing.T) {
	ask := []byte("\x1b[3;5H\x1b[6n\x1b[5n\x1b[c\x1b]11;?\x07\x1bZ")
	var got []string
	live := New(10, 4)
	live.OnReply(func(b []byte) { got = append(got, string(b)) })
	live.Write(ask)
	want := []string{"\x1b[3;5R", "\x1b[0n", "\x1b[?6c", "\x1b[?6c"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("replies %q, want %q", got, want)
	}
	got = nil
	live.Clone().Write(ask)
	if len(got) != 0 {
		t.Errorf("a clone answered %q", got)
	}
	live.Write(bytes.Repeat([]byte("\x1b[6n"), 10000))
	if len(got) > maxReplies {
		t.Errorf("%d replies to one write", len(got))
	}
}

func TestHistoryIsBounded(t *testing.T) {
	term := New(20, 3)
	var old *Term
	for i := range 2 * Scrollback {
		fmt.Fprintf(term, "line %d\r\n", i)
		if i == Scrollback+100 {
			old = term.Clone()
		}
	}
	if got := term.Len(); got != Scrollback+3 {
		t.Errorf("%d lines, want %d", got, Scrollback+3)
	}
	if got, want := term.Text(0), fmt.Sprintf("line %d", Scrollback-2); got != want {
		t.Errorf("oldest line is %q, want %q", got, want)
	}
	if got, want := old.Text(old.Len()-2), fmt.Sprintf("line %d", Scrollback+100); got != want {
		t.Errorf("the clone's last line is %q, want %q", got, want)
	}
	for i := range old.Len() - 1 {
		if got, want := old.Text(i), fmt.Sprintf("line %d", i+Scrollback+100-old.Len()+2); got != want {
			t.Fatalf("the clone's line %d is %q, want %q", i, got, want)
		}
	}
}

func TestResize(t *testing.T) {
	term := New(10, 4)
	term.Write([]byte("one\r\ntwo\r\nthree\r\nfour"))
	term.Resize(10, 2)
	if got := show(term); got != "three|four" {
		t.Errorf("shrunk: %q", got)
	}
	if got := term.Text(0); got != "one" {
		t.Errorf("history starts with %q", got)
	}
	term.Resize(3, 5)
	if got := show(term); got != "thr|fou" {
		t.Errorf("grown: %q", got)
	}
	term.Resize(0, -1)
	term.Write([]byte("カx"))
	if got := show(term); got != "x" {
		t.Errorf("1×1: %q", got)
	}
}

func TestDraw(t *testing.T) {
	term := New(20, 6)
	for i := range 9 {
		fmt.Fprintf(term, "line number %d\r\n", i)
	}
	fmt.Fprint(term, "$ ")
	c := canvas.New(14, 3)
	frame := func() string { return c.Flatten(canvas.Output{}) }
	if up := term.Draw(c, 0, false); up != 0 || frame() != "line number 7\nline number 8\n$" {
		t.Errorf("bottom: up %d\n%s", up, frame())
	}
	if up := term.Draw(c, 99, false); up != 7 || frame() != "line number 0\nline number 1\nline number 2" {
		t.Errorf("top: up %d\n%s", up, frame())
	}
	narrow := canvas.New(6, 2)
	term.Draw(narrow, 0, false)
	if got := narrow.Flatten(canvas.Output{}); got != "line …\n$" {
		t.Errorf("narrow: %q", got)
	}
	term.Draw(c, 0, true)
	if c.At(2, 2).S.Attr&canvas.Reverse == 0 {
		t.Error("the cursor is not drawn")
	}
}

// noise returns bytes that look like a hostile console.
func noise(r *rand.Rand, n int) []byte {
	pieces := []string{"plain text", "\r\n", "\x1b[H", "\x1b[2J", "\x1b[31;1m", "\x1b[m", "カナ", "e\u0301", "\u0301", "\t", "\b", "\x1b[3;7H", "\x1b[2L", "\x1b[M",
		"\x1b[4h", "\x1b[4l", "\x1b[5@", "\x1b[2P", "\x1b[3X", "\x1b[40b", "\x1b[2;3r", "\x1b[r", "\x1b[?6h", "\x1b[?6l", "\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1bE",
		"\x1b#8", "\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b[?1049h", "\x1b[?1049l", "\x1bc", "\x1b]0;t\x07", "\x1b]0;", "\x1bP1;2q", "\x1b\\", "\x1b[6n", "\x1b[44m", "\x1b[K",
		"\x1b[1K", "\x1b[J", "\x1b[1J", "\x1b[3J", "\x1b[S", "\x1b[T", "\x1b[99999999999A", "\x1b", "\x1b[", "\xff", "\xe3\x82", "👩\u200d👩", "\x1b[3g", "\x1bH", "\x1b[Z", "\x1b[2I", "\x18", "\x1b[!p", "\x1b_x", "\u009c"}
	var b []byte
	for len(b) < n {
		if r.IntN(12) == 0 {
			b = append(b, byte(r.Uint32()))
			continue
		}
		b = append(b, pieces[r.IntN(len(pieces))]...)
	}
	return b
}

// sane fails where t breaks what the package guarantees.
func sane(tb testing.TB, t *Term) {
	tb.Helper()
	if t.cur.x < 0 || t.cur.x >= t.w || t.cur.y < 0 || t.cur.y >= t.h || t.top < 0 || t.top >= t.bot && t.h > 1 || t.bot >= t.h {
		tb.Fatalf("cursor %+v, region %d-%d outside %d×%d", t.cur, t.top, t.bot, t.w, t.h)
	}
	if len(t.scr.lines) != t.h {
		tb.Fatalf("%d lines for height %d", len(t.scr.lines), t.h)
	}
	for y, l := range t.scr.lines {
		if len(l.cells) != t.w {
			tb.Fatalf("line %d is %d wide, not %d", y, len(l.cells), t.w)
		}
		for x, c := range l.cells {
			if x >= l.used && c != (canvas.Cell{}) {
				tb.Fatalf("line %d: cell %d past used %d is %+v", y, x, l.used, c)
			}
			if c.R == canvas.Cont && (x == 0 || l.cells[x-1].R <= ' ') {
				tb.Fatalf("line %d: half a rune at %d: %q", y, x, t.Text(t.hist.len()+y))
			}
		}
	}
}

// dump is all that shows.
func dump(t *Term) string {
	var b strings.Builder
	for i := range t.Len() {
		fmt.Fprintln(&b, t.Line(i))
	}
	fmt.Fprint(&b, t.cur, t.top, t.bot, t.insert, t.hidden, t.inSequence)
	return b.String()
}

func checkStream(tb testing.TB, w, h int, data []byte, cuts func(left int) int) {
	whole := New(w, h)
	whole.Write(data)
	sane(tb, whole)
	pieces, clones := New(w, h), []*Term{}
	var before []string
	for rest := data; len(rest) > 0; {
		n := min(len(rest), max(1, cuts(len(rest))))
		pieces.Write(rest[:n])
		rest = rest[n:]
		sane(tb, pieces)
		if len(clones) < 4 {
			clones, before = append(clones, pieces.Clone()), append(before, dump(pieces))
			c := clones[len(clones)-1].Clone()
			c.Write(rest) // a clone goes on as the original does
			if dump(c) != dump(whole) {
				tb.Fatalf("a clone taken before %q went another way\n got %s\nwant %s", rest, dump(c), dump(whole))
			}
		}
	}
	if dump(pieces) != dump(whole) {
		tb.Fatalf("cut into pieces the outcome differs\n got %s\nwant %s", dump(pieces), dump(whole))
	}
	for i, c := range clones {
		if dump(c) != before[i] {
			tb.Fatalf("clone %d changed after it was taken", i)
		}
	}
}

func TestAnyStream(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := noise(r, 400)
		checkStream(t, 1+r.IntN(14), 1+r.IntN(6), data, func(int) int { return 1 + r.IntN(9) })
		term := New(10, 4)
		for len(data) > 20 {
			term.Write(data[:20])
			data = data[20:]
			term.Resize(r.IntN(15), r.IntN(7))
			sane(t, term)
		}
	}
}

func FuzzWrite(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		f.Add(noise(r, 100), uint8(8), uint8(3), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, w, h, cut uint8) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		checkStream(t, int(w%40), int(h%12), data, func(int) int { return int(cut) })
	})
}

func TestHostileInputIsBounded(t *testing.T) {
	for name, in := range map[string]string{
		"no newline":   strings.Repeat("x", 4<<20),
		"open string":  "\x1b]0;" + strings.Repeat("x", 4<<20),
		"open csi":     "\x1b[" + strings.Repeat("1;", 2<<20),
		"repeat":       "x" + strings.Repeat("\x1b[9999b", 1000),
		"scroll":       strings.Repeat("\x1b[9999S\x1b[9999T", 2000),
		"marks":        "x" + strings.Repeat("\u0301", 1<<20),
		"alternating":  strings.Repeat("\x1b[?1049h\x1b[?1049l", 10000),
		"sub-controls": strings.Repeat("\x1b\x1b", 1<<20),
	} {
		term := New(80, 24)
		term.Write([]byte(in))
		sane(t, term)
		if cap(term.seq) > 2*maxSequence || term.hist.len() > Scrollback {
			t.Errorf("%s: %d bytes of sequence, %d lines kept", name, cap(term.seq), term.hist.len())
		}
	}
}
