package qemu

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitEnd fails the test unless process pid ends within the limit. A zombie
// has ended.
func awaitEnd(t *testing.T, pid int, limit time.Duration) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit/time.Millisecond))
	if err != nil || n == 0 {
		t.Fatalf("process %d is still there after %v (%v)", pid, limit, err)
	}
}
