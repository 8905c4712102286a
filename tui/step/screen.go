// Package step is the stepper: a screen that goes through what an agent did,
// whatever harness recorded it. It hides how steps are laid out, coloured and
// folded, what is read beside the screen and when, and how two seats are kept on
// one clock.
//
// Guarantees: stepping works before a record is read to its end and never waits
// for reading, judging or colouring; what is shown of a step is bounded, and the
// rest can be opened; private reasoning is shown only when it was asked for,
// encrypted content never; text of the record reaches the terminal only through
// engine/text or the emulator; nothing steals the choice or the scroll position
// when a record grows.
package step

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/transcript"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Screen is the stepper over one record, or over two on one clock. Make one with
// Open or OpenSeat.
type Screen struct {
	stop    context.CancelFunc
	ctx     context.Context
	ring    chan struct{}
	sides   []*side // one or two
	lead    int     // the side that the keys move; the other follows
	detail  bool    // the page has the keys, not the list
	private bool
	alone   bool // only the lead is shown
	clock   string
	seat    *view.Seat // of the heat that it was opened from; nil for none

	panel   panel
	chooser chooser
	hunt    *hunt   // runs
	last    *hunt   // that n and N repeat; nil when a search was later
	search  *search // runs
	words   string  // that are marked
	seekUp  bool    // the page is to be scrolled to them
	notice  string
	later   atomic.Value // string: a notice from beside
	areas   []area
	pageH   int // rows of the lead's page, as last drawn
	listH   int
}

// area is where a side was drawn last.
type area struct {
	side       int
	list, page canvas.Rect
}

// Click implements view.Clicker.
func (s *Screen) Click(_ view.Host, x, y int) tea.Cmd {
	for _, a := range s.areas {
		switch {
		case a.list.Contains(x, y):
			s.lead, s.detail = a.side, false
			t := s.track()
			if row := t.top + y - a.list.Y - 1; y > a.list.Y && y < a.list.Y+a.list.H-1-footRows(a.list) && row < len(t.rows) {
				s.move(func(t *track) { t.choose(row) })
			}
		case a.page.Contains(x, y):
			s.lead, s.detail = a.side, true
		}
	}
	return nil
}

// side is one seat's way in: its transcript, and on top of it the sub-agents that
// were entered.
type side struct {
	stack []*track
}

func (s *side) top() *track { return s.stack[len(s.stack)-1] }

var (
	_ view.Screen  = (*Screen)(nil)
	_ view.Clicker = (*Screen)(nil)
)

const (
	frameTime = 50 * time.Millisecond
	slowTime  = 250 * time.Millisecond
)

func newScreen() *Screen {
	ctx, stop := context.WithCancel(context.Background())
	return &Screen{ctx: ctx, stop: stop, ring: make(chan struct{}, 1)}
}

// wake asks for a frame; it never waits.
func (s *Screen) wake() {
	select {
	case s.ring <- struct{}{}:
	default:
	}
}

// track is the one that the keys move.
func (s *Screen) track() *track { return s.sides[s.lead].top() }

// Start implements view.Screen.
func (s *Screen) Start(view.Host) tea.Cmd { return nil }

// Feed implements view.Screen.
func (s *Screen) Feed() <-chan struct{} { return s.ring }

// Close implements view.Screen.
func (s *Screen) Close() {
	s.stop()
	for _, d := range s.sides {
		for i := len(d.stack) - 1; i >= 0; i-- {
			if t := d.stack[i]; t.owned {
				t.close() //nolint:errcheck // it was only read
			}
		}
	}
	close(s.ring)
}

// Crumbs implements view.Screen.
func (s *Screen) Crumbs() []string {
	var out []string
	if s.seat == nil {
		out = append(out, "step")
	}
	for _, t := range s.sides[s.lead].stack {
		out = append(out, t.name)
	}
	return out
}

