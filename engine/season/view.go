package season

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/text"
)

// View is a week as it is shown: everything by name, in the order of the bracket.
type View struct {
	Season    string      `json:"season"`
	Week      string      `json:"week"`
	State     string      `json:"state"` // drawn, running, aborted, complete
	RuleSet   string      `json:"rule_set"`
	Champion  string      `json:"champion,omitempty"`
	Rounds    []RoundView `json:"rounds"`
	Standings []Standing  `json:"standings"`
	Spend     Money       `json:"spend"` // every attempt's, replays included
}

// Money is an amount with what is known of it.
type Money struct {
	MicroUSD int64 `json:"microusd"`
	Complete *bool `json:"complete"` // nil: nobody knows whether that is all
}

// String is the amount in dollars: "≥" before what is known to be a part, "unknown"
// for a zero that nobody vouches for, "?" after a sum that nobody does.
func (m Money) String() string {
	n := (m.MicroUSD + 50) / 100 // ten-thousandths, rounded
	s := fmt.Sprintf("$%d.%04d", n/1e4, n%1e4)
	switch {
	case m.Complete != nil && *m.Complete:
		return s
	case m.MicroUSD == 0:
		return "unknown"
	case m.Complete != nil:
		return "≥ " + s
	}
	return s + " ?"
}

// RoundView is a round, also one that has not begun.
type RoundView struct {
	Round     int        `json:"round"`
	Arena     string     `json:"arena"` // "" when nothing here tells
	Heats     []HeatView `json:"heats"`
	Byes      []string   `json:"byes"`
	Wildcards []Wildcard `json:"wildcards"`
	// Places is how many wildcards the bracket's shape has.
	Places int `json:"places"`
}

// Wildcard is one of a round's, with why.
type Wildcard struct {
	Entrant string `json:"entrant"`
	Why     string `json:"why"`
}

// HeatView is a heat, also one that has not begun.
type HeatView struct {
	Heat     int        `json:"heat"`
	State    string     `json:"state"` // waiting, playing, over, drawn, aborted
	Winner   string     `json:"winner,omitempty"`
	Attempts int        `json:"attempts"`
	Output   string     `json:"output,omitempty"` // the last attempt's folder, as it was written
	Seats    []SeatView `json:"seats"`            // in the order of the standings, else by territory; none before the field is known
	Earlier  [][]Seat   `json:"earlier,omitempty"`
	Note     string     `json:"note,omitempty"` // a replay that erased or repeated a win
}

// SeatView is a seat of a heat.
type SeatView struct {
	Entrant     string `json:"entrant"`
	Territory   string `json:"territory"`
	Result      string `json:"result"` // waiting, won, durable, dead heat, outraced, incomplete, failed, forfeit
	Points      int64  `json:"points"`
	DurableAtMS *int64 `json:"durable_at_ms"`
	Cost        Money  `json:"cost"`
	EndedBy     string `json:"ended_by,omitempty"` // what ended the agent's session; no failure by itself
	Detail      string `json:"detail,omitempty"`
}

// View shows what there is of a week. Playing says whether a folder of an attempt
// is there that the week does not have yet; nil: none is.
func (docs Documents) View(playing func(output string) bool) View {
	v := View{Rounds: []RoundView{}, Standings: []Standing{}, State: "drawn", RuleSet: "not written down"}
	d, w := docs.Draw, docs.Week
	rules := Reference
	if d != nil {
		v.Season, v.Week = d.SeasonID, d.Week
		if d.RuleSet != nil {
			rules, _ = d.InForce() // an unknown one is the audit's
			v.RuleSet = fmt.Sprintf("%s %d", d.RuleSet.Name, d.RuleSet.Version)
		}
		v.Standings = Tally(nil, d.Fleet)
	}
	var rounds []Round
	if w != nil {
		v.Season, v.Week, rounds, v.Standings = w.SeasonID, w.Week, w.Rounds, w.Standings
		v.State = "running"
		if w.Completed {
			v.State = "complete"
		}
		if w.Champion != nil {
			v.Champion = *w.Champion
		}
	}
	known := &costKnown{all: true, each: true}
	for _, s := range v.Standings {
		v.Spend.MicroUSD += s.CostMicroUSD
		if s.Heats > 0 {
			known.add(s.CostComplete)
		}
	}
	if slices.ContainsFunc(v.Standings, func(s Standing) bool { return s.Heats > 0 }) {
		v.Spend.Complete = known.result()
	}
	var shape []Stage
	if d != nil {
		shape = d.Shape
	}
	var seater *Seater
	if w != nil {
		seater = NewSeater(w.DrawSeed)
	}
	room := maxEntrants // for heats that have not begun: a document may claim any number
	for i := range max(len(shape), len(rounds)) {
		r := RoundView{Round: i + 1, Byes: []string{}, Wildcards: []Wildcard{}, Heats: []HeatView{}}
		if i < len(shape) {
			r.Places = shape[i].Wildcards
			if i < len(d.RoundArenas) && d.RoundArenas[i] >= 0 && d.RoundArenas[i] < len(d.Arenas) {
				r.Arena = d.Arenas[d.RoundArenas[i]].ID
			}
			n := min(max(shape[i].Heats, 0), room)
			room -= n
			for h := range n {
				r.Heats = append(r.Heats, HeatView{Heat: h + 1, State: "waiting", Seats: []SeatView{}})
			}
		}
		if i == 0 && d != nil {
			r.Byes = d.FirstRound.Byes
			for j, p := range d.FirstRound.Heats {
				if j < len(r.Heats) {
					r.Heats[j].Seats = waiting(p.Seats)
				}
			}
		}
		if i > 0 && i < len(rounds) && i < len(shape) {
			// Who plays follows from the round before, also in heats that have not begun.
			for _, p := range docs.seating(seater, i).Heats {
				if j := p.Heat - 1; j < len(r.Heats) {
					r.Heats[j].Seats = waiting(p.Seats)
				}
			}
		}
		if i < len(rounds) {
			played := &rounds[i]
			r.Arena, r.Byes = played.ArenaID, played.Byes
			for j := range played.Heats {
				h := heatView(&played.Heats[j])
				if h.State == "aborted" {
					v.State = "aborted"
				}
				if at := h.Heat - 1; at >= 0 && at < len(r.Heats) && r.Heats[at].Heat == h.Heat {
					r.Heats[at] = h
				} else {
					r.Heats = append(r.Heats, h)
				}
			}
			for k, id := range played.Wildcards {
				r.Wildcards = append(r.Wildcards, Wildcard{id, reason(rules, d != nil && d.RuleSet != nil, w.DrawSeed, played, k)})
			}
		}
		for j := range r.Heats {
			h := &r.Heats[j]
			if h.State == "waiting" && playing != nil && playing(HeatName(r.Round, h.Heat)) {
				h.State = "playing"
			}
		}
		v.Rounds = append(v.Rounds, r)
	}
	return v
}

