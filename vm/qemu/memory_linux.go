package qemu

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile is a file in memory that whoever has it may run.
func memoryFile(name, text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("refbox-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
