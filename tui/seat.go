package tui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
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
	focus  seatPane
	was    seatPane // the pane on the right that had the focus last
	zoom   bool
	rung   int // chosen on the ladder
	action int // chosen action plus one; 0 follows the newest
	up     int // console lines scrolled back
	end    int // console lines when last drawn
	looks  int // which of the seat's screens is looked at
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
	w, _ := c.Size()
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	switch {
	case s.drawAttached(c, top):
	case s.zoom:
		s.drawPane(c, top, s.focus, seat)
	case w < 100:
		// One column: who it is, the ladder, and the pane that has the focus.
		rungs := len(s.about(seat.ID).rungs)
		ladder, rest := top.CutTop(min(rungs+4, top.H/2))
		other := s.focus
		if other == paneLadder {
			other = paneActions
		}
		s.drawPane(c, ladder, paneLadder, seat)
		s.drawPane(c, rest, other, seat)
	default:
		left, right := top.CutLeft(w * 11 / 20)
		// Above its need a picture only gets emptier: then the ladder tells more.
		rungs := len(s.about(seat.ID).rungs)
		rows := max(min(rungs+4, left.H/2), left.H-26)
		if !s.hasTopology() {
			rows = left.H
		}
		ladder, topo := left.CutBottom(rows)
		if !topo.Empty() {
			in := frameNoted(c, topo, canvas.Rounded, s.seatTitle(s.seat), s.seatNote(seat), canvas.Fg(canvas.Border))
			s.drawTopology(c.Sub(in), seat, in.W)
		}
		s.drawPane(c, ladder, paneLadder, seat)
		rows = top.H * 2 / 5
		if s.hasStory(seat) && s.deeds(seat).Len() == 0 {
			rows = 4 // says that there are none, and why
		}
		actions, console := right.CutTop(rows)
		s.drawPane(c, actions, paneActions, seat)
		s.drawPane(c, console, paneConsole, seat)
	}
}

func (s *seatScreen) drawPane(c canvas.Canvas, r canvas.Rect, p seatPane, seat *world.Seat) {
	outline, line := view.Outline(p == s.focus)
	title, note := "", ""
	switch p {
	case paneLadder:
		title = "ladder · " + s.seatTitle(s.seat)
		if seat.Conquest() {
			title = "standing · " + s.seatTitle(s.seat)
		}
		note = s.seatNote(seat)
	case paneActions:
		title, note = s.actionsTitle(seat), countNote(s.deeds(seat).Len())
	case paneConsole:
		if s.hasStory(seat) {
			title = "story"
			break
		}
		title, note = "console", consoleNote(seat)
		if all := s.looksOf(seat); len(all) > 1 {
			i := s.looks % len(all)
			title = fmt.Sprintf("%d/%d %s", i+1, len(all), all[i].title)
			if all[i].session != "" {
				note = ""
			}
		}
		if s.up > 0 {
			note = fmt.Sprintf("%s back", text.Count(s.up, "line"))
		}
	}
	in := c.Sub(frameNoted(c, r, outline, title, note, line))
	switch p {
	case paneLadder:
		s.drawRungs(in, seat)
	case paneActions:
		s.drawActionList(in, seat)
	case paneConsole:
		if s.hasStory(seat) {
			s.drawStory(in, seat, "")
			break
		}
		s.drawScrolled(in, seat)
	}
}

// hasStory says that the seat's story takes the place of a console: nothing of one
// was recorded.
func (s *seatScreen) hasStory(seat *world.Seat) bool {
	return s.foreign && len(s.machinesOf(seat.ID)) == 0
}

// drawScrolled draws the screen that is looked at; lines that come while somebody looks at older
// ones don't move those.
func (s *seatScreen) drawScrolled(c canvas.Canvas, seat *world.Seat) {
	r := s.looked(seat)
	end := 0
	if r != nil {
		r.seek(s.now, s.atHead())
		end = r.screen.End()
	}
	if s.up > 0 {
		s.up = max(0, s.up+end-s.end)
	}
	s.end = end
	if w, h := c.Size(); w > 20 {
		c = c.Sub(canvas.Rect{X: 1, W: w - 2, H: h})
	}
	s.up = s.drawConsole(c, seat, r, s.up)
}

// looked is the screen that is looked at; nil for none.
func (s *seatScreen) looked(seat *world.Seat) *reel {
	all := s.looksOf(seat)
	if len(all) == 0 {
		return s.reel(seat.ID, "")
	}
	return s.openReel(all[s.looks%len(all)].reelKey)
}

// machineName is the machine whose console is looked at, or the first.
func (s *seatScreen) machineName(seat *world.Seat) string {
	if all := s.looksOf(seat); len(all) > 0 && all[s.looks%len(all)].machine != "" {
		return all[s.looks%len(all)].machine
	}
	return s.firstMachine(seat.ID)
}

// drawRungs lists the milestones, what blocks the next one, and where there is
// room the story of the chosen one.
func (s *seatScreen) drawRungs(c canvas.Canvas, seat *world.Seat) {
	w, h := c.Size()
	rungs := s.about(seat.ID).rungs
	switch {
	case len(rungs) == 0 && seat.Conquest():
		s.drawStanding(c, seat)
		return
	case len(rungs) == 0:
		s.drawLadder(c, seat)
		return
	}
	s.rung = max(0, min(s.rung, len(rungs)-1))
	names := rungNames(rungs, w)
	foot := h - 1 // the blocker's row, and above it the canary's where there is room
	if said := canaryWords(seat, w-2); said != "" && h > len(rungs)+1 {
		foot--
		c.PutFit(1, foot, w-2, said, canvas.Fg(canvas.Dim))
	}
	first := max(0, s.rung-(foot-1))
	y := 0
	for ; y < foot && first+y < len(rungs); y++ {
		s.drawRung(c, y, names, rungs[first+y])
		if first+y == s.rung && s.focus == paneLadder {
			view.Choose(c, y)
		}
	}
	// What has no row is counted, beside the last that has one.
	moreRungs(c, y-1, len(rungs)-y)
	s.drawBlocker(c.Sub(canvas.Rect{X: 1, Y: h - 1, W: w - 2, H: 1}), seat)
	if room := foot - y - 2; room > 0 {
		c.HLine(0, y, w, '┄', canvas.Fg(canvas.Border))
		s.drawStory(c.Sub(canvas.Rect{Y: y + 1, W: w, H: room}), seat, rungs[s.rung].ID)
	}
}

