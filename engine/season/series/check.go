package series

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"refbox/engine/season"
	"refbox/engine/text"
)

// report gathers the checks of S1.
type report struct{ checks season.Checks }

func (r *report) broken(where, what string, want, got any) {
	r.checks.Add(season.Check{Code: "S1", Verdict: season.Broken, Where: text.Line(where), Text: what, Want: line(want), Got: line(got)})
}

func (r *report) say(v season.Verdict, format string, a ...any) {
	r.checks.Add(season.Check{Code: "S1", Verdict: v, Text: text.Line(fmt.Sprintf(format, a...))})
}

func line(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return text.Truncate(text.Line(string(data)), 400, "…")
}

// Check recomputes what can be recomputed of a series: from itself, and from the
// recordings of its rounds, of which any may be missing.
func (s *Series) Check(runs map[int]Run) []season.Check {
	r := new(report)
	if s.SchemaVersion != 1 {
		r.broken("series", "schema_version", 1, s.SchemaVersion)
	}
	if s.RoundsCompleted != len(s.Rounds) || s.RoundsCompleted > s.RoundsRequested {
		r.broken("series", "rounds_completed", len(s.Rounds), s.RoundsCompleted)
	}
	s.rotation(r)
	appearances, wins, recorded := map[string]int{}, map[string]int{}, map[string]int{}
	for i, round := range s.Rounds {
		where := fmt.Sprintf("round %d", i+1)
		if round.Round != i+1 {
			r.broken(where, "rounds are numbered from 1", i+1, round.Round)
		}
		if want := fmt.Sprintf("round-%03d", i+1); !strings.HasSuffix(round.Output, want) {
			r.broken(where, "the round's folder", "…/"+want, round.Output)
		}
		taken := map[string]bool{}
		for _, a := range round.agents() {
			appearances[a]++
			if taken[round.Seats[a]] {
				r.broken(where, "every agent has a seat of its own", "one agent", round.Seats[a])
			}
			taken[round.Seats[a]] = true
		}
		if !slices.IsSorted(round.UsageAgents) {
			r.broken(where, "usage_agents are sorted", slices.Sorted(slices.Values(round.UsageAgents)), round.UsageAgents)
		}
		for _, a := range round.UsageAgents {
			recorded[a]++
		}
		switch {
		case (round.WinnerAgent == nil) != (round.WinnerTerritory == nil):
			r.broken(where, "a winner has an agent and a territory", round.WinnerAgent, round.WinnerTerritory)
		case round.WinnerAgent != nil:
			wins[*round.WinnerAgent]++
			if got, ok := round.Seats[*round.WinnerAgent]; !ok || got != *round.WinnerTerritory {
				r.broken(where, "the winner sits in the winning territory", *round.WinnerTerritory, got)
			}
		}
		if run, ok := runs[i+1]; ok {
			if want := RoundOf(i+1, round.Output, run); !reflect.DeepEqual(want, round) {
				r.broken(where, "the round is what its recording says", want, round)
			}
		}
	}
	for _, st := range s.Standings {
		for _, p := range []struct {
			name      string
			want, got int
		}{{"appearances", appearances[st.Agent], st.Appearances}, {"wins", wins[st.Agent], st.Wins}, {"usage_recorded", recorded[st.Agent], st.UsageRecorded}} {
			if p.want != p.got {
				r.broken(st.Agent, p.name, p.want, p.got)
			}
		}
		checkUsage(r, st.Agent, st.Usage, st.Appearances, st.DurableDeployments, st.MedianDurableMS)
		delete(appearances, st.Agent)
	}
	for a := range appearances {
		r.broken("standings", "every agent is listed", a, "missing")
	}
	if !slices.IsSortedFunc(s.Standings, compareStandings) {
		want := slices.Clone(s.Standings)
		slices.SortFunc(want, compareStandings)
		r.broken("standings", "order", agentsOf(want), agentsOf(s.Standings))
	}
	s.fromRuns(r, runs)
	if s.RoundsCompleted < s.RoundsRequested {
		r.say(season.Note, "%d of %s run", s.RoundsCompleted, text.Count(s.RoundsRequested, "round"))
	}
	return r.checks
}

