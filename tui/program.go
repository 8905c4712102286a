// Package tui is the product's screen: the lobby, a heat live or replayed, a
// seat, the evidence behind a milestone. It is one Bubble Tea model over
// recordings; it starts no machine, and what a person does to a running heat
// goes through control.Desk.
//
// Guarantees: everything shown is a fold of a recording at the playhead; no
// frame is drawn when nothing changed, and at most 20 a second when something
// did; nothing steals the cursor or the scroll position when data arrives; the
// terminal is restored however the program ends.
package tui

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/branch"
	"refbox/engine/control"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Config is what the program needs of its surroundings.
type Config struct {
	Keys   keymap.Map
	Output canvas.Output
	Themes []canvas.Theme   // what the theme key goes through; nil for the bundled ones
	Mouse  bool             // on from the start
	Clock  func() time.Time // nil for time.Now
	// Sizes are the columns and rows of a terminal that is not this process's, each
	// time that they change; nil: they are the output's own.
	Sizes <-chan [2]int
	// Log takes the stack of an internal fault; nil discards it.
	Log io.Writer
	// Transcript makes the screen that steps through what a seat's agent did; an
	// error says why there is nothing to step through. Nil: the program has none.
	Transcript func(view.Seat) (view.Screen, error)
	// Branch finds where a seat may be raced on from, of the first n events of a
	// recording; an error says why it cannot. Nil: the program has none.
	Branch func(rec *recording.Recording, seat string, n int) (branch.Point, error)
}

// Desk is what a person may do to the heat that is shown; the zero Desk is
// nothing but looking.
type Desk struct {
	control.Desk
	Author string
	// Owned: the heat runs in this process, so leaving may end it.
	Owned bool
	// Plays is the territory that this person plays, "" for none: its screen is the
	// first that is shown.
	Plays string
	Later func(context.Context) string // waits for what is to be said once the heat has ended; nil for nothing
}

// Watch shows one heat until it is left.
func Watch(ctx context.Context, cfg Config, rec *recording.Recording, d Desk, in io.Reader, out io.Writer) (Choice, error) {
	now := time.Now
	if cfg.Clock != nil {
		now = cfg.Clock
	}
	h := openHeat(ctx, rec, d, now())
	if d.Plays != "" {
		return run(ctx, cfg, &overview{heat: h}, in, out, newSit(h, d.Plays))
	}
	return run(ctx, cfg, &overview{heat: h}, in, out)
}

// Race shows one heat, and behind it another on the same clock: ghost lanes, with
// the split of each milestone. Against was read to its end, and stays the caller's.
func Race(ctx context.Context, cfg Config, rec, against *recording.Recording, in io.Reader, out io.Writer) (Choice, error) {
	now := time.Now
	if cfg.Clock != nil {
		now = cfg.Clock
	}
	h := openHeat(ctx, rec, Desk{}, now())
	h.ghost = newGhost(against)
	return run(ctx, cfg, &overview{heat: h}, in, out)
}

// Choice is why the program ended.
type Choice struct {
	// Run is the arena that the lobby was asked to race; "" for none. With Sit the
	// person takes a seat of it.
	Run string
	Sit bool
	// Race is the heat that a register's screen asks for; nil for none.
	Race *view.Race
	// Branch is the heat that a replay was asked to race on from; nil for none.
	Branch *Branch
	// EndHeat: the person who left wants the live heat ended, not left to run.
	EndHeat bool
	// Interrupted: Ctrl-C was pressed twice.
	Interrupted bool
}

