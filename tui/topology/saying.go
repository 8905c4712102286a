package topology

import "refbox/engine/text"

// placeSayings finds room beside the chips for what their nodes say: next to the
// chip, else above or below it, else anywhere with the node's name. Boxes have a
// place of their own.
func (l *Layout) placeSayings() {
	if l.Form <= Boxed {
		return
	}
	var busy []bool
	for i, n := range l.Graph.Nodes {
		b := l.Boxes[i]
		if n.Says == "" || b.Empty() {
			continue
		}
		if busy == nil {
			busy = l.taken()
		}
		at, s, ok := l.sayingPlace(b, n, busy)
		if !ok {
			continue
		}
		l.Says = append(l.Says, Saying{at.X, at.Y, i, s})
		for x := range text.Width(s) {
			busy[at.Y*l.W+at.X+x] = true
		}
	}
}

// taken marks the cells that something is drawn in.
func (l *Layout) taken() []bool {
	busy := make([]bool, l.W*l.H)
	mark := func(x, y, n int) {
		for i := x; i < x+n; i++ {
			if i >= 0 && i < l.W && y >= 0 && y < l.H {
				busy[y*l.W+i] = true
			}
		}
	}
	for _, b := range l.Boxes {
		for y := b.Y; y < b.Y+b.H; y++ {
			mark(b.X, y, b.W)
		}
	}
	for _, p := range l.Paths {
		for _, c := range p {
			mark(c.X, c.Y, 1)
		}
	}
	for _, t := range l.Texts {
		mark(t.X, t.Y, text.Width(t.Text))
	}
	return busy
}

func (l *Layout) sayingPlace(b Box, n Node, busy []bool) (Point, string, bool) {
	// A blank on both sides keeps it from reading on into something else.
	free := func(x, y, wide int) bool {
		if y < 0 || y >= l.H || x < 0 || x+wide > l.W {
			return false
		}
		for i := max(0, x-1); i < min(l.W, x+wide+1); i++ {
			if busy[y*l.W+i] {
				return false
			}
		}
		return true
	}
	wide := text.Width(n.Says)
	tries := []Point{{b.X + b.W + 1, b.Y}, {b.X - wide - 1, b.Y}}
	for _, y := range []int{b.Y - 1, b.Y + b.H} {
		for x := b.X + 1; x+wide < b.X+b.W; x++ {
			tries = append(tries, Point{x, y})
		}
	}
	for _, p := range tries {
		if free(p.X, p.Y, wide) {
			return p, n.Says, true
		}
	}
	phrase := n.name() + ": " + n.Says
	wide = text.Width(phrase)
	best, found := Point{}, false
	for y := range l.H {
		for x := 0; x+wide <= l.W; x++ {
			if free(x, y, wide) && (!found || l.far(b, x, y, wide) < l.far(b, best.X, best.Y, wide)) {
				best, found = Point{x, y}, true
			}
		}
	}
	return best, phrase, found
}

// far is how far words at (x, y) are from a box; a row counts as two columns.
func (l *Layout) far(b Box, x, y, wide int) int {
	dx := max(0, b.X-(x+wide), x-(b.X+b.W))
	dy := max(0, b.Y-y, y-(b.Y+b.H-1))
	return dx + 2*dy
}
