package world

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
)

func TestHidden(t *testing.T) {
	ms := func(s string) *string { return &s }
	m := &arena.Manifest{FogOfWar: &arena.FogOfWar{HideTopologyUntilObserved: true}, Visualization: &arena.Visualization{
		Nodes: []arena.Node{{ID: "client", Kind: arena.NodeClient}, {ID: "api", Milestone: ms("up")}, {ID: "store"}, {ID: "worker", Milestone: ms("works")}, {ID: "log"}},
		Links: []arena.Link{{From: "client", To: "api"}, {From: "api", To: "store"}, {From: "worker", To: "log"}},
	}}
	w := New()
	apply := func(bodies ...event.Body) {
		for _, b := range bodies {
			Apply(w, event.Event{Sequence: uint64(w.Events), Body: b})
		}
	}
	check := func(when, want string) {
		t.Helper()
		if got := strings.Join(slices.Sorted(maps.Keys(Hidden(m, w, w.Seat("one")))), " "); got != want {
			t.Errorf("%s: hidden %q, want %q", when, got, want)
		}
	}
	apply(event.TerritoryRegistered{Territory: "one"})
	check("at the start", "api log store worker")
	apply(event.MilestoneFailed{Territory: "one", Milestone: "up"})
	check("refused", "api log store worker")
	apply(event.MilestonePassed{Territory: "one", Milestone: "up"})
	check("passed", "log worker")
	apply(event.MilestoneRevoked{Territory: "one", Milestone: "up"})
	check("revoked: what was seen was seen", "log worker")
	m.FogOfWar.HideTopologyUntilObserved = false
	check("not hidden", "")
	m.FogOfWar.HideTopologyUntilObserved = true
	apply(event.MatchStateChanged{From: "running", To: "finished"})
	check("over", "")
	m.FogOfWar = nil
	check("no fog", "")
}
