package season

import (
	"cmp"
	"slices"
	"strings"
)

// Tally is the week's standings, recomputed from its rounds (seasons reference,
// section 1.9). Models come from the entrants. In a week that is not over it is
// what has been reached so far.
func Tally(rounds []Round, fleet []Entrant) []Standing {
	byID := map[string]*Standing{}
	order := []*Standing{}
	get := func(id string) *Standing {
		s := byID[id]
		if s == nil {
			s = &Standing{FleetID: id, ReachedRound: 1}
			byID[id] = s
			order = append(order, s)
		}
		return s
	}
	for _, e := range fleet {
		get(e.ID).Model = e.Model
	}
	costs := map[string]*costKnown{}
	spend := func(seats []Seat) {
		for _, s := range seats {
			get(s.FleetID).CostMicroUSD += s.CostMicroUSD
			if costs[s.FleetID] == nil {
				costs[s.FleetID] = &costKnown{all: true, each: true}
			}
			costs[s.FleetID].add(s.CostComplete)
		}
	}
	reached := func(id string, round int) {
		if s := get(id); s.ReachedRound < round {
			s.ReachedRound = round
		}
	}
	for _, r := range rounds {
		for _, h := range r.Heats {
			for _, a := range h.PriorAttempts {
				spend(a)
			}
			spend(h.Standings)
			for _, s := range h.Standings {
				t := get(s.FleetID)
				t.Heats++
				t.MilestonePoints += s.MilestonePoints
				switch s.Outcome {
				case Durable:
					t.DurableDeployments++
				case Forfeit:
					t.Forfeits++
				}
				reached(s.FleetID, r.Round)
			}
			if h.Winner != nil {
				get(*h.Winner).Wins++
				reached(*h.Winner, r.Round+1)
			}
		}
		for _, id := range slices.Concat(r.Byes, r.Wildcards) {
			reached(id, r.Round+1)
		}
	}
	out := make([]Standing, 0, len(order))
	for _, s := range order {
		if c := costs[s.FleetID]; c != nil {
			s.CostComplete = c.result()
		}
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Standing) int { return compareStandings(a, b, len(rounds)) })
	return out
}

// compareStandings is the order of the week's standings.
func compareStandings(a, b Standing, rounds int) int {
	return cmp.Or(cmp.Compare(min(b.ReachedRound, rounds+1), min(a.ReachedRound, rounds+1)),
		cmp.Compare(b.Wins, a.Wins), cmp.Compare(b.DurableDeployments, a.DurableDeployments),
		cmp.Compare(b.MilestonePoints, a.MilestonePoints), cmp.Compare(a.CostMicroUSD, b.CostMicroUSD),
		strings.Compare(a.FleetID, b.FleetID))
}

// costKnown is AND over what is known of costs: unknown unless every part says
// something, as in weeks older than the field.
type costKnown struct{ all, each bool }

func (c *costKnown) add(complete *bool) {
	if complete == nil {
		c.each = false
		return
	}
	c.all = c.all && *complete
}

func (c *costKnown) result() *bool {
	if !c.all { // one that is known to be incomplete settles it
		no := false
		return &no
	}
	if !c.each {
		return nil
	}
	yes := true
	return &yes
}

// ChampionOf is the durable winner of the last round's single heat, else nil.
func ChampionOf(shape []Stage, rounds []Round) *string {
	if len(shape) == 0 || len(rounds) != len(shape) {
		return nil
	}
	last := rounds[len(rounds)-1]
	if len(last.Heats) != 1 || last.Heats[0].Winner == nil {
		return nil
	}
	for _, s := range last.Heats[0].Standings {
		if s.FleetID == *last.Heats[0].Winner && s.DurableAtMS != nil {
			return last.Heats[0].Winner
		}
	}
	return nil
}
