package arena

import (
	"fmt"
	"slices"
	"time"
)

// Milestone returns the milestone of that id.
func (m *Manifest) Milestone(id string) (Milestone, bool) {
	return byID(m.Milestones(), id, func(s Milestone) string { return s.ID })
}

// Milestones are the ladder, in the manifest's order; none for a conquest.
func (m *Manifest) Milestones() []Milestone {
	if m.Build == nil {
		return nil
	}
	return m.Build.Milestones
}

// Class returns the class of that id.
func (m *Manifest) Class(id string) (Class, bool) {
	return byID(m.Classes, id, func(c Class) string { return c.ID })
}

// Territory returns the territory of that id.
func (m *Manifest) Territory(id string) (Territory, bool) {
	return byID(m.Territories, id, func(t Territory) string { return t.ID })
}

// AgentOf returns who plays a territory.
func (m *Manifest) AgentOf(territory string) (Agent, bool) {
	return byID(m.Agents, territory, func(a Agent) string { return a.Territory })
}

func byID[T any](list []T, id string, of func(T) string) (T, bool) {
	for _, x := range list {
		if of(x) == id {
			return x, true
		}
	}
	var zero T
	return zero, false
}

// DependsOn is everything that a milestone rests on, at any distance; itself
// only when it is on a cycle.
func (m *Manifest) DependsOn(id string) map[string]bool {
	below := map[string]bool{}
	todo := []string{id}
	for len(todo) > 0 {
		s, _ := m.Milestone(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		for _, d := range s.DependsOn {
			if !below[d] {
				below[d] = true
				todo = append(todo, d)
			}
		}
	}
	return below
}

// Eligible are the milestones that may be evaluated: not passed, and everything
// that they depend on has. In the manifest's order.
func (m *Manifest) Eligible(passed func(milestone string) bool) []Milestone {
	var out []Milestone
next:
	for _, s := range m.Milestones() {
		if passed(s.ID) {
			continue
		}
		for _, d := range s.DependsOn {
			if !passed(d) {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// Durable reports whether a seat is done: the completion milestone and every
// required one have passed. So a branch that the completion milestone does not
// depend on counts, and required = false means what it says.
func (m *Manifest) Durable(passed func(milestone string) bool) bool {
	if m.Build == nil || !passed(m.Build.CompletionMilestone) {
		return false
	}
	for _, s := range m.Build.Milestones {
		if s.Required && !passed(s.ID) {
			return false
		}
	}
	return true
}

// Points is what the whole ladder is worth.
func (m *Manifest) Points() uint64 {
	sum, _ := m.points()
	return sum
}

// Duration is the heat's length.
func (m *Manifest) Duration() time.Duration {
	return time.Duration(min(m.Rules.DurationSeconds, maxDurationSeconds)) * time.Second
}

// Tick is the longest time between two evaluations of what is eligible.
func (m *Manifest) Tick() time.Duration {
	return time.Duration(min(m.Rules.TickMS, maxDurationSeconds*1000)) * time.Millisecond
}

// Timeout bounds one run of the verifier.
func (s Milestone) Timeout() time.Duration {
	return time.Duration(min(s.TimeoutSeconds, maxDurationSeconds)) * time.Second
}

// Drain bounds the collection of late artefacts after the freeze.
func (m *Manifest) Drain() time.Duration {
	if m.Heat == nil {
		return DefaultDrainSeconds * time.Second
	}
	return time.Duration(min(m.Heat.DrainSeconds, 3600)) * time.Second
}

// Topology is what is drawn: the manifest's, or, when it has none, a client and
// one host that shows the completion milestone.
func (m *Manifest) Topology() Visualization {
	if m.Visualization != nil {
		return *m.Visualization
	}
	var completion *string
	if m.Build != nil {
		completion = &m.Build.CompletionMilestone
	}
	return Visualization{
		Nodes: []Node{
			{ID: "client", DisplayName: "Client", Kind: NodeClient, X: 15, Y: 50},
			{ID: "host", DisplayName: "Host", Kind: NodeHost, Milestone: completion, X: 75, Y: 50},
		},
		Links: []Link{{From: "client", To: "host", Kind: LinkTraffic}},
	}
}

// linked says whether a territory lies on a link between territories.
func (m *Manifest) linked(territory string) bool {
	return slices.ContainsFunc(m.Network.Links, func(l SeatLink) bool { return slices.Contains(l.Territories, territory) })
}

// Machines are those of all territories together, with class and resources resolved,
// which are nil where Validate refuses them.
func (m *Manifest) Machines() (all []Machine) {
	for _, t := range m.Territories {
		list, err := m.machines(t)
		if err != nil {
			list = make([]Machine, max(1, len(t.Machines)))
		}
		all = append(all, list...)
	}
	return all
}

// machines are a territory's, the one by default included, with class and
// resources resolved.
func (m *Manifest) machines(t Territory) ([]Machine, error) {
	list := t.Machines
	if len(list) == 0 {
		list = []Machine{{Name: "host", Guest: "guest"}}
	}
	out := make([]Machine, len(list))
	for i, mc := range list {
		if mc.Resources == nil {
			id := t.Class
			if mc.Class != nil {
				id = *mc.Class
			}
			class, ok := m.Class(id)
			if !ok {
				return nil, fmt.Errorf("territory %s, machine %s: no class is called %q", t.ID, mc.Name, id)
			}
			mc.Resources = &class.Resources
		}
		out[i] = mc
	}
	return out, nil
}
