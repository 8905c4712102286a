package season

import (
	"fmt"
	"reflect"
	"slices"
)

// unfinished is a week that completed before its final.
func (a *auditor) unfinished(shape []Stage) {
	rounds := a.docs.Week.Rounds
	if n := len(rounds); n > 0 {
		r := rounds[n-1]
		if len(r.Field()) != shape[n].Field && slices.ContainsFunc(r.Heats, func(h Heat) bool { return h.Drawn() }) {
			a.note("W7", fmt.Sprintf("round %d", n), "the week ends here without a champion: a drawn heat sent nobody on, and the field would be %d instead of %d", len(r.Field()), shape[n].Field)
			return
		}
	}
	a.broken("W7", "week", "a completed week has all rounds of its bracket", len(shape), len(rounds))
}

// tally is W7.
func (a *auditor) tally(shape []Stage) {
	w := a.docs.Week
	var fleet []Entrant
	if a.docs.Draw != nil {
		fleet = a.docs.Draw.Fleet
	} else {
		for _, s := range w.Standings {
			fleet = append(fleet, Entrant{ID: s.FleetID, Model: s.Model})
		}
	}
	want := Tally(w.Rounds, fleet)
	got := map[string]Standing{}
	for _, s := range w.Standings {
		if _, twice := got[s.FleetID]; twice {
			a.broken("W7", "standings, "+s.FleetID, "everybody is listed once", 1, 2)
		}
		got[s.FleetID] = s
	}
	for _, s := range want {
		g, ok := got[s.FleetID]
		if !ok {
			a.broken("W7", "standings", "everybody who entered is listed", s.FleetID, "missing")
		} else if !reflect.DeepEqual(s, g) {
			a.broken("W7", "standings, "+s.FleetID, "sums of the heats", s, g)
		}
		delete(got, s.FleetID)
	}
	for id := range got {
		a.broken("W7", "standings", "only who entered is listed", "nobody else", id)
	}
	if a.out.Checks.Breaks("W7") == 0 {
		for i := range want {
			if w.Standings[i].FleetID != want[i].FleetID {
				a.broken("W7", "standings", fmt.Sprintf("place %d", i+1), want[i].FleetID, w.Standings[i].FleetID)
				break
			}
		}
	}
	var champion *string
	if w.Completed {
		champion = ChampionOf(shape, w.Rounds)
	}
	if !reflect.DeepEqual(champion, w.Champion) {
		a.broken("W7", "week", "the champion is the durable winner of the final", champion, w.Champion)
	}
	if a.out.Checks.Breaks("W7") > 0 {
		return
	}
	a.holds("W7", "sums, order, rounds reached and champion follow from the heats")
	if champion != nil {
		a.note("W7", "", "the champion's reached_round is %d, one past the last of %d rounds: that is how the form writes who won it", len(shape)+1, len(shape))
	} else if w.Completed {
		a.note("W7", "", "the week has no champion")
	}
	if !w.Completed {
		a.note("W7", "", "the week is not complete: standings are those so far")
	}
}
