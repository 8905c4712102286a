package canvas

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"refbox/engine/text"
)

func plain(c Canvas) string { return c.Flatten(Output{}) }

func TestPutClips(t *testing.T) {
	c := New(12, 3)
	sub := c.Sub(Rect{2, 1, 6, 1})
	if end := sub.Put(-2, 0, "abcdefghij", Style{}); end != 6 {
		t.Errorf("Put ended at %d", end)
	}
	sub.Put(0, 1, "outside", Style{})
	if got, want := plain(c), "\n  cdefgh\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWideRunesAreNeverHalf(t *testing.T) {
	c := New(8, 1)
	c.Put(0, 0, "カナカナ", Style{})
	c.Put(3, 0, "x", Style{})
	if got, want := plain(c), "カ xカナ"; got != want {
		t.Errorf("overwriting the right half: got %q, want %q", got, want)
	}
	c.Put(4, 0, "y", Style{})
	if got, want := plain(c), "カ xy ナ"; got != want {
		t.Errorf("overwriting the left half: got %q, want %q", got, want)
	}
	c.Clear()
	c.Put(0, 0, "カナカナ", Style{})
	c.Sub(Rect{1, 0, 4, 1}).Fill(Rect{0, 0, 4, 1}, '.', Style{})
	if got, want := plain(c), " .... ナ"; got != want {
		t.Errorf("filling a window: got %q, want %q", got, want)
	}
	c.Clear()
	c.Sub(Rect{0, 0, 3, 1}).Put(0, 0, "カナ", Style{})
	if got, want := plain(c), "カ"; got != want {
		t.Errorf("cut at the window's edge: got %q, want %q", got, want)
	}
	c.Clear()
	c.Put(-1, 0, "カナ", Style{})
	if got, want := plain(c), " ナ"; got != want {
		t.Errorf("cut at the left: got %q, want %q", got, want)
	}
}

func TestCombiningMarksStayOnTheirCell(t *testing.T) {
	c := New(6, 1)
	end := c.Put(0, 0, "e\u0301x\u0323\u0307\u0308カ\u3099|", Style{})
	if got, want := plain(c), "éx\u0323\u0307ガ|"; got != want || end != 5 {
		t.Errorf("got %q to %d, want %q to 5", got, end, want)
	}
}

func TestFrameAndDivider(t *testing.T) {
	c := New(24, 5)
	inner := c.Frame(c.Bounds(), Rounded, "failover-one · glm-flash", "5/100", Style{}, Style{})
	c.Divider(c.Bounds(), 2, Rounded, "actions", "", Style{}, Style{})
	c.Sub(inner).Put(0, 0, "inside", Style{})
	want := strings.Join([]string{
		"╭ failover-one · glm… ─╮",
		"│inside                │",
		"├ actions ─────────────┤",
		"│                      │",
		"╰──────────────────────╯"}, "\n")
	if got := plain(c); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	heavy, light := New(9, 3), New(9, 3)
	heavy.Frame(heavy.Bounds(), Heavy, "", "", Style{}, Style{})
	light.Frame(light.Bounds(), Rounded, "", "", Style{}, Style{})
	if heavy.Flatten(Output{ASCII: true}) == light.Flatten(Output{ASCII: true}) {
		t.Error("the focused frame looks like the others in ASCII mode")
	}
}

func TestFlattenProfiles(t *testing.T) {
	c := New(10, 1)
	c.Put(0, 0, "a", Style{})
	c.Put(1, 0, "b", Fg(Bad).With(Bold))
	c.Put(2, 0, "c", Style{Fg: RGB(1, 2, 3), Bg: Palette(200)})
	c.Put(3, 0, "d", Style{})
	for _, tc := range []struct {
		p    Profile
		want string
	}{
		{Plain, "abcd"},
		{Mono, "a\x1b[0;1mb\x1b[mcd"},
		{ANSI16, "a\x1b[0;1;91mb\x1b[0;30;105mc\x1b[md"},
		{ANSI256, "a\x1b[0;1;38;5;210mb\x1b[0;38;5;16;48;5;200mc\x1b[md"},
		{TrueColor, "a\x1b[0;1;38;2;255;123;123mb\x1b[0;38;2;1;2;3;48;5;200mc\x1b[md"},
	} {
		if got := c.Flatten(Output{Profile: tc.p, Theme: Dark()}); got != tc.want {
			t.Errorf("profile %d: got %q, want %q", tc.p, got, tc.want)
		}
	}
	if got := c.Flatten(Output{Profile: TrueColor, Theme: Light(), Paint: true}); !strings.HasPrefix(got, "\x1b[0;38;2;29;36;48;48;2;250;250;247ma") || text.Width(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(got, "")) != 10 {
		t.Errorf("painted background: %q", got)
	}
}

