package register

import (
	"fmt"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// matrixPane shows stores × scenarios. Only the rows and columns that are seen
// are drawn, however many there are.
type matrixPane struct {
	scroll   // of stores, in the list that passes the filter
	scenario scroll
	filter   string
	shown    []int // places in the document's stores
	shownR   *reading
	shownF   string
	cells    canvas.Rect // of the body that was drawn, for the mouse
	colW     int
}

// list is the stores that pass the filter; the chosen one stays chosen.
func (p *matrixPane) list(r *reading) []int {
	if p.shown != nil && p.shownR == r && p.shownF == p.filter {
		return p.shown
	}
	stores := r.now.Document().Stores
	held := -1
	if p.shownR != nil && p.at < len(p.shown) {
		id := p.shownR.now.Document().Stores[p.shown[p.at]].ID
		for i := range stores {
			if stores[i].ID == id {
				held = i
				break
			}
		}
	}
	if p.shownR != nil {
		p.keepScenario(p.shownR.now.Document(), r.now.Document())
	}
	words := strings.Fields(strings.ToLower(p.filter))
	p.shown, p.shownR, p.shownF = []int{}, r, p.filter
	for i := range stores {
		in := strings.ToLower(stores[i].ID + " " + stores[i].Name + " " + string(stores[i].Criticality) + " " + string(stores[i].Durability))
		ok := true
		for _, w := range words {
			ok = ok && strings.Contains(in, w)
		}
		if !ok {
			continue
		}
		if i == held {
			p.at = len(p.shown)
		}
		p.shown = append(p.shown, i)
	}
	p.at = max(0, min(p.at, len(p.shown)-1))
	return p.shown
}

func (p *matrixPane) keepScenario(before, after *register.Document) {
	if p.scenario.at >= len(before.Scenarios) {
		return
	}
	id := before.Scenarios[p.scenario.at].ID
	for i := range after.Scenarios {
		if after.Scenarios[i].ID == id {
			p.scenario.at = i
			return
		}
	}
	p.scenario.at = max(0, min(p.scenario.at, len(after.Scenarios)-1))
}

// store is the chosen store's place in the document, -1 for none.
func (p *matrixPane) store(r *reading) int {
	list := p.list(r)
	if p.at >= len(list) {
		return -1
	}
	return list[p.at]
}

// goTo chooses a store, and a scenario where it is named; a filter that hides
// the store goes.
func (p *matrixPane) goTo(r *reading, store, scenario string) bool {
	doc := r.now.Document()
	for i := range doc.Scenarios {
		if scenario != "" && doc.Scenarios[i].ID == scenario {
			p.scenario.at = i
		}
	}
	for range 2 {
		for i, k := range p.list(r) {
			if doc.Stores[k].ID == store {
				p.at = i
				return true
			}
		}
		p.filter = ""
	}
	return false
}

// height is what the pane needs for all stores.
func (p *matrixPane) height(r *reading) int { return len(p.list(r)) + 4 }

const (
	minCell = 12 // cursor, shape, "restore", the other sides
	maxCell = 18
)

func (p *matrixPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, posture register.Posture, focused bool) {
	doc := r.now.Document()
	list := p.list(r)
	name := "matrix: " + postureWord(posture)
	if p.filter != "" {
		name += ", /" + p.filter
	}
	note := fmt.Sprintf("store %d of %d, scenario %d of %d", min(p.at+1, len(list)), len(list), min(p.scenario.at+1, len(doc.Scenarios)), len(doc.Scenarios))
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	p.cells = canvas.Rect{}
	switch {
	case len(list) == 0:
		in.PutFit(1, 0, w-2, "no store passes the filter", dim)
		return
	case len(doc.Scenarios) == 0:
		in.PutFit(1, 0, w-2, "the register declares no scenario: there is nothing to ask of its stores", dim)
	}
	gaps := 0
	if w >= 96 {
		gaps = 6
	}
	least := minCell
	if r.changes != nil {
		least++
	}
	label := p.layOut(doc, list, w, gaps, least)
	cols := max(1, (w-label)/p.colW)
	p.scenario.settle(len(doc.Scenarios), cols)
	rows := max(1, h-2)
	p.settle(len(list), rows)

	from, to := p.scenario.top, min(len(doc.Scenarios), p.scenario.top+cols)
	if gaps > 0 && to > from {
		in.PutRight(label-1, 0, gaps, "gaps", dim)
	}
	for k := from; k < to; k++ {
		st := dim
		if k == p.scenario.at {
			st = title.With(canvas.Underline)
		}
		in.PutFit(label+(k-from)*p.colW+1, 0, p.colW-2, text.Line(doc.Scenarios[k].ID), st)
	}
	if from > 0 {
		in.Put(label-1, 0, "◂", canvas.Fg(canvas.Key))
	}
	if to < len(doc.Scenarios) {
		in.Put(w-1, 0, "▸", canvas.Fg(canvas.Key))
	}
	for y := 0; y < rows && p.top+y < len(list); y++ {
		s := &doc.Stores[list[p.top+y]]
		st := plain
		if p.top+y == p.at {
			st = plain.With(canvas.Bold)
			in.Set(0, y+1, '▸', canvas.Fg(canvas.Focus))
		}
		in.PutFit(1, y+1, label-gaps-2, text.Line(s.ID), st)
		if n := r.gaps[s.ID]; gaps > 0 && n > 0 {
			in.PutRight(label-1, y+1, gaps, fmt.Sprintf("✗%d", n), alarm)
		} else if gaps > 0 {
			in.PutRight(label-1, y+1, gaps, "✓", canvas.Fg(canvas.Ok))
		}
		for k := from; k < to; k++ {
			cell := canvas.Rect{X: label + (k-from)*p.colW, Y: y + 1, W: p.colW, H: 1}
			drawCell(in.Sub(cell), doc.Cell(posture, list[p.top+y], k), was(r, posture, list[p.top+y], k))
			if k == p.scenario.at && p.top+y == p.at {
				p.select_(in, cell, focused)
			}
		}
	}
	p.cells = canvas.Rect{X: area.X + 1 + label, Y: area.Y + 2, W: (to - from) * p.colW, H: min(rows, len(list)-p.top)}
	if len(doc.Scenarios) > 0 && h >= 3 {
		in.PutFit(1, h-1, label-2, "surviving", dim)
		for k := from; k < to; k++ {
			sc := &doc.Scenarios[k]
			n := sc.Surviving
			if posture == register.CurrentPosture {
				n = sc.SurvivingToday
			}
			in.PutFit(label+(k-from)*p.colW+1, h-1, p.colW-2, fmt.Sprintf("%d/%d", n, sc.Total), dim)
		}
	}
	view.More(c, area, len(list)-rows-p.top)
	legend(c, area)
}

// legend says on the lower side what a cell shows.
func legend(c canvas.Canvas, area canvas.Rect) {
	const most = 52 // of the signs, and what says how much more there is
	says := " the operator's side, then the others: "
	if area.W < text.Width(says)+most {
		says = " operator, others: "
	}
	if area.W < text.Width(says)+most {
		return
	}
	x, y := c.Put(area.X+2, area.Y+area.H-1, says, dim), area.Y+area.H-1
	for _, o := range []register.Outcome{register.Writable, register.ReadOnly, register.RestoreRequired, register.Lost} {
		m := outcomeSign(o)
		c.Set(x, y, m.Shape, m.Style)
		x = c.Put(x+1, y, " "+m.Word+" ", dim)
	}
}

// layOut chooses the width of a column and returns that of the labels.
func (p *matrixPane) layOut(doc *register.Document, list []int, w, gaps, least int) int {
	longest := 12
	for y := p.top; y < len(list) && y < p.top+60; y++ {
		longest = max(longest, len(doc.Stores[list[y]].ID))
	}
	label := min(longest+3+gaps, max(18+gaps, w/4))
	n := max(1, len(doc.Scenarios))
	p.colW = max(least, min(maxCell, (w-label)/n))
	if spare := w - n*p.colW; spare < label && spare >= 15+gaps {
		label = spare // all scenarios at once are worth a shorter name
	}
	return label
}

func (p *matrixPane) select_(c canvas.Canvas, r canvas.Rect, focused bool) {
	if focused {
		c.Restyle(r, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
	}
	c.Set(r.X, r.Y, '▌', canvas.Fg(canvas.Focus))
}

// was is the cell without what is assumed, nil when nothing is or it is equal.
func was(r *reading, p register.Posture, store, scenario int) *register.Cell {
	if r.changes == nil {
		return nil
	}
	a, b := r.base.Document().Cell(p, store, scenario), r.now.Document().Cell(p, store, scenario)
	if a == nil || b == nil || sameCell(a, b) {
		return nil
	}
	return a
}

func sameCell(a, b *register.Cell) bool {
	if a.Outcome != b.Outcome || a.ConcurrentWriters != b.ConcurrentWriters || len(a.Partitions) != len(b.Partitions) || register.Span(a.Minutes) != register.Span(b.Minutes) {
		return false
	}
	for i := range a.Partitions {
		if a.Partitions[i].Outcome != b.Partitions[i].Outcome {
			return false
		}
	}
	return true
}

// turn is how a cell differs from what it was: better, worse, or on another side.
func turn(was, now *register.Cell) (rune, string) {
	switch {
	case now.Outcome.Worse(was.Outcome):
		return '▼', "worse"
	case was.Outcome.Worse(now.Outcome):
		return '▲', "better"
	}
	return '≠', "otherwise"
}

// drawCell draws the operator's outcome, its time where there is room, then the
// outcomes of the other sides, and how it differs from what it was.
func drawCell(c canvas.Canvas, cell, was *register.Cell) {
	if cell == nil {
		return
	}
	w, _ := c.Size()
	others := len(cell.Partitions) - 1
	room := w - 1 - others // for the operator's own
	if others > 0 {
		room--
	}
	if was != nil {
		room--
	}
	m := outcomeSign(cell.Outcome)
	c.Set(1, 0, m.Shape, m.Style.With(canvas.Bold))
	x := c.PutFit(3, 0, max(4, room-2), m.Word, m.Style)
	if cell.Minutes != nil {
		if s := register.Span(cell.Minutes); x+1+text.Width(s) <= room+1 {
			x = c.Put(x+1, 0, s, dim)
		}
	}
	x++
	for i := range cell.Partitions {
		if p := &cell.Partitions[i]; !p.Operator {
			m := outcomeSign(p.Outcome)
			c.Set(x, 0, m.Shape, m.Style)
			x++
		}
	}
	if was != nil {
		sign, _ := turn(was, cell)
		c.Set(min(x, w-1), 0, sign, loud)
	}
}

// move moves the choice; the caller keeps it within the matrix.
func (p *matrixPane) move(down, right int) {
	p.at += down
	p.scenario.at += right
}

// click chooses the cell at (x, y) of the body.
func (p *matrixPane) click(x, y int) bool {
	if !p.cells.Contains(x, y) || p.colW == 0 {
		return false
	}
	p.at = p.top + y - p.cells.Y
	p.scenario.at = p.scenario.top + (x-p.cells.X)/p.colW
	return true
}
