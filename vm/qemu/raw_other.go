//go:build !linux

package qemu

import (
	"os"

	"golang.org/x/term"
)

// makeRaw lets bytes through a terminal as they are.
func makeRaw(f *os.File) error {
	_, err := term.MakeRaw(int(f.Fd()))
	return err
}
