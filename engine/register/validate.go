package register

import (
	"fmt"
	"strings"
)

// validate checks every rule between fields
// (reference/register-and-failure-model.md 1.10). What passes, derives.
func validate(doc *Document, estate *Estate) *problems {
	v := &validator{doc: doc, estate: estate}
	v.estates()
	v.policy()
	v.index()
	for i := range doc.Stores {
		v.store(&doc.Stores[i], fmt.Sprintf("stores[%d]", i))
	}
	v.drains()
	for i := range doc.Migrations {
		v.migration(&doc.Migrations[i], fmt.Sprintf("migrations[%d]", i))
	}
	for i := range doc.Scenarios {
		v.scenario(&doc.Scenarios[i], fmt.Sprintf("scenarios[%d]", i))
	}
	return &v.problems
}

type validator struct {
	problems problems
	doc      *Document
	estate   *Estate
	nodes    map[string]bool
	targets  map[string]bool
	paths    map[string]bool
	stores   map[string]*Store
}

func (v *validator) bad(path, format string, a ...any) {
	v.problems.add(Problem{Path: path, Message: fmt.Sprintf(format, a...)})
}

// id checks one id and that its set does not have it yet.
func (v *validator) id(set map[string]string, path, id string) {
	if why := badID(id); why != "" {
		v.bad(path, "%s", why)
		return
	}
	if first, twice := set[id]; twice {
		v.bad(path, "%q is given twice; the first is %s", id, first)
		return
	}
	set[id] = path
}

// ref checks that what is named exists.
func (v *validator) ref(known map[string]bool, path, what, id string) {
	if !known[id] {
		v.bad(path, "there is no %s %q", what, clip(id))
	}
}

func (v *validator) filled(path, text string) {
	if strings.TrimSpace(text) == "" {
		v.bad(path, "is empty")
	}
}

func (v *validator) policy() {
	p := &v.doc.Policy
	positive := func(name string, n int) {
		if n < 1 {
			v.bad("policy."+name, "must be at least 1")
		}
	}
	positive("copiesRequired", p.CopiesRequired)
	positive("domainsRequired", p.DomainsRequired)
	positive("drillMaxAgeDays", p.DrillMaxAgeDays)
	positive("quorumMinDomains", p.QuorumMinDomains)
	for i, e := range p.UplinkEntities {
		if why := badID(e); why != "" {
			v.bad(fmt.Sprintf("policy.uplinkEntities[%d]", i), "%s", why)
		}
	}
}

// index makes the sets that references are looked up in.
func (v *validator) index() {
	v.paths, v.stores = map[string]bool{}, map[string]*Store{}
	paths, stores, copies := map[string]string{}, map[string]string{}, map[string]string{}
	for i := range v.doc.Paths {
		p := &v.doc.Paths[i]
		v.id(paths, fmt.Sprintf("paths[%d].id", i), p.ID)
		v.paths[p.ID] = true
		for j, t := range p.Transits {
			if why := badID(t); why != "" {
				v.bad(fmt.Sprintf("paths[%d].transits[%d]", i, j), "%s", why)
			}
		}
	}
	if len(v.doc.Stores) == 0 {
		v.bad("stores", "is empty; a register has at least one store")
	}
	for i := range v.doc.Stores {
		s := &v.doc.Stores[i]
		v.id(stores, fmt.Sprintf("stores[%d].id", i), s.ID)
		if v.stores[s.ID] == nil {
			v.stores[s.ID] = s
		}
		for j := range s.Copies {
			v.id(copies, fmt.Sprintf("stores[%d].copies[%d].id", i, j), s.Copies[j].ID)
		}
	}
	for _, e := range v.estate.Leases {
		if v.stores[e.Value] == nil {
			v.bad("estate.leases."+e.ID, "there is no store %q", clip(e.Value))
		}
	}
	copiesKnown := map[string]bool{}
	for id := range copies {
		copiesKnown[id] = true
	}
	for _, e := range v.estate.CopyAgeMinutes {
		v.ref(copiesKnown, "estate.copyAgeMinutes."+e.ID, "copy", e.ID)
	}
	accepted := map[string]string{}
	for i := range v.estate.Acceptances {
		a := &v.estate.Acceptances[i]
		at := fmt.Sprintf("estate.acceptances[%d]", i)
		if v.stores[a.StoreID] == nil {
			v.bad(at+".storeId", "there is no store %q", clip(a.StoreID))
		}
		if !a.Code.valid() {
			v.bad(at+".code", "there is no finding %q", clip(string(a.Code)))
		}
		v.filled(at+".reason", a.Reason)
		v.filled(at+".acceptedBy", a.AcceptedBy)
		key := string(a.Code) + " on " + a.StoreID
		if first := accepted[key]; first != "" {
			v.bad(at, "%s is accepted twice; the first is %s", key, first)
		}
		accepted[key] = at
	}
	migrations, scenarios := map[string]string{}, map[string]string{}
	for i := range v.doc.Migrations {
		v.id(migrations, fmt.Sprintf("migrations[%d].id", i), v.doc.Migrations[i].ID)
	}
	for i := range v.doc.Scenarios {
		v.id(scenarios, fmt.Sprintf("scenarios[%d].id", i), v.doc.Scenarios[i].ID)
	}
}

