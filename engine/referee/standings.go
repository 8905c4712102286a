package referee

import (
	"cmp"
	"slices"
	"strings"
)

// decide ranks the seats (recordings reference, section 4.5, with instants that
// have an uncertainty: design, section 5). Durable seats come first, by instant;
// then more points, more milestones, the id. The winner is the first, unless
// another cannot be told apart from it.
func decide(seats []*seat) Outcome {
	var o Outcome
	for _, s := range seats {
		st := Standing{Territory: s.id, State: s.state, Passed: len(s.passed)}
		for _, p := range s.passed {
			st.Points += p.points
		}
		if s.durable != nil {
			at, nb := s.durable.at, s.durable.notBefore
			st.DurableAt, st.NotBefore = &at, &nb
		}
		o.Seats = append(o.Seats, st)
	}
	slices.SortStableFunc(o.Seats, func(a, b Standing) int {
		return cmp.Or(before(a, b), strings.Compare(a.Territory, b.Territory))
	})
	for i := range o.Seats {
		o.Seats[i].Rank = i + 1
		if i > 0 && same(o.Seats[i-1], o.Seats[i]) {
			o.Seats[i].Rank = o.Seats[i-1].Rank
		}
	}
	if len(o.Seats) == 0 {
		return o
	}
	first := o.Seats[0]
	for _, s := range o.Seats[1:] {
		if same(first, s) {
			o.DeadHeat = append(o.DeadHeat, s.Territory)
		}
	}
	switch {
	case first.DurableAt == nil && (len(o.DeadHeat) > 0 || first.Points == 0 || first.State == stateUnavailable):
		o.DeadHeat = nil // nobody got anywhere that others did not
	case len(o.DeadHeat) > 0:
		o.DeadHeat = append(o.DeadHeat, first.Territory)
		slices.Sort(o.DeadHeat)
	default:
		o.Winner = first.Territory
	}
	return o
}

func before(a, b Standing) int {
	switch {
	case a.DurableAt != nil && b.DurableAt != nil:
		if c := cmp.Compare(*a.DurableAt, *b.DurableAt); c != 0 {
			return c
		}
	case a.DurableAt != nil:
		return -1
	case b.DurableAt != nil:
		return 1
	}
	return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(b.Passed, a.Passed))
}

// same tells whether two seats cannot be told apart: the instants at which they
// became durable overlap, or neither did and they got equally far.
func same(a, b Standing) bool {
	if a.DurableAt != nil && b.DurableAt != nil {
		return *a.DurableAt == *b.DurableAt || (*a.NotBefore < *b.DurableAt && *b.NotBefore < *a.DurableAt)
	}
	return a.DurableAt == nil && b.DurableAt == nil && a.Points == b.Points && a.Passed == b.Passed
}
