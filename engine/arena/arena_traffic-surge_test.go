package arena_test

import (
	"testing"

	"refbox/engine/arena"
)

func TestTrafficSurge(t *testing.T) {
	p := recorded(t, "traffic-surge", "baseline-ready 5,5", "priority-first-surge 20,15", "bounded-optional 15,15", "recover-peak 25,20", "restart-under-load 15,25", "host-reboot 20,40")
	tried(t, p, everyClass...)
	hidden(t, p)
}

func TestTrafficSurgeOnABench(t *testing.T) {
	p, err := arena.Load("traffic-surge")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, p)
}
