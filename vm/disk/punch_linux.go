package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// punch gives a part of a file back, which then reads as zeros; errors.ErrUnsupported
// where the file system cannot.
func punch(f *os.File, from, n int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
}
