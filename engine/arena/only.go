package arena

import (
	"fmt"
	"slices"
)

// Only is the package with one of its territories alone, whose machines and task are as
// they are among the others.
func (p *Package) Only(territory string) (*Package, error) {
	m, c := *p.Manifest, *p
	t, ok := m.Territory(territory)
	if !ok || m.Build == nil || m.linked(territory) {
		return nil, fmt.Errorf("%s: territory %s cannot be played alone", p.File, territory)
	}
	m.Territories = []Territory{t}
	m.Agents = slices.DeleteFunc(slices.Clone(m.Agents), func(a Agent) bool { return a.Territory != territory })
	m.Rules.MinimumTerritories = min(m.Rules.MinimumTerritories, 1)
	c.Manifest = &m
	return &c, nil
}
