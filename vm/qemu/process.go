package qemu

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm/child"
)

// unprivilegedID is the user and group that QEMU runs as when refbox runs as
// root. 65520 to 65533 belong to nobody: not to Debian, not to systemd's
// dynamic users, not to subordinate ranges; unlike "nobody" no other service
// runs under it.
const unprivilegedID = 65530

// process is one QEMU process under its own pty.
type process struct {
	proc   *os.Process
	pty    *os.File // owned by the console that drains it
	exited chan struct{}
	state  *os.ProcessState // after exited
	killed atomic.Bool      // by us
	stderr *tailWriter
}

// spawn starts binary with args on a new pty, handing files over as descriptors
// 3 and up. It takes ownership of nothing.
//
// The process dies with ours (package child); and should that fail, losing its
// controlling terminal hangs it up.
func spawn(binary string, args []string, files []*os.File, env ...string) (*process, error) {
	ours, theirs, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &process{pty: ours, exited: make(chan struct{}), stderr: &tailWriter{}}
	cmd := exec.Command(binary, args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LANG=C", "TMPDIR=/nonexistent"}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, p.stderr
	cmd.ExtraFiles = files
	cmd.WaitDelay = time.Second // for the copying of stderr, once the process is gone
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setctty:    true,
		Credential: credential(),
	}
	err = child.Start(cmd, func() {
		p.state = cmd.ProcessState
		close(p.exited)
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	p.proc = cmd.Process
	return p, nil
}

// kill ends the process and waits until it has.
func (p *process) kill() {
	p.killed.Store(true)
	// With a runner that did not become QEMU, its group: it leads a session.
	select {
	case <-p.exited: // its number may be another's by now
		return
	default:
	}
	_ = syscall.Kill(-p.proc.Pid, syscall.SIGKILL) // fails only when it has ended
	_ = p.proc.Kill()
	<-p.exited
}

// died tells whether the process, which has exited, ended neither by its guest's
// shutdown nor by us.
func (p *process) died() bool { return !p.killed.Load() && !p.state.Success() }

// credential is nil unless we are root.
func credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	c := &syscall.Credential{Uid: unprivilegedID, Gid: unprivilegedID}
	var st unix.Stat_t
	// Whoever may use /dev/kvm by its group keeps that.
	if unix.Stat("/dev/kvm", &st) == nil && st.Mode&0o060 == 0o060 && st.Gid != 0 {
		c.Groups = []uint32{st.Gid}
	}
	return c
}

// giveAway makes path the unprivileged user's, so that QEMU may reopen it by
// descriptor.
func giveAway(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, unprivilegedID, unprivilegedID)
}

// tailWriter keeps the last tailBytes written to it.
type tailWriter struct {
	mu sync.Mutex
	b  []byte
}

func (w *tailWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, b...)
	if extra := len(w.b) - tailBytes; extra > 0 {
		w.b = slices.Delete(w.b, 0, extra)
	}
	return len(b), nil
}

func (w *tailWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
