package topology

import (
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// list is the form for areas where no graph fits: numbered nodes, each followed by its
// links as line style and number of the target.
func list(l Layout, ends [][2]int) Layout {
	l.Form, l.Paths = List, make([]Path, len(l.Graph.Links))
	for _, most := range []int{0, 12, 9, 7, 5, 4, 3, 2} {
		try := l
		if try.fill(ends, most, most == 2) {
			return try
		}
	}
	return l
}

// fill writes the list with names of at most most cells. If force is set it writes what
// fits and says how much is missing.
func (l *Layout) fill(ends [][2]int, most int, force bool) bool {
	l.Boxes, l.Texts = make([]Box, len(l.Graph.Nodes)), nil
	number := func(i int) string { return itoa(i + 1) }
	missing := 0
	x, y := 0, 0
	// take returns the place of n cells, on the next line if this one is full.
	take := func(n, space int) (Point, bool) {
		if x > 0 && x+space+n > l.W {
			x, y = 0, y+1
		} else if x > 0 {
			x += space
		}
		last := 0
		if force && y == l.H-1 {
			last = len("…+99") + 1 // room for the count of what is missing
		}
		if y >= l.H || x+n+last > l.W {
			return Point{}, false
		}
		at := Point{x, y}
		x += n
		return at, true
	}
	perLine := l.perLine(ends, most)
	for i, n := range l.Graph.Nodes {
		if perLine && i > 0 {
			x, y = 0, y+1
		}
		name := n.name()
		if most > 0 {
			name = text.Truncate(name, most, text.Ellipsis)
		}
		num := number(i)
		wide := text.Width(name) + 3
		at, ok := take(len(num)+wide, 2)
		if !ok {
			missing++
		} else {
			l.Texts = append(l.Texts, Words{at.X, at.Y, num, -1})
			l.Boxes[i] = Box{canvas.Rect{X: at.X + len(num), Y: at.Y, W: wide, H: 1}, []string{name}}
		}
		for k, e := range ends {
			if e[0] != i {
				continue
			}
			s := l.shortLink(k, e[1])
			if most > 0 && text.Width(s) > most+4 {
				s = text.Truncate(s, most+4, text.Ellipsis)
			}
			if at, ok := take(text.Width(s), 1); ok {
				l.Texts = append(l.Texts, Words{at.X, at.Y, s, k})
			} else {
				missing++
			}
		}
	}
	for k, e := range ends {
		if e[0] >= 0 {
			continue
		}
		s := l.sentence(k)
		if at, ok := take(text.Width(s), 2); ok {
			l.Texts = append(l.Texts, Words{at.X, at.Y, s, k})
		} else {
			missing++
		}
	}
	if missing > 0 && force {
		s := text.Truncate("…+"+itoa(missing), l.W, text.Ellipsis)
		l.Texts = append(l.Texts, Words{l.W - text.Width(s), l.H - 1, s, -1})
	}
	return missing == 0 || force
}

func (l *Layout) shortLink(k, target int) string {
	h, _ := l.Graph.Links[k].Kind.Line()
	s := string(h) + "▸"
	if target >= 0 {
		s += itoa(target + 1)
	} else {
		s += l.Graph.Links[k].To + "?"
	}
	if label := l.Graph.Links[k].Label; label != "" {
		s += ":" + label
	}
	return s
}

// perLine reports whether every node can have a line of its own.
func (l *Layout) perLine(ends [][2]int, most int) bool {
	if len(l.Graph.Nodes) > l.H {
		return false
	}
	for i, n := range l.Graph.Nodes {
		wide := text.Width(n.name())
		if most > 0 {
			wide = min(wide, most)
		}
		wide += 3 + len(itoa(i+1))
		for k, e := range ends {
			if e[0] == i {
				wide += 1 + text.Width(l.shortLink(k, e[1]))
			}
		}
		if wide > l.W {
			return false
		}
	}
	return true
}
