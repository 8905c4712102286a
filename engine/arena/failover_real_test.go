package arena_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
	"refbox/vm/qemu"
)

// realDriver is this host's QEMU; other tests with real machines wait until
// this one has ended.
func realDriver(t *testing.T) vm.Driver {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real machines: skipped under -short")
	}
	if needs := qemu.Needs(); len(needs) > 0 {
		t.Skipf("this host lacks %v", needs)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no cache folder for images: ", err)
	}
	l, err := os.OpenFile(filepath.Join(os.TempDir(), "refbox-real.lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d := qemu.New(qemu.Config{CacheDir: filepath.Join(cache, "refbox")})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if _, err := d.Versions(ctx); errors.Is(err, vm.ErrMissing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRealMachine climbs the ladder on a real machine, with the real programs
// under the real systemd, each attack first shown to succeed.
func TestRealMachine(t *testing.T) {
	r := newRig(t, realDriver(t))
	began := time.Now()
	lap := func(what string) {
		t.Logf("%5.1fs %s", time.Since(began).Seconds(), what)
		began = time.Now()
	}
	if _, err := r.verify("failed-primary-preserved"); err != nil {
		t.Fatal(err)
	}
	lap("failed-primary-preserved")
	if _, err := r.verify("reads-restored"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("reads before anything was done: %v", err)
	}
	r.sh(promote)
	lap("promote and switch")
	if _, err := r.verify("reads-restored"); err != nil {
		t.Fatal(err)
	}
	lap("reads-restored")
	attacked(t, r, true)
	lap("attacks, unfenced")
	for name, script := range fences {
		if name == "masked" {
			continue
		}
		r.sh("cp -p /opt/failover/primary.py /tmp/kept\n" + script)
		attacked(t, r, false)
		lap("attacks, " + name)
		r.sh("rm -rf /etc/systemd/system/failover-primary.service.d; rm -f /opt/failover/primary.py; cp -p /tmp/kept /opt/failover/primary.py; systemctl daemon-reload")
	}
	attacked(t, r, true)
	lap("attacks, unfenced again")
	climbFrom := time.Now()
	r.sh(mask)
	for _, l := range ladder {
		if l.milestone == "host-reboot" {
			if err := r.reboot(l.milestone); err != nil {
				t.Fatal(err)
			}
			lap("reboot")
		}
		if _, err := r.verify(l.milestone); err != nil {
			t.Fatalf("%s: %v", l.milestone, err)
		}
		lap(l.milestone)
	}
	t.Logf("the ladder took %.1fs", time.Since(climbFrom).Seconds())
}