const (
	// The library's renderer wakes that often even when nothing changed, and
	// copies the frame each time; this many keeps a paused screen of 200×60 below
	// half a per cent of a core.
	frameRate = 20
	frameTime = time.Second / frameRate
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

// closer is a screen that owns something, which ends with it. Of the screens of
// one heat only the overview does.
type closer interface{ close() }

// backer is a screen that may take a step back within itself.
type backer interface{ back() (taken bool) }

// rawKeys is a screen that wants keys as they are, for a guest's console. Its bar
// stands in the footer meanwhile, and says how to get in and how to get out.
type rawKeys interface {
	wantsRaw() bool
	bar(keys keymap.Map, c canvas.Canvas)
}

type model struct {
	ctx     context.Context
	cfg     Config
	w, h    int
	screens []screen
	help    *helpScreen
	prompt  *prompt
	dialog  *dialog
	notice  string
	saidAt  time.Time
	saidFor func() bool // whether the notice still holds; nil for yes
	choice  Choice
	mouse   bool
	out     io.Writer // what the program draws on
	wire    *wire     // the same, when it is a terminal

	grid   canvas.Canvas
	frame  string
	dirty  bool
	frames int // drawn so far

	ticking time.Duration // what the pending tick waits for; zero for none
	ticks   int           // number of the latest tick; earlier ones don't count
	watched map[<-chan struct{}]bool
}

type (
	tickMsg struct{ number int }
	// feedMsg: a recording grew. refeedMsg: the next growth may be told of.
	feedMsg   struct{ from <-chan struct{} }
	refeedMsg struct{ from <-chan struct{} }
	// freeMsg: the terminal has taken the last frame, and another is due.
	freeMsg struct{}
	// endMsg: the context has ended.
	endMsg struct{}
	// feedEndMsg: a recording is no longer followed.
	feedEndMsg struct{ from <-chan struct{} }
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
	return &model{ctx: ctx, cfg: cfg, screens: []screen{first}, dirty: true, watched: map[<-chan struct{}]bool{}}
}

// run drives the program until it is left or ctx ends. What is over the first
// screen is shown first. The terminal is restored
// also after a panic, which becomes an error.
func run(ctx context.Context, cfg Config, first screen, in io.Reader, out io.Writer, over ...screen) (choice Choice, err error) {
	// What runs beside the screen ends with it.
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	m := newModel(ctx, cfg, first)
	m.screens = append(m.screens, over...)
	var p *tea.Program
	m.out, m.wire = newWire(out, func() { p.Send(freeMsg{}) })
	defer m.wire.drain()
	defer func() {
		stop()
		for _, s := range m.screens {
			if c, ok := s.(closer); ok {
				c.close()
			}
		}
	}()
	options := []tea.ProgramOption{
		// Not WithContext: the library's way out on a context closes its input
		// under the goroutine that reads it. The model quits on ctx by itself.
		tea.WithAltScreen(), tea.WithInput(in), tea.WithOutput(m.out),
		// Panics of commands come as messages; the ones of Update and View are
		// caught below. The library would print them as they are.
		tea.WithFPS(frameRate), tea.WithoutSignalHandler(), tea.WithoutCatchPanics(),
	}
	if m.mouse = cfg.Mouse; m.mouse {
		options = append(options, tea.WithMouseCellMotion())
	}
	p = tea.NewProgram(m, options...)
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fault(r, cfg.Log), p.ReleaseTerminal())
		}
	}()
	if _, err = p.Run(); err == nil {
		err = outer.Err()
	}
	return m.choice, err
}

func (m *model) Init() tea.Cmd {
	var load tea.Cmd
	if l, ok := m.top().(*lobby); ok {
		load = l.load()
	}
	end := safe(func() tea.Msg { <-m.ctx.Done(); return endMsg{} })
	return tea.Batch(tea.SetWindowTitle("refbox"), load, end, m.begin(), m.watch(), m.tick(), m.later(), resized(m.ctx, m.cfg.Sizes))
}

// top is the screen that is shown.
func (m *model) top() screen { return m.screens[len(m.screens)-1] }

func (m *model) push(s screen) tea.Cmd {
	m.screens = append(m.screens, s)
	m.dirty = true
	return tea.Batch(m.begin(), m.watch(), m.tick())
}

