package main

import "golang.org/x/sys/unix"

// How a terminal is asked and set; terminalFlush drops what was typed and not read.
const (
	terminalGet   = unix.TCGETS
	terminalSet   = unix.TCSETS
	terminalFlush = unix.TCSETSF
)
