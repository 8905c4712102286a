package arena_test

import (
	"os"
	"path/filepath"
	"testing"

	"refbox/engine/arena"
)

// An arena whose id is no name leads nowhere: not to the working directory.
func TestIDLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{".", "..", "hello-service/guest", ""} {
		text := "schema_version = 1\n[arena]\nid = \"" + id + "\"\n"
		if err := os.WriteFile(filepath.Join(dir, "arena.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		if _, err := arena.Load("."); err == nil {
			t.Errorf("id %q is loaded", id)
		}
	}
}
