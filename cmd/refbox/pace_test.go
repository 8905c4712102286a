package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe in the place of what is remembered of the steps is not waited for.
func TestPacePipe(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home)
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(cache, "steps.json"), 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	opened := make(chan *pace, 1)
	go func() { opened <- openPace() }()
	select {
	case p := <-opened:
		if d := p.takes("booting"); d != usual["booting"] {
			t.Errorf("booting takes %s", d)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the pipe is waited for")
	}
}
