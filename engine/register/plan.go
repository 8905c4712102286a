package register

import "slices"

// Plan says what the planned copies of a register would change.
type Plan struct {
	Stores []StorePlan `json:"stores"` // those with planned copies
	// Open are the gaps that no planned copy closes.
	Open []Finding `json:"open"`
}

// StorePlan is one store's planned copies.
type StorePlan struct {
	StoreID string `json:"storeId"`
	Name    string `json:"name"`
	// Each is what a copy would change if it alone ran.
	Each []Step `json:"each"`
	// All is what they would change together; what it closes beyond its parts
	// needs more than one of them.
	All Step `json:"all"`
}

// Step is what running some copies would change.
type Step struct {
	Copies []string     `json:"copies"`
	Closes []Finding    `json:"closes"`
	Opens  []Finding    `json:"opens"`
	Cells  []CellChange `json:"cells"` // of the current posture
	Before Protection   `json:"before"`
	After  Protection   `json:"after"`
}

// MakePlan tries the planned copies of a register, each alone and all of a
// store together. The input must be valid, as for [Derive].
func MakePlan(doc *Document, estate *Estate, on Date, profile Profile) *Plan {
	whole := Derive(doc, estate, on, profile)
	plan := &Plan{Stores: []StorePlan{}, Open: []Finding{}}
	closed := map[findingKey]bool{}
	for i := range doc.Stores {
		part := partOf(doc, i)
		facts := factsOf(estate, part)
		var planned []string
		for j := range doc.Stores[i].Copies {
			if c := &doc.Stores[i].Copies[j]; !c.Running() {
				planned = append(planned, c.ID)
			}
		}
		if len(planned) == 0 {
			continue
		}
		base := Derive(part, facts, on, profile)
		try := func(copies []string) Step {
			// Only copies of this very store are named: Apply cannot fail.
			changed, _ := WhatIf{Running: copies}.Apply(part)
			return step(doc.Stores[i].ID, copies, base, Derive(changed, facts, on, profile))
		}
		p := StorePlan{StoreID: doc.Stores[i].ID, Name: doc.Stores[i].Name, All: try(planned)}
		for _, id := range planned {
			p.Each = append(p.Each, try([]string{id}))
		}
		plan.Stores = append(plan.Stores, p)
		for _, s := range append(slices.Clone(p.Each), p.All) {
			for k := range s.Closes {
				closed[s.Closes[k].key()] = true
			}
		}
	}
	for i := range whole.Findings {
		if f := &whole.Findings[i]; f.Severity == Gap && !closed[f.key()] {
			plan.Open = append(plan.Open, *f)
		}
	}
	return plan
}

// partOf is the register of one store, with the queues that drain into it and
// its migrations: what its own findings depend on, and no more, so that a plan
// costs what the stores cost that have one.
func partOf(doc *Document, i int) *Document {
	s := &doc.Stores[i]
	part := *doc
	part.Stores, part.Migrations = []Store{*s}, nil
	for j := range doc.Stores {
		other := &doc.Stores[j]
		if j != i && other.LocalFirst != nil && other.LocalFirst.DrainsTo == s.ID {
			part.Stores = append(part.Stores, *other)
		}
	}
	for j := range doc.Migrations {
		if doc.Migrations[j].Store == s.ID {
			part.Migrations = append(part.Migrations, doc.Migrations[j])
		}
	}
	return &part
}

// factsOf leaves only acceptances of the stores that are there.
func factsOf(estate *Estate, part *Document) *Estate {
	facts := *estate
	facts.Acceptances = nil
	for _, a := range estate.Acceptances {
		if slices.ContainsFunc(part.Stores, func(s Store) bool { return s.ID == a.StoreID }) {
			facts.Acceptances = append(facts.Acceptances, a)
		}
	}
	return &facts
}

func step(store string, copies []string, before, after *Document) Step {
	c := Diff(before, after)
	s := Step{Copies: copies, Closes: []Finding{}, Opens: []Finding{}, Cells: []CellChange{}, Before: before.Stores[0].Today, After: after.Stores[0].Today}
	for _, f := range c.Closed {
		if f.StoreID == store {
			s.Closes = append(s.Closes, f)
		}
	}
	for _, f := range c.Opened {
		if f.StoreID == store {
			s.Opens = append(s.Opens, f)
		}
	}
	for _, cell := range c.Cells {
		if cell.StoreID == store && cell.Posture == CurrentPosture {
			s.Cells = append(s.Cells, cell)
		}
	}
	return s
}

// Plan validates the register and plans it.
func (s *Source) Plan(set Settings) (*Plan, error) {
	e, err := s.Explainer(set)
	if err != nil {
		return nil, err
	}
	m := e.m
	return MakePlan(&s.Declared, m.estate, m.on, m.profile), nil
}
