package topology

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// failover is the graph of the primary-failover arena.
func failover() Graph {
	return Graph{
		Nodes: []Node{
			{"client", "Client", Client, 7, 25, ""}, {"router", "Data Router", Proxy, 31, 25, ""},
			{"old-primary", "Old Primary", Database, 60, 15, "preserved"}, {"replica", "Replica", Database, 84, 43, ""},
			{"fence", "Write Fence", Service, 58, 70, ""}, {"units", "Service Units", Service, 31, 76, ""}, {"host", "NixOS Host", Host, 84, 79, ""},
		},
		Links: []Link{
			{"client", "router", Traffic, ""}, {"router", "old-primary", Traffic, ""}, {"router", "replica", Traffic, ""},
			{"old-primary", "replica", Replication, ""}, {"fence", "old-primary", Lifecycle, ""},
			{"units", "router", Lifecycle, ""}, {"host", "units", Lifecycle, ""},
		},
	}
}

var failoverStates = map[string]State{"router": Healthy, "old-primary": Failed, "replica": Verifying, "fence": Pending, "units": Unknown, "host": Healthy}

func randomGraph(r *rand.Rand) Graph {
	names := []string{"Client", "Data Router", "Old Primary", "Replica", "Write Fence", "Service Units", "Host", "db", "queue of the orders", "カナ サーバ", "worker-1", "S"}
	labels := []string{"", "", "", "reads", "wal stream", "a rather long label of a link"}
	var g Graph
	n := 1 + r.IntN(12)
	for i := range n {
		g.Nodes = append(g.Nodes, Node{fmt.Sprint("n", i), names[r.IntN(len(names))], NodeKinds()[r.IntN(8)], float64(r.IntN(101)), float64(r.IntN(101)), []string{"", "", "preserved"}[r.IntN(3)]})
	}
	for range r.IntN(19) {
		g.Links = append(g.Links, Link{fmt.Sprint("n", r.IntN(n)), fmt.Sprint("n", r.IntN(n)), LinkKinds()[r.IntN(5)], labels[r.IntN(len(labels))]})
	}
	return g
}

// check fails where l breaks what the package guarantees.
func check(t *testing.T, l Layout) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		c := canvas.New(l.W, l.H)
		Draw(c, c.Bounds(), l, nil)
		t.Fatalf("%s\nform %d, %d×%d, %+v\n%s", fmt.Sprintf(format, args...), l.Form, l.W, l.H, l.Graph, c.Flatten(canvas.Output{}))
	}
	area := canvas.Rect{W: l.W, H: l.H}
	at := map[string]int{}
	for i, n := range l.Graph.Nodes {
		at[n.ID] = i
	}
	for i, b := range l.Boxes {
		if b.Empty() {
			if l.Form != List {
				fail("node %d is not shown", i)
			}
			continue
		}
		if b.Intersect(area) != b.Rect {
			fail("node %d at %v is outside", i, b.Rect)
		}
		for j := range i {
			if b.Overlaps(l.Boxes[j].Rect) {
				fail("nodes %d and %d overlap", i, j)
			}
		}
		// A name is whole, or ends in "…".
		name := l.Graph.Nodes[i].Name
		shown := strings.Join(b.Lines, " ")
		if shown != name && !strings.Contains(shown, text.Ellipsis) {
			fail("the name %q is shown as %q", name, shown)
		}
		inside := b.W - 3
		if l.Form <= Chip {
			inside = b.W - 4
		}
		for _, s := range b.Lines {
			if text.Width(s) > inside {
				fail("%q does not fit its box", s)
			}
		}
	}
	words := map[int]bool{}
	covered := map[Point]bool{}
	for _, w := range l.Texts {
		words[w.Link] = true
		box := canvas.Rect{X: w.X, Y: w.Y, W: text.Width(w.Text), H: 1}
		if box.Intersect(area) != box {
			fail("the words %q at %v are outside", w.Text, box)
		}
		for i, b := range l.Boxes {
			if box.Overlaps(b.Rect) {
				fail("the words %q cover node %d", w.Text, i)
			}
		}
		for x := range box.W {
			if covered[Point{w.X + x, w.Y}] {
				fail("the words %q cover others", w.Text)
			}
			covered[Point{w.X + x, w.Y}] = true
		}
	}
	lines := map[Point]bool{}
	for _, p := range l.Paths {
		for _, c := range p {
			lines[c] = true
		}
	}
	for _, w := range l.Says {
		box := canvas.Rect{X: w.X, Y: w.Y, W: text.Width(w.Text), H: 1}
		if box.Intersect(area) != box {
			fail("what node %d says is outside", w.Node)
		}
		for i, b := range l.Boxes {
			if box.Overlaps(b.Rect) {
				fail("what node %d says covers node %d", w.Node, i)
			}
		}
		for x := range box.W {
			if at := (Point{w.X + x, w.Y}); covered[at] || lines[at] {
				fail("what node %d says covers something", w.Node)
			}
		}
	}
	across, down := map[Point]int{}, map[Point]int{}
	for i, p := range l.Paths {
		k := l.Graph.Links[i]
		if len(p) == 0 {
			if !words[i] && l.Form != List {
				fail("link %d is neither drawn nor named", i)
			}
			continue
		}
		if k.Label != "" && !words[i] {
			fail("the label of link %d is not shown", i)
		}
		if len(p) < 2 {
			fail("link %d shows no line", i)
		}
		from, to := l.Boxes[at[k.From]].Rect, l.Boxes[at[k.To]].Rect
		if !touches(p[0], from) || !touches(p[len(p)-1], to) {
			fail("link %d does not touch its nodes", i)
		}
		last := arm(p[len(p)-2], p[len(p)-1])
		for d := range step {
			q := Point{p[len(p)-1].X + step[d].X, p[len(p)-1].Y + step[d].Y}
			if arm(p[len(p)-1], q) == last && !to.Contains(q.X, q.Y) {
				fail("the head of link %d does not point at its target", i)
			}
		}
		for j, c := range p {
			if !area.Contains(c.X, c.Y) {
				fail("link %d leaves the area", i)
			}
			for n, b := range l.Boxes {
				if b.Contains(c.X, c.Y) {
					fail("link %d runs through node %d", i, n)
				}
			}
			arms := 0
			if j > 0 {
				arms |= arm(c, p[j-1])
				if abs(c.X-p[j-1].X)+abs(c.Y-p[j-1].Y) != 1 {
					fail("link %d has a gap", i)
				}
			}
			if j < len(p)-1 {
				arms |= arm(c, p[j+1])
			}
			straightX, straightY := arms == armEast|armWest, arms == armNorth|armSouth
			if !straightY {
				if o, used := across[c]; used {
					fail("links %d and %d share %v", i, o-1, c)
				}
				across[c] = i + 1
			}
			if !straightX {
				if o, used := down[c]; used {
					fail("links %d and %d share %v", i, o-1, c)
				}
				down[c] = i + 1
			}
		}
	}
	if l.Form == List {
		return
	}
	for _, w := range l.Texts {
		for x := range text.Width(w.Text) {
			c := Point{w.X + x, w.Y}
			for _, o := range []int{across[c], down[c]} {
				if o != 0 && o-1 != w.Link {
					fail("the words %q hide link %d", w.Text, o-1)
				}
			}
		}
	}
}

