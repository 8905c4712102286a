// Package ledger is the screen of a failure model and its ledger: scenarios ×
// arenas with the state that follows for each, the evidence behind the chosen
// cell with the gates that it passed and those that refused it, what may be
// claimed of it, and what nobody may conclude.
//
// It guarantees: what is shown is what engine/ledger derives of the files as they
// were last understood, and the screen says so when they cannot be read since; the
// files are followed, and nothing moves the cursor while they change; states are
// told by shape and word; all text goes through engine/text.
package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/ledger"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Source is where a ledger comes from.
type Source struct {
	Name string // as the header shows it
	// Load reads the ledger anew, and what is in use today. It is called beside the
	// screen; the ledger's own files are followed.
	Load func() (*ledger.Ledger, ledger.Settings, error)
	// Open opens the heat that evidence is of.
	Open func(path string) (*recording.Recording, error)
}

// Screen is the ledger's screen.
type Screen struct {
	src Source
	f   *view.Follower[*reading]
	r   *reading

	grid     gridPane
	scenario textPane
	evidence textPane
	claim    textPane

	focus pane
	lower pane // the one below the grid where there is room for one beside the claim
	zoom  bool

	rects [paneCount]canvas.Rect // as last drawn, for the mouse
}

type pane uint8

const (
	grid pane = iota
	evidence
	claim
	scenario
	paneCount
)

// New reads a ledger. The error is Load's.
func New(src Source) (*Screen, error) {
	r, err := load(src)
	if err != nil {
		return nil, err
	}
	return &Screen{src: src, f: follow(src, r), r: r, lower: evidence}, nil
}

var _ view.Clicker = (*Screen)(nil)

// Crumbs are the ledger's name.
func (s *Screen) Crumbs() []string { return []string{"ledger", text.Line(s.src.Name)} }

// Status counts what is observed of what can be.
func (s *Screen) Status(c canvas.Canvas) {
	w, _ := c.Size()
	p := s.r.picture
	x := 0
	put := func(str string, st canvas.Style) {
		if x == 0 || x > 0 && x+text.Width(str) <= w { // whole, or not at all, nor what comes after
			x = c.PutFit(x, 0, w-x, str, st)
		} else {
			x = -1
		}
	}
	if ledger.Breaks(p.Findings) {
		put("✗ does not hold  ", alarm.With(canvas.Bold))
	}
	put(fmt.Sprintf("observed %d of %d injectable", p.Observed, p.Injectable), plain.With(canvas.Bold))
	put(fmt.Sprintf("  □ %d accepted", p.Accepted), dim)
	put(fmt.Sprintf("  → %d owned", p.Owned), dim)
	put(fmt.Sprintf("  of %d in all", len(p.Rows)), dim)
}

// Start begins to follow the files.
func (s *Screen) Start(view.Host) tea.Cmd {
	s.f.Start()
	return nil
}

// Feed tells that there is a newer reading.
func (s *Screen) Feed() <-chan struct{} { return s.f.Feed() }

// Advance takes the newest reading.
func (s *Screen) Advance(time.Time) time.Duration {
	r, err, ok := s.f.Take()
	switch {
	case !ok:
	case err != nil:
		kept := *s.r
		kept.trouble = text.Line("the last good one is shown: " + err.Error())
		s.r = &kept
	default:
		s.grid.keep(s.r, r)
		s.r = r
	}
	return 0
}

// Close ends the following.
func (s *Screen) Close() { s.f.Close() }

// Back closes what was opened over the panes.
func (s *Screen) Back() bool {
	switch {
	case s.zoom:
		s.zoom = false
	case s.focus != grid:
		s.focus = grid
	case s.grid.filter != "":
		s.grid.filter = ""
	default:
		return false
	}
	return true
}

// Hints are the most useful keys of the pane with the focus.
func (s *Screen) Hints() []keymap.Action {
	if s.focus == grid {
		return []keymap.Action{keymap.Open, keymap.Explain, keymap.NextPane, keymap.Down, keymap.Right, keymap.Find, keymap.ZoomIn, keymap.Copy, keymap.Leave}
	}
	hints := []keymap.Action{keymap.Down, keymap.Up, keymap.MarkNext, keymap.Back, keymap.NextPane, keymap.ZoomIn, keymap.Copy, keymap.Leave}
	if s.focus == evidence {
		hints = slices.Insert(hints, 0, keymap.Open)
	}
	return hints
}

