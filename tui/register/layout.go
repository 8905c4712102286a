package register

import (
	"refbox/engine/register"
	"refbox/tui/canvas"
	"refbox/tui/view"

	tea "github.com/charmbracelet/bubbletea"
)

// textPane shows lines that follow from what is chosen elsewhere.
type textPane struct {
	scroll
	lines []line
	made  lineKey
	asked pane // where x was pressed, of explain's
}

// lineKey says what lines were made from.
type lineKey struct {
	r               *reading
	store, scenario int
	width           int
	question        string
}

// show makes the lines anew where something changed. The place stays where the
// same thing is shown of a newer register.
func (p *textPane) show(k lineKey, make func() []line) {
	if k == p.made {
		return
	}
	old := p.made
	if p.lines != nil && (old.store != k.store || old.scenario != k.scenario || old.question != k.question) {
		p.scroll = scroll{}
	}
	p.made, p.lines = k, make()
}

func (p *textPane) move(by int) { p.at = max(0, min(p.at+by, len(p.lines)-1)) }

// jump goes to the next heading, or the previous one.
func (p *textPane) jump(dir int) {
	for i := p.at + dir; i >= 0 && i < len(p.lines); i += dir {
		if p.lines[i].heading || i == 0 {
			p.at, p.top = i, i
			return
		}
	}
}

// draw shows the lines: with a cursor, or without one as a page that scrolls.
func (p *textPane) draw(c canvas.Canvas, area canvas.Rect, focused, cursor bool, name, note string) {
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	if cursor {
		p.settle(len(p.lines), h)
	} else {
		p.at = max(0, min(p.at, len(p.lines)-h))
		p.top = p.at
	}
	for y := 0; y < h && p.top+y < len(p.lines); y++ {
		p.lines[p.top+y].draw(in, 1, y, w-2)
		if cursor && p.top+y == p.at {
			chosen(in, y, focused)
		}
	}
	view.More(c, area, len(p.lines)-h-p.top)
}

// slots is how many panes stand below the matrix.
func slots(w int) int {
	switch {
	case w >= 160:
		return 3
	case w >= 100:
		return 2
	}
	return 1
}

// shown are the panes that are visible in n slots, the matrix left out.
func (s *Screen) shown(n int) []pane {
	var list []pane
	switch n {
	case 1:
		list = []pane{s.lower}
		if s.focus != matrix {
			list[0] = s.focus
		}
		if s.side != matrix {
			list[0] = s.side
		}
		return list
	case 2:
		left := s.lower
		if left == findings {
			left = store
		}
		list = []pane{left, findings}
	default:
		list = []pane{cell, store, findings}
	}
	if s.side == matrix {
		return list
	}
	list[s.over(list)] = s.side
	return list
}

// asked is the pane that the explanation, or the drill, is about; false for neither.
func (s *Screen) asked() (pane, bool) {
	switch s.side {
	case explain:
		return s.explain.asked, true
	case drills:
		return s.drill.asked, true
	}
	return matrix, false
}

// over is the slot that the explanation, the drill or the what-if takes: not that of the
// pane with the focus, nor of what is asked about; and a what-if leaves the findings,
// which it changes, where they are if it can.
func (s *Screen) over(list []pane) int {
	best := 0
	at, asked := s.asked()
	for i, p := range list {
		switch {
		case p == s.focus, asked && p == at:
		case p == findings && s.side == whatIf && list[best] != s.focus:
		default:
			best = i
		}
	}
	return best
}

// cycle moves the focus to the next pane.
func (s *Screen) cycle(h view.Host, dir int) {
	w, _ := h.Size()
	order := []pane{matrix, cell, store, findings}
	if s.side != matrix {
		order = append(order, s.side)
	}
	at := 0
	for i, p := range order {
		if p == s.focus {
			at = i
		}
	}
	s.focus = order[(at+dir+len(order))%len(order)]
	if s.focus == cell || s.focus == store || s.focus == findings {
		s.lower = s.focus
		if slots(w) == 1 { // the pane would be hidden
			s.side = matrix
		}
	}
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
	n := slots(area.W)
	need := s.matrix.height(s.r)
	top, rest := area.CutTop(max(7, min(need, area.H*9/20)))
	if rest.H < 6 {
		s.drawPane(c, area, s.focus)
		return
	}
	s.drawPane(c, top, matrix)
	list := s.shown(n)
	for i, p := range list {
		var r canvas.Rect
		r, rest = rest.CutLeft(rest.W / (len(list) - i))
		s.drawPane(c, r, p)
	}
}