// Status implements view.Screen.
func (s *Screen) Status(c canvas.Canvas) {
	t := s.track()
	x, at := 0, "milestone"
	if h, ok := t.chosen(); ok {
		at = fmt.Sprintf("#%d", h.Index)
	}
	if len(t.rows) > 0 {
		x = c.Put(x, 0, at, canvas.Fg(canvas.Title).With(canvas.Bold)) + 1
	}
	x = c.Put(x, 0, "of "+view.Plural(len(t.rows)-len(t.over), "step"), canvas.Fg(canvas.Dim)) + 2
	if !t.tr.Complete() {
		r := t.tr.Integrity()
		x = c.Put(x, 0, fmt.Sprintf("reading %d %%", 100*r.Bytes/max(1, r.Size)), canvas.Fg(canvas.Accent)) + 2
	} else if n, all := t.passed(); !all {
		x = c.Put(x, 0, fmt.Sprintf("judging %d %%", 100*n/max(1, t.tr.Len())), canvas.Fg(canvas.Dim)) + 2
	}
	switch {
	case s.search != nil:
		c.Put(x, 0, s.search.progress(), canvas.Fg(canvas.Accent))
	case s.hunt != nil:
		c.Put(x, 0, s.hunt.progress(), canvas.Fg(canvas.Accent))
	case s.notice != "":
		c.Put(x, 0, s.notice, canvas.Fg(canvas.Warn))
	case t.pinned:
		c.Put(x, 0, "following", canvas.Fg(canvas.Ok))
	}
}

// Hints implements view.Screen.
func (s *Screen) Hints() []keymap.Action {
	if s.panel != noPanel {
		return []keymap.Action{keymap.Down, keymap.Up, keymap.Open, keymap.Back}
	}
	out := []keymap.Action{keymap.Down, keymap.Up, keymap.NextPane, keymap.Open, keymap.MutationNext, keymap.ErrorNext, keymap.MarkBack, keymap.MarkNext}
	if len(s.sides) > 1 {
		out = append(out, keymap.Seat)
	}
	return append(out, keymap.Find, keymap.Filter, keymap.Integrity, keymap.Totals, keymap.Reasoning, keymap.Copy, keymap.Editor, keymap.LifecycleNext,
		keymap.ValidationNext, keymap.AnomalyNext, keymap.Back)
}

// Advance implements view.Screen.
func (s *Screen) Advance(time.Time) time.Duration {
	wait := time.Duration(0)
	sooner := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	for _, d := range s.sides {
		t := d.top()
		if s.seat != nil {
			t.heatNews(s.seat.Recording)
		}
		if t.build() {
			sooner(frameTime)
		}
		if _, all := t.passed(); !all || !t.tr.Complete() {
			sooner(slowTime)
		}
		if f := t.faulted(); f != "" {
			s.notice = f
		}
	}
	if n, ok := s.later.Swap("").(string); ok && n != "" {
		s.notice = n
	}
	if s.hunt != nil {
		if row, found, done := s.hunt.advance(); found {
			s.move(func(t *track) { t.choose(row) })
			s.hunt = nil
		} else if done {
			s.notice = "no further " + s.hunt.what
			s.hunt = nil
		} else {
			sooner(frameTime)
		}
	}
	if q := s.search; q != nil {
		if q.done.Load() {
			s.search = nil
			if i := int(q.found.Load()); i >= 0 {
				s.move(func(t *track) { t.goTo(i) })
				s.seekUp = true
				if q.wrapped.Load() {
					s.notice = map[bool]string{true: "from the start again", false: "from the end again"}[q.dir > 0]
				}
			} else if s.words != "" {
				s.notice = "no step has " + q.words
			}
		} else {
			sooner(slowTime)
		}
	}
	s.follow()
	return wait
}

// move changes the lead's choice; what was about the old one is let go.
func (s *Screen) move(f func(t *track)) {
	f(s.track())
	s.seekUp = false
	s.follow()
}

// follow brings the other side to the lead's time.
func (s *Screen) follow() {
	if len(s.sides) < 2 || s.clock == "" {
		return
	}
	ms, ok := s.track().when(s.track().sel)
	if !ok {
		return
	}
	if other := s.sides[1-s.lead].top(); len(other.rows) > 0 && other.timed() {
		if i := other.at(ms); i != other.sel {
			other.choose(i)
		}
	}
}

