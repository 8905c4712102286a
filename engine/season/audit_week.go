package season

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// secret is D1 of a week alone, and W1.
func (a *auditor) secret() {
	w := a.docs.Week
	if a.docs.Draw == nil && a.plainSeed(w.SeasonID, w.Week, w.DrawSeed, "week") {
		a.holds("D1", "the draw seed is season, week and salt")
	}
	switch {
	case w.VariationSeed == nil && w.Completed:
		a.broken("W1", "week", "a completed week reveals its variation seed", "64 hex digits", "none")
	case w.VariationSeed == nil:
		a.missing("W1", "the commitment to the variation seed", "the seed, which is revealed when the week is complete", "week: variation_seed_commitment")
	case !w.Completed:
		a.broken("W1", "week", "the variation seed is revealed before the week is complete", "completed", w.Completed)
	case CommitSeed(*w.VariationSeed) != w.Commitment:
		a.broken("W1", "week", "the commitment to the variation seed", CommitSeed(*w.VariationSeed), w.Commitment)
	default:
		a.holds("W1", "the revealed variation seed is the one committed to")
	}
}

// week checks the rounds in order, each from the results of the one before.
func (a *auditor) week() {
	w, d := a.docs.Week, a.docs.Draw
	var shape []Stage
	if d != nil {
		shape = d.Shape
	} else if len(w.Rounds) > 0 && len(w.Rounds[0].Heats) > 0 {
		r := &w.Rounds[0]
		size := len(r.Heats[0].Seats)
		shape, _ = Shape(len(r.Heats)*size+len(r.Byes), size) // without a shape, nothing is said of it
	}
	fits := map[string]bool{WildcardsLottery: true, WildcardsCost: true}
	seater := NewSeater(w.DrawSeed)
	prefix := ""
	for i := range w.Rounds {
		r := &w.Rounds[i]
		where := fmt.Sprintf("round %d", i+1)
		if r.Round != i+1 {
			a.broken("W2", where, "rounds are numbered from 1", i+1, r.Round)
		}
		if i >= len(shape) {
			a.broken("W2", where, "the bracket has fewer rounds", len(shape), len(w.Rounds))
			break
		}
		final := i == len(shape)-1
		for j := range r.Heats {
			a.heat(i+1, j, &r.Heats[j], final, &prefix)
		}
		over := i+1 < len(w.Rounds) || w.Completed
		if over && len(r.Heats) != shape[i].Heats {
			a.broken("W2", where, "heats", shape[i].Heats, len(r.Heats))
		}
		a.seats(i, r, seater, shape[i])
		if !over && len(r.Wildcards) == 0 {
			continue
		}
		a.wildcards(r, shape[i], final, fits)
	}
	if w.Completed && len(w.Rounds) < len(shape) {
		a.unfinished(shape)
	}
	for _, c := range []struct{ code, text string }{
		{"W4", "every winner is the strictly fastest durable seat"}, {"W5", "attempts, folders and seats agree"},
		{"W6", "replays are those that the rules ask for"},
	} {
		if a.out.Checks.Breaks(c.code) == 0 {
			a.holds(c.code, "%s", c.text)
		}
	}
	a.fitting(fits)
	a.tally(shape)
}

// maxAttempts bounds the replays of a heat that are followed.
const maxAttempts = 1000

// heat is W4, W5 and W6.
func (a *auditor) heat(round, index int, h *Heat, final bool, prefix *string) {
	where := fmt.Sprintf("round %d, heat %d", round, h.Heat)
	if h.Heat != index+1 {
		if a.docs.Week.Completed || h.Heat <= index {
			a.broken("W5", where, "heats are numbered from 1", index+1, h.Heat)
		} else {
			a.note("W5", where, "earlier heats of the round are not over yet")
		}
	}
	if h.Attempts != len(h.PriorAttempts)+1 {
		a.broken("W5", where, "attempts are the prior ones and the last", len(h.PriorAttempts)+1, h.Attempts)
	}
	name := Folder(round, h.Heat, h.Attempts)
	head, ok := strings.CutSuffix(h.Output, name)
	if !ok || head != "" && !strings.HasSuffix(head, "/") {
		a.broken("W5", where, "the folder of the last attempt", "…/"+name, h.Output)
	} else if round == 1 && index == 0 {
		*prefix = head
	} else if head != *prefix {
		a.broken("W5", where, "all heats lie in one folder", *prefix+name, h.Output)
	}
	attempts := h.attempts()
	if len(attempts) > maxAttempts {
		a.broken("W6", where, "attempts", fmt.Sprintf("at most %d", maxAttempts), len(attempts))
		return
	}
	for n, seats := range attempts {
		at := fmt.Sprintf("%s, attempt %d", where, n+1)
		got := map[string]string{}
		for _, s := range seats {
			got[s.Territory] = s.FleetID
			a.outcome(at, s)
		}
		if !sameSeats(got, h.Seats) || len(seats) != len(h.Seats) {
			a.broken("W5", at, "every attempt has the heat's seats", h.Seats, got)
		}
		if !slices.IsSortedFunc(seats, compareSeats) {
			want := slices.Clone(seats)
			slices.SortFunc(want, compareSeats)
			a.broken("W7", at, "the order of the standings", ids(want), ids(seats))
		}
	}
	a.winner(where, h, final)
	a.replays(where, h, attempts)
}

