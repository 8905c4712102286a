package qemu

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// ownerEnv makes the test binary play an owner of machines that can be killed.
const ownerEnv = "REFBOX_TEST_OWNER"

func TestMain(m *testing.M) {
	switch role := os.Getenv(ownerEnv); role {
	case "":
		goleak.VerifyTestMain(m)
	case "sleep":
		p, err := spawn("/bin/sleep", []string{"1000"}, nil)
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(p.proc.Pid)
		select {}
	default:
		own(role)
	}
}

func TestDiesWithItsOwner(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=sleep")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer owner.Wait()
	defer owner.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	if err := unix.Kill(pid, 0); err != nil {
		t.Fatalf("the owner's child %d is not there before the owner dies: %v", pid, err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, pid, 5*time.Second)
}

// collect drains p's console in the background and returns what it printed
// once it has ended.
func collect(c *console, p *process) func() {
	c.adopt(p.pty)
	var wg sync.WaitGroup
	wg.Go(func() { c.drain(p.pty) })
	return func() { <-p.exited; wg.Wait() }
}

func TestConsoleIsTransparent(t *testing.T) {
	p, err := spawn("/bin/cat", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var record bytes.Buffer
	c := newConsole(&record)
	seen := make(chan []byte, 64)
	detach := c.Attach(func(b []byte) { seen <- bytes.Clone(b) })
	end := collect(c, p)
	want := "a\r\nb\n\x03\x04\x1a\x11\x13\xff\x00end"
	if _, err := c.Write([]byte(want)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for deadline := time.After(5 * time.Second); !bytes.HasSuffix(got, []byte("end")); {
		select {
		case b := <-seen:
			got = append(got, b...)
		case <-deadline:
			t.Fatalf("got %q", got)
		}
	}
	if string(got) != want {
		t.Errorf("echoed %q, want %q", got, want)
	}
	detach()
	p.kill()
	end()
	if record.String() != want {
		t.Errorf("recorded %q, want %q", record.String(), want)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("typing into a console without a machine succeeded")
	}
}

// A process that prints a lot ends although nobody looks.
func TestConsoleAlwaysDrains(t *testing.T) {
	p, err := spawn("/bin/sh", []string{"-c", "head -c 3000000 /dev/zero; printf last-words"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(nil)
	collect(c, p)()
	if tail := c.lastBytes(); len(tail) != tailBytes || !bytes.HasSuffix(tail, []byte("last-words")) {
		t.Fatalf("the tail has %d bytes and ends in %q", len(tail), tail[max(0, len(tail)-20):])
	}
}

// Typing into a console that nobody reads ends with an error, not never.
func TestConsoleTypingIsBounded(t *testing.T) {
	p, err := spawn("/bin/sleep", []string{"100"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(nil)
	end := collect(c, p)
	defer end()
	defer p.kill()
	start := time.Now()
	if _, err := c.Write(make([]byte, 1<<20)); err == nil || time.Since(start) > 5*typeTimeout {
		t.Fatalf("after %v: %v", time.Since(start), err)
	}
}

func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only then is there a privilege to drop")
	}
	p, err := spawn("/bin/sh", []string{"-c", "id -u; id -g; cat /proc/self/status | grep CapEff"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(nil)
	collect(c, p)()
	want := fmt.Sprintf("%d\n%d\nCapEff:\t0000000000000000\n", unprivilegedID, unprivilegedID)
	if got := string(c.lastBytes()); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
