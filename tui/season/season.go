// Package season is the screens of a season's week and of series and benchmarks:
// the bracket with every heat's seats and results, the chosen heat with its
// attempts, the standings, the audit; and one page for what several heats say
// together.
//
// It guarantees: what is shown is what engine/season makes of the documents as
// they were last understood, and the screen says so when they cannot be read since;
// a running week is followed, and nothing moves the cursor while it grows; only what
// is seen is drawn, so that a frame's cost does not grow with the week; all text
// goes through engine/text; states are told by shape and word. Recordings are read
// when the checks are opened, not before.
package season

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Week is a week as it is shown.
type Week struct {
	View  season.View
	Audit *season.Audit // of the documents; the heats' recordings are another matter
	// Here are the attempts whose recordings are here, by season.Folder.
	Here map[string]bool
}

// Source is where a week comes from. Its functions are called beside the screen.
type Source struct {
	Name string // as the header shows it
	// Watch lists the files and folders that the week is written to, as there are
	// now; nil: nothing changes.
	Watch func() []string
	// Load reads the week anew.
	Load func() (Week, error)
	// Recordings audits with the heats' recordings too; nil where there are none.
	Recordings func(ctx context.Context) (*season.Audit, error)
	// Heat opens the recording of an attempt, by season.Folder.
	Heat func(attempt string) (*recording.Recording, error)
}

// Screen is a week's screen.
type Screen struct {
	src Source
	f   *view.Follower[*reading]
	r   *reading

	bracket   bracketPane
	heat      textPane
	standings standingsPane
	checks    checksPane
	// deep is the audit with the recordings of deepOf, and reading says that it is
	// being made.
	deep    *season.Audit
	deepOf  *reading
	deepens bool

	focus  pane
	lower  pane // heat or standings: the one that is shown where there is no room for both
	listed bool // the checks are
	zoom   bool
	sought string // that was looked for last

	rects [paneCount]canvas.Rect // as last drawn, for the mouse
}

type pane uint8

const (
	bracket pane = iota
	heat
	standings
	badge
	checks
	paneCount
)

// follow follows documents; what is hidden beside them is a lock, or half of a file.
func follow[T any](paths func() []string, load func() (T, error)) *view.Follower[T] {
	return view.NewFollower(view.Followed[T]{Paths: paths, Read: func(bool) (T, error) { return load() },
		Meant: func(name string) bool { return !strings.HasPrefix(filepath.Base(name), ".") }})
}

// New reads a week. The error is Load's.
func New(src Source) (*Screen, error) {
	load := func() (*reading, error) {
		w, err := src.Load()
		if err != nil {
			return nil, err
		}
		return index(w), nil
	}
	f := follow(src.Watch, load)
	r, err := load()
	if err != nil {
		return nil, err
	}
	s := &Screen{src: src, f: f, r: r, lower: heat}
	s.bracket.begin(r)
	return s, nil
}

var _ view.Clicker = (*Screen)(nil)

// Crumbs are the season and the week.
func (s *Screen) Crumbs() []string {
	v := &s.r.View
	return []string{"season", text.Line(v.Season), text.Line(v.Week)}
}

// Status is the week's state, its champion and what was spent.
func (s *Screen) Status(c canvas.Canvas) {
	w, _ := c.Size()
	v := &s.r.View
	x := 0
	put := func(str string, st canvas.Style) {
		if x == 0 || x+text.Width(str) <= w {
			x = c.PutFit(x, 0, w-x, str, st)
		}
	}
	m := stateSign(v.State)
	put(string(m.Shape)+" "+m.Word, m.Style)
	if v.Champion != "" {
		put("  ★ "+text.Line(v.Champion)+" champion", loud)
	}
	over, all := s.r.progress()
	put(fmt.Sprintf("  %s of %s", view.Count(over), view.Plural(all, "heat")), plain)
	if v.State != "drawn" {
		put("  "+v.Spend.String(), dim)
	}
}

// Start begins to follow the week.
func (s *Screen) Start(view.Host) tea.Cmd {
	s.f.Start()
	return nil
}

