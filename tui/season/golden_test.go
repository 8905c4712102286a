package season

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
	{"start", nil},
	{"first", []string{"h", "h", "g"}},
	{"wildcards", []string{"h", "h", "G"}},
	{"heat", []string{"tab", "j", "j"}},
	{"standings", []string{"tab", "tab", "j"}},
	{"checks", []string{"i", "j"}},
	{"zoomed", []string{"tab", "tab", "+"}},
}

func TestGolden(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		w, h := size[0], size[1]
		for _, x := range tours {
			name := fmt.Sprintf("during-%s-%dx%d", x.name, w, h)
			t.Run(name, func(t *testing.T) {
				d := drive(t, during(t), w, h)
				d.press(x.keys...)
				viewtest.Looks(t, name, w, h-2, d.frame)
			})
		}
	}
	for _, look := range []struct {
		name string
		o    canvas.Output
	}{
		{"dark", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}},
		{"light", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Light()}},
		{"mono", canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()}},
		{"ascii", canvas.Output{Profile: canvas.Plain, ASCII: true}},
	} {
		viewtest.Golden(t, "during-"+look.name, drive(t, during(t), 120, 34).frame(look.o))
	}
	viewtest.Golden(t, "during-40x12", drive(t, during(t), 40, 12).text())
}

func TestGoldenPublished(t *testing.T) {
	for _, name := range []string{"infra-weekly_20260911", "opencode-cup_20260913"} {
		d := drive(t, published(t, name), 120, 34)
		viewtest.Golden(t, name+"-120x34", d.text()+"\n"+d.status())
		d.press("i")
		viewtest.Golden(t, name+"-checks-120x34", d.text())
	}
}

// In ASCII no byte beyond printable ASCII is written, and states still differ.
func TestASCII(t *testing.T) {
	for _, x := range tours {
		d := drive(t, during(t), 200, 60)
		d.press(x.keys...)
		frame := d.frame(canvas.Output{ASCII: true})
		for i, b := range []byte(frame) {
			if b != '\n' && (b < ' ' || b > '~') {
				t.Fatalf("%s: byte %#x at %d:\n%s", x.name, b, i, frame)
			}
		}
	}
	d := drive(t, during(t), 120, 34)
	d.press("h", "h", "g", "j", "j")
	frame := d.frame(canvas.Output{ASCII: true})
	for _, sign := range []string{"won", "forfeit", "outraced", "over"} {
		if !strings.Contains(frame, sign) {
			t.Errorf("no %q:\n%s", sign, frame)
		}
	}
}

// At every size nothing is drawn outside, whatever is shown.
func TestEverySize(t *testing.T) {
	for w := 20; w <= 210; w += 38 {
		for h := 5; h <= 70; h += 13 {
			for _, x := range tours {
				d := drive(t, during(t), w, h)
				d.press(x.keys...)
				viewtest.Fits(t, d.text(), w, h-2)
				d.press("_", "tab", "i", "+", "tab", "G")
				viewtest.Fits(t, d.text(), w, h-2)
			}
		}
	}
}
