package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	tty "golang.org/x/term"

	"refbox/engine/event"
	"refbox/tui/term"
)

// screen is a terminal with refbox in its foreground.
type screen struct {
	b      *box
	cmd    *exec.Cmd
	side   *os.File // the terminal's
	device *os.File // the program's, kept open to look at its settings
	before tty.State
	ended  chan struct{}

	mu    sync.Mutex
	cells *term.Term
	grown chan struct{}
	all   []byte // all output
	dump  []byte // output since it was asked where it hangs; nil until then
}

// show starts refbox in a terminal of w × h.
func (b *box) show(w, h int, args ...string) *screen {
	b.t.Helper()
	side, device, err := pty.Open()
	if err == nil {
		err = pty.Setsize(side, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
	}
	if err != nil {
		b.t.Skip("needs a terminal: ", err)
	}
	s := &screen{b: b, cmd: b.command(args...), side: side, device: device, ended: make(chan struct{}),
		cells: term.New(w, h), grown: make(chan struct{})}
	s.before = s.settings()
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = device, device, device
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.cells.OnReply(func(p []byte) { side.Write(p) }) //nolint:errcheck // as if nobody had asked
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 64<<10)
		for {
			n, err := side.Read(buf)
			s.mu.Lock()
			s.cells.Write(buf[:n])
			s.all = append(s.all, buf[:n]...)
			if s.dump != nil {
				s.dump = append(s.dump, buf[:n]...)
			}
			close(s.grown)
			s.grown = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(s.ended)
		s.cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
	}()
	b.t.Cleanup(func() {
		s.cmd.Process.Kill() //nolint:errcheck // fails when it has ended
		<-s.ended
		device.Close()
		<-read
		side.Close()
	})
	return s
}

func (s *screen) settings() tty.State {
	s.b.t.Helper()
	t, err := tty.GetState(int(s.device.Fd()))
	if err != nil {
		s.b.t.Fatal(err)
	}
	return *t
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells.String()
}

// shows waits until the words are on the screen; a line's end may cut them.
func (s *screen) shows(words string) {
	s.b.t.Helper()
	ctx, stop := context.WithTimeout(s.b.t.Context(), time.Minute)
	defer stop()
	for {
		s.mu.Lock()
		text, grown := s.cells.String(), s.grown
		s.mu.Unlock()
		if strings.Contains(joined(text), joined(words)) {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			s.b.t.Fatalf("refbox %v does not show %q but\n%s", s.cmd.Args[1:], words, text)
		}
	}
}

func joined(s string) string { return strings.Join(strings.Fields(s), "") }

func (s *screen) press(keys string) {
	s.b.t.Helper()
	if _, err := s.side.WriteString(keys); err != nil {
		s.b.t.Fatal(err)
	}
}

// output is all that the terminal received.
func (s *screen) output() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// walk presses keys one after the other, and gives each a moment to show something.
func (s *screen) walk(keys ...string) {
	s.b.t.Helper()
	for _, k := range keys {
		s.mu.Lock()
		grown := s.grown
		s.mu.Unlock()
		s.press(k)
		select {
		case <-grown:
		case <-s.ended:
			return
		case <-time.After(300 * time.Millisecond): // a key may change nothing
		}
	}
}

// leaves waits for the end, with that exit code and the terminal as it was.
func (s *screen) leaves(code int, limit time.Duration) {
	s.b.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(limit):
		shown := s.text()
		s.mu.Lock()
		s.dump = []byte{}
		s.mu.Unlock()
		s.cmd.Process.Signal(syscall.SIGQUIT) //nolint:errcheck // then there is no dump
		select {
		case <-s.ended:
		case <-time.After(10 * time.Second):
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.b.t.Fatalf("refbox %v still runs after %v\n%s\n%s", s.cmd.Args[1:], limit, shown, s.dump)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.b.t.Errorf("refbox %v exits with %d, not %d\n%s", s.cmd.Args[1:], got, code, s.text())
	}
	if after := s.settings(); after != s.before {
		s.b.t.Errorf("the terminal is left as %+v, not as %+v", after, s.before)
	}
	fmt.Fprint(s.device, "the shell's prompt")
	s.shows("the shell's prompt")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, _, visible := s.cells.Cursor(); !visible {
		s.b.t.Error("the cursor is left hidden")
	}
	if strings.Contains(s.cells.String(), "┏") {
		s.b.t.Errorf("the screen's frames are left:\n%s", s.cells)
	}
}

// race starts a simulated heat on the screen.
func (b *box) race(w, h int, dir string) *screen {
	b.t.Helper()
	return b.show(w, h, "run", "primary-failover", "--machines", "sim", "--output", dir)
}

