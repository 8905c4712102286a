package register

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"refbox/assets"
	"refbox/engine/register"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// poison adds the hostile text to every free string, ids included: what refers to
// another thing still does.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.String() != "" {
			v.SetString(v.String() + viewtest.Hostile)
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

// Whatever a document holds, and even if its reader let it through, nothing of it
// reaches the terminal but printable text.
func TestHostileDocument(t *testing.T) {
	src := Source{Name: "x" + viewtest.Hostile, Load: func() (*register.Explainer, error) {
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
				viewtest.OnlySGR(t, x.name+" "+where, d.frame(o))
				viewtest.Fits(t, d.frame(o), size[0], size[1]-2)
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
			viewtest.OnlySGR(t, "status", d.status())
			for _, s := range append(d.s.Crumbs(), d.said, d.copied) {
				viewtest.OnlySGR(t, "said", "x"+s) // what is copied may begin with marks, that need a letter
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
		viewtest.Hostile,
	} {
		before := d.s.r
		write(t, file, bad)
		d.until("it is told", func() bool { return d.s.r != before && d.s.r.trouble != "" })
		viewtest.OnlySGR(t, "trouble", d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}))
		d.shows("tickets", "the last good one is shown")
	}
	// A file whose name is hostile cannot be read any more.
	odd := filepath.Join(t.TempDir(), "r\x1b[2J\n.toml")
	write(t, odd, text)
	d = drive(t, fileSource(odd, register.Settings{}), 120, 34)
	write(t, odd, "x")
	d.until("it is told", func() bool { return d.s.r.trouble != "" })
	viewtest.OnlySGR(t, "name", d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}))
	for _, s := range d.s.Crumbs() {
		viewtest.OnlySGR(t, "crumb", s)
	}
}
