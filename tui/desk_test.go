package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/tui/viewtest"
)

// fakeDesk notes what it is asked for. Its consoles remember what was typed.
type fakeDesk struct {
	mu       sync.Mutex
	calls    []string
	err      error
	consoles []*fakeConsole
	held     chan struct{} // Attach waits for it, when it is there
	told     func()        // hears that something reached a terminal
}

func (d *fakeDesk) note(format string, a ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, a...))
	return d.err
}

func (d *fakeDesk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, "; ")
}

func (d *fakeDesk) End(_ context.Context, author, reason string) error {
	return d.note("end %s: %s", author, reason)
}

func (d *fakeDesk) Note(_ context.Context, author, text string) error {
	return d.note("note %s: %s", author, text)
}

func (d *fakeDesk) Rule(_ context.Context, author string, r control.Ruling) error {
	if r.Fault.Kind != "" {
		return d.note("%s %s: %s %s %s %s%s %v: %s", r.Action, author, r.Territory, r.Fault.Kind, r.Fault.Target(), r.Target, r.Fault.Params(), r.By, r.Reason)
	}
	return d.note("%s %s: %s/%s %v: %s", r.Action, author, r.Territory, r.Milestone, r.By, r.Reason)
}

func (d *fakeDesk) Attach(_ context.Context, author, territory, machine string) (io.ReadWriteCloser, error) {
	if err := d.note("attach %s: %s/%s", author, territory, machine); err != nil {
		return nil, err
	}
	if d.held != nil {
		<-d.held
	}
	r, w := io.Pipe()
	c := &fakeConsole{out: r, guest: w}
	d.mu.Lock()
	d.consoles = append(d.consoles, c)
	d.mu.Unlock()
	return c, nil
}

func (d *fakeDesk) console(i int) *fakeConsole {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i >= len(d.consoles) {
		return nil
	}
	return d.consoles[i]
}

type fakeConsole struct {
	mu     sync.Mutex
	typed  bytes.Buffer
	closed bool
	out    *io.PipeReader
	guest  *io.PipeWriter
}

func (c *fakeConsole) Login() control.Login {
	return control.Login{User: "root", Password: "sesame-1"}
}

func (c *fakeConsole) Read(p []byte) (int, error) { return c.out.Read(p) }

func (c *fakeConsole) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, io.ErrClosedPipe
	}
	return c.typed.Write(p)
}

func (c *fakeConsole) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.out.Close()
}

func (c *fakeConsole) state() (typed string, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typed.String(), c.closed
}

// liveOf is a heat that runs, watched from a desk.
func liveOf(t *testing.T, owned bool) (*driver, *taped, *fakeDesk) {
	t.Helper()
	x := startTape(t, demoArena())
	x.begin()
	desk := &fakeDesk{}
	return watchOf(t, x.dir, 120, 34, plainOutput(), Desk{Desk: desk, Author: "ann", Owned: owned}), x, desk
}

func TestNoteAndEnd(t *testing.T) {
	d, _, desk := liveOf(t, false)
	d.press("a")
	d.write("seat three guesses")
	d.until("noted", func() bool { return d.m.notice == "noted" })
	d.press("a", "enter")
	d.press("a", "x", "esc")
	d.press("X", "enter")
	d.shows("a reason is needed")
	d.press("X")
	d.write("the arena is broken")
	d.until("ended", func() bool { return strings.HasPrefix(d.m.notice, "ending") })
	if got := desk.said(); got != "note ann: seat three guesses; end ann: the arena is broken" {
		t.Fatal(got)
	}
	desk.err = errors.New("the desk is gone\x1b[2J")
	d.press("a")
	d.write("x")
	d.until("told", func() bool { return strings.HasPrefix(d.m.notice, "the desk is gone") })
	if strings.Contains(d.m.notice, "\x1b") {
		t.Fatalf("%q", d.m.notice)
	}
}

func TestReplayHasNoDesk(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	for key, want := range map[string]string{"a": "no log to go into", "X": "nothing to end", "c": "no console to attach to"} {
		d.press(key)
		d.shows(want)
	}
}

func TestLeavingAnOwnedHeat(t *testing.T) {
	t.Run("stay, then end", func(t *testing.T) {
		d, _, _ := liveOf(t, true)
		d.press("q")
		d.shows("The heat is live")
		d.press("x", ".", "enter")
		if d.m.dialog == nil {
			t.Fatal("another key answered")
		}
		d.press("esc")
		d.lacks("The heat is live")
		d.press("enter", "q") // of its other screens it leads back
		d.lacks("The heat is live")
		d.press("enter", "ctrl+c") // from any of its screens
		d.shows("The heat is live")
		d.press("e")
		d.until("left", func() bool { return d.left })
		if !d.m.choice.EndHeat || d.m.choice.Interrupted {
			t.Fatalf("%+v", d.m.choice)
		}
	})
	t.Run("leave it running", func(t *testing.T) {
		d, _, _ := liveOf(t, true)
		d.press("q", "l")
		d.until("left", func() bool { return d.left })
		if d.m.choice.EndHeat {
			t.Fatalf("%+v", d.m.choice)
		}
	})
	t.Run("ctrl-c twice", func(t *testing.T) {
		d, _, _ := liveOf(t, true)
		d.press("ctrl+c", "ctrl+c")
		d.until("left", func() bool { return d.left })
		if !d.m.choice.EndHeat || !d.m.choice.Interrupted {
			t.Fatalf("%+v", d.m.choice)
		}
	})
	t.Run("in a terminal that is too small", func(t *testing.T) {
		d, _, _ := liveOf(t, true)
		d.send(tea.WindowSizeMsg{Width: 30, Height: 8})
		d.press("q")
		d.shows("The heat is live")
		d.press("l")
		d.until("left", func() bool { return d.left })
	})
	t.Run("one that is over, or another's, just ends", func(t *testing.T) {
		d, x, _ := liveOf(t, true)
		x.middle()
		x.finish()
		d.until("over", func() bool { return !d.heat().rec.Live() })
		d.press("q")
		d.until("left", func() bool { return d.left })
		d, _, _ = liveOf(t, false)
		d.press("q")
		d.until("left", func() bool { return d.left })
	})
}

