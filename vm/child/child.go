// Package child starts processes that do not outlive this one, however it ends:
// on Linux the kernel kills them.
package child

import (
	"os/exec"
	"syscall"
)

// Start starts cmd as the leader of a session of its own, waits for it, and then
// calls ended: by then how it ended is in cmd.ProcessState. What cmd itself starts
// is not killed with it.
func Start(cmd *exec.Cmd, ended func()) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	return start(cmd, ended)
}

func run(cmd *exec.Cmd, started chan<- error, ended func()) {
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait() // how it ended is in its state
		ended()
	}
}
