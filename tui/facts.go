package tui

import (
	"refbox/engine/why"
	"refbox/engine/world"
	"refbox/tui/topology"
)

// facts are what is derived from the world about one seat, once per world: several
// panes of a frame need them, and most frames show the same world.
type facts struct {
	rungs     []world.Rung
	blocker   world.Blocker
	blocked   bool
	outcome   world.Outcome
	explained bool
	why       why.Explanation
	nodes     map[string]topology.State // of the topology; nil until asked for
}

func (h *heat) about(territory string) *facts {
	if f := h.facts[territory]; f != nil {
		return f
	}
	f := &facts{
		rungs:   world.Ladder(h.world, h.manifest, territory),
		outcome: world.OutcomeOf(h.world, territory),
	}
	f.blocker, f.blocked = world.BlockerOf(h.world, h.manifest, territory)
	if h.facts == nil {
		h.facts = map[string]*facts{}
	}
	h.facts[territory] = f
	return f
}

// explain is why the seat stands where it stands.
func (h *heat) explain(territory string) why.Explanation {
	f := h.about(territory)
	if !f.explained {
		f.explained = true
		f.why, _ = why.Explain(h.world, h.manifest, territory)
	}
	return f.why
}

// rung is a seat's rung by its milestone; the zero Rung for none.
func (f *facts) rung(id string) world.Rung {
	for _, r := range f.rungs {
		if r.ID == id {
			return r
		}
	}
	return world.Rung{}
}
