// Package canvas is the cell grid that every pane draws on and that is flattened
// to one string once per frame.
//
// It hides cells, clipping, wide runes, combining marks, SGR runs, colour profiles,
// themes and the ASCII form. It guarantees: nothing is drawn outside a window;
// a wide rune is never left half; what Flatten returns holds only printable text,
// "\n" between rows and the package's own SGR sequences, whatever was put in;
// each row is at most as wide as the canvas. Strings are expected to come through
// engine/text; control characters that come all the same are dropped.
//
// A Canvas has one owner at a time and no locks.
package canvas

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"refbox/engine/text"
)

// Cont is the rune of the second cell of a wide rune.
const Cont rune = -1

// Cell is one character cell. R 0 is a blank; M holds up to two combining marks
// of the basic plane. The zero Cell is a blank in the terminal's own colours.
type Cell struct {
	R rune
	M [2]uint16
	S Style
}

type grid struct {
	cells []Cell
	w, h  int
	out   []byte
}

// Canvas is a window on a grid of cells; (0, 0) is the window's top left cell.
// It is a small value: pass it by value. Windows of one grid share its cells.
type Canvas struct {
	g *grid
	r Rect
}

// New returns a blank grid of w × h cells; sizes below zero count as zero.
func New(w, h int) Canvas {
	w, h = max(0, w), max(0, h)
	return Canvas{&grid{cells: make([]Cell, w*h), w: w, h: h}, Rect{0, 0, w, h}}
}

// Size returns the window's width and height in cells.
func (c Canvas) Size() (w, h int) { return c.r.W, c.r.H }

// Bounds returns the window as a Rect at (0, 0).
func (c Canvas) Bounds() Rect { return Rect{0, 0, c.r.W, c.r.H} }

// Sub returns the window r of c, clipped to c.
func (c Canvas) Sub(r Rect) Canvas {
	r.X += c.r.X
	r.Y += c.r.Y
	return Canvas{c.g, c.r.Intersect(r)}
}

// At returns the cell at (x, y), or a blank outside the window.
func (c Canvas) At(x, y int) Cell {
	if x < 0 || y < 0 || x >= c.r.W || y >= c.r.H {
		return Cell{}
	}
	return c.g.cells[(c.r.Y+y)*c.g.w+c.r.X+x]
}

// row returns the window's cells of row y, nil outside.
func (c Canvas) row(y int) []Cell {
	if y < 0 || y >= c.r.H || c.r.W <= 0 {
		return nil
	}
	i := (c.r.Y+y)*c.g.w + c.r.X
	return c.g.cells[i : i+c.r.W : i+c.r.W]
}

// part blanks the other half of a wide rune that column x (of the grid row that y
// is in) would cut when cells [x, …) are overwritten from x on.
func (c Canvas) part(x, y int) {
	gx, base := c.r.X+x, (c.r.Y+y)*c.g.w
	if gx > 0 && gx < c.g.w && c.g.cells[base+gx].R == Cont {
		l := &c.g.cells[base+gx-1]
		l.R, l.M = ' ', [2]uint16{}
		r := &c.g.cells[base+gx]
		r.R, r.M = ' ', [2]uint16{}
	}
}

// Clear blanks the window.
func (c Canvas) Clear() { c.Fill(c.Bounds(), 0, Style{}) }

// Fill sets every cell of r to the narrow rune ch (0 or a wide rune: blank) in style st.
func (c Canvas) Fill(r Rect, ch rune, st Style) {
	r = r.Intersect(c.Bounds())
	if ch = Visible(ch); text.RuneWidth(ch) != 1 {
		ch = 0
	}
	for y := r.Y; y < r.Y+r.H; y++ {
		c.part(r.X, y)
		c.part(r.X+r.W, y)
		row := c.row(y)[r.X : r.X+r.W]
		for i := range row {
			row[i] = Cell{R: ch, S: st}
		}
	}
}

// Restyle gives every cell of r the background and adds the attributes of st, and its
// foreground unless that is Default: how a row is shown as selected.
func (c Canvas) Restyle(r Rect, st Style) {
	r = r.Intersect(c.Bounds())
	for y := r.Y; y < r.Y+r.H; y++ {
		row := c.row(y)[r.X : r.X+r.W]
		for i := range row {
			s := &row[i].S
			s.Bg = st.Bg
			s.Attr |= st.Attr
			if st.Fg != Default {
				s.Fg = st.Fg
			}
		}
	}
}

// Set draws the one rune ch at (x, y).
func (c Canvas) Set(x, y int, ch rune, st Style) {
	if x < 0 || y < 0 || x >= c.r.W || y >= c.r.H {
		return
	}
	ch = Visible(ch)
	switch text.RuneWidth(ch) {
	case 1:
		c.put1(x, y, ch, st)
	case 2:
		c.put2(x, y, ch, st)
	}
}

func (c Canvas) put1(x, y int, ch rune, st Style) {
	c.part(x, y)
	c.part(x+1, y)
	c.row(y)[x] = Cell{R: ch, S: st}
}

