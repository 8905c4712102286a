package register

import (
	"fmt"

	"refbox/engine/register/internal/tree"
)

// infer reads the estate's facts off the rendered fields of a document that
// has no inventory (reference/register-and-failure-model.md 1.1). It is a
// fallback: ages of copies, acceptances that match nothing and nodes that hold
// nothing cannot be seen there.
func (s *Source) infer() (*Estate, error) {
	in := &inference{src: s, doc: &s.Declared, estate: &Estate{}, domains: map[string]string{}}
	in.joined()
	in.storeDomains()
	in.copyDomains()
	in.nodes()
	in.targets()
	in.uplink()
	in.findings()
	if len(in.problems.list) > 0 {
		return nil, s.placed(&in.problems)
	}
	return in.estate, nil
}

type inference struct {
	src      *Source
	doc      *Document
	estate   *Estate
	problems problems
	domains  map[string]string // node → domain
	copies   [][]string        // domain of each copy's target, by store and copy
}

// at is the rendered value at a key of a list's element.
func (in *inference) at(list string, i int, keys ...string) *tree.Value {
	v := in.src.root.Get(list)
	if v == nil || i >= len(v.Items) {
		return nil
	}
	v = v.Items[i]
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// text wants a string; null is "".
func (in *inference) text(v *tree.Value, path string) string {
	switch {
	case v == nil || v.Kind == tree.Null:
		return ""
	case v.Kind != tree.String:
		in.problems.add(Problem{Path: path, Message: fmt.Sprintf("is %s, so the estate cannot be inferred from it; give the estate's facts", v.Kind)})
		return ""
	}
	if r, bad := forbidden(v.Text); bad {
		in.problems.add(Problem{Path: path, Message: fmt.Sprintf("holds the control character %U; remove it", r)})
		return ""
	}
	return v.Text
}

func (in *inference) joined() {
	e := in.estate
	if v := in.src.root.Get("available"); v != nil && v.Kind == tree.Bool {
		available := v.Bool
		e.Available = &available
	}
	if v := in.src.root.Get("source"); v != nil && v.Kind == tree.String {
		source := in.text(v, "source")
		e.Source = &source
	}
	health, leases := map[string]bool{}, map[string]bool{}
	for i := range in.doc.Stores {
		st := &in.doc.Stores[i]
		path := fmt.Sprintf("stores[%d]", i)
		if st.EntityID != nil && !health[*st.EntityID] {
			if text := in.text(in.at("stores", i, "status"), path+".status"); text != "" {
				health[*st.EntityID] = true
				e.Health = append(e.Health, Entry[string]{*st.EntityID, text})
			}
		}
		if v := in.at("stores", i, "hostsLeaseFor"); v != nil {
			for j, item := range v.Items {
				if id := in.text(item, fmt.Sprintf("%s.hostsLeaseFor[%d]", path, j)); id != "" && !leases[id] {
					leases[id] = true
					e.Leases = append(e.Leases, Entry[string]{id, st.ID})
				}
			}
		}
	}
}

// storeDomains reads where the primaries are: what a node holds is the best
// witness of where it is.
func (in *inference) storeDomains() {
	for i := range in.doc.Stores {
		p := in.doc.Stores[i].Primary
		if p.Node != "" {
			in.know(p.Node, in.text(in.at("stores", i, "homeDomain"), fmt.Sprintf("stores[%d].homeDomain", i)))
		}
	}
}

func (in *inference) know(node, domain string) {
	if domain != "" && in.domains[node] == "" {
		in.domains[node] = domain
	}
}

// copyDomains reads where targets are, and places the nodes that primaries
// leave open: a target that is the node, a replica that it serves, a copy that
// it writes without leaving the room.
func (in *inference) copyDomains() {
	transits := map[string]int{}
	for i := range in.doc.Paths {
		transits[in.doc.Paths[i].ID] = len(in.doc.Paths[i].Transits)
	}
	type guess struct{ node, domain string }
	var own, replica, near []guess
	for i := range in.doc.Stores {
		list := in.doc.Stores[i].Copies
		domains := make([]string, len(list))
		rendered := in.at("stores", i, "copies")
		for j := range list {
			c := &list[j]
			path := fmt.Sprintf("stores[%d].copies[%d].domain", i, j)
			var v *tree.Value
			if rendered != nil && j < len(rendered.Items) {
				v = rendered.Items[j].Get("domain")
			}
			domains[j] = in.text(v, path)
			if domains[j] == "" {
				in.problems.add(Problem{Path: path, Message: "is missing, so the target's domain cannot be inferred; give the estate's facts"})
				continue
			}
			own = append(own, guess{c.Target, domains[j]})
			if c.Kind == StreamingReplica {
				replica = append(replica, guess{c.Node, domains[j]})
			}
			if n, known := transits[c.Path]; known && n == 0 {
				near = append(near, guess{c.Node, domains[j]})
			}
		}
		in.copies = append(in.copies, domains)
	}
	isNode := map[string]bool{}
	for _, n := range in.nodeIDs() {
		isNode[n] = true
	}
	for _, g := range own {
		if isNode[g.node] {
			in.know(g.node, g.domain)
		}
	}
	for _, g := range append(replica, near...) {
		in.know(g.node, g.domain)
	}
}

// nodeIDs are all nodes that the document names, in its order.
func (in *inference) nodeIDs() []string {
	var ids []string
	seen := map[string]bool{"": true}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for i := range in.doc.Stores {
		s := &in.doc.Stores[i]
		add(s.Primary.Node)
		for j := range s.Writers {
			add(s.Writers[j].Node)
		}
		for j := range s.Copies {
			add(s.Copies[j].Node)
		}
	}
	for i := range in.doc.Scenarios {
		for _, p := range in.doc.Scenarios[i].Partitions {
			for _, n := range p.Nodes {
				add(n)
			}
		}
		for _, n := range in.doc.Scenarios[i].LostNodes {
			add(n)
		}
	}
	return ids
}

// nodes lists them; a domain that none can tell is the node's own. A node runs
// our compute when it holds a primary or a writer.
func (in *inference) nodes() {
	busy := map[string]bool{}
	for i := range in.doc.Stores {
		s := &in.doc.Stores[i]
		busy[s.Primary.Node] = true
		for j := range s.Writers {
			busy[s.Writers[j].Node] = true
		}
	}
	for _, id := range in.nodeIDs() {
		domain := in.domains[id]
		if domain == "" {
			domain = id
		}
		in.estate.Nodes = append(in.estate.Nodes, Entry[Node]{id, Node{domain, busy[id]}})
	}
}

// targets finds who holds the bytes: the node that the target is, the replica's
// node, or the only node that feeds it without leaving the room.
func (in *inference) targets() {
	isNode, short := map[string]bool{}, map[string]bool{}
	for _, n := range in.estate.Nodes {
		isNode[n.ID] = true
	}
	for i := range in.doc.Paths {
		short[in.doc.Paths[i].ID] = len(in.doc.Paths[i].Transits) == 0
	}
	type witness struct {
		domain, path, holder string
		several              bool
	}
	var order []string
	found := map[string]*witness{}
	for i := range in.doc.Stores {
		for j := range in.doc.Stores[i].Copies {
			c := &in.doc.Stores[i].Copies[j]
			domain, path := in.copies[i][j], fmt.Sprintf("stores[%d].copies[%d].domain", i, j)
			w := found[c.Target]
			if w == nil {
				w = &witness{domain: domain, path: path}
				found[c.Target] = w
				order = append(order, c.Target)
			} else if w.domain != domain {
				in.problems.add(Problem{Path: path, Message: fmt.Sprintf("is %q, but %s puts the same target in %q", clip(domain), w.path, clip(w.domain))})
			}
			holder := ""
			switch {
			case isNode[c.Target]:
				holder = c.Target
			case c.Kind == StreamingReplica:
				holder = c.Node
			case short[c.Path] && in.domains[c.Node] == domain:
				holder = c.Node
			}
			if holder != "" {
				w.several = w.several || w.holder != "" && w.holder != holder
				w.holder = holder
			}
		}
	}
	for _, id := range order {
		w := found[id]
		t := Target{Domain: w.domain}
		if w.holder != "" && !w.several && in.domains[w.holder] == w.domain {
			t.Node = &w.holder
		}
		in.estate.Targets = append(in.estate.Targets, Entry[Target]{id, t})
	}
}

// uplink explains each path that depends on the uplink without crossing it: the
// entities on it that no independent path crosses depend on it.
func (in *inference) uplink() {
	uplinks := in.doc.Policy.UplinkEntities
	isUplink, free := map[string]bool{}, map[string]bool{}
	for _, e := range uplinks {
		isUplink[e] = true
	}
	depends := make([]bool, len(in.doc.Paths))
	for i := range in.doc.Paths {
		v := in.at("paths", i, "dependsOnUplink")
		if v == nil || v.Kind != tree.Bool {
			in.problems.add(Problem{Path: fmt.Sprintf("paths[%d].dependsOnUplink", i), Message: "is not a boolean, so the estate cannot be inferred from it; give the estate's facts"})
			continue
		}
		if depends[i] = v.Bool; !v.Bool {
			for _, t := range in.doc.Paths[i].Transits {
				free[t] = true
			}
		}
	}
	done := map[string]bool{}
	for i := range in.doc.Paths {
		var open []string
		crosses := false
		for _, t := range in.doc.Paths[i].Transits {
			crosses = crosses || isUplink[t]
			if !free[t] {
				open = append(open, t)
			}
		}
		if !depends[i] || crosses || len(uplinks) == 0 {
			continue
		}
		for _, t := range open {
			if !done[t] {
				done[t] = true
				in.estate.DependsOn = append(in.estate.DependsOn, Entry[[]string]{t, []string{uplinks[0]}})
			}
		}
	}
}

// findings carry the acceptances that turned them.
func (in *inference) findings() {
	list := in.src.root.Get("findings")
	if list == nil {
		return
	}
	seen := map[string]bool{}
	for i, f := range list.Items {
		acc := f.Get("acceptance")
		if acc == nil || acc.Kind != tree.Object {
			continue
		}
		path := fmt.Sprintf("findings[%d]", i)
		get := func(v *tree.Value, key string) string { return in.text(v.Get(key), path+"."+key) }
		a := Acceptance{
			Code: Code(get(f, "code")), StoreID: get(f, "storeId"),
			Reason: get(acc, "reason"), AcceptedBy: get(acc, "acceptedBy"), ReviewOn: Date(get(acc, "reviewOn")),
		}
		if _, ok := ParseDate(string(a.ReviewOn)); !ok {
			in.problems.add(Problem{Path: path + ".acceptance.reviewOn", Message: fmt.Sprintf("%q is not a day that exists", clip(string(a.ReviewOn)))})
		}
		if key := string(a.Code) + " " + a.StoreID; !seen[key] {
			seen[key] = true
			in.estate.Acceptances = append(in.estate.Acceptances, a)
		}
	}
}
