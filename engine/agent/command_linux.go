package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// ownGroup makes a process the leader of a session and a group of its own that
// dies with us.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// startOwned starts cmd, waits for it, and calls ended. The kernel kills the
// process when the thread that forked it ends, so that thread is kept for as
// long.
func startOwned(cmd *exec.Cmd, ended func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
			ended()
		}
	}()
	return <-started
}

// askGroup asks a process group to end.
func askGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

// endGroup kills a process group, and whatever left it with the token in its
// environment.
func endGroup(pid int, token string) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	// A process may fork while they are being killed; one that does so faster
	// than it is found this often is beyond us.
	for range 20 {
		if killMarked(token) == 0 {
			return
		}
	}
}

// killMarked kills the living processes that carry the token, and counts them.
func killMarked(token string) int {
	mark := []byte(tokenName + "=" + token)
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	n := 0
	for _, path := range entries {
		env, err := os.ReadFile(path) // of a zombie it is empty
		if err != nil || !carries(env, mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

func carries(env, mark []byte) bool {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(kv, mark) {
			return true
		}
	}
	return false
}
