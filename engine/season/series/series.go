// Package series is what several heats say together: a series (one arena, the
// agents rotate through its seats), a benchmark (a suite of series over arenas),
// and figures of ours beside the reference's.
//
// The reference's documents are recomputed to the byte of every number (seasons
// reference, section 2), its oddities included: an unknown cost beats a known one,
// and the median of an even number is the upper one. Figures does without them.
package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/season/provenance"
	"refbox/engine/world"
)

// Series is series.json, schema 1.
type Series struct {
	SchemaVersion   int        `json:"schema_version"`
	ArenaID         string     `json:"arena_id"`
	RoundsRequested int        `json:"rounds_requested"`
	RoundsCompleted int        `json:"rounds_completed"`
	Rounds          []Round    `json:"rounds"`
	Standings       []Standing `json:"standings"`
}

// Round is one heat of a series.
type Round struct {
	Round           int               `json:"round"`
	Output          string            `json:"output"`
	Seats           map[string]string `json:"seats"` // territories by agent
	WinnerTerritory *string           `json:"winner_territory"`
	WinnerAgent     *string           `json:"winner_agent"`
	DurationMS      int64             `json:"duration_ms"`
	UsageAgents     []string          `json:"usage_agents"`
}

// Standing is an agent's.
type Standing struct {
	Agent              string `json:"agent"`
	Model              string `json:"model"`
	Appearances        int    `json:"appearances"`
	Wins               int    `json:"wins"`
	DurableDeployments int    `json:"durable_deployments"`
	MedianDurableMS    *int64 `json:"median_durable_ms"`
	Usage
}

// Usage is what agents used: nil unless it was recorded in every heat.
type Usage struct {
	UsageRecorded  int    `json:"usage_recorded"` // heats
	InputTokens    *int64 `json:"input_tokens"`
	OutputTokens   *int64 `json:"output_tokens"`
	CostMicroUSD   *int64 `json:"cost_microusd"`
	CostPerDurable *int64 `json:"cost_per_durable_microusd"`
}

// Run is what one heat's recording says.
type Run struct {
	Name       string // of its folder
	ArenaID    string
	Key        string // compatibility key; "" when not recorded
	Form       provenance.Form
	SeedSHA256 string // of the secret values; "" in the reference's
	Finished   bool   // not aborted
	Winner     string // a territory; "" for none
	DurationMS int64
	Host       Host
	Players    []Player
}

// Host is what a heat's recording says of the machine that it ran on.
type Host struct {
	Accel         string // "" when not recorded
	TimeoutFactor string
	PreparedMS    int64 // that all seats took to be ready: what shows the host's load; -1 when not recorded
}

// Player is one agent in one heat.
type Player struct {
	Agent, Territory          string
	Model, Adapter, Effort    string
	DurableMS                 *int64
	Passed, Milestones        int // Milestones is 0 without a manifest
	FailureSource             string
	UsageRecorded             bool // some charge had tokens or cost
	CostKnown                 bool // every charge had a cost
	InputTokens, OutputTokens int64
	CostMicroUSD              int64
}

// Won says whether the player won the heat.
func (r Run) won(p Player) bool { return r.Winner != "" && r.Winner == p.Territory }

