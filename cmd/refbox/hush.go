package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// hush keeps a terminal from showing what is typed while something is waited for whose
// screen comes later; Ctrl-C goes on to interrupt. What it gives is called once: it sets
// the terminal as it was, and drops what was typed for nothing.
func hush(terminal *os.File) func() {
	fd := int(terminal.Fd())
	was, err := unix.IoctlGetTermios(fd, terminalGet)
	if err != nil {
		return func() {} // no terminal: nothing is shown
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO | unix.ECHONL
	if unix.IoctlSetTermios(fd, terminalSet, &quiet) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, terminalFlush, was) } // a terminal that is gone shows nothing
}
