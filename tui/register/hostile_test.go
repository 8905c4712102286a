package register

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"refbox/assets"
	"refbox/engine/register"
	"refbox/tui/canvas"
)

// hostile would drive, deceive or break a terminal in every way that we know of.
const hostile = "A\x1b[2J\x1b[31mB\x1b]0;owned\x07\x1b]52;c;cHduZWQ=\x07\x1bPq#0\x1b\\\x9b2J\x9d0;x\x9c" +
	"\x00\x07\x08\x7f\u202eevil\u2066\u200b\ufeff\xff\xfe\xc3\r\n\t\u0301\u0301\u0301\u0301👩‍👩‍👧🏽⚠️\U000E0041\x0e\x1b(0\x1b[?1049h\x1b[6n界Z"

// poison adds the hostile text to every free string, ids included: what refers to
// another thing still does.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.String() != "" {
			v.SetString(v.String() + hostile)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			poison(copied.Elem())
			v.Set(copied)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	}
}

// printable fails unless the frame holds printable text, line ends and SGR.
func printable(t *testing.T, where, frame string) {
	t.Helper()
	var state byte
	p := ansi.NewParser()
	for rest := frame; rest != ""; {
		seq, width, n, next := ansi.DecodeSequence(rest, state, p)
		switch {
		case seq == "\n":
		case strings.HasPrefix(seq, "\x1b["):
			if ansi.Cmd(p.Command()).Final() != 'm' || ansi.Cmd(p.Command()).Prefix() != 0 {
				t.Fatalf("%s: a sequence that is not ours: %q", where, seq)
			}
		case width == 0 && strings.TrimLeftFunc(seq, func(r rune) bool { return unicode.Is(unicode.Mn, r) }) == "":
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
		state, rest = next, rest[n:]
	}
}

// Whatever a document holds, and even if its reader let it through, nothing of it
// reaches the terminal but printable text.
func TestHostileDocument(t *testing.T) {
	src := Source{Name: "x" + hostile, Load: func() (*register.Explainer, error) {
		file, err := register.Parse("example.toml", assets.Register())
		if err != nil {
			return nil, err
		}
		doc, estate := file.Declared, *file.Declared.Estate
		doc.Estate = nil
		poison(reflect.ValueOf(&doc).Elem())
		poison(reflect.ValueOf(&estate).Elem())
		return register.NewExplainer(&doc, &estate, "2026-06-01", register.Full), nil
	}}
	o := canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		for _, x := range tours {
			d := drive(t, src, size[0], size[1])
			see := func(where string) {
				t.Helper()
				printable(t, x.name+" "+where, d.frame(o))
				fits(t, d.frame(o), size[0], size[1]-2)
			}
			d.press(x.keys...)
			see("start")
			for range 4 {
				d.press("j", "x")
				see("explained")
				d.press("esc", "y", "tab", "+", "j")
				see("zoomed")
				d.press("_", "enter")
				see("opened")
			}
			printable(t, "status", d.status())
			for _, s := range append(d.s.Crumbs(), d.said, d.copied) {
				printable(t, "said", s)
				if strings.ContainsAny(s, "\x1b\n\r\x07") {
					t.Fatalf("%q", s)
				}
			}
		}
	}
}

// The reader refuses what a terminal would obey; a file that becomes hostile while
// it is followed is an error that is told harmlessly.
func TestHostileEdit(t *testing.T) {
	file, text := exampleFile(t)
	d := drive(t, fileSource(file, register.Settings{}), 120, 34)
	for _, bad := range []string{
		strings.Replace(text, "A fictional estate.", "A \\u001b[2J estate.", 1),
		strings.Replace(text, "note = ", "\"\\u001b]0;owned\\u0007\" = 1\nnote = ", 1),
		hostile,
	} {
		before := d.s.r
		write(t, file, bad)
		d.until("it is told", func() bool { return d.s.r != before && d.s.r.trouble != "" })
		printable(t, "trouble", d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}))
		d.shows("tickets", "the last good one is shown")
	}
	// A file whose name is hostile cannot be read any more.
	odd := filepath.Join(t.TempDir(), "r\x1b[2J\n.toml")
	write(t, odd, text)
	d = drive(t, fileSource(odd, register.Settings{}), 120, 34)
	write(t, odd, "x")
	d.until("it is told", func() bool { return d.s.r.trouble != "" })
	printable(t, "name", d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}))
	for _, s := range d.s.Crumbs() {
		printable(t, "crumb", s)
	}
}
