// Package shared finds the read-only test data that lives beside the
// repository, so that no test knows where it is. Test data is never committed.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared returns the path of test data: path elements below the data folder.
// The folder is REFBOX_DATA, or else the first folder called "shared" beside
// the module root or beside one of the folders above it. When it, or the path
// in it, is absent the test is skipped with a message that says so.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	dir := os.Getenv("REFBOX_DATA")
	if dir == "" {
		dir = sibling()
	}
	if dir == "" {
		t.Skip("no test data: set REFBOX_DATA, or put the shared folder beside the repository")
	}
	full := filepath.Join(append([]string{dir}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no test data at %s (set REFBOX_DATA to the folder that holds it)", full)
	}
	return full
}

// Recordings returns the folders below recordings/, sorted by name, and skips
// the test when there are none.
func Recordings(t testing.TB) []string {
	t.Helper()
	root := Shared(t, "recordings")
	logs, err := filepath.Glob(filepath.Join(root, "*", "events.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Skipf("no recordings below %s", root)
	}
	dirs := make([]string, len(logs))
	for i, log := range logs {
		dirs[i] = filepath.Dir(log)
	}
	return dirs
}

func sibling() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	inModule := false
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			inModule = true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		if inModule {
			candidate := filepath.Join(parent, "shared")
			if info, err := os.Stat(candidate); err == nil && info.IsDir() {
				return candidate
			}
		}
		dir = parent
	}
}