// ReadRun reads a heat's recording, by folding its log.
func ReadRun(ctx context.Context, dir string) (Run, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return Run{}, err
	}
	defer rec.Close()
	if err := rec.Load(ctx); err != nil {
		return Run{}, err
	}
	w := rec.World(rec.Len())
	if rec.Len() == 0 || !w.Over() {
		return Run{}, fmt.Errorf("%s: the heat is not over", dir)
	}
	if from := w.BranchedFrom(); from != "" {
		return Run{}, fmt.Errorf("%s: the heat was %s, so it cannot be compared with others", dir, from)
	}
	r := Run{Name: filepath.Base(dir), ArenaID: rec.Arena(), Finished: w.MatchState == world.Finished, DurationMS: whole(w.ElapsedMS), Host: Host{PreparedMS: -1}}
	if w.FinishedMS != nil {
		r.DurationMS = whole(*w.FinishedMS)
	}
	if w.Winner != nil {
		r.Winner = *w.Winner
	}
	adapters := map[string]string{}
	if m := rec.Match(); m != nil {
		r.Key, r.Form, r.SeedSHA256 = m.CompatibilityKey, provenance.FormOf(m), m.SeedSHA256
		r.Host.Accel, r.Host.TimeoutFactor = m.Machines["accel"], m.Machines["timeout_factor"]
		for _, s := range m.Seats {
			adapters[s.Agent] = s.Adapter
		}
	}
	if w.Prepared != nil {
		r.Host.PreparedMS = whole(w.Prepared.TookMS)
	}
	charged := map[string]bool{}
	err = rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		if u, ok := e.Body.(event.UsageCharged); ok && (u.InputTokens != nil || u.OutputTokens != nil || u.CostMicroUSD != nil) {
			charged[u.Agent] = true
		}
		return true
	})
	if err != nil {
		return r, err
	}
	manifest := rec.Manifest()
	for _, s := range w.Seats() {
		a := w.Agent(s.Agent)
		if a == nil {
			continue
		}
		p := Player{Agent: a.ID, Territory: s.ID, Model: a.Model, Adapter: adapters[a.ID], Passed: s.Passed(), UsageRecorded: charged[a.ID],
			InputTokens: whole(a.InputTokens), OutputTokens: whole(a.OutputTokens), CostMicroUSD: whole(a.CostMicroUSD)}
		if c := a.CostComplete(); c != nil {
			p.CostKnown = *c
		}
		if s.DurableAtMS != nil {
			at := whole(*s.DurableAtMS)
			p.DurableMS = &at
		}
		if a.FailureSource != nil {
			p.FailureSource = *a.FailureSource
		}
		if manifest != nil {
			p.Milestones = len(manifest.Milestones())
			if ma, ok := manifest.AgentOf(s.ID); ok {
				p.Effort = ma.ReasoningEffort
				p.Adapter = cmp.Or(p.Adapter, ma.Adapter)
			}
		}
		r.Players = append(r.Players, p)
	}
	if len(r.Players) == 0 {
		return r, errors.New(dir + ": nobody played")
	}
	return r, nil
}

