//go:build !linux

package main

import "golang.org/x/sys/unix"

// lower makes this process give way to others.
func lower() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 15) }
