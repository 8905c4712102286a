//go:build linux

package child_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm/child"
)

const role = "REFBOX_CHILD_TEST"

// The test's own program is the parent that dies, in TestDiesWithItsParent.
func TestMain(m *testing.M) {
	if os.Getenv(role) == "parent" {
		cmd := exec.Command("sleep", "1000")
		if err := child.Start(cmd, func() {}); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

// ended is called once the process is waited for, with how it ended.
func TestToldHowItEnded(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exit 7")
	done := make(chan int, 2)
	if err := child.Start(cmd, func() { done <- cmd.ProcessState.ExitCode() }); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-done:
		if code != 7 {
			t.Errorf("it ended with %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nobody is told that it ended")
	}
}

// What cannot be started is an error, and has no end.
func TestCannotStart(t *testing.T) {
	cmd := exec.Command("/nowhere/at/all")
	if err := child.Start(cmd, func() { t.Error("what never began has ended") }); err == nil {
		t.Error("no error")
	}
}

// It leads a session of its own: a terminal's Ctrl-C is not its.
func TestLeadsASession(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	done := make(chan struct{})
	if err := child.Start(cmd, func() { close(done) }); err != nil {
		t.Fatal(err)
	}
	sid, err := unix.Getsid(cmd.Process.Pid)
	if err != nil || sid != cmd.Process.Pid {
		t.Errorf("process %d is of session %d, %v", cmd.Process.Pid, sid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", s)
	}
}

// It is killed with the process that started it, even when that is killed itself.
func TestDiesWithItsParent(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the kernel kills children on Linux only")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), role+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skip("no pidfd here: " + err.Error())
	}
	defer unix.Close(fd)
	if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 {
		t.Fatal("the child has ended before its parent")
	}
	parent.Process.Kill() //nolint:errcheck // it ends, or Wait says so
	parent.Wait()         //nolint:errcheck // it was killed
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000)
	if n != 1 {
		unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // nothing is left behind
		t.Fatalf("the child outlives its parent: %v", err)
	}
}
