package canvas

import "refbox/engine/text"

// Outline is a kind of box line. Heavy is for the pane that has the focus: it is told
// from the others without colour, also in ASCII mode. Double is for dialogs.
type Outline uint8

// Outlines.
const (
	Rounded Outline = iota
	Heavy
	Double
)

type glyphs struct {
	h, v                                       rune
	topLeft, topRight, bottomLeft, bottomRight rune
	teeLeft, teeRight                          rune
}

func (o Outline) glyphs() glyphs {
	switch o {
	case Heavy:
		return glyphs{'━', '┃', '┏', '┓', '┗', '┛', '┣', '┫'}
	case Double:
		return glyphs{'═', '║', '╔', '╗', '╚', '╝', '╠', '╣'}
	}
	return glyphs{'─', '│', '╭', '╮', '╰', '╯', '├', '┤'}
}

// Box draws the outline r. Outlines below 2×2 draw nothing.
func (c Canvas) Box(r Rect, o Outline, st Style) {
	if r.W < 2 || r.H < 2 {
		return
	}
	b := o.glyphs()
	x1, y1 := r.X+r.W-1, r.Y+r.H-1
	c.HLine(r.X+1, r.Y, r.W-2, b.h, st)
	c.HLine(r.X+1, y1, r.W-2, b.h, st)
	c.VLine(r.X, r.Y+1, r.H-2, b.v, st)
	c.VLine(x1, r.Y+1, r.H-2, b.v, st)
	c.Set(r.X, r.Y, b.topLeft, st)
	c.Set(x1, r.Y, b.topRight, st)
	c.Set(r.X, y1, b.bottomLeft, st)
	c.Set(x1, y1, b.bottomRight, st)
}

// HLine draws n cells of ch from (x, y) to the right.
func (c Canvas) HLine(x, y, n int, ch rune, st Style) { c.Fill(Rect{x, y, n, 1}, ch, st) }

// VLine draws n cells of ch from (x, y) down.
func (c Canvas) VLine(x, y, n int, ch rune, st Style) { c.Fill(Rect{x, y, 1, n}, ch, st) }

// Frame draws a pane's outline with a title at the left of its top side and a note at
// the right of it, each cut with "…" where there is no room, and returns the inside.
func (c Canvas) Frame(r Rect, o Outline, title, note string, line, words Style) Rect {
	c.Box(r, o, line)
	c.caption(r.X, r.Y, r.W, title, note, words)
	return r.Inset(1)
}

// Divider draws a line across the frame r at row y (in c's cells, like r), joined to its
// sides, with a title and a note as Frame has them.
func (c Canvas) Divider(r Rect, y int, o Outline, title, note string, line, words Style) {
	if r.W < 2 || y <= r.Y || y >= r.Y+r.H-1 {
		return
	}
	b := o.glyphs()
	c.Set(r.X, y, b.teeLeft, line)
	c.HLine(r.X+1, y, r.W-2, b.h, line)
	c.Set(r.X+r.W-1, y, b.teeRight, line)
	c.caption(r.X, y, r.W, title, note, words)
}

// caption writes " title " and " note " into a horizontal side of w cells.
func (c Canvas) caption(x, y, w int, title, note string, st Style) {
	room := w - 3 // the corners, and one cell of line at the end
	if room < 3 {
		return
	}
	used := 0
	if title != "" {
		title = text.Truncate(title, room-2, text.Ellipsis)
		used = text.Width(title) + 2
		c.Put(x+1, y, " "+title+" ", st)
	}
	if note == "" || room-used < 4 {
		return
	}
	note = text.Truncate(note, room-used-2, text.Ellipsis)
	c.Put(x+w-1-text.Width(note)-2, y, " "+note+" ", st)
}
