package season

import (
	"fmt"
	"sort"

	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// reading is a week as it was last understood, with what panes look up. It never
// changes; a newer one takes its place.
type reading struct {
	Week
	trouble string // why the documents could not be read since; "" for nothing
	cols    []column
	over    int // heats
	all     int
}

// column is a round, as rows.
type column struct {
	blocks []block
	height int
	of     map[string]int // the block that an entrant is in
}

// block is what is chosen as one in a column.
type block struct {
	kind   blockKind
	heat   int // index in the round's heats
	top, h int // h without the blank row below
}

type blockKind uint8

const (
	aHeat blockKind = iota
	unseated
	byes
	wildcards
	outcome // of the week, below its final
)

// index is done beside the screen.
func index(w Week) *reading {
	r := &reading{Week: w}
	for i := range w.View.Rounds {
		rv := &w.View.Rounds[i]
		c := column{of: map[string]int{}}
		add := func(kind blockKind, heat, rows int) {
			c.blocks = append(c.blocks, block{kind, heat, c.height, rows})
			c.height += rows + 1
		}
		empty := 0
		for j := range rv.Heats {
			h := &rv.Heats[j]
			r.all++
			if h.State != "waiting" && h.State != "playing" {
				r.over++
			}
			if len(h.Seats) == 0 && h.State == "waiting" {
				empty++
				continue
			}
			for _, seat := range h.Seats {
				c.of[seat.Entrant] = len(c.blocks)
			}
			add(aHeat, j, 1+max(1, len(h.Seats)))
		}
		if empty > 0 {
			add(unseated, empty, 1)
		}
		if len(rv.Byes) > 0 {
			for _, id := range rv.Byes {
				c.of[id] = len(c.blocks)
			}
			add(byes, 0, 1+len(rv.Byes))
		}
		if n := max(len(rv.Wildcards), min(1, rv.Places)); n > 0 {
			add(wildcards, 0, 1+n)
		}
		if i == len(w.View.Rounds)-1 && w.View.State == "complete" {
			add(outcome, 0, 1)
		}
		r.cols = append(r.cols, c)
	}
	order(r.Audit)
	return r
}

// progress counts heats that are over, and all.
func (r *reading) progress() (over, all int) { return r.over, r.all }

// latest is the attempt of a heat that enter opens: the last whose recording is
// here, or else the last that was run; "" when none was.
func (r *reading) latest(round int, h *season.HeatView) string {
	for n := h.Attempts + 1; n > 0; n-- {
		if name := season.Folder(round, h.Heat, n); r.Here[name] {
			return name
		}
	}
	if h.Attempts > 0 {
		return season.Folder(round, h.Heat, h.Attempts)
	}
	return ""
}

// goesOn is the heat of the next round that an entrant of a round plays in; 0 for
// none, -1 for a bye.
func (r *reading) goesOn(round int, entrant string) int {
	if round >= len(r.cols) {
		return 0
	}
	at, ok := r.cols[round].of[entrant]
	if !ok {
		return 0
	}
	if b := r.cols[round].blocks[at]; b.kind == aHeat {
		return r.View.Rounds[round].Heats[b.heat].Heat
	}
	return -1
}

// bracketPane shows rounds side by side, each with a chosen block.
type bracketPane struct {
	round   int // the chosen one, from 0
	left    int // the first that is shown
	at, top []int
	entrant string // whose way is marked
	shown   int    // rounds, as last drawn
	body    canvas.Rect
	wide    int // of a column, as last drawn
}

type chosenHeat struct {
	round int // from 1
	heat  *season.HeatView
}

// begin chooses what matters: the first heat that is not over, or else the last.
func (p *bracketPane) begin(r *reading) {
	p.fit(r)
	for i := range r.View.Rounds {
		for k, b := range r.cols[i].blocks {
			if b.kind != aHeat {
				continue
			}
			p.round, p.at[i] = i, k
			if s := r.View.Rounds[i].Heats[b.heat].State; s == "waiting" || s == "playing" {
				p.mark(r)
				return
			}
		}
	}
	p.mark(r)
}

// fit makes the places those of a reading's columns.
func (p *bracketPane) fit(r *reading) {
	for len(p.at) < len(r.cols) {
		p.at, p.top = append(p.at, 0), append(p.top, 0)
	}
	p.round = max(0, min(p.round, len(r.cols)-1))
	for i := range r.cols {
		p.at[i] = max(0, min(p.at[i], len(r.cols[i].blocks)-1))
	}
}

// chosen is the heat under the cursor, or nil.
func (p *bracketPane) chosen(r *reading) *chosenHeat {
	if b := p.block(r); b != nil && b.kind == aHeat {
		return &chosenHeat{p.round + 1, &r.View.Rounds[p.round].Heats[b.heat]}
	}
	return nil
}

func (p *bracketPane) block(r *reading) *block {
	p.fit(r)
	if len(r.cols) == 0 || len(r.cols[p.round].blocks) == 0 {
		return nil
	}
	return &r.cols[p.round].blocks[p.at[p.round]]
}

// move goes down by rows within a page of so many, or to another round.
func (p *bracketPane) move(r *reading, by, rounds, page int) {
	p.fit(r)
	if len(r.cols) == 0 {
		return
	}
	if rounds != 0 {
		p.round = max(0, min(p.round+rounds, len(r.cols)-1))
		if _, here := r.cols[p.round].of[p.entrant]; !here {
			p.mark(r)
		}
		return
	}
	blocks := r.cols[p.round].blocks
	if len(blocks) == 0 {
		return
	}
	if n := blocks[0].h + 1; by > 1 || by < -1 {
		by = by / n
		if by == 0 {
			by = 1
		}
	}
	p.at[p.round] = max(0, min(p.at[p.round]+by, len(blocks)-1))
	p.mark(r)
}

// mark marks the way of who won the chosen heat, or of the first who sits in it.
func (p *bracketPane) mark(r *reading) {
	h := p.chosen(r)
	if h == nil {
		return
	}
	id := h.heat.Winner
	if id == "" && len(h.heat.Seats) > 0 {
		id = h.heat.Seats[0].Entrant
	}
	p.way(r, id)
}

// way shows an entrant in every round that it is in, but the chosen one.
func (p *bracketPane) way(r *reading, id string) {
	p.entrant = id
	for i := range r.cols {
		if at, ok := r.cols[i].of[id]; ok && i != p.round {
			p.at[i] = at
		}
	}
}

// track chooses the entrant's heat, in the last round that it is in unless it is in
// the chosen one.
func (p *bracketPane) track(r *reading, id string) {
	p.fit(r)
	if p.round < len(r.cols) {
		if _, ok := r.cols[p.round].of[id]; !ok {
			for i := range r.cols {
				if _, ok := r.cols[i].of[id]; ok {
					p.round = i
				}
			}
		}
		if at, ok := r.cols[p.round].of[id]; ok {
			p.at[p.round] = at
		}
	}
	p.way(r, id)
}

const leastColumn = 36

// rows is how many the pane wants for itself.
func (p *bracketPane) rows(r *reading) int {
	n := 0
	for i := range r.cols {
		n = max(n, r.cols[i].height)
	}
	return n + 4
}

func (p *bracketPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, focused bool) {
	p.fit(r)
	note := ""
	if h := p.chosen(r); h != nil {
		note = fmt.Sprintf("round %d, heat %s of %s", h.round, view.Count(h.heat.Heat), view.Count(len(r.View.Rounds[p.round].Heats)))
	}
	inner := area.Inset(1)
	n := max(1, min(len(r.cols), (inner.W+1)/(leastColumn+1)))
	p.shown = n
	p.left = max(0, min(max(min(p.left, p.round), p.round-n+1), len(r.cols)-n))
	name := "bracket"
	if n < len(r.cols) {
		name = fmt.Sprintf("bracket: rounds %d to %d of %d", p.left+1, p.left+n, len(r.cols))
	}
	in := view.Frame(c, area, focused, name, note)
	if len(r.cols) == 0 {
		in.PutFit(1, 0, inner.W-2, "nothing here tells of a bracket", dim)
		return
	}
	w, h := in.Size()
	wide := (w - (n - 1)) / n
	p.body, p.wide = inner, wide
	for k := range n {
		x := k * (wide + 1)
		if k > 0 {
			in.VLine(x-1, 0, h, '│', canvas.Fg(canvas.Border))
		}
		p.drawColumn(in.Sub(canvas.Rect{X: x, Y: 0, W: wide, H: h}), r, p.left+k, focused)
	}
}

func (p *bracketPane) drawColumn(c canvas.Canvas, r *reading, i int, focused bool) {
	w, h := c.Size()
	rv, col := &r.View.Rounds[i], &r.cols[i]
	st := title
	if i != p.round {
		st = plain
	}
	x := c.Put(1, 0, fmt.Sprintf("round %d", rv.Round), st)
	if i == len(r.cols)-1 && len(rv.Heats) == 1 {
		x = c.Put(x, 0, ", the final", st)
	}
	arena := text.Line(rv.Arena)
	if arena == "" {
		arena = "arena not known here"
	}
	c.PutFit(x+2, 0, w-x-3, arena, dim)
	if h < 3 {
		return
	}
	c.HLine(1, 1, w-2, '┄', canvas.Fg(canvas.Border))
	body := c.Sub(canvas.Rect{X: 0, Y: 2, W: w, H: h - 2})
	rows := h - 2
	if len(col.blocks) == 0 {
		return
	}
	b := col.blocks[p.at[i]]
	top := p.top[i]
	if b.top+b.h > top+rows {
		top = b.top + b.h - rows
	}
	if b.top < top {
		top = b.top
	}
	top = max(0, min(top, col.height-1-rows))
	p.top[i] = top
	first := sort.Search(len(col.blocks), func(k int) bool { return col.blocks[k].top+col.blocks[k].h >= top })
	k := first
	for ; k < len(col.blocks) && col.blocks[k].top < top+rows; k++ {
		p.drawBlock(body, col.blocks[k].top-top, r, i, &col.blocks[k], k == p.at[i], focused && i == p.round)
	}
	if below := len(col.blocks) - k; below > 0 {
		c.PutRight(w-1, 1, w/2, " "+view.Count(below)+" more ↓ ", canvas.Fg(canvas.Key))
	}
}

func (p *bracketPane) drawBlock(c canvas.Canvas, y int, r *reading, i int, b *block, at, focused bool) {
	w, _ := c.Size()
	rv := &r.View.Rounds[i]
	switch b.kind {
	case aHeat:
		h := &rv.Heats[b.heat]
		m := heatSign(h.State)
		word := m.Word
		if h.Attempts > 1 {
			word += fmt.Sprintf(", %s", text.Count(h.Attempts, "attempt"))
		}
		c.Set(2, y, m.Shape, m.Style)
		x := c.Put(4, y, fmt.Sprintf("heat %s", view.Count(h.Heat)), plain.With(canvas.Bold))
		c.PutRight(w-1, y, w-x-2, word, m.Style)
		for k := range h.Seats {
			p.drawSeat(c, y+1+k, h, &h.Seats[k])
		}
		if len(h.Seats) == 0 {
			c.PutFit(4, y+1, w-5, "seats not known here", dim)
		}
	case unseated:
		c.Set(2, y, '○', dim)
		c.PutFit(4, y, w-5, view.Plural(b.heat, "heat")+", not seated yet", dim)
	case byes:
		c.PutFit(2, y, w-3, "bye", title)
		for k, id := range rv.Byes {
			p.drawName(c, y+1+k, '→', id, w-5)
		}
	case wildcards:
		c.PutFit(2, y, w-3, "wildcards", title)
		for k, x := range rv.Wildcards {
			end := p.drawName(c, y+1+k, '◇', x.Entrant, w-5)
			c.PutFit(end+2, y+1+k, w-end-3, text.Line(x.Why), dim)
		}
		if len(rv.Wildcards) == 0 {
			c.PutFit(4, y+1, w-5, view.Plural(rv.Places, "wildcard")+", not drawn yet", dim)
		}
	case outcome:
		if r.View.Champion == "" {
			c.PutFit(2, y, w-3, "no champion: nobody was durable in the final", plain)
			break
		}
		c.PutFit(2, y, w-3, "★ "+text.Line(r.View.Champion)+" is the champion", canvas.Fg(canvas.Ok).With(canvas.Bold))
	}
	if !at {
		return
	}
	for k := range b.h {
		if k == 0 {
			chosen(c, y, focused)
		} else if focused {
			c.Set(0, y+k, '▌', canvas.Fg(canvas.Focus))
		} else {
			c.Set(0, y+k, '▏', dim)
		}
	}
}

// drawName draws an entrant, marked when it is the one whose way is shown.
func (p *bracketPane) drawName(c canvas.Canvas, y int, shape rune, id string, w int) int {
	st := plain
	if id == p.entrant {
		st = loud
		c.Set(1, y, '▸', loud)
	}
	c.Set(2, y, shape, dim)
	return c.PutFit(4, y, w, text.Line(id), st)
}

func (p *bracketPane) drawSeat(c canvas.Canvas, y int, h *season.HeatView, s *season.SeatView) {
	w, _ := c.Size()
	m := resultSign(s.Result)
	if h.State == "playing" {
		m = view.NewSign('●', "playing", canvas.Accent)
	}
	const words, numbers = 11, 8
	room := max(5, min(32, w-6-words-numbers))
	p.drawName(c, y, m.Shape, s.Entrant, room)
	c.Set(2, y, m.Shape, m.Style)
	x := 4 + room + 1
	if s.Result == "waiting" {
		if h.State == "playing" {
			c.PutFit(x, y, w-x-1, m.Word, m.Style)
			return
		}
		c.PutFit(x, y, w-x-1, text.Line(s.Territory), dim)
		return
	}
	c.PutFit(x, y, words-1, m.Word, m.Style)
	number := fmt.Sprintf("%d pt", s.Points)
	if s.DurableAtMS != nil {
		number = seconds(*s.DurableAtMS)
	}
	c.PutRight(x+words+numbers, y, numbers, number, plain)
}

// click chooses the block under a cell of the pane.
func (p *bracketPane) click(r *reading, x, y int) {
	x, y = x-p.body.X, y-p.body.Y-2
	if p.wide == 0 || x < 0 {
		return
	}
	i := p.left + x/(p.wide+1)
	if i >= len(r.cols) || i >= p.left+p.shown {
		return
	}
	p.round = i
	for k, b := range r.cols[i].blocks {
		if row := y + p.top[i]; row >= b.top && row < b.top+b.h {
			p.at[i] = k
		}
	}
	p.mark(r)
}
