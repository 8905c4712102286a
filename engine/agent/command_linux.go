package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

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
	return killWhere(func(t string) bool { return t == token })
}

// SweepPrograms kills what is left of players' programs whose refbox was killed,
// and counts them: only the program itself dies with it, not what that started.
func SweepPrograms() int {
	return killWhere(func(token string) bool {
		owner, rest, _ := strings.Cut(token, ".")
		began, _, _ := strings.Cut(rest, ".")
		pid, err := strconv.Atoi(owner)
		return err == nil && began != "" && startOf(pid) != began
	})
}

// killWhere kills the processes with a token of which that holds.
func killWhere(holds func(token string) bool) int {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	n := 0
	for _, path := range entries {
		env, err := os.ReadFile(path) // of a zombie it is empty
		if err != nil {
			continue
		}
		token := tokenIn(env)
		if token == "" || !holds(token) {
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

func tokenIn(env []byte) string {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(tokenName+"=")); ok {
			return string(v)
		}
	}
	return ""
}

// startOf is when a process started, in the kernel's ticks; "" when there is none,
// or only its remains.
func startOf(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	end := bytes.LastIndex(stat, []byte(") ")) // of the name, which may hold anything
	if end < 0 {
		return ""
	}
	f := strings.Fields(string(stat[end+2:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}
