package heat

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"refbox/vm"
)

func TestSweepTakesDeadHeatsAlone(t *testing.T) {
	base := t.TempDir()
	live, leave, err := ownFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(base, folderPrefix+"dead", "0")
	other := filepath.Join(base, "other")
	for _, dir := range []string{dead, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(base, folderPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(base); err != nil {
		t.Fatal(err)
	}
	there := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	if !there(live) || there(filepath.Dir(dead)) || !there(other) {
		t.Errorf("live %v, dead %v, other %v", there(live), there(filepath.Dir(dead)), there(other))
	}
	leave()
	if there(live) {
		t.Error("a heat's folder is left")
	}
}

// placed remembers where machines were told to put their disks.
type placed struct {
	vm.Driver
	dirs chan string
}

func (d placed) Start(ctx context.Context, t vm.Template, s vm.Start) (vm.Cluster, error) {
	d.dirs <- s.Dir
	return d.Driver.Start(ctx, t, s)
}

// Disks are not where the sockets are, and neither is left.
func TestDisksHaveAFolderOfTheirOwn(t *testing.T) {
	d := placed{driver(), make(chan string, 3)}
	p := pkg(t, idle, idle, idle)
	p.Manifest.Rules.DurationSeconds = 1
	runtime, disks := runtimeFolder(t), runtimeFolder(t)
	if _, err := Run(t.Context(), Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtime, Disks: disks}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if dir := <-d.dirs; filepath.Dir(filepath.Dir(dir)) != disks {
			t.Errorf("a machine's disk is in %s, not below %s", dir, disks)
		}
	}
}

func TestNoRoomForDisks(t *testing.T) {
	d := stalled{Driver: driver(), start: func(context.Context, string) error { return syscall.ENOSPC }}
	disks := runtimeFolder(t)
	_, err := Run(t.Context(), Config{Package: pkg(t, idle, idle, idle), Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t), Disks: disks})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), disks) || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Error(err)
	}
}
