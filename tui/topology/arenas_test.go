package topology

import (
	"testing"

	"refbox/engine/arena"
)

// bundled is the graph of a bundled arena.
func bundled(t *testing.T, id string) Graph {
	t.Helper()
	p, err := arena.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	var g Graph
	if p.Manifest.Visualization == nil {
		return g
	}
	for _, n := range p.Manifest.Visualization.Nodes {
		g.Nodes = append(g.Nodes, Node{ID: n.ID, Name: n.DisplayName, Kind: NodeKind(n.Kind), X: float64(n.X), Y: float64(n.Y)})
	}
	for _, l := range p.Manifest.Visualization.Links {
		label := ""
		if l.Label != nil {
			label = *l.Label
		}
		g.Links = append(g.Links, Link{From: l.From, To: l.To, Kind: LinkKind(l.Kind), Label: label})
	}
	return g
}

// TestBundledArenas: the graph of each keeps the package's promises at every size, and
// where a seat's pane has the room of three side by side it is drawn, not listed.
func TestBundledArenas(t *testing.T) {
	for _, id := range arena.Bundled() {
		g := bundled(t, id)
		for w := 1; w < 130; w += 3 {
			for h := 1; h < 40; h += 2 {
				check(t, Compute(g, w, h))
			}
		}
		if len(g.Nodes) > 0 && Compute(g, 60, 20).Form == List {
			t.Errorf("%s is not drawn at 60×20", id)
		}
	}
}
