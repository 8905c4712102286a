package tui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// seatPane is a part of the seat screen that can have the focus.
type seatPane int

const (
	paneLadder seatPane = iota
	paneActions
	paneConsole
	paneCount
)

// seatScreen is one seat, full size.
type seatScreen struct {
	*heat
	focus   seatPane
	zoom    bool
	rung    int // chosen on the ladder
	action  int // chosen action plus one; 0 follows the newest
	up      int // console lines scrolled back
	machine int
}

func (s *seatScreen) crumbs() []string {
	c := s.heat.crumbs()
	if seat := s.chosen(); seat != nil {
		c = append(c, seat.ID)
	}
	return c
}

func (s *seatScreen) draw(c canvas.Canvas) {
	seat := s.chosen()
	if seat == nil {
		return
	}
	w, h := c.Size()
	low, top := c.Bounds().CutBottom(2)
	s.drawLanes(c.Sub(low))
	switch {
	case s.zoom:
		s.drawPane(c, top, s.focus, seat)
	case w < 100:
		// One column: who it is, the ladder, and the pane that has the focus.
		rungs := len(world.Ladder(s.world, s.manifest, seat.ID))
		ladder, rest := top.CutTop(min(rungs+4, top.H/2))
		other := s.focus
		if other == paneLadder {
			other = paneActions
		}
		s.drawPane(c, ladder, paneLadder, seat)
		s.drawPane(c, rest, other, seat)
	default:
		left, right := top.CutLeft(w * 11 / 20)
		rungs := len(world.Ladder(s.world, s.manifest, seat.ID))
		ladder, topo := left.CutBottom(min(rungs+4, left.H/2))
		in := frameNoted(c, topo, canvas.Rounded, s.seatTitle(s.seat), s.seatNote(seat), canvas.Fg(canvas.Border))
		s.drawTopology(c.Sub(in), seat, in.W)
		s.drawPane(c, ladder, paneLadder, seat)
		actions, console := right.CutTop(min(h/2, top.H/2))
		s.drawPane(c, actions, paneActions, seat)
		s.drawPane(c, console, paneConsole, seat)
	}
}

func (s *seatScreen) drawPane(c canvas.Canvas, r canvas.Rect, p seatPane, seat *world.Seat) {
	outline, line := canvas.Rounded, canvas.Fg(canvas.Border)
	if p == s.focus {
		outline, line = canvas.Heavy, canvas.Fg(canvas.Focus)
	}
	title, note := "", ""
	switch p {
	case paneLadder:
		title = "ladder · " + s.seatTitle(s.seat)
		note = s.seatNote(seat)
	case paneActions:
		title, note = "actions", countNote(seat.Actions.Len())
	case paneConsole:
		title, note = "console", consoleNote(seat)
		if ms := s.rec.Machines(seat.ID); len(ms) > 1 {
			title += " " + s.machineName(seat)
		}
		if s.up > 0 {
			note = fmt.Sprintf("%d lines back", s.up)
		}
	}
	in := c.Sub(frameNoted(c, r, outline, title, note, line))
	switch p {
	case paneLadder:
		s.drawRungs(in, seat)
	case paneActions:
		s.drawActionList(in, seat)
	case paneConsole:
		s.up = s.drawConsole(in, seat, s.machineName(seat), s.up)
	}
}

func (s *seatScreen) machineName(seat *world.Seat) string {
	ms := s.rec.Machines(seat.ID)
	if len(ms) == 0 {
		return ""
	}
	return ms[s.machine%len(ms)]
}

