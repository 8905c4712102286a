package tui

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
	"refbox/engine/why"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// whyScreen explains a seat's outcome as of the playhead; enter opens the
// evidence behind a line.
type whyScreen struct {
	*heat
	territory string
	chosen    int
	first     int
}

func newWhy(h *heat, territory string) *whyScreen { return &whyScreen{heat: h, territory: territory} }

func (s *whyScreen) crumbs() []string { return append(s.heat.crumbs(), s.territory, "why") }

func (s *whyScreen) title() string {
	if s.world.Simulated() {
		return "why · " + s.territory + " · simulated"
	}
	return "why · " + s.territory
}

func whyMark(k why.Kind) (rune, canvas.Style) {
	switch k {
	case why.Passed:
		return '✓', canvas.Fg(canvas.Ok)
	case why.Durable:
		return '★', canvas.Fg(canvas.Ok)
	case why.Failed, why.Lost:
		return '✗', canvas.Fg(canvas.Bad)
	case why.Revoked:
		return '↶', canvas.Fg(canvas.Bad)
	case why.Attack:
		return '⚔', canvas.Fg(canvas.Warn)
	case why.Fault:
		return faultSign, canvas.Fg(canvas.Warn)
	case why.Ruling:
		return rulingSign, canvas.Fg(canvas.Warn)
	case why.Note:
		return noteSign, canvas.Fg(canvas.Accent)
	case why.End:
		return '■', canvas.Fg(canvas.Accent)
	}
	return '·', canvas.Fg(canvas.Text)
}

func (s *whyScreen) draw(c canvas.Canvas) {
	w, _ := c.Size()
	e := s.explain(s.territory)
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	in := c.Sub(c.Frame(top, canvas.Heavy, s.title(), outcomeWord(e.Outcome), canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	if e.Headline == "" {
		in.PutFit(1, 0, w-4, "the log does not name this seat yet", canvas.Fg(canvas.Dim))
		return
	}
	y := 0
	for _, l := range text.Wrap(e.Headline, w-4) {
		in.Put(1, y, l, canvas.Fg(canvas.Title).With(canvas.Bold))
		y++
	}
	y++
	_, h := in.Size()
	s.drawLines(in.Sub(canvas.Rect{X: 0, Y: y, W: w - 2, H: h - y}), e.Lines)
	if s.chosen < len(e.Lines) && e.Lines[s.chosen].Event != nil {
		c.PutRight(w-2, top.H-1, 20, fmt.Sprintf(" event %d ", *e.Lines[s.chosen].Event), canvas.Fg(canvas.Dim))
	}
}

func (s *whyScreen) drawLines(c canvas.Canvas, lines []why.Line) {
	w, h := c.Size()
	s.chosen = max(0, min(s.chosen, len(lines)-1))
	room := max(10, w-13)
	// A line takes as many rows as its words need: scroll as little as shows the
	// chosen one.
	s.first = max(0, min(s.first, s.chosen))
	used, top := 0, s.chosen
	for i := s.chosen; i >= s.first && i < len(lines); i-- {
		if used += len(text.Wrap(lines[i].Text, room)); used > h && i < s.chosen {
			break
		}
		top = i
	}
	s.first = top
	// No row stays empty while there are lines above.
	last := len(lines)
	for used = 0; last > 0; last-- {
		if used += len(text.Wrap(lines[last-1].Text, room)); used > h {
			break
		}
	}
	s.first = min(s.first, last)
	y := 0
	for i := s.first; i < len(lines) && y < h; i++ {
		l := lines[i]
		shape, st := whyMark(l.Kind)
		from := y
		c.Put(1, y, view.Clock(l.MS), canvas.Fg(canvas.Dim))
		c.Set(10, y, shape, st.With(canvas.Bold))
		for _, t := range text.Wrap(l.Text, room) {
			c.Put(12, y, t, canvas.Fg(canvas.Text))
			y++
		}
		if i == s.chosen {
			c.Restyle(canvas.Rect{X: 0, Y: from, W: w, H: y - from}, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
			for ; from < y; from++ {
				c.Set(0, from, '▌', canvas.Style{Fg: canvas.Focus, Bg: canvas.Selection})
			}
		}
	}
}

func (s *whyScreen) key(m *model, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	if by := a.Stride(10, 10); by != 0 {
		s.chosen += by
		return nil
	}
	switch a {
	case keymap.Open:
		return s.open(m)
	case keymap.Why:
		m.pop()
	default:
		if cmd, moved := s.moveInTime(m, a); moved {
			return cmd
		}
		return s.act(m, a)
	}
	return nil
}

// open goes to the evidence of the chosen line's milestone.
func (s *whyScreen) open(m *model) tea.Cmd {
	lines := s.explain(s.territory).Lines
	if s.chosen >= len(lines) || lines[s.chosen].Milestone == "" {
		m.say("no evidence is kept for this line")
		return nil
	}
	return m.push(newEvidence(s.heat, s.territory, lines[s.chosen].Milestone))
}

func (s *whyScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.Down, keymap.Up, keymap.Open, keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.Back}
}

func (s *whyScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }
