package referee

import (
	"context"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
)

// When nobody plays any more, the race goes on for as long as something changes, and
// then ends; who is in front wins, as at the limit.
func TestQuietRaceEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "last", Milestones: []Milestone{
			step("first", 10, func(ctx context.Context, s string) error {
				switch s {
				case "late": // what its player left running has its effect then
					return f.after(22500 * time.Millisecond)
				case "flaky": // says nothing about the seat, for a while
					if f.now() < 30*time.Second {
						return &probe.Failure{Category: probe.Transport, Source: "controller", Reason: "channel closed"}
					}
				}
				return refused("never")
			}),
			step("last", 10, func(context.Context, string) error { return refused("never") }, "first"),
		}}, "late", "dull", "flaky")
		time.AfterFunc(20*time.Second, f.race.PlayersEnded)
		o := f.run()
		if o.Winner != "late" || o.Reason != "no player is left, and nothing changes any more" {
			t.Errorf("%+v", o)
		}
		if f.now() != 34*time.Second {
			t.Errorf("it ended after %v", f.now())
		}
		if n := len(of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "late" && b.Milestone == "last" })); n < quietLooks {
			t.Errorf("what had changed was looked at %d times", n)
		}
	})
}

// A race that somebody plays is not ended however dull, nor one in which a referee's
// ruling may change something.
func TestDullRaceGoesOn(t *testing.T) {
	for _, ended := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			f := newField(t, Rules{StopOnFirstDurable: true, Duration: time.Minute, Completion: "last", Milestones: []Milestone{
				step("first", 10, passes), step("last", 10, func(context.Context, string) error { return refused("never") }, "first"),
			}}, "one", "two")
			if ended {
				time.AfterFunc(2500*time.Millisecond, func() {
					if err := f.race.Order(t.Context(), "one", Order{Do: Revoke, Milestone: "first", Author: "ann", Reason: "x"}); err != nil {
						t.Error(err)
					}
				})
				time.AfterFunc(3*time.Second, f.race.PlayersEnded)
			}
			if o := f.run(); o.Reason != "match timer expired" || f.now() != time.Minute {
				t.Errorf("%+v after %v", o, f.now())
			}
		})
	}
}

// A seat that was quiet, and in which something has changed, is not quiet while the
// round that showed it goes on: the others, which fall silent meanwhile, wait for it.
func TestQuietSeatStirs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{Completion: "last", Milestones: []Milestone{
			step("first", 10, func(ctx context.Context, s string) error {
				if s == "other" && f.now() < 15*time.Second { // which says nothing about the seat
					return &probe.Failure{Category: probe.Transport, Source: "controller", Reason: "channel closed"}
				}
				return f.after(14 * time.Second)
			}),
			step("long", 10, func(ctx context.Context, s string) error {
				if s == "other" {
					return refused("never")
				}
				return sleep(ctx, 25*time.Second)
			}, "first"),
			step("last", 10, passes, "long"),
		}}, "late", "other")
		time.AfterFunc(time.Second, f.race.PlayersEnded)
		if o := f.run(); o.Winner != "late" || f.now() < 39*time.Second {
			t.Errorf("%+v after %v", o, f.now())
		}
	})
}

// A seat that wins a milestone again whenever the look at the next has cost it is not
// going anywhere.
func TestSwingingSeatIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		kept := false
		first := step("first", 10, func(context.Context, string) error { kept = true; return nil })
		first.Verifier.(*verifier).holds = func(context.Context, string) error {
			if !kept {
				return refused("lost")
			}
			return nil
		}
		last := step("last", 10, func(context.Context, string) error { return refused("never") }, "first")
		last.Operation = HostReboot
		f := newField(t, Rules{Duration: time.Hour, Completion: "last", Milestones: []Milestone{first, last}}, "one")
		f.ms["one"].reboot = func(context.Context) error { kept = false; return nil }
		f.race.PlayersEnded()
		if o := f.run(); o.Reason != "no player is left, and nothing changes any more" {
			t.Errorf("%+v after %v", o, f.now())
		}
		if n := len(of(f.log, func(event.MilestoneRevoked) bool { return true })); n < quietDisturbing {
			t.Errorf("it was lost %d times: this shows nothing", n)
		}
	})
}