// drawRungs lists the milestones: state, points, attempts, when, and why not.
func (s *seatScreen) drawRungs(c canvas.Canvas, seat *world.Seat) {
	w, h := c.Size()
	rungs := world.Ladder(s.world, s.manifest, seat.ID)
	s.rung = max(0, min(s.rung, len(rungs)-1))
	names := 0
	for _, r := range rungs {
		names = max(names, text.Width(r.ID))
	}
	names = min(names, w/2)
	first := max(0, s.rung-(h-3))
	for y := 0; y < h-1 && first+y < len(rungs); y++ {
		r := rungs[first+y]
		m := rungMark(r.State)
		c.Set(1, y, m.shape, m.style.With(canvas.Bold))
		c.PutFit(3, y, names, r.ID, canvas.Fg(canvas.Text))
		c.PutRight(3+names+4, y, 3, fmt.Sprint(r.Points), canvas.Fg(canvas.Dim))
		c.PutFit(3+names+6, y, w-1-(3+names+6), s.rungDetail(r), m.style)
		if first+y == s.rung && s.focus == paneLadder {
			c.Restyle(canvas.Rect{X: 0, Y: y, W: w, H: 1}, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
			c.Set(0, y, '▌', canvas.Style{Fg: canvas.Focus, Bg: canvas.Selection})
		}
	}
	s.drawBlocker(c.Sub(canvas.Rect{X: 1, Y: h - 1, W: w - 2, H: 1}), seat)
}

// rungDetail is a rung's story in a line.
func (s *seatScreen) rungDetail(r world.Rung) string {
	m := r.Milestone
	word := rungMark(r.State).word
	if m == nil {
		return word
	}
	tries := ""
	if m.Attempts > 1 {
		tries = fmt.Sprintf(" after %d attempts", m.Attempts)
	}
	switch r.State {
	case world.RungPassed:
		return "passed " + clock(m.PassedMS) + tries
	case world.RungFailing, world.RungRevoked:
		return fmt.Sprintf("%s ×%d: %s", word, m.Failures, firstLine(m.Failure.Detail))
	case world.RungVerifying:
		return "verifying " + span(s.now-min(s.now, m.StartedMS))
	}
	return word
}

// drawActionList lists the actions, and below the chosen one's command and
// output in full.
func (s *seatScreen) drawActionList(c canvas.Canvas, seat *world.Seat) {
	w, h := c.Size()
	n := seat.Actions.Len()
	if n == 0 || s.action == 0 || h < 8 || s.focus != paneActions {
		s.drawActions(c, seat, 0, -1)
		return
	}
	s.action = min(s.action, n)
	list, detail := c.Bounds().CutTop(h / 2)
	up := max(0, n-s.action-list.H/2)
	up = min(up, max(0, n-list.H))
	s.drawActions(c.Sub(list), seat, up, s.action-1)
	d := c.Sub(detail)
	a := seat.Actions.At(s.action - 1)
	result, st := actionResult(a, s.now)
	d.HLine(0, 0, w, '┄', canvas.Fg(canvas.Border))
	head := fmt.Sprintf(" %s  %s  %s  %d bytes ", clock(a.StartMS), a.Channel, span(a.TookMS), a.Bytes)
	if a.SelfReported {
		head += " self-reported "
	}
	d.PutFit(1, 0, w-14, head, canvas.Fg(canvas.Dim))
	d.PutRight(w-1, 0, 12, " "+result+" ", st)
	y := 1
	for _, l := range text.Wrap("$ "+strings.ReplaceAll(a.Command, "⏎", "\n"), w-2) {
		d.Put(1, y, l, canvas.Fg(canvas.Title))
		y++
	}
	for _, l := range text.Wrap(a.Output, w-2) {
		d.Put(1, y, l, canvas.Fg(canvas.Text))
		y++
	}
	if a.Detail != "" {
		d.PutFit(1, y, w-2, a.Detail, canvas.Fg(canvas.Warn))
	}
}

func (s *seatScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if s.attached != nil {
		return s.consoleKey(m, a, raw)
	}
	seat := s.chosen()
	switch a {
	case keymap.NextPane, keymap.Right:
		s.focus = (s.focus + 1) % paneCount
		return nil
	case keymap.PrevPane, keymap.Left:
		s.focus = (s.focus + paneCount - 1) % paneCount
		return nil
	case keymap.ZoomIn:
		s.zoom = true
		return nil
	case keymap.ZoomOut:
		s.zoom = false
		return nil
	case keymap.Back:
		if s.zoom {
			s.zoom = false
			return func() tea.Msg { return nil }
		}
		return nil
	case keymap.Seat:
		if i := int(raw.String()[0] - '1'); i < len(s.world.Seats()) {
			s.seat, s.action, s.up = i, 0, 0
		}
		return nil
	case keymap.Down, keymap.Up, keymap.HalfDown, keymap.HalfUp, keymap.PageDown, keymap.PageUp:
		if seat != nil {
			s.move(seat, map[keymap.Action]int{
				keymap.Down: 1, keymap.Up: -1, keymap.HalfDown: 10, keymap.HalfUp: -10, keymap.PageDown: 20, keymap.PageUp: -20,
			}[a])
		}
		return nil
	case keymap.Open:
		return s.open(m, seat)
	case keymap.Copy:
		if seat != nil && s.focus == paneActions && s.action > 0 && s.action <= seat.Actions.Len() {
			return m.copyText(seat.Actions.At(s.action - 1).Command)
		}
	case keymap.Console:
		s.focus, s.up = paneConsole, 0
		if seat != nil {
			return s.attach(m, seat.ID, s.machineName(seat))
		}
		return nil
	}
	if s.moveInTime(m, a) {
		return nil
	}
	return s.act(m, a)
}

func (s *seatScreen) move(seat *world.Seat, by int) {
	switch s.focus {
	case paneLadder:
		s.rung += by
	case paneActions:
		n := seat.Actions.Len()
		if s.action == 0 {
			s.action = n + 1
			if by > 0 {
				return
			}
		}
		s.action += by
		if s.action > n {
			s.action = 0 // past the newest: follow again
		} else {
			s.action = max(s.action, 1)
		}
	case paneConsole:
		s.up = max(0, s.up-by)
	}
}

func (s *seatScreen) open(m *model, seat *world.Seat) tea.Cmd {
	if seat == nil {
		return nil
	}
	switch s.focus {
	case paneLadder:
		if rungs := world.Ladder(s.world, s.manifest, seat.ID); s.rung < len(rungs) {
			return m.push(newEvidence(s.heat, seat.ID, rungs[s.rung].ID))
		}
	case paneConsole:
		if n := len(s.rec.Machines(seat.ID)); n > 1 {
			s.machine = (s.machine + 1) % n
			s.up = 0
		}
	case paneActions:
		s.zoom = true
		if s.action == 0 {
			s.action = seat.Actions.Len()
		}
	}
	return nil
}

func (s *seatScreen) wantsRaw() bool { return s.attached != nil }

func (s *seatScreen) hints() []keymap.Action {
	if s.attached != nil {
		return []keymap.Action{keymap.Detach}
	}
	return []keymap.Action{
		keymap.NextPane, keymap.Down, keymap.Up, keymap.Open, keymap.ZoomIn, keymap.Why, keymap.Console,
		keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.Back,
	}
}
