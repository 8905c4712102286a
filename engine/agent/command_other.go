//go:build !linux

package agent

import "syscall"

func askGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func endGroup(pid int, _ string) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// SweepPrograms does nothing here: a process's environment cannot be read.
func SweepPrograms() int { return 0 }

func startOf(int) string { return "" }
