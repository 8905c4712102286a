package tui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"refbox/engine/arena"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/topology"
	"refbox/tui/view"
)

// drawAbout shows the chosen item.
func (l *lobby) drawAbout(c canvas.Canvas, it item) {
	w, h := c.Size()
	y := 0
	put := func(st canvas.Style, format string, a ...any) {
		for _, line := range text.Wrap(fmt.Sprintf(format, a...), w-2) {
			c.Put(1, y, line, st)
			y++
		}
	}
	title, dim, plain := canvas.Fg(canvas.Title).With(canvas.Bold), canvas.Fg(canvas.Dim), canvas.Fg(canvas.Text)
	if it.pkg != nil {
		m := it.pkg.Manifest
		put(title, "%s", m.Arena.DisplayName)
		put(dim, "%s, up to %s", view.Plural(len(m.Territories), "seat"), clockShort(uint64(m.Duration()/time.Millisecond)))
		y++
		for _, ms := range m.Milestones() {
			put(plain, "%3d  %s", ms.Points, ms.DisplayName)
		}
		y++
		for _, a := range m.Agents {
			player := a.Adapter
			if a.Script != nil {
				player = scriptName(*a.Script) + " (script)"
			}
			put(dim, "%s: %s", a.Territory, player)
		}
		y++
		put(canvas.Fg(canvas.Key), "enter races it")
		l.drawPicture(c, y+1, m)
		return
	}
	if e := it.entry; e != nil {
		put(title, "%s", text.Line(e.Name))
		put(dim, "%s", text.Line(e.Note))
		y++
		put(canvas.Fg(canvas.Key), "enter opens it")
		return
	}
	r := it.rec
	put(title, "%s", r.Name)
	if r.Arena != r.Name {
		put(dim, "%s", r.Arena)
	}
	y++
	put(plain, "%s", cmp.Or(r.Reason, r.State))
	put(dim, "lasted %s", view.Clock(r.DurationMS))
	if !r.StartedAt.IsZero() {
		about := ""
		if !r.Exact {
			about = "about "
		}
		put(dim, "started %s%s", about, r.StartedAt.Local().Format("2006-01-02 15:04:05"))
	}
	y++
	names := 0
	for _, s := range r.Seats {
		names = max(names, text.Width(s.Territory))
	}
	for _, s := range r.Seats {
		mark := ' '
		if s.Durable {
			mark = '★'
		}
		c.PutRight(3, y, 3, fmt.Sprint(s.Rank), dim)
		c.Set(4, y, mark, canvas.Fg(canvas.Ok))
		c.PutRight(10, y, 5, fmt.Sprint(s.Points), canvas.Fg(canvas.Title))
		x := 11 + min(names, max(8, w/2-4))
		c.PutFit(11, y, x-11, s.Territory, plain)
		c.PutFit(x+2, y, w-x-3, modelName(s.Model), dim)
		y++
	}
	y++
	_, st := badgeMark(r.Badge)
	put(st, "integrity: %s", r.Badge)
	for _, f := range r.Integrity.Findings {
		if y >= h*2/3 {
			put(dim, "…; i in the replay tells all")
			break
		}
		put(dim, "%s: %s", f.Severity, f.Text)
	}
	y++
	put(canvas.Fg(canvas.Key), "enter replays it")
	if i := slices.IndexFunc(l.lib.Arenas, func(p *arena.Package) bool { return p.Manifest.Arena.ID == r.Arena }); i >= 0 {
		l.drawPicture(c, y+1, l.lib.Arenas[i].Manifest)
	}
}

// drawPicture draws an arena's graph below the words, where there is room.
func (l *lobby) drawPicture(c canvas.Canvas, y int, m *arena.Manifest) {
	w, h := c.Size()
	if area := (canvas.Rect{X: 1, Y: y, W: w - 2, H: min(h-y, 16)}); m.Visualization != nil && area.H >= 9 && w > 20 {
		topology.Draw(c, area, l.layout(m, area.W, area.H), nil)
	}
}

// layout lays an arena's graph out once per size.
func (l *lobby) layout(m *arena.Manifest, w, h int) topology.Layout {
	key := lobbyLayout{m, w, h}
	if l.laid.key != key {
		l.laid.key, l.laid.layout = key, topology.Compute(graphOf(m.Topology()), w, h)
	}
	return l.laid.layout
}

type lobbyLayout struct {
	m    *arena.Manifest
	w, h int
}
