package referee

import (
	"context"
	"encoding/json"
	"time"
)

// saveTime is how long saving a seat's state may take, before emulation's factor: what is
// credited of it at most.
const saveTime = time.Second

// save has the seat's state saved if a milestone has passed since the last time. The
// caller has entered the seat. What is decided, or hurt by a fault, is not saved.
func (s *seat) save(timed context.Context) {
	milestone := s.unsaved
	if s.race.rules.Save == nil || s.state == stateDurable || s.race.frozen() {
		s.unsaved = ""
		return
	}
	if milestone == "" || s.hurts.watch()() != "" {
		return
	}
	s.unsaved = ""
	limit := time.Duration(float64(saveTime) * max(1, s.race.rules.Slow))
	s.account.begin(limit)
	s.account.work(s.race.clock())
	within(timed, limit, func(ctx context.Context) error { //nolint:errcheck // it has none
		s.race.rules.Save(ctx, s.id, milestone)
		return nil
	})
	s.account.rest(s.race.clock())
}

// look looks at what was inherited, which is the referee's work.
func (s *seat) look(timed context.Context) {
	var limit time.Duration
	for id := range s.passed {
		limit = max(limit, s.race.rules.milestone(id).Timeout)
	}
	s.account.begin(limit)
	s.account.work(s.race.clock())
	s.recheck(timed, "", s.hurts.watch())
	s.account.rest(s.race.clock())
}

// Inherited is a milestone's standing in another race, of whose state a seat's machines
// are made.
type Inherited struct {
	Attempts uint64 // that were made at it, so that no value is derived twice
	Passed   bool
	Evidence json.RawMessage
}

// Inherit begins a seat with what it had reached in another race. What had passed counts
// from the start, and earns nothing; it is looked at first, and what does not hold on
// these machines is revoked. It is called before Run, at most once per seat.
func (r *Race) Inherit(territory string, from map[string]Inherited) {
	s := r.byID[territory]
	if s == nil {
		return
	}
	s.inherited, s.fresh = map[string]bool{}, true
	for id, x := range from {
		g := s.ladder[id]
		if g == nil {
			continue
		}
		g.attempts = x.Attempts
		if x.Passed {
			s.inherited[id] = true
			s.passed[id] = &pass{evidence: x.Evidence, attempt: x.Attempts}
		}
	}
	r.Nudge(territory)
}
