package topology

import (
	"strings"

	"refbox/engine/text"
)

// attempt is one way to show a graph: a form, how long a name line may get (0: as long
// as it is), whether names take two lines, and the room between nodes.
type attempt struct {
	form Form
	most int
	wrap bool
	room spacing
}

// attempts are tried from the richest to the poorest.
var attempts = []attempt{
	{Full, 0, false, spacing{4, 2, 9, 3, 2, 1}},
	{Full, 0, false, spacing{3, 1, 7, 2, 1, 0}},
	{Boxed, 0, false, spacing{3, 2, 7, 2, 1, 1}},
	{Boxed, 0, false, spacing{3, 1, 5, 2, 1, 0}},
	{Chip, 0, false, spacing{4, 1, 6, 2, 2, 1}},
	{Chip, 0, false, spacing{3, 1, 4, 2, 1, 0}},
	{Tight, 0, true, spacing{3, 1, 4, 2, 1, 0}},
	{Tight, 0, false, spacing{2, 1, 3, 2, 0, 0}},
	{Tight, 0, true, spacing{2, 1, 3, 1, 0, 0}},
	{Tight, 9, true, spacing{2, 1, 3, 1, 0, 0}},
	{Tight, 7, true, spacing{2, 1, 3, 1, 0, 0}},
	{Tight, 5, false, spacing{2, 1, 3, 1, 0, 0}},
}

// What counts against an attempt, beside what its ways cost: calm lines are worth
// something, whole names more, a link that is drawn at all the most.
const (
	badLost = 600
	badCut  = 150
	badForm = 120 // a step down in form
)

// effort bounds the time of one Compute: the states that all its searches may visit
// before it settles for the best picture so far.
const effort = 30000

// Compute lays g out on w × h cells. It takes a few milliseconds: keep the result for
// as long as graph and size stay.
func Compute(g Graph, w, h int) Layout {
	l := Layout{W: max(0, w), H: max(0, h), Form: List, Graph: g, Boxes: make([]Box, len(g.Nodes)), Paths: make([]Path, len(g.Links))}
	if len(g.Nodes) == 0 || l.W == 0 || l.H == 0 {
		return l
	}
	ends := g.ends()
	work := effort
	for rows := 0; rows <= l.H/2; {
		best, ok := tryAll(g, ends, l.W, l.H-rows, &work)
		if !ok {
			break
		}
		notes := best.notes()
		if len(notes) <= rows {
			best.addNotes(notes, l.H-rows)
			best.H = l.H
			best.placeSayings()
			return best
		}
		if rows > 0 && len(notes) > 2*rows {
			break
		}
		rows = len(notes)
	}
	l = list(l, ends)
	l.placeSayings()
	return l
}

// Drawn counts what is shown whole: nodes with all of their name, links with a way.
func (l Layout) Drawn() int {
	n := 0
	for _, b := range l.Boxes {
		if len(b.Lines) > 0 && !strings.Contains(strings.Join(b.Lines, ""), text.Ellipsis) {
			n++
		}
	}
	for _, p := range l.Paths {
		if len(p) > 0 {
			n++
		}
	}
	return n
}

// ends returns the two nodes of each link, -1 where the id is unknown.
func (g Graph) ends() [][2]int {
	at := make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		if _, dup := at[n.ID]; !dup {
			at[n.ID] = i
		}
	}
	ends := make([][2]int, len(g.Links))
	for i, l := range g.Links {
		for k, id := range [2]string{l.From, l.To} {
			n, ok := at[id]
			if !ok {
				n = -1
			}
			ends[i][k] = n
		}
	}
	return ends
}