// wrong is what stands at the bottom while the file is not what is shown.
func (s *Screen) wrong() string {
	if s.r.trouble != "" {
		return "✗ " + s.r.trouble
	}
	if len(s.r.gone) > 0 {
		return "no longer assumed, for the register does not have it any more: " + join(s.r.gone)
	}
	return ""
}

func (s *Screen) drawPane(c canvas.Canvas, r canvas.Rect, p pane) {
	s.rects[p] = r
	focused := s.focus == p
	doc := s.r.now.Document()
	st, sc := s.matrix.store(s.r), s.matrix.scenario.at
	k := lineKey{r: s.r, store: st, scenario: -1, width: r.W - 4}
	switch p {
	case matrix:
		s.matrix.draw(c, r, s.r, s.posture, focused)
	case cell:
		k.scenario = sc
		s.cell.show(k, func() []line { return cellLines(s.r, st, sc, k.width) })
		name := "cell"
		if x := doc.Cell(s.posture, st, sc); x != nil {
			name = x.StoreID + " in " + x.ScenarioID
		}
		s.cell.draw(c, r, focused, false, name, "◆ operator")
	case store:
		s.store.show(k, func() []line { return storeLines(s.r, st, k.width) })
		s.store.draw(c, r, focused, true, "store", s.storeID())
	case findings:
		s.findings.draw(c, r, s.r, focused)
	case explain:
		q := s.question()
		k.store, k.question = -1, q.key()
		s.explain.show(k, func() []line { return explainLines(s.r, q, k.width) })
		s.explain.draw(c, r, focused, false, q.title(), "")
	case whatIf:
		s.whatIf.draw(c, r, s.r, s.f.assumed(), focused)
	case drills:
		s.drawDrill(c, r, k, focused)
	}
}

// question is what is asked where x was pressed.
func (s *Screen) question() question {
	switch s.explain.asked {
	case findings:
		if f := s.findings.chosen(s.r); f != nil {
			return question{store: f.StoreID, codes: []register.Code{f.Code}}
		}
	case store:
		if s.store.at < len(s.store.lines) {
			return question{store: s.storeID(), codes: s.store.lines[s.store.at].ask}
		}
	}
	q := question{store: s.storeID(), posture: s.posture}
	doc := s.r.now.Document()
	if i := s.matrix.scenario.at; i < len(doc.Scenarios) {
		q.scenario = doc.Scenarios[i].ID
	}
	return q
}

// toggleExplain opens the explanation of what is under the cursor, or closes it.
// It goes along with the cursor, except where there is room for one pane only.
func (s *Screen) toggleExplain(h view.Host) {
	if s.side == explain && (s.focus == explain || s.focus == s.explain.asked || s.focus == cell && s.explain.asked == matrix) {
		s.Back()
		return
	}
	s.explain.asked = s.focus
	if s.focus == cell || s.focus == whatIf || s.focus == explain {
		s.explain.asked = matrix
	}
	s.side = explain
	if w, _ := h.Size(); s.zoom || slots(w) == 1 && s.focus != matrix {
		s.focus = explain
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
		s.focus = p
		if p == cell || p == store || p == findings {
			s.lower = p
		}
		row := y - r.Y - 1
		switch p {
		case matrix:
			s.matrix.click(x, y)
		case findings:
			if at := s.findings.top + row; row >= 0 && at < len(s.findings.list(s.r)) {
				s.findings.at = at
			}
		case store:
			if at := s.store.top + row; row >= 0 && at < len(s.store.lines) {
				s.store.at = at
			}
		case whatIf:
			at := s.whatIf.top + row
			if row < 0 || at >= len(s.whatIf.list(s.r)) {
				break
			}
			if again && at == s.whatIf.at {
				return s.open(h)
			}
			s.whatIf.at = at
		}
	}
	return nil
}

func join(ids []string) string {
	out := ""
	for i, id := range ids {
		if i > 0 {
			out += ", "
		}
		out += id
	}
	return out
}
