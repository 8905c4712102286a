package world

import "refbox/engine/event"

// Canary is the referee's client, by its latest sample.
type Canary struct {
	MS uint64
	event.CanarySample
}

// CanarySpan is a run of writes of the referee's client that ended in the same way.
type CanarySpan struct {
	Outcome        string // acknowledged, failed, indeterminate; mixed for a service that flaps
	FromMS, UptoMS uint64 // the sending of the first, the sample of the last
	Writes         uint64
}

// CanaryResult is what the client measured.
type CanaryResult struct {
	MS    uint64
	Index int
	event.CanaryResult
}

func (s *Seat) sampled(e event.Event, b event.CanarySample) {
	s.Canary = &Canary{e.ElapsedMS, b}
	from, writes := e.ElapsedMS, max(b.Writes, 1)
	if b.SinceMS != nil {
		from = min(*b.SinceMS, from)
	}
	if last, ok := s.CanarySpans.Last(); ok && last.Outcome == b.Outcome {
		sp := s.CanarySpans.edit(s.CanarySpans.Len() - 1)
		sp.UptoMS, sp.Writes = e.ElapsedMS, add(sp.Writes, writes)
		return
	}
	s.CanarySpans.push(CanarySpan{b.Outcome, from, e.ElapsedMS, writes})
}