func (v *validator) estates() {
	v.nodes, v.targets = map[string]bool{}, map[string]bool{}
	for _, n := range v.estate.Nodes {
		v.nodes[n.ID] = true
		v.filled("estate.nodes."+n.ID+".domain", n.Value.Domain)
	}
	for _, t := range v.estate.Targets {
		v.targets[t.ID] = true
		at := "estate.targets." + t.ID
		v.filled(at+".domain", t.Value.Domain)
		if n := t.Value.Node; n != nil {
			v.ref(v.nodes, at+".node", "node", *n)
			if node, ok := v.estate.Nodes.Get(*n); ok && node.Domain != t.Value.Domain {
				v.bad(at+".domain", "is %q, but its node %s is in %q", clip(t.Value.Domain), *n, clip(node.Domain))
			}
		}
	}
	v.cycles("estate.dependsOn", v.estate.DependsOn)
}

// cycles finds a ring in what depends on what.
func (v *validator) cycles(at string, deps Keyed[[]string]) {
	index := make(map[string]int, len(deps))
	for i, d := range deps {
		index[d.ID] = i
	}
	const doing, done = 1, 2
	state := make([]int8, len(deps))
	type frame struct{ node, next int }
	for start := range deps {
		if state[start] != 0 {
			continue
		}
		stack := []frame{{start, 0}}
		state[start] = doing
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(deps[top.node].Value) {
				state[top.node] = done
				stack = stack[:len(stack)-1]
				continue
			}
			on := deps[top.node].Value[top.next]
			here := fmt.Sprintf("%s.%s[%d]", at, deps[top.node].ID, top.next)
			top.next++
			i, known := index[on]
			switch {
			case !known || state[i] == done:
			case state[i] == doing:
				var ring []string
				for _, f := range stack {
					if len(ring) > 0 || f.node == i {
						ring = append(ring, deps[f.node].ID)
					}
				}
				v.bad(here, "depends on itself: %s", clip(strings.Join(append(ring, on), " → ")))
			default:
				state[i] = doing
				stack = append(stack, frame{i, 0})
			}
		}
	}
}

// drains finds queues that drain into each other.
func (v *validator) drains() {
	for i := range v.doc.Stores {
		s := &v.doc.Stores[i]
		if s.LocalFirst == nil {
			continue
		}
		seen := map[string]bool{s.ID: true}
		chain := []string{s.ID}
		for next := v.stores[s.LocalFirst.DrainsTo]; next != nil && len(chain) <= len(v.stores); next = v.stores[next.LocalFirst.DrainsTo] {
			chain = append(chain, next.ID)
			if next.ID == s.ID {
				v.bad(fmt.Sprintf("stores[%d].localFirst.drainsTo", i), "drains into itself: %s", clip(strings.Join(chain, " → ")))
				break
			}
			if seen[next.ID] || next.LocalFirst == nil {
				break
			}
			seen[next.ID] = true
		}
	}
}