func ids(seats []Seat) []string {
	var out []string
	for _, s := range seats {
		out = append(out, s.FleetID)
	}
	return out
}

// outcome holds a seat's outcome against its other fields.
func (a *auditor) outcome(where string, s Seat) {
	where += ", " + s.FleetID
	src := ""
	if s.FailureSource != nil {
		src = *s.FailureSource
	}
	harness := src == "provider" || src == "harness"
	seat := a.named && a.rules.Outcomes == OutcomesSeat && (src == "arena" || src == "controller")
	switch {
	case s.DurableAtMS != nil && s.Outcome != Durable:
		a.broken("W4", where, "a seat with a durable time is durable", Durable, s.Outcome)
	case s.DurableAtMS == nil && s.Outcome == Durable:
		a.broken("W4", where, "a durable seat has a durable time", "a time", "none")
	case s.DurableAtMS == nil && harness && s.Outcome != Forfeit:
		a.broken("W4", where, "a seat that its "+src+" failed forfeits", Forfeit, s.Outcome)
	case s.Outcome == Forfeit && !harness && !seat:
		a.broken("W4", where, "a forfeit is the provider's or the harness's", "provider or harness", s.FailureSource)
	case !slices.Contains([]string{Durable, Incomplete, Failed, Forfeit}, s.Outcome):
		a.broken("W4", where, "the outcome is a known one", "durable, incomplete, failed, forfeit", s.Outcome)
	case s.DurableAtMS != nil && *s.DurableAtMS < 0 || s.MilestonePoints < 0 || s.CostMicroUSD < 0:
		a.broken("W4", where, "numbers are not negative", "0 or more", s)
	case s.DeadHeat && a.docs.Draw != nil && !a.named:
		a.broken("W4", where, "the reference knows no dead heats", false, true)
	case s.DeadHeat && s.DurableAtMS == nil:
		a.broken("W4", where, "a dead heat is between durable seats", "a time", "none")
	}
	if s.Outcome == Durable && src == "arena" {
		a.ended(where)
	}
}

// ended notes once what looks like a failure of a winner.
func (a *auditor) ended(where string) {
	for i, c := range a.out.Checks {
		if c.Code == "W4" && c.Verdict == Note && strings.HasPrefix(c.Text, "failure_source arena") {
			if !strings.HasSuffix(c.Where, " and others") {
				a.out.Checks[i].Where += " and others"
			}
			return
		}
	}
	a.note("W4", where, "failure_source arena on a durable seat says what ended the agent's session (the referee's own reboot test), not that it failed")
}

func (a *auditor) winner(where string, h *Heat, final bool) {
	best := fastest(h.Standings)
	var seat *Seat
	for i := range h.Standings {
		if h.Winner != nil && h.Standings[i].FleetID == *h.Winner {
			seat = &h.Standings[i]
		}
	}
	switch {
	case h.Aborted:
		if h.Winner != nil {
			a.broken("W4", where, "an aborted heat has no winner", "none", h.Winner)
		}
		if a.docs.Week.Completed {
			a.broken("W4", where, "a week with an aborted heat is not complete", false, true)
		}
		a.note("W4", where, "the heat was aborted: the week stops here")
	case h.Winner != nil && seat == nil:
		a.broken("W4", where, "the winner sits in the heat", ids(h.Standings), h.Winner)
	case best != nil && (h.Winner == nil || *h.Winner != best.FleetID):
		a.broken("W4", where, "the winner is the strictly fastest durable seat", best.FleetID, h.Winner)
	case best == nil && h.Winner != nil && final:
		a.broken("W4", where, "a final is won by a durable seat or by nobody", "none", h.Winner)
	case best == nil && h.Winner != nil && seat.DurableAtMS != nil:
		a.broken("W4", where, "seats that were durable at the same time have no winner among them", "none", h.Winner)
	case best == nil && h.Winner != nil:
		a.note("W4", where, "%s won without being durable: the referee named it by points when the time was over", *h.Winner)
		a.missing("W4", where+": that the referee named the winner", "the heat's recording", "week: rounds[].heats[].winner")
	case h.Winner == nil:
		a.note("W4", where, "nobody won: no seat was durable strictly first")
		if !final && !slices.ContainsFunc(h.Standings, func(s Seat) bool { return s.DurableAtMS != nil }) {
			a.missing("W4", where+": that the referee named nobody by points", "the heat's recording", "week: rounds[].heats[].winner")
		}
	}
}

