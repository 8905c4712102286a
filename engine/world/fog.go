package world

import "refbox/engine/arena"

// Hidden are the nodes of the arena's topology, by id, that a fog of war still
// hides in a seat; none where the arena has none. What a seat has observed is what
// it has shown to the referee: a node is known once the milestone that it stands
// for has passed there, if only until it was revoked. A node that stands for none
// is known from the start when it is a client, and otherwise with the first node
// that is linked to it. Everything is known when the heat is over.
func Hidden(m *arena.Manifest, w *World, s *Seat) map[string]bool {
	if m == nil || m.FogOfWar == nil || !m.FogOfWar.HideTopologyUntilObserved || m.Visualization == nil || w.Over() {
		return nil
	}
	hidden, shown := map[string]bool{}, map[string]bool{}
	for _, n := range m.Visualization.Nodes {
		known := n.Kind == arena.NodeClient
		if n.Milestone != nil {
			ms := s.Milestone(*n.Milestone)
			known = ms != nil && (ms.Passed || ms.Revoked > 0)
			shown[n.ID] = known
		}
		if !known {
			hidden[n.ID] = true
		}
	}
	for _, l := range m.Visualization.Links {
		for _, end := range [][2]string{{l.From, l.To}, {l.To, l.From}} {
			if _, stands := shown[end[1]]; !stands && shown[end[0]] {
				delete(hidden, end[1])
			}
		}
	}
	return hidden
}
