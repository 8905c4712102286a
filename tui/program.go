// Package tui is the product's screen: the lobby, a heat live or replayed, a
// seat, the evidence behind a milestone. It is one Bubble Tea model over
// recordings; it starts no machine, and what a person does to a running heat
// goes through control.Desk.
//
// Guarantees: everything shown is a fold of a recording at the playhead; no
// frame is drawn when nothing changed, and at most 30 a second when something
// did; nothing steals the cursor or the scroll position when data arrives; the
// terminal is restored however the program ends.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aymanbagabas/go-osc52/v2"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// Config is what the program needs of its surroundings.
type Config struct {
	Keys   keymap.Map
	Output canvas.Output
	Clock  func() time.Time // nil for time.Now
	// Log takes what would otherwise be lost under the alternate screen; nil
	// discards.
	Log io.Writer
}

// Desk is what a person may do to the heat that is shown; the zero Desk is
// nothing but looking.
type Desk struct {
	control.Desk
	Author string
	// Owned: the heat runs in this process, so leaving may end it.
	Owned bool
}

// Watch shows one heat until it is left.
func Watch(ctx context.Context, cfg Config, rec *recording.Recording, d Desk, in io.Reader, out io.Writer) (Choice, error) {
	now := time.Now
	if cfg.Clock != nil {
		now = cfg.Clock
	}
	return run(ctx, cfg, &overview{heat: openHeat(ctx, rec, d, now())}, in, out)
}

// Choice is why the program ended.
type Choice struct {
	// Run is the arena that the lobby was asked to race; "" for none.
	Run string
	// EndHeat: the person who left wants the live heat ended, not left to run.
	EndHeat bool
	// Interrupted: Ctrl-C was pressed twice.
	Interrupted bool
}

const (
	frameTime = 33 * time.Millisecond // at most 30 frames a second
	slowFrame = 100 * time.Millisecond
	minWidth  = 40
	minHeight = 12
)

// screen is one full-size view. The model calls everything from one goroutine.
type screen interface {
	crumbs() []string
	// status is the middle of the header.
	status(c canvas.Canvas)
	draw(c canvas.Canvas)
	// key handles an action; raw is the key itself, for screens that take text.
	key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd
	hints() []keymap.Action
	// advance brings the screen to now and says how soon it wants to be advanced
	// again; zero when nothing moves by itself.
	advance(now time.Time) time.Duration
}

// closer is a screen that holds something.
type closer interface{ close() }

// rawKeys is a screen that wants keys as they are, for a guest's console.
type rawKeys interface{ wantsRaw() bool }

type model struct {
	ctx     context.Context
	cfg     Config
	w, h    int
	screens []screen
	help    *helpScreen
	prompt  *prompt
	dialog  *dialog
	notice  string
	noticeT time.Time
	choice  Choice
	mouse   bool
	out     io.Writer // what the program draws on

	grid    canvas.Canvas
	frame   string
	dirty   bool
	ticking bool
	feeds   int
}

// prompt is the line at the bottom that takes text.
type prompt struct {
	label string
	input textinput.Model
	done  func(m *model, value string) tea.Cmd
	typed func(value string) // called with every change; may be nil
}

// dialog asks one question.
type dialog struct {
	title   string
	lines   []string
	answers []answer
}

type answer struct {
	key, word string
	do        func(m *model) tea.Cmd
}

type (
	tickMsg time.Time
	// feedMsg: a recording grew.
	feedMsg struct{ from <-chan struct{} }
	// doneMsg carries the end of something that ran beside the screen.
	doneMsg struct {
		notice string
		err    error
		then   func(m *model) tea.Cmd
	}
)

// newModel starts with the given screen.
func newModel(ctx context.Context, cfg Config, first screen) *model {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &model{ctx: ctx, cfg: cfg, screens: []screen{first}, dirty: true}
}

// run drives the program until it is left or ctx ends. The terminal is restored
// also after a panic, which becomes an error.
func run(ctx context.Context, cfg Config, first screen, in io.Reader, out io.Writer) (choice Choice, err error) {
	m := newModel(ctx, cfg, first)
	m.out = syncOutput(out)
	defer func() {
		for _, s := range m.screens {
			if c, ok := s.(closer); ok {
				c.close()
			}
		}
	}()
	opts := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithAltScreen(), tea.WithInput(in), tea.WithOutput(m.out),
		tea.WithFPS(60), tea.WithoutSignalHandler(),
	}
	p := tea.NewProgram(m, opts...)
	_, err = p.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = ctx.Err()
	}
	return m.choice, err
}

func (m *model) Init() tea.Cmd {
	var load tea.Cmd
	if l, ok := m.top().(*lobby); ok {
		load = l.load()
	}
	return tea.Batch(tea.SetWindowTitle("refbox"), load, m.watch(), m.tick())
}

