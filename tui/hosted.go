package tui

import (
	"context"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Show shows one screen that is made elsewhere until it is left.
func Show(ctx context.Context, cfg Config, s view.Screen, in io.Reader, out io.Writer) (Choice, error) {
	return run(ctx, cfg, &hosted{Screen: s}, in, out)
}

// hosted is a screen that is made elsewhere, over a heat or alone.
type hosted struct {
	view.Screen
	over *heat // nil when alone
}

func (s *hosted) crumbs() []string {
	if s.over != nil {
		return append(s.over.crumbs(), s.Crumbs()...)
	}
	return s.Crumbs()
}

func (s *hosted) status(c canvas.Canvas) { s.Status(c) }
func (s *hosted) draw(c canvas.Canvas)   { s.Draw(c) }
func (s *hosted) hints() []keymap.Action { return s.Hints() }
func (s *hosted) feed() <-chan struct{}  { return s.Feed() }
func (s *hosted) back() bool             { return s.Back() }
func (s *hosted) close()                 { s.Close() }
func (s *hosted) begin(m *model) tea.Cmd { return s.Start(host{m}) }

// advance brings the heat below along, so that it is where its clock is when the
// screen over it is left.
func (s *hosted) advance(now time.Time) time.Duration {
	wait := s.Advance(now)
	if s.over == nil {
		return wait
	}
	if below := s.over.advance(now); wait == 0 || below != 0 && below < wait {
		return below
	}
	return wait
}

func (s *hosted) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	return s.Key(host{m}, a, raw)
}

func (s *hosted) click(m *model, x, y int) tea.Cmd {
	if c, ok := s.Screen.(view.Clicker); ok {
		return c.Click(host{m}, x, y)
	}
	return nil
}

// host is the program as a screen made elsewhere sees it.
type host struct{ m *model }

func (h host) Now() time.Time        { return h.m.cfg.Clock() }
func (h host) Size() (int, int)      { return h.m.w, max(0, h.m.h-2) }
func (h host) Say(s string)          { h.m.say(s) }
func (h host) Copy(s string) tea.Cmd { return h.m.copyText(s) }
func (h host) Pop()                  { h.m.pop() }

func (h host) Push(s view.Screen) tea.Cmd {
	next := &hosted{Screen: s}
	if top, ok := h.m.top().(*hosted); ok {
		next.over = top.over
	}
	return h.m.push(next)
}

// Heat shows a recording over the screen, which then belongs to the program.
func (h host) Heat(rec *recording.Recording) tea.Cmd {
	return h.m.push(&overview{heat: openHeat(h.m.ctx, rec, Desk{}, h.m.cfg.Clock())})
}

// Race asks, and then ends the program, to be started again when the heat is over.
func (h host) Race(r view.Race) tea.Cmd {
	h.m.askToRace(r.Starts, func(m *model) tea.Cmd {
		m.choice.Race = &r
		return tea.Quit
	})
	return nil
}

func (h host) Ask(label string, typed func(string), done func(view.Host, string) tea.Cmd) {
	h.m.ask(label, typed, func(m *model, value string) tea.Cmd { return done(host{m}, value) })
}

func (h host) Beside(work func(context.Context) (func(view.Host) tea.Cmd, error)) tea.Cmd {
	ctx := h.m.ctx
	return safe(func() tea.Msg {
		then, err := work(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return doneMsg{err: err, then: func(m *model) tea.Cmd {
			if then == nil {
				return nil
			}
			return then(host{m})
		}}
	})
}

// transcript opens the steps of a seat's agent, by the program's stepper.
func (h *heat) transcript(m *model, seat *world.Seat) tea.Cmd {
	if seat == nil || m.cfg.Transcript == nil {
		m.say("there is no transcript to step through here")
		return nil
	}
	s, err := m.cfg.Transcript(view.Seat{
		Recording: h.rec, Territory: seat.ID,
		Now: func() uint64 { return h.now },
		Seek: func(ms uint64) {
			now := m.cfg.Clock()
			head := h.head(now)
			h.play = h.play.Pause(now, head).Seek(now, head, ms)
			h.advance(now)
		},
	})
	if err != nil {
		return func() tea.Msg { return doneMsg{err: err} }
	}
	return m.push(&hosted{Screen: s, over: h})
}