// seating is the one of a round after the first, by the stream of rounds; empty
// when the draw or the field is not what the bracket asks for.
func (docs Documents) seating(seater *Seater, i int) Seating {
	d, field := docs.Draw, docs.Week.Rounds[i-1].Field()
	if i >= len(d.RoundArenas) || d.RoundArenas[i] < 0 || d.RoundArenas[i] >= len(d.Arenas) || len(field) != d.Shape[i].Field {
		return Seating{}
	}
	territories := d.Arenas[d.RoundArenas[i]].Territories
	if len(territories) != d.HeatSize || d.HeatSize < 2 {
		return Seating{}
	}
	return seater.Seat(i+1, field, territories)
}

func waiting(seats map[string]string) []SeatView {
	out := []SeatView{}
	for _, t := range sortedKeys(seats) {
		out = append(out, SeatView{Entrant: seats[t], Territory: t, Result: "waiting"})
	}
	return out
}

func heatView(h *Heat) HeatView {
	v := HeatView{Heat: h.Heat, State: "over", Attempts: h.Attempts, Output: h.Output, Seats: []SeatView{}, Earlier: h.PriorAttempts}
	if h.Winner != nil {
		v.Winner = *h.Winner
	} else {
		v.State = "drawn"
	}
	if h.Aborted {
		v.State = "aborted"
	}
	raced := fastest(h.Standings) != nil
	for _, s := range h.Standings {
		sv := SeatView{Entrant: s.FleetID, Territory: s.Territory, Result: s.Outcome, Points: s.MilestonePoints, DurableAtMS: s.DurableAtMS,
			Cost: Money{s.CostMicroUSD, s.CostComplete}}
		switch {
		case v.Winner == s.FleetID:
			sv.Result = "won"
		case s.DeadHeat:
			sv.Result = "dead heat"
		case s.Outcome == Incomplete && raced:
			sv.Result = "outraced"
		}
		if s.FailureSource != nil {
			sv.EndedBy = *s.FailureSource
		}
		if s.Detail != nil {
			sv.Detail = *s.Detail
		}
		v.Seats = append(v.Seats, sv)
	}
	if e := h.Erased(); e != nil {
		switch {
		case h.Winner != nil && *h.Winner == e.FleetID:
			v.Note = fmt.Sprintf("replayed although %s had won; it won again", e.FleetID)
		default:
			v.Note = fmt.Sprintf("a replay erased the win of %s", e.FleetID)
		}
	}
	return v
}

// reason is why a round's k-th wildcard has its place.
func reason(rules RuleSet, named bool, drawSeed string, r *Round, k int) string {
	all := candidates(r)
	fits := func(rule string) []Seat {
		list := rankWildcards(rule, drawSeed, r.Round, all)
		if len(list) < len(r.Wildcards) || !slices.Equal(ids(list[:len(r.Wildcards)]), r.Wildcards) {
			return nil
		}
		return list
	}
	list := fits(rules.Wildcards)
	if list == nil && !named {
		if list = fits(WildcardsCost); list != nil {
			return "by the early rule: " + WildcardsCost
		}
	}
	if list == nil {
		return "by no rule that is known"
	}
	s := list[k]
	equals := 0
	for _, o := range list {
		if o.MilestonePoints == s.MilestonePoints && compareTimes(o.DurableAtMS, s.DurableAtMS) == 0 {
			equals++
		}
	}
	if equals > 1 {
		return fmt.Sprintf("by lot among %d equals at %s", equals, text.Count(s.MilestonePoints, "point"))
	}
	what := []string{text.Count(s.MilestonePoints, "point")}
	if s.DurableAtMS != nil {
		what = append(what, fmt.Sprintf("durable at %d ms", *s.DurableAtMS))
	}
	return "on merit: " + strings.Join(what, ", ")
}
