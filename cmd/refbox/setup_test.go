package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRuntimeFolderIsOursAlone: under a shared /tmp somebody else may have made
// the folder for sockets first.
func TestRuntimeFolderIsOursAlone(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dir := runtimeDir()
	if filepath.Dir(dir) != tmp {
		t.Fatalf("the folder is %s, not in %s", dir, tmp)
	}
	got := map[string]int{}
	try := func(name string) { got[name] = exitCode(t.Context(), prepareRuntime()) }
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
	want := map[string]int{"made by us": exitDone, "open to all": exitEnvironment, "a link": exitEnvironment}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
