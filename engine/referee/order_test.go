package referee

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Seats whose instants are known are ranked by them, or are in a dead heat when the
// instants cannot be told apart, whichever stands first in the manifest. A tick is
// a second: what nobody nudges is known to within one.
func TestOrderOfTheManifestDecidesNothing(t *testing.T) {
	for _, tt := range []struct {
		gap      time.Duration
		deadHeat bool
	}{
		{0, true}, {200 * time.Millisecond, true}, {2500 * time.Millisecond, false}, {10 * time.Second, false},
	} {
		for _, order := range [][]string{{"early", "late", "never"}, {"late", "early", "never"}, {"never", "late", "early"}} {
			for _, stop := range []bool{true, false} {
				t.Run(fmt.Sprint(tt.gap, order, stop), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						ready := map[string]time.Duration{"early": 4300 * time.Millisecond, "late": 4300*time.Millisecond + tt.gap, "never": time.Hour}
						var f *field
						f = newField(t, Rules{StopOnFirstDurable: stop, Completion: "up", Milestones: []Milestone{
							step("up", 100, func(ctx context.Context, s string) error {
								defer time.Sleep(5 * time.Millisecond) // as a real one takes: both are in flight
								return f.after(ready[s])
							}),
						}}, order...)
						o := f.run()
						switch {
						case tt.deadHeat && (o.Winner != "" || len(o.DeadHeat) != 2):
							t.Errorf("no dead heat: %+v", o)
						case !tt.deadHeat && (o.Winner != "early" || len(o.DeadHeat) != 0):
							t.Errorf("the first did not win: %+v", o)
						}
						ranks := map[string]int{}
						for _, s := range o.Seats {
							ranks[s.Territory] = s.Rank
						}
						if ranks["early"] != 1 || ranks["late"] == 1 != tt.deadHeat || ranks["never"] == 1 {
							t.Errorf("ranks %v", ranks)
						}
					})
				})
			}
		}
	}
}
