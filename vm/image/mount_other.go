//go:build !linux

package image

import "syscall"

// Images are built on Linux alone.
func mayMount() bool { return false }

func ownMounts() *syscall.SysProcAttr { return nil }
