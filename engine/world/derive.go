package world

import (
	"cmp"
	"slices"

	"refbox/engine/arena"
)

// Standing is a seat's place.
type Standing struct {
	Rank      int // from 1; seats that cannot be told apart share one
	Territory string
	Agent     string
	Durable   *Instant
	Points    uint64
	Passed    int
	Decoys    int // planted decoys that its player used: a mark, no rank
	// Tied are the other territories of the same rank, by id. Two durable seats
	// that share a rank are a dead heat.
	Tied []string
}

// DeadHeat says that the seat became durable at an instant that cannot be told
// from another seat's.
func (s Standing) DeadHeat() bool { return s.Durable != nil && len(s.Tied) > 0 }

// Standings ranks the seats, best first.
//
// Durable seats come before the others. Among them, one whose instant lies
// certainly before another's is ranked before it; those that nobody is certainly
// before share a rank (design: section 5). Where no instant carries an
// uncertainty, as in the reference's logs, equal instants are ranked by points
// and then by milestones passed, and seats that are not durable always are
// (recordings reference, section 4.5), unavailable ones last. A conquest is ranked by survival, uptime,
// resources and degraded time (section 4.7). Ids order what shares a rank.
func Standings(w *World) []Standing {
	var durable, rest []*Seat
	conquest := false
	for _, s := range w.seats {
		conquest = conquest || s.Conquest()
		if s.Durable != nil && s.CompetitorState == "durable" {
			durable = append(durable, s)
		} else {
			rest = append(rest, s)
		}
	}
	out := make([]Standing, 0, len(w.seats))
	for len(durable) > 0 {
		var group []*Seat
		first := slices.MinFunc(durable, func(a, b *Seat) int { return cmp.Compare(a.Durable.At, b.Durable.At) })
		durable = slices.DeleteFunc(durable, func(s *Seat) bool {
			if first.Durable.Before(*s.Durable) {
				return false
			}
			group = append(group, s)
			return true
		})
		if slices.ContainsFunc(group, func(s *Seat) bool { return s.Durable.NotBefore != nil }) {
			out = appendRank(out, group)
		} else {
			out = appendRanked(out, group, byPoints)
		}
	}
	if conquest {
		return appendRanked(out, rest, bySurvival)
	}
	return appendRanked(out, rest, byPoints)
}

// byPoints puts a seat that is out of the race behind those in it, so that what it
// reached is in nobody's way.
func byPoints(a, b *Seat) int {
	out := func(s *Seat) int {
		if s.Unavailable != nil {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(out(a), out(b)), cmp.Compare(b.Points, a.Points), cmp.Compare(b.Passed(), a.Passed()))
}

// appendRanked gives each run of equal seats one rank.
func appendRanked(out []Standing, seats []*Seat, order func(a, b *Seat) int) []Standing {
	slices.SortStableFunc(seats, order)
	for len(seats) > 0 {
		n := 1
		for n < len(seats) && order(seats[0], seats[n]) == 0 {
			n++
		}
		out = appendRank(out, seats[:n])
		seats = seats[n:]
	}
	return out
}

// appendRank gives seats that are sorted by id one rank.
func appendRank(out []Standing, seats []*Seat) []Standing {
	rank := len(out) + 1
	for _, s := range seats {
		st := Standing{Rank: rank, Territory: s.ID, Agent: s.Agent, Durable: s.Durable, Points: s.Points, Passed: s.Passed(), Decoys: s.Decoys.Len()}
		for _, other := range seats {
			if other != s {
				st.Tied = append(st.Tied, other.ID)
			}
		}
		out = append(out, st)
	}
	return out
}

// Winner is the territory that the standings put alone in front; "" when several
// share the first rank, or when nobody has done anything.
func Winner(standings []Standing) string {
	if len(standings) == 0 || len(standings[0].Tied) > 0 {
		return ""
	}
	return standings[0].Territory
}

// RungState is a milestone's state on a seat's ladder.
type RungState string

// States of a rung.
const (
	RungLocked    RungState = "locked"    // what it depends on has not passed
	RungPending   RungState = "pending"   // eligible, not tried yet
	RungVerifying RungState = "verifying" // an evaluation runs
	RungFailing   RungState = "failing"   // the last evaluation failed
	RungPassed    RungState = "passed"
	RungRevoked   RungState = "revoked" // passed once, taken back, not tried since
	RungVoid      RungState = "void"    // the fault that it rests on did not bite: it can't be passed
)

// Rung is one milestone of a seat's ladder.
type Rung struct {
	ID     string
	Name   string
	Points uint64
	State  RungState
	// Milestone is the seat's state on it; nil when it was never evaluated.
	Milestone *Milestone
}

// Ladder is a seat's milestones in the manifest's order. Without a manifest (many
// recordings lack one) it is what any seat was evaluated on, in the order in
// which that happened first. Nil for a seat that there is not.
func Ladder(w *World, m *arena.Manifest, territory string) []Rung {
	s := w.Seat(territory)
	if s == nil {
		return nil
	}
	var out []Rung
	if m != nil && m.Build != nil {
		for _, spec := range m.Build.Milestones {
			locked := awaitsFault(s, m, spec.ID)
			for _, dep := range spec.DependsOn {
				if d := s.Milestone(dep); d == nil || !d.Passed {
					locked = true
				}
			}
			out = append(out, rung(s, spec.ID, spec.DisplayName, spec.Points, locked))
		}
		return out
	}
	for _, id := range seen(w) {
		// Without the manifest what a milestone depends on is not known; one
		// that was never tried has not been reached.
		points := uint64(0)
		for _, other := range w.seats {
			if o := other.Milestone(id); o != nil && o.Points > 0 {
				points = o.Points
			}
		}
		out = append(out, rung(s, id, id, points, s.Milestone(id) == nil))
	}
	return out
}

func rung(s *Seat, id, name string, points uint64, locked bool) Rung {
	r := Rung{ID: id, Name: name, Points: points, Milestone: s.Milestone(id)}
	m := r.Milestone
	_, void := s.Void(id)
	switch {
	case m != nil && m.Passed:
		r.State = RungPassed
	case void:
		r.State = RungVoid
	case m != nil && m.Evaluating:
		r.State = RungVerifying
	case m != nil && m.Failing:
		r.State = RungFailing
	case m != nil && m.Revoked > 0:
		r.State = RungRevoked
	case locked:
		r.State = RungLocked
	default:
		r.State = RungPending
	}
	return r
}

// seen are the milestones of all seats by first evaluation.
func seen(w *World) []string {
	type first struct {
		id   string
		ms   uint64
		rank int // within its seat: all first evaluations of one tick have one clock
	}
	var all []first
	for _, s := range w.seats {
		for i, m := range s.Milestones {
			at := slices.IndexFunc(all, func(f first) bool { return f.id == m.ID })
			if at < 0 {
				all = append(all, first{m.ID, m.FirstMS, i})
				continue
			}
			all[at].ms = min(all[at].ms, m.FirstMS)
			all[at].rank = max(all[at].rank, i)
		}
	}
	slices.SortStableFunc(all, func(a, b first) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.ms, b.ms))
	})
	ids := make([]string, len(all))
	for i, f := range all {
		ids[i] = f.id
	}
	return ids
}

