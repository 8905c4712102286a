// Package register is the screen of a datastore register: the matrix of stores ×
// scenarios in both postures, the chosen cell with every side, all of the chosen
// store, the findings; x explains what is chosen, W asks what would be if.
//
// It guarantees: what is shown is what engine/register derives of the file as it
// was last understood, and the screen says so when the file cannot be read since;
// the file is followed, and nothing moves the cursor while it changes; only what
// is seen is drawn, so that a frame's cost does not grow with the register; all
// text goes through engine/text; states are told by shape and word.
package register

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Source is where a register comes from.
type Source struct {
	Name string // as the header shows it
	// Files are those that Load reads; they are followed. None: nothing changes.
	Files []string
	// Load reads the register anew. It is called beside the screen.
	Load func() (*register.Explainer, error)
	// Drills are what d needs; nil where no heat can be raced.
	Drills *Drills
}

// Screen is the register's screen.
type Screen struct {
	src Source
	f   *follower
	r   *reading

	posture  register.Posture
	matrix   matrixPane
	cell     textPane
	store    textPane
	findings findingsPane
	explain  textPane
	whatIf   whatIfPane
	drill    drillPane

	focus pane
	lower pane // the one of cell and store that is shown where there is no room for both
	side  pane // explain, whatIf or drills, over the lower pane that has not the focus; matrix: neither
	zoom  bool

	rects [paneCount]canvas.Rect // as last drawn, for the mouse
}

type pane uint8

const (
	matrix pane = iota
	cell
	store
	findings
	explain
	whatIf
	drills
	paneCount
)

// New reads a register. The error is Load's.
func New(src Source) (*Screen, error) {
	f := newFollower(src)
	e, err := src.Load()
	if err != nil {
		return nil, err
	}
	f.base = e
	r := &reading{base: e, now: e}
	r.index()
	s := &Screen{src: src, f: f, r: r, posture: register.CurrentPosture, lower: store}
	if src.Drills != nil && src.Drills.Result != nil {
		s.showResult(src.Drills.Result)
	}
	return s, nil
}

var _ view.Clicker = (*Screen)(nil)

// Crumbs are the register's name.
func (s *Screen) Crumbs() []string { return []string{"register", text.Line(s.src.Name)} }

// Status counts findings and surviving cells.
func (s *Screen) Status(c canvas.Canvas) {
	w, _ := c.Size()
	u := &s.r.now.Document().Summary
	x := 0
	put := func(str string, st canvas.Style) {
		if x == 0 || x > 0 && x+text.Width(str) <= w { // whole, or not at all, nor what comes after
			x = c.PutFit(x, 0, w-x, str, st)
		} else {
			x = -1
		}
	}
	if n := size(s.r.assumed); n > 0 {
		put(fmt.Sprintf("WHAT IF %d  ", n), loud)
	}
	put(fmt.Sprintf("✗ %s", view.Plural(u.Gaps, "gap")), alarm)
	put(fmt.Sprintf("  ○ %d accepted", u.Accepted), plain)
	put("  · "+view.Plural(u.Notes, "note"), plain)
	n := u.CellsSurvivingCurrent
	if s.posture == register.TargetPosture {
		n = u.CellsSurvivingTarget
	}
	put(fmt.Sprintf("  %d/%d survive %s", n, u.CellsTotal, postureWord(s.posture)), plain)
	put(fmt.Sprintf("  %s, %s rules", s.r.now.On(), s.r.now.Profile()), dim)
}

// Start begins to follow the file.
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
		kept.trouble = text.Line(err.Error())
		s.r = &kept
	default:
		s.r = r
	}
	return 0
}

// Close ends the following.
func (s *Screen) Close() { s.f.Close() }

