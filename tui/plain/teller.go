package plain

import (
	"fmt"

	"refbox/engine/event"
)

// Teller tells events in their order and folds what repeats: of a milestone that
// fails in the same way again and again the first failure is told, and how often
// and for how long it was so once something changes, or at the end. A check that
// follows a failure, and an attack that came out as it had before, say nothing new
// and are left out. Of the canary's samples those are told with which a seat begins
// or ceases to acknowledge writes; of a conquest's probes those that found what the one
// before had not, and of its resources what a tick did not bring. Seats and milestones
// are folded each by itself. The zero value is ready.
type Teller struct {
	rungs map[rungID]*rung
	order []*rung           // by their first event
	serve map[string]bool   // seats whose latest write of the canary's was acknowledged
	found map[string]string // what the latest probe of a conquest's territory found
}

type rungID struct{ territory, milestone string }

// rung is what was told of a milestone since it passed, or since the start.
type rung struct {
	last        event.MilestoneFailed
	count       int // of equal failures; 0 when it does not fail
	first, upto uint64
	attacks     map[string]bool // those that have been told, with how they ended
}

// maxAttacks bounds what is remembered of a milestone.
const maxAttacks = 100

// Next tells one event: the lines that are due, none for a mere repeat.
func (t *Teller) Next(e event.Event) []string {
	var lines []string
	switch b := e.Body.(type) {
	case event.CanarySample:
		if serves := b.Outcome == "acknowledged"; serves == t.serve[b.Territory] {
			return nil
		} else if t.serve == nil {
			t.serve = map[string]bool{b.Territory: serves}
		} else {
			t.serve[b.Territory] = serves
		}
	case event.HealthObserved:
		what := "well"
		if !b.Healthy {
			what = "not: " + b.Detail
		}
		if t.found[b.Territory] == what {
			return nil
		}
		if t.found == nil {
			t.found = map[string]string{}
		}
		t.found[b.Territory] = what
	case event.ResourcesChanged:
		if b.Reason == "healthy tick" {
			return nil
		}
	case event.MilestoneEvaluationStarted:
		if t.rung(b.Territory, b.Milestone).count > 0 {
			return nil
		}
	case event.AttackStarted:
		if !t.rung(b.Territory, b.Milestone).news("began: " + b.Attack) {
			return nil
		}
	case event.AttackFinished:
		if !t.rung(b.Territory, b.Milestone).news(fmt.Sprint(b.Held, b.Attack, ": ", b.Detail)) {
			return nil
		}
	case event.MilestoneFailed:
		r := t.rung(b.Territory, b.Milestone)
		if r.count > 0 && r.last.Category == b.Category && r.last.Detail == b.Detail {
			r.count++
			r.upto = e.ElapsedMS
			return nil
		}
		lines = r.sum(lines, e.ElapsedMS)
		r.last, r.count, r.first, r.upto = b, 1, e.ElapsedMS, e.ElapsedMS
	case event.MilestonePassed:
		lines = t.rung(b.Territory, b.Milestone).end(lines, e.ElapsedMS)
	case event.MilestoneRevoked:
		lines = t.rung(b.Territory, b.Milestone).end(lines, e.ElapsedMS)
	case event.MatchFinished:
		lines = t.End(e.ElapsedMS)
	}
	return append(lines, Line(e))
}

// End tells what is still folded when nothing more comes; elapsedMS is the clock
// then.
func (t *Teller) End(elapsedMS uint64) (lines []string) {
	for _, r := range t.order {
		lines = r.sum(lines, elapsedMS)
		r.count = 0
	}
	return lines
}

func (t *Teller) rung(territory, milestone string) *rung {
	id := rungID{territory, milestone}
	r := t.rungs[id]
	if r == nil {
		r = &rung{attacks: map[string]bool{}}
		if t.rungs == nil {
			t.rungs = map[rungID]*rung{}
		}
		t.rungs[id] = r
		t.order = append(t.order, r)
	}
	return r
}

// news remembers an attack, and tells whether it was new.
func (r *rung) news(attack string) bool {
	known := r.attacks[attack]
	if len(r.attacks) < maxAttacks {
		r.attacks[attack] = true
	}
	return !known
}

// sum adds how long it failed as it did, if more than once.
func (r *rung) sum(lines []string, elapsedMS uint64) []string {
	if r.count < 2 {
		return lines
	}
	return append(lines, row(elapsedMS, r.last.Territory, fmt.Sprintf("%s ×%d for %.1f s", failed(r.last), r.count, float64(r.upto-min(r.first, r.upto))/1000)))
}

func (r *rung) end(lines []string, elapsedMS uint64) []string {
	lines = r.sum(lines, elapsedMS)
	r.count, r.attacks = 0, map[string]bool{}
	return lines
}
