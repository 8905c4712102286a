package main

import (
	"bytes"
	"io"
	"os/exec"
	"testing"

	"github.com/creack/pty"
)

// A terminal that does not answer is not asked: what a command prints holds no
// query, so there is nothing to wait for (see tui/quiet).
func TestNothingIsAskedOfTheTerminal(t *testing.T) {
	b := newBox(t)
	cmd := exec.Command(b.program, "version")
	for k, v := range b.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	out, _ := io.ReadAll(tty) // ends with EIO when the program has ended
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(out, []byte("refbox ")) || bytes.ContainsRune(out, 0x1b) {
		t.Errorf("version printed %q", out)
	}
}
