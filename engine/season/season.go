// Package season is what a season's documents say and mean: the manifest, the
// draw of a week, the bracket, the week's results, and what of all that can be
// recomputed. It runs nothing and knows no engine; season/run does.
//
// Promises:
//
//   - The published draws of the reference recompute bit for bit, digests
//     included (seasons reference, sections 1.2 to 1.6).
//   - Rules that the reference never wrote down have names here, a draw of ours
//     says which are in force, and an audit of a draw that doesn't says which fit.
//   - Audit says for each check whether it holds, is odd but within the rules, is
//     broken, or cannot be made since something is missing; and for each field that
//     no check binds, what is missing. Documents are never trusted and never
//     followed: nothing that they name is opened outside their own folder.
//   - Strings are sanitised when they are read; counts and sizes are bounded.
package season

import "fmt"

// Schema is the version of draw.json and week.json.
const Schema = 1

// Entrant is a competitor of a season.
type Entrant struct {
	ID              string `json:"id"`
	Model           string `json:"model"`
	Adapter         string `json:"adapter"`
	ReasoningEffort string `json:"reasoning_effort"`
	// Script is the package's file that adapter script plays, for an entrant that is
	// an arena's own agent; never part of a document.
	Script string `json:"-"`
}

// Rules are a season's own numbers.
type Rules struct {
	UnavailableReplays int  `json:"unavailable_replays"`    // whole-heat replays while a seat is unavailable
	DrawReplays        *int `json:"draw_replays,omitempty"` // whole-heat replays for a sporting draw; nil in the earliest draws: none
	MemoryMiB          *int `json:"memory_mib,omitempty"`   // at least this for every machine; never lowers one
}

// Draws is DrawReplays as a number.
func (r Rules) Draws() int {
	if r.DrawReplays == nil {
		return 0
	}
	return *r.DrawReplays
}

// Arena is an arena that a round may be played in.
type Arena struct {
	ID               string   `json:"arena_id"`
	Manifest         string   `json:"manifest"`
	CompatibilityKey string   `json:"compatibility_key"`
	Territories      []string `json:"territories"` // in the manifest's order
	// Hashes are ours: the parts that the key rests on, by name, so that a change
	// can be shown and not only noticed.
	Hashes map[string]string `json:"hashes,omitempty"`
}

// Stage is one round of the bracket's shape.
type Stage struct {
	Round     int `json:"round"`
	Field     int `json:"field"`
	Heats     int `json:"heats"`
	Byes      int `json:"byes"`
	Wildcards int `json:"wildcards"`
}

// Pairing is who sits where in a heat: entrants by territory.
type Pairing struct {
	Heat  int               `json:"heat"`
	Seats map[string]string `json:"seats"`
}

// Seating is a whole round's.
type Seating struct {
	Round int       `json:"round"`
	Heats []Pairing `json:"heats"`
	Byes  []string  `json:"byes"`
}

// Draw is draw.json: made once, before anything is run, from public rules and
// the draw seed. The order of the fields is that of the file, and part of its
// digest.
type Draw struct {
	SchemaVersion  int       `json:"schema_version"`
	SeasonID       string    `json:"season_id"`
	SeasonManifest string    `json:"season_manifest"`
	Week           string    `json:"week"`
	DrawSeed       string    `json:"draw_seed"`
	Commitment     string    `json:"variation_seed_commitment"`
	HeatSize       int       `json:"heat_size"`
	Rules          Rules     `json:"rules"`
	Fleet          []Entrant `json:"fleet"`
	EligiblePool   []Entrant `json:"eligible_pool,omitempty"` // when a number of entrants was asked for
	Arenas         []Arena   `json:"arenas"`
	Shape          []Stage   `json:"shape"`
	RoundArenas    []int     `json:"round_arenas"`
	FirstRound     Seating   `json:"first_round"`

	// Ours; absent from draws by the reference's rules.
	RuleSet *RuleSet `json:"rule_set,omitempty"`
	Entropy *Entropy `json:"entropy,omitempty"`
}

// Outcomes of a seat.
const (
	Durable    = "durable"
	Incomplete = "incomplete"
	Failed     = "failed"
	Forfeit    = "forfeit"
)

// Seat is how an attempt at a heat went for one entrant.
type Seat struct {
	FleetID         string  `json:"fleet_id"`
	Territory       string  `json:"territory"`
	Outcome         string  `json:"outcome"`
	MilestonePoints int64   `json:"milestone_points"`
	DurableAtMS     *int64  `json:"durable_at_ms"`
	CostMicroUSD    int64   `json:"cost_microusd"`           // what is known of it
	CostComplete    *bool   `json:"cost_complete,omitempty"` // nil: nobody knows
	FailureSource   *string `json:"failure_source,omitempty"`
	Detail          *string `json:"detail,omitempty"`
	// DeadHeat is ours: durable at an instant that the referee could not tell from
	// another seat's.
	DeadHeat bool `json:"dead_heat,omitempty"`
}

// Heat is the result of one heat, its replays included.
type Heat struct {
	Heat          int               `json:"heat"`
	Output        string            `json:"output"` // the last attempt's folder
	Attempts      int               `json:"attempts"`
	PriorAttempts [][]Seat          `json:"prior_attempts"` // the standings of the earlier ones, in order
	Seats         map[string]string `json:"seats"`
	Winner        *string           `json:"winner"`
	Standings     []Seat            `json:"standings"` // of the last attempt
	Aborted       bool              `json:"aborted"`
}

// Round is the results of a round.
type Round struct {
	Round     int      `json:"round"`
	ArenaID   string   `json:"arena_id"`
	Heats     []Heat   `json:"heats"`
	Byes      []string `json:"byes"`
	Wildcards []string `json:"wildcards"` // best first; empty until the round is over
}

// Standing is an entrant's place in the week.
type Standing struct {
	FleetID            string `json:"fleet_id"`
	Model              string `json:"model"`
	ReachedRound       int    `json:"reached_round"` // the champion's is one past the last; Reached is for people
	Heats              int    `json:"heats"`
	Wins               int    `json:"wins"`
	DurableDeployments int    `json:"durable_deployments"`
	MilestonePoints    int64  `json:"milestone_points"`
	Forfeits           int    `json:"forfeits"`
	CostMicroUSD       int64  `json:"cost_microusd"`
	CostComplete       *bool  `json:"cost_complete,omitempty"`
}

// Reached is the round up to which the entrant came, in words: the last in which it had
// a seat, or champion.
func (s Standing) Reached(champion string) string {
	if champion != "" && s.FleetID == champion {
		return "champion"
	}
	return fmt.Sprintf("round %d", s.ReachedRound)
}

// Week is week.json: what came of a draw, rewritten after every heat.
type Week struct {
	SchemaVersion int        `json:"schema_version"`
	DrawDigest    *string    `json:"draw_digest,omitempty"`
	SeasonID      string     `json:"season_id"`
	Week          string     `json:"week"`
	DrawSeed      string     `json:"draw_seed"`
	Commitment    string     `json:"variation_seed_commitment"`
	VariationSeed *string    `json:"variation_seed"` // nil until the week is complete
	Completed     bool       `json:"completed"`
	Rounds        []Round    `json:"rounds"`
	Champion      *string    `json:"champion"`
	Standings     []Standing `json:"standings"`
}