func touches(p Point, r canvas.Rect) bool {
	for _, d := range step {
		if r.Contains(p.X+d.X, p.Y+d.Y) {
			return true
		}
	}
	return false
}

// TestAnyGraph is the property that the screen rests on, for random graphs and the
// arena's, at the sizes of a narrow pane, a wide one and a whole screen.
func TestAnyGraph(t *testing.T) {
	graphs, random := []Graph{failover()}, uint64(500)
	if testing.Short() {
		random = 60
	}
	for seed := range random {
		graphs = append(graphs, randomGraph(rand.New(rand.NewPCG(seed, 5))))
	}
	for _, size := range [][2]int{{36, 9}, {60, 16}, {120, 30}} {
		lists, links, named := 0, 0, 0
		for _, g := range graphs {
			l := Compute(g, size[0], size[1])
			check(t, l)
			if l.Form == List {
				lists++
				continue
			}
			for _, p := range l.Paths {
				links++
				if p == nil {
					named++
				}
			}
		}
		t.Logf("%v: %d of %d graphs are lists; %d of %d links of the others are named in words", size, lists, len(graphs), named, links)
	}
}

func TestAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 150 {
		g := randomGraph(r)
		g.Links = append(g.Links, Link{"n0", "nowhere", Traffic, ""}, Link{"nowhere", "n0", Queue2, "x"})
		check(t, Compute(g, r.IntN(50)-1, r.IntN(20)-1))
	}
	check(t, Compute(Graph{}, 10, 10))
}

// Queue2 is a kind that nobody knows.
const Queue2 LinkKind = "unheard of"

// TestListNamesEverything: where there is room for the list, all of it is there.
func TestListNamesEverything(t *testing.T) {
	l := Compute(failover(), 24, 7)
	if l.Form != List {
		t.Skip("a graph fits")
	}
	said := map[int]bool{}
	for _, w := range l.Texts {
		said[w.Link] = true
	}
	for i := range l.Graph.Links {
		if !said[i] {
			t.Errorf("link %d is not named", i)
		}
	}
	for i, b := range l.Boxes {
		if b.Empty() {
			t.Errorf("node %d is not named", i)
		}
	}
}

func TestSame(t *testing.T) {
	a, b := Compute(failover(), 60, 16), Compute(failover(), 60, 16)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("the same graph and size gave two layouts")
	}
}

