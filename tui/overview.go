package tui

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// overview is the heat's first screen: the seats side by side, the lanes below.
type overview struct {
	*heat
	zoom  bool // the chosen seat alone
	first int  // the first seat that is shown
	rects []canvas.Rect
}

const (
	minSeatWidth = 36
)

// columns is how many seats stand side by side.
func (o *overview) columns(w int) int {
	if o.zoom {
		return 1
	}
	return max(1, min(len(o.world.Seats()), w/minSeatWidth))
}

func (o *overview) draw(c canvas.Canvas) {
	_, h := c.Size()
	seats := o.world.Seats()
	lanes := min(len(seats), max(1, h/7))
	if o.ghost != nil {
		lanes = min(lanes, max(1, h/8))
	}
	if h < 16 {
		lanes = 1
	}
	switch {
	case o.ghost != nil, h >= tallCanaries && o.hasCanary(): // each has its rival below it, or its canary
		lanes *= 2
	case h >= 16 && o.hasCanary(): // the chosen one has
		lanes++
	}
	lanes++
	low, top := c.Bounds().CutBottom(lanes)
	if all := o.remarks(); len(all) > 0 && h >= 16 {
		var row canvas.Rect
		row, top = top.CutBottom(1)
		o.drawRemark(c.Sub(row), all)
	}
	if h >= 16 && len(o.after) > 0 {
		var low canvas.Rect
		rows := o.afterRows(top.W, max(2, h/5))
		low, top = top.CutBottom(len(rows))
		drawAfter(c.Sub(low), rows)
	}
	if !o.drawAttached(c, top) {
		o.drawSeats(c, top)
	}
	o.drawLanes(c.Sub(low))
}

func (o *overview) drawSeats(c canvas.Canvas, area canvas.Rect) {
	seats := o.world.Seats()
	o.rects = o.rects[:0]
	if len(seats) == 0 {
		o.drawWaiting(c.Sub(area))
		return
	}
	n := o.columns(area.W)
	o.first = max(0, min(o.first, len(seats)-n))
	if o.seat < o.first {
		o.first = o.seat
	}
	if o.seat >= o.first+n {
		o.first = o.seat - n + 1
	}
	x := area.X
	for i := range n {
		w := (area.X + area.W - x) / (n - i)
		r := canvas.Rect{X: x, Y: area.Y, W: w, H: area.H}
		o.rects = append(o.rects, r)
		o.drawSeat(c, r, o.first+i, area.W/n-2, o.first+i == o.seat)
		x += w
	}
	// Seats that have no room are named at the side where they are.
	if at := o.first + n; at < len(seats) {
		r := o.rects[n-1]
		c.PutRight(r.X+r.W-1, r.Y+r.H-1, r.W/2, fmt.Sprintf(" %s ▸ ", beyond(len(seats)-at, at, seats[at].ID)), canvas.Fg(canvas.Key))
	}
	if o.first > 0 {
		r := o.rects[0]
		c.PutFit(r.X+1, r.Y+r.H-1, r.W/2, fmt.Sprintf(" ◂ %s ", beyond(o.first, o.first-1, seats[o.first-1].ID)), canvas.Fg(canvas.Key))
	}
}

// beyond names a seat that is not shown, or says how many there are.
func beyond(n, at int, id string) string {
	if n > 1 {
		return fmt.Sprintf("%d more", n)
	}
	return fmt.Sprintf("%d %s", at+1, id)
}

// drawWaiting is shown before the log names a seat.
func (o *overview) drawWaiting(c canvas.Canvas) {
	w, h := c.Size()
	line := "nothing has happened yet"
	if !o.rec.Complete() {
		line = "reading the log …"
	} else if o.rec.Live() {
		line = "the machines are being prepared …"
	}
	c.PutFit(max(1, (w-text.Width(line))/2), h/2, w-2, line, canvas.Fg(canvas.Dim))
}

func (o *overview) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if o.attached != nil {
		return o.heat.consoleKey(m, a, raw)
	}
	if cmd, moved := o.moveInTime(m, a); moved {
		return cmd
	}
	n := len(o.world.Seats())
	switch a {
	case keymap.Seat:
		if i := m.seatKey(raw); i >= 0 && i < n {
			o.seat = i
		}
	case keymap.NextPane, keymap.Right, keymap.Down:
		if n > 0 {
			o.seat = (o.seat + 1) % n
		}
	case keymap.PrevPane, keymap.Left, keymap.Up:
		if n > 0 {
			o.seat = (o.seat + n - 1) % n
		}
	case keymap.ZoomIn:
		o.zoom = true
	case keymap.ZoomOut:
		o.zoom = false
	case keymap.Open:
		if o.chosen() != nil {
			return m.push(&seatScreen{heat: o.heat})
		}
	default:
		return o.heat.act(m, a)
	}
	return nil
}

