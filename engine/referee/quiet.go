package referee

// What it takes for a seat to be quiet: so many looks in vain at each milestone
// that is open, and fewer at one whose check disturbs the seat, since nothing but
// that is going on there.
const (
	quietLooks      = 5
	quietDisturbing = 2
)

// PlayersEnded says that nobody plays any more. The race then ends when nothing
// changes in any seat: each milestone that is open has been seen to fail, or revoked,
// five times since then, or since one first passed (twice, where the check disturbs the
// seat, unless the rules are Thorough). What a player left running in its machine has
// that long.
func (r *Race) PlayersEnded() { r.idle.Store(true) }

// still tells whether the seat is quiet. A referee who revoked something may yet
// uphold it.
func (s *seat) still() bool {
	if !s.race.idle.Load() {
		return false
	}
	for i := range s.race.rules.Milestones {
		m := &s.race.rules.Milestones[i]
		g := s.ladder[m.ID]
		need := uint64(quietLooks)
		if g.disturbs && !s.race.rules.Thorough {
			need = quietDisturbing
		}
		switch {
		case s.passed[m.ID] != nil, g.lost, s.voided(m):
		case g.ruled:
			return false
		case !s.stands(m): // and what it rests on is looked at itself
		case !s.settled(m), g.vain < need:
			return false
		}
	}
	return true
}

// stirred forgets the looks in vain: a milestone first passed in the seat, which is not quiet
// from now on, however long the round that showed it still takes.
func (s *seat) stirred() {
	for _, g := range s.ladder {
		g.vain = 0
	}
	s.race.hush(s, false)
}

// hush notes whether a seat is quiet, and ends the race when every seat in it is.
func (r *Race) hush(s *seat, quiet bool) {
	r.mu.Lock()
	s.quiet = quiet
	n := 0
	for _, other := range r.seats {
		if other.quiet && !other.gone {
			n++
		}
	}
	all := quiet && n == r.racing
	r.mu.Unlock()
	if all {
		r.finish("no player is left, and nothing changes any more")
	}
}

// voided tells whether a milestone cannot be decided any more, since a fault that it
// rests on did not bite.
func (s *seat) voided(m *Milestone) bool {
	s.hurts.mu.Lock()
	defer s.hurts.mu.Unlock()
	return s.hurts.void[m.ID]
}

// settled tells whether no fault that a milestone waits for is still to come, and none
// is on the seat.
func (s *seat) settled(m *Milestone) bool {
	_, settled := s.hurts.ready(m)
	return settled
}
