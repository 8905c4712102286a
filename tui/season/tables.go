package season

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// standingsPane is the week's table.
type standingsPane struct{ scroll }

func (p *standingsPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, focused bool, entrant string) {
	v := &r.View
	name := "standings"
	if v.State != "complete" {
		name = "standings so far"
	}
	in := view.Frame(c, area, focused, name, view.Plural(len(v.Standings), "entrant"))
	w, h := in.Size()
	if len(v.Standings) == 0 || h < 2 {
		in.PutFit(1, 0, w-2, "nothing here tells who plays", dim)
		return
	}
	models, forfeits, narrow := w >= 88, w >= 66, w < 66
	widths := struct{ place, won, durable, points, forfeit, cost int }{4, 3, 7, 6, 7, 11}
	words := []string{"durable", "points"}
	if narrow {
		widths.place, widths.durable, widths.points, widths.cost = 3, 3, 5, 9
		words = []string{"dur", "pts"}
	}
	wide := w - 3 - (widths.place + 1 + 2 + 1 + 9 + widths.won + 1 + widths.durable + 1 + widths.points + 1 + widths.cost)
	if forfeits {
		wide -= widths.forfeit + 1
	}
	if models {
		wide = wide/2 - 1
	}
	wide = max(5, min(28, wide))
	// A row of the table; what there is no room for is left out, whole columns of it.
	row := func(place, mark, who, model, reached, won, durable, points, forfeit, cost string, st, st2 canvas.Style) line {
		p := page{width: w - 2}
		segs := []seg{right(place, widths.place, dim), cell(mark, 1, st), cell(who, wide, st)}
		if models {
			segs = append(segs, cell(model, wide, dim))
		}
		segs = append(segs, cell(reached, 8, st2), right(won, widths.won, st2), right(durable, widths.durable, st2), right(points, widths.points, st2))
		if forfeits {
			segs = append(segs, right(forfeit, widths.forfeit, st2))
		}
		p.row(append(segs, right(cost, widths.cost, dim))...)
		return p.lines[0]
	}
	head := row("", "", "entrant", "model", "reached", "won", words[0], words[1], "forfeit", "cost", dim, dim)
	head.draw(in, 1, 0, w-2)
	rows := h - 1
	p.settle(len(v.Standings), rows)
	for y := 0; y < rows && p.top+y < len(v.Standings); y++ {
		s := &v.Standings[p.top+y]
		st, mark := plain, ""
		switch {
		case s.FleetID == v.Champion && v.Champion != "":
			st, mark = canvas.Fg(canvas.Ok).With(canvas.Bold), "★"
		case s.FleetID == entrant:
			st, mark = loud, "▸"
		}
		reached := s.Reached(v.Champion)
		l := row(fmt.Sprint(p.top+y+1), mark, s.FleetID, s.Model, reached, fmt.Sprint(s.Wins), fmt.Sprint(s.DurableDeployments), fmt.Sprint(s.MilestonePoints), fmt.Sprint(s.Forfeits),
			season.Money{MicroUSD: s.CostMicroUSD, Complete: s.CostComplete}.String(), st, plain)
		l.draw(in, 1, y+1, w-2)
		if p.top+y == p.at {
			chosen(in, y+1, focused)
		}
	}
	view.More(c, area, len(v.Standings)-rows-p.top)
}

// order puts what is broken first, and what cannot be checked last.
func order(a *season.Audit) {
	rank := func(c season.Check) int {
		return slices.Index([]season.Verdict{season.Broken, season.Note, season.Holds}, c.Verdict) & 3 // none of them: 3
	}
	slices.SortStableFunc(a.Checks, func(x, y season.Check) int { return cmp.Compare(rank(x), rank(y)) })
}

// checksPane is the audit, check by check.
type checksPane struct{ scroll }

// chosen is the check under the cursor, or nil.
func (p *checksPane) chosen(a *season.Audit) *season.Check {
	if p.at >= 0 && p.at < len(a.Checks) {
		return &a.Checks[p.at]
	}
	return nil
}

// draw draws the list, and the chosen one in full below it.
func (p *checksPane) draw(c canvas.Canvas, area canvas.Rect, a *season.Audit, focused bool, note string) {
	in := view.Frame(c, area, focused, "audit", note)
	w, h := in.Size()
	p.at = max(0, min(p.at, len(a.Checks)-1))
	k := p.chosen(a)
	if k == nil {
		in.PutFit(1, 0, w-2, "nothing was checked", dim)
		return
	}
	told := tellCheck(k, w-2)
	if len(told) > h*2/3 {
		told = told[:max(0, h*2/3)]
	}
	rows := h - len(told) - 1
	if rows < 3 {
		rows, told = h, nil
	}
	p.settle(len(a.Checks), rows)
	for y := 0; y < rows && p.top+y < len(a.Checks); y++ {
		drawCheck(in, y, &a.Checks[p.top+y])
		if p.top+y == p.at {
			chosen(in, y, focused)
		}
	}
	if told != nil {
		in.HLine(0, rows, w, '┄', canvas.Fg(canvas.Border))
	}
	for i := 0; i < len(told) && rows+1+i < h; i++ {
		told[i].draw(in, 1, rows+1+i, w-2)
	}
	view.More(c, area, len(a.Checks)-rows-p.top)
}

func drawCheck(c canvas.Canvas, y int, k *season.Check) {
	w, _ := c.Size()
	m := verdictSign(k.Verdict)
	c.Set(2, y, m.Shape, m.Style)
	c.PutFit(4, y, 10, m.Word, m.Style)
	c.PutFit(15, y, 2, text.Line(k.Code), plain)
	where := ""
	if k.Where != "" {
		where = k.Where + ": "
	}
	c.PutFit(18, y, w-19, text.Line(where+k.Text), plain)
}

// tellCheck is a check in full.
func tellCheck(k *season.Check, width int) []line {
	p := &page{width: width}
	m := verdictSign(k.Verdict)
	where := ""
	if k.Where != "" {
		where = text.Line(k.Where) + ": "
	}
	p.say(0, m.Style, "%c %s  %s  %s", m.Shape, m.Word, k.Code, where+k.Text)
	if k.Verdict == season.Broken {
		p.say(2, plain, "should be  %s", cmp.Or(k.Want, `""`))
		p.say(2, plain, "is         %s", cmp.Or(k.Got, `""`))
	}
	if k.Missing != "" {
		p.say(2, dim, "missing: %s", k.Missing)
	}
	if len(k.Fields) > 0 {
		p.say(2, dim, "not bound by anything here: %s", strings.Join(k.Fields, ", "))
	}
	return p.lines
}
