package season

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// Draw draws the panes that there is room for.
func (s *Screen) Draw(c canvas.Canvas) {
	s.rects = [paneCount]canvas.Rect{}
	area := c.Bounds()
	if s.r.trouble != "" {
		var row canvas.Rect
		row, area = area.CutBottom(1)
		c.PutFit(1, row.Y, row.W-2, "✗ "+s.r.trouble, alarm)
	}
	if s.zoom || area.H < 12 {
		s.drawPane(c, area, s.focus)
		return
	}
	var row canvas.Rect
	row, area = area.CutTop(1)
	s.drawPane(c, row, badge)
	if area.W >= 180 && len(s.r.cols) <= 3 { // the bracket leaves room beside it
		left, rest := area.CutLeft(min(area.W-80, max(1, len(s.r.cols))*60))
		top, below := left.CutTop(max(8, min(s.bracket.rows(s.r), left.H*3/5)))
		s.drawPane(c, top, bracket)
		s.drawPane(c, below, standings)
		if s.listed {
			var list canvas.Rect
			list, rest = rest.CutBottom(rest.H / 2)
			s.drawPane(c, list, checks)
		}
		s.drawPane(c, rest, heat)
		return
	}
	most := area.H * 3 / 5
	if area.H < 24 {
		most = area.H / 2
	}
	top, rest := area.CutTop(max(8, min(s.bracket.rows(s.r), most)))
	s.drawPane(c, top, bracket)
	list := s.shown(area.W)
	for i, p := range list {
		var r canvas.Rect
		r, rest = rest.CutLeft(rest.W / (len(list) - i))
		s.drawPane(c, r, p)
	}
}

// shown are the panes below the bracket.
func (s *Screen) shown(w int) []pane {
	switch {
	case w >= 180:
		if s.listed {
			return []pane{heat, standings, checks}
		}
		return []pane{heat, standings}
	case w >= 110 && s.listed:
		return []pane{s.lower, checks}
	case w >= 110:
		return []pane{heat, standings}
	case s.listed && s.focus != heat && s.focus != standings:
		return []pane{checks}
	}
	return []pane{s.lower}
}

func (s *Screen) drawPane(c canvas.Canvas, r canvas.Rect, p pane) {
	s.rects[p] = r
	focused := s.focus == p
	switch p {
	case bracket:
		s.bracket.draw(c, r, s.r, focused)
	case heat:
		b := s.bracket.block(s.r)
		round := s.bracket.round + 1
		name := "heat"
		if h := s.bracket.chosen(s.r); h != nil {
			name = fmt.Sprintf("round %d, heat %s", h.round, view.Count(h.heat.Heat))
		} else if b != nil {
			name = fmt.Sprintf("round %d", round)
		}
		if b != nil {
			k := lineKey{s.r, round, s.bracket.at[s.bracket.round], r.W - 4}
			s.heat.show(k, func() []line { return blockLines(s.r, round, b, k.width) })
		}
		s.heat.draw(c, r, focused, name, "")
	case standings:
		s.standings.draw(c, r, s.r, focused, s.bracket.entrant)
	case badge:
		s.drawBadge(c, r, focused)
	case checks:
		note := "documents"
		switch {
		case s.deepens:
			note = "reading the recordings …"
		case s.deep != nil && s.deepOf == s.r:
			note = "documents and recordings"
		}
		s.checks.draw(c, r, s.audit(), focused, note)
	}
}

// drawBadge is the audit in a line.
func (s *Screen) drawBadge(c canvas.Canvas, r canvas.Rect, focused bool) {
	a := s.audit()
	in := c.Sub(r)
	w, _ := in.Size()
	m := auditSign(a)
	x := in.PutFit(1, 0, w-2, "audit ", dim)
	x = in.PutFit(x, 0, w-x-1, string(m.Shape)+" "+m.Word, m.Style.With(canvas.Bold))
	put := func(str string, st canvas.Style) {
		if w-x-1 >= text.Width(str) {
			x = in.Put(x, 0, str, st)
		}
	}
	if n := a.Count(season.Broken); n > 0 {
		put(fmt.Sprintf(": %d broken", n), alarm)
	}
	without := "not checkable"
	if len(s.r.Here) > 0 && !(s.deep != nil && s.deepOf == s.r) {
		without = "not checkable yet" // without the recordings
	}
	put(fmt.Sprintf("  %d hold, %d noted, %d %s", a.Count(season.Holds), a.Count(season.Note), a.Count(season.Unchecked), without), plain)
	put("  rules: "+text.Line(s.r.View.RuleSet), dim)
	if d := text.Line(strings.Join(a.Documents, ", ")); d != "" {
		put("  from "+d, dim)
	}
	if focused {
		view.Choose(in, 0)
	}
}

// Click chooses the pane, and in a list the row.
func (s *Screen) Click(h view.Host, x, y int) tea.Cmd {
	for p := range paneCount {
		r := s.rects[p]
		if !r.Contains(x, y) {
			continue
		}
		again := s.focus == p
		s.turn(p)
		row := y - r.Y - 1
		switch p {
		case bracket:
			s.bracket.click(s.r, x, y)
		case heat:
			s.heat.at = max(0, min(s.heat.top+row, len(s.heat.lines)-1))
		case standings:
			s.standings.at = max(0, min(s.standings.top+row-1, len(s.r.View.Standings)-1))
			s.follow()
		case checks:
			s.checks.at = max(0, min(s.checks.top+row, len(s.audit().Checks)-1))
		case badge:
			if again {
				return s.list(h)
			}
		}
	}
	return nil
}
