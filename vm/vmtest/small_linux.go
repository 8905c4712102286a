package vmtest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk mounts a file system of that size ("24m") on a folder until the test ends,
// which is skipped where that is not allowed.
func SmallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skip("needs to mount a small disk, which root may: ", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) //nolint:errcheck // there is nothing to be done
}