// Key handles an action.
func (s *Screen) Key(h view.Host, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	s.Advance(h.Now())
	if s.moved(h, a) {
		return nil
	}
	switch a {
	case keymap.NextPane:
		s.toPane((s.focus + 1) % paneCount)
	case keymap.PrevPane:
		s.toPane((s.focus + paneCount - 1) % paneCount)
	case keymap.ZoomIn:
		s.zoom = true
	case keymap.ZoomOut:
		s.zoom = false
	case keymap.Explain:
		if s.focus == claim {
			s.focus = grid
		} else {
			s.toPane(claim)
		}
	case keymap.Open, keymap.PlayPause:
		if s.focus != evidence {
			s.toPane(evidence)
			return nil
		}
		return s.openHeat(h)
	case keymap.Find:
		set := func(v string) { s.grid.filter = v }
		h.Ask("scenarios: ", set, func(_ view.Host, v string) tea.Cmd { set(v); return nil })
	case keymap.Copy:
		if what := s.copied(); what != "" {
			return h.Copy(what)
		}
	}
	return nil
}

func (s *Screen) toPane(p pane) {
	s.focus = p
	if p == evidence || p == scenario {
		s.lower = p
	}
}

// text is the pane of lines that has the focus, nil for the grid.
func (s *Screen) text() *textPane {
	return map[pane]*textPane{scenario: &s.scenario, evidence: &s.evidence, claim: &s.claim}[s.focus]
}

// moved handles what moves within the pane.
func (s *Screen) moved(h view.Host, a keymap.Action) bool {
	_, height := h.Size()
	page := max(1, s.rects[s.focus].H-3)
	if s.rects[s.focus].H == 0 {
		page = max(1, height/2)
	}
	by := a.Stride(max(1, page/2), page)
	switch a {
	case keymap.Start:
		by = -1 << 40
	case keymap.End:
		by = 1 << 40
	}
	p := s.text()
	if p == nil {
		right := map[keymap.Action]int{keymap.Right: 1, keymap.Next5: 1, keymap.Left: -1, keymap.Back5: -1}[a]
		if by == 0 && right == 0 {
			return false
		}
		s.grid.at = max(0, min(s.grid.at+by, len(s.grid.list(s.r))-1))
		s.grid.arena.at = max(0, min(s.grid.arena.at+right, len(s.r.picture.Arenas)))
		return true
	}
	if jump := map[keymap.Action]int{keymap.MarkNext: 1, keymap.MarkBack: -1}[a]; jump != 0 {
		p.jump(jump)
		return true
	}
	if by == 0 {
		return false
	}
	p.at = max(0, min(p.at+by, len(p.lines)-1))
	return true
}

// openHeat opens the heat of the evidence under the cursor.
func (s *Screen) openHeat(h view.Host) tea.Cmd {
	path := ""
	if s.evidence.at < len(s.evidence.lines) {
		path = s.evidence.lines[s.evidence.at].heat
	}
	shows, ok := h.(view.Heats)
	if path == "" || s.src.Open == nil || !ok {
		h.Say("there is no evidence here whose heat could be opened")
		return nil
	}
	return h.Beside(func(context.Context) (func(view.Host) tea.Cmd, error) {
		rec, err := s.src.Open(path)
		if err != nil {
			return nil, err
		}
		return func(view.Host) tea.Cmd { return shows.Heat(rec) }, nil
	})
}

// copied is what y copies: the chosen cell in words, or the line under the cursor.
func (s *Screen) copied() string {
	if p := s.text(); p != nil {
		if p.at < len(p.lines) {
			return p.lines[p.at].words()
		}
		return ""
	}
	row := s.grid.row(s.r)
	if row == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s", row.Scenario, row.State))
}

// Click chooses the pane, and in it the row.
func (s *Screen) Click(h view.Host, x, y int) tea.Cmd {
	for p := range paneCount {
		r := s.rects[p]
		if !r.Contains(x, y) {
			continue
		}
		s.toPane(p)
		if p == grid {
			s.grid.click(x, y, len(s.grid.list(s.r)), len(s.r.picture.Arenas))
			return nil
		}
		if t, at := s.text(), y-r.Y-1; at >= 0 && t.top+at < len(t.lines) {
			t.at = t.top + at
		}
		return nil
	}
	return nil
}
