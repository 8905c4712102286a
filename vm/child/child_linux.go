package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

func start(cmd *exec.Cmd, ended func()) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		// The signal comes when the thread that forked the process ends: it is kept
		// for as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		run(cmd, started, ended)
	}()
	return <-started
}