// Feed tells that the week was read anew.
func (s *Screen) Feed() <-chan struct{} { return s.f.Feed() }

// Advance takes the newest reading.
func (s *Screen) Advance(time.Time) time.Duration {
	r, err, ok := s.f.Take()
	switch {
	case !ok:
	case err != nil:
		kept := *s.r
		kept.trouble = "the last good one is shown: " + text.Line(err.Error())
		if s.deepOf == s.r {
			s.deepOf = &kept
		}
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
	case s.zoom:
		s.zoom = false
	case s.listed:
		s.listed = false
		if s.focus == checks {
			s.focus = badge
		}
	case s.focus != bracket:
		s.focus = bracket
	default:
		return false
	}
	return true
}

// Hints are the most useful keys of the pane with the focus.
func (s *Screen) Hints() []keymap.Action {
	switch s.focus {
	case checks:
		return []keymap.Action{keymap.Down, keymap.Up, keymap.NextPane, keymap.ZoomIn, keymap.Copy, keymap.Back, keymap.Leave}
	case badge:
		return []keymap.Action{keymap.Open, keymap.NextPane, keymap.Find, keymap.Leave}
	case standings:
		return []keymap.Action{keymap.Open, keymap.Down, keymap.Up, keymap.NextPane, keymap.ZoomIn, keymap.Find, keymap.Integrity, keymap.Leave}
	}
	return []keymap.Action{keymap.Open, keymap.Down, keymap.Up, keymap.Left, keymap.Right, keymap.NextPane, keymap.Integrity, keymap.Find, keymap.ZoomIn, keymap.Leave}
}

// Key handles an action.
func (s *Screen) Key(h view.Host, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	s.Advance(h.Now())
	if s.moved(h, a) {
		return nil
	}
	switch a {
	case keymap.NextPane:
		s.cycle(1)
	case keymap.PrevPane:
		s.cycle(-1)
	case keymap.ZoomIn:
		s.zoom = true
	case keymap.ZoomOut:
		s.zoom = false
	case keymap.Integrity:
		if s.listed {
			s.zoom = false
			s.Back()
			return nil
		}
		return s.list(h)
	case keymap.Open, keymap.PlayPause:
		return s.open(h)
	case keymap.Find:
		h.Ask("entrant: ", func(v string) { s.seek(v, 0) }, func(h view.Host, v string) tea.Cmd {
			if v != "" && !s.seek(v, 0) {
				h.Say("nobody here is called that")
			}
			return nil
		})
	case keymap.FindNext:
		s.seek(s.sought, 1)
	case keymap.FindPrev:
		s.seek(s.sought, -1)
	case keymap.Copy:
		if what := s.copied(); what != "" {
			return h.Copy(what)
		}
	}
	return nil
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
	if s.focus == bracket {
		right := map[keymap.Action]int{keymap.Right: 1, keymap.Next5: 1, keymap.MarkNext: 1, keymap.Left: -1, keymap.Back5: -1, keymap.MarkBack: -1}[a]
		if by == 0 && right == 0 {
			return false
		}
		s.bracket.move(s.r, by, right, page)
		return true
	}
	if by == 0 {
		return false
	}
	switch s.focus {
	case heat:
		s.heat.move(by)
	case standings:
		s.standings.at = max(0, min(s.standings.at+by, len(s.r.View.Standings)-1))
		s.follow()
	case checks:
		s.checks.at = max(0, min(s.checks.at+by, len(s.audit().Checks)-1))
	}
	return true
}

// follow lets the bracket show the way of the entrant that is chosen in the
// standings.
func (s *Screen) follow() {
	if list := s.r.View.Standings; s.standings.at < len(list) {
		s.bracket.track(s.r, list[s.standings.at].FleetID)
	}
}

// cycle moves the focus to the next pane.
func (s *Screen) cycle(dir int) {
	order := []pane{bracket, heat, standings, badge}
	if s.listed {
		order = append(order, checks)
	}
	at := 0
	for i, p := range order {
		if p == s.focus {
			at = i
		}
	}
	s.turn(order[(at+dir+len(order))%len(order)])
}

