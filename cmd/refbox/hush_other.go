//go:build !linux

package main

import "golang.org/x/sys/unix"

// How a terminal is asked and set; terminalFlush drops what was typed and not read.
const (
	terminalGet   = unix.TIOCGETA
	terminalSet   = unix.TIOCSETA
	terminalFlush = unix.TIOCSETAF
)
