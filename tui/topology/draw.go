package topology

import (
	"strconv"

	"refbox/engine/text"
	"refbox/tui/canvas"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Draw paints l into r of c: links first, then nodes with their states by node id, then
// words. A node that is not in states shows none.
func Draw(c canvas.Canvas, r canvas.Rect, l Layout, states map[string]State) {
	c = c.Sub(r)
	drawLinks(c, l)
	for i, n := range l.Graph.Nodes {
		drawNode(c, l.Form, l.Boxes[i], n, states[n.ID])
	}
	drawTees(c, l)
	for _, t := range l.Says {
		if s := states[l.Graph.Nodes[t.Node].ID]; s == Healthy {
			c.Put(t.X, t.Y, t.Text, canvas.Fg(canvas.Ok))
		}
	}
	for _, t := range l.Texts {
		st := canvas.Fg(canvas.Dim)
		if t.Link >= 0 {
			st = l.Graph.Links[t.Link].Kind.Style()
		}
		c.Put(t.X, t.Y, t.Text, st)
	}
}

// Arms of a cell, one bit per direction.
const (
	armEast = 1 << iota
	armSouth
	armWest
	armNorth
)

func arm(from, to Point) int {
	switch {
	case to.X > from.X:
		return armEast
	case to.X < from.X:
		return armWest
	case to.Y > from.Y:
		return armSouth
	}
	return armNorth
}

type crossed struct{ across, down int } // links+1

func drawLinks(c canvas.Canvas, l Layout) {
	cells := map[Point]crossed{}
	for i, p := range l.Paths {
		k := l.Graph.Links[i].Kind
		st := k.Style()
		for j, at := range p {
			if j == len(p)-1 {
				if j > 0 {
					c.Set(at.X, at.Y, head(arm(p[j-1], at)), st)
				}
				continue
			}
			out := arm(at, p[j+1])
			in := 0
			if j > 0 {
				in = arm(at, p[j-1])
			} else {
				in = arm(at, l.behind(i, at))
			}
			c.Set(at.X, at.Y, k.glyph(in|out), st)
			x := cells[at]
			switch in | out {
			case armEast | armWest:
				x.across = i + 1
			case armSouth | armNorth:
				x.down = i + 1
			}
			cells[at] = x
			if x.across > 0 && x.down > 0 {
				over := l.Graph.Links[x.across-1].Kind
				c.Set(at.X, at.Y, crossing(over, l.Graph.Links[x.down-1].Kind), over.Style())
			}
		}
	}
}

// behind is the cell of link i's source next to at.
func (l Layout) behind(i int, at Point) Point {
	for n, node := range l.Graph.Nodes {
		if node.ID != l.Graph.Links[i].From {
			continue
		}
		for _, d := range step {
			q := Point{at.X + d.X, at.Y + d.Y}
			if l.Boxes[n].Contains(q.X, q.Y) {
				return q
			}
		}
		break
	}
	return at
}

func head(into int) rune {
	switch into {
	case armEast:
		return '▸'
	case armWest:
		return '◂'
	case armSouth:
		return '▾'
	}
	return '▴'
}

// glyph returns the sign of a link's cell with these arms.
func (k LinkKind) glyph(arms int) rune {
	h, v := k.Line()
	corner := func(light, heavy, double rune) rune {
		switch k {
		case Replication:
			return heavy
		case QueueLink:
			return double
		}
		return light
	}
	switch arms {
	case armEast | armSouth:
		return corner('╭', '┏', '╔')
	case armWest | armSouth:
		return corner('╮', '┓', '╗')
	case armEast | armNorth:
		return corner('╰', '┗', '╚')
	case armWest | armNorth:
		return corner('╯', '┛', '╝')
	case armSouth | armNorth, armSouth, armNorth:
		return v
	}
	return h
}

// crossing returns the sign where a horizontal run crosses a vertical one. Links never
// join, so it always means two links that go straight on.
func crossing(across, down LinkKind) rune {
	switch {
	case across == QueueLink && down == QueueLink:
		return '╬'
	case across == QueueLink:
		return '╪'
	case down == QueueLink:
		return '╫'
	case across == Replication && down == Replication:
		return '╋'
	case across == Replication:
		return '┿'
	case down == Replication:
		return '╂'
	}
	return '┼'
}

// drawTees joins links to the outlines that they leave.
func drawTees(c canvas.Canvas, l Layout) {
	if l.Form > Boxed {
		return
	}
	for i, p := range l.Paths {
		if len(p) == 0 {
			continue
		}
		k := l.Graph.Links[i].Kind
		at := l.behind(i, p[0])
		if r := c.At(at.X, at.Y).R; r != '─' && r != '│' {
			continue // the kind's word stays whole
		}
		c.Set(at.X, at.Y, tee(k, arm(at, p[0])), k.Style())
	}
}

func tee(k LinkKind, out int) rune {
	i := 0
	switch k {
	case Replication:
		i = 1
	case QueueLink:
		i = 2
	}
	switch out {
	case armEast:
		return []rune("├┝╞")[i]
	case armWest:
		return []rune("┤┥╡")[i]
	case armSouth:
		return []rune("┬┰╥")[i]
	}
	return []rune("┴┸╨")[i]
}

func drawNode(c canvas.Canvas, f Form, b Box, n Node, s State) {
	if b.Empty() {
		return
	}
	line, name := n.Kind.Style(), canvas.Fg(canvas.Text)
	if f <= Boxed {
		c.Fill(b.Rect, 0, canvas.Style{})
		c.Box(b.Rect, canvas.Rounded, line)
		c.Put(b.X+1, b.Y, " "+n.kindWord()+" ", line)
		c.Set(b.X+1, b.Y+1, s.Glyph(), s.Style())
		c.Put(b.X+3, b.Y+1, b.Lines[0], name)
		word := s.String()
		if s == Healthy && n.Says != "" {
			word = n.Says
		}
		switch {
		case f == Full:
			c.Put(b.X+3, b.Y+2, word, s.Style())
		case word == n.Says && word != "":
			c.Put(b.X+1, b.Y+b.H-1, " "+word+" ", s.Style())
		}
		return
	}
	left, right := n.Kind.Brackets()
	at := b.X + 2
	if f == Chip {
		at++
	}
	for i, words := range b.Lines {
		y := b.Y + i
		c.Fill(canvas.Rect{X: b.X, Y: y, W: b.W, H: 1}, 0, canvas.Style{})
		c.Set(b.X, y, left, line)
		c.Set(b.X+b.W-1, y, right, line)
		if i == 0 {
			c.Set(b.X+1, y, s.Glyph(), s.Style())
		}
		c.Put(at, y, words, name)
	}
}

// DrawLegend writes what the signs mean into r of c, one entry after the other, and
// returns the rows it took.
func DrawLegend(c canvas.Canvas, r canvas.Rect) int {
	c = c.Sub(r)
	w, _ := c.Size()
	x, y := 0, 0
	put := func(sign, word string, st canvas.Style) {
		wide := text.Width(sign) + 1 + text.Width(word)
		if x > 0 && x+wide > w {
			x, y = 0, y+1
		}
		c.Put(x, y, sign, st)
		c.Put(x+text.Width(sign)+1, y, word, canvas.Fg(canvas.Text))
		x += wide + 3
	}
	next := func() {
		if x > 0 {
			x, y = 0, y+1
		}
	}
	for _, s := range States() {
		put(string(s.Glyph()), s.String(), s.Style())
	}
	next()
	for _, k := range NodeKinds() {
		l, r := k.Brackets()
		put(string(l)+" "+string(r), string(k), k.Style())
	}
	next()
	for _, k := range LinkKinds() {
		h, _ := k.Line()
		put(string(h)+string(h)+string(h)+"▸", string(k), k.Style())
	}
	return y + 1
}
