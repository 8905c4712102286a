package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"refbox/vm"
)

// Exit codes, design section 7.
const (
	exitDone        = 0   // a heat finished, or the thing checked holds
	exitBroken      = 1   // the thing checked does not hold; a heat was aborted or voided
	exitUsage       = 2   // the command line is wrong
	exitEnvironment = 3   // this host lacks something; the message says how to mend it
	exitInterrupted = 130 // Ctrl-C
)

// exitError carries the code that a failed command exits with.
type exitError struct {
	code int
	err  error // nil: everything has been said already
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}
func (e exitError) Unwrap() error { return e.err }

func usageError(format string, a ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, a...)}
}

func environmentError(err error) error { return exitError{exitEnvironment, err} }

func brokenError(err error) error { return exitError{exitBroken, err} }

// exitCode decides what a command's error means to the shell. ctx is the one
// that Ctrl-C cancels: an error after it is an interruption, whatever its text.
func exitCode(ctx context.Context, err error) int {
	var e exitError
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, vm.ErrMissing), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return exitEnvironment
	default:
		return exitBroken
	}
}
