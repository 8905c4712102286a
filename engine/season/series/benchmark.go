package series

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"refbox/engine/text"
)

// Suite is a benchmark's manifest: arenas with how many rounds of each.
type Suite struct {
	ID     string
	Arenas []SuiteArena
}

// SuiteArena is one of a suite's.
type SuiteArena struct {
	Manifest string
	Rounds   int
}

var suiteID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ReadSuite reads a suite (seasons reference, section 2.2).
func ReadSuite(data []byte) (*Suite, error) {
	var f struct {
		SchemaVersion int `toml:"schema_version"`
		Suite         struct {
			ID     string `toml:"id"`
			Rounds int    `toml:"rounds"`
		} `toml:"suite"`
		Arenas []struct {
			Manifest string `toml:"manifest"`
			Rounds   *int   `toml:"rounds"`
		} `toml:"arenas"`
	}
	meta, err := toml.Decode(string(data), &f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("suite: %s", text.Line(err.Error()))
	case len(meta.Undecoded()) > 0:
		return nil, fmt.Errorf("suite: unknown key %s", text.Line(meta.Undecoded()[0].String()))
	case f.SchemaVersion != 1:
		return nil, fmt.Errorf("suite: schema_version is %d, must be 1", f.SchemaVersion)
	case !suiteID.MatchString(f.Suite.ID):
		return nil, fmt.Errorf("suite.id %q may only have A-Z a-z 0-9 _ -", text.Line(f.Suite.ID))
	case f.Suite.Rounds < 1:
		return nil, fmt.Errorf("suite.rounds is %d, must be at least 1", f.Suite.Rounds)
	case len(f.Arenas) == 0:
		return nil, fmt.Errorf("suite: there is no [[arenas]]")
	}
	s := &Suite{ID: f.Suite.ID}
	for i, a := range f.Arenas {
		x := SuiteArena{a.Manifest, f.Suite.Rounds}
		if a.Rounds != nil {
			x.Rounds = *a.Rounds
		}
		if x.Manifest == "" || x.Rounds < 1 {
			return nil, fmt.Errorf("suite: arenas[%d] needs a manifest, and at least 1 round", i)
		}
		if slices.ContainsFunc(s.Arenas, func(o SuiteArena) bool { return o.Manifest == x.Manifest }) {
			return nil, fmt.Errorf("suite: arenas[%d] %s is there twice", i, text.Line(x.Manifest))
		}
		s.Arenas = append(s.Arenas, x)
	}
	return s, nil
}

// Benchmark is benchmark.json, schema 2.
type Benchmark struct {
	SchemaVersion   int              `json:"schema_version"`
	SuiteID         string           `json:"suite_id"`
	ArenasRequested int              `json:"arenas_requested"`
	ArenasCompleted int              `json:"arenas_completed"`
	Plan            []Planned        `json:"plan"`
	Arenas          []BenchmarkArena `json:"arenas"`
	Standings       []ModelStanding  `json:"standings"`
}

// Planned is an arena as the benchmark was begun with it.
type Planned struct {
	ArenaID          string `json:"arena_id"`
	Manifest         string `json:"manifest"`
	CompatibilityKey string `json:"compatibility_key"`
	Rounds           int    `json:"rounds"`
	Output           string `json:"output"` // NN-arena
}

// BenchmarkArena is one arena's part.
type BenchmarkArena struct {
	ArenaID         string     `json:"arena_id"`
	Category        *string    `json:"category,omitempty"`
	Output          string     `json:"output"`
	RoundsRequested int        `json:"rounds_requested"`
	RoundsCompleted int        `json:"rounds_completed"`
	Aborted         bool       `json:"aborted"`
	Standings       []Standing `json:"standings"`
}