func TestASCIIKeepsTheStatesApart(t *testing.T) {
	seen := map[byte]rune{}
	for _, r := range "?○◐✓✗" {
		b := byte('?')
		if r != '?' {
			b = ascii(r)
		}
		if o, dup := seen[b]; dup {
			t.Errorf("%c and %c are both %c", o, r, b)
		}
		seen[b] = r
	}
	if len(asciiBox) != 0x80 {
		t.Fatalf("the box table has %d entries", len(asciiBox))
	}
	for r, want := range map[rune]byte{'─': '-', '│': '|', '╭': '+', '╰': '+', '╯': '+', '┼': '+', '━': '#', '┃': '#', '┄': '.', '┊': ':', '═': '=', '║': '"', '╌': '_', '╎': '!', '╴': '-', '╵': '|', '╱': '/', 'é': 'e', 'Ł': '?', 'ﬁ': 'f', '▸': '>', '…': '~', 'カ': '?'} {
		if got := ascii(r); got != want {
			t.Errorf("ascii(%c) = %c, want %c", r, got, want)
		}
	}
}

var sgr = regexp.MustCompile("^\x1b\\[[0-9;]*m")

// TestAnyDrawing draws at random and checks what the package guarantees.
func TestAnyDrawing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 20).Draw(t, "w"), rapid.IntRange(0, 6).Draw(t, "h")
		c := New(w, h)
		pos := rapid.IntRange(-5, 22)
		rect := rapid.Custom(func(t *rapid.T) Rect {
			return Rect{pos.Draw(t, "x"), pos.Draw(t, "y"), pos.Draw(t, "w"), pos.Draw(t, "h")}
		})
		words := rapid.OneOf(rapid.SampledFrom([]string{"カナカナ", "aカb", "x\u0301", "\u0301", "👍🏽", "\x1b[2J", "plain", "\n\t\r", "\u009b", "⚠\ufe0f", "\xff"}), rapid.String())
		style := rapid.SampledFrom([]Style{{}, Fg(Ok), Fg(RGB(9, 8, 7)).On(Selection), {Attr: Reverse | Bold}, Fg(Palette(9))})
		for range rapid.IntRange(0, 12).Draw(t, "ops") {
			win := c
			if rapid.Bool().Draw(t, "sub") {
				win = c.Sub(rect.Draw(t, "window"))
			}
			st := style.Draw(t, "style")
			switch rapid.IntRange(0, 6).Draw(t, "op") {
			case 0, 1:
				win.Put(pos.Draw(t, "x"), pos.Draw(t, "y"), words.Draw(t, "s"), st)
			case 2:
				win.Fill(rect.Draw(t, "r"), rapid.SampledFrom([]rune{0, '.', 'カ', '\x1b'}).Draw(t, "ch"), st)
			case 3:
				win.Frame(rect.Draw(t, "r"), Rounded, words.Draw(t, "title"), words.Draw(t, "note"), st, st)
			case 4:
				src := New(7, 2)
				src.Put(0, 0, words.Draw(t, "s"), st)
				win.Copy(pos.Draw(t, "x"), pos.Draw(t, "y"), src.Sub(rect.Draw(t, "from")))
			case 5:
				win.Restyle(rect.Draw(t, "r"), st)
			case 6:
				win.PutRight(pos.Draw(t, "x"), pos.Draw(t, "y"), pos.Draw(t, "w"), words.Draw(t, "s"), st)
			}
		}
		for y := range h {
			for x, cell := range c.row(y) {
				wide := cell.R != Cont && text.RuneWidth(cell.R) == 2
				next := x+1 < w && c.At(x+1, y).R == Cont
				if wide != next {
					t.Fatalf("row %d column %d: %q is half there", y, x, cell.R)
				}
			}
			if h > 0 && w > 0 && c.At(0, y).R == Cont {
				t.Fatalf("row %d starts with half a rune", y)
			}
		}
		for _, o := range []Output{{}, {Profile: TrueColor, Theme: Dark()}, {Profile: ANSI16, ASCII: true, Paint: true, Theme: Light()}, {Profile: Mono, ASCII: true}} {
			lines := strings.Split(c.Flatten(o), "\n")
			if len(lines) != max(1, h) {
				t.Fatalf("%d lines for %d rows", len(lines), h)
			}
			for _, line := range lines {
				n := 0
				for line != "" {
					if m := sgr.FindString(line); m != "" {
						line = line[len(m):]
						continue
					}
					r := []rune(line)[0]
					if !unicode.IsPrint(r) && r != 0xfffd || o.ASCII && r > 0x7e {
						t.Fatalf("%q reached the output", r)
					}
					n += text.RuneWidth(r)
					line = line[len(string(r)):]
				}
				if n > w {
					t.Fatalf("a row is %d wide, the canvas %d", n, w)
				}
			}
		}
	})
}

func luminance(c Color) float64 {
	lin := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(uint8(c>>16)) + 0.7152*lin(uint8(c>>8)) + 0.0722*lin(uint8(c))
}