// both checks that two things are declared together or not at all.
func (v *validator) both(path string, declared, wanted bool, why string) {
	switch {
	case wanted && !declared:
		v.bad(path, "is missing: %s", why)
	case declared && !wanted:
		v.bad(path, "does not belong here: only %s", why)
	}
}

func (v *validator) store(s *Store, at string) {
	v.filled(at+".name", s.Name)
	v.primary(s, at+".primary")
	vendor := s.WriteModel == VendorManaged
	v.both(at+".primary.vendor", s.Primary.Held(), vendor, "a vendor-managed store has a vendor's primary")
	v.both(at+".vendor", s.Vendor != nil, vendor, "a vendor-managed store has a vendor block")
	v.both(at+".objectives", s.Objectives != nil, s.Durability == Durable, "a durable store has objectives")
	v.both(at+".rebuild", s.Rebuild != nil, s.Durability == Rebuildable, "a rebuildable store has a rebuild block")
	v.both(at+".localFirst", s.LocalFirst != nil, s.WriteModel == LocalFirstQueue, "a local-first-queue has a localFirst block")
	if s.EntityID != nil {
		if why := badID(*s.EntityID); why != "" {
			v.bad(at+".entityId", "%s", why)
		}
		if s.Unmonitored != nil {
			v.bad(at+".unmonitored", "says why nothing watches the store, but entityId names what does; keep one")
		}
	}
	if l := s.LocalFirst; l != nil {
		switch {
		case v.stores[l.DrainsTo] == nil:
			v.bad(at+".localFirst.drainsTo", "there is no store %q", clip(l.DrainsTo))
		case l.DrainsTo == s.ID:
			v.bad(at+".localFirst.drainsTo", "is the store itself; a queue drains into another one")
		}
	}
	writers := map[string]string{}
	for i := range s.Writers {
		w := &s.Writers[i]
		v.id(writers, fmt.Sprintf("%s.writers[%d].id", at, i), w.ID)
		v.writer(s, w, fmt.Sprintf("%s.writers[%d]", at, i))
	}
	copies := map[string]*Copy{}
	for i := range s.Copies {
		c := &s.Copies[i]
		copies[c.ID] = c
		v.copy(c, fmt.Sprintf("%s.copies[%d]", at, i))
	}
	if p := s.Promotion; p != nil {
		switch c := copies[p.From]; {
		case c == nil:
			v.bad(at+".promotion.from", "the store has no copy %q", clip(p.From))
		case c.Kind != StreamingReplica:
			v.bad(at+".promotion.from", "%s is a %s; only a streaming-replica can be promoted", c.ID, c.Kind)
		}
		v.drills(p.Drills, at+".promotion.drills")
	}
	if r := s.Restore; r != nil {
		switch c := copies[r.From]; {
		case c == nil:
			v.bad(at+".restore.from", "the store has no copy %q", clip(r.From))
		case c.Kind == StreamingReplica:
			v.bad(at+".restore.from", "%s is a streaming-replica, which cannot be restored from", c.ID)
		}
		v.drills(r.Drills, at+".restore.drills")
	}
	for i, r := range s.Rehearsals {
		v.measure(fmt.Sprintf("%s.rehearsals[%d]", at, i), r.Outcome, r.MeasuredMinutes, r.MeasuredMs)
	}
}

func (v *validator) drills(list []Drill, at string) {
	for i, d := range list {
		v.measure(fmt.Sprintf("%s[%d]", at, i), d.Outcome, d.MeasuredMinutes, d.MeasuredMs)
	}
}

// measure checks a drill's time: the exact one, where it is kept, is behind the
// rounded one.
func (v *validator) measure(at string, outcome DrillOutcome, minutes *float64, ms *int64) {
	switch {
	case outcome == Pass && minutes == nil:
		v.bad(at+".measuredMinutes", "is missing: a passed drill has a measured time")
	case ms != nil && minutes == nil:
		v.bad(at+".measuredMinutes", "is missing: measuredMs is %d", *ms)
	case ms != nil && TenthsUp(*ms) != *minutes:
		v.bad(at+".measuredMs", "%d ms are %v min, rounded up to a tenth; measuredMinutes is %v", *ms, TenthsUp(*ms), *minutes)
	}
}