// TestToldWithoutColour: no two states, node kinds or link kinds look alike, also in ASCII.
func TestToldWithoutColour(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		seen := map[string]string{}
		add := func(what string, draw func(c canvas.Canvas)) {
			c := canvas.New(12, 4)
			draw(c)
			s := c.Flatten(canvas.Output{ASCII: ascii})
			if o, dup := seen[s]; dup {
				t.Errorf("ascii %v: %s looks like %s", ascii, what, o)
			}
			seen[s] = what
		}
		n := Node{ID: "n", Name: "name", Kind: Service}
		for _, s := range append(States(), None) {
			add("state "+s.String(), func(c canvas.Canvas) { drawNode(c, Tight, Box{canvas.Rect{W: 7, H: 1}, []string{"name"}}, n, s) })
		}
		for _, k := range NodeKinds() {
			n.Kind, n.Name = k, "kind"
			add("kind "+string(k), func(c canvas.Canvas) { drawNode(c, Tight, Box{canvas.Rect{W: 7, H: 1}, []string{"kind"}}, n, None) })
		}
		for _, k := range LinkKinds() {
			h, v := k.Line()
			add("link across "+string(k), func(c canvas.Canvas) { c.Set(0, 0, h, canvas.Style{}) })
			add("link down "+string(k), func(c canvas.Canvas) { c.Set(0, 1, v, canvas.Style{}) })
		}
	}
}

func TestFailoverGolden(t *testing.T) {
	for _, size := range [][2]int{{34, 9}, {60, 16}} {
		l := Compute(failover(), size[0], size[1])
		for i, p := range l.Paths {
			if p == nil {
				t.Errorf("%v: link %d is not drawn", size, i)
			}
		}
		for _, b := range l.Boxes {
			if strings.Contains(strings.Join(b.Lines, ""), text.Ellipsis) {
				t.Errorf("%v: the name %q is cut", size, b.Lines)
			}
		}
		c := canvas.New(size[0], size[1])
		Draw(c, c.Bounds(), l, failoverStates)
		s := c.Flatten(canvas.Output{})
		for _, want := range []string{"✓", "✗", "◐", "○", "?", "▸", "┄"} {
			if !strings.Contains(s, want) {
				t.Errorf("%v shows no %s:\n%s", size, want, s)
			}
		}
	}
}

func BenchmarkCompute(b *testing.B) {
	dense := randomGraph(rand.New(rand.NewPCG(1, 1)))
	for seed := uint64(0); len(dense.Nodes) < 12 || len(dense.Links) < 18; seed++ {
		dense = randomGraph(rand.New(rand.NewPCG(seed, 1)))
	}
	for name, g := range map[string]Graph{"failover": failover(), "dense": dense} {
		for _, s := range [][2]int{{36, 9}, {60, 20}, {120, 30}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, s[0], s[1]), func(b *testing.B) {
				for b.Loop() {
					Compute(g, s[0], s[1])
				}
			})
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	l, c := Compute(failover(), 60, 20), canvas.New(60, 20)
	for b.Loop() {
		Draw(c, c.Bounds(), l, failoverStates)
	}
}

// TestArenaOfTheMission compares failover with the mission's arena.json, where there is one.
func TestArenaOfTheMission(t *testing.T) {
	b, err := os.ReadFile(viewtest.Shared(t, "seeds", "arena.json"))
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Visualization struct {
			Nodes []struct {
				ID   string
				Name string `json:"display_name"`
				Kind NodeKind
				X, Y float64
			}
			Links []Link
		}
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	var g Graph
	for _, n := range a.Visualization.Nodes {
		says := map[string]string{"old-primary": "preserved"}[n.ID] // the screen's part
		g.Nodes = append(g.Nodes, Node{n.ID, n.Name, n.Kind, n.X, n.Y, says})
	}
	g.Links = a.Visualization.Links
	if got, want := fmt.Sprint(g), fmt.Sprint(failover()); got != want {
		t.Errorf("the arena's graph is\n%s\nthe tests use\n%s", got, want)
	}
}

// A node that is kept, not well, says so beside its tick at every size at which
// anything is drawn of the arena, and only with the tick.
func TestSaying(t *testing.T) {
	for _, size := range [][2]int{{36, 8}, {38, 11}, {60, 16}, {116, 10}, {100, 40}} {
		l := Compute(failover(), size[0], size[1])
		check(t, l)
		for state, want := range map[State]bool{Healthy: true, Failed: false, Pending: false, None: false} {
			c := canvas.New(size[0], size[1])
			Draw(c, c.Bounds(), l, map[string]State{"old-primary": state})
			got := strings.Contains(c.Flatten(canvas.Output{}), "preserved")
			if got != want {
				t.Errorf("%v, %s: said %v\n%s", size, state, got, c.Flatten(canvas.Output{}))
			}
		}
	}
}