// drawActionList lists the actions, and below the chosen one's command and
// output in full.
func (s *seatScreen) drawActionList(c canvas.Canvas, seat *world.Seat) {
	w, h := c.Size()
	actions := s.deeds(seat)
	n := actions.Len()
	if n == 0 || s.action == 0 || h < 8 || s.focus != paneActions {
		s.drawActions(c, seat, 0, -1)
		return
	}
	s.action = min(s.action, n)
	list, detail := c.Bounds().CutTop(min(h/2, n))
	up := max(0, n-s.action-list.H/2)
	up = min(up, max(0, n-list.H))
	s.drawActions(c.Sub(list), seat, up, s.action-1)
	d := c.Sub(detail)
	a := actions.At(s.action - 1)
	result, st := actionResult(a, s.now)
	d.HLine(0, 0, w, '┄', canvas.Fg(canvas.Border))
	head := fmt.Sprintf(" %s  %s  %s  %d bytes ", view.Clock(a.StartMS), a.Channel, view.Span(a.TookMS), a.Bytes)
	if a.Channel == recording.ChannelTold {
		head = fmt.Sprintf(" %s  %s  %d bytes ", view.Clock(a.StartMS), view.Span(a.TookMS), a.Bytes)
	}
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
	output := text.Wrap(a.Output, w-2)
	for _, l := range output {
		d.Put(1, y, l, canvas.Fg(canvas.Text))
		y++
	}
	if left := y - detail.H; left > 0 {
		d.PutRight(w-1, detail.H-1, 24, fmt.Sprintf(" %s more ↓ ", view.Plural(left, "row")), canvas.Fg(canvas.Key))
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
	case keymap.NextPane:
		s.focus = (s.focus + 1) % paneCount
		return nil
	case keymap.PrevPane:
		s.focus = (s.focus + paneCount - 1) % paneCount
		return nil
	case keymap.Right, keymap.Left:
		s.sideways(a == keymap.Right)
		return nil
	case keymap.ZoomIn:
		s.zoom = true
		return nil
	case keymap.ZoomOut:
		s.zoom = false
		return nil
	case keymap.Seat:
		if i := m.seatKey(raw); i >= 0 && i < len(s.world.Seats()) && i != s.seat {
			s.seat, s.action, s.up, s.looks = i, 0, 0, 0
		}
		return nil
	case keymap.Down, keymap.Up, keymap.HalfDown, keymap.HalfUp, keymap.PageDown, keymap.PageUp:
		if seat != nil {
			s.move(seat, a.Stride(10, 20))
		}
		return nil
	case keymap.Open:
		return s.open(m, seat)
	case keymap.Copy:
		if seat != nil && s.focus == paneActions && s.action > 0 && s.action <= s.deeds(seat).Len() {
			return m.copyText(s.deeds(seat).At(s.action - 1).Command)
		}
	case keymap.Console:
		s.focus, s.up = paneConsole, 0
		if seat != nil {
			return s.attach(m, seat.ID, s.machineName(seat))
		}
		return nil
	}
	if cmd, moved := s.moveInTime(m, a); moved {
		return cmd
	}
	return s.act(m, a)
}

// sideways moves the focus to the pane that lies there, and not around: the ladder
// is on the left, the actions above the console on the right.
func (s *seatScreen) sideways(right bool) {
	switch {
	case !right:
		if s.focus != paneLadder {
			s.was = s.focus
		}
		s.focus = paneLadder
	case s.focus == paneLadder:
		s.focus = max(s.was, paneActions)
	}
}

func (s *seatScreen) back() bool {
	was := s.zoom
	s.zoom = false
	return was
}

func (s *seatScreen) move(seat *world.Seat, by int) {
	switch s.focus {
	case paneLadder:
		s.rung += by
	case paneActions:
		n := s.deeds(seat).Len()
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
		if rungs := s.about(seat.ID).rungs; s.rung < len(rungs) {
			return m.push(newEvidence(s.heat, seat.ID, rungs[s.rung].ID))
		}
	case paneConsole:
		if n := len(s.looksOf(seat)); n > 1 {
			s.looks = (s.looks + 1) % n
			s.up = 0
		}
	case paneActions:
		s.zoom = true
		if s.action == 0 {
			s.action = s.deeds(seat).Len()
		}
	}
	return nil
}

func (s *seatScreen) wantsRaw() bool { return s.attached != nil }

func (s *seatScreen) hints() []keymap.Action {
	hints := []keymap.Action{keymap.NextPane, keymap.Down, keymap.Up, keymap.Open, keymap.ZoomIn, keymap.Why, keymap.Transcript}
	if s.personsSeat() != "" {
		hints = append([]keymap.Action{keymap.Sit}, hints...)
	}
	if s.desk.Desk != nil {
		hints = append(hints, keymap.Console, keymap.Desk)
	}
	return append(hints,
		keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.Back,
	)
}
