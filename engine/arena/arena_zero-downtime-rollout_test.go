package arena_test

import (
	"testing"

	"refbox/engine/arena"
)

func TestZeroDowntimeRollout(t *testing.T) {
	p := recorded(t, "zero-downtime-rollout", "baseline-ready 5,5", "uninterrupted-cutover 45,120", "write-new 15,10", "v2-restart 15,20", "host-reboot 20,40")
	tried(t, p, everyClass...)
}

func TestZeroDowntimeRolloutOnABench(t *testing.T) {
	p, err := arena.Load("zero-downtime-rollout")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, p)
}
