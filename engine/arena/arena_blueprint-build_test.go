package arena_test

import (
	"testing"

	"refbox/engine/arena"
)

func TestBlueprintBuild(t *testing.T) {
	p := recorded(t, "blueprint-build", "gateway-ready 10,8", "accept-under-stop 20,20", "recover-blueprint 25,35", "service-restart 20,25", "host-reboot 25,40")
	tried(t, p, everyClass...)
	hidden(t, p)
}

func TestBlueprintBuildOnABench(t *testing.T) {
	p, err := arena.Load("blueprint-build")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, p)
}
