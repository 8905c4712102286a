package season

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// RuleSet names the rules that the reference left unwritten, so that nobody has
// to guess which were in force (seasons reference, section 1.14).
type RuleSet struct {
	Name      string `json:"name"`
	Version   int    `json:"version"`
	Wildcards string `json:"wildcards"` // one of the Wildcards constants
	Replays   string `json:"replays"`   // one of the Replays constants
	Vacancies string `json:"vacancies"` // one of the Vacancies constants
	Outcomes  string `json:"outcomes"`  // one of the Outcomes constants
	Program   string `json:"program,omitempty"`
	// ManifestSHA256 is of the season manifest's bytes.
	ManifestSHA256 string `json:"season_manifest_sha256,omitempty"`
}

// Names of rules.
const (
	// WildcardsLottery orders non-winners by points and durable time, and among
	// equals by lot.
	WildcardsLottery = "points, durable time, lot"
	// WildcardsCost is the early rule: equals by cost, then id.
	WildcardsCost = "points, durable time, cost, id"

	// ReplaysAlways replays a heat with an unavailable seat although another seat
	// has won it.
	ReplaysAlways = "also after a win"
	// ReplaysUnlessWon lets a win stand.
	ReplaysUnlessWon = "unless won"

	// VacanciesStop ends the week when a heat has no winner to send on.
	VacanciesStop = "stop"
	// VacanciesWildcards fills the field with that many more wildcards.
	VacanciesWildcards = "more wildcards"

	// OutcomesSource takes a forfeit from the session's end: provider or harness.
	OutcomesSource = "provider, harness"
	// OutcomesSeat counts a seat that the arena or the controller did not get ready
	// as unavailable too, and knows dead heats.
	OutcomesSeat = "provider, harness, seat"
)

// The rule sets that there are. Early is the reference's until 11 September 2026,
// Reference its later one; neither is written into draws.
var (
	Early     = RuleSet{Name: "early", Version: 1, Wildcards: WildcardsCost, Replays: ReplaysAlways, Vacancies: VacanciesStop, Outcomes: OutcomesSource}
	Reference = RuleSet{Name: "reference", Version: 1, Wildcards: WildcardsLottery, Replays: ReplaysAlways, Vacancies: VacanciesStop, Outcomes: OutcomesSource}
	Refbox    = RuleSet{Name: "refbox", Version: 1, Wildcards: WildcardsLottery, Replays: ReplaysUnlessWon, Vacancies: VacanciesWildcards, Outcomes: OutcomesSeat}
)

// InForce are the rules of a draw: the ones that it names, or the reference's.
// An unknown or altered rule set is an error.
func (d *Draw) InForce() (RuleSet, error) {
	if d.RuleSet == nil {
		return Reference, nil
	}
	for _, known := range []RuleSet{Refbox, Reference} {
		if got := *d.RuleSet; got.Name == known.Name && got.Version == known.Version {
			got.Program, got.ManifestSHA256 = "", ""
			if got != known {
				return got, fmt.Errorf("rule set %s %d is %+v, the draw says %+v", known.Name, known.Version, known, got)
			}
			return known, nil
		}
	}
	return *d.RuleSet, fmt.Errorf("rule set %q version %d is not known to this refbox; use a newer one", d.RuleSet.Name, d.RuleSet.Version)
}

// Ended is what a heat's recording says of one seat, before the season's rules.
type Ended struct {
	Territory     string
	Points        int64
	DurableAtMS   *int64
	DeadHeat      bool
	CostMicroUSD  int64
	CostComplete  *bool
	FailureSource string // who ended the agent's session: provider, harness, player, …
	TerminalState string // completed, failed, interrupted, terminated, incomplete
	Unavailable   bool   // the seat did not start, or was lost to the arena or the controller
	Detail        string
}

// Judge is the seat's outcome (seasons reference, section 1.8).
func (rs RuleSet) Judge(e Ended) string {
	src, state := e.FailureSource, e.TerminalState
	switch {
	case e.DurableAtMS != nil:
		return Durable
	case src == "provider" || src == "harness":
		return Forfeit
	case e.Unavailable && rs.Outcomes == OutcomesSeat:
		return Forfeit
	case src == "arena" && state == "interrupted",
		src == "player" && (state == "incomplete" || state == "completed"):
		return Incomplete
	}
	return Failed
}

// Standings are an attempt's, in order, from what its recording says.
func (rs RuleSet) Standings(seats map[string]string, ends []Ended) []Seat {
	out := make([]Seat, 0, len(ends))
	for _, e := range ends {
		s := Seat{FleetID: seats[e.Territory], Territory: e.Territory, Outcome: rs.Judge(e), MilestonePoints: e.Points,
			DurableAtMS: e.DurableAtMS, CostMicroUSD: e.CostMicroUSD, CostComplete: e.CostComplete, DeadHeat: e.DeadHeat && rs.Outcomes == OutcomesSeat}
		if e.FailureSource != "" {
			s.FailureSource = &e.FailureSource
		}
		if e.Detail != "" {
			s.Detail = &e.Detail
		}
		out = append(out, s)
	}
	slices.SortFunc(out, compareSeats)
	return out
}

