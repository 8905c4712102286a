package arena_test

import (
	"testing"

	"refbox/engine/arena"
)

func TestDurableJobQueue(t *testing.T) {
	p := recorded(t, "durable-job-queue", "service-up 10,5", "recover-accepted 25,35", "process-new 20,35", "worker-restart 20,15", "host-reboot 25,30")
	tried(t, p, everyClass...)
	hidden(t, p)
}

func TestDurableJobQueueOnABench(t *testing.T) {
	p, err := arena.Load("durable-job-queue")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, p)
}
