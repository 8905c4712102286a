package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"refbox/engine/heat"
	"refbox/engine/season"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

// behaviour is what every implementation of Heats promises.
func behaviour(t *testing.T, heats Heats, order func(attempt int) Order, begun func(dir string) <-chan struct{}) {
	t.Run("an absent attempt has no result", func(t *testing.T) {
		if _, over, err := heats.Result(filepath.Join(t.TempDir(), "none")); over || err != nil {
			t.Errorf("%v, %v", over, err)
		}
	})
	t.Run("a key is the same each time and names what it rests on", func(t *testing.T) {
		o := order(1)
		key, parts, err := heats.Key(o.Arena, o.Rules)
		if err != nil || key != o.Arena.CompatibilityKey || !reflect.DeepEqual(parts, o.Arena.Hashes) || len(parts) == 0 {
			t.Errorf("%s %v %v, the order has %s %v", key, parts, err, o.Arena.CompatibilityKey, o.Arena.Hashes)
		}
	})
	t.Run("two attempts at once each leave their own result", func(t *testing.T) {
		t.Parallel()
		var wg sync.WaitGroup
		for n := 1; n <= 2; n++ {
			o := order(n)
			wg.Go(func() {
				if err := heats.Run(t.Context(), o); err != nil {
					t.Error(err)
					return
				}
				a, over, err := heats.Result(o.Dir)
				if err != nil || !over || a.Aborted {
					t.Errorf("%+v %v %v", a, over, err)
				}
				var got, want []string
				for _, e := range a.Ends {
					got = append(got, e.Territory)
				}
				for territory := range o.Seats {
					want = append(want, territory)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("seats %v, want %v", got, want)
				}
				if a.Seed != o.Seed || a.Key != o.Arena.CompatibilityKey {
					t.Errorf("seed %s and key %s, the order has %s and %s", a.Seed, a.Key, o.Seed, o.Arena.CompatibilityKey)
				}
				again, _, err := heats.Result(o.Dir)
				if err != nil || !reflect.DeepEqual(a, again) {
					t.Errorf("read again it is %+v, %v", again, err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("one whose context ends is not finished", func(t *testing.T) {
		t.Parallel()
		o := order(3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		started := begun(o.Dir)
		go func() {
			select {
			case <-started:
			case <-ctx.Done():
			}
			cancel()
		}()
		if err := heats.Run(ctx, o); err == nil {
			t.Error("it ended without an error")
		}
		if _, over, err := heats.Result(o.Dir); over || err != nil {
			t.Errorf("%v, %v", over, err)
		}
	})
	t.Run("a folder that is there is not written into", func(t *testing.T) {
		o := order(4)
		if err := os.Mkdir(o.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.Dir, "events.jsonl"), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := heats.Run(t.Context(), o); err == nil {
			t.Error("it ran")
		}
	})
}

func TestTheTableBehaves(t *testing.T) {
	dir := t.TempDir()
	x := season.Arena{ID: "x", CompatibilityKey: "key of x", Territories: []string{"t1", "t2", "t3"}, Hashes: map[string]string{"verifiers": "v1"}}
	order := func(n int) Order {
		return Order{Arena: x, Round: 1, Heat: 1, Attempt: n, Seed: season.HeatSeed("s", "d", 1, 1, n, 0), Dir: filepath.Join(dir, season.Folder(1, 1, n)[len("round-01/"):]),
			Seats: map[string]season.Entrant{"t1": {ID: "a"}, "t2": {ID: "b"}, "t3": {ID: "c"}}}
	}
	behaviour(t, &table{takes: 20 * time.Millisecond}, order, func(string) <-chan struct{} {
		c := make(chan struct{})
		close(c)
		return c
	})
}

func TestTheEngineBehaves(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats on simulated machines: skipped under -short")
	}
	m := &season.Manifest{ID: "cup", Arenas: []string{"primary-failover"}, ArenaNames: []string{"primary-failover"}, Fleet: []season.Entrant{
		{ID: "a", Adapter: "script", Model: "right"}, {ID: "b", Adapter: "script", Model: "careful"}, {ID: "c", Adapter: "script", Model: "hasty"}}}
	arenas, err := Arenas(m, false)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	hear := map[string]chan struct{}{}
	engine := &Engine{Driver: sim.New(sim.Config{Programs: failover.Programs()}), Runtime: t.TempDir(), Version: "test", Progress: func(dir string, _ heat.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if c := hear[dir]; c != nil {
			close(c)
			delete(hear, dir)
		}
	}}
	if err := engine.Check(&season.Draw{Arenas: arenas, Fleet: m.Fleet}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	order := func(n int) Order {
		seats := map[string]season.Entrant{}
		for i, territory := range arenas[0].Territories {
			seats[territory] = m.Fleet[(i+n)%3]
		}
		return Order{Arena: arenas[0], Round: 1, Heat: 1, Attempt: n, Seats: seats, Seed: season.HeatSeed("s", "d", 1, 1, n, 0),
			Dir: filepath.Join(dir, season.Folder(1, 1, n)[len("round-01/"):])}
	}
	behaviour(t, engine, order, func(dir string) <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		hear[dir] = make(chan struct{})
		return hear[dir]
	})

	t.Run("no stand-in plays for an adapter that is not here", func(t *testing.T) {
		o := order(5)
		for k := range o.Seats {
			o.Seats[k] = season.Entrant{ID: "z", Adapter: "claux", Model: "m"}
		}
		if err := engine.Run(t.Context(), o); err == nil {
			t.Error("somebody played")
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it left a folder: %v", err)
		}
	})
}