// begin lets the top screen have read what it wants to.
func (m *model) begin() tea.Cmd {
	switch s := m.top().(type) {
	case starter:
		return s.start()
	case *hosted:
		return s.begin(m)
	}
	return nil
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

// shows says whether a heat is still among the screens.
func (m *model) shows(h *heat) bool {
	return slices.ContainsFunc(m.screens, func(s screen) bool {
		o, ok := s.(*overview)
		return ok && o.heat == h
	})
}

// tick brings the screen to now and schedules the next frame; at most one is
// pending, or two for the moment in which a slow one is overtaken.
func (m *model) tick() tea.Cmd {
	wait := m.top().advance(m.cfg.Clock())
	m.unsay()
	if m.notice != "" {
		if left := noticeTime - m.cfg.Clock().Sub(m.saidAt); wait == 0 || left < wait {
			wait = left
		}
	}
	if wait == 0 {
		return nil
	}
	wait = max(wait, frameTime)
	if m.ticking != 0 && m.ticking <= wait {
		return nil
	}
	m.ticking = wait
	m.ticks++
	n := m.ticks
	return tea.Tick(wait, func(time.Time) tea.Msg { return tickMsg{n} })
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
		if msg.number != m.ticks {
			return m, nil // overtaken
		}
		m.ticking, m.dirty = 0, true
		return m, m.tick()
	case feedMsg:
		again := tea.Tick(frameTime, func(time.Time) tea.Msg { return refeedMsg(msg) })
		if m.ticking == frameTime {
			return m, again // the next frame is due, and shows it
		}
		m.dirty = true
		return m, tea.Batch(m.tick(), again)
	case refeedMsg:
		return m, waitFeed(m.ctx, msg.from)
	case feedEndMsg:
		delete(m.watched, msg.from)
	case doneMsg:
		return m, tea.Batch(m.done(msg), m.tick())
	case endMsg:
		return m, tea.Quit
	case panicMsg:
		panic(msg.fault)
	case tea.ResumeMsg:
		m.dirty = true
		return m, m.tick()
	case tea.KeyMsg:
		m.dirty = true
		var cmds []tea.Cmd
		for _, k := range single(msg) {
			// The key is about what is true now, not at the last frame.
			m.top().advance(m.cfg.Clock())
			cmds = append(cmds, m.onKey(k))
		}
		return m, tea.Batch(append(cmds, m.tick())...)
	case tea.MouseMsg:
		if cmd, acted := m.onMouse(msg); acted {
			m.dirty = true
			return m, tea.Batch(cmd, m.tick())
		}
	}
	return m, nil
}

// single splits keys that came in one read: the library makes one message of
// them, as if they had been one key.
func single(k tea.KeyMsg) []tea.KeyMsg {
	if k.Type != tea.KeyRunes || k.Paste || len(k.Runes) < 2 {
		return []tea.KeyMsg{k}
	}
	keys := make([]tea.KeyMsg, len(k.Runes))
	for i := range k.Runes {
		keys[i] = tea.KeyMsg{Type: tea.KeyRunes, Runes: k.Runes[i : i+1], Alt: k.Alt && i == 0}
	}
	return keys
}

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
	return nil
}

// tooSmall says whether the terminal has room for any screen.
func (m *model) tooSmall() bool { return m.w < minWidth || m.h < minHeight }

func (m *model) onKey(k tea.KeyMsg) tea.Cmd {
	a := m.cfg.Keys.Action(k.String())
	if r, ok := m.top().(rawKeys); ok && r.wantsRaw() && !m.tooSmall() {
		return m.top().key(m, a, k)
	}
	m.notice = ""
	if m.tooSmall() && m.dialog == nil && a != keymap.Quit && a != keymap.Leave && a != keymap.Suspend {
		return nil // what cannot be seen must not act
	}
	switch {
	case m.dialog != nil:
		return m.answer(k)
	case m.tooSmall():
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
		m.help = &helpScreen{ascii: m.cfg.Output.ASCII, keys: m.cfg.Keys, in: m.top()}
		return nil
	case keymap.Theme:
		m.nextTheme()
		return nil
	case keymap.Mouse:
		m.mouse = !m.mouse
		if m.mouse {
			key, _ := m.cfg.Keys.Hint(keymap.Mouse)
			m.say("mouse on: " + key + " turns it off, so that the terminal selects text again")
			return tea.EnableMouseCellMotion
		}
		m.say("mouse off")
		return tea.DisableMouse
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Suspend:
		return tea.Suspend
	case keymap.Leave:
		if len(m.screens) == 1 || m.tooSmall() {
			return m.leave()
		}
		fallthrough
	case keymap.Back:
		if b, ok := m.top().(backer); !ok || !b.back() {
			m.pop()
		}
		return nil
	case keymap.Quit:
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

func (m *model) nextTheme() {
	themes := m.cfg.Themes
	if len(themes) == 0 {
		themes = canvas.Bundled()
	}
	at := slices.IndexFunc(themes, func(t canvas.Theme) bool { return t.Name() == m.cfg.Output.Theme.Name() })
	m.cfg.Output.Theme = themes[(at+1)%len(themes)]
	m.say("theme: " + m.cfg.Output.Theme.Name())
}

// seatKey is which seat a key of the seat action chooses, from 0.
func (m *model) seatKey(k tea.KeyMsg) int {
	return slices.Index(m.cfg.Keys.Binding(keymap.Seat).Keys, k.String())
}

// View returns the frame, drawn anew only when something changed and the terminal has
// taken the one before.
func (m *model) View() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	if m.dirty && m.wire.free() {
		m.dirty = false
		m.frames++
		m.draw()
		m.frame = m.grid.Flatten(m.cfg.Output)
	}
	return m.frame
}
