//go:build !linux

package agent

import (
	"os/exec"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func startOwned(cmd *exec.Cmd, ended func()) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		ended()
	}()
	return nil
}

func askGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func endGroup(pid int, _ string) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// SweepPrograms does nothing here: a process's environment cannot be read.
func SweepPrograms() int { return 0 }

func startOf(int) string { return "" }