func (o *overview) click(m *model, x, y int) tea.Cmd {
	for i, r := range o.rects {
		if r.Contains(x, y) {
			if o.seat == o.first+i {
				return m.push(&seatScreen{heat: o.heat})
			}
			o.seat = o.first + i
		}
	}
	return nil
}

func (o *overview) close() { o.release() }

func (o *overview) back() bool {
	was := o.zoom
	o.zoom = false
	return was
}

func (o *overview) wantsRaw() bool { return o.attached != nil }

func (o *overview) leave(m *model) bool { return o.askToLeave(m) }

func (o *overview) hints() []keymap.Action {
	hints := []keymap.Action{
		keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.MarkBack, keymap.MarkNext, keymap.NextPane,
		keymap.Open, keymap.Why, keymap.Transcript,
	}
	if h := o.report; len(h.Findings) > 0 {
		hints = append(hints, keymap.Integrity)
	}
	if o.personsSeat() != "" {
		hints = append([]keymap.Action{keymap.Sit}, hints...)
	}
	if s := o.chosen(); s != nil && s.States.Len() > 0 && !o.rec.Live() {
		hints = append(hints, keymap.Branch)
	}
	if o.desk.Desk != nil {
		hints = append(hints, keymap.Desk, keymap.Fault, keymap.Console, keymap.Note)
	}
	return append(hints, keymap.Slower, keymap.Faster, keymap.End, keymap.Leave)
}

// atHead says whether the newest of everything is shown.
func (h *heat) atHead() bool {
	s := h.play.State(h.wall, h.head(h.wall))
	return s == playback.Following || s == playback.Ended
}

// act handles the keys that mean the same on every screen of a heat.
func (h *heat) act(m *model, a keymap.Action) tea.Cmd {
	seat := h.chosen()
	switch a {
	case keymap.Why:
		if seat != nil {
			return m.push(newWhy(h, seat.ID))
		}
	case keymap.Transcript:
		return h.transcript(m, seat)
	case keymap.Console:
		if seat != nil {
			return h.attach(m, seat.ID, h.firstMachine(seat.ID))
		}
	case keymap.Sit, keymap.Detach:
		return h.sit(m, a == keymap.Detach)
	case keymap.Branch:
		return h.branch(m)
	case keymap.Note:
		if h.desk.Desk == nil {
			m.say("this heat is not live here: a note has no log to go into")
			return nil
		}
		m.ask("note: ", nil, func(m *model, value string) tea.Cmd {
			if value == "" {
				return nil
			}
			ctx, desk := m.ctx, h.desk
			return safe(func() tea.Msg {
				if err := desk.Note(ctx, desk.Author, value); err != nil {
					return doneMsg{err: err}
				}
				return doneMsg{notice: "noted"}
			})
		})
	case keymap.Integrity:
		return m.push(&integrityScreen{heat: h})
	case keymap.EndHeat:
		return h.askToEnd(m)
	case keymap.Desk:
		return h.openDesk(m)
	case keymap.Fault:
		return h.openFaults(m)
	case keymap.Copy:
		if seat != nil {
			return m.copyText(h.explain(seat.ID).Headline)
		}
	}
	return nil
}

func (h *heat) askToEnd(m *model) tea.Cmd {
	if h.desk.Desk == nil || !h.rec.Live() {
		m.say("this heat is not live here: there is nothing to end")
		return nil
	}
	m.ask("end the heat, because: ", nil, func(m *model, reason string) tea.Cmd {
		if reason == "" {
			m.say("not ended: a reason is needed, it goes into the log")
			return nil
		}
		ctx, desk := m.ctx, h.desk
		return safe(func() tea.Msg {
			if err := desk.End(ctx, desk.Author, reason); err != nil {
				return doneMsg{err: err}
			}
			return doneMsg{then: func(m *model) tea.Cmd {
				m.sayWhile("ending the heat …", func() bool { return !h.world.Over() })
				return nil
			}}
		})
	})
	return nil
}

func (o *overview) advance(now time.Time) time.Duration { return o.heat.advance(now) }
