package tui

import (
	"context"
	"fmt"

	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/topology"
	"refbox/tui/view"
)

// territoryState is how a territory of a conquest stands, for the node that is called
// as it; false for any other node.
func (h *heat) territoryState(node string) (topology.State, bool) {
	s := h.world.Seat(node)
	if s == nil || !s.Conquest() {
		return topology.Unknown, false
	}
	switch s.State {
	case "healthy":
		return topology.Healthy, true
	case "eliminated":
		return topology.Failed, true
	}
	return topology.Verifying, true
}

// drawSurvival shows how a seat of a conquest stands.
func (h *heat) drawSurvival(c canvas.Canvas, seat *world.Seat) {
	w, _ := c.Size()
	mark, st := stateMark(seat.State)
	right := c.PutRight(w-1, 0, w/2, text.Count(seat.Resources, "resource"), canvas.Fg(canvas.Title).With(canvas.Bold))
	c.PutFit(1, 0, right-2, fmt.Sprintf("%c %s", mark, seat.State), st)
	line := "healthy at " + text.Count(seat.UptimeTicks, "tick")
	if seat.DegradedMS > 0 {
		line += ", degraded for " + view.Span(seat.DegradedMS)
	}
	switch health := seat.LastHealth; {
	case seat.EliminationDetail != nil:
		line, st = *seat.EliminationDetail, canvas.Fg(canvas.Bad)
	case health != nil && !health.Healthy:
		line, st = firstLine(health.Detail), canvas.Fg(canvas.Bad)
	default:
		st = canvas.Fg(canvas.Text)
	}
	c.PutFit(1, 1, w-2, line, st)
}

// stateMark is how a conquest's state is shown.
func stateMark(state string) (rune, canvas.Style) {
	switch state {
	case "healthy":
		return '✓', canvas.Fg(canvas.Ok)
	case "eliminated":
		return '✗', canvas.Fg(canvas.Bad)
	}
	return '◐', canvas.Fg(canvas.Warn)
}

// spell is a stretch of a conquest that a seat spent in one state.
type spell struct {
	ms            uint64
	state, reason string
}

// maxSpells bounds what is kept of one seat that goes up and down.
const maxSpells = 4096

// readSpells gathers the states of a conquest's seats, by territory; nil for any
// other heat.
func readSpells(ctx context.Context, rec *recording.Recording) map[string][]spell {
	any := false
	for _, s := range rec.World(rec.Len()).Seats() {
		any = any || s.Conquest()
	}
	if !any {
		return nil
	}
	out := map[string][]spell{}
	//nolint:errcheck // what could be read is shown
	rec.Events(0, rec.Len(), func(i int, e event.Event) bool {
		if b, ok := e.Body.(event.TerritoryStateChanged); ok && len(out[b.Territory]) < maxSpells {
			out[b.Territory] = append(out[b.Territory], spell{rec.MS(i), b.To, b.Reason})
		}
		return i%4096 != 0 || ctx.Err() == nil
	})
	return out
}

// drawSpells draws on a lane where a seat of a conquest was not well.
func (h *heat) drawSpells(c canvas.Canvas, territory string, end uint64) {
	w, _ := c.Size()
	all := h.spells[territory]
	for i, s := range all {
		if s.ms > h.now {
			break
		}
		until := h.now
		if i+1 < len(all) {
			until = min(until, all[i+1].ms)
		}
		from, to := column(s.ms, end, w), column(until, end, w)
		switch s.state {
		case "healthy", "provisioning":
		case "eliminated":
			c.HLine(from, 0, to-from+1, ' ', canvas.Style{})
			c.Set(from, 0, '✗', canvas.Fg(canvas.Bad).With(canvas.Bold))
		default:
			c.HLine(from, 0, to-from+1, '┄', canvas.Fg(canvas.Bad))
		}
	}
}

// drawStanding shows how a seat of a conquest stands, and how it came there, the
// newest state at the bottom.
func (h *heat) drawStanding(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	h.drawLadder(c.Sub(canvas.Rect{W: w, H: min(2, rows)}), seat)
	var lines []spell
	for _, s := range h.spells[seat.ID] {
		if s.ms <= h.now {
			lines = append(lines, s)
		}
	}
	room := rows - 3
	if room < 1 || len(lines) == 0 {
		return
	}
	c.HLine(0, 2, w, '┄', canvas.Fg(canvas.Border))
	lines = lines[max(0, len(lines)-room):]
	for y, s := range lines {
		mark, st := stateMark(s.state)
		c.Put(1, 3+y, view.Clock(s.ms), canvas.Fg(canvas.Dim))
		c.Set(10, 3+y, mark, st)
		x := c.Put(12, 3+y, text.Line(s.state), st) + 2
		c.PutFit(x, 3+y, max(0, w-1-x), text.Line(s.reason), canvas.Fg(canvas.Text))
	}
}
