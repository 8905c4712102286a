package tui

import (
	"slices"
	"strings"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/topology"
)

// helpScreen lists the keys, from the key map, and what the signs mean.
type helpScreen struct {
	keys  keymap.Map
	ascii bool
	in    screen
	up    int
	rows  int // of content, as last drawn
	room  int
}

// key scrolls; false closes the help.
func (s *helpScreen) key(a keymap.Action) bool {
	half := max(1, s.room/2)
	by := a.Stride(half, half)
	if by != 0 {
		s.up = max(0, min(s.up+by, s.rows-s.room))
	}
	return by != 0
}

func (s *helpScreen) draw(c canvas.Canvas) {
	c.Fill(c.Bounds(), ' ', canvas.Style{})
	in := c.Sub(c.Frame(c.Bounds(), canvas.Double, "keys and legend", "any other key closes", canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	// Drawn on a sheet of its own, as tall as it needs, then scrolled.
	sheet := canvas.New(w, 200)
	columns := max(1, w/58)
	colW := w / columns
	y := make([]int, columns)
	shortest := func() int {
		best := 0
		for i := range y {
			if y[i] < y[best] {
				best = i
			}
		}
		return best
	}
	for _, g := range []keymap.Group{keymap.Time, keymap.Move, keymap.Look, keymap.Steps, keymap.Estate, keymap.Act, keymap.Always} {
		if !s.concerns(g) {
			continue
		}
		i := shortest()
		col := sheet.Sub(canvas.Rect{X: i * colW, Y: y[i], W: colW - 1, H: 200 - y[i]})
		y[i] += s.drawGroup(col, g) + 1
	}
	i := shortest()
	y[i] += s.drawLegend(sheet.Sub(canvas.Rect{X: i * colW, Y: y[i], W: colW - 1, H: 200 - y[i]}))
	s.rows, s.room = 0, h
	for _, n := range y {
		s.rows = max(s.rows, n)
	}
	s.up = max(0, min(s.up, s.rows-h))
	in.Copy(0, 0, sheet.Sub(canvas.Rect{X: 0, Y: s.up, W: w, H: h}))
	if s.up+h < s.rows {
		c.PutRight(w, h+1, 12, " more ↓ ", canvas.Fg(canvas.Key))
	}
}

// concerns says whether a group's keys do something here: those of the stepper and
// of the register are told where they work.
func (s *helpScreen) concerns(g keymap.Group) bool {
	if g != keymap.Steps && g != keymap.Estate {
		return true
	}
	if s.in == nil {
		return false
	}
	return slices.ContainsFunc(s.in.hints(), func(a keymap.Action) bool { return s.keys.Binding(a).Group == g })
}

// names are a binding's keys. In plain letters an arrow would be another key's sign.
func (s *helpScreen) names(b keymap.Binding) string {
	names := s.keys.Names(b)
	if !s.ascii {
		return names
	}
	return strings.NewReplacer("←", "left", "→", "right", "↑", "up", "↓", "down").Replace(names)
}

func (s *helpScreen) drawGroup(c canvas.Canvas, g keymap.Group) int {
	w, _ := c.Size()
	c.Put(1, 0, string(g), canvas.Fg(canvas.Title).With(canvas.Bold))
	y, says := 1, 20
	if s.ascii {
		says = 24 // for arrows in letters
	}
	for _, b := range s.keys.Bindings() {
		if b.Group != g {
			continue
		}
		c.PutFit(2, y, says-3, s.names(b), canvas.Fg(canvas.Key).With(canvas.Bold))
		for _, l := range text.Wrap(b.Long, max(8, w-says)) {
			c.Put(says, y, l, canvas.Fg(canvas.Text))
			y++
		}
	}
	return y
}

func (s *helpScreen) drawLegend(c canvas.Canvas) int {
	w, _ := c.Size()
	c.Put(1, 0, "Signs", canvas.Fg(canvas.Title).With(canvas.Bold))
	y := 1
	x := 2
	for _, st := range []world.RungState{world.RungPassed, world.RungVerifying, world.RungFailing, world.RungRevoked, world.RungVoid, world.RungPending, world.RungLocked} {
		m := rungSign(st)
		if x+len(m.Word)+4 > w {
			x, y = 2, y+1
		}
		c.Set(x, y, m.Shape, m.Style.With(canvas.Bold))
		x = c.Put(x+2, y, m.Word, canvas.Fg(canvas.Text)) + 2
	}
	y += 2
	c.Put(2, y, "✓ preserved", canvas.Fg(canvas.Ok).With(canvas.Bold))
	c.PutFit(14, y, w-15, "kept as it failed, not healthy", canvas.Fg(canvas.Text))
	y++
	y += topology.DrawLegend(c, canvas.Rect{X: 2, Y: y, W: w - 3, H: 20}) + 1
	for _, l := range []struct {
		sign rune
		st   canvas.Style
		word string
	}{
		{'●', canvas.Fg(canvas.Ok), "a milestone passed"},
		{'★', canvas.Fg(canvas.Ok), "durable"},
		{'┄', canvas.Fg(canvas.Bad), "a run of equal failures"},
		{'⚔', canvas.Fg(canvas.Warn), "the referee attacked a claim"},
		{'↶', canvas.Fg(canvas.Bad), "a milestone was revoked"},
		{faultShade, canvas.Fg(canvas.Warn), "a fault was on the seat   ↯ one that did not bite"},
		{noteSign, canvas.Fg(canvas.Accent), "an operator's note"},
		{rulingSign, canvas.Fg(canvas.Warn), "a referee's ruling"},
		{signAcknowledged, canvas.Fg(canvas.Ok), "writes of the referee's client acknowledged"},
		{signFailed, canvas.Fg(canvas.Bad), "… declined   ? may have happened or not   −3 lost at the end"},
		{'·', canvas.Fg(canvas.Dim), "a pass later in the recording"},
		{'▲', canvas.Fg(canvas.Focus), "the playhead"},
		{'○', canvas.Fg(canvas.Text), "below a lane: a pass of the heat behind, −1.5 s: sooner than it"},
		{'$', canvas.Fg(canvas.Accent), "a command   ▸ a session   ⇅ files   → a forward"},
		{'✎', canvas.Fg(canvas.Warn), "a mutation   ↻ lifecycle   ≡ validation   ◦ discovery"},
		{'»', canvas.Fg(canvas.Accent), "the user says   « the agent says   ≈ its reasoning"},
		{'≠', canvas.Fg(canvas.Warn), "the reference judged otherwise   ⚠ has findings"},
	} {
		c.Set(2, y, l.sign, l.st)
		c.PutFit(4, y, w-5, l.word, canvas.Fg(canvas.Text))
		y++
	}
	return y
}
