package referee

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a territory's history means, told without states: it is well at an instant if it
// was never degraded, or if the last of degradation and recovery was a recovery.
func TestStandingIsWhatItsHistorySays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Holding{Failures: rapid.Uint32Range(1, 4).Draw(t, "failures"), Recovery: time.Duration(rapid.IntRange(1, 20).Draw(t, "recovery")) * time.Second}
		s := standing{state: stateHealthy}
		var now, downAt uint64
		down := false
		run := 0 // >0: good probes in a row, <0: bad ones
		allowed := map[[2]string]bool{{"healthy", "degraded"}: true, {"degraded", "recovering"}: true, {"recovering", "degraded"}: true,
			{"recovering", "healthy"}: true, {"degraded", "healthy"}: h.Failures == 1, {"degraded", "eliminated"}: true, {"recovering", "eliminated"}: true}
		for range rapid.IntRange(1, 80).Draw(t, "ticks") {
			now += uint64(rapid.IntRange(0, 3000).Draw(t, "ms"))
			before := s
			var step *shift
			kind := rapid.SampledFrom([]string{"good", "bad", "none"}).Draw(t, "probe")
			switch kind {
			case "good":
				run = max(run, 0) + 1
				s, step = s.observed(h, "", now)
			case "bad":
				run = min(run, 0) - 1
				s, step = s.observed(h, "refused", now)
			default:
				s, step = s.expired(h, now)
			}
			if step != nil && (step.from != before.state || step.to != s.state || !allowed[[2]string{step.from, step.to}] || step.reason == "") {
				t.Fatalf("step %+v from %+v", step, before)
			}
			if step == nil && s.state != before.state {
				t.Fatalf("%s became %s without a step", before.state, s.state)
			}
			late := down && now >= downAt+uint64(h.Recovery.Milliseconds())
			switch {
			case before.state == stateEliminated:
				if s.state != stateEliminated {
					t.Fatal("an eliminated territory came back")
				}
				return
			case late:
				if s.state != stateEliminated {
					t.Fatalf("%d ms after it was degraded it is %s", now-downAt, s.state)
				}
				return
			case down && kind == "good" && run >= int(h.Failures):
				down = false
			case !down && kind == "bad" && -run >= int(h.Failures):
				down, downAt = true, now
			}
			want := []string{stateHealthy}
			if down {
				want = []string{stateDegraded}
				if run > 0 {
					want = []string{stateRecovering}
				}
			}
			if !slices.Contains(want, s.state) {
				t.Fatalf("%s, want %v: down %t, run %d", s.state, want, down, run)
			}
		}
	})
}