// Blocker is what keeps a seat from its next milestone: the open run of equal
// failures.
type Blocker struct {
	Span
	Name     string // the milestone's display name
	Attempts uint64
	// Verifying says that the next attempt runs.
	Verifying bool
}

// For is how long the run has lasted at the world's clock, in milliseconds.
func (b Blocker) For(w *World) uint64 { return w.ElapsedMS - min(w.ElapsedMS, b.SinceMS) }

// BlockerOf is the failing milestone that comes first on the seat's ladder; false
// when nothing fails.
func BlockerOf(w *World, m *arena.Manifest, territory string) (Blocker, bool) {
	s := w.Seat(territory)
	if s == nil {
		return Blocker{}, false
	}
	for _, r := range Ladder(w, m, territory) {
		if r.State == RungPassed {
			continue
		}
		if span, ok := s.Span(r.Milestone); ok {
			return Blocker{Span: span, Name: r.Name, Attempts: r.Milestone.Attempts, Verifying: r.Milestone.Evaluating}, true
		}
	}
	return Blocker{}, false
}

// Outcome says how the heat went for a seat, from evidence rather than from the
// reference's failure source, which calls lost races failures (recordings
// reference, 10.10).
type Outcome string

// Outcomes.
const (
	OutcomeOpen        Outcome = "open"        // the heat runs
	OutcomeWon         Outcome = "won"         // the heat's winner
	OutcomeDeadHeat    Outcome = "dead_heat"   // durable, not to be told from another seat
	OutcomeDurable     Outcome = "durable"     // durable, not first
	OutcomeOutraced    Outcome = "outraced"    // somebody else was durable first: no failure
	OutcomeIncomplete  Outcome = "incomplete"  // nobody became durable in time
	OutcomeUnavailable Outcome = "unavailable" // the seat could not go on
	OutcomeEliminated  Outcome = "eliminated"
	OutcomeStanding    Outcome = "standing" // a conquest's territory stood at the end, and did not win
	OutcomeAborted     Outcome = "aborted"
	OutcomeVoided      Outcome = "voided" // a referee ruled that the heat counts for nobody
)

// OutcomeOf judges one seat.
func OutcomeOf(w *World, territory string) Outcome {
	s := w.Seat(territory)
	switch {
	case s == nil || !w.Over():
		return OutcomeOpen
	case w.Voided != nil:
		return OutcomeVoided
	case w.Winner != nil && *w.Winner == territory:
		return OutcomeWon
	case slices.Contains(w.DeadHeat, territory):
		return OutcomeDeadHeat
	case s.Durable != nil && s.CompetitorState == "durable":
		return OutcomeDurable
	case s.State == "eliminated":
		return OutcomeEliminated
	case s.Unavailable != nil:
		return OutcomeUnavailable
	case w.MatchState == Aborted:
		return OutcomeAborted
	case s.Conquest():
		return OutcomeStanding
	}
	for _, other := range w.seats {
		if other.Durable != nil {
			return OutcomeOutraced
		}
	}
	return OutcomeIncomplete
}