// top is the screen that is shown.
func (m *model) top() screen { return m.screens[len(m.screens)-1] }

func (m *model) push(s screen) tea.Cmd {
	m.screens = append(m.screens, s)
	m.dirty = true
	return tea.Batch(m.watch(), m.tick())
}

// pop goes back one screen; the first stays.
func (m *model) pop() {
	if len(m.screens) == 1 {
		return
	}
	if c, ok := m.top().(closer); ok {
		c.close()
	}
	m.screens = m.screens[:len(m.screens)-1]
	m.dirty = true
}

// feeder is a screen whose recording grows.
type feeder interface{ feed() <-chan struct{} }

// watch waits for the top screen's recording to grow. Each feed has one waiter.
func (m *model) watch() tea.Cmd {
	f, ok := m.top().(feeder)
	if !ok {
		return nil
	}
	ch := f.feed()
	if ch == nil {
		return nil
	}
	return waitFeed(m.ctx, ch)
}

func waitFeed(ctx context.Context, ch <-chan struct{}) tea.Cmd {
	return safe(func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-ch:
			if !open {
				return nil
			}
			return feedMsg{ch}
		}
	})
}

// safe turns a panic in a command into a message, so that the terminal is
// restored and the user reads a sentence.
func safe(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = panicMsg{fmt.Errorf("internal fault: %v\n%s", r, debug.Stack())}
			}
		}()
		return f()
	}
}

type panicMsg struct{ err error }

// tick schedules the next frame; one at a time.
func (m *model) tick() tea.Cmd {
	if m.ticking {
		return nil
	}
	wait := m.top().advance(m.cfg.Clock())
	if wait == 0 {
		return nil
	}
	m.ticking = true
	return tea.Tick(max(wait, frameTime), func(t time.Time) tea.Msg { return tickMsg(t) })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width == m.w && msg.Height == m.h {
			return m, nil
		}
		m.w, m.h = msg.Width, msg.Height
		m.grid = canvas.New(m.w, m.h)
		m.dirty = true
		return m, m.tick()
	case tickMsg:
		m.ticking, m.dirty = false, true
		return m, m.tick()
	case feedMsg:
		// The data is read with the next frame; until then further growth is
		// only remembered by the channel.
		m.dirty = true
		m.feeds++
		again := tea.Tick(frameTime, func(time.Time) tea.Msg { return refeedMsg{msg.from} })
		return m, tea.Batch(m.tick(), again)
	case refeedMsg:
		return m, waitFeed(m.ctx, msg.from)
	case doneMsg:
		return m, m.done(msg)
	case panicMsg:
		panic(msg.err)
	case tea.ResumeMsg:
		m.dirty = true
		return m, m.tick()
	case tea.KeyMsg:
		m.dirty = true
		cmd := m.onKey(msg)
		return m, tea.Batch(cmd, m.tick())
	case tea.MouseMsg:
		m.dirty = true
		return m, tea.Batch(m.onMouse(msg), m.tick())
	}
	return m, nil
}

type refeedMsg struct{ from <-chan struct{} }

func (m *model) done(msg doneMsg) tea.Cmd {
	m.dirty = true
	switch {
	case msg.err != nil:
		m.say(text.Line(msg.err.Error()))
	case msg.notice != "":
		m.say(msg.notice)
	}
	if msg.then != nil {
		return msg.then(m)
	}
	return m.tick()
}

// say shows a sentence in the footer until the next key.
func (m *model) say(s string) { m.notice, m.noticeT = s, m.cfg.Clock() }

// maxCopy is what terminals take of a copy; more is cut.
const maxCopy = 64 << 10

// copyText puts s into the clipboard of the terminal, also over SSH and through
// tmux. Only text of the program's own, or sanitised text, may come here.
func (m *model) copyText(s string) tea.Cmd {
	if s == "" || m.out == nil {
		return nil
	}
	seq := osc52.New(s[:min(len(s), maxCopy)])
	if os.Getenv("TMUX") != "" {
		seq = seq.Tmux()
	}
	out := m.out
	m.say(fmt.Sprintf("copied %d bytes", min(len(s), maxCopy)))
	return safe(func() tea.Msg {
		if _, err := seq.WriteTo(out); err != nil {
			return doneMsg{err: fmt.Errorf("copy: %w", err)}
		}
		return nil
	})
}

// tooSmall says whether the terminal has room for any screen.
func (m *model) tooSmall() bool { return m.w < minWidth || m.h < minHeight }

