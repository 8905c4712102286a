package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/creack/pty"
)

// A name that comes to be in the data folder after it is waited for is found there.
func TestWatchWaitsForANameInTheDataFolder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	w := b.start("watch", "later", "--headless")
	w.until(w.errors, "waiting for later", time.Minute)
	dir := filepath.Join(b.path("data"), "refbox", "recordings", "later")
	run := b.run(time.Minute, "run", "hello-service", "--machines", "sim", "--headless", "--output", dir)
	run.says(0)
	w.wait(time.Minute)
	w.says(0)
	if !strings.Contains(w.output.String(), "recording "+dir) {
		t.Errorf("it does not tell the heat in %s:\n%s", dir, w.output)
	}
}

// What is typed while something is waited for is neither shown nor kept for the screen.
func TestHushDropsWhatIsTyped(t *testing.T) {
	outer, inner, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal here: " + err.Error())
	}
	defer outer.Close()
	defer inner.Close()
	loud := hush(inner)
	if flags := lflag(t, inner); flags&unix.ECHO != 0 || flags&unix.ISIG == 0 {
		t.Errorf("hushed: echo %v, interrupts %v", flags&unix.ECHO != 0, flags&unix.ISIG != 0)
	}
	if _, err := outer.WriteString("dropped\n"); err != nil {
		t.Fatal(err)
	}
	// The terminal hands it on in its own time.
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(inner.Fd()), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Fatalf("nothing comes through the terminal: %v", err)
	}
	loud()
	if lflag(t, inner)&unix.ECHO == 0 {
		t.Error("the terminal stays hushed")
	}
	if _, err := outer.WriteString("kept\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := inner.Read(buf)
	if err != nil || string(buf[:n]) != "kept\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func lflag(t *testing.T, f *os.File) uint32 {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), terminalGet)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(s.Lflag)
}
