package tui

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/creack/pty"
	xterm "golang.org/x/term"

	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/term"
)

// watchedScreen is the overview, and tells when it got a key and what was on the way when it
// was drawn.
type watchedScreen struct {
	*overview
	handled chan time.Time
	m       *model // once there was a key
	drawn   int
	onWay   int // how often something was on the way when it was drawn
}

func (s *watchedScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	s.m = m
	cmd := s.overview.key(m, a, raw)
	s.handled <- time.Now()
	return cmd
}

func (s *watchedScreen) draw(c canvas.Canvas) {
	s.drawn++
	if s.m != nil {
		s.m.wire.mu.Lock()
		if s.m.wire.sent != nil || len(s.m.wire.waiting) > 0 {
			s.onWay++
		}
		s.m.wire.mu.Unlock()
	}
	s.overview.draw(c)
}

// slowLine is a terminal of w × h behind a line of so many bytes a second.
type slowLine struct {
	side, device *os.File
	mu           sync.Mutex
	screen       *term.Term
	bytes        int
	grown        chan struct{}
}

func openSlowLine(t *testing.T, w, h, rate int) *slowLine {
	t.Helper()
	side, device, err := pty.Open()
	if err == nil {
		err = pty.Setsize(side, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
	}
	if err == nil {
		_, err = xterm.MakeRaw(int(device.Fd()))
	}
	if err != nil {
		t.Skip("needs a terminal: ", err)
	}
	l := &slowLine{side: side, device: device, screen: term.New(w, h), grown: make(chan struct{})}
	var reading sync.WaitGroup
	stop := make(chan struct{})
	reading.Go(func() {
		const slice = 10 * time.Millisecond
		beat := time.NewTicker(slice)
		defer beat.Stop()
		buf := make([]byte, rate*int(slice)/int(time.Second))
		for {
			select {
			case <-beat.C:
			case <-stop:
				return
			}
			n, err := side.Read(buf)
			if err != nil {
				return
			}
			l.mu.Lock()
			l.screen.Write(buf[:n])
			l.bytes += n
			close(l.grown)
			l.grown = make(chan struct{})
			l.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		close(stop)
		device.Close()
		side.Close()
		reading.Wait()
	})
	return l
}

// shows waits until the words are on the screen.
func (l *slowLine) shows(t *testing.T, words string, limit time.Duration) {
	t.Helper()
	late := time.After(limit)
	for {
		l.mu.Lock()
		text, grown := l.screen.String(), l.grown
		l.mu.Unlock()
		if strings.Contains(text, words) {
			return
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("after %v %q is not shown:\n%s", limit, words, text)
		}
	}
}

// Over a line of 20 kB/s, on which a frame is seconds long, while everything on the
// screen moves: a key acts at once and is seen within two seconds, and there is never
// more than one frame on the way.
func TestSlowLine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time: skipped under -short")
	}
	dir := demoHeat(t)
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	line := openSlowLine(t, 120, 34, 20_000)
	screen := &watchedScreen{handled: make(chan time.Time, 100)}
	cfg := Config{Keys: keymap.Default(), Output: canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}}
	// What moves: a replay that is played as fast as it can be, again and again.
	h := openHeat(context.Background(), rec, Desk{}, time.Now())
	screen.overview = &overview{heat: h}
	ended := make(chan error, 1)
	go func() {
		_, err := run(context.Background(), cfg, screen, line.device, line.device)
		ended <- err
	}()
	line.shows(t, "help", 10*time.Second)
	var worst, seen time.Duration
	press := func(key, words string) {
		t.Helper()
		pressed := time.Now()
		if _, err := line.side.WriteString(key); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, (<-screen.handled).Sub(pressed))
		if words != "" {
			line.shows(t, words, 10*time.Second)
			seen = max(seen, time.Since(pressed))
		}
	}
	for range 3 {
		press("2", "┏ 2 failover-two")
		press("3", "┏ 3 failover-three")
		press("g", "")
		press("1", "┏ 1 failover-one")
		press("G", "")
	}
	line.side.WriteString("q") //nolint:errcheck // it ends, or the test says that it did not
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the program does not end")
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	t.Logf("%d frames drawn, %d bytes sent; a key acts within %v and is seen within %v", screen.drawn, line.bytes, worst, seen)
	// The figure is 100 ms. A busy host has taken 130 with nothing wrong; a program that
	// waits for its line takes seconds.
	if worst > 500*time.Millisecond {
		t.Errorf("a key acts after %v", worst)
	}
	if seen > 2*time.Second {
		t.Errorf("a key is seen after %v", seen)
	}
	if screen.onWay > 0 {
		t.Error("a frame was drawn while one was on the way")
	}
}

// However it is written, what was written first comes first: also by the ways in which
// the library writes what leaves the screen.
func TestWireKeepsTheOrder(t *testing.T) {
	line := openSlowLine(t, 80, 24, 200_000)
	out, wire := newWire(line.device, func() {})
	frame := strings.Repeat("frame ", 4000)
	for range 3 {
		if _, err := out.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, "\x1b[2J\x1b[Hafter"); err != nil {
			t.Fatal(err)
		}
	}
	wire.drain()
	if !wire.free() {
		t.Error("something is on the way after all was sent")
	}
	line.shows(t, "after", 10*time.Second)
	if text := line.text(); strings.Contains(text, "frame") {
		t.Errorf("the frame came last:\n%s", text)
	}
}

func (l *slowLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.String()
}
