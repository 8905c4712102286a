package view

import (
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// Outline is how a pane shows whether it has the focus.
func Outline(focused bool) (canvas.Outline, canvas.Style) {
	if focused {
		return canvas.Heavy, canvas.Fg(canvas.Focus)
	}
	return canvas.Rounded, canvas.Fg(canvas.Border)
}

// Choose shows row y as the chosen one, also without colour: by its first cell.
func Choose(c canvas.Canvas, y int) {
	w, _ := c.Size()
	c.Restyle(canvas.Rect{Y: y, W: w, H: 1}, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
	c.Set(0, y, '▌', canvas.Style{Fg: canvas.Focus, Bg: canvas.Selection})
}

// More says on the lower side of the pane r that n rows are below what it shows.
func More(c canvas.Canvas, r canvas.Rect, n int) {
	if n > 0 {
		c.PutRight(r.X+r.W-2, r.Y+r.H-1, 20, " "+Count(n)+" more ↓ ", canvas.Fg(canvas.Key))
	}
}

// Frame draws a pane's outline and returns its inside.
func Frame(c canvas.Canvas, r canvas.Rect, focused bool, name, note string) canvas.Canvas {
	o, st := Outline(focused)
	return c.Sub(c.Frame(r, o, text.Line(name), text.Line(note), st, canvas.Fg(canvas.Title).With(canvas.Bold)))
}

// Settle keeps a place within n rows, and the window of h rows that begins at top around it.
func Settle(at, top, n, h int) (int, int) {
	at = max(0, min(at, n-1))
	if at < top {
		top = at
	}
	if at >= top+h {
		top = at - h + 1
	}
	return at, max(0, min(top, n-h))
}
