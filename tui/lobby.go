package tui

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/sahilm/fuzzy"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/topology"
	"refbox/tui/view"
)

// Library is what the lobby offers.
type Library struct {
	Arenas []*arena.Package
	// Screens open what is made elsewhere.
	Screens []Entry
	// Shelves list recordings; they are read beside the screen.
	Shelves []Shelf
	// Desk is what the person may do to a heat that is opened; nil: only look.
	Desk func(*recording.Recording) Desk
}

// Entry is a row of the lobby that opens a screen made elsewhere.
type Entry struct {
	Group string // the heading that it stands under; entries of a group stand together
	Name  string
	Note  string // what it is, in a few words
	// Open makes the screen; it is called beside the lobby.
	Open func() (view.Screen, error)
}

// Shelf is a place with recordings.
type Shelf interface {
	// List summarises the recordings of the place.
	List(ctx context.Context) ([]recording.Summary, error)
	// Open opens one by the path of its summary.
	Open(path string) (*recording.Recording, error)
}

// Lobby shows what there is until it is left, or until an arena is to be raced.
func Lobby(ctx context.Context, cfg Config, lib Library, in io.Reader, out io.Writer) (Choice, error) {
	return run(ctx, cfg, newLobby(ctx, cfg, lib), in, out)
}

// item is a row of the lobby.
type item struct {
	pkg   *arena.Package
	entry *Entry
	rec   *recording.Summary
	shelf Shelf
}

// group is the heading that the item stands under.
func (i item) group() string {
	switch {
	case i.pkg != nil:
		return "Arenas"
	case i.entry != nil:
		return i.entry.Group
	}
	return "Recordings"
}

func (i item) words() string {
	if i.entry != nil {
		return i.entry.Group + " " + i.entry.Name + " " + i.entry.Note
	}
	if i.pkg != nil {
		return i.pkg.Manifest.Arena.ID + " " + i.pkg.Manifest.Arena.DisplayName
	}
	return i.rec.Name + " " + i.rec.Arena + " " + i.rec.Winner
}

type lobby struct {
	ctx     context.Context
	lib     Library
	items   []item // of all
	loading bool
	loaded  bool
	opening bool // a recording, beside the screen
	trouble string
	clock   func() time.Time // for ages
	filter  string
	chosen  int
	first   int
	laid    struct {
		key    lobbyLayout
		layout topology.Layout
	}
}

func newLobby(ctx context.Context, cfg Config, lib Library) *lobby {
	l := &lobby{ctx: ctx, lib: lib, clock: cfg.Clock}
	if l.clock == nil {
		l.clock = time.Now
	}
	for _, p := range lib.Arenas {
		l.items = append(l.items, item{pkg: p})
	}
	for i := range lib.Screens {
		l.items = append(l.items, item{entry: &lib.Screens[i]})
	}
	return l
}

func (l *lobby) back() bool {
	was := l.filter != ""
	l.filter = ""
	return was
}

func (l *lobby) crumbs() []string { return []string{"lobby"} }

func (l *lobby) status(c canvas.Canvas) {
	w, _ := c.Size()
	n := 0
	for _, i := range l.items {
		if i.rec != nil {
			n++
		}
	}
	s := view.Plural(n, "recording")
	if len(l.lib.Arenas) > 0 {
		s = view.Plural(len(l.lib.Arenas), "arena") + ", " + s
	}
	if l.loading {
		s += ", reading …"
	}
	c.PutFit(0, 0, w, s, canvas.Fg(canvas.Dim))
}

func (l *lobby) advance(time.Time) time.Duration { return 0 }

// load reads the shelves beside the screen.
func (l *lobby) load() tea.Cmd {
	if l.loading || l.loaded {
		return nil
	}
	l.loading = true
	return safe(func() tea.Msg {
		var recs []recording.Summary
		var from []Shelf
		var trouble []string
		for _, s := range l.lib.Shelves {
			list, err := s.List(l.ctx)
			if err != nil {
				trouble = append(trouble, text.Line(err.Error()))
			}
			for _, r := range list {
				recs, from = append(recs, r), append(from, s)
			}
		}
		recording.MarkSame(recs)
		items := make([]item, len(recs))
		for i := range recs {
			items[i] = item{rec: &recs[i], shelf: from[i]}
		}
		slices.SortStableFunc(items, func(a, b item) int {
			if a.rec.Live != b.rec.Live {
				if a.rec.Live {
					return -1
				}
				return 1
			}
			return cmp.Or(b.rec.StartedAt.Compare(a.rec.StartedAt), cmp.Compare(a.rec.Name, b.rec.Name))
		})
		return doneMsg{then: func(*model) tea.Cmd {
			l.loading, l.loaded, l.trouble = false, true, strings.Join(trouble, "; ")
			l.items = append(l.items, items...)
			return nil
		}}
	})
}

