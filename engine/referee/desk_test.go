package referee

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"refbox/engine/event"
)

// pausable is a field whose clock stands still while the race is held.
type pausable struct {
	*field
	mu    sync.Mutex
	off   time.Duration
	since time.Time
}

func newPausable(t *testing.T, rules Rules, territories ...string) *pausable {
	p := &pausable{field: newField(t, rules, territories...)}
	p.race.clock = func() uint64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		d := time.Since(p.start) - p.off
		if !p.since.IsZero() {
			d -= time.Since(p.since)
		}
		return uint64(d.Milliseconds())
	}
	p.log.clock = p.race.clock
	return p
}

func (p *pausable) pause(d time.Duration) error {
	if err := p.race.Hold(p.t.Context()); err != nil {
		return err
	}
	p.mu.Lock()
	p.since = time.Now()
	p.mu.Unlock()
	time.Sleep(d)
	p.mu.Lock()
	p.off, p.since = p.off+time.Since(p.since), time.Time{}
	p.mu.Unlock()
	p.race.Release()
	return nil
}

func TestHeldRaceChecksNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *pausable
		var checks, during atomic.Int64
		f = newPausable(t, Rules{Duration: 10 * time.Second, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(ctx context.Context, s string) error {
				checks.Add(1)
				if err := sleep(ctx, 300*time.Millisecond); err != nil {
					return err
				}
				return refused("no")
			}),
		}}, "one", "two")
		go func() {
			time.Sleep(3100 * time.Millisecond) // in the middle of a check
			before := time.Now()
			err := f.race.Hold(t.Context())
			if err != nil || time.Since(before) != 200*time.Millisecond {
				t.Errorf("held after %v: %v", time.Since(before), err)
			}
			n := checks.Load()
			f.race.Nudge("one")
			time.Sleep(3 * time.Second)
			during.Store(checks.Load() - n)
			f.race.Release()
		}()
		f.run()
		if during.Load() != 0 || checks.Load() < 10 {
			t.Errorf("%d checks, %d of them while it was held", checks.Load(), during.Load())
		}
	})
}

// A pause of any length takes nothing of the limit, and what is extended is added.
func TestLimitIsOnTheHeatsClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newPausable(t, Rules{Duration: 10 * time.Second, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(context.Context, string) error { return refused("no") }),
		}}, "one", "two")
		go func() {
			time.Sleep(9990 * time.Millisecond)
			if err := f.pause(time.Hour); err != nil {
				t.Error(err)
			}
			if err := f.race.Extend(5 * time.Second); err != nil {
				t.Error(err)
			}
		}()
		o := f.run()
		if f.now() != time.Hour+15*time.Second || f.race.clock() != 15_000 || o.Reason != "match timer expired" {
			t.Errorf("ended after %v, at %d: %+v", f.now(), f.race.clock(), o)
		}
		select {
		case <-f.race.Expired():
		default:
			t.Error("not expired")
		}
		if err := f.race.Extend(time.Second); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
		if err := f.race.Hold(t.Context()); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	})
}

// Who waits for a check under way hears that it decided the race.
func TestHoldLosesToTheOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newPausable(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(ctx context.Context, s string) error {
				if s == "two" {
					return refused("no")
				}
				return sleep(ctx, 2*time.Second)
			}),
		}}, "one", "two")
		held := make(chan error, 1)
		time.AfterFunc(1500*time.Millisecond, func() { held <- f.race.Hold(context.Background()) })
		if o := f.run(); o.Winner != "one" {
			t.Errorf("%+v", o)
		}
		if err := <-held; !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	})
}

func TestHoldIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newPausable(t, Rules{Duration: 20 * time.Second, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(ctx context.Context, _ string) error {
				return errors.Join(sleep(ctx, 5*time.Second), refused("no"))
			}),
		}}, "one")
		time.AfterFunc(1100*time.Millisecond, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := f.race.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		f.run()
		if n := len(of(f.log, func(event.MilestoneFailed) bool { return true })); n < 3 {
			t.Errorf("the race did not go on: %d checks", n)
		}
	})
}

// order rules at a time, and wants an error with these words, "" for none.
func (f *pausable) order(at time.Duration, territory string, o Order, want string) {
	time.AfterFunc(at, func() {
		o.Author, o.Reason = "ann", "because"
		err := f.race.Order(context.Background(), territory, o)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			f.t.Errorf("at %v, %s %s: %v, want %q", at, o.Do, territory, err, want)
		}
	})
}

func kinds(l *log, territory string) (out []string) {
	for _, e := range l.lines {
		switch b := e.Body.(type) {
		case event.RefereeRuling:
			if b.Territory == territory && b.Author == "ann" && b.Reason == "because" {
				out = append(out, "ruled "+b.Ruling)
			}
		case event.MilestonePassed:
			if b.Territory == territory {
				out = append(out, "passed "+b.Milestone)
			}
		case event.MilestoneRevoked:
			if b.Territory == territory {
				out = append(out, "revoked "+b.Milestone)
			}
		case event.CompetitorStateChanged:
			if b.Territory == territory {
				out = append(out, b.From+"-"+b.To)
			}
		case event.SeatUnavailable:
			if b.Territory == territory {
				out = append(out, "unavailable")
			}
		}
	}
	return out
}

