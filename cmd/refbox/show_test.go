package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A heat's desk is found however its folder is named: from another working
// directory, through a link, before it is there.
func TestDeskSocketOfOneFolder(t *testing.T) {
	dir := t.TempDir()
	heat := filepath.Join(dir, "heat")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, made := range []bool{false, true} {
		if made {
			if err := os.Mkdir(heat, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		want := deskSocket(heat)
		for _, name := range []string{"heat", "./heat/", "../" + filepath.Base(dir) + "/heat", filepath.Join(link, "heat")} {
			if got := deskSocket(name); got != want {
				t.Errorf("made %v: %s has %s, not %s", made, name, got, want)
			}
		}
	}
	if deskSocket(dir) == deskSocket(heat) {
		t.Error("two folders share a desk")
	}
}
