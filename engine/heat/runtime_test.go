package heat

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSweepTakesDeadHeatsAlone(t *testing.T) {
	base := t.TempDir()
	live, leave, err := runtimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(base, runtimePrefix+"dead", "0")
	other := filepath.Join(base, "other")
	for _, dir := range []string{dead, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(base, runtimePrefix+"link")); err != nil {
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