// replays is W6.
func (a *auditor) replays(where string, h *Heat, attempts [][]Seat) {
	d := a.docs.Draw
	for n := 1; n <= len(attempts); n++ {
		again := n < len(attempts)
		switch kind := kindOf(attempts[n-1]); {
		case d != nil && !h.Aborted:
			want, why := a.rules.Replay(d.Rules, attempts[:n])
			if want != again {
				a.broken("W6", fmt.Sprintf("%s, after attempt %d", where, n), "replay by the rules in force"+map[bool]string{true: ": " + why}[want], want, again)
			}
		case again && kind == decided:
			a.broken("W6", fmt.Sprintf("%s, after attempt %d", where, n), "a heat that was decided is not replayed", false, true)
		}
	}
	if d == nil && len(attempts) > 0 {
		if kind := kindOf(attempts[len(attempts)-1]); kind != decided && !h.Aborted {
			a.missing("W6", where+": whether another replay was due", "draw.json, which holds the allowances")
		}
	}
	if e := h.Erased(); e != nil {
		switch {
		case h.Winner == nil:
			a.note("W6", where, "a replay erased the win of %s (durable at %d ms): nobody won the last attempt", e.FleetID, *e.DurableAtMS)
		case *h.Winner != e.FleetID:
			a.note("W6", where, "a replay erased the win of %s (durable at %d ms): %s won the last attempt", e.FleetID, *e.DurableAtMS, *h.Winner)
		default:
			a.note("W6", where, "was replayed although %s was durable (at %d ms); it won again", e.FleetID, *e.DurableAtMS)
		}
	}
}

// Folder is the name of an attempt's folder in the week's.
func Folder(round, heat, attempt int) string {
	name := HeatName(round, heat)
	if attempt > 1 {
		name += fmt.Sprintf(".replay-%d", attempt-1)
	}
	return name
}

// HeatName is a heat's folder, without a replay's number.
func HeatName(round, heat int) string { return fmt.Sprintf("round-%02d/heat-%02d", round, heat) }

// seats is W2: who sits where, and D3 again for what was played of round 1.
func (a *auditor) seats(index int, r *Round, seater *Seater, stage Stage) {
	d, w := a.docs.Draw, a.docs.Week
	where := fmt.Sprintf("round %d", index+1)
	var arena *Arena
	if d != nil && index < len(d.RoundArenas) && d.RoundArenas[index] >= 0 && d.RoundArenas[index] < len(d.Arenas) {
		arena = &d.Arenas[d.RoundArenas[index]]
		if r.ArenaID != arena.ID {
			a.broken("W2", where, "the round's arena", arena.ID, r.ArenaID)
		}
	}
	if index == 0 {
		if d == nil {
			a.missing("D3", "arena and seats of round 1", "draw.json", "week: rounds[].arena_id")
			return
		}
		for _, h := range r.Heats {
			if h.Heat < 1 || h.Heat > len(d.FirstRound.Heats) {
				a.broken("W2", where, "the draw has fewer heats", len(d.FirstRound.Heats), h.Heat)
			} else if want := d.FirstRound.Heats[h.Heat-1].Seats; !sameSeats(want, h.Seats) {
				a.broken("W2", fmt.Sprintf("%s, heat %d", where, h.Heat), "the seats are the draw's", want, h.Seats)
			}
		}
		if !slices.Equal(r.Byes, d.FirstRound.Byes) {
			a.broken("W2", where, "the byes are the draw's", d.FirstRound.Byes, r.Byes)
		}
		if a.out.Checks.Breaks("W2") == 0 {
			a.holds("W2", "round 1 was seated as drawn")
		}
		return
	}
	if len(r.Byes) > 0 {
		a.broken("W2", where, "only round 1 has byes", []string{}, r.Byes)
	}
	field := w.Rounds[index-1].Field()
	if len(field) != stage.Field {
		a.broken("W2", where, "the field from the round before has the bracket's size", stage.Field, len(field))
		return
	}
	territories, assumed := a.territories(arena, r)
	if len(territories) == 0 {
		return
	}
	want := seater.Seat(index+1, field, territories)
	before := a.out.Checks.Breaks("W2")
	for _, h := range r.Heats {
		if h.Heat < 1 || h.Heat > len(want.Heats) {
			a.broken("W2", where, "the bracket has fewer heats", len(want.Heats), h.Heat)
			continue
		}
		at := fmt.Sprintf("%s, heat %d", where, h.Heat)
		drawnSeats := want.Heats[h.Heat-1].Seats
		switch {
		case sameSeats(drawnSeats, h.Seats):
		case !assumed:
			a.broken("W2", at, "seats follow from the stream of rounds", drawnSeats, h.Seats)
		case !slices.Equal(slices.Sorted(maps.Values(drawnSeats)), slices.Sorted(maps.Values(h.Seats))):
			a.broken("W2", at, "who plays in it follows from the stream of rounds", slices.Sorted(maps.Values(drawnSeats)), slices.Sorted(maps.Values(h.Seats)))
		default:
			a.missing("W2", at+": who sits where", "draw.json, which has the order of the territories")
			return
		}
	}
	if a.out.Checks.Breaks("W2") == before && len(r.Heats) > 0 {
		a.holds("W2", "%s was seated by the stream of rounds%s", where, map[bool]string{true: " (territories in the order of their numbers: draw.json is not here)"}[assumed])
	}
}

