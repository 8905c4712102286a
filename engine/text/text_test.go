package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLine(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"clean", "systemctl restart proxy", "systemctl restart proxy"},
		{"csi", "a\x1b[31;1mred\x1b[0m b", "ared b"},
		{"clear screen", "x\x1b[2J\x1b[Hy", "xy"},
		{"osc 52 with bel", "a\x1b]52;c;aGk=\x07b", "ab"},
		{"osc 8 with st", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"title in 8 bit", "a\u009d0;pwned\u009cb", "ab"},
		{"csi in 8 bit", "a\u009b31mb", "ab"},
		{"unclosed osc hides nothing", "a\x1b]0;evil", "a0;evil"},
		{"osc cancelled by newline", "a\x1b]0;evil\nb\x07", "a0;evil⏎b␇"},
		{"dcs", "a\x1bPq#0\x1b\\b", "ab"},
		{"charset", "a\x1b(0b", "ab"},
		{"lone esc", "a\x1b", "a"},
		{"esc then rune", "a\x1bé", "aé"},
		{"bell and backspace", "a\ab\b", "a␇b␈"},
		{"nul and del", "a\x00b\x7f", "a␀b␡"},
		{"c1", "a\u0084b", "a␦b"},
		{"tab", "a\tb", "a b"},
		{"lines", "a\r\nb\nc\rd\n\n", "a⏎b⏎c⏎d"},
		{"separators", "a\u2028b\u2029c\u0085d\v", "a⏎b⏎c⏎d"},
		{"bidi", "a\u202eb\u2066c\u2069d\u200fe\u061c", "abcde"},
		{"zero width", "a\u200bb\u200cc\u2060d\ufeffe\u00adf", "abcdef"},
		{"fillers", "a\u3164b\u115fc", "abc"},
		{"raw bytes", "a\x80\xffb\xc3", "a\ufffd\ufffdb\ufffd"},
		{"raw csi byte", "a\x9b31m", "a\ufffd31m"},
		{"private use", "a\ue0b0b", "a\ufffdb"},
		{"unassigned", "a\U000e0fffb", "a\ufffdb"},
		{"spaces", "a\u00a0b\u2003c\u3000d", "a b c  d"},
		{"vs16", "⚠\ufe0f x", "⚠ x"},
		{"zwj family", "👨\u200d👩\u200d👧", "👨👩👧"},
		{"skin", "👍🏽", "👍"},
		{"flag", "🇩🇪!", "DE!"},
		{"keycap", "1\ufe0f\u20e3", "1"},
		{"tags", "🏴\U000e0067\U000e0062", "🏴"},
		{"composed", "e\u0301", "é"},
		{"zalgo", "x\u0301\u0302\u0303\u0304", "x\u0301\u0302"},
		{"mark first", "\u0301a", "a"},
		{"kana", "カナ", "カナ"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Line(tc.in)
			if got != tc.want {
				t.Fatalf("Line(%q) = %q, want %q", tc.in, got, tc.want)
			}
			if again := Line(got); again != got {
				t.Fatalf("not idempotent: %q then %q", got, again)
			}
		})
	}
}

func TestBlock(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"a\nb\n", "a\nb\n"},
		{"a\tb\n\tc\nカ\tx", "a       b\n        c\nカ      x"},
		{"10%\r20%\r\nok", "10%\n20%\nok"},
		{"\u0301a\n\u0301b", "a\nb"},
		{"e\u0301\tx", "é       x"},
	} {
		if got := Block(tc.in); got != tc.want {
			t.Errorf("Block(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, in := range []string{
		strings.Repeat("x", MaxLine+1), strings.Repeat("é", MaxLine), strings.Repeat("x\u0301", MaxLine),
		strings.Repeat("\n", MaxLine+5) + "x",
	} {
		got := Line(in)
		if len(got) > MaxLine || !strings.HasSuffix(got, Ellipsis) || Line(got) != got {
			t.Errorf("Line of %d bytes: %d bytes, ends %q", len(in), len(got), got[len(got)-8:])
		}
	}
	got := Block(strings.Repeat("\t", MaxBlock))
	if len(got) > MaxBlock || !strings.HasSuffix(got, Ellipsis) || Block(got) != got {
		t.Errorf("Block is not bounded: %d bytes", len(got))
	}
}

func TestCleanASCIIDoesNotAllocate(t *testing.T) {
	line, block := strings.Repeat("plain text ", 20), strings.Repeat("plain\ntext ", 20)
	if n := testing.AllocsPerRun(100, func() { Line(line); Block(block); Width(line) }); n != 0 {
		t.Errorf("%v allocations for clean ASCII", n)
	}
}

// check fails where s breaks what the package promises of sanitised text.
func check(t interface{ Fatalf(string, ...any) }, s string, block bool) {
	if !utf8.ValidString(s) {
		t.Fatalf("invalid UTF-8: %q", s)
	}
	for _, r := range s {
		if r == '\n' && block {
			continue
		}
		if !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			t.Fatalf("%q holds %U", s, r)
		}
	}
	if !block && strings.ContainsRune(s, '\n') {
		t.Fatalf("%q holds a newline", s)
	}
}

