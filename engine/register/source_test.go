package register

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that lies among the registers is refused, not waited for.
func TestLoadPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	if _, err := Load(pipe); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Error(err)
	}
}