func TestScreenIsLeftAndTheHeatEnds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	s := b.race(150, 50, dir)
	s.shows("LIVE")
	s.shows("1 failover-one")
	s.press("q")
	s.shows("The heat is live")
	s.press("\x1b") // stay
	s.shows("LIVE")
	s.press("q")
	s.shows("The heat is live")
	s.press("e")
	s.leaves(1, 10*time.Second)
	s.shows("aborted: ended by")
	s.shows("refbox replay " + dir)
	b.nothingLeft()
	b.readable(dir, false)
	if r := events[event.RefereeRuling](t, recorded(t, dir)); len(r) != 1 || r[0].Author == "" || r[0].Reason != "ended at the screen" {
		t.Errorf("rulings %+v", r)
	}
}

// wholeHeat bounds the wait for the end of a heat that is raced to its end, 13 s on
// a quiet host: its players and verifiers take the longer the busier the host is,
// and its drain half a minute more when a player is not done by then.
const wholeHeat = 4 * time.Minute

func TestScreenIsLeftAndTheHeatGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	s := b.race(150, 50, dir)
	s.shows("LIVE")
	s.press("q")
	s.shows("The heat is live")
	s.press("l")
	s.shows("The heat goes on in this process")
	// Another terminal looks in meanwhile, adds a note, and leaves without a word.
	w := b.show(150, 50, "watch", dir)
	w.shows("LIVE")
	w.press("a")
	w.shows("note:")
	w.press("all well\r")
	w.shows("noted")
	w.press("q")
	w.leaves(0, 10*time.Second)
	s.leaves(0, wholeHeat)
	s.shows("1. failover-one won")
	b.nothingLeft()
	b.readable(dir, false)
	if n := events[event.OperatorNote](t, recorded(t, dir)); len(n) != 1 || n[0].Author == "" || n[0].Text != "all well" {
		t.Errorf("notes %+v", n)
	}
}

func TestScreenTakesCtrlCTwice(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	s := b.race(150, 50, dir)
	s.shows("LIVE")
	s.press("\x03")
	s.shows("The heat is live")
	s.press("\x03")
	s.leaves(130, 10*time.Second)
	b.nothingLeft()
	b.readable(dir, false)
}

func TestSignalsOnTheScreen(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		b := newBox(t)
		dir := b.path(sig.String())
		s := b.race(150, 50, dir)
		s.shows("LIVE")
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		s.leaves(130, 10*time.Second)
		b.nothingLeft()
		b.readable(dir, false)
	}
}

func TestHeatIsEndedFromAWatchersScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	p := b.simulated(dir)
	w := b.show(150, 50, "watch", dir)
	w.shows("LIVE")
	w.press("X")
	w.shows("because:")
	w.press("seen enough\r")
	p.wait(20 * time.Second)
	p.says(1, "seen enough")
	w.shows("ABORTED")
	w.press("q") // nothing is asked: the heat is over, and was another's
	w.leaves(0, 10*time.Second)
	b.nothingLeft()
	b.readable(dir, false)
}

func TestTinyTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	s := b.race(20, 5, dir)
	s.shows("needs 40×12")
	s.press("jwX")
	s.press("q")
	s.shows("The heat is live")
	s.press("e")
	s.leaves(1, 10*time.Second)
	b.nothingLeft()
	for _, args := range [][]string{{"replay", dir}, {"watch", dir}, nil} {
		s := b.show(20, 5, args...)
		s.shows("needs 40×12")
		s.press("q")
		s.leaves(0, 10*time.Second)
	}
}

func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env["TERM"] = "dumb"
	dir := b.path("heat")
	s := b.race(100, 40, dir)
	s.shows("heat running")
	s.press("\x03") // the terminal makes a signal of it
	s.leaves(130, 10*time.Second)
	s.mu.Lock()
	for i := range s.cells.Len() {
		if l := s.cells.Text(i); strings.ContainsAny(l, "┏█\x1b") {
			t.Errorf("no plain line: %q", l)
		}
	}
	s.mu.Unlock()
	b.nothingLeft()
	b.readable(dir, false)
}

// TestSetUpAsks: who is not root, or sits at a terminal, is asked before
// anything is installed, and may say no.
func TestSetUpAsks(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	apt := b.path("bin")
	script := "#!/bin/sh\necho called >>" + b.path("apt") + "\n"
	if err := errors.Join(os.Mkdir(apt, 0o755), os.WriteFile(apt+"/apt-get", []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	b.env["PATH"] = apt
	for answer, code := range map[string]int{"n\r": 3, "\x03": 130} {
		s := b.show(120, 40, "run", "primary-failover", "--output", b.path("heat"))
		s.shows("Real machines need what this host lacks: qemu-system-x86_64")
		s.shows("[Y/n]")
		s.press(answer)
		s.leaves(code, 10*time.Second)
		if code == 3 {
			s.shows("apt-get install")
		}
	}
	for _, name := range []string{"apt", "heat"} {
		if _, err := os.Stat(b.path(name)); err == nil {
			t.Errorf("%s is there: something was done", name)
		}
	}
	b.nothingLeft()
}