func TestConsole(t *testing.T) {
	d, x, desk := liveOf(t, true)
	d.press("2", "c")
	d.until("attached", func() bool { return d.heat().attached != nil })
	if got := desk.said(); got != "attach ann: failover-two/main" {
		t.Fatal(got)
	}
	d.shows("ctrl-] detach  login root  password sesame-1  every key")
	d.shows("┏ console · failover-two ━")
	viewtest.Fits(t, d.m.View(), 120, 34)
	c := desk.console(0)
	// Keys go to the guest, in their order and none to the screen.
	d.press("q", "ctrl+c", "?", ":", "1", "esc", "tab", "up", "alt+b", "backspace", "enter")
	d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("two\nlines"), Paste: true})
	d.send(tea.MouseMsg{Action: tea.MouseActionPress, Button: tea.MouseButtonWheelDown})
	var many strings.Builder
	for i := range 300 {
		k := string(rune('a' + i%26))
		many.WriteString(k)
		d.press(k)
	}
	want := "q\x03?:1\x1b\t\x1b[A\x1bb\x7f\rtwo\rlines" + many.String()
	// What the guest prints is drained, and shown from the recording.
	for range 100 {
		if _, err := c.guest.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	x.add(3000, event.ConsoleAttached{Territory: "failover-two", Machine: "main", Author: "ann"})
	d.until("shown", func() bool { return strings.Contains(d.text(), "operator attached") })
	d.press("ctrl+]")
	if typed, closed := c.state(); typed != want || !closed {
		t.Fatalf("typed %q\nnot   %q, closed %v", typed, want, closed)
	}
	d.lacks("sesame")
	if d.left || d.heat().attached != nil || d.m.help != nil || d.m.prompt != nil {
		t.Fatal("keys reached the screen")
	}
	d.press("?")
	d.shows("keys and legend")
}

func TestConsoleThatGoesAway(t *testing.T) {
	d, _, desk := liveOf(t, true)
	d.press("c")
	d.until("attached", func() bool { return d.heat().attached != nil })
	a := d.heat().attached
	desk.console(0).guest.Close()
	<-a.read
	d.press("x")
	d.shows("the console is gone")
	d.press("?") // keys are the screen's again
	d.shows("keys and legend")
	desk.err = errors.New("no such machine")
	d.press("esc", "c")
	d.until("told", func() bool { return strings.Contains(d.m.notice, "no such machine") })
}

// A console that comes after its heat was left is closed at once.
func TestConsoleComesTooLate(t *testing.T) {
	d, _, desk := liveOf(t, true)
	desk.held = make(chan struct{})
	d.press("c")
	d.until("asked", func() bool { return desk.said() != "" })
	h := d.heat()
	done := make(chan struct{})
	go func() { h.release(); close(done) }()
	<-done
	close(desk.held)
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for {
		if c := desk.console(0); c != nil {
			if _, closed := c.state(); closed {
				return
			}
		}
		select {
		case <-late.C:
			t.Fatal("the console stays open")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestCopy(t *testing.T) {
	t.Setenv("TMUX", "")
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("end")
	d.press("y")
	d.shows("copied")
	d.until("copied", func() bool { return d.out.String() != "" })
	const begin, end = "\x1b]52;c;", "\x07"
	got := d.out.String()
	if !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) || strings.Count(got, "\x1b") != 1 {
		t.Fatalf("%q", got)
	}
	if text := decode64(t, got[len(begin):len(got)-len(end)]); !strings.HasPrefix(text, "failover-one won with 100 of 100 points") {
		t.Fatalf("%q", text)
	}
	// The chosen action's command, sanitised when it was read.
	d.press("enter", "tab", "k", "y")
	d.until("copied", func() bool { return strings.Count(d.out.String(), begin) == 2 })
	last := strings.TrimSuffix(d.out.String()[strings.LastIndex(d.out.String(), begin)+len(begin):], end)
	if text := decode64(t, last); text != "systemctl mask --now failover-primary && echo masked" {
		t.Fatalf("%q", text)
	}
	// What is longer than terminals take is cut between two letters.
	d.do(d.m.copyText(strings.Repeat("é", maxCopy)[1:]))
}

func (d *fakeDesk) Sit(_ context.Context, author, territory, machine string, size control.Size) (control.Terminal, error) {
	if err := d.note("sit %s: %s/%s %v", author, territory, machine, size); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	c := &fakeConsole{out: r, guest: w}
	d.mu.Lock()
	d.consoles = append(d.consoles, c)
	d.mu.Unlock()
	return fakeTerminal{c, d}, nil
}

type fakeTerminal struct {
	*fakeConsole
	d *fakeDesk
}

func (t fakeTerminal) Resize(s control.Size) error {
	defer t.d.told()
	return t.d.note("size %v", s)
}

func (t fakeTerminal) Write(p []byte) (int, error) {
	defer t.d.told()
	return t.fakeConsole.Write(p)
}
