package tui

import (
	"fmt"
	"strings"

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
	if m.help != nil {
		m.help.draw(c.Sub(body))
	}
	if m.dialog != nil {
		m.drawDialog(c.Sub(body))
	}
}

func (m *model) drawTooSmall(c canvas.Canvas) {
	w, h := c.Size()
	line := fmt.Sprintf("needs %d×%d, this is %d×%d; q leaves", minWidth, minHeight, w, h)
	for i, l := range text.Wrap(line, max(1, w)) {
		c.Put(0, max(0, h/2-1)+i, l, canvas.Fg(canvas.Text))
	}
}

func (m *model) drawHeader(c canvas.Canvas) {
	w, _ := c.Size()
	c.Fill(c.Bounds(), ' ', canvas.Style{Fg: canvas.BarText, Bg: canvas.Bar})
	bar := canvas.Style{Fg: canvas.BarText, Bg: canvas.Bar}
	right := c.PutRight(w-1, 0, 8, helpHint(m.cfg.Keys), canvas.Style{Fg: canvas.Key, Bg: canvas.Bar})
	x := c.Put(1, 0, "refbox", bar.With(canvas.Bold))
	x = drawCrumbs(c, x, w*2/5, m.top().crumbs(), bar)
	if room := right - x - 4; room > 10 {
		m.top().status(c.Sub(canvas.Rect{X: x + 2, Y: 0, W: room, H: 1}))
		c.Restyle(c.Bounds(), canvas.Style{Bg: canvas.Bar})
	}
}

// drawCrumbs writes the way to the screen, in at most the cells up to limit. The
// last crumb says where one is, so the ones before it are cut first.
func drawCrumbs(c canvas.Canvas, x, limit int, crumbs []string, bar canvas.Style) int {
	const sep = " ▸ "
	room := limit - x - len(crumbs)*text.Width(sep)
	widths := make([]int, len(crumbs))
	for i := len(crumbs) - 1; i >= 0; i-- {
		left := i * 4 // what the ones before need at least
		widths[i] = max(4, min(text.Width(crumbs[i]), room-left))
		room -= widths[i]
	}
	for i, s := range crumbs {
		x = c.Put(x, 0, sep, canvas.Style{Fg: canvas.Dim, Bg: canvas.Bar})
		st := bar
		if i == len(crumbs)-1 {
			st = st.With(canvas.Bold)
		}
		x = c.PutFit(x, 0, widths[i], s, st)
	}
	return x
}

func helpHint(k keymap.Map) string {
	key, word := k.Hint(keymap.Help)
	return key + " " + word
}

func (m *model) drawFooter(c canvas.Canvas) {
	w, _ := c.Size()
	switch {
	case m.prompt != nil:
		m.prompt.draw(c)
		return
	case m.notice != "":
		c.PutFit(1, 0, w-2, m.notice, canvas.Fg(canvas.Accent))
		return
	}
	drawHints(c, m.cfg.Keys, m.top().hints())
}

// drawHints writes "key word" pairs; those that don't fit are left out whole.
// Two actions with the same word share it, as in "[ ] milestone".
func drawHints(c canvas.Canvas, keys keymap.Map, actions []keymap.Action) {
	w, _ := c.Size()
	x := 1
	for i := 0; i < len(actions); i++ {
		key, word := keys.Hint(actions[i])
		if i+1 < len(actions) {
			if k2, w2 := keys.Hint(actions[i+1]); w2 == word {
				key += " " + k2
				i++
			}
		}
		if x+text.Width(key)+1+text.Width(word) > w-1 {
			return
		}
		x = c.Put(x, 0, key, canvas.Fg(canvas.Key).With(canvas.Bold))
		x = c.Put(x+1, 0, word, canvas.Fg(canvas.Dim)) + 2
	}
}

func (p *prompt) draw(c canvas.Canvas) {
	w, _ := c.Size()
	x := c.Put(1, 0, p.label, canvas.Fg(canvas.Key).With(canvas.Bold))
	value := []rune(p.input.Value())
	pos := min(p.input.Position(), len(value))
	before, after := string(value[:pos]), string(value[pos:])
	for text.Width(before) > w-x-4 && before != "" {
		_, before, _ = strings.Cut(before, string([]rune(before)[0]))
	}
	x = c.Put(x, 0, before, canvas.Fg(canvas.Text))
	at, rest := " ", ""
	if after != "" {
		at, rest = string([]rune(after)[0]), string([]rune(after)[1:])
	}
	x = c.Put(x, 0, at, canvas.Fg(canvas.Text).With(canvas.Reverse|canvas.Underline))
	c.PutFit(x, 0, max(0, w-1-x), rest, canvas.Fg(canvas.Text))
}

func (m *model) drawDialog(c canvas.Canvas) {
	w, h := c.Size()
	d := m.dialog
	width := min(w-4, 72)
	var lines []string
	for _, l := range d.lines {
		lines = append(lines, text.Wrap(l, width-4)...)
	}
	height := min(h, len(lines)+len(d.answers)+4)
	r := canvas.Rect{X: (w - width) / 2, Y: max(0, (h-height)/2), W: width, H: height}
	c.Fill(r, ' ', canvas.Style{})
	in := c.Frame(r, canvas.Double, d.title, "", canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold))
	y := in.Y
	for _, l := range lines {
		c.Put(in.X+1, y, l, canvas.Fg(canvas.Text))
		y++
	}
	y++
	for _, a := range d.answers {
		x := c.Put(in.X+1, y, keymap.Name(a.key), canvas.Fg(canvas.Key).With(canvas.Bold))
		c.PutFit(max(x+2, in.X+8), y, in.W-8, a.word, canvas.Fg(canvas.Text))
		y++
	}
}