// Back closes what was opened over the panes.
func (s *Screen) Back() bool {
	switch {
	case s.side != matrix:
		if s.focus == s.side {
			s.focus = s.under()
		}
		s.side = matrix
	case s.zoom:
		s.zoom = false
	case s.focus == findings && s.findings.filter != (filter{}):
		s.findings.filter = filter{}
	case s.focus == matrix && s.matrix.filter != "":
		s.matrix.filter = ""
	default:
		return false
	}
	return true
}

// under is the pane that gets the focus when the one over it closes.
func (s *Screen) under() pane {
	if at, ok := s.asked(); ok {
		return at
	}
	return matrix
}

// Hints are the most useful keys of the pane with the focus.
func (s *Screen) Hints() []keymap.Action {
	switch s.focus {
	case findings:
		return []keymap.Action{keymap.Explain, keymap.Drill, keymap.Open, keymap.Severity, keymap.OfStore, keymap.Find, keymap.WhatIf, keymap.NextPane, keymap.ZoomIn, keymap.Posture, keymap.Leave}
	case drills:
		return []keymap.Action{keymap.Open, keymap.Down, keymap.Up, keymap.Back, keymap.NextPane, keymap.ZoomIn, keymap.Posture, keymap.Leave}
	case whatIf:
		return []keymap.Action{keymap.Open, keymap.Find, keymap.Back, keymap.NextPane, keymap.Posture, keymap.Leave}
	case explain, cell:
		return []keymap.Action{keymap.Down, keymap.Up, keymap.Back, keymap.NextPane, keymap.ZoomIn, keymap.Posture, keymap.WhatIf, keymap.Leave}
	case store:
		return []keymap.Action{keymap.Explain, keymap.Drill, keymap.Down, keymap.Up, keymap.NextPane, keymap.ZoomIn, keymap.Posture, keymap.WhatIf, keymap.Copy, keymap.Leave}
	}
	return []keymap.Action{keymap.Posture, keymap.Explain, keymap.Drill, keymap.WhatIf, keymap.Open, keymap.NextPane, keymap.Find, keymap.ZoomIn, keymap.Copy, keymap.Leave}
}

// Key handles an action.
func (s *Screen) Key(h view.Host, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	s.Advance(h.Now())
	if s.moved(h, a) {
		return nil
	}
	switch a {
	case keymap.NextPane:
		s.cycle(h, 1)
	case keymap.PrevPane:
		s.cycle(h, -1)
	case keymap.ZoomIn:
		s.zoom = true
	case keymap.ZoomOut:
		s.zoom = false
	case keymap.Posture:
		if s.posture == register.TargetPosture {
			s.posture = register.CurrentPosture
		} else {
			s.posture = register.TargetPosture
		}
	case keymap.Explain:
		s.toggleExplain(h)
	case keymap.WhatIf:
		if s.side == whatIf {
			s.Back()
		} else {
			s.side, s.focus = whatIf, whatIf
		}
	case keymap.Drill:
		return s.toggleDrill(h)
	case keymap.Open, keymap.PlayPause:
		if s.focus == drills && a != keymap.Open {
			return nil // a heat wants more than the space bar
		}
		return s.open(h)
	case keymap.Severity:
		order := []register.Severity{"", register.Gap, register.IsAccepted, register.Note}
		i := slices.Index(order, s.findings.filter.severity)
		s.findings.filter.severity = order[(i+1)%len(order)]
		s.toFindings(h)
	case keymap.OfStore:
		if s.findings.filter.store != "" {
			s.findings.filter.store = ""
		} else {
			s.findings.filter.store = s.storeID()
		}
		s.toFindings(h)
	case keymap.Find:
		s.find(h)
	case keymap.Copy:
		if what := s.copied(); what != "" {
			return h.Copy(what)
		}
	}
	return nil
}

