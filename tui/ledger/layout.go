package ledger

import (
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// textPane shows lines that follow from what is chosen in the grid.
type textPane struct {
	scroll
	lines []line
	made  lineKey
}

// lineKey says what lines were made from.
type lineKey struct {
	r               *reading
	scenario, arena string
	width           int
}

// show makes the lines anew where something changed. The place stays where the
// same thing is shown of a newer reading.
func (p *textPane) show(k lineKey, make func() []line) {
	if k == p.made {
		return
	}
	if p.made.scenario != k.scenario || p.made.arena != k.arena {
		p.scroll = scroll{}
	}
	p.made, p.lines = k, make()
}

// jump goes to the next heading, or the previous one.
func (p *textPane) jump(dir int) {
	for i := p.at + dir; i >= 0 && i < len(p.lines); i += dir {
		if p.lines[i].heading || i == 0 {
			p.at, p.top = i, i
			return
		}
	}
}

func (p *textPane) draw(c canvas.Canvas, area canvas.Rect, focused bool, name, note string) {
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	p.settle(len(p.lines), h)
	for y := 0; y < h && p.top+y < len(p.lines); y++ {
		p.lines[p.top+y].draw(in, 1, y, w-2)
		if focused && p.top+y == p.at {
			view.Choose(in, y)
		}
	}
	view.More(c, area, len(p.lines)-h-p.top)
}

// Draw draws the panes that there is room for.
func (s *Screen) Draw(c canvas.Canvas) {
	s.rects = [paneCount]canvas.Rect{}
	area := c.Bounds()
	if bad := s.wrong(); bad != "" {
		var row canvas.Rect
		row, area = area.CutBottom(1)
		c.PutFit(1, row.Y, row.W-2, bad, alarm)
	}
	if s.zoom {
		s.drawPane(c, area, s.focus)
		return
	}
	top, rest := area.CutTop(max(6, min(s.grid.height(s.r), area.H*11/20)))
	if rest.H < 5 {
		s.drawPane(c, area, s.focus)
		return
	}
	s.drawPane(c, top, grid)
	list := s.below(area.W)
	for i, p := range list {
		var r canvas.Rect
		r, rest = rest.CutLeft(rest.W / (len(list) - i))
		s.drawPane(c, r, p)
	}
}

// below are the panes below the grid.
func (s *Screen) below(w int) []pane {
	switch {
	case w >= 160:
		return []pane{scenario, evidence, claim}
	case w >= 100:
		return []pane{s.lower, claim}
	case s.focus != grid:
		return []pane{s.focus}
	}
	return []pane{s.lower}
}

// wrong is what stands at the bottom while the files are not what is shown, or do
// not hold.
func (s *Screen) wrong() string {
	if s.r.trouble != "" {
		return "✗ " + s.r.trouble
	}
	for _, f := range s.r.picture.Findings {
		if f.Severity == "break" {
			return "✗ " + f.String()
		}
	}
	return ""
}

func (s *Screen) drawPane(c canvas.Canvas, r canvas.Rect, p pane) {
	s.rects[p] = r
	focused := s.focus == p
	row, cell := s.grid.row(s.r), s.grid.cell(s.r)
	k := lineKey{r: s.r, width: r.W - 4}
	if row != nil {
		k.scenario = row.Scenario
	}
	where := "all arenas"
	if cell != nil {
		k.arena, where = cell.Arena, cell.Arena
	}
	switch p {
	case grid:
		s.grid.draw(c, r, s.r, focused)
	case scenario:
		s.scenario.show(k, func() []line { return scenarioLines(s.r, row, k.width) })
		s.scenario.draw(c, r, focused, "scenario", k.scenario)
	case evidence:
		s.evidence.show(k, func() []line { return evidenceLines(s.r, row, cell, k.width) })
		s.evidence.draw(c, r, focused, "evidence: "+where, k.scenario)
	case claim:
		s.claim.show(k, func() []line { return claimLines(s.r, row, k.width) })
		s.claim.draw(c, r, focused, "what may be claimed", k.scenario)
	}
}
