//go:build !linux

package vmtest

import "testing"

// SmallDisk skips the test: only Linux mounts one.
func SmallDisk(t *testing.T, _, _ string) {
	t.Helper()
	t.Skip("only Linux mounts a small disk")
}
