package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// deskScreen is the referee's desk: what may be done to the running heat, what
// each does and whether it applies now, and what was ruled so far. Entering one
// asks for what it needs, and for the reason.
type deskScreen struct {
	*heat
	chosen int
	first  int
	of     control.Action // whose milestone is being chosen; "" for none
	rung   int
}

// openDesk goes to the desk of a live heat.
func (h *heat) openDesk(m *model) tea.Cmd {
	if h.desk.Desk == nil || !h.rec.Live() {
		m.say("this heat is not live here: there is nothing to referee")
		return nil
	}
	return m.push(&deskScreen{heat: h})
}

func (s *deskScreen) crumbs() []string { return append(s.heat.crumbs(), "desk") }

func (s *deskScreen) back() bool {
	was := s.of
	s.of = ""
	return was != ""
}

// lacks says why an action does not apply to what is shown; "" when it does. The
// desk has the last word: another referee may be quicker.
func (s *deskScreen) lacks(d control.Description) string {
	w, seat := s.world, s.heat.chosen()
	switch {
	case w.Over() && d.Action != control.Void:
		return "the race is over"
	case d.Seat && seat == nil:
		return "no seat is known yet"
	}
	switch d.Action {
	case control.Pause:
		if w.Pause != nil {
			return "the heat is paused"
		}
	case control.Resume:
		if w.Pause == nil {
			return "the heat is not paused"
		}
	case control.Unavailable:
		if seat.Unavailable != nil {
			return seat.ID + " is unavailable"
		}
	case control.Restore:
		if seat.Unavailable == nil {
			return seat.ID + " is not unavailable"
		}
	case control.Revoke:
		if len(s.rungs(d.Action)) == 0 {
			return seat.ID + " has passed nothing"
		}
	case control.Uphold:
		if len(s.rungs(d.Action)) == 0 {
			return "nothing of " + seat.ID + " is revoked"
		}
	case control.ClearFault:
		if len(seat.ActiveFaults()) == 0 {
			return "no fault is on " + seat.ID
		}
	case control.Void:
		if w.Voided != nil {
			return "the heat is voided"
		}
	}
	return ""
}

// rungs are the chosen seat's milestones that an action is about.
func (s *deskScreen) rungs(a control.Action) []world.Rung {
	seat := s.heat.chosen()
	if seat == nil {
		return nil
	}
	return slices.DeleteFunc(world.Ladder(s.world, s.manifest, seat.ID), func(r world.Rung) bool {
		if a == control.Revoke {
			return r.State != world.RungPassed
		}
		return r.Milestone == nil || r.Milestone.Revoked == 0 || r.State == world.RungPassed
	})
}

