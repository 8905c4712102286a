package tui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/viewtest"
)

// driver runs a model without a terminal and with a clock that only a test moves.
// Commands run beside, as in the program; their messages wait until the test
// takes them.
type driver struct {
	t    testing.TB
	m    *model
	now  time.Time
	out  lockedBuffer
	msgs chan tea.Msg
	left bool // the program would have ended
	wg   sync.WaitGroup
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func plainOutput() canvas.Output { return canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark()} }

// drive starts with the screen that first makes, at w × h.
func drive(t testing.TB, w, h int, o canvas.Output, first func(ctx context.Context, cfg Config) screen) *driver {
	t.Helper()
	d := &driver{t: t, now: epoch, msgs: make(chan tea.Msg, 4096)}
	cfg := Config{Keys: keymap.Default(), Output: o, Clock: func() time.Time { return d.now }}
	ctx, stop := context.WithCancel(context.Background())
	d.m = newModel(ctx, cfg, first(ctx, cfg))
	d.m.out = &d.out
	d.do(d.m.Init())
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	t.Cleanup(func() {
		stop()
		for _, s := range d.m.screens {
			if c, ok := s.(closer); ok {
				c.close()
			}
		}
		d.wg.Wait()
	})
	return d
}

// replayOf shows a recording, paused at its start.
func replayOf(t testing.TB, dir string, w, h int, o canvas.Output) *driver {
	t.Helper()
	d := watchOf(t, dir, w, h, o, Desk{})
	d.press(" ")
	return d
}

func watchOf(t testing.TB, dir string, w, h int, o canvas.Output, desk Desk) *driver {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return drive(t, w, h, o, func(ctx context.Context, cfg Config) screen {
		return &overview{heat: openHeat(ctx, rec, desk, cfg.Clock())}
	})
}

func (d *driver) heat() *heat { return d.m.screens[0].(*overview).heat }

func (d *driver) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	d.wg.Go(func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				d.do(c)
			}
		default:
			d.msgs <- msg
		}
	})
}

func (d *driver) send(msg tea.Msg) {
	if _, ok := msg.(tea.QuitMsg); ok {
		d.left = true
		return
	}
	_, cmd := d.m.Update(msg)
	d.do(cmd)
	d.m.View() // as the program does after every message
}

// until takes messages until ok, for a few seconds at most.
func (d *driver) until(what string, ok func() bool) {
	d.t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for !ok() {
		select {
		case msg := <-d.msgs:
			d.send(msg)
		case <-late.C:
			d.t.Fatalf("%s: it did not come about; the screen:\n%s", what, d.text())
		}
	}
}

// press sends keys, one by one.
func (d *driver) press(keys ...string) {
	for _, k := range keys {
		d.send(viewtest.Key(k))
	}
}

// write types a text and enter.
func (d *driver) write(s string) {
	for _, r := range s {
		d.press(string(r))
	}
	d.press("enter")
}

// goTo moves to a place on the clock.
func (d *driver) goTo(where string) {
	d.press(":")
	d.write(where)
}

// wait lets time pass, and what is due with it.
func (d *driver) wait(by time.Duration) {
	d.now = d.now.Add(by)
	d.send(tickMsg{d.m.ticks})
}

// text is the frame without its styles.
// golden compares what is shown with its golden frame, in every way to show it.
func (d *driver) golden(name string) {
	d.t.Helper()
	d.m.View()
	viewtest.Looks(d.t, name, d.m.w, d.m.h, d.m.grid.Flatten)
}

func (d *driver) text() string { return ansi.Strip(d.m.View()) }

// shows fails the test unless the frame has s.
func (d *driver) shows(s string) {
	d.t.Helper()
	if !strings.Contains(d.text(), s) {
		d.t.Fatalf("the frame lacks %q:\n%s", s, d.text())
	}
}

func (d *driver) lacks(s string) {
	d.t.Helper()
	if strings.Contains(d.text(), s) {
		d.t.Fatalf("the frame has %q:\n%s", s, d.text())
	}
}

var _ io.Writer = (*lockedBuffer)(nil)
