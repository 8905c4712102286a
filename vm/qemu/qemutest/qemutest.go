// Package qemutest gives the tests of other packages this host's QEMU.
package qemutest

import (
	"context"
	"errors"
	"testing"
	"time"

	"refbox/vm"
	"refbox/vm/qemu"
	"refbox/vm/vmtest"
)

// Driver makes real machines; the test has the host as by vmtest.Host. An image
// that is lacking is built first, and the test is skipped where it cannot be.
func Driver(t testing.TB) vm.Driver {
	t.Helper()
	d := qemu.New(qemu.Config{CacheDir: vmtest.Host(t, qemu.Needs())})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := d.Versions(ctx, nil); errors.Is(err, vm.ErrMissing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return d
}
