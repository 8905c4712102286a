package shared

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSharedFollowsTheVariable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REFBOX_DATA", dir)
	if got := Shared(t, "x"); got != filepath.Join(dir, "x") {
		t.Fatalf("Shared = %s", got)
	}
	skipped := false
	t.Run("absent", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Shared(t, "absent")
	})
	if !skipped {
		t.Fatal("absent data did not skip the test")
	}
}
