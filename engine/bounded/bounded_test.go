package bounded_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"refbox/engine/bounded"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := os.WriteFile(name, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := bounded.File(name, 8); err != nil || string(data) != "12345678" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := bounded.File(name, 7); err == nil || data != nil || !strings.Contains(err.Error(), "larger than the 7 bytes") {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := bounded.File(filepath.Join(dir, "none"), 7); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := bounded.File(dir, 7); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Error(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	if _, err := bounded.File(pipe, 7); err == nil { // and it did not wait for a writer
		t.Error("a pipe was read")
	}
}

// A file whose size says nothing is bounded by what is read of it.
func TestFileWithoutSize(t *testing.T) {
	const name = "/proc/self/status"
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Skip("no file of unknown size here")
	}
	if _, err := bounded.File(name, 10); err == nil || !strings.Contains(err.Error(), "10 bytes") {
		t.Error(err)
	}
}
