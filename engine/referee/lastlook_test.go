package referee

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"refbox/engine/event"
	"refbox/engine/probe"
)

// runner is a simulated seat: when its service really came to hold, how long it
// takes to look at, and whether the player was seen to act then.
type runner struct {
	ready time.Duration
	takes time.Duration
	seen  bool
}

// run races the runners in the manifest's order.
func runners(t *testing.T, tick time.Duration, order []string, all map[string]runner) (o Outcome) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Tick: tick, Completion: "up", Milestones: []Milestone{
			step("up", 100, func(ctx context.Context, s string) error {
				held := f.after(all[s].ready)
				if err := sleep(ctx, all[s].takes); err != nil {
					return err
				}
				return held
			}),
		}}, order...)
		for id, r := range all {
			if r.seen {
				time.AfterFunc(r.ready, func() { f.race.Nudge(id) })
			}
		}
		o = f.run()
		time.Sleep(all["a"].ready + all["b"].ready) // no timer is left behind
	})
	return o
}

// Whatever the seats are like, and whichever stands first in the manifest: who was
// as early as the first shares the rank with it, whether or not the referee had
// come to look; who was later never wins; and who was earlier by more than what
// nobody can know wins.
func TestInstantsDecide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := func(name string, lo, hi int) time.Duration {
			return time.Duration(rapid.IntRange(lo, hi).Draw(rt, name)) * time.Millisecond
		}
		tick := ms("tick", 300, 3000)
		a := runner{ms("ready", 200, 6000), ms("takes", 0, 300), rapid.Bool().Draw(rt, "seen")}
		gap := rapid.SampledFrom([]time.Duration{0, 0, ms("gap", 1, 9000)}).Draw(rt, "by")
		b := runner{a.ready + gap, ms("takes", 0, 300), rapid.Bool().Draw(rt, "seen")}
		all := map[string]runner{"a": a, "b": b}
		var was string
		for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
			o := runners(t, tick, order, all)
			slices.Sort(o.DeadHeat)
			got := fmt.Sprintf("winner %q, dead heat %v", o.Winner, o.DeadHeat)
			switch {
			case gap == 0 && len(o.DeadHeat) != 2:
				rt.Fatalf("%v: as early as each other, and it is: %s", order, got)
			case o.Winner == "b":
				rt.Fatalf("%v: the later one won", order)
			case gap > tick+a.takes+b.takes+secondSettle && o.Winner != "a":
				rt.Fatalf("%v: earlier by %v, and it is: %s", order, gap, got)
			case was != "" && got != was:
				rt.Fatalf("the manifest's order decides: %s, or %s", was, got)
			}
			was = got
		}
	})
}

// A last look is for who has not been looked at since: not for who was seen to fail
// later than the first was durable, nor with a reboot that could not make its seat
// durable.
func TestNoLastLookForNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		reboot := Milestone{ID: "reboot", DependsOn: []string{"first"}, Operation: HostReboot, Timeout: 40 * time.Second, Points: 10, Required: true,
			Verifier: &verifier{verify: func(_ context.Context, a *probe.Attempt) error {
				if a.Seat.Territory() != "fast" {
					return refused("broken")
				}
				return nil
			}}}
		f = newField(t, Rules{StopOnFirstDurable: true, Tick: time.Second, Completion: "last", Milestones: []Milestone{
			step("first", 10, passes), reboot, step("last", 10, func(ctx context.Context, s string) error {
				if s == "fast" {
					return f.after(8 * time.Second)
				}
				return refused("never")
			}, "first"),
		}}, "slow", "fast")
		o := f.run()
		if o.Winner != "fast" {
			t.Fatalf("%+v", o)
		}
		frozen := of(f.log, func(b event.DurableDeploymentCompleted) bool { return b.Territory == "fast" })
		if len(frozen) != 1 {
			t.Fatal(frozen)
		}
		late := 0
		for _, e := range f.log.lines {
			if b, ok := e.Body.(event.MilestoneEvaluationStarted); ok && b.Territory == "slow" && e.ElapsedMS > *frozen[0].DurableAt {
				if late++; b.Milestone == "reboot" {
					t.Errorf("a reboot began at %d, after the first was durable at %d", e.ElapsedMS, *frozen[0].DurableAt)
				}
			}
		}
		if late > 1 {
			t.Errorf("%d evaluations began after the freeze", late)
		}
	})
}
