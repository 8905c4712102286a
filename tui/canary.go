package tui

import (
	"fmt"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
)

// The referee's client writes to a seat for the whole heat. Its strip stands below the
// seat's lane, on the same clock.

// tallCanaries is the height from which on the overview has room for all strips; below
// it shows the chosen seat's.
const tallCanaries = 45

// Signs of a strip, told apart by shape.
const (
	signAcknowledged  = '━'
	signFailed        = '×'
	signIndeterminate = '?'
	signMixed         = '≈'
)

// hasCanary says whether a canary's writes are in what has been read of the heat.
func (h *heat) hasCanary() bool {
	for _, s := range h.world.Seats() {
		if s.Canary != nil {
			return true
		}
	}
	return false
}

// drawCanary draws a seat's strip, its name on the left, and on the right what is known
// of the loss: the number of lost writes once they were read back, and before that of
// those that are acknowledged.
func (h *heat) drawCanary(c canvas.Canvas, y, names, left, right int, s *world.Seat, end uint64) {
	if s.Canary == nil {
		return
	}
	w, _ := c.Size()
	c.PutFit(1, y, names, "  writes", canvas.Fg(canvas.Dim))
	room := right - left
	strip := c.Sub(canvas.Rect{X: left, Y: y, W: room, H: 1})
	until := h.now
	if f := h.world.FinishedMS; f != nil {
		until = min(until, *f)
	}
	draw := func(served bool) {
		for i, sp := range s.CanarySpans.All() {
			if (sp.Outcome == "acknowledged") != served {
				continue
			}
			upto := sp.UptoMS
			if i == s.CanarySpans.Len()-1 {
				upto = max(upto, until) // it goes on until another is told
			}
			sign, st := canarySign(sp.Outcome)
			from, to := column(sp.FromMS, end, room), column(min(upto, max(until, sp.FromMS)), end, room)
			for x := from; x <= to; x++ {
				strip.Set(x, 0, sign, st)
			}
		}
	}
	draw(true)
	draw(false) // an outage is shown however short
	word, st := fmt.Sprint(s.Canary.Acknowledged), canvas.Fg(canvas.Dim)
	if r := s.CanaryResult; r != nil {
		switch {
		case r.Lost > 0:
			word, st = fmt.Sprintf("−%d", r.Lost), canvas.Fg(canvas.Bad).With(canvas.Bold)
		case r.Unread > 0:
			word, st = "?", canvas.Fg(canvas.Warn)
		case r.Acknowledged > 0:
			word, st = "−0", canvas.Fg(canvas.Ok)
		}
	}
	c.PutRight(w-1, y, 5, word, st)
}

func canarySign(outcome string) (rune, canvas.Style) {
	switch outcome {
	case "acknowledged":
		return signAcknowledged, canvas.Fg(canvas.Ok)
	case "failed":
		return signFailed, canvas.Fg(canvas.Bad)
	case "mixed":
		return signMixed, canvas.Fg(canvas.Warn)
	}
	return signIndeterminate, canvas.Fg(canvas.Warn)
}

// canaryWords is the canary's row on the screen of one seat; "" where there is none.
func canaryWords(s *world.Seat, room int) string {
	c := s.Canary
	switch {
	case c == nil:
		return ""
	case s.CanaryResult != nil:
		r := s.CanaryResult
		return text.Truncate("writes lost: "+r.LossWords()+" · outage: "+r.OutageWords(), room, text.Ellipsis)
	}
	return text.Truncate(fmt.Sprintf("writes: %d acknowledged · %d failed · %d indeterminate", c.Acknowledged, c.Failed, c.Indeterminate), room, text.Ellipsis)
}
