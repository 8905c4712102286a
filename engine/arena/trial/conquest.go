package trial

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/world"
)

// fields spreads a conquest's players over heats, each with one in every territory. No
// heat is left without one who stands, since it would end before the last had fallen; so
// right players may play more than once.
func fields(m *arena.Manifest, all []seated) [][]seated {
	take := func(from *[]seated, territory string, right bool) *seated {
		i := slices.IndexFunc(*from, func(t seated) bool { return t.Right() == right && (territory == "" || t.Territory == territory) })
		if i < 0 {
			return nil
		}
		t := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return &t
	}
	var everyRight []seated
	for _, t := range m.Players {
		if t.Right() {
			everyRight = append(everyRight, seated{Trial: t})
		}
	}
	var out [][]seated
	for left := slices.Clone(all); len(left) > 0; {
		stands := take(&left, "", true)
		if stands == nil { // of a territory that no wrong player waits for, if there is one
			i := slices.IndexFunc(everyRight, func(t seated) bool {
				return !slices.ContainsFunc(left, func(x seated) bool { return x.Territory == t.Territory })
			})
			stands = &everyRight[max(i, 0)]
		}
		var group []seated
		for _, t := range m.Territories {
			if t.ID == stands.Territory {
				group = append(group, *stands)
				continue
			}
			next := take(&left, t.ID, false)
			if next == nil {
				next = take(&left, t.ID, true)
			}
			if next == nil {
				next = &everyRight[slices.IndexFunc(everyRight, func(x seated) bool { return x.Territory == t.ID })]
			}
			group = append(group, *next)
		}
		out = append(out, group)
	}
	return out
}

// judgeConquest holds what came of a conquest's player to what must.
func judgeConquest(w *world.World, t seated, got Player) Player {
	s := w.Seat(t.Territory)
	if s == nil || !s.Conquest() {
		got.Got, got.Why = "unavailable", "the recording has no such territory, or no conquest"
		return got
	}
	if a := w.Agent(t.Name); a != nil && a.TerminalState != nil {
		got.Ended = *a.TerminalState
	}
	got.Got = arena.Standing
	if s.State == "eliminated" {
		got.Got = arena.Eliminated
		got.Refused = &Refusal{Category: string(got.Got), Source: value(s.EliminationSource), Detail: value(s.EliminationDetail), Times: 1}
	}
	switch {
	case s.Unavailable != nil:
		got.Got, got.Why = "unavailable", s.Unavailable.Source+": "+s.Unavailable.Detail
	case got.Got != t.Result:
		got.Why = fmt.Sprintf("it must be %s, and is %s: %s", t.Result, got.Got, value(s.EliminationDetail))
	case got.Got == arena.Eliminated && !strings.Contains(got.Refused.Detail, t.refusal):
		got.Why = fmt.Sprintf("what it was eliminated for does not say %q: %s", t.refusal, got.Refused.Detail)
	case got.Got == arena.Standing && got.Ended != "completed":
		got.Why = "its script did not run to its end, so it shows nothing: " + got.Ended
	}
	return got
}

func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
