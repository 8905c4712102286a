package term

import (
	"strings"

	"refbox/tui/canvas"
)

// Len returns the number of lines, history and screen together.
func (t *Term) Len() int { return t.hist.len() + t.h }

// Line returns the cells of line i without the blanks at its end; 0 is the oldest of
// the history. The cells must not be changed, and are valid until the next Write,
// Resize or Clone.
func (t *Term) Line(i int) []canvas.Cell {
	if i < 0 || i >= t.Len() {
		return nil
	}
	l := t.line(i)
	return l.cells[:l.used]
}

func (t *Term) line(i int) *line {
	if n := t.hist.len(); i >= n {
		return t.scr.lines[i-n]
	}
	return t.hist.at(i)
}

// Text returns line i as text, blanks at its end left out.
func (t *Term) Text(i int) string {
	var b strings.Builder
	for _, c := range t.Line(i) {
		switch {
		case c.R == canvas.Cont:
			continue
		case c.R == 0:
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(c.R)
		for _, m := range c.M {
			if m != 0 {
				b.WriteRune(rune(m))
			}
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// String returns the screen as text, one line each.
func (t *Term) String() string {
	var b strings.Builder
	for i := range t.h {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t.Text(t.hist.len() + i))
	}
	return b.String()
}

// End returns the number of lines up to the last that shows anything or has the cursor.
func (t *Term) End() int {
	y := t.h - 1
	for y > t.cur.y && blankLine(t.scr.lines[y]) {
		y--
	}
	return t.hist.len() + y + 1
}

func blankLine(l *line) bool {
	for i := range l.cells[:l.used] {
		if c := &l.cells[i]; c.R > ' ' || c.S.Bg != canvas.Default {
			return false
		}
	}
	return true
}

// Draw paints the last lines into c, so that the newest is at the bottom, or up lines
// above that; fewer lines than rows start at the top. A line that is wider than c ends
// in "…". It returns up as far as there is history to go, which is what the caller
// keeps. The cursor is drawn where the guest shows it.
func (t *Term) Draw(c canvas.Canvas, up int, showCursor bool) int {
	w, h := c.Size()
	end := t.End()
	up = clamp(up, 0, max(0, end-h))
	first := max(0, end-up-h)
	c.Clear()
	for y := 0; y < h && first+y < end-up; y++ {
		cells := t.Line(first + y)
		c.PutCells(0, y, cells)
		if len(cells) > w && !blankTail(cells[w:]) {
			c.Set(w-1, y, '…', canvas.Fg(canvas.Dim))
		}
	}
	if y := t.hist.len() + t.cur.y - first; showCursor && !t.hidden && y < h && t.cur.x < w {
		c.Restyle(canvas.Rect{X: t.cur.x, Y: y, W: 1, H: 1}, canvas.Style{Bg: c.At(t.cur.x, y).S.Bg, Attr: canvas.Reverse})
	}
	return up
}

func blankTail(cells []canvas.Cell) bool {
	for i := range cells {
		if c := &cells[i]; c.R > ' ' || c.S.Bg != canvas.Default {
			return false
		}
	}
	return true
}
