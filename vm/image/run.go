package image

import (
	"os/exec"
	"runtime"
)

// runLocked runs a command from a goroutine that keeps its thread: the kernel
// sends a child its parent-death signal when the thread that made it ends.
func runLocked(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
