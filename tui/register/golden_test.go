package register

import (
	"fmt"
	"strings"
	"testing"

	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// tours are the ways to each view, from the start.
var tours = []struct {
	name string
	keys []string
}{
	{"matrix", nil},
	{"planned", []string{"P", "j", "l"}},
	{"cell", []string{"j", "l", "l", "tab"}},
	{"store", []string{"enter", "]", "]"}},
	{"findings", []string{"tab", "tab", "tab", "j", "j"}},
	{"explain-cell", []string{"j", "l", "l", "x"}},
	{"explain-finding", []string{"tab", "tab", "tab", "j", "x"}},
	{"whatif", []string{"W", "j", "j", "enter"}},
}

func tour(t *testing.T, src Source, w, h int, keys []string) *driver {
	t.Helper()
	d := drive(t, src, w, h)
	d.press(keys...)
	if len(keys) > 0 && keys[0] == "W" {
		d.until("something is assumed", func() bool { return d.s.r.changes != nil })
	}
	return d
}

func TestGoldenSeed(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		w, h := size[0], size[1]
		for _, x := range tours {
			name := fmt.Sprintf("seed-%s-%dx%d", x.name, w, h)
			t.Run(name, func(t *testing.T) {
				viewtest.Looks(t, name, w, h-2, tour(t, seed(t), w, h, x.keys).frame)
			})
		}
	}
}

func TestGoldenExample(t *testing.T) {
	d := drive(t, example(), 120, 34)
	viewtest.Fits(t, d.text(), 120, 32)
	viewtest.Golden(t, "example-120x34", d.text())
	for _, look := range []struct {
		name string
		o    canvas.Output
	}{
		{"dark", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}},
		{"mono", canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()}},
		{"ascii", canvas.Output{Profile: canvas.Plain, ASCII: true}},
	} {
		viewtest.Golden(t, "example-"+look.name, d.frame(look.o))
	}
	viewtest.Golden(t, "example-40x12", drive(t, example(), 40, 12).text())
}

// In ASCII no byte beyond printable ASCII is written, and states still differ.
func TestASCII(t *testing.T) {
	for _, x := range tours {
		frame := tour(t, example(), 200, 60, x.keys).frame(canvas.Output{ASCII: true})
		for i, b := range []byte(frame) {
			if b != '\n' && (b < ' ' || b > '~') {
				t.Fatalf("%s: byte %#x at %d:\n%s", x.name, b, i, frame)
			}
		}
	}
	d := drive(t, example(), 80, 24)
	for _, sign := range []string{"* write", "% read", "< restore", "x lost"} {
		if frame := d.frame(canvas.Output{ASCII: true}); !strings.Contains(frame, sign) {
			t.Errorf("no %q:\n%s", sign, frame)
		}
	}
}

// At every size nothing is drawn outside, whatever is shown.
func TestEverySize(t *testing.T) {
	for w := 20; w <= 210; w += 37 {
		for h := 5; h <= 70; h += 13 {
			for _, x := range tours {
				d := drive(t, example(), w, h)
				d.press(x.keys...)
				viewtest.Fits(t, d.text(), w, h-2)
				d.press("+", "tab", "tab", "_")
				viewtest.Fits(t, d.text(), w, h-2)
			}
		}
	}
}
