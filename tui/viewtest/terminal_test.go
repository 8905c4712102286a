package viewtest

import "testing"

func TestRepertoire(t *testing.T) {
	for _, own := range []string{
		"", "plain ✓ text\r\n", "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H\x1b[0;1;38;5;12mred\x1b[m\x1b[3A\x1b[K", "\x1b]2;refbox\a",
		"\x1b]52;c;Y2xlYW4K\a", "\x1b[?2026h界é\x1b[?2026l",
	} {
		if err := Repertoire([]byte(own)); err != nil {
			t.Errorf("%q: %v", own, err)
		}
	}
	for _, foreign := range []string{
		"\x1b]0;owned\a", "\x1b]2;owned\a", "\x1b]52;c;G1sySg==\a", "\x1b]52;p;Y2xlYW4=\a", "\x1bc", "\x1b[6n", "\x1b[>c", "\x1b[?1h", "\x1b[?2027h",
		"\x1bP+q544e\x1b\\", "\x07", "a\bb", "\x0e", "\x9b31m", "\xff", "\u202eevil", "\u200b", "\x1b[5 q", "\x1b(0", "\x1b[8;1;1t", "\u2028", "\x1b[!p",
		"\x1b]8;;http://x\x1b\\", "x\x1b", "\x7f", "\u009b2J",
	} {
		if err := Repertoire([]byte("before " + foreign + " after")); err == nil {
			t.Errorf("%q passes", foreign)
		}
	}
}