// ModelStanding is the standing of a model with its adapter and effort.
type ModelStanding struct {
	Model               string  `json:"model"`
	Adapter             string  `json:"adapter"`
	ReasoningEffort     string  `json:"reasoning_effort"`
	Appearances         int     `json:"appearances"`
	Wins                int     `json:"wins"`
	DurableDeployments  int     `json:"durable_deployments"`
	DurableTimesMS      []int64 `json:"durable_times_ms"`
	MedianDurableMS     *int64  `json:"median_durable_ms"`
	MilestonePasses     int     `json:"milestone_passes"`
	MilestonesAvailable int     `json:"milestones_available"`
	Usage
	// Failures counts how the session of every agent ended, winners too: it is not a
	// count of failures.
	Failures map[string]int `json:"failures"`
}

// ArenaRuns is one arena of a benchmark with the heats that were run.
type ArenaRuns struct {
	Planned  Planned
	Category *string
	Runs     []Run
	Aborted  bool
}

// Bench sums a suite up.
func Bench(suite string, arenas []ArenaRuns) Benchmark {
	b := Benchmark{SchemaVersion: 2, SuiteID: suite, ArenasRequested: len(arenas), Plan: []Planned{}, Arenas: []BenchmarkArena{}, Standings: []ModelStanding{}}
	var all []Run
	for _, a := range arenas {
		b.Plan = append(b.Plan, a.Planned)
		if len(a.Runs) == 0 && !a.Aborted {
			continue
		}
		outputs := make([]string, len(a.Runs))
		s := Aggregate(a.Planned.ArenaID, a.Planned.Rounds, outputs, a.Runs)
		b.Arenas = append(b.Arenas, BenchmarkArena{a.Planned.ArenaID, a.Category, a.Planned.Output, a.Planned.Rounds, len(a.Runs), a.Aborted, s.Standings})
		if !a.Aborted && len(a.Runs) == a.Planned.Rounds {
			b.ArenasCompleted++
		}
		all = append(all, a.Runs...)
	}
	for _, g := range gather(all, func(p Player) group { return group{model: p.Model, adapter: p.Adapter, effort: p.Effort} }) {
		m := ModelStanding{Model: g.model, Adapter: g.adapter, ReasoningEffort: g.effort, Appearances: g.appearances, Wins: g.wins,
			DurableDeployments: len(g.durable), DurableTimesMS: slices.Sorted(slices.Values(g.durable)), MedianDurableMS: median(g.durable),
			MilestonePasses: g.passed, MilestonesAvailable: g.available, Usage: g.usage(), Failures: g.sources}
		if m.DurableTimesMS == nil {
			m.DurableTimesMS = []int64{}
		}
		b.Standings = append(b.Standings, m)
	}
	slices.SortFunc(b.Standings, compareModels)
	return b
}

func compareModels(a, b ModelStanding) int {
	return cmp.Or(cmp.Compare(b.Wins, a.Wins), cmp.Compare(b.DurableDeployments, a.DurableDeployments), coverage(a, b),
		nullFirst(a.MedianDurableMS, b.MedianDurableMS), nullFirst(a.CostMicroUSD, b.CostMicroUSD), strings.Compare(a.Model, b.Model))
}

// coverage puts the larger share of milestones first, and none available last.
func coverage(a, b ModelStanding) int {
	if (a.MilestonesAvailable == 0) != (b.MilestonesAvailable == 0) {
		return cmp.Compare(b.MilestonesAvailable, a.MilestonesAvailable)
	}
	return cmp.Compare(b.MilestonePasses*a.MilestonesAvailable, a.MilestonePasses*b.MilestonesAvailable)
}

// Resumable says whether a benchmark may go on: the whole plan is the same.
func (b *Benchmark) Resumable(suite string, plan []Planned) error {
	switch {
	case b.SchemaVersion != 2:
		return fmt.Errorf("%w: schema %d, not 2", ErrOther, b.SchemaVersion)
	case b.SuiteID != suite:
		return fmt.Errorf("%w: it is of suite %s, not %s", ErrOther, b.SuiteID, suite)
	case len(b.Plan) != len(plan):
		return fmt.Errorf("%w: %d arenas were planned, now %d", ErrOther, len(b.Plan), len(plan))
	}
	for i := range plan {
		if b.Plan[i] != plan[i] {
			return fmt.Errorf("%w: arena %d was planned as %+v, now it is %+v", ErrOther, i+1, b.Plan[i], plan[i])
		}
	}
	return nil
}
