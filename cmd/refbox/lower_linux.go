package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lower makes every thread of this process, and those that they start, give way to
// others: on Linux a priority is a thread's.
func lower() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, 15) // a thread that has ended
		}
	}
}
