package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCommandIsKilledWithItsGroup(t *testing.T) {
	r := commandRig(t)
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := runCommand(t, ctx, r, "sleep 1000 & echo $! $$ >"+pids+"; wait")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	var child, parent int
	fmt.Sscan(string(b), &child, &parent)
	for _, pid := range []int{child, parent} {
		if pid <= 0 || !ends(t, pid, 5*time.Second) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// ends waits for a process's end; one that waits to be reaped has ended.
func ends(t *testing.T, pid int, limit time.Duration) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	if err != nil {
		t.Skip("processes cannot be watched here: ", err)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}