// put2 draws a wide rune, or a blank where only its left half would fit.
func (c Canvas) put2(x, y int, ch rune, st Style) {
	if x+1 >= c.r.W {
		c.put1(x, y, ' ', st)
		return
	}
	c.part(x, y)
	c.part(x+2, y)
	row := c.row(y)
	row[x] = Cell{R: ch, S: st}
	row[x+1] = Cell{R: Cont, S: st}
}

// Put draws s from (x, y) to the right, clipped to the window, and returns the column
// after it, as if nothing had been clipped on the left; it stops at the right edge.
// Nothing wraps. It marks no cut: use PutFit for text that must say that it was cut.
func (c Canvas) Put(x, y int, s string, st Style) int {
	if y < 0 || y >= c.r.H {
		return x + text.Width(s)
	}
	row := c.row(y)
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			r = Visible(r)
		}
		i += size
		w := text.RuneWidth(r)
		if w == 0 {
			if r >= 0x300 && x > 0 && x <= c.r.W {
				mark(row, x-1, r)
			}
			continue
		}
		if x >= c.r.W {
			break
		}
		switch {
		case x < 0 && x+w > 0 && c.r.W > 0: // the right half of a wide rune
			c.put1(0, y, ' ', st)
		case x < 0:
		case w == 1 && x > 0 && x+1 < len(row) && row[x].R != Cont && row[x+1].R != Cont:
			row[x] = Cell{R: r, S: st} // no wide rune is cut
		case w == 1:
			c.put1(x, y, r, st)
		default:
			c.put2(x, y, r, st)
		}
		x += w
	}
	return x
}

// Visible returns r, or what is drawn in its place: U+FFFD for a rune that takes cells
// but is not printable, a capital letter for half a flag. No terminal then gives it a
// width or a meaning of its own.
func Visible(r rune) rune {
	if r >= 0x1F1E6 && r <= 0x1F1FF {
		return 'A' + r - 0x1F1E6
	}
	if r >= 0x2500 && r < 0x2600 || unicode.IsPrint(r) || text.RuneWidth(r) == 0 {
		return r
	}
	return utf8.RuneError
}

// PutFit draws s in the w cells from (x, y), cut with "…" where it does not fit, and
// returns the column after what it drew.
func (c Canvas) PutFit(x, y, w int, s string, st Style) int {
	return c.Put(x, y, text.Truncate(s, w, text.Ellipsis), st)
}

// PutRight draws s so that it ends before column x, cut with "…" to w cells, and
// returns the column where it starts.
func (c Canvas) PutRight(x, y, w int, s string, st Style) int {
	s = text.Truncate(s, w, text.Ellipsis)
	x -= text.Width(s)
	c.Put(x, y, s, st)
	return x
}

// mark adds a combining mark to the rune drawn last.
func mark(row []Cell, x int, m rune) {
	if row[x].R == Cont && x > 0 {
		x--
	}
	row[x].AddMark(m)
}

// AddMark puts the combining mark m on the cell: composed with its rune where Unicode
// has such a rune, else beside it; a third mark and marks on a blank are dropped.
func (c *Cell) AddMark(m rune) {
	if c.R <= ' ' || m > 0xffff || !unicode.In(m, unicode.Mn, unicode.Me) ||
		unicode.Is(unicode.Variation_Selector, m) || m == 0x20E3 || m == 0x034F {
		return
	}
	if c.M[0] == 0 {
		pair := norm.NFC.Bytes(utf8.AppendRune(utf8.AppendRune(nil, c.R), m))
		if r, size := utf8.DecodeRune(pair); size == len(pair) && text.RuneWidth(r) == text.RuneWidth(c.R) {
			c.R = r
			return
		}
	}
	for i := range c.M {
		if c.M[i] == 0 {
			c.M[i] = uint16(m)
			return
		}
	}
}

// Copy draws src's window with its top left cell at (x, y), clipped.
func (c Canvas) Copy(x, y int, src Canvas) {
	for sy := range src.r.H {
		c.PutCells(x, y+sy, src.row(sy))
	}
}

// PutCells draws cells from (x, y) to the right, clipped; halves of wide runes at
// either end become blanks.
func (c Canvas) PutCells(x, y int, cells []Cell) {
	row := c.row(y)
	if x < 0 {
		if -x >= len(cells) {
			return
		}
		cells, x = cells[-x:], 0
	}
	if row == nil || x >= len(row) || len(cells) == 0 {
		return
	}
	n := min(len(cells), len(row)-x)
	cutTail := n < len(cells) && cells[n].R == Cont
	c.part(x, y)
	c.part(x+n, y)
	dst := row[x : x+n]
	copy(dst, cells[:n])
	if dst[0].R == Cont {
		dst[0].R = ' '
	}
	if cutTail {
		dst[n-1].R, dst[n-1].M = ' ', [2]uint16{}
	}
}