func contrast(a, b Color) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func TestContrast(t *testing.T) {
	for _, theme := range Bundled() {
		least := 4.5
		if theme.Name() == "high-contrast" {
			least = 7 // what WCAG asks of it
		}
		for _, p := range []Profile{TrueColor, ANSI256} {
			o := Output{Profile: p, Theme: theme}
			rgb := func(c Color) Color {
				c = o.resolve(c)
				if c&kindMask == kindPalette {
					c = paletteRGB(uint8(c))
				}
				return c
			}
			bgs := []Color{rgb(background), RGB(0, 0, 0)}
			if theme.Name() == "light" {
				bgs[1] = RGB(255, 255, 255)
			}
			for role := kindRole; role < roleEnd; role++ {
				if o.resolve(role) == Default {
					t.Errorf("%s: role %d has no colour", theme.Name(), role-kindRole)
				}
				// Keys stand in the bar and below the body; what a row or the bar says in
				// colours it says on their grounds, too.
				against := append(bgs, rgb(Bar), rgb(Selection))
				switch role {
				case Selection, Bar:
					continue
				case SelectionText:
					against = []Color{rgb(Selection)}
				case BarText:
					against = []Color{rgb(Bar)}
				}
				for i, bg := range against {
					least := least
					if i >= len(bgs) && role != SelectionText && role != BarText {
						least -= 1.5 // signs and emphasis
					}
					if i == len(bgs)+1 && (role == Dim || role == Lifecycle || role == Border) && theme.Name() != "high-contrast" {
						least = 2 // asides on the row that is chosen, which no frame crosses
					}
					if got := contrast(rgb(role), bg); got < least {
						t.Errorf("%s, profile %d: role %d has contrast %.2f on ground %d", theme.Name(), p, role-kindRole, got, i)
					}
				}
			}
		}
	}
}

func TestParseTheme(t *testing.T) {
	own, err := ParseTheme("mine", []byte("# mine\n\n[colors]\nok = \"#0000ff\"\nbad = \"#ff0000 3\"\ntext = \"#101010 -\"\n"), Dark())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		p    Profile
		role Color
		want Color
	}{
		{TrueColor, Ok, RGB(0, 0, 255)}, {ANSI16, Ok, Palette(4)}, {ANSI16, Bad, Palette(3)}, {ANSI16, Text, Default}, {TrueColor, Warn, RGB(0xf0, 0xb9, 0x5b)},
	} {
		o := Output{Profile: tc.p, Theme: own}
		if got := o.resolve(tc.role); got != tc.want {
			t.Errorf("profile %d, role %x: %x, not %x", tc.p, tc.role, got, tc.want)
		}
	}
	for file, fault := range map[string]string{
		"[colors]\n\nok = \"green\"\n":                 "line 3: \"green\" is no colour",
		"[colors]\nok = \"#00ff00 16\"\n":              "line 2: \"16\" is none of the sixteen",
		"[colors]\n# x\nfine = \"#00ff00\"\n":          "line 3: no role is called \"fine\"",
		"paint = true\nglow = 3\n":                     "line 2: the key \"glow\" is not known",
		"paint = 3\n":                                  "line 1: ",
		"[colors\n":                                    "line 2: ",
		"[colors]\nok = [\"#00ff00\"]\n":               "line 2: ",
		"[colors]\nok = \"#00ff00\"\nok = \"#00ff00\"": "line 3: ",
	} {
		if _, err := ParseTheme("mine", []byte(file), Dark()); err == nil || !strings.HasPrefix(err.Error(), fault) {
			t.Errorf("%q: %v, want %s", file, err, fault)
		}
	}
	if _, err := ParseTheme("mine", nil, Theme{}); err == nil {
		t.Error("a theme without colours and without a base is read")
	}
}

func busy() Canvas {
	c := New(200, 60)
	for i := range 3 {
		r := Rect{i * 66, 0, 66, 60}
		in := c.Frame(r, Rounded, "failover · glm-flash", "85", Fg(Border), Fg(Title))
		for y := range in.H {
			end := c.Put(in.X, in.Y+y, "[  OK  ] ", Fg(Palette(2)))
			c.Put(end, in.Y+y, "Reached target Multi-User ✓ ╭─▸ ◐ 00:31.4", Style{})
		}
	}
	return c
}

func TestFlattenAllocatesOnce(t *testing.T) {
	c, o := busy(), Output{Profile: ANSI256, Theme: Dark()}
	c.Flatten(o)
	if n := testing.AllocsPerRun(20, func() { c.Flatten(o) }); n > 1 {
		t.Errorf("%v allocations per frame", n)
	}
	if n := testing.AllocsPerRun(20, func() { c.Sub(Rect{1, 1, 50, 5}).Put(0, 0, "text ✓", Fg(Ok)) }); n > 0 {
		t.Errorf("%v allocations per Put", n)
	}
}

func BenchmarkFlatten200x60(b *testing.B) {
	c, o := busy(), Output{Profile: TrueColor, Theme: Dark()}
	b.ReportAllocs()
	for b.Loop() {
		c.Flatten(o)
	}
}

func BenchmarkDraw200x60(b *testing.B) {
	for b.Loop() {
		busy()
	}
}