func agentsOf(list []Standing) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Agent)
	}
	return out
}

// rotation holds the seats of all rounds against the first: every agent moves on
// by one seat each round, and the seats are one circle. The manifest's order is that
// circle, so it is not needed.
func (s *Series) rotation(r *report) {
	next := map[string]string{}
	for i := 1; i < len(s.Rounds); i++ {
		was, is := s.Rounds[i-1], s.Rounds[i]
		if !slices.Equal(was.agents(), is.agents()) {
			r.broken(fmt.Sprintf("round %d", i+1), "the agents are those of the round before", was.agents(), is.agents())
			return
		}
		for _, a := range is.agents() {
			from, to := was.Seats[a], is.Seats[a]
			if known, ok := next[from]; ok && known != to {
				r.broken(fmt.Sprintf("round %d, %s", i+1, a), "seats rotate by one", known, to)
				return
			}
			next[from] = to
		}
	}
	if len(next) == 0 {
		return
	}
	start := s.Rounds[0].Seats[s.Rounds[0].agents()[0]]
	n, at := 0, start
	for ok := true; ok && n <= len(next); n++ {
		if at, ok = next[at]; at == start {
			n++
			break
		}
	}
	if n != len(next) {
		r.broken("rounds", "the seats are one circle", len(next), n)
		return
	}
	r.say(season.Holds, "seats rotate by one each round")
}

// checkUsage holds what follows from each other in a standing.
func checkUsage(r *report, who string, u Usage, appearances, durable int, median *int64) {
	full := u.UsageRecorded == appearances
	for name, v := range map[string]*int64{"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "cost_microusd": u.CostMicroUSD} {
		if full != (v != nil) {
			r.broken(who, name+" are known when usage was recorded in every round, else null", full, v)
		}
	}
	switch {
	case u.CostMicroUSD != nil && durable > 0:
		if want := *u.CostMicroUSD / int64(durable); u.CostPerDurable == nil || *u.CostPerDurable != want {
			r.broken(who, "cost_per_durable_microusd", want, u.CostPerDurable)
		}
	case u.CostPerDurable != nil:
		r.broken(who, "cost_per_durable_microusd", nil, u.CostPerDurable)
	}
	if (median == nil) != (durable == 0) {
		r.broken(who, "a median of durable times is there when there is a durable deployment", durable, median)
	}
}

// fromRuns recomputes the standings from the recordings that there are.
func (s *Series) fromRuns(r *report, runs map[int]Run) {
	var list []Run
	var outputs []string
	for i, round := range s.Rounds {
		if run, ok := runs[i+1]; ok {
			list = append(list, run)
			outputs = append(outputs, round.Output)
		}
	}
	part := Aggregate(s.ArenaID, s.RoundsRequested, outputs, list)
	if len(list) == len(s.Rounds) && len(list) > 0 {
		if !reflect.DeepEqual(part.Standings, s.Standings) {
			r.broken("standings", "they are what the recordings make", part.Standings, s.Standings)
		} else if r.checks.Breaks("S1") == 0 {
			r.say(season.Holds, "rounds, sums, medians and order are those of %s", text.Count(len(list), "recording"))
		}
		return
	}
	// What some rounds already have, all of them have too.
	for _, p := range part.Standings {
		i := slices.IndexFunc(s.Standings, func(x Standing) bool { return x.Agent == p.Agent })
		if i < 0 {
			r.broken("standings", "every agent is listed", p.Agent, "missing")
			continue
		}
		if all := s.Standings[i]; all.DurableDeployments < p.DurableDeployments {
			r.broken(p.Agent, "durable deployments of some rounds are at most those of all", p.DurableDeployments, all.DurableDeployments)
		} else if all.CostMicroUSD != nil && p.CostMicroUSD != nil && *all.CostMicroUSD < *p.CostMicroUSD {
			r.broken(p.Agent, "the cost of some rounds is at most that of all", *p.CostMicroUSD, *all.CostMicroUSD)
		}
	}
	if r.checks.Breaks("S1") == 0 {
		r.say(season.Holds, "what follows from the rounds and from each other%s", map[bool]string{true: fmt.Sprintf(", and from %d of %s", len(list), text.Count(len(s.Rounds), "recording"))}[len(list) > 0])
	}
	missing := "the recordings of all rounds"
	fields := []string{"series: standings[].model", "series: standings[].durable_deployments", "series: standings[].median_durable_ms", "series: standings[].input_tokens",
		"series: standings[].output_tokens", "series: standings[].cost_microusd", "series: arena_id", "series: rounds_requested", "series: rounds[].duration_ms"}
	r.checks.Add(season.Check{Code: "S1", Verdict: season.Unchecked, Text: fmt.Sprintf("%d of %d rounds", len(s.Rounds)-len(list), len(s.Rounds)), Missing: missing, Fields: fields})
}