func (s *deskScreen) draw(c canvas.Canvas) {
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	seat := ""
	if x := s.heat.chosen(); x != nil {
		seat = "seat " + x.ID
	}
	in := c.Sub(c.Frame(top, canvas.Heavy, "referee's desk · "+text.Line(s.desk.Author), seat, canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	if s.of != "" {
		s.drawRungs(in)
		return
	}
	all := control.Actions()
	s.chosen = max(0, min(s.chosen, len(all)-1))
	words := text.Wrap(all[s.chosen].Does, w-4)
	rows := max(1, min(len(all), h-len(words)-2))
	s.first = max(min(s.first, s.chosen, len(all)-rows), s.chosen-rows+1, 0)
	width := 0
	for _, d := range all {
		width = max(width, text.Width(d.Short))
	}
	// With room to spare each says what it does, not the chosen one alone.
	does := w
	if w >= width+100 {
		does = width + 42
	}
	for y, d := range all[s.first : s.first+rows] {
		st := canvas.Fg(canvas.Text)
		lacks := s.lacks(d)
		if lacks != "" {
			st = canvas.Fg(canvas.Dim)
		}
		x := in.PutFit(2, y, w-3, d.Short, st)
		if lacks != "" {
			in.PutFit(max(x+2, width+4), y, does-width-6, "– "+lacks, canvas.Fg(canvas.Dim))
		} else if d.Seat {
			in.PutFit(max(x+2, width+4), y, does-width-6, s.heat.chosen().ID, canvas.Fg(canvas.Accent))
		}
		in.PutFit(does, y, w-1-does, d.Does, canvas.Fg(canvas.Dim))
		if s.first+y == s.chosen {
			view.Choose(in, y)
		}
	}
	y := rows + 1
	for _, l := range words {
		in.Put(2, y, l, canvas.Fg(canvas.Title))
		y++
	}
	if y++; y+1 < h {
		s.drawRuled(in.Sub(canvas.Rect{X: 0, Y: y, W: w, H: h - y}))
	}
}

// drawRuled lists what was ruled and noted, the newest first.
func (s *deskScreen) drawRuled(c canvas.Canvas) {
	w, h := c.Size()
	all := s.remarks()
	if len(all) == 0 {
		c.PutFit(2, 0, w-3, "nothing has been ruled", canvas.Fg(canvas.Dim))
		return
	}
	c.Put(2, 0, "ruled so far", canvas.Fg(canvas.Dim))
	for y := 1; y < h && y <= len(all); y++ {
		r := all[len(all)-y]
		sign, st := r.sign()
		c.Set(2, y, sign, st)
		x := c.Put(4, y, view.Clock(r.ms), canvas.Fg(canvas.Dim)) + 1
		c.PutFit(x, y, max(0, w-1-x), r.text, canvas.Fg(canvas.Text))
	}
}

func (s *deskScreen) drawRungs(c canvas.Canvas) {
	w, h := c.Size()
	d, _ := control.Describe(s.of)
	c.PutFit(2, 0, w-3, d.Short+": which?", canvas.Fg(canvas.Title).With(canvas.Bold))
	rungs := s.rungs(s.of)
	s.rung = max(0, min(s.rung, len(rungs)-1))
	if len(rungs) == 0 {
		c.PutFit(2, 2, w-3, s.lacks(d), canvas.Fg(canvas.Dim))
		return
	}
	rows := max(1, h-2)
	from := max(0, s.rung-rows+1)
	for y, r := range rungs[from:min(len(rungs), from+rows)] {
		m := rungSign(r.State)
		c.Set(2, y+2, m.Shape, m.Style)
		points := fmt.Sprintf("%d", r.Points)
		at := c.PutRight(w-1, y+2, 8, points, canvas.Fg(canvas.Dim))
		c.PutFit(4, y+2, max(0, at-6), r.ID+"  "+m.Word, canvas.Fg(canvas.Text))
		if from+y == s.rung {
			view.Choose(c, y+2)
		}
	}
}

func (s *deskScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	at := &s.chosen
	if s.of != "" {
		at = &s.rung
	}
	if by := a.Stride(5, 5); by != 0 {
		*at += by
		return nil
	}
	switch a {
	case keymap.Seat:
		if i := m.seatKey(raw); i >= 0 && i < len(s.world.Seats()) {
			s.seat = i
		}
	case keymap.NextPane, keymap.Right:
		s.turnSeat(1)
	case keymap.PrevPane, keymap.Left:
		s.turnSeat(-1)
	case keymap.Open:
		return s.choose(m)
	case keymap.Desk:
		m.pop()
	default:
		if cmd, moved := s.moveInTime(m, a); moved {
			return cmd
		}
		return s.act(m, a)
	}
	return nil
}

// choose goes on with the chosen action: to what it needs, then to its reason.
func (s *deskScreen) choose(m *model) tea.Cmd {
	d := control.Actions()[s.chosen]
	if why := s.lacks(d); why != "" && s.atHead() {
		m.say(d.Short + ": " + why)
		return nil
	}
	if d.Fault {
		return s.openFaults(m)
	}
	r := control.Ruling{Action: d.Action}
	if d.Seat {
		if s.heat.chosen() == nil {
			return nil
		}
		r.Territory = s.heat.chosen().ID
	}
	if d.Milestone {
		rungs := s.rungs(d.Action)
		if s.of == "" || len(rungs) == 0 {
			s.of, s.rung = d.Action, 0
			return nil
		}
		r.Milestone = rungs[max(0, min(s.rung, len(rungs)-1))].ID
		s.of = ""
	}
	if d.Time {
		m.ask("by how long: ", nil, func(m *model, value string) tea.Cmd {
			by, err := time.ParseDuration(value)
			if err != nil {
				m.say("not extended: that is no length of time, as 5m or 90s are")
				return nil
			}
			r.By = by
			s.askReason(m, d, r)
			return nil
		})
		m.prompt.hint = "5m, 90s, 1h"
		return nil
	}
	s.askReason(m, d, r)
	return nil
}

func (s *deskScreen) askReason(m *model, d control.Description, r control.Ruling) {
	label, desk := d.Short+", because: ", s.desk
	// The longest that leaves room for what is typed.
	for _, words := range [][]string{{string(d.Action), cmp.Or(r.Milestone, r.Territory)}, {string(d.Action), r.Milestone, "of", r.Territory}} {
		full := strings.Join(words, " ") + ", because: "
		if d.Seat && (r.Milestone != "" || len(words) == 2) && text.Width(full) <= m.w-30 {
			label = full
		}
	}
	if d.Action == control.AddNote {
		label = "note: "
	}
	m.ask(label, nil, func(m *model, reason string) tea.Cmd {
		r.Reason = reason
		if err := r.Check(); err != nil {
			m.say("nothing done: " + err.Error())
			return nil
		}
		done := false
		m.sayWhile("asked: "+d.Short+" …", func() bool { return !done })
		ctx := m.ctx
		return safe(func() tea.Msg {
			err := control.Do(ctx, desk, desk.Author, r)
			return doneMsg{err: err, then: func(m *model) tea.Cmd {
				if done = true; err == nil {
					m.say("done: " + d.Short)
				}
				return nil
			}}
		})
	})
}

func (s *deskScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.Down, keymap.Up, keymap.Open, keymap.Seat, keymap.PlayPause, keymap.End, keymap.Back}
}

func (s *deskScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }

// rulingWords is a ruling as it is read.
func rulingWords(r world.Ruling) string {
	s := strings.TrimSpace(strings.ReplaceAll(r.Ruling, "_", " ") + " " + r.Territory + " " + r.Milestone)
	if r.Ruling == event.RulingExtended {
		s += " by " + (time.Duration(r.ExtendMS) * time.Millisecond).String()
	}
	return s
}
