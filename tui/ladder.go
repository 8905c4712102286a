package tui

import (
	"fmt"
	"strings"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// pointsOf are a rung's points; "" where they are not known: without a manifest
// only a pass tells them. What was inherited earned none.
func (h *heat) pointsOf(r world.Rung) string {
	if r.Milestone != nil && r.Milestone.Inherited {
		return "0"
	}
	if h.manifest == nil && r.State != world.RungPassed {
		return ""
	}
	return fmt.Sprint(r.Points)
}

// drawLadder draws the rungs with the points, and below them what blocks the
// next one.
func (h *heat) drawLadder(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	if rows == 0 {
		return
	}
	rungs := h.about(seat.ID).rungs
	if len(rungs) == 0 && seat.Conquest() {
		h.drawSurvival(c, seat)
		return
	}
	total := uint64(0)
	for _, r := range rungs {
		total += r.Points
	}
	score := fmt.Sprintf("%d/%d", seat.Points, total)
	if h.manifest == nil {
		score = fmt.Sprint(seat.Points)
	}
	right := c.PutRight(w-1, 0, w-2, score, canvas.Fg(canvas.Title).With(canvas.Bold))
	x := 1
	for i, r := range rungs {
		m := rungSign(r.State)
		label := string(m.Shape) + h.pointsOf(r)
		more := 0
		if i < len(rungs)-1 {
			more = 2 // room to say that there are more
		}
		if x+text.Width(label)+more > right-1 {
			c.Put(x, 0, "…", canvas.Fg(canvas.Dim))
			break
		}
		st := m.Style
		if r.State == world.RungPassed || r.State == world.RungFailing {
			st = st.With(canvas.Bold)
		}
		x = c.Put(x, 0, label, st) + 1
	}
	if rows > 1 {
		h.drawBlocker(c.Sub(canvas.Rect{X: 1, Y: 1, W: w - 2, H: rows - 1}), seat)
	}
}

// drawRungList lists the milestones with their names, where there is room but no
// picture of the arena.
func (h *heat) drawRungList(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	rungs := h.about(seat.ID).rungs
	if len(rungs) == 0 {
		c.PutFit(1, 0, w-2, "this recording shows no topology", canvas.Fg(canvas.Dim))
		return
	}
	names := rungNames(rungs, w)
	for y := 0; y < rows && y < len(rungs); y++ {
		h.drawRung(c, y, names, rungs[y])
	}
	moreRungs(c, rows-1, len(rungs)-rows)
	if rows > len(rungs) {
		c.PutFit(1, rows-1, w-2, "this recording names no topology", canvas.Fg(canvas.Dim))
	}
}

// moreRungs says at the end of a ladder's last row how many have none.
func moreRungs(c canvas.Canvas, y, n int) {
	if w, _ := c.Size(); n > 0 && y >= 0 {
		c.PutRight(w-1, y, w/2, fmt.Sprintf(" +%d more", n), canvas.Fg(canvas.Key))
	}
}

// rungNames is the width of the column of names, in w columns: the word of a state
// fits behind it.
func rungNames(rungs []world.Rung, w int) int {
	n := 0
	for _, r := range rungs {
		n = max(n, text.Width(r.ID))
	}
	return min(n, w*3/5, w-len("locked")-10)
}

// drawRung draws a milestone's row: state, name, points, when or why not.
func (h *heat) drawRung(c canvas.Canvas, y, names int, r world.Rung) {
	w, _ := c.Size()
	m := rungSign(r.State)
	c.Set(1, y, m.Shape, m.Style.With(canvas.Bold))
	c.PutFit(3, y, names, r.ID, canvas.Fg(canvas.Text))
	c.PutRight(3+names+4, y, 3, h.pointsOf(r), canvas.Fg(canvas.Dim))
	room := w - 1 - (3 + names + 6)
	c.PutFit(3+names+6, y, room, h.rungDetail(r, room < 16), m.Style)
}

// rungDetail is a rung's story in a line, or in a word.
func (h *heat) rungDetail(r world.Rung, brief bool) string {
	m := r.Milestone
	word := rungSign(r.State).Word
	if m == nil {
		return word
	}
	tries := ""
	if m.Attempts > 1 {
		tries = fmt.Sprintf(" after %s", text.Count(m.Attempts, "attempt"))
	}
	switch {
	case !brief:
	case r.State == world.RungPassed && m.Inherited:
		return "earlier"
	case r.State == world.RungPassed:
		return clockShort(m.PassedMS)
	case r.State == world.RungFailing:
		return fmt.Sprintf("×%d", m.Failures)
	case r.State == world.RungVerifying:
		return view.Span(h.now - min(h.now, m.StartedMS))
	}
	switch r.State {
	case world.RungPassed:
		if m.Inherited {
			return "inherited, for no points"
		}
		return "passed " + view.Clock(m.PassedMS) + tries
	case world.RungRevoked:
		return word
	case world.RungFailing:
		return fmt.Sprintf("%s ×%d: %s", word, m.Failures, firstLine(m.Failure.Detail))
	case world.RungVerifying:
		return "verifying " + view.Span(h.now-min(h.now, m.StartedMS))
	}
	return word
}

// drawBlocker says what keeps the seat: the referee's attack, the run of equal
// failures folded to one line, or what is being verified. The note is the
// number, the words wrap into the rows that there are.
func (h *heat) drawBlocker(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	line, note, st := h.blocker(seat)
	room := w
	if note != "" {
		room = c.PutRight(w, 0, w, note, canvas.Fg(canvas.Dim)) - 1
	}
	if rows < 2 || text.Width(line) <= room {
		c.PutFit(0, 0, room, line, st)
		return
	}
	first := text.Wrap(line, max(1, room))[0]
	c.Put(0, 0, first, st)
	rest := text.Wrap(strings.TrimSpace(strings.TrimPrefix(line, first)), w)
	for y := 1; y < rows && y <= len(rest); y++ {
		l := rest[y-1]
		if y == rows-1 && y < len(rest) {
			l += text.Ellipsis
		}
		c.PutFit(0, y, w, l, st)
	}
}

func (h *heat) blocker(seat *world.Seat) (line, note string, st canvas.Style) {
	about := h.about(seat.ID)
	attacks := seat.RunningAttacks()
	over := h.world.Over()
	switch {
	case seat.Unavailable != nil:
		return "unavailable: " + seat.Unavailable.Detail, view.Clock(seat.Unavailable.MS), canvas.Fg(canvas.Bad)
	case seat.DurableAtMS != nil:
		at := *seat.DurableAtMS
		if seat.Durable != nil {
			at = seat.Durable.At
		}
		return "durable", view.Clock(at), canvas.Fg(canvas.Ok)
	case len(seat.ActiveFaults()) > 0 && !over:
		on := seat.ActiveFaults()
		f := on[len(on)-1]
		return fmt.Sprintf("%c fault %s on %s, %s, by %s", faultSign, f.Fault, f.Target, f.State, f.Author), view.Span(h.now - min(h.now, f.InjectedMS)), faultStyle(f)
	case len(attacks) > 0 && !over:
		a := attacks[len(attacks)-1]
		return "attack: " + a.Attack, view.Span(h.now - min(h.now, a.StartMS)), canvas.Fg(canvas.Warn)
	case about.blocked:
		b := about.blocker
		note = view.Span(b.For(h.world))
		if b.Count > 1 {
			note = fmt.Sprintf("×%d %s", b.Count, note)
		}
		return b.Milestone + ": " + firstLine(b.Detail), note, canvas.Fg(canvas.Bad)
	}
	for _, r := range about.rungs {
		switch {
		case over && r.State != world.RungPassed:
			return r.ID + ": not reached", "", canvas.Fg(canvas.Dim)
		case r.State == world.RungVerifying && r.Milestone != nil:
			return "verifying " + r.ID, view.Span(h.now - min(h.now, r.Milestone.StartedMS)), canvas.Fg(canvas.Accent)
		}
	}
	for _, r := range about.rungs {
		if r.State == world.RungPending || r.State == world.RungRevoked {
			return "next " + r.ID, "", canvas.Fg(canvas.Dim)
		}
	}
	return "", "", canvas.Fg(canvas.Dim)
}
