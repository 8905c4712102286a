package season

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"refbox/engine/text"
)

// evidence holds the week against its journals and its heats' recordings.
func (a *auditor) evidence() {
	w := a.docs.Week
	journals, heats, recorded, attempts := 0, 0, 0, 0
	seeds := 0
	digest := ""
	if w.DrawDigest != nil {
		digest = *w.DrawDigest
	}
	for i := range w.Rounds {
		r := &w.Rounds[i]
		for j := range r.Heats {
			h := &r.Heats[j]
			heats++
			if jr, ok := a.src.Journals[HeatName(r.Round, h.Heat)]; ok {
				journals++
				if !reflect.DeepEqual(normal(jr), normal(*h)) {
					a.broken("J", fmt.Sprintf("round %d, heat %d", r.Round, h.Heat), "the week has what the heat's journal has", jr, h)
				}
			}
			if a.src.Attempt == nil {
				continue
			}
			head := strings.TrimSuffix(h.Output, Folder(r.Round, h.Heat, h.Attempts))
			for n, seats := range h.attempts() {
				attempts++
				got, err := a.src.Attempt(head + Folder(r.Round, h.Heat, n+1))
				where := fmt.Sprintf("round %d, heat %d, attempt %d", r.Round, h.Heat, n+1)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					a.out.Checks.Add(Check{Code: "R", Verdict: Unchecked, Where: where, Text: "the heat's recording", Missing: "a recording that can be read: " + shown(err.Error())})
					continue
				}
				recorded++
				a.recorded(where, i, h, seats, got, n+1 == h.Attempts)
				a.told(where, got.Told)
				if a.named && got.Seed != "" && w.VariationSeed != nil {
					if HeatSeedFits(*w.VariationSeed, digest, r.Round, h.Heat, n+1, got.Seed) {
						seeds++
					} else {
						a.broken("W8", where, "the heat's secret values come from the week's variation seed", HeatSeed(*w.VariationSeed, digest, r.Round, h.Heat, n+1, 0), got.Seed)
					}
				}
			}
		}
	}
	switch {
	case journals > 0 && journals == heats && a.out.Checks.Breaks("J") == 0:
		a.holds("J", "the week has what the journals of its %s have", text.Count(heats, "heat"))
	case journals < heats:
		a.missing("J", fmt.Sprintf("%d of %d heats", heats-journals, heats), "their journals of attempts (round-RR/heat-HH.attempts.json)")
	}
	switch {
	case recorded > 0 && a.out.Checks.Breaks("R") == 0:
		a.holds("R", "points, times, costs, winners and keys are those of %s", text.Count(recorded, "recording"))
	case recorded == 0 && heats > 0:
		a.missing("R", "what the heats' own logs say", "the heats' recordings")
	}
	if recorded > 0 && recorded < attempts {
		a.missing("R", fmt.Sprintf("%d of %s", attempts-recorded, text.Count(attempts, "attempt")), "their recordings")
	}
	switch {
	case seeds > 0 && a.out.Checks.Breaks("W8") == 0:
		a.holds("W8", "the secret values of %s come from the week's variation seed", text.Count(seeds, "attempt"))
	case a.named && heats > 0:
		a.missing("W8", "whether the heats' secret values come from the variation seed", map[bool]string{true: "the heats' recordings", false: "the revealed variation seed"}[w.VariationSeed != nil])
	case !a.named && a.docs.Draw == nil:
		a.missing("W8", "whether any verifier read the variation seed", "draw.json and the arenas' verifiers")
	}
}

// told is T1 to T3, of one attempt: what holds is told once for all.
func (a *auditor) told(where string, checks Checks) {
	for _, c := range checks {
		if c.Verdict == Holds && slices.ContainsFunc(a.out.Checks, func(x Check) bool { return x.Code == c.Code && x.Verdict == Holds }) {
			continue
		}
		c.Where = where + ", " + c.Where
		a.out.Checks.Add(c)
	}
}

// normal makes absent and empty lists equal.
func normal(h Heat) Heat {
	if len(h.PriorAttempts) == 0 {
		h.PriorAttempts = nil
	}
	return h
}

