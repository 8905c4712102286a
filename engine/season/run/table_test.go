package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"refbox/engine/season"
)

// table plays heats by a table that only depends on who sits where: the same
// attempt comes out the same always.
type table struct {
	takes time.Duration // one heat, in two halves with something written between
	keys  map[string]string

	mu      sync.Mutex
	running int
	most    int // that ran at the same time
	ran     int
}

func (tb *table) Key(x season.Arena, _ season.Rules) (string, map[string]string, error) {
	if k, ok := tb.keys[x.ID]; ok {
		return k, map[string]string{"verifiers": k}, nil
	}
	return "key of " + x.ID, map[string]string{"verifiers": "v1"}, nil
}

func (tb *table) Run(ctx context.Context, o Order) error {
	tb.mu.Lock()
	tb.ran++
	tb.running++
	tb.most = max(tb.most, tb.running)
	tb.mu.Unlock()
	defer func() {
		tb.mu.Lock()
		tb.running--
		tb.mu.Unlock()
	}()
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	half := func() error {
		moment()
		if tb.takes == 0 {
			return ctx.Err()
		}
		t := time.NewTimer(tb.takes / 2)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := half(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "half"), nil, 0o600); err != nil {
		return err
	}
	if err := half(); err != nil {
		return err
	}
	data, err := json.Marshal(outcome(o))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "half"), data, 0o600); err != nil {
		return err
	}
	moment()
	return os.Rename(filepath.Join(o.Dir, "half"), filepath.Join(o.Dir, "result"))
}

func (tb *table) Result(dir string) (a season.Attempt, finished bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "result"))
	if errors.Is(err, fs.ErrNotExist) {
		return a, false, nil
	}
	if err != nil {
		return a, false, err
	}
	return a, true, json.Unmarshal(data, &a)
}

// outcome is an attempt's: mostly one durable seat, sometimes two, a dead heat, a
// forfeit, nobody.
func outcome(o Order) season.Attempt {
	h := fnv.New64a()
	fmt.Fprint(h, o.Arena.ID, o.Round, o.Heat, o.Attempt, o.Seats)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	territories := slices.Sorted(maps.Keys(o.Seats))
	a := season.Attempt{Key: o.Arena.CompatibilityKey, Seed: o.Seed}
	durable := r.IntN(len(territories) + 1) // the last: nobody
	dead := r.IntN(12) == 0
	for i, t := range territories {
		e := season.Ended{Territory: t, Points: int64(r.IntN(4) * 5), CostMicroUSD: int64(r.IntN(1000)), FailureSource: "player", TerminalState: "incomplete"}
		if r.IntN(3) > 0 {
			yes := r.IntN(5) > 0
			e.CostComplete = &yes
		}
		if i == durable || i == durable+1 && dead {
			at := int64(30_000 + r.IntN(1000))
			e.DurableAtMS, e.Points, e.DeadHeat, e.FailureSource = &at, 100, dead, "arena"
		} else if r.IntN(8) == 0 {
			e.FailureSource = []string{"harness", "provider"}[r.IntN(2)]
		} else if r.IntN(30) == 0 {
			e.Unavailable, e.FailureSource = true, "controller"
		}
		a.Ends = append(a.Ends, e)
	}
	if n := len(territories); durable < n && !dead {
		a.Winner = territories[durable]
	} else if dead && durable == n-1 {
		a.Ends[durable].DeadHeat = false
		a.Winner = territories[durable]
	}
	return a
}

// drawWeek draws a week of n entrants over two arenas into a folder.
func drawWeek(dir string, n int, label string) (*season.Draw, error) {
	return drawBy(&season.Refbox, dir, n, label)
}

// drawBy draws by a rule set, nil for the reference's draw.
func drawBy(set *season.RuleSet, dir string, n int, label string) (*season.Draw, error) {
	two := 2
	m := &season.Manifest{File: "season.toml", ID: "cup", Rules: season.Rules{UnavailableReplays: 1, DrawReplays: &two}}
	for i := range n {
		m.Fleet = append(m.Fleet, season.Entrant{ID: fmt.Sprintf("e%03d", i), Model: "careful", Adapter: "script", ReasoningEffort: "high"})
	}
	arenas := []season.Arena{
		{ID: "x", Manifest: "x", CompatibilityKey: "key of x", Territories: []string{"x-one", "x-two", "x-three"}, Hashes: map[string]string{"verifiers": "v1"}},
		{ID: "y", Manifest: "y", CompatibilityKey: "key of y", Territories: []string{"y-one", "y-two", "y-three"}, Hashes: map[string]string{"verifiers": "v1"}},
	}
	secret := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	nonce := func(who string) season.Contribution {
		n := season.CommitSeed(label + who)
		return season.Contribution{Contributor: who, Commitment: season.Commit("cup", label, who, n), Nonce: n}
	}
	o := season.Order{Week: label, Secret: secret}
	if set != nil {
		rules := *set
		o.RuleSet, o.Nonces = &rules, []season.Contribution{nonce("ann"), nonce("bob")}
	} else {
		for i := range arenas {
			arenas[i].Hashes = nil
		}
	}
	d, err := season.NewDraw(m, arenas, o)
	if err != nil {
		return nil, err
	}
	return d, Create(dir, d, secret)
}