// tryAll returns the first attempt that draws everything, else the one that leaves
// out the least; false if the nodes do not fit in any.
func tryAll(g Graph, ends [][2]int, w, h int, work *int) (Layout, bool) {
	linked := make(map[[2]int]bool, len(ends))
	for _, e := range ends {
		linked[e] = true
	}
	var best Layout
	bestBad, found, whole := 0, false, false
	for _, a := range attempts {
		for _, align := range [2]bool{true, false} {
			l, sizes := a.layout(g, w, h)
			if whole && a.form > best.Form {
				return best, true // a poorer form cannot say more
			}
			bad, cut := int(a.form)*badForm, false
			for i, n := range g.Nodes {
				if len(l.Boxes[i].Lines) == 1 && l.Boxes[i].Lines[0] == n.name() {
					continue
				}
				bad += badCut / 5
				if strings.Contains(strings.Join(l.Boxes[i].Lines, ""), text.Ellipsis) {
					bad += badCut
					cut = true
				}
			}
			if found && *work <= 0 || found && bad >= bestBad || crowded(sizes, a.form, w, h) {
				continue
			}
			rects, ok := place(g, sizes, linked, w, h, a.room, align)
			if !ok {
				continue
			}
			for i := range rects {
				l.Boxes[i].Rect = rects[i]
			}
			paths, lost, cost := routeAll(w, h, rects, a.form, ends, work)
			l.Paths = paths
			lost += l.placeLabels()
			bad += int(cost) + lost*badLost
			if !found || bad < bestBad {
				best, bestBad, found, whole = l, bad, true, lost == 0 && !cut
			}
		}
	}
	return best, found
}

// crowded keeps the rich forms for areas with room around them.
func crowded(sizes []Point, f Form, w, h int) bool {
	area := 0
	for _, s := range sizes {
		area += s.X * s.Y
	}
	share := 100
	switch f {
	case Full:
		share = 22
	case Boxed:
		share = 36
	}
	return area*100 > share*w*h
}

// layout returns an empty layout of the attempt and the sizes of its nodes.
func (a attempt) layout(g Graph, w, h int) (Layout, []Point) {
	l := Layout{W: w, H: h, Form: a.form, Graph: g, Boxes: make([]Box, len(g.Nodes)), Paths: make([]Path, len(g.Links))}
	sizes := make([]Point, len(g.Nodes))
	for i, n := range g.Nodes {
		lines := nameLines(n.name(), a.most, a.wrap)
		wide := 0
		for _, s := range lines {
			wide = max(wide, text.Width(s))
		}
		l.Boxes[i].Lines = lines
		switch a.form {
		case Full:
			sizes[i] = Point{max(wide+4, len(n.kindWord())+5, len("verifying")+4, text.Width(n.Says)+4), 4}
		case Boxed:
			sizes[i] = Point{max(wide+4, len(n.kindWord())+5), 3}
			if n.Says != "" {
				sizes[i].X = max(sizes[i].X, text.Width(n.Says)+5)
			}
		case Chip:
			sizes[i] = Point{wide + 4, len(lines)}
		default:
			sizes[i] = Point{wide + 3, len(lines)}
		}
	}
	return l, sizes
}

func (n Node) name() string {
	if n.Name == "" {
		return n.ID
	}
	return n.Name
}

// kindWord is the word in a node's outline.
func (n Node) kindWord() string {
	for _, k := range NodeKinds() {
		if n.Kind == k {
			return string(k)
		}
	}
	return string(Service)
}

// nameLines returns a name on one line, or on two if wrap is set and that is narrower;
// each line cut with "…" to most cells, if most is not 0.
func nameLines(name string, most int, wrap bool) []string {
	lines := []string{name}
	if words := strings.Fields(name); wrap && len(words) > 1 && text.Width(name) > 7 {
		best := text.Width(name)
		for i := 1; i < len(words); i++ {
			a, b := strings.Join(words[:i], " "), strings.Join(words[i:], " ")
			if wide := max(text.Width(a), text.Width(b)); wide < best {
				best, lines = wide, []string{a, b}
			}
		}
	}
	if most > 0 {
		for i := range lines {
			lines[i] = text.Truncate(lines[i], most, text.Ellipsis)
		}
	}
	return lines
}

// notes returns the lines that name what is not drawn: links without a way, labels
// without a place.
func (l *Layout) notes() [][]Words {
	placed := make(map[int]bool, len(l.Texts))
	for _, t := range l.Texts {
		placed[t.Link] = true
	}
	var items []Words
	for i, k := range l.Graph.Links {
		if l.Paths[i] != nil && (k.Label == "" || placed[i]) {
			continue
		}
		items = append(items, Words{Text: l.sentence(i), Link: i})
	}
	if len(items) == 0 {
		return nil
	}
	return flow(items, l.W)
}

