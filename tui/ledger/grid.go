package ledger

import (
	"fmt"
	"strings"

	"refbox/engine/ledger"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// gridPane shows scenarios × arenas: first what follows of all arenas together,
// then each one's own.
type gridPane struct {
	scroll        // of scenarios, in the list that passes the filter
	arena  scroll // 0 for all arenas together
	filter string

	cells canvas.Rect // that were drawn, for the mouse
	colW  int
}

const (
	stateW = 15 // cursor, shape, "contradicted"
	maxCol = 26
)

// list is the rows that pass the filter.
func (p *gridPane) list(r *reading) []int {
	words := strings.Fields(strings.ToLower(p.filter))
	var out []int
next:
	for i := range r.picture.Rows {
		row := &r.picture.Rows[i]
		in := strings.ToLower(row.Scenario + " " + string(row.State) + " " + row.Declared)
		for _, w := range words {
			if !strings.Contains(in, w) {
				continue next
			}
		}
		out = append(out, i)
	}
	return out
}

// row is the chosen scenario, nil for none.
func (p *gridPane) row(r *reading) *ledger.Row {
	list := p.list(r)
	if p.at >= len(list) {
		return nil
	}
	return &r.picture.Rows[list[p.at]]
}

// cell is the chosen arena's part of the row; nil for all arenas together.
func (p *gridPane) cell(r *reading) *ledger.Cell {
	row := p.row(r)
	if row == nil || p.arena.at < 1 || p.arena.at > len(row.Cells) {
		return nil
	}
	return &row.Cells[p.arena.at-1]
}

// keep holds the choice where it is in a newer reading.
func (p *gridPane) keep(before, after *reading) {
	row, cell := p.row(before), p.cell(before)
	if row != nil {
		for i, k := range p.list(after) {
			if after.picture.Rows[k].Scenario == row.Scenario {
				p.at = i
			}
		}
	}
	if cell != nil {
		for i, id := range after.picture.Arenas {
			if id == cell.Arena {
				p.arena.at = i + 1
			}
		}
	}
	p.at = max(0, min(p.at, len(p.list(after))-1))
	p.arena.at = min(p.arena.at, len(after.picture.Arenas))
}

func (p *gridPane) height(r *reading) int { return len(p.list(r)) + 3 }

func (p *gridPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, focused bool) {
	list := p.list(r)
	arenas := r.picture.Arenas
	name := "scenarios × arenas"
	if p.filter != "" {
		name += ", /" + p.filter
	}
	note := fmt.Sprintf("scenario %d of %d, %s", min(p.at+1, len(list)), len(list), view.Plural(len(arenas), "arena"))
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	p.cells = canvas.Rect{}
	if len(list) == 0 {
		in.PutFit(1, 0, w-2, "no scenario passes the filter", dim)
		return
	}
	label := 12
	for _, k := range list {
		label = max(label, text.Width(r.picture.Rows[k].Scenario)+2)
	}
	label = min(label, max(18, w-2*stateW-2))
	cols := max(1, (w-label)/(stateW+2))
	p.colW = min(maxCol, (w-label)/min(cols, len(arenas)+1))
	p.settle(len(list), max(1, h-1))
	p.arena.settle(len(arenas)+1, cols)
	from, to := p.arena.top, min(len(arenas)+1, p.arena.top+cols)
	for k := from; k < to; k++ {
		st := dim
		if k == p.arena.at {
			st = title.With(canvas.Underline)
		}
		head := "all arenas"
		if k > 0 {
			head = text.Line(arenas[k-1])
		}
		in.PutFit(label+(k-from)*p.colW+1, 0, p.colW-2, head, st)
	}
	if from > 0 {
		in.Put(label-1, 0, "◂", canvas.Fg(canvas.Key))
	}
	if to < len(arenas)+1 {
		in.Put(w-1, 0, "▸", canvas.Fg(canvas.Key))
	}
	for y := 0; y < h-1 && p.top+y < len(list); y++ {
		row := &r.picture.Rows[list[p.top+y]]
		st := plain
		if p.top+y == p.at {
			st = plain.With(canvas.Bold)
			in.Set(0, y+1, '▸', canvas.Fg(canvas.Focus))
		}
		in.PutFit(1, y+1, label-2, text.Line(row.Scenario), st)
		for k := from; k < to; k++ {
			cell := canvas.Rect{X: label + (k-from)*p.colW, Y: y + 1, W: p.colW, H: 1}
			drawCell(in.Sub(cell), row, k)
			if k == p.arena.at && p.top+y == p.at {
				if focused {
					in.Restyle(cell, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
				}
				in.Set(cell.X, cell.Y, '▌', canvas.Fg(canvas.Focus))
			}
		}
	}
	p.cells = canvas.Rect{X: area.X + 1 + label, Y: area.Y + 2, W: (to - from) * p.colW, H: min(h-1, len(list)-p.top)}
	view.More(c, area, len(list)-(h-1)-p.top)
	legend(c, area)
}

// drawCell draws a state and how much evidence is behind it.
func drawCell(c canvas.Canvas, row *ledger.Row, k int) {
	w, _ := c.Size()
	state, n := row.State, ledger.Tally(row.Items())
	if k > 0 {
		state, n = row.Cells[k-1].State, ledger.Tally(row.Cells[k-1].Evidence)
	}
	m := stateSign(state)
	if m.Shape == 0 {
		c.Set(1, 0, '·', dim)
		return
	}
	c.Set(1, 0, m.Shape, m.Style.With(canvas.Bold))
	x := c.PutFit(3, 0, w-4, m.Word, m.Style)
	if n != "" && x+1+len(n) <= w {
		c.Put(x+1, 0, n, dim)
	}
}

// legend says on the lower side what stands in a cell.
func legend(c canvas.Canvas, area canvas.Rect) {
	const says = " state, evidence that counts + that does not; · nothing declared, nothing shown "
	if area.W >= text.Width(says)+26 {
		c.Put(area.X+2, area.Y+area.H-1, says, dim)
	}
}

// click chooses the cell at (x, y) of the body.
func (p *gridPane) click(x, y, rows, arenas int) {
	if !p.cells.Contains(x, y) || p.colW == 0 {
		return
	}
	p.at = min(p.top+y-p.cells.Y, rows-1)
	p.arena.at = min(p.arena.top+(x-p.cells.X)/p.colW, arenas)
}
