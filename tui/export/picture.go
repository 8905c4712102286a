package export

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"

	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
	"refbox/tui/canvas"
	"refbox/tui/term"
)

// Size of a cell in the picture, in its own units. The font's advance is forced to
// it run by run, so that boxes stay closed whatever font the viewer has.
const (
	cellW, cellH = 8, 17
	baseline     = 13
	margin       = 12
)

// Picture writes one frame of a recording's replay, at an instant of the heat's
// clock, as SVG. Like a cast it is drawn by the code of the live screen. It owns
// rec from then on.
func Picture(ctx context.Context, w io.Writer, rec *recording.Recording, width, height int, ms uint64) error {
	still := tui.NewStill(ctx, rec, canvas.Output{Theme: canvas.Dark(), Profile: canvas.TrueColor}, width, height, "a replay of "+rec.Name())
	defer still.Close()
	screen := term.New(width, height)
	for i, row := range bytes.Split([]byte(still.At(ms)), []byte("\n")) {
		fmt.Fprintf(screen, "\x1b[%d;1H%s", i+1, row)
	}
	var b bytes.Buffer
	pw, ph := width*cellW+2*margin, height*cellH+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", pw, ph, pw, ph)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#14181f"/>`+"\n", pw, ph)
	b.WriteString(`<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13" fill="#d7dce4" xml:space="preserve">` + "\n")
	for y := range height {
		drawRow(&b, screen.Line(screen.Len()-height+y), y)
	}
	b.WriteString("</g>\n</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// drawRow writes the row's runs of one style: their background, then their text.
func drawRow(b *bytes.Buffer, cells []canvas.Cell, y int) {
	for x := 0; x < len(cells); {
		from, st := x, cells[x].S
		var s []rune
		for ; x < len(cells) && cells[x].S == st; x++ {
			switch r := cells[x].R; {
			case r == canvas.Cont:
			case r == 0:
				s = append(s, ' ')
			default:
				s = append(s, r)
			}
		}
		drawRun(b, from, x-from, y, string(s), st)
	}
}

func drawRun(b *bytes.Buffer, x, n, y int, s string, st canvas.Style) {
	fg, bg := hex(st.Fg, "#d7dce4"), hex(st.Bg, "")
	if st.Attr&canvas.Reverse != 0 {
		fg, bg = hex(st.Bg, "#14181f"), hex(st.Fg, "#d7dce4")
	}
	left, top := margin+x*cellW, margin+y*cellH
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, left, top, n*cellW, cellH, bg)
	}
	blank := true
	for _, r := range s {
		blank = blank && r == ' '
	}
	if blank {
		return
	}
	weight := ""
	if st.Attr&canvas.Bold != 0 {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs" fill="%s"%s>`, left, top+baseline, text.Width(s)*cellW, fg, weight)
	xml.EscapeText(b, []byte(s)) //nolint:errcheck // a buffer takes everything
	b.WriteString("</text>\n")
}

// hex is a colour for SVG; whatever is the terminal's own becomes def.
func hex(c canvas.Color, def string) string {
	r, g, b, ok := c.RGB()
	if !ok {
		return def
	}
	return fmt.Sprintf("#%02x%02x%02x", r, g, b)
}
