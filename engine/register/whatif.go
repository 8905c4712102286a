package register

import (
	"fmt"
	"slices"
)

// WhatIf is a change that nobody has made: copies that run, nodes that are
// lost in every scenario, paths that carry nothing.
type WhatIf struct {
	Running []string // copies
	Lost    []string // nodes
	Cut     []string // paths: no copy that is fed over one counts as running
}

// Apply returns the register as it would be. It shares what does not change,
// and doc stays as it is. What the register does not have is an error.
//
// A lost node is moved out of its side in every scenario, so that cells and
// findings answer what that scenario would be without it.
func (w WhatIf) Apply(doc *Document) (*Document, error) {
	out := *doc
	out.Stores, out.Scenarios = slices.Clone(doc.Stores), slices.Clone(doc.Scenarios)
	paths := map[string]bool{}
	for i := range doc.Paths {
		paths[doc.Paths[i].ID] = true
	}
	for _, p := range w.Cut {
		if !paths[p] {
			return nil, fmt.Errorf("there is no path %q", p)
		}
	}
	run, nodes := map[string]bool{}, map[string]bool{}
	for _, id := range w.Running {
		run[id] = true
	}
	found := 0
	for i := range out.Stores {
		s := &out.Stores[i]
		s.Copies = slices.Clone(s.Copies)
		for j := range s.Copies {
			c := &s.Copies[j]
			if run[c.ID] {
				c.Status = Running
				found++
			}
			if slices.Contains(w.Cut, c.Path) {
				c.Status = Planned
			}
		}
	}
	if found != len(run) {
		return nil, fmt.Errorf("there are no such copies as %s, all of them", list(w.Running))
	}
	for i := range out.Scenarios {
		s := &out.Scenarios[i]
		s.Partitions, s.LostNodes = slices.Clone(s.Partitions), slices.Clone(s.LostNodes)
		for _, n := range s.LostNodes {
			nodes[n] = true
		}
		for p := range s.Partitions {
			side := &s.Partitions[p]
			for _, n := range side.Nodes {
				nodes[n] = true
			}
			side.Nodes = slices.DeleteFunc(slices.Clone(side.Nodes), func(n string) bool { return slices.Contains(w.Lost, n) })
		}
		for _, n := range w.Lost {
			s.LostNodes = with(s.LostNodes, n)
		}
	}
	for _, n := range w.Lost {
		if len(out.Scenarios) > 0 && !nodes[n] {
			return nil, fmt.Errorf("there is no node %q", n)
		}
	}
	return &out, nil
}