// shown are the items that pass the filter, best match first.
func (l *lobby) shown() []item {
	if l.filter == "" {
		return l.items
	}
	words := make([]string, len(l.items))
	for i, it := range l.items {
		words[i] = it.words()
	}
	var out []item
	for _, m := range fuzzy.Find(l.filter, words) {
		out = append(out, l.items[m.Index])
	}
	return out
}

func (l *lobby) draw(c canvas.Canvas) {
	w, h := c.Size()
	items := l.shown()
	l.chosen = max(0, min(l.chosen, len(items)-1))
	list := c.Bounds()
	var detail canvas.Rect
	if w >= 110 {
		list, detail = c.Bounds().CutLeft(w * 3 / 5)
	}
	title := "arenas and recordings"
	if len(l.lib.Arenas) == 0 {
		title = "recordings"
	}
	if l.filter != "" {
		title = "filter: " + l.filter
	}
	in := c.Sub(c.Frame(list, canvas.Heavy, title, countNote(len(items)), canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	l.drawList(in, items)
	if !detail.Empty() {
		in := c.Sub(c.Frame(detail, canvas.Rounded, "about", "", canvas.Fg(canvas.Border), canvas.Fg(canvas.Title).With(canvas.Bold)))
		if l.chosen < len(items) {
			l.drawAbout(in, items[l.chosen])
		}
	}
	if l.trouble != "" {
		c.PutFit(2, h-1, w-4, l.trouble, canvas.Fg(canvas.Bad))
	}
}

func (l *lobby) drawList(c canvas.Canvas, items []item) {
	w, h := c.Size()
	if len(items) == 0 {
		c.PutFit(1, 0, w-2, "nothing matches", canvas.Fg(canvas.Dim))
		return
	}
	// Headings stand above the first arena and the first recording of an
	// unfiltered list, and scroll with it.
	type row struct {
		heading string
		item    int
	}
	var rows []row
	at := 0
	for i, it := range items {
		if l.filter == "" && (i == 0 || it.group() != items[i-1].group()) {
			if i > 0 {
				rows = append(rows, row{heading: " ", item: -1})
			}
			rows = append(rows, row{heading: it.group(), item: -1})
		}
		if i == l.chosen {
			at = len(rows)
		}
		rows = append(rows, row{item: i})
	}
	if at < l.first || l.chosen == 0 {
		l.first = max(0, at-2)
	}
	if at >= l.first+h {
		l.first = at - h + 1
	}
	for y := 0; y < h && l.first+y < len(rows); y++ {
		r := rows[l.first+y]
		if r.item < 0 {
			c.PutFit(1, y, w-2, r.heading, canvas.Fg(canvas.Accent).With(canvas.Bold))
			continue
		}
		l.drawRow(c, y, items[r.item])
		if r.item == l.chosen {
			view.Choose(c, y)
		}
	}
}

func (l *lobby) drawRow(c canvas.Canvas, y int, it item) {
	w, _ := c.Size()
	if it.pkg != nil {
		m := it.pkg.Manifest
		right := c.PutRight(w-1, y, 30, fmt.Sprintf("%s, %s", view.Plural(len(m.Territories), "seat"), text.Count(m.Points(), "point")), canvas.Fg(canvas.Dim))
		x := c.PutFit(2, y, 24, m.Arena.ID, canvas.Fg(canvas.Text).With(canvas.Bold))
		c.PutFit(x+2, y, right-x-3, m.Arena.DisplayName, canvas.Fg(canvas.Dim))
		return
	}
	if e := it.entry; e != nil {
		x := c.PutFit(2, y, 24, text.Line(e.Name), canvas.Fg(canvas.Text).With(canvas.Bold))
		c.PutFit(x+2, y, w-x-3, text.Line(e.Note), canvas.Fg(canvas.Dim))
		return
	}
	r := it.rec
	badge, st := badgeMark(r.Badge)
	right := c.PutRight(w-1, y, 8, badge, st)
	when := age(r.StartedAt, l.clock())
	right = c.PutRight(right-1, y, 10, fmt.Sprintf("%10s", when), canvas.Fg(canvas.Dim))
	result := verdict(*r)
	right = c.PutRight(right-1, y, max(14, right/2), result, verdictStyle(*r))
	if r.Machines == "simulated" {
		right = c.PutRight(right-1, y, max(3, right/4), "simulated", canvas.Fg(canvas.Warn))
	}
	c.PutFit(2, y, right-3, r.Name, canvas.Fg(canvas.Text))
}

// verdict is a recording's outcome in a few words.
func verdict(r recording.Summary) string {
	switch {
	case r.Live:
		return "● live"
	case r.Winner != "":
		return r.Winner + " " + view.Clock(r.DurationMS)
	case len(r.DeadHeat) > 0:
		return "dead heat"
	case r.State == "finished":
		return "no winner"
	}
	return r.State
}

func verdictStyle(r recording.Summary) canvas.Style {
	switch {
	case r.Live, r.Winner != "":
		return canvas.Fg(canvas.Ok)
	case r.State == "aborted", r.State == "stopped":
		return canvas.Fg(canvas.Warn)
	}
	return canvas.Fg(canvas.Text)
}

func badgeMark(badge string) (string, canvas.Style) {
	switch badge {
	case "ok":
		return "✓ ok", canvas.Fg(canvas.Ok)
	case "notes":
		return "○ notes", canvas.Fg(canvas.Warn)
	case "broken":
		return "✗ broken", canvas.Fg(canvas.Bad)
	}
	return "? " + badge, canvas.Fg(canvas.Bad)
}

func (l *lobby) key(m *model, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	items := l.shown()
	_, h := m.grid.Size()
	l.chosen += a.Stride(h/2, h-4)
	switch a {
	case keymap.Start:
		l.chosen = 0
	case keymap.End:
		l.chosen = len(items) - 1
	case keymap.Find:
		m.ask("/", func(s string) { l.filter, l.chosen = s, 0 }, func(m *model, s string) tea.Cmd {
			l.filter = s
			return nil
		})
	case keymap.Copy:
		if l.chosen < len(items) && items[l.chosen].rec != nil {
			return m.copyText("refbox replay " + text.Shell(items[l.chosen].rec.Path))
		}
	case keymap.Sit:
		if l.chosen >= len(items) || items[l.chosen].pkg == nil {
			m.say("choose an arena to take a seat in")
			return nil
		}
		m.choice.Sit = true
		return l.open(m, items[l.chosen])
	case keymap.Open:
		if l.chosen < len(items) {
			return l.open(m, items[l.chosen])
		}
	}
	l.chosen = max(0, min(l.chosen, len(items)-1))
	return nil
}

func (l *lobby) open(m *model, it item) tea.Cmd {
	if it.pkg != nil {
		id, sit := it.pkg.Manifest.Arena.ID, m.choice.Sit
		m.choice.Sit = false // until it is sure
		m.askToRace(view.Starts(it.pkg.Manifest, "real machines"), func(m *model) tea.Cmd {
			m.choice.Run, m.choice.Sit = id, sit
			return tea.Quit
		})
		return nil
	}
	if l.opening {
		return nil
	}
	l.opening = true
	if e := it.entry; e != nil {
		return safe(func() tea.Msg {
			s, err := e.Open()
			return doneMsg{err: err, then: func(m *model) tea.Cmd {
				l.opening = false
				if err != nil {
					return nil
				}
				return m.push(&hosted{Screen: s})
			}}
		})
	}
	return safe(func() tea.Msg {
		rec, err := it.shelf.Open(it.rec.Path)
		return doneMsg{err: err, then: func(m *model) tea.Cmd {
			l.opening = false
			if err != nil {
				return nil
			}
			var desk Desk
			if l.lib.Desk != nil {
				desk = l.lib.Desk(rec)
			}
			return m.push(&overview{heat: openHeat(m.ctx, rec, desk, m.cfg.Clock())})
		}}
	})
}

func (l *lobby) hints() []keymap.Action {
	hints := []keymap.Action{keymap.Open, keymap.Sit, keymap.Down, keymap.Up, keymap.Find, keymap.Theme, keymap.Help, keymap.Leave}
	if len(l.lib.Arenas) == 0 {
		hints = slices.DeleteFunc(hints, func(a keymap.Action) bool { return a == keymap.Sit })
	}
	return hints
}