func (v *validator) primary(s *Store, at string) {
	p := s.Primary
	switch {
	case p.Node == "" && p.Vendor == "":
		v.bad(at, "names neither a node nor a vendor")
	case p.Node != "" && p.Vendor != "":
		v.bad(at, "names a node and a vendor; a primary is in one place")
	case p.Node != "":
		v.ref(v.nodes, at+".node", "node", p.Node)
		if p.Domain != "" || p.Region != "" {
			v.bad(at, "domain and region are a vendor's; a node's domain is in the estate")
		}
	case p.Domain == "":
		v.bad(at+".domain", "is missing: a vendor's primary has a failure domain")
	}
}

func (v *validator) writer(s *Store, w *Writer, at string) {
	v.ref(v.nodes, at+".node", "node", w.Node)
	if w.Path != nil {
		v.ref(v.paths, at+".path", "path", *w.Path)
	} else if s.Primary.Node != w.Node {
		v.bad(at+".path", "is missing: a writer that is not on the primary's node needs a path")
	}
	v.both(at+".via", w.Via != nil, w.Mode == Queued, "a queued writer has a store that it goes via")
	if w.Via != nil {
		switch via := v.stores[*w.Via]; {
		case via == nil:
			v.bad(at+".via", "there is no store %q", clip(*w.Via))
		case via.LocalFirst == nil || via.LocalFirst.DrainsTo != s.ID:
			v.bad(at+".via", "%s is not a local-first store that drains into %s", via.ID, s.ID)
		}
	}
}

func (v *validator) copy(c *Copy, at string) {
	v.ref(v.targets, at+".target", "target", c.Target)
	v.ref(v.nodes, at+".node", "node", c.Node)
	v.ref(v.paths, at+".path", "path", c.Path)
	v.both(at+".lagSec", c.LagSec != nil, c.Mode == Continuous, "a continuous copy has a lag")
	v.both(at+".intervalMinutes", c.IntervalMinutes != nil, c.Mode == Periodic, "a periodic copy has an interval")
	if c.Serves == ServesReads && c.Kind != StreamingReplica {
		v.bad(at+".serves", "only a streaming-replica serves reads; this is a %s", c.Kind)
	}
}

func (v *validator) migration(m *Migration, at string) {
	v.filled(at+".name", m.Name)
	s := v.stores[m.Store]
	if s == nil {
		v.bad(at+".store", "there is no store %q", clip(m.Store))
		return
	}
	has := func(path string, id *string) {
		if id == nil {
			return
		}
		for i := range s.Copies {
			if s.Copies[i].ID == *id {
				return
			}
		}
		v.bad(path, "%s has no copy %q", s.ID, clip(*id))
	}
	has(at+".backupGate", m.BackupGate)
	has(at+".rollback.from", m.Rollback.From)
	if m.Reversible != (m.Rollback.Method == InverseMigration) {
		v.bad(at+".reversible", "is %t, but the rollback's method is %s; a change is reversible when an inverse-migration undoes it", m.Reversible, m.Rollback.Method)
	}
}

func (v *validator) scenario(s *Scenario, at string) {
	v.filled(at+".name", s.Name)
	partitions, place := map[string]string{}, map[string]string{}
	operators := 0
	put := func(path, node string) {
		v.ref(v.nodes, path, "node", node)
		if first, twice := place[node]; twice {
			v.bad(path, "node %q is in two places; the first is %s", clip(node), first)
			return
		}
		place[node] = path
	}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		pat := fmt.Sprintf("%s.partitions[%d]", at, i)
		v.id(partitions, pat+".id", p.ID)
		for j, n := range p.Nodes {
			put(fmt.Sprintf("%s.nodes[%d]", pat, j), n)
		}
		if p.Operator {
			operators++
		}
	}
	for j, n := range s.LostNodes {
		put(fmt.Sprintf("%s.lostNodes[%d]", at, j), n)
	}
	if operators != 1 {
		v.bad(at+".partitions", "the operator is on %d sides; it must be exactly one", operators)
	}
	for _, n := range v.estate.Nodes {
		if place[n.ID] == "" {
			v.bad(at, "says nothing about node %s: every node is on one side or lost", n.ID)
		}
	}
}