func (m *model) onKey(k tea.KeyMsg) tea.Cmd {
	a := m.cfg.Keys.Action(k.String())
	if r, ok := m.top().(rawKeys); ok && r.wantsRaw() && !m.tooSmall() {
		return m.top().key(m, a, k)
	}
	m.notice = ""
	if m.tooSmall() && a != keymap.Leave && a != keymap.Suspend {
		return nil // what cannot be seen must not act
	}
	switch {
	case m.dialog != nil:
		return m.answer(k)
	case m.prompt != nil:
		return m.promptKey(k)
	case m.help != nil:
		if !m.help.key(a) {
			m.help = nil
		}
		return nil
	}
	switch a {
	case keymap.Help:
		m.help = &helpScreen{keys: m.cfg.Keys, in: m.top()}
		return nil
	case keymap.Theme:
		m.nextTheme()
		return nil
	case keymap.Mouse:
		m.mouse = !m.mouse
		if m.mouse {
			m.say("mouse on: m turns it off, so that the terminal selects text again")
			return tea.EnableMouseCellMotion
		}
		m.say("mouse off")
		return tea.DisableMouse
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Suspend:
		return tea.Suspend
	case keymap.Back:
		if len(m.screens) > 1 {
			if cmd := m.top().key(m, a, k); cmd != nil {
				return cmd
			}
			m.pop()
			return nil
		}
	case keymap.Leave:
		return m.leave()
	}
	return m.top().key(m, a, k)
}

// leaver is a screen that has something to ask before it is left.
type leaver interface{ leave(m *model) (asked bool) }

func (m *model) leave() tea.Cmd {
	for i := len(m.screens) - 1; i >= 0; i-- {
		if l, ok := m.screens[i].(leaver); ok && l.leave(m) {
			return nil
		}
	}
	return tea.Quit
}

func (m *model) answer(k tea.KeyMsg) tea.Cmd {
	d := m.dialog
	for _, a := range d.answers {
		if k.String() == a.key {
			m.dialog = nil
			if a.do == nil {
				return nil
			}
			return a.do(m)
		}
	}
	if k.String() == "ctrl+c" { // a second time: no more questions
		m.choice = Choice{EndHeat: true, Interrupted: true}
		return tea.Quit
	}
	return nil
}

// ask opens the prompt line.
func (m *model) ask(label string, typed func(string), done func(m *model, value string) tea.Cmd) {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 500
	in.Focus()
	m.prompt = &prompt{label: label, input: in, done: done, typed: typed}
}

func (m *model) promptKey(k tea.KeyMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc", "ctrl+c", "ctrl+g":
		m.prompt = nil
		if p.typed != nil {
			p.typed("")
		}
		return nil
	case "enter":
		m.prompt = nil
		return p.done(m, text.Line(p.input.Value()))
	}
	// The library's blinking cursor is not used: nothing may tick while nothing moves.
	p.input, _ = p.input.Update(k)
	if p.typed != nil {
		p.typed(text.Line(p.input.Value()))
	}
	return nil
}

func (m *model) nextTheme() {
	if m.cfg.Output.Theme.Name() == canvas.Dark().Name() {
		m.cfg.Output.Theme = canvas.Light()
	} else {
		m.cfg.Output.Theme = canvas.Dark()
	}
	m.say("theme: " + m.cfg.Output.Theme.Name())
}

// pointed is a screen that the mouse can act on; x and y are of its body.
type pointed interface {
	click(m *model, x, y int) tea.Cmd
}

func (m *model) onMouse(e tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.dialog != nil || m.prompt != nil || m.help != nil {
		return nil
	}
	switch {
	case e.Button == tea.MouseButtonWheelDown && e.Action == tea.MouseActionPress:
		return m.top().key(m, keymap.Down, tea.KeyMsg{})
	case e.Button == tea.MouseButtonWheelUp && e.Action == tea.MouseActionPress:
		return m.top().key(m, keymap.Up, tea.KeyMsg{})
	case e.Button == tea.MouseButtonLeft && e.Action == tea.MouseActionPress:
		if p, ok := m.top().(pointed); ok {
			return p.click(m, e.X, e.Y-1)
		}
	}
	return nil
}

// View returns the frame, drawn anew only when something changed.
func (m *model) View() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	if m.dirty {
		m.dirty = false
		m.draw()
		m.frame = m.grid.Flatten(m.cfg.Output)
	}
	return m.frame
}

// syncFile makes the terminal show each frame at once (DEC mode 2026), so that
// a frame that takes several writes of the terminal never tears. Terminals that
// do not know the mode ignore it.
type syncFile struct {
	*os.File
	mu *sync.Mutex // frames and what is copied are not interleaved
}

func syncOutput(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("REFBOX_NO_SYNC") != "" {
		return w
	}
	return syncFile{f, new(sync.Mutex)}
}

func (s syncFile) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	buf := make([]byte, 0, len(p)+16)
	buf = append(buf, "\x1b[?2026h"...)
	buf = append(buf, p...)
	buf = append(buf, "\x1b[?2026l"...)
	if _, err := s.File.Write(buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
