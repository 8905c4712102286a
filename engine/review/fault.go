package review

import (
	"fmt"
	"slices"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/world"
)

// scheduled derives when a scheduled fault was due in a seat, and that it was due there,
// from the arena's schedule and the revealed seed.
func (x *reviewer) scheduled(i int, e event.Event, b event.FaultInjected) {
	v := Verdict{Territory: b.Territory, Kind: "fault", SameVerifier: true, Ruled: Finding{Verdict: b.Schedule}}
	if b.PlannedMS != nil {
		v.Ruled.Reason = due(*b.PlannedMS)
	}
	defer func() { x.add(i, e, v) }()
	at := -1
	if x.manifest != nil {
		at = slices.IndexFunc(x.manifest.Faults, func(f arena.Fault) bool { return f.ID == b.Schedule })
	}
	switch {
	case at < 0:
		v.Status, v.Why = Insufficient, "the recorded manifest has no such fault"
		return
	case x.secret == nil:
		v.Status, v.Why = Insufficient, "the heat's secret seed was not recorded"
		return
	}
	f, from := x.manifest.Faults[at], uint64(0)
	if f.After != nil {
		// The first passing is what it waited for; a later one, after a revocation, hides it.
		var m *world.Milestone
		if s := x.w.Seat(b.Territory); s != nil {
			m = s.Milestone(*f.After)
		}
		switch {
		case m != nil && m.Revoked > 0:
			v.Status, v.Why = Insufficient, *f.After+" was revoked meanwhile"
			return
		case m == nil || !m.Passed:
			v.compare(Finding{Verdict: b.Schedule, Reason: *f.After + " had not passed"})
			return
		}
		from = m.PassedMS
	}
	got := Finding{Verdict: b.Schedule, Reason: due(from + f.Moment(x.secret.Draw))}
	switch {
	case !slices.Contains(x.manifest.Hit(f, x.secret.Draw), b.Territory):
		got.Reason = "another seat is drawn"
	case b.PlannedMS != nil && e.ElapsedMS < *b.PlannedMS:
		got.Reason += ", and it came before"
	}
	v.compare(got)
}

func due(ms uint64) string { return fmt.Sprintf("due at %d ms", ms) }
