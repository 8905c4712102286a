package tui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// terminal is a shell in tmux.
type terminal struct {
	t    *testing.T
	sock string
	dir  string
}

func openTerminal(t *testing.T, w, h int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: the program is not tried in a terminal")
	}
	x := &terminal{t: t, dir: t.TempDir()}
	x.sock = filepath.Join(x.dir, "s")
	x.tmux("new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h), "env", "ENV=", "PS1=ready> ", "sh", "-i")
	t.Cleanup(func() { x.tmux("kill-server") })
	x.tmux("set-option", "-g", "status", "off")
	x.resize(w, h)
	x.until("a shell", func(s string) bool { return strings.Contains(s, "ready>") })
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-f", "/dev/null", "-u", "-S", x.sock}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (x *terminal) resize(w, h int) {
	x.tmux("resize-window", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h))
}

func (x *terminal) keys(keys ...string) { x.tmux(append([]string{"send-keys"}, keys...)...) }

func (x *terminal) line(s string) {
	x.tmux("send-keys", "-l", s)
	x.keys("Enter")
}

func (x *terminal) screen() string { return x.tmux("capture-pane", "-p") }

// until asks for the screen until ok; tmux tells nobody that it has drawn.
func (x *terminal) until(what string, ok func(screen string) bool) string {
	x.t.Helper()
	end := time.Now().Add(20 * time.Second)
	for {
		s := x.screen()
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			x.t.Fatalf("%s does not come about:\n%s", what, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (x *terminal) shows(want string) string {
	x.t.Helper()
	return x.until(fmt.Sprintf("%q", want), func(s string) bool { return strings.Contains(s, want) })
}

// modes are the terminal's settings and what a program may have switched on.
func (x *terminal) modes() string {
	x.t.Helper()
	name := filepath.Join(x.dir, "stty")
	os.Remove(name)
	x.line("clear; stty -g >" + name + ".new && mv " + name + ".new " + name + "; echo to''ld")
	x.shows("told\n")
	b, err := os.ReadFile(name)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b) + x.tmux("display-message", "-p", "alternate #{alternate_on} cursor #{cursor_flag} mouse #{mouse_any_flag} keypad #{keypad_cursor_flag}")
}

// child starts the program on a recording.
func (x *terminal) child(dir string, env ...string) {
	x.t.Helper()
	self, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	env = append(env, childEnv+"="+dir, `GORACE="exitcode=0 log_path=`+filepath.Join(x.dir, "race")+`"`)
	x.t.Cleanup(x.races)
	x.line("clear; " + strings.Join(env, " ") + " " + self + "; echo status=$?")
}

// races fails for what the race detector found in the child, but for one thing that
// the library does: a change of size that comes as the program is brought back to the
// foreground reads the output that is just being set to what it is.
func (x *terminal) races() {
	logs, _ := filepath.Glob(filepath.Join(x.dir, "race.*"))
	for _, name := range logs {
		data, err := os.ReadFile(name)
		if err != nil {
			x.t.Error(err)
		}
		for _, report := range strings.Split(string(data), "==================\n") {
			if strings.Contains(report, "DATA RACE") && !(strings.Contains(report, ".(*Program).checkResize()") && strings.Contains(report, ".(*Program).initInput()")) {
				x.t.Error(report)
			}
		}
	}
}

func TestProgramInATerminal(t *testing.T) {
	dir := demoHeat(t)
	x := openTerminal(t, 100, 30)
	before := x.modes()
	x.child(dir)
	x.shows("┏ 1 failover-one")
	x.keys("Space", ":")
	x.line("7s")
	x.shows("verifying writes-restored")
	x.keys("m") // a mode that must be switched off again
	x.shows("mouse on")

	// What is shown after resizes is what a model of that size draws.
	want := func(w, h int) string {
		d := replayOf(t, dir, w, h, plainOutput())
		d.goTo("7s")
		d.press("tab", "shift+tab")
		return trimRows(d.text())
	}
	for _, size := range [][2]int{{80, 24}, {140, 50}, {60, 15}, {100, 30}} {
		x.resize(size[0], size[1])
		x.keys("Tab", "BTab")
		frame := want(size[0], size[1])
		x.until("the frame after a resize", func(s string) bool { return trimRows(s) == frame })
	}
	x.resize(20, 5)
	x.shows("needs 40×12")
	x.resize(100, 30)
	frame := want(100, 30)
	x.until("the frame after a small terminal", func(s string) bool { return trimRows(s) == frame })

	x.keys("C-z")
	x.shows("ready>")
	x.line("echo in the shell")
	x.shows("in the shell")
	x.resize(80, 24)
	x.line("fg; echo status=$?")
	frame = want(80, 24)
	x.until("the frame after coming back", func(s string) bool { return trimRows(s) == frame })

	x.keys("q")
	s := x.shows("status=0")
	if strings.Contains(s, "failover-one") || !strings.Contains(s, "left, choice") {
		t.Errorf("something stays on the screen:\n%s", s)
	}
	x.resize(100, 30)
	if after := x.modes(); after != before {
		t.Errorf("the terminal is left as\n%s\nnot as\n%s", after, before)
	}
}

func trimRows(s string) string {
	rows := strings.Split(s, "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

func TestTinyTerminal(t *testing.T) {
	x := openTerminal(t, 20, 5)
	x.child(demoHeat(t))
	x.shows("needs 40×12")
	x.keys("j", "Enter", "q")
	x.shows("status=0")
}

func TestTerminalIsRestoredAfterAPanic(t *testing.T) {
	dir := demoHeat(t)
	x := openTerminal(t, 100, 30)
	before := x.modes()
	for _, where := range []string{"update", "view", "command"} {
		x.child(dir, childPanic+"="+where)
		x.shows("┏ 1 failover-one")
		x.keys("m", "P")
		s := x.shows("status=1")
		if !strings.Contains(s, "internal fault, the terminal was restored: a fault in") || !strings.Contains(s, "child_test.go:") || strings.Contains(s, "goroutine") {
			t.Errorf("%s: no sentence that says what happened and where:\n%s", where, s)
		}
		if after := x.modes(); after != before {
			t.Errorf("%s: the terminal is left as\n%s\nnot as\n%s", where, after, before)
		}
	}
}

func TestTerminalIsRestoredAfterASignal(t *testing.T) {
	x := openTerminal(t, 100, 30)
	before := x.modes()
	pid := filepath.Join(x.dir, "pid")
	x.child(demoHeat(t), childPID+"="+pid)
	x.shows("┏ 1 failover-one")
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.shows("error: context canceled")
	x.shows("status=1")
	if after := x.modes(); after != before {
		t.Errorf("the terminal is left as\n%s\nnot as\n%s", after, before)
	}
}