// ran is P1 of one attempt. A draw by the reference's rules has the arena's key in the
// reference's form, and a heat of ours has it in our own: both are held against the
// arena that is here.
func (a *auditor) ran(where string, x Arena, got Attempt) {
	const what = "the heat was run on the arena that was drawn"
	switch {
	case got.Key == x.CompatibilityKey:
	case got.Ours && x.Hashes == nil:
		if a.src.Key != nil {
			drawn, _, err := a.src.Key(x)
			x.Hashes = map[string]string{}
			own, _, oerr := a.src.Key(x)
			if err == nil && oerr == nil && drawn == x.CompatibilityKey && own == got.Key {
				return
			}
		}
		a.out.Checks.Add(Check{Code: "P1", Verdict: Unchecked, Where: where, Text: what, Missing: "the arena as it was: the draw has the reference's form of its key, the recording ours"})
	default:
		a.broken("P1", where, what, x.CompatibilityKey, got.Key)
	}
}

// recorded is R: one attempt against its recording.
func (a *auditor) recorded(where string, index int, h *Heat, seats []Seat, got Attempt, last bool) {
	if got.Broken != "" {
		a.broken("R", where, "the recording holds", "no break", got.Broken)
	}
	want := a.rules.Standings(h.Seats, got.Ends)
	byTerritory := map[string]Seat{}
	for _, s := range seats {
		byTerritory[s.Territory] = s
	}
	for _, s := range want {
		if g, ok := byTerritory[s.Territory]; ok && !reflect.DeepEqual(s, g) {
			a.broken("R", where+", "+s.FleetID, "the seat is what its recording says", s, g)
		}
	}
	if len(want) != len(seats) {
		a.broken("R", where, "the recording's seats", len(want), len(seats))
	}
	if d := a.docs.Draw; d != nil && index < len(d.RoundArenas) && d.RoundArenas[index] < len(d.Arenas) && d.RoundArenas[index] >= 0 {
		a.ran(where, d.Arenas[d.RoundArenas[index]], got)
		if last && got.Aborted == h.Aborted {
			if won := Winner(want, got.Winner, index == len(d.Shape)-1); !h.Aborted && !reflect.DeepEqual(won, h.Winner) {
				a.broken("R", where, "the winner is the referee's", won, h.Winner)
			}
		}
	}
	if last && got.Aborted != h.Aborted {
		a.broken("R", where, "aborted", got.Aborted, h.Aborted)
	}
}

// unboundWeek names the week's fields that nothing here binds.
func (a *auditor) unboundWeek() {
	w := a.docs.Week
	bound := true
	for i := range w.Rounds {
		for _, h := range w.Rounds[i].Heats {
			if _, ok := a.src.Journals[HeatName(w.Rounds[i].Round, h.Heat)]; !ok {
				bound = false
			}
		}
	}
	var f []string
	if !bound {
		f = append(f, "rounds[].heats[].standings[].durable_at_ms", "rounds[].heats[].standings[].failure_source", "rounds[].heats[].standings[].detail",
			"rounds[].heats[].standings[].outcome", "rounds[].heats[].standings[].cost_complete",
			"rounds[].heats[].prior_attempts[][].durable_at_ms", "rounds[].heats[].prior_attempts[][].failure_source",
			"rounds[].heats[].prior_attempts[][].detail", "rounds[].heats[].prior_attempts[][].outcome", "rounds[].heats[].prior_attempts[][].milestone_points",
			"rounds[].heats[].prior_attempts[][].cost_complete")
		if a.named || a.docs.Draw == nil {
			f = append(f, "rounds[].heats[].standings[].dead_heat", "rounds[].heats[].prior_attempts[][].dead_heat")
		}
		if len(w.Rounds) == 1 && len(w.Rounds[0].Heats) == 1 {
			f = append(f, "rounds[].heats[].output")
		}
	}
	if a.docs.Draw == nil {
		f = append(f, "rounds[].arena_id", "standings[].model")
	}
	if len(f) == 0 {
		return
	}
	for i := range f {
		f[i] = "week: " + f[i]
	}
	missing := "the heats' recordings or their journals of attempts"
	if a.docs.Draw == nil {
		missing = "draw.json, and " + missing
	}
	a.missing("W7", "these fields, where no sum or order binds them", missing, f...)
}
