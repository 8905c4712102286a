package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestRuntimeFolderIsOursAlone: under a shared /tmp somebody else may have made
// the folder for sockets first.
func TestRuntimeFolderIsOursAlone(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := runtimeDir()
	if filepath.Dir(dir) != tmp {
		t.Fatalf("the folder is %s, not in %s", dir, tmp)
	}
	got := map[string]int{}
	try := func(name string) {
		_, _, err := prepareRuntime()
		got[name] = exitCode(t.Context(), err)
	}
	try("made by us")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	try("open to all")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	try("a link")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	disks, err := disksDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(disks, 0o770); err != nil {
		t.Fatal(err)
	}
	try("disks open to a group")
	want := map[string]int{"made by us": exitDone, "open to all": exitEnvironment, "a link": exitEnvironment, "disks open to a group": exitEnvironment}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDeadHeatsDisksAreSwept: what a killed refbox left in either folder goes,
// what a living one has there stays.
func TestDeadHeatsDisksAreSwept(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	runtime, disks, err := prepareRuntime()
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{runtime, disks} {
		for _, name := range []string{"refbox-dead/0", "refbox-alive/0"} {
			if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		held, err := os.Open(filepath.Join(base, "refbox-alive"))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := prepareRuntime(); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{runtime, disks} {
		if got := filesBelow(base); len(got) != 2 {
			t.Errorf("%s has %v", base, got)
		}
	}
}
