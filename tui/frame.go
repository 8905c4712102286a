package tui

import (
	"fmt"
	"slices"

	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// draw composes one frame: header, body, footer, and what lies over them.
func (m *model) draw() {
	c := m.grid
	c.Clear()
	if m.tooSmall() {
		m.drawTooSmall(c)
		return
	}
	head, rest := c.Bounds().CutTop(1)
	foot, body := rest.CutBottom(1)
	m.drawHeader(c.Sub(head))
	m.top().draw(c.Sub(body))
	m.drawFooter(c.Sub(foot))
	m.drawNotice(c)
	if m.help != nil {
		m.help.draw(c.Sub(body))
	}
	if m.dialog != nil {
		m.drawDialog(c.Sub(body))
	}
}

func (m *model) drawTooSmall(c canvas.Canvas) {
	w, h := c.Size()
	leave, _ := m.cfg.Keys.Hint(keymap.Leave)
	line := fmt.Sprintf("needs %d×%d, this is %d×%d; %s leaves", minWidth, minHeight, w, h, leave)
	if d := m.dialog; d != nil {
		// A question that was asked can be answered at any size.
		line = d.title + ":"
		for _, a := range d.answers {
			line += fmt.Sprintf(" %s %s;", keymap.Name(a.key), a.word)
		}
	}
	lines := text.Wrap(line, max(1, w))
	for i, l := range lines {
		c.Put(0, max(0, (h-len(lines))/2)+i, l, canvas.Fg(canvas.Text))
	}
}

func (m *model) drawHeader(c canvas.Canvas) {
	w, _ := c.Size()
	c.Fill(c.Bounds(), ' ', canvas.Style{Fg: canvas.BarText, Bg: canvas.Bar})
	bar := canvas.Style{Fg: canvas.BarText, Bg: canvas.Bar}
	right := c.PutRight(w-1, 0, 8, helpHint(m.cfg.Keys), canvas.Style{Fg: canvas.Key, Bg: canvas.Bar})
	crumbs := m.top().crumbs()
	x, limit := 1, w*2/5
	if w >= 60 {
		x = c.Put(x, 0, "refbox", bar.With(canvas.Bold))
	} else {
		crumbs = crumbs[len(crumbs)-1:] // where one is, no more
	}
	x = drawCrumbs(c, x, limit, crumbs, bar)
	if room := right - x - 4; room >= 9 {
		m.top().status(c.Sub(canvas.Rect{X: x + 2, Y: 0, W: room, H: 1}))
		c.Restyle(c.Bounds(), canvas.Style{Bg: canvas.Bar})
	}
}

// drawCrumbs writes the way to the screen, in at most the cells up to limit. The
// last crumb says where one is, so the ones before it give way first.
func drawCrumbs(c canvas.Canvas, x, limit int, crumbs []string, bar canvas.Style) int {
	const sep = " ▸ "
	width := func() int {
		n := (len(crumbs) - 1) * len([]rune(sep))
		if x > 1 {
			n += len([]rune(sep))
		}
		for _, s := range crumbs {
			n += text.Width(s)
		}
		return n
	}
	if width() > limit-x && len(crumbs) > 1 {
		crumbs = append([]string{text.Ellipsis}, crumbs[1:]...)
		for width() > limit-x && len(crumbs) > 2 {
			crumbs = append(crumbs[:1], crumbs[2:]...)
		}
	}
	for i, s := range crumbs {
		if x > 1 {
			x = c.Put(x, 0, sep, canvas.Style{Fg: canvas.Dim, Bg: canvas.Bar})
		}
		st := bar
		if i == len(crumbs)-1 {
			st = st.With(canvas.Bold)
		}
		x = c.PutFit(x, 0, max(4, limit-x), s, st)
	}
	return x
}

func helpHint(k keymap.Map) string {
	key, word := k.Hint(keymap.Help)
	return key + " " + word
}

// drawNotice shows the notice in the footer; one that is too long for it lies over as many
// rows above as it needs, and nothing else moves.
func (m *model) drawNotice(c canvas.Canvas) {
	if m.notice == "" || m.prompt != nil {
		return
	}
	w, h := c.Size()
	lines := text.Wrap(m.notice, max(1, w-2))
	for i, l := range lines[max(0, len(lines)-h/2):] {
		y := h - min(len(lines), h/2) + i
		c.Fill(canvas.Rect{X: 0, Y: y, W: w, H: 1}, ' ', canvas.Style{})
		c.PutFit(1, y, w-2, l, canvas.Fg(canvas.Accent))
	}
}

func (m *model) drawFooter(c canvas.Canvas) {
	switch {
	case m.prompt != nil:
		m.prompt.draw(c)
		return
	case m.notice != "":
		return // drawNotice shows it
	}
	if r, ok := m.top().(rawKeys); ok && r.wantsRaw() {
		r.bar(m.cfg.Keys, c)
		return
	}
	hints := slices.DeleteFunc(m.top().hints(), func(a keymap.Action) bool { return a == keymap.Back || a == keymap.Leave })
	last := []keymap.Action{keymap.Leave}
	if len(m.screens) > 1 {
		last = []keymap.Action{keymap.Back, keymap.Leave}
	}
	drawHints(c, m.cfg.Keys, hints, last)
}

// hint is a key of the footer and what it does.
type hint struct{ key, word string }

func (h hint) width() int { return text.Width(h.key) + 1 + text.Width(h.word) }

// hintsOf are the actions as the footer shows them: those with the same word share
// it, as in "[ ] milestone". Where there is something to go back to, leaving is
// going back.
func hintsOf(keys keymap.Map, actions []keymap.Action) []hint {
	var out []hint
	for _, a := range actions {
		key, word := keys.Hint(a)
		if a == keymap.Leave && slices.Contains(actions, keymap.Back) {
			_, word = keys.Hint(keymap.Back)
		}
		if n := len(out); n > 0 && out[n-1].word == word {
			out[n-1].key += " " + key
			continue
		}
		out = append(out, hint{key, word})
	}
	return out
}

// drawHints writes "key word" pairs; those that don't fit are left out whole, but
// never the last ones, which say how to get out.
func drawHints(c canvas.Canvas, keys keymap.Map, actions, last []keymap.Action) {
	w, _ := c.Size()
	x, room := 1, w-1
	ends := hintsOf(keys, last)
	for _, h := range ends {
		room -= h.width() + 2
	}
	put := func(h hint) {
		x = c.Put(x, 0, h.key, canvas.Fg(canvas.Key).With(canvas.Bold))
		x = c.Put(x+1, 0, h.word, canvas.Fg(canvas.Dim)) + 2
	}
	for _, h := range hintsOf(keys, actions) {
		if x+h.width() <= room {
			put(h)
		}
	}
	for _, h := range ends {
		put(h)
	}
}