var pieces = []string{
	"a", " ", "word ", "\x1b[31m", "\x1b]0;t\a", "\x1b]0;t", "\x1b\\", "\x1b", "\x00", "\t", "\n", "\r", "\r\n", "\u009b1m", "\u009d", "\u009c",
	"é", "e\u0301", "\u0301", "\u0308", "カ", "ｶﾞ", "👨\u200d👩", "⚠\ufe0f", "🇩🇪", "\u202e", "\u2066", "\xff", "\xc3", "\u2028", "한", "ᄒ", "ᅡ", "ᆫ", "क्षि", "กำ", "\ufdfa", "\u1f71", "\U0001d15e", "\u0344",
}

func anyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String(),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) })), 0, 20).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyText().Draw(t, "in")
		w := rapid.IntRange(0, 30).Draw(t, "w")
		l, b := Line(in), Block(in)
		check(t, l, false)
		check(t, b, true)
		if Line(l) != l || Block(b) != b {
			t.Fatalf("not idempotent: Line %q -> %q, Block %q -> %q", l, Line(l), b, Block(b))
		}
		cut := Truncate(l, w, "")
		if Width(cut) > w {
			t.Fatalf("Truncate(%q, %d) is %d wide", l, w, Width(cut))
		}
		if w > 0 && cut != l && !strings.HasSuffix(cut, Ellipsis) {
			t.Fatalf("Truncate(%q, %d) = %q hides the cut", l, w, cut)
		}
		if Truncate(cut, w, "") != cut {
			t.Fatalf("Truncate is not idempotent on %q", cut)
		}
		if Width(Pad(l, w)) != w {
			t.Fatalf("Pad(%q, %d) is %d wide", l, w, Width(Pad(l, w)))
		}
		wrapped := Wrap(b, w)
		for _, line := range wrapped {
			if Width(line) > max(1, w) {
				t.Fatalf("Wrap(%q, %d) has a line %q", b, w, line)
			}
		}
		if w >= 2 && squash(strings.Join(wrapped, "")) != squash(b) {
			t.Fatalf("Wrap(%q, %d) lost text: %q", b, w, wrapped)
		}
	})
}

func squash(s string) string {
	return strings.NewReplacer(" ", "", "\n", "").Replace(s)
}

func TestWidthIgnoresTheLocale(t *testing.T) {
	t.Setenv("LANG", "ja_JP.UTF-8")
	t.Setenv("RUNEWIDTH_EASTASIAN", "1")
	for s, want := range map[string]int{"│─▸✓○◐✗┄…": 9, "αЯ§°": 4, "カナ": 4, "ｶﾅ": 2, "⚠": 1, "👍": 2, "é": 1, "e\u0301": 1} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		in   string
		w    int
		want []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one  two", 4, []string{"one", "two"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"a\n\nb", 3, []string{"a", "", "b"}},
		{"カナカ", 3, []string{"カ", "ナ", "カ"}},
		{"カx", 1, []string{"…", "x"}},
		{"    indented text", 12, []string{"    indented", "text"}},
	} {
		got := Wrap(tc.in, tc.w)
		if strings.Join(got, "|") != strings.Join(tc.want, "|") {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tc.in, tc.w, got, tc.want)
		}
	}
}

func FuzzSanitise(f *testing.F) {
	for _, p := range pieces {
		f.Add(p + "x" + p)
	}
	f.Fuzz(func(t *testing.T, in string) {
		l, b := Line(in), Block(in)
		check(t, l, false)
		check(t, b, true)
		if Line(l) != l {
			t.Fatalf("Line is not idempotent: %q -> %q", l, Line(l))
		}
		if Block(b) != b {
			t.Fatalf("Block is not idempotent: %q -> %q", b, Block(b))
		}
	})
}

func BenchmarkLineASCII(b *testing.B) {
	s := strings.Repeat("plain text ", 10)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Line(s)
	}
}

func BenchmarkBlockColoured(b *testing.B) {
	s := strings.Repeat("\x1b[32m[  OK  ]\x1b[0m Reached target Multi-User ✓\n", 100)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Block(s)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 seats", 1: "1 seat", 2: "2 seats"} {
		if got := Count(n, "seat"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