// turn gives a pane the focus, where it can be seen.
func (s *Screen) turn(p pane) {
	s.focus = p
	if p == heat || p == standings {
		s.lower = p
	}
	if p == standings {
		s.follow()
	}
}

// audit is the most complete one that there is.
func (s *Screen) audit() *season.Audit {
	if s.deep != nil && s.deepOf == s.r {
		return s.deep
	}
	return s.r.Audit
}

// list shows the checks, and has the recordings read for them.
func (s *Screen) list(h view.Host) tea.Cmd {
	s.listed, s.focus = true, checks
	if s.src.Recordings == nil || s.deepens || s.deepOf == s.r || len(s.r.Here) == 0 {
		return nil
	}
	s.deepens = true
	of := s.r
	return h.Beside(func(ctx context.Context) (func(view.Host) tea.Cmd, error) {
		a, err := s.src.Recordings(ctx)
		return func(view.Host) tea.Cmd {
			s.deepens = false
			if err == nil {
				order(a)
				s.deep, s.deepOf = a, of
			}
			return nil
		}, err
	})
}

func (s *Screen) open(h view.Host) tea.Cmd {
	switch s.focus {
	case badge:
		return s.list(h)
	case standings:
		s.follow()
		s.focus = bracket
	case bracket:
		if hv := s.bracket.chosen(s.r); hv != nil {
			return s.openAttempt(h, s.r.latest(hv.round, hv.heat))
		}
		h.Say("choose a heat to open its recording")
	case heat:
		if name := s.heat.opens(); name != "" {
			return s.openAttempt(h, name)
		}
		if hv := s.bracket.chosen(s.r); hv != nil {
			return s.openAttempt(h, s.r.latest(hv.round, hv.heat))
		}
	}
	return nil
}

// openAttempt opens the recording of an attempt, or says why it cannot.
func (s *Screen) openAttempt(h view.Host, name string) tea.Cmd {
	if name == "" {
		h.Say("this heat has not been run yet")
		return nil
	}
	return openHeat(h, name, s.src.Heat)
}

// openHeat opens a recording by its name beside the screen.
func openHeat(h view.Host, name string, open func(string) (*recording.Recording, error)) tea.Cmd {
	shows, ok := h.(view.Heats)
	if !ok || open == nil {
		h.Say("the recording of " + text.Line(name) + " is not here")
		return nil
	}
	return h.Beside(func(context.Context) (func(view.Host) tea.Cmd, error) {
		rec, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the recording of %s is not here", text.Line(name))
		}
		if err != nil {
			return nil, err
		}
		return func(view.Host) tea.Cmd { return shows.Heat(rec) }, nil
	})
}

// seek chooses the next entrant whose id holds the words, from the chosen place
// on in the standings, and shows its way; dir 0 stays with one that fits already.
func (s *Screen) seek(words string, dir int) bool {
	list := s.r.View.Standings
	words = strings.ToLower(strings.TrimSpace(words))
	if words == "" || len(list) == 0 {
		return false
	}
	s.sought = words
	step := max(dir, 1-2*max(0, -dir))
	at := s.standings.at + dir
	for range list {
		at = (at + len(list)) % len(list)
		if strings.Contains(strings.ToLower(list[at].FleetID), words) {
			s.standings.at = at
			s.follow()
			return true
		}
		at += step
	}
	return false
}

// copied is what y copies.
func (s *Screen) copied() string {
	switch s.focus {
	case checks:
		if c := s.checks.chosen(s.audit()); c != nil {
			return text.Line(checkWords(c))
		}
	case standings:
		if list := s.r.View.Standings; s.standings.at < len(list) {
			return text.Line(list[s.standings.at].FleetID)
		}
	case badge:
		return "audit " + s.audit().Badge()
	default:
		if hv := s.bracket.chosen(s.r); hv != nil {
			if name := s.r.latest(hv.round, hv.heat); name != "" {
				return name
			}
		}
	}
	return ""
}
