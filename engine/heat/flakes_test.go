package heat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/vm/sim"
)

// The channel to the machines fails at random, in many heats: no seat is charged
// with it, nobody is out of the race, and who is right wins. REFBOX_FLAKES says in
// how many heats; REFBOX_SEED repeats the moments.
func TestFlakesAreChargedToNobody(t *testing.T) {
	t.Parallel()
	heats := 2
	if v := os.Getenv("REFBOX_FLAKES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("REFBOX_FLAKES is %q, not a number of heats", v)
		}
		heats = n
	}
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("REFBOX_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("REFBOX_SEED=%d, %d heats", seed, heats)
	var (
		mu                sync.Mutex
		injected, noticed int
		wg                sync.WaitGroup
		turns             = make(chan struct{}, 2) // more at once starve each other where two cores also run real machines
	)
	for n := range heats {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if t.Context().Err() != nil {
				return
			}
			i, seen := flakyHeat(t, n, rand.New(rand.NewPCG(seed, uint64(n))))
			mu.Lock()
			injected, noticed = injected+i, noticed+seen
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%d calls failed, %d of them became verdicts", injected, noticed)
	if injected < heats {
		t.Errorf("only %d calls failed: nothing was tested", injected)
	}
}

// flakyHeat runs a heat; how many calls were made to fail, and how many verdicts
// came of that.
func flakyHeat(t *testing.T, n int, dice *rand.Rand) (injected, noticed int) {
	d := driver()
	p, reg := fielded(t, scripted(t, right), scripted(t, after(400*time.Millisecond, right)), scripted(t, after(800*time.Millisecond, right)))
	dir := filepath.Join(t.TempDir(), fmt.Sprint("heat", n))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var last *sim.Faults
		for {
			select {
			case <-stop:
				if last != nil {
					last.Flake(0)
				}
				return
			case <-time.After(time.Duration(50+dice.IntN(400)) * time.Millisecond):
			}
			// One at a time, or two: what a channel that comes back looks like.
			last = d.Faults(p.Manifest.Territories[dice.IntN(3)].ID, "host")
			k := 1 + dice.IntN(2)
			last.Flake(k)
			injected += k
		}
	})
	rt, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Error(err)
	}
	defer os.RemoveAll(rt)
	res, err := Run(ctx, Config{Package: p, Driver: d, Dir: dir, Runtime: rt, Players: reg, Version: "test"})
	close(stop)
	wg.Wait()
	if err != nil {
		t.Errorf("heat %d: %v", n, err)
		return injected, 0
	}
	if res.Outcome.Winner == "" && len(res.Outcome.DeadHeat) == 0 {
		t.Errorf("heat %d: nobody won: %+v\n%s", n, res.Outcome, logOf(dir))
	}
	rec := open(t, dir)
	if lost := of(t, rec, func(event.SeatUnavailable) bool { return true }); len(lost) > 0 {
		t.Errorf("heat %d: %+v", n, lost)
	}
	for _, b := range of(t, rec, func(b event.MilestoneFailed) bool { return b.Category == "transport" }) {
		noticed++
		if b.Source == "player" {
			t.Errorf("heat %d: charged to the player: %+v", n, b)
		}
	}
	for _, b := range of(t, rec, func(event.AgentFinished) bool { return true }) {
		if b.Source != "player" || !b.Success {
			t.Errorf("heat %d: %+v", n, b)
		}
	}
	// A right player's own failures are those before it was done: nothing that it
	// had reached was taken back.
	if back := of(t, rec, func(event.MilestoneRevoked) bool { return true }); len(back) > 0 {
		t.Errorf("heat %d: revoked: %+v", n, back)
	}
	return injected, noticed
}
