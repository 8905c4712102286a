package tui

import (
	"fmt"

	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// laneNameWidth bounds the names left of the lanes.
const laneNameWidth = 16

// drawLanes draws a strip per seat on the heat's clock, and below them the axis
// with the playhead: what has happened up to the playhead is solid, what a
// recording holds beyond it is faint.
func (h *heat) drawLanes(c canvas.Canvas) {
	w, rows := c.Size()
	if rows < 1 || w < 20 {
		return
	}
	seats := h.world.Seats()
	names := 0
	for _, s := range seats {
		names = max(names, min(laneNameWidth, text.Width(s.ID)))
	}
	per := 1
	var rivals []playback.Lane
	if h.ghost != nil && rows > 2 {
		per, rivals = 2, h.rivals()
		for _, l := range rivals {
			if l.Against != nil {
				names = max(names, min(laneNameWidth, 2+text.Width(h.ghostName(l))))
			}
		}
	}
	canaries := h.canaryLanes(rows)
	if canaries {
		per, names = 2, max(names, text.Width("  writes"))
	}
	right := w - 6
	lanes := min((rows-1)/per, len(seats))
	// With no room for all strips the chosen seat's has its row.
	single := h.ghost == nil && !canaries && h.hasCanary() && rows > 3
	if single {
		lanes, names = min(rows-2, len(seats)), max(names, text.Width("  writes"))
	}
	left := max(1+names+1, 7)
	first := 0
	if h.seat >= lanes {
		first = h.seat - lanes + 1
	}
	end := h.end()
	for lane := range lanes {
		i, y := first+lane, lane*per
		if single && i > h.seat {
			y++
		}
		s := seats[i]
		st := canvas.Fg(seatColor(i))
		if i == h.seat {
			st = st.With(canvas.Bold)
			c.Set(0, y, '▸', canvas.Fg(canvas.Focus))
		}
		c.PutFit(1, y, names, s.ID, st)
		h.drawLane(c.Sub(canvas.Rect{X: left, Y: y, W: right - left, H: 1}), s, end)
		score := s.Points
		if s.Conquest() {
			score = s.Resources
		}
		c.PutRight(w-1, y, 5, fmt.Sprint(score), canvas.Fg(canvas.Title))
		switch {
		case i < len(rivals):
			h.drawGhost(c, y+1, names, left, right, rivals[i], end)
		case canaries, single && i == h.seat:
			h.drawCanary(c, y+1, names, left, right, s, end)
		}
	}
	h.drawAxis(c.Sub(canvas.Rect{X: 0, Y: rows - 1, W: w, H: 1}), left, right, end)
}

// laneRows is what the lanes take of a screen that is about one seat.
func (h *heat) laneRows() int {
	if h.ghost != nil || h.hasCanary() {
		return 3
	}
	return 2
}

// canaryLanes says whether each lane has its canary's strip below it: where there is
// room for both, and no rival stands there.
func (h *heat) canaryLanes(rows int) bool {
	return h.ghost == nil && h.hasCanary() && (rows == 3 || rows-1 >= 2*len(h.world.Seats()))
}

// column is where an instant lies on a lane of w cells that ends at end.
func column(ms, end uint64, w int) int {
	if end == 0 || w < 2 {
		return 0
	}
	return int(min(ms, end) * uint64(w-1) / end)
}

func (h *heat) drawLane(c canvas.Canvas, s *world.Seat, end uint64) {
	w, _ := c.Size()
	now := column(h.now, end, w)
	c.HLine(0, 0, now+1, '─', canvas.Fg(canvas.Dim))
	h.drawSpells(c, s.ID, end)
	// Runs of failures are the stretches in which nothing went forward.
	for _, sp := range s.Spans.All() {
		until := sp.EndMS
		if sp.Open {
			until = h.now
		}
		from, to := column(sp.SinceMS, end, w), column(until, end, w)
		if sp.Count > 1 && to > from {
			c.HLine(from, 0, to-from+1, '┄', canvas.Fg(canvas.Bad))
		}
	}
	h.drawFaults(c, s, end)
	for _, a := range s.Attacks.All() {
		if a.Done {
			c.Set(column(a.EndMS, end, w), 0, '⚔', canvas.Fg(canvas.Warn))
		}
	}
	if h.full != nil {
		if f := h.full.Seat(s.ID); f != nil {
			for i := range f.Milestones {
				if m := &f.Milestones[i]; m.Passed && m.PassedMS > h.now {
					c.Set(column(m.PassedMS, end, w), 0, '·', canvas.Fg(canvas.Dim))
				}
			}
		}
	}
	for _, r := range s.Revocations.All() {
		c.Set(column(r.MS, end, w), 0, '↶', canvas.Fg(canvas.Bad))
	}
	for i := range s.Milestones {
		m := &s.Milestones[i]
		switch {
		case m.Passed:
			c.Set(column(m.PassedMS, end, w), 0, '●', canvas.Fg(canvas.Ok))
		case m.Evaluating:
			c.Set(now, 0, '◐', canvas.Fg(canvas.Accent))
		}
	}
	if s.DurableAtMS != nil {
		c.Set(column(*s.DurableAtMS, end, w), 0, '★', canvas.Fg(canvas.Ok).With(canvas.Bold))
	}
	for _, r := range h.world.Rulings.All() {
		if r.Territory == s.ID {
			c.Set(column(r.MS, end, w), 0, rulingSign, canvas.Fg(canvas.Warn).With(canvas.Bold))
		}
	}
	if s.Unavailable != nil {
		c.Set(column(s.Unavailable.MS, end, w), 0, '✗', canvas.Fg(canvas.Bad))
	}
}

// drawAxis draws the time line with the playhead, and what the player does.
func (h *heat) drawAxis(c canvas.Canvas, left, right int, end uint64) {
	w, _ := c.Size()
	dim := canvas.Fg(canvas.Dim)
	if h.world.Simulated() { // where nothing cuts it, on every screen that shows lanes
		c.PutFit(1, 0, left-2, "simulated", canvas.Fg(canvas.Warn))
	} else {
		c.Put(1, 0, clockShort(0), dim)
	}
	mode := h.mode()
	modeAt := c.PutRight(w-1, 0, w/3, mode, canvas.Fg(canvas.Accent))
	total := clockShort(end)
	stop := modeAt - 2 - len(total)
	if stop <= left+2 {
		return
	}
	lane := min(right, stop-1) - left
	c.HLine(left, 0, lane, '─', dim)
	c.Put(stop, 0, total, dim)
	for _, r := range h.remarks() {
		if x := left + column(r.ms, end, right-left); r.territory == "" && x < left+lane {
			sign, st := r.sign()
			c.Set(x, 0, sign, st)
		}
	}
	// The playhead stands under the lanes' cells, which end at right.
	x := min(left+column(h.now, end, right-left), left+lane-1)
	label := " " + view.Clock(h.now) + " "
	c.Set(x, 0, '▲', canvas.Fg(canvas.Focus).With(canvas.Bold))
	if x+1+len(label) < stop {
		c.Put(x+1, 0, label, canvas.Fg(canvas.Title))
	} else if x-len(label) > left {
		c.Put(x-len(label), 0, label, canvas.Fg(canvas.Title))
	}
}
