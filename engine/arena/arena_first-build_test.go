package arena_test

import (
	"testing"

	"refbox/engine/arena"
)

func TestFirstBuild(t *testing.T) {
	p := recorded(t, "first-build", "service-up 10,5", "write-read 20,10", "service-restart 30,15", "host-reboot 40,30")
	tried(t, p, everyClass...)
}

func TestFirstBuildOnABench(t *testing.T) {
	p, err := arena.Load("first-build")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, p)
}