// compareTimes puts the earlier before the later and both before none.
func compareTimes(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

// compareSeats is the order of a heat's standings.
func compareSeats(a, b Seat) int {
	return cmp.Or(cmp.Compare(b.MilestonePoints, a.MilestonePoints), compareTimes(a.DurableAtMS, b.DurableAtMS),
		cmp.Compare(a.CostMicroUSD, b.CostMicroUSD), strings.Compare(a.FleetID, b.FleetID))
}

// fastest is the strictly fastest durable seat; nil when there is none, or when
// the first cannot be told from another.
func fastest(seats []Seat) *Seat {
	var best *Seat
	tied := false
	for i := range seats {
		s := &seats[i]
		if s.DurableAtMS == nil {
			continue
		}
		switch c := 0; {
		case best == nil:
			best = s
		default:
			c = cmp.Compare(*s.DurableAtMS, *best.DurableAtMS)
			if c < 0 {
				best, tied = s, false
			} else if c == 0 {
				tied = true
			}
		}
	}
	if best == nil || tied || best.DeadHeat {
		return nil
	}
	return best
}

// Winner is who wins an attempt: whom the referee named, else the strictly
// fastest durable seat. A final is won by a durable seat or by nobody.
func Winner(seats []Seat, refereeTerritory string, final bool) *string {
	var won *Seat
	for i := range seats {
		if refereeTerritory != "" && seats[i].Territory == refereeTerritory {
			won = &seats[i]
		}
	}
	if won == nil {
		won = fastest(seats)
	}
	if won == nil || final && won.DurableAtMS == nil {
		return nil
	}
	id := won.FleetID
	return &id
}

// Attempt sorts an attempt for the rules of replays.
type attemptKind uint8

const (
	decided attemptKind = iota
	unavailable
	drawn // a sporting draw: everybody could play, nobody was durable first
)

func kindOf(seats []Seat) attemptKind {
	if slices.ContainsFunc(seats, func(s Seat) bool { return s.Outcome == Forfeit }) {
		return unavailable
	}
	if fastest(seats) == nil {
		return drawn
	}
	return decided
}

// Replay says whether a heat is played again after these attempts, and why. The
// allowances for unavailable seats and for draws are counted apart (section 1.8).
func (rs RuleSet) Replay(rules Rules, attempts [][]Seat) (again bool, why string) {
	if len(attempts) == 0 {
		return false, ""
	}
	last := attempts[len(attempts)-1]
	kind := kindOf(last)
	if kind == decided || kind == unavailable && rs.Replays == ReplaysUnlessWon && fastest(last) != nil {
		return false, ""
	}
	n := 0
	for _, a := range attempts {
		if kindOf(a) == kind {
			n++
		}
	}
	if kind == unavailable {
		return n <= rules.UnavailableReplays, "a seat was unavailable"
	}
	return n <= rules.Draws(), "nobody was durable first"
}

// candidates are who may become a round's wildcard: every seat of the final
// attempts that did not win its heat and did not forfeit.
func candidates(r *Round) []Seat {
	var out []Seat
	for _, h := range r.Heats {
		for _, s := range h.Standings {
			if s.Outcome != Forfeit && (h.Winner == nil || *h.Winner != s.FleetID) {
				out = append(out, s)
			}
		}
	}
	return out
}

// rankWildcards orders the candidates by a rule, best first.
func rankWildcards(rule, drawSeed string, round int, list []Seat) []Seat {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Seat) int { return strings.Compare(a.FleetID, b.FleetID) })
	merit := func(a, b Seat) int {
		return cmp.Or(cmp.Compare(b.MilestonePoints, a.MilestonePoints), compareTimes(a.DurableAtMS, b.DurableAtMS))
	}
	if rule == WildcardsCost {
		slices.SortStableFunc(list, func(a, b Seat) int { return cmp.Or(merit(a, b), cmp.Compare(a.CostMicroUSD, b.CostMicroUSD)) })
		return list
	}
	shuffle(wildcardsStream(drawSeed, round), list)
	slices.SortStableFunc(list, merit)
	return list
}

// Places is how many wildcards a round has: the shape's, and under
// VacanciesWildcards one for each heat without a winner.
func (rs RuleSet) Places(stage Stage, r *Round) int {
	n := stage.Wildcards
	if rs.Vacancies == VacanciesWildcards {
		for _, h := range r.Heats {
			if h.Winner == nil {
				n++
			}
		}
	}
	return n
}

// Pick is the wildcards of a finished round, best first; fewer than there are places when
// too many forfeited.
func (rs RuleSet) Pick(drawSeed string, stage Stage, r *Round) []string {
	out := []string{}
	if stage.Heats == 1 && stage.Byes == 0 {
		return out
	}
	for _, s := range rankWildcards(rs.Wildcards, drawSeed, r.Round, candidates(r)) {
		if len(out) == rs.Places(stage, r) {
			break
		}
		out = append(out, s.FleetID)
	}
	return out
}

// Drawn says whether a heat's last attempt was a sporting draw.
func (h *Heat) Drawn() bool { return kindOf(h.Standings) == drawn }

// Attempt lists the standings of every attempt, in order.
func (h *Heat) attempts() [][]Seat { return append(slices.Clone(h.PriorAttempts), h.Standings) }

// Erased is the winner of the latest earlier attempt that had one, when a replay
// changed or removed it or merely repeated it; nil when no win was replayed.
func (h *Heat) Erased() *Seat {
	for _, a := range slices.Backward(h.PriorAttempts) {
		if s := fastest(a); s != nil {
			return s
		}
	}
	return nil
}
