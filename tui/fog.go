package tui

import (
	"maps"
	"slices"
	"strings"

	"refbox/engine/world"
	"refbox/tui/topology"
)

// hidden are the nodes that the fog of war still hides in a seat.
func (h *heat) hidden(seat *world.Seat) map[string]bool {
	return world.Hidden(h.manifest, h.world, seat)
}

// fogKey tells layouts of one picture apart by what is hidden in them.
func fogKey(hidden map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(hidden)), " ")
}

// veiled is a graph in which hidden nodes are where they are, and nothing else is
// told of them.
func veiled(g topology.Graph, hidden map[string]bool) topology.Graph {
	if len(hidden) == 0 {
		return g
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; hidden[n.ID] {
			n.Name, n.Kind, n.Says = "unknown", topology.Service, ""
		}
	}
	g.Links = slices.DeleteFunc(g.Links, func(l topology.Link) bool { return hidden[l.From] || hidden[l.To] })
	return g
}