func whole(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Rotate is who sits where in round r, counted from 0: the agent that starts at
// territory i sits at (i + r) mod n.
func Rotate(territories, agents []string, r int) map[string]string {
	out := make(map[string]string, len(agents))
	for i, a := range agents {
		out[a] = territories[(i+r)%len(territories)]
	}
	return out
}

// RoundOf is a heat as a series has it.
func RoundOf(n int, output string, run Run) Round {
	r := Round{Round: n, Output: output, Seats: map[string]string{}, DurationMS: run.DurationMS, UsageAgents: []string{}}
	for _, p := range run.Players {
		r.Seats[p.Agent] = p.Territory
		if run.won(p) {
			r.WinnerTerritory, r.WinnerAgent = &p.Territory, &p.Agent
		}
		if p.UsageRecorded {
			r.UsageAgents = append(r.UsageAgents, p.Agent)
		}
	}
	slices.Sort(r.UsageAgents)
	return r
}

// Aggregate is the series that the heats of all its rounds make.
func Aggregate(arenaID string, requested int, outputs []string, runs []Run) Series {
	s := Series{SchemaVersion: 1, ArenaID: arenaID, RoundsRequested: requested, RoundsCompleted: len(runs), Rounds: []Round{}, Standings: []Standing{}}
	for i, r := range runs {
		s.Rounds = append(s.Rounds, RoundOf(i+1, outputs[i], r))
	}
	for _, g := range gather(runs, func(p Player) group { return group{agent: p.Agent} }) {
		s.Standings = append(s.Standings, Standing{g.agent, g.model, g.appearances, g.wins, len(g.durable), median(g.durable), g.usage()})
	}
	slices.SortFunc(s.Standings, compareStandings)
	return s
}

func compareStandings(a, b Standing) int {
	return cmp.Or(cmp.Compare(b.Wins, a.Wins), cmp.Compare(b.DurableDeployments, a.DurableDeployments),
		nullFirst(a.MedianDurableMS, b.MedianDurableMS), nullFirst(a.CostMicroUSD, b.CostMicroUSD), strings.Compare(a.Agent, b.Agent))
}

// nullFirst is the reference's order: what is not known beats what is.
func nullFirst(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

// median is the reference's: the upper one of an even number.
func median(list []int64) *int64 {
	if len(list) == 0 {
		return nil
	}
	list = slices.Sorted(slices.Values(list))
	return &list[len(list)/2]
}

// group sums players up, by agent in a series and by (model, adapter, effort) in a
// benchmark.
type group struct {
	agent, model, adapter, effort string

	appearances, wins, recorded int
	durable                     []int64
	passed, available           int
	input, output, cost         int64
	sources                     map[string]int
}

func gather(runs []Run, by func(Player) group) []*group {
	type key struct{ agent, model, adapter, effort string }
	byKey := map[key]*group{}
	var order []*group
	for _, r := range runs {
		for _, p := range r.Players {
			k := by(p)
			id := key{k.agent, k.model, k.adapter, k.effort}
			g := byKey[id]
			if g == nil {
				g = &group{agent: k.agent, model: cmp.Or(k.model, p.Model), adapter: k.adapter, effort: k.effort, sources: map[string]int{}}
				byKey[id] = g
				order = append(order, g)
			}
			g.appearances++
			if r.won(p) {
				g.wins++
			}
			if p.DurableMS != nil {
				g.durable = append(g.durable, *p.DurableMS)
			}
			if p.UsageRecorded {
				g.recorded++
			}
			g.passed += p.Passed
			g.available += p.Milestones
			g.input += p.InputTokens
			g.output += p.OutputTokens
			g.cost += p.CostMicroUSD
			if p.FailureSource != "" {
				g.sources[p.FailureSource]++
			}
		}
	}
	return order
}

func (g *group) usage() Usage {
	u := Usage{UsageRecorded: g.recorded}
	if g.recorded != g.appearances {
		return u
	}
	u.InputTokens, u.OutputTokens, u.CostMicroUSD = &g.input, &g.output, &g.cost
	if n := int64(len(g.durable)); n > 0 {
		each := g.cost / n
		u.CostPerDurable = &each
	}
	return u
}

// ErrOther is of heats that may not go on with a series or benchmark.
var ErrOther = errors.New("this is another series")

// Resumable says whether a series may go on: same schema, arena and number of
// rounds, contiguous rounds, and every heat that there is run under today's key
// (seasons reference, section 2.1).
func (s *Series) Resumable(arenaID string, requested int, key string, keyOf func(output string) (string, error)) error {
	switch {
	case s.SchemaVersion != 1:
		return fmt.Errorf("%w: schema %d, not 1", ErrOther, s.SchemaVersion)
	case s.ArenaID != arenaID:
		return fmt.Errorf("%w: it is of arena %s, not %s", ErrOther, s.ArenaID, arenaID)
	case s.RoundsRequested != requested:
		return fmt.Errorf("%w: %d rounds were asked for, now %d", ErrOther, s.RoundsRequested, requested)
	case s.RoundsCompleted != len(s.Rounds):
		return fmt.Errorf("%w: it says that %d rounds are complete and lists %d", ErrOther, s.RoundsCompleted, len(s.Rounds))
	}
	for i, r := range s.Rounds {
		if r.Round != i+1 {
			return fmt.Errorf("%w: round %d is missing", ErrOther, i+1)
		}
		was, err := keyOf(r.Output)
		if err != nil {
			return fmt.Errorf("round %d: %w", r.Round, err)
		}
		if was != key {
			return fmt.Errorf("%w: round %d was run under the key %s, the arena's is %s now", ErrOther, r.Round, was, key)
		}
	}
	return nil
}

// agents of a round, sorted.
func (r Round) agents() []string { return slices.Sorted(maps.Keys(r.Seats)) }