func TestSeatIsBenchedAndRestored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *pausable
		f = newPausable(t, Rules{Duration: time.Minute, Completion: "up", Milestones: []Milestone{
			step("seen", 5, passes),
			step("up", 10, func(_ context.Context, s string) error {
				if s == "two" {
					return refused("no")
				}
				return f.after(20 * time.Second)
			}, "seen"),
		}}, "one", "two")
		f.order(5500*time.Millisecond, "one", Order{Do: Restore}, "not unavailable")
		f.order(6500*time.Millisecond, "one", Order{Do: Bench}, "")
		f.order(8*time.Second, "one", Order{Do: Bench}, "already")
		f.order(8*time.Second, "nobody", Order{Do: Bench}, "did not come to the start")
		f.order(30500*time.Millisecond, "one", Order{Do: Restore}, "")
		f.order(45*time.Second, "one", Order{Do: Bench}, "durable, which is final")
		o := f.run()
		if o.Winner != "one" || o.Seats[0].Durable.At < 30_500 || o.Seats[0].Durable.At > 32_500 {
			t.Errorf("%+v", o)
		}
		got := strings.Join(kinds(f.log, "one"), "; ")
		want := "building-verifying; passed seen; ruled seat_unavailable; unavailable; verifying-unavailable; ruled seat_restored; unavailable-verifying; passed up; verifying-durable"
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		for _, e := range f.log.lines {
			if b, ok := e.Body.(event.MilestoneEvaluationStarted); ok && b.Territory == "one" && e.ElapsedMS > 6700 && e.ElapsedMS < 30_500 {
				t.Errorf("checked at %d on the bench", e.ElapsedMS)
			}
		}
	})
}

// With nobody but benched seats left the race is over.
func TestBenchOfAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newPausable(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(context.Context, string) error { return refused("no") }),
		}}, "one", "two")
		f.order(2500*time.Millisecond, "one", Order{Do: Bench}, "")
		f.order(4500*time.Millisecond, "two", Order{Do: Bench}, "")
		o := f.run()
		if o.Reason != "no seat is left" || o.Winner != "" || f.now() > 6*time.Second {
			t.Errorf("%+v after %v", o, f.now())
		}
		for _, s := range o.Seats {
			if s.State != stateUnavailable {
				t.Errorf("%s is %s", s.Territory, s.State)
			}
		}
	})
}

func TestMilestoneIsRevokedAndUpheld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *pausable
		f = newPausable(t, Rules{StopOnFirstDurable: true, Duration: time.Minute, Completion: "up", Milestones: []Milestone{
			step("seen", 5, passes),
			step("up", 10, func(context.Context, string) error { return f.after(4 * time.Second) }, "seen"),
		}}, "one")
		f.order(1500*time.Millisecond, "one", Order{Do: Revoke, Milestone: "up"}, "has not passed")
		f.order(1500*time.Millisecond, "one", Order{Do: Uphold, Milestone: "up"}, "never passed")
		f.order(1500*time.Millisecond, "one", Order{Do: Uphold, Milestone: "seen"}, "stands")
		f.order(1500*time.Millisecond, "one", Order{Do: Revoke, Milestone: "dance"}, "no milestone")
		f.order(2500*time.Millisecond, "one", Order{Do: Revoke, Milestone: "seen"}, "")
		f.order(3500*time.Millisecond, "one", Order{Do: Revoke, Milestone: "seen"}, "has not passed")
		f.order(20500*time.Millisecond, "one", Order{Do: Uphold, Milestone: "seen"}, "")
		o := f.run()
		got := strings.Join(kinds(f.log, "one"), "; ")
		want := "building-verifying; passed seen; ruled milestone_revoked; revoked seen; ruled milestone_upheld; passed seen; passed up; verifying-durable"
		if got != want || o.Winner != "one" {
			t.Errorf("%+v\n got %s\nwant %s", o, got, want)
		}
		both := of(f.log, func(b event.MilestonePassed) bool { return b.Milestone == "seen" })
		if len(both) != 2 || *both[0].HeldAt != *both[1].HeldAt || both[0].Record != both[1].Record || both[0].Attempt != both[1].Attempt {
			t.Errorf("it did not come back as it passed: %+v", both)
		}
	})
}

// What is upheld last makes the seat durable, at the instants that it had.
func TestUpheldMilestoneDecides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *pausable
		f = newPausable(t, Rules{StopOnFirstDurable: true, Duration: time.Minute, Completion: "up", Milestones: []Milestone{
			step("up", 10, passes), step("more", 10, func(context.Context, string) error { return f.after(5 * time.Second) }),
		}}, "one", "two")
		f.order(1200*time.Millisecond, "one", Order{Do: Revoke, Milestone: "up"}, "")
		f.order(1200*time.Millisecond, "two", Order{Do: Bench}, "")
		f.order(20200*time.Millisecond, "one", Order{Do: Uphold, Milestone: "up"}, "")
		o := f.run()
		if o.Winner != "one" || o.Seats[0].Durable.At != 5000 || o.Reason != "first durable deployment" {
			t.Errorf("%+v", o)
		}
	})
}
