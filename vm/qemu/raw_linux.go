package qemu

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// makeRaw lets bytes through a terminal as they are. ONLCR goes too, which means
// nothing without OPOST: QEMU sets that again on the terminal that it is given, and
// each line of the guest's would end in two carriage returns.
func makeRaw(f *os.File) error {
	fd := int(f.Fd())
	if _, err := term.MakeRaw(fd); err != nil {
		return err
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.ONLCR
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