// territories are a round's in the manifest's order: the draw's, or else by the
// numbers that their names end in.
func (a *auditor) territories(arena *Arena, r *Round) (list []string, assumed bool) {
	if arena != nil {
		return arena.Territories, false
	}
	if len(r.Heats) == 0 {
		return nil, true
	}
	rank := func(s string) int {
		for i, n := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"} {
			if strings.HasSuffix(s, "-"+n) {
				return i
			}
		}
		return 100
	}
	list = slices.Sorted(maps.Keys(r.Heats[0].Seats))
	slices.SortStableFunc(list, func(x, y string) int { return rank(x) - rank(y) })
	return list, true
}

// wildcards is W3 for one round; fits loses the rules that do not.
func (a *auditor) wildcards(r *Round, stage Stage, final bool, fits map[string]bool) {
	where := fmt.Sprintf("round %d", r.Round)
	if final && len(r.Wildcards) > 0 {
		a.broken("W3", where, "a final has no wildcards", []string{}, r.Wildcards)
		return
	}
	w := a.docs.Week
	rule := a.rules
	got := r.Wildcards
	if got == nil {
		got = []string{}
	}
	wants := map[string][]string{}
	any := false
	for _, name := range []string{WildcardsLottery, WildcardsCost} {
		if a.named && name != a.rules.Wildcards {
			delete(fits, name)
			continue
		}
		rule.Wildcards = name
		wants[name] = rule.Pick(w.DrawSeed, stage, r)
		if slices.Equal(wants[name], got) {
			any = true
		} else {
			delete(fits, name)
		}
	}
	if !any {
		a.broken("W3", where, "the wildcards follow from no rule that is known", wants, got)
		return
	}
	if fits[WildcardsLottery] && len(got) > 0 {
		list := rankWildcards(WildcardsLottery, w.DrawSeed, r.Round, candidates(r))
		if n := len(got); n < len(list) && list[n-1].MilestonePoints == list[n].MilestonePoints && compareTimes(list[n-1].DurableAtMS, list[n].DurableAtMS) == 0 {
			equals := 0
			for _, s := range list {
				if s.MilestonePoints == list[n].MilestonePoints && compareTimes(s.DurableAtMS, list[n].DurableAtMS) == 0 {
					equals++
				}
			}
			a.note("W3", where, "the wildcard %s was won by lot among %d equals at %d points; cost does not count", got[n-1], equals, list[n].MilestonePoints)
		}
	}
}

// fitting says which rule of wildcards was in force.
func (a *auditor) fitting(fits map[string]bool) {
	some := slices.ContainsFunc(a.docs.Week.Rounds, func(r Round) bool { return len(r.Wildcards) > 0 })
	switch {
	case a.out.Checks.Breaks("W3") > 0:
	case !some:
		a.holds("W3", "there are no wildcards yet, and none is missing")
	case a.named:
		a.holds("W3", "wildcards by the rule that the draw names: %s", a.rules.Wildcards)
	case fits[WildcardsLottery] && fits[WildcardsCost]:
		a.holds("W3", "wildcards fit the lottery and the early rule alike; the draw names none")
	case fits[WildcardsLottery]:
		a.holds("W3", "wildcards fit the lottery alone; the draw names no rule")
	case fits[WildcardsCost]:
		var instead []string
		for i := range a.docs.Week.Rounds {
			r := &a.docs.Week.Rounds[i]
			if len(r.Wildcards) == 0 {
				continue
			}
			list := ids(rankWildcards(WildcardsLottery, a.docs.Week.DrawSeed, r.Round, candidates(r)))
			instead = append(instead, strings.Join(list[:min(len(r.Wildcards), len(list))], ", "))
		}
		a.note("W3", "", "wildcards fit the early rule alone (%s); the lottery would have chosen %s. The draw names no rule", WildcardsCost, strings.Join(instead, "; "))
	default:
		a.broken("W3", "", "no one rule fits the wildcards of all rounds", "one rule for the whole week", "different ones")
	}
}