// Key implements view.Screen.
func (s *Screen) Key(h view.Host, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	s.notice = ""
	if s.panel != noPanel && s.panelKey(h, a) {
		return nil
	}
	t := s.track()
	if by := s.stride(a); by != 0 {
		if s.detail {
			t.up = max(0, t.up+by)
		} else {
			s.move(func(t *track) { t.choose(t.sel + by) })
		}
		return nil
	}
	switch a {
	case keymap.EventNext:
		s.move(func(t *track) { t.choose(t.sel + 1) })
	case keymap.EventBack:
		s.move(func(t *track) { t.choose(t.sel - 1) })
	case keymap.Start:
		s.move(func(t *track) { t.choose(0) })
	case keymap.End:
		s.move(func(t *track) { t.choose(len(t.rows) - 1); t.pinned = true })
	case keymap.NextPane, keymap.PrevPane, keymap.Left, keymap.Right, keymap.Back5, keymap.Next5:
		s.nextPane(a)
	case keymap.Seat:
		return s.chooseSeat(h, raw)
	case keymap.ZoomIn:
		s.alone = true
	case keymap.ZoomOut:
		s.alone = false
	case keymap.Open:
		return s.enter(h)
	case keymap.Find:
		h.Ask("/", nil, func(_ view.Host, words string) tea.Cmd { return s.find(words) })
	case keymap.FindNext:
		return s.again(h, 1)
	case keymap.FindPrev:
		return s.again(h, -1)
	case keymap.Command:
		h.Ask(":", nil, s.goTo)
	case keymap.Copy:
		return s.copyStep(h)
	case keymap.Editor:
		return s.edit(h)
	case keymap.Reasoning:
		s.private = !s.private
		h.Say(map[bool]string{true: "private reasoning is shown", false: "private reasoning is hidden"}[s.private])
	case keymap.Filter:
		s.openPanel(filterPanel)
	case keymap.Integrity:
		s.openPanel(integrityPanel)
	case keymap.Totals:
		s.openPanel(totalsPanel)
	case keymap.HeatHere:
		s.heatHere(h)
	default:
		if q, ok := quests[a]; ok {
			s.last = &q
			s.start(h, q)
		}
	}
	return nil
}

// stride is how far a key of movement goes.
func (s *Screen) stride(a keymap.Action) int {
	page := max(1, s.listH-1)
	if s.detail {
		page = max(1, s.pageH-1)
	}
	return a.Stride(max(1, page/2), page)
}

// nextPane goes round list and page, of two sides one after the other.
func (s *Screen) nextPane(a keymap.Action) {
	switch a {
	case keymap.Left, keymap.Back5:
		s.detail = false
		return
	case keymap.Right, keymap.Next5:
		s.detail = true
		return
	}
	if s.detail == (a == keymap.NextPane) && len(s.sides) > 1 && !s.alone {
		s.lead = 1 - s.lead
	}
	s.detail = !s.detail
}

// start begins to look for the next step of a sort.
func (s *Screen) start(h view.Host, q hunt) {
	s.stopLooking()
	q.track = s.track()
	q.at = q.track.sel
	if row, found, done := q.advance(); found {
		s.move(func(t *track) { t.choose(row) })
	} else if done {
		h.Say("no further " + q.what)
	} else {
		s.hunt = &q
	}
}

func (s *Screen) stopLooking() {
	s.hunt = nil
	if s.search != nil {
		s.search.stop()
		s.search = nil
	}
}

// chosenHead is the lead's step; it says so when there is none.
func (s *Screen) chosenHead(h view.Host) (transcript.Head, bool) {
	t := s.track()
	head, ok := t.chosen()
	switch {
	case t.onMark():
		h.Say("this is a milestone: enter goes to the step before it")
	case !ok:
		h.Say("no step is listed")
	}
	return head, ok
}

// Back implements view.Screen.
func (s *Screen) Back() bool {
	s.notice = ""
	switch d := s.sides[s.lead]; {
	case s.panel != noPanel:
		s.panel = noPanel
	case s.hunt != nil || s.search != nil:
		s.stopLooking()
	case s.track().open:
		s.track().open = false
	case len(d.stack) > 1:
		t := d.top()
		d.stack = d.stack[:len(d.stack)-1]
		if t.owned {
			t.close() //nolint:errcheck // it was only read
		}
	case s.detail:
		s.detail = false
	default:
		return false
	}
	return true
}

func (t *track) faulted() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}
