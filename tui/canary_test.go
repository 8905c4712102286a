package tui

import (
	"fmt"
	"testing"

	"refbox/engine/event"
)

// canaryHeat is a heat with a canary: the first seat serves from 5 s on with a cut, and
// has lost two writes; the second never serves, the third declines.
func canaryHeat(t testing.TB) string {
	x := startTape(t, demoArena())
	x.begin()
	say := func(ms uint64, seat int, from, upto, since uint64, outcome string, a, f, i uint64) {
		x.add(ms, event.CanarySample{Territory: demoSeats[seat], Write: upto, Writes: upto - from + 1, SinceMS: &since, Outcome: outcome,
			LatencyMS: 12, Acknowledged: a, Failed: f, Indeterminate: i})
	}
	x.pass(3500, demoSeats[0], "reads-restored", 20, 6)
	say(4000, 0, 1, 8, 0, "indeterminate", 0, 0, 8)
	say(4000, 1, 1, 8, 0, "indeterminate", 0, 0, 8)
	say(4000, 2, 1, 3, 0, "indeterminate", 0, 0, 3)
	say(4000, 2, 4, 8, 1500, "failed", 0, 5, 3)
	say(5000, 0, 9, 10, 4000, "acknowledged", 2, 0, 8)
	say(6500, 0, 11, 13, 5000, "acknowledged", 5, 0, 8)
	say(7000, 0, 14, 14, 6500, "failed", 5, 1, 8)
	say(8500, 0, 15, 17, 7000, "acknowledged", 8, 1, 8)
	x.add(8900, event.CanaryResult{Territory: demoSeats[0], Writes: 17, Acknowledged: 8, Failed: 1, Indeterminate: 8, Lost: 2, LossMS: 900,
		Outages: 2, OutageMS: 5500, LongestMS: 5000, OutageFromMS: ptr(uint64(0)), FirstReadMS: ptr(uint64(4500)), FirstAckMS: ptr(uint64(5000))})
	x.finish()
	return x.dir
}

func TestGoldenCanary(t *testing.T) {
	dir := canaryHeat(t)
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		w, h := size[0], size[1]
		for name, keys := range map[string]func(d *driver){
			"strips": func(d *driver) { d.goTo("7s") },
			"strip":  func(d *driver) { d.goTo("end"); d.press("enter") },
		} {
			name = fmt.Sprintf("canary-%s-%dx%d", name, w, h)
			t.Run(name, func(t *testing.T) {
				d := replayOf(t, dir, w, h, plainOutput())
				keys(d)
				d.golden(name)
			})
		}
	}
}
