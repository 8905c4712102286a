package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDetector(t *testing.T) {
	for _, c := range []struct {
		in             string
		screen, nowise bool // found on a screen; found in text
		words          string
	}{
		{"plain\r\n\ttext, ünïcode ✓ \xc2\xa0 日本\n", false, false, ""},
		{"\x1b[0;1;38;5;200mred\x1b[m\x1b[K\x1b[0K", false, false, ""},
		{"\x1b(B\x1b[m", false, false, ""},
		{"\x1b]133;C;cmdline=ls\x07\x1b]8;;http://a\x1b\\a\x1b]8;;\x1b\\\x1b]3008;x\x1b\\", false, false, ""},
		{"\x1b[2J\x1b[H\x1b[?25l\x1b[?1049h\x1b[?2004h\x1b[22;0;0t\x1b[!p\x1b7\x1b8\x1bM\x1b=\x1b(0\x0e\x0f", false, true, "CSI 2J"},
		{"\x1bc", false, true, "an escape sequence"},
		{"\x1b]104\x07", false, true, "OSC 104"},
		{"\x1b]52;c;cm0gLXJm\x07", true, true, "OSC 52, the clipboard"},
		{"\x1b]0;title\x07", true, true, "OSC 0, the window's title"},
		{"\x1b]2;title", true, true, "OSC 2, the window's title"},
		{"\x1bktitle\x1b\\", true, true, "ESC k, the window's title"},
		{"\x1bP+q544e\x1b\\", true, true, "DCS, a control string"},
		{"\x1b_G\x1b\\", true, true, "a control string"},
		{"\x1b[6n", true, true, "CSI 6n, a question to the terminal"},
		{"\x1b[c", true, true, "CSI c, a question to the terminal"},
		{"\x1b[>0c", true, true, "CSI >0c, a question to the terminal"},
		{"\x1b[?1$p", true, true, "CSI ?1$p, a question to the terminal"},
		{"\x1b[21t", true, true, "CSI 21t, a question to the terminal"},
		{"\x1b[3;0;0t", true, true, "CSI 3;0;0t, the window"},
		{"\x1b[5i", true, true, "CSI 5i, the printer"},
		{"\x1bZ", true, true, "ESC Z, a question to the terminal"},
		{"\x05", true, true, "ENQ, a question to the terminal"},
		{"\u009b6n", true, true, "CSI 6n, a question to the terminal"},
		{"\u009d52;c;x\x07", true, true, "OSC 52, the clipboard"},
		{"\xff\xfe\xc2\x1b]0;x", true, true, ""},
	} {
		for _, screen := range []bool{true, false} {
			want := c.nowise
			if screen {
				want = c.screen
			}
			d := Detector{Screen: screen}
			got := d.Scan([]byte(c.in))
			if (got != "") != want {
				t.Errorf("%q on a screen %v: %q", c.in, screen, got)
			}
			if want && c.words != "" && got != c.words {
				t.Errorf("%q: %q, want %q", c.in, got, c.words)
			}
			if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q: %q is not plain", c.in, got)
			}
		}
	}
}

// However a stream is cut into chunks, the same is found.
func TestDetectorChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "\x1b", "[", "]", "5", "2", ";", "\x07", "\xc2", "\x9b", "\x9d", "m", "n", "c", "K", "P", "\\", "(", "B", "0", "?", "\u009b", "é"})).Draw(t, "parts")
		screen := rapid.Bool().Draw(t, "screen")
		in := strings.Join(parts, "")
		whole := Detector{Screen: screen}
		want := whole.Scan([]byte(in))
		bytewise, got := Detector{Screen: screen}, ""
		for i := 0; i < len(in) && got == ""; i++ {
			got = bytewise.Scan([]byte{in[i]})
		}
		if got != want {
			t.Fatalf("%q: %q at once, %q by bytes", in, want, got)
		}
	})
}

func BenchmarkDetectorPlain(b *testing.B) {
	p := []byte(strings.Repeat("y\r\n", 10_000))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		d := Detector{Screen: true}
		d.Scan(p)
	}
}