// sentence says a link in words, its line style between the names, no wider than W.
func (l *Layout) sentence(i int) string {
	k := l.Graph.Links[i]
	h, _ := k.Kind.Line()
	arrow := " " + string(h) + string(h) + "▸ "
	from, to, label := l.nodeName(k.From), l.nodeName(k.To), ""
	if k.Label != "" {
		label = ": " + k.Label
	}
	room := l.W - text.Width(arrow)
	if text.Width(from)+text.Width(to)+text.Width(label) > room {
		label = text.Truncate(label, max(0, min(room/3, room-8)), text.Ellipsis)
		room -= text.Width(label)
		f := min(text.Width(from), max(room/2, room-text.Width(to)))
		from = text.Truncate(from, f, text.Ellipsis)
		to = text.Truncate(to, room-text.Width(from), text.Ellipsis)
	}
	return text.Truncate(from+arrow+to+label, l.W, text.Ellipsis)
}

func (l *Layout) nodeName(id string) string {
	for _, n := range l.Graph.Nodes {
		if n.ID == id {
			return n.name()
		}
	}
	return id + "?"
}

// flow breaks items into lines of w cells, two blanks between items.
func flow(items []Words, w int) [][]Words {
	var lines [][]Words
	x := w
	for _, it := range items {
		wide := text.Width(it.Text)
		if x > 0 && x+2+wide > w || len(lines) == 0 {
			lines, x = append(lines, nil), 0
		}
		if x > 0 {
			x += 2
		}
		it.X = x
		lines[len(lines)-1] = append(lines[len(lines)-1], it)
		x += wide
	}
	return lines
}

func (l *Layout) addNotes(lines [][]Words, y int) {
	for i, line := range lines {
		for _, it := range line {
			it.Y = y + i
			l.Texts = append(l.Texts, it)
		}
	}
}

// placeLabels finds a place for every label of a drawn link and returns how many have
// none.
func (l *Layout) placeLabels() int {
	busy := make([]bool, l.W*l.H)
	for _, b := range l.Boxes {
		for y := b.Y; y < b.Y+b.H; y++ {
			for x := b.X; x < b.X+b.W; x++ {
				busy[y*l.W+x] = true
			}
		}
	}
	uses := make([]int, l.W*l.H)
	for _, p := range l.Paths {
		for _, c := range p {
			uses[c.Y*l.W+c.X]++
			busy[c.Y*l.W+c.X] = true
		}
	}
	lost := 0
	for i, k := range l.Graph.Links {
		if k.Label == "" || l.Paths[i] == nil {
			continue
		}
		at, s, ok := l.labelPlace(l.Paths[i], k.Label, busy, uses)
		if !ok {
			lost++
			continue
		}
		l.Texts = append(l.Texts, Words{at.X, at.Y, s, i})
		for x := range text.Width(s) {
			busy[at.Y*l.W+at.X+x] = true
			uses[at.Y*l.W+at.X+x] = 2
		}
	}
	return lost
}

// labelPlace looks for room on a horizontal run of the way, whole or cut; else beside it.
func (l *Layout) labelPlace(p Path, label string, busy []bool, uses []int) (Point, string, bool) {
	wide := text.Width(label)
	from, length := -1, 0
	for i := 0; i < len(p)-1; {
		j := i
		for j+1 < len(p)-1 && p[j+1].Y == p[i].Y && uses[p[j+1].Y*l.W+p[j+1].X] == 1 {
			j++
		}
		if j-i+1 > length && uses[p[i].Y*l.W+p[i].X] == 1 {
			from, length = i, j-i+1
		}
		i = j + 1
	}
	free := func(x, y, n int) bool {
		if y < 0 || y >= l.H || x < 0 || x+n > l.W {
			return false
		}
		for i := range n {
			if busy[y*l.W+x+i] {
				return false
			}
		}
		return true
	}
	onRun := func(s string) (Point, string, bool) {
		w := text.Width(s)
		left := min(p[from].X, p[from+length-1].X) + (length-w)/2
		return Point{left, p[from].Y}, s, true
	}
	if from >= 0 && length >= wide+4 {
		return onRun(" " + label + " ")
	}
	if from >= 0 && length >= wide+2 {
		return onRun(label)
	}
	for _, c := range p[:len(p)-1] {
		for _, try := range []Point{{c.X + 2, c.Y}, {c.X - wide - 1, c.Y}, {c.X - wide/2, c.Y - 1}, {c.X - wide/2, c.Y + 1}} {
			if free(try.X-1, try.Y, wide+1) {
				return try, label, true
			}
		}
	}
	if from >= 0 && length >= 6 {
		return onRun(text.Truncate(label, length-2, text.Ellipsis))
	}
	return Point{}, "", false
}
