package export

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"unicode/utf8"

	"refbox/engine/recording"
	"refbox/tui"
	"refbox/tui/canvas"
	"refbox/tui/term"
)

// Size of a cell in the picture, in its own units. The size of the font makes the
// usual monospaced character, 0.6 em, one cell wide; words are placed one by one, so
// that what is left of a difference does not add up along a line.
const (
	fontSize     = 13.3
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
	return Screen(w, screen, width, height, DarkGround)
}

// Ground is what a terminal shows where nothing is coloured: #rrggbb.
type Ground struct{ Paper, Ink string }

// The grounds of the themes for dark and light terminals.
var (
	DarkGround  = Ground{"#14181f", "#d7dce4"}
	LightGround = Ground{"#fafaf7", "#1d2430"}
)

// Screen writes what a terminal of width × height shows as SVG.
func Screen(w io.Writer, screen *term.Term, width, height int, g Ground) error {
	var b bytes.Buffer
	pw, ph := width*cellW+2*margin, height*cellH+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", pw, ph, pw, ph)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", pw, ph, g.Paper)
	fmt.Fprintf(&b, `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="%.1f">`+"\n", fontSize)
	for y := range height {
		g.drawRow(&b, screen.Line(screen.Len()-height+y), y)
	}
	b.WriteString("</g>\n</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// drawRow writes the row's runs of one style.
func (g Ground) drawRow(b *bytes.Buffer, cells []canvas.Cell, y int) {
	for x := 0; x < len(cells); {
		from := x
		for x++; x < len(cells) && cells[x].S == cells[from].S; x++ {
		}
		g.drawRun(b, cells[from:x], from, y)
	}
}

// drawRun writes a run's background, then its words.
func (g Ground) drawRun(b *bytes.Buffer, cells []canvas.Cell, x, y int) {
	st := cells[0].S
	fg, bg := hex(st.Fg, g.Ink), hex(st.Bg, "")
	if st.Attr&canvas.Reverse != 0 {
		fg, bg = hex(st.Bg, g.Paper), hex(st.Fg, g.Ink)
	}
	left, top := margin+x*cellW, margin+y*cellH
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, left, top, len(cells)*cellW, cellH, bg)
	}
	weight := ""
	if st.Attr&canvas.Bold != 0 {
		weight = ` font-weight="bold"`
	}
	for i := 0; i < len(cells); i++ {
		at, word := i, []byte(nil)
		for ; i < len(cells) && (cells[i].R > ' ' || cells[i].R == canvas.Cont); i++ {
			if cells[i].R != canvas.Cont {
				word = utf8.AppendRune(word, cells[i].R)
			}
		}
		if len(word) == 0 {
			continue
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s"%s>`, left+at*cellW, top+baseline, fg, weight)
		xml.EscapeText(b, word) //nolint:errcheck // a buffer takes everything
		b.WriteString("</text>\n")
	}
}

// hex is a colour for SVG; whatever is the terminal's own becomes def.
func hex(c canvas.Color, def string) string {
	r, g, b, ok := c.RGB()
	if !ok {
		return def
	}
	return fmt.Sprintf("#%02x%02x%02x", r, g, b)
}