// toFindings shows the findings where they would be hidden.
func (s *Screen) toFindings(h view.Host) {
	w, _ := h.Size()
	if slots(w) == 1 || s.zoom {
		s.side, s.focus = matrix, findings
	}
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
	if s.focus == matrix {
		right := map[keymap.Action]int{keymap.Right: 1, keymap.Next5: 1, keymap.Left: -1, keymap.Back5: -1, keymap.NextTenth: 5, keymap.BackTenth: -5}[a]
		if by == 0 && right == 0 {
			return false
		}
		s.matrix.move(by, right)
		s.matrix.at = max(0, min(s.matrix.at, len(s.matrix.list(s.r))-1))
		s.matrix.scenario.at = max(0, min(s.matrix.scenario.at, len(s.r.now.Document().Scenarios)-1))
		if s.findings.filter.store != "" {
			s.findings.filter.store = s.storeID() // "of this store" goes along
		}
		return true
	}
	if jump := map[keymap.Action]int{keymap.MarkNext: 1, keymap.MarkBack: -1}[a]; jump != 0 && s.focus == store {
		s.store.jump(jump)
		return true
	}
	if by == 0 {
		return false
	}
	switch s.focus {
	case findings:
		s.findings.at = max(0, min(s.findings.at+by, len(s.findings.list(s.r))-1))
	case whatIf:
		s.whatIf.at = max(0, min(s.whatIf.at+by, len(s.whatIf.list(s.r))-1))
	case store:
		s.store.move(by)
	case cell:
		s.cell.move(by)
	case explain:
		s.explain.move(by)
	case drills:
		s.drill.move(by)
	}
	return true
}

func (s *Screen) open(h view.Host) tea.Cmd {
	switch s.focus {
	case drills:
		return s.race(h)
	case matrix:
		s.focus, s.lower = store, store
		if s.side != matrix {
			s.side = matrix
		}
	case findings:
		f := s.findings.chosen(s.r)
		if f == nil || !s.matrix.goTo(s.r, f.StoreID, deref(f.ScenarioID)) {
			return nil
		}
		h.Say("chosen in the matrix: " + text.Line(strings.TrimSpace(f.StoreID+" "+deref(f.ScenarioID))))
	case whatIf:
		list := s.whatIf.list(s.r)
		if s.whatIf.at < len(list) {
			s.f.assume(toggle(s.f.assumed(), list[s.whatIf.at]))
		}
	}
	return nil
}

// find filters the pane with the focus: what is assumed, stores, or findings.
func (s *Screen) find(h view.Host) {
	switch s.focus {
	case matrix:
		set := func(v string) { s.matrix.filter = v }
		h.Ask("stores: ", set, func(_ view.Host, v string) tea.Cmd { set(v); return nil })
	case whatIf:
		set := func(v string) { s.whatIf.filter = v }
		h.Ask("what if: ", set, func(_ view.Host, v string) tea.Cmd { set(v); return nil })
	default:
		s.toFindings(h)
		set := func(v string) { s.findings.filter.words = v }
		h.Ask("findings (words; store:x severity:x code:x): ", set, func(_ view.Host, v string) tea.Cmd { set(v); return nil })
	}
}

func (s *Screen) storeID() string {
	if i := s.matrix.store(s.r); i >= 0 {
		return s.r.now.Document().Stores[i].ID
	}
	return ""
}

// copied is what y copies: the chosen finding, line or cell, in words.
func (s *Screen) copied() string {
	switch s.focus {
	case findings:
		if f := s.findings.chosen(s.r); f != nil {
			return text.Line(fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.StoreID, f.Detail))
		}
	case store, cell, explain, drills:
		p := map[pane]*textPane{store: &s.store, cell: &s.cell, explain: &s.explain, drills: &s.drill.textPane}[s.focus]
		if p.at < len(p.lines) {
			return p.lines[p.at].plainText()
		}
	case matrix:
		if c := s.r.now.Document().Cell(s.posture, s.matrix.store(s.r), s.matrix.scenario.at); c != nil {
			return text.Line(fmt.Sprintf("%s in %s, %s: %s", c.StoreID, c.ScenarioID, postureWord(s.posture), sides(c)))
		}
	}
	return ""
}