// Check recomputes a benchmark's standings from the heats of its arenas, and what
// follows from the document alone when there are none.
func (b *Benchmark) Check(arenas []ArenaRuns) []season.Check {
	r := new(report)
	if b.SchemaVersion != 2 {
		r.broken("benchmark", "schema_version", 2, b.SchemaVersion)
	}
	if b.ArenasRequested != len(b.Plan) {
		r.broken("benchmark", "arenas_requested", len(b.Plan), b.ArenasRequested)
	}
	done := 0
	for i, a := range b.Arenas {
		if i >= len(b.Plan) || a.ArenaID != b.Plan[i].ArenaID || a.Output != b.Plan[i].Output || a.RoundsRequested != b.Plan[i].Rounds {
			r.broken(fmt.Sprintf("arenas[%d]", i), "arenas are run in the order of the plan", b.Plan, a.ArenaID)
			break
		}
		if !a.Aborted && a.RoundsCompleted == a.RoundsRequested {
			done++
		} else if i+1 < len(b.Arenas) {
			r.broken(fmt.Sprintf("arenas[%d]", i), "the first incomplete arena stops the suite", "the last", i+1)
		}
	}
	if done != b.ArenasCompleted {
		r.broken("benchmark", "arenas_completed", done, b.ArenasCompleted)
	}
	winners := 0
	for _, m := range b.Standings {
		checkUsage(r, m.Model, m.Usage, m.Appearances, m.DurableDeployments, m.MedianDurableMS)
		if !slices.IsSorted(m.DurableTimesMS) || len(m.DurableTimesMS) != m.DurableDeployments || !reflect.DeepEqual(median(m.DurableTimesMS), m.MedianDurableMS) {
			r.broken(m.Model, "durable times and their median", median(m.DurableTimesMS), m.MedianDurableMS)
		}
		n := 0
		for _, k := range m.Failures {
			n += k
		}
		if n > m.Appearances {
			r.broken(m.Model, "sessions end once per appearance", m.Appearances, n)
		}
		if n > m.Appearances-m.Wins {
			winners++
		}
	}
	if !slices.IsSortedFunc(b.Standings, compareModels) {
		r.broken("standings", "order: wins, durable, coverage, median, cost, model", "in order", line(b.Standings))
	}
	if winners > 0 {
		r.say(season.Note, "failures counts how every session ended, winners' too, of %d models: it is no count of failures", winners)
	}
	if len(arenas) > 0 {
		if want := Bench(b.SuiteID, arenas); !reflect.DeepEqual(want, *b) {
			r.broken("benchmark", "it is what the recordings make", want, b)
		} else {
			r.say(season.Holds, "plan, sums, medians, coverage and order are those of the recordings")
		}
	} else {
		if r.checks.Breaks("S1") == 0 {
			r.say(season.Holds, "what follows from the document alone")
		}
		r.checks.Add(season.Check{Code: "S1", Verdict: season.Unchecked, Text: "the heats' own numbers", Missing: "the recordings of all rounds"})
	}
	return r.checks
}
