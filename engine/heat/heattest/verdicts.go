// Package heattest measures recorded heats for tests and benchmarks.
package heattest

import (
	"slices"
	"testing"

	"refbox/engine/event"
	"refbox/engine/recording"
)

// Verdicts are how long it took, in ms, from the end of an observed action to the
// first verdict of a check that began after it, in order. Actions that ended while
// a milestone was being attacked, restarted or rebooted, or just before, are left
// out: no other check runs beside those.
func Verdicts(t testing.TB, r *recording.Recording) (took []uint64) {
	t.Helper()
	since := map[string]uint64{} // by seat: the end of the action that waits for a verdict
	busy := map[string]bool{}
	began := map[string]uint64{}
	err := r.Events(0, r.Len(), func(_ int, e event.Event) bool {
		verdict := func(territory, milestone string) {
			// What ends an action is told a moment before its line is written.
			if at, ok := since[territory]; ok && began[territory+milestone]+5 >= at {
				took = append(took, e.ElapsedMS-at)
				delete(since, territory)
			}
			busy[territory] = false
		}
		switch b := e.Body.(type) {
		case event.MilestoneEvaluationStarted:
			began[b.Territory+b.Milestone] = e.ElapsedMS
			busy[b.Territory] = b.Milestone != "failed-primary-preserved" && b.Milestone != "reads-restored" && b.Milestone != "writes-restored"
			if busy[b.Territory] {
				delete(since, b.Territory)
			}
		case event.AgentActionFinished:
			if _, ok := since[b.Territory]; !ok && !busy[b.Territory] {
				since[b.Territory] = e.ElapsedMS
			}
		case event.MilestonePassed:
			verdict(b.Territory, b.Milestone)
		case event.MilestoneFailed:
			verdict(b.Territory, b.Milestone)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	return took
}
