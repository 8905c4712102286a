package referee

import (
	"context"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
)

// What is lost for good is said once, as not to be tried again, and not looked at any
// more: neither a milestone that never counted nor one that did. Its seat is quiet.
func TestLostForGood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lost := &probe.Failure{Category: probe.Contract, Source: "player", Reason: "lost for good", Final: true}
		var f *field
		kept := step("kept", 10, func(context.Context, string) error {
			if f.now() > 5*time.Second {
				return lost
			}
			return nil
		})
		kept.Verifier.(*verifier).holds = func(context.Context, string) error {
			if f.now() > 5*time.Second {
				return lost
			}
			return nil
		}
		reboot := step("last", 10, func(context.Context, string) error { return refused("not yet") }, "kept")
		reboot.Operation = HostReboot
		f = newField(t, Rules{Completion: "last", Milestones: []Milestone{
			step("once", 10, func(_ context.Context, s string) error {
				if s == "careless" {
					return lost
				}
				return nil
			}),
			kept, reboot,
		}}, "careless", "later")
		time.AfterFunc(30*time.Second, f.race.PlayersEnded)
		if o := f.run(); o.Reason != "no player is left, and nothing changes any more" {
			t.Errorf("%+v", o)
		}
		said := of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "careless" && b.Milestone == "once" })
		if len(said) != 1 || said[0].Retryable || said[0].Detail != "lost for good" {
			t.Errorf("of what was lost at once the log says %+v", said)
		}
		if revoked := of(f.log, func(b event.MilestoneRevoked) bool { return b.Territory == "later" && b.Milestone == "kept" }); len(revoked) != 1 {
			t.Errorf("what was lost later was revoked %d times", len(revoked))
		}
		if again := of(f.log, func(b event.MilestoneEvaluationStarted) bool {
			return b.Territory == "later" && b.Milestone == "kept"
		}); len(again) != 1 {
			t.Errorf("what was lost later was looked at %d times", len(again))
		}
	})
}
