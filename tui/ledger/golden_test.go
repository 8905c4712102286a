package ledger

import (
	"fmt"
	"strings"
	"testing"

	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// tours are the ways to each view of a ledger with evidence, from the start.
var tours = []struct {
	name string
	keys []string
}{
	{"grid", nil},
	{"refused", []string{"j", "l", "enter"}},
	{"observed", []string{"j", "j", "x"}},
	{"contradicted", []string{"j", "j", "j", "j", "enter", "]"}},
	{"exception", []string{"j", "j", "j", "j", "j", "j", "shift+tab"}},
	{"zoom", []string{"j", "j", "tab", "+"}},
}

func TestGolden(t *testing.T) {
	seeded, full := seed(t), book(t, seedModel(t))
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		w, h := size[0], size[1]
		shot := func(name, file string, keys []string) {
			name = fmt.Sprintf("%s-%dx%d", name, w, h)
			t.Run(name, func(t *testing.T) {
				d := drive(t, source(file), w, h)
				d.press(keys...)
				viewtest.Looks(t, name, w, h-2, d.frame)
			})
		}
		shot("seed", seeded, nil)
		for _, x := range tours {
			shot(x.name, full, x.keys)
		}
	}
}

func TestGoldenLooks(t *testing.T) {
	d := drive(t, source(book(t, seedModel(t))), 120, 34)
	for _, look := range []struct {
		name string
		o    canvas.Output
	}{
		{"dark", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}},
		{"mono", canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()}},
		{"ascii", canvas.Output{Profile: canvas.Plain, ASCII: true}},
	} {
		viewtest.Golden(t, "look-"+look.name, d.frame(look.o))
	}
}

// In ASCII no byte beyond printable ASCII is written, and states still differ.
func TestASCII(t *testing.T) {
	d := drive(t, source(book(t, seedModel(t))), 200, 60)
	frame := d.frame(canvas.Output{ASCII: true})
	for i, b := range []byte(frame) {
		if b != '\n' && (b < ' ' || b > '~') {
			t.Fatalf("byte %#x at %d:\n%s", b, i, frame)
		}
	}
	for _, sign := range []string{"o not injected", "* observed", "% sampled", "x contradicted", "< stale", "accepted", "> owned"} {
		if !strings.Contains(frame, sign) {
			t.Errorf("no %q:\n%s", sign, frame)
		}
	}
}

// At every size nothing is drawn outside, whatever is shown.
func TestEverySize(t *testing.T) {
	full := book(t, seedModel(t))
	for w := 20; w <= 210; w += 37 {
		for h := 5; h <= 70; h += 13 {
			for _, x := range tours {
				d := drive(t, source(full), w, h)
				d.press(x.keys...)
				viewtest.Fits(t, d.text(), w, h-2)
				d.press("+", "tab", "tab", "_", "shift+tab", "G", "g")
				viewtest.Fits(t, d.text(), w, h-2)
			}
		}
	}
}
