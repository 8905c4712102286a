package register

import (
	"slices"

	"refbox/engine/internal/plainjson"
)

// Derive derives every field of a register as it stands on a day. It is a pure
// function: it changes neither doc nor estate, believes no derived field of
// doc, and the same input gives the same document. The input must be valid, as
// [Source.Derive] makes sure; the result shares its declared parts.
//
// Its cost is linear in stores × scenarios × copies.
func Derive(doc *Document, estate *Estate, on Date, profile Profile) *Document {
	return deriveModel(doc, estate, on, profile).out
}

func deriveModel(doc *Document, estate *Estate, on Date, profile Profile) *model {
	m := newModel(doc, estate, on, profile)
	for i := range m.out.Stores {
		m.protect(i)
	}
	m.matrix()
	m.findings()
	m.summarise()
	return m
}

// Encode renders a document as the original does: two spaces, no escapes, no
// newline at the end.
func (d *Document) Encode() []byte {
	text, err := plainjson.Indented(d)
	if err != nil {
		// Only a NaN or an unencodable type can fail; neither gets this far.
		panic("register: " + err.Error())
	}
	return text
}

// Cell is the cell of a store and a scenario, by their places in the document;
// nil where there is none. The matrix holds one posture after the other, and in
// each the stores with their scenarios.
func (d *Document) Cell(p Posture, store, scenario int) *Cell {
	if store < 0 || scenario < 0 || store >= len(d.Stores) || scenario >= len(d.Scenarios) {
		return nil
	}
	i := store*len(d.Scenarios) + scenario
	if p == CurrentPosture {
		i += len(d.Stores) * len(d.Scenarios)
	}
	if i >= len(d.Matrix) {
		return nil
	}
	return &d.Matrix[i]
}

// model is a document while it is derived, with every reference resolved.
type model struct {
	out     *Document
	estate  *Estate
	on      Date
	profile Profile

	nodes   map[string]int
	targets map[string]*Target
	uplink  map[string]bool // paths that depend on the uplink
	ours    map[string]bool // domains that host our compute
	ages    map[string]float64
	stores  []storeView
	sides   []sides // by scenario
	// queues lists the local-first stores that drain into a store, or are it.
	queues map[string][]string
	byID   map[string]int // of stores

	accepted map[acceptKey]*acceptanceView
}

// sides resolves a scenario: side of each node, -1 where it is lost.
type sides struct {
	of       []int32
	operator int
}

// storeView is a store with its copies resolved.
type storeView struct {
	m       *model
	at      int // in stores
	s       *Store
	primary int // node, -1 for a vendor
	copies  []copyView
	indices []int  // 0, 1, 2 …: a verdict of one copy is a slice of it
	planned string // " Planned: a, b.", or ""
	cells   [2][]Cell
}

type copyView struct {
	*Copy
	feeder  int
	holder  int // -1: none of our nodes
	offsite bool
	uplink  bool
	noted   []string // see note
	notedBy int
}

func newModel(in *Document, estate *Estate, on Date, profile Profile) *model {
	out := *in
	m := &model{
		out: &out, estate: estate, on: on, profile: profile,
		nodes: map[string]int{}, targets: map[string]*Target{}, uplink: map[string]bool{},
		ours: map[string]bool{}, ages: map[string]float64{}, queues: map[string][]string{},
	}
	out.Available, out.Source = true, ""
	if estate.Available != nil {
		out.Available = *estate.Available
	}
	if estate.Source != nil {
		out.Source = *estate.Source
	}
	out.Profile, out.EvaluatedOn = "", ""
	if profile == Full {
		out.Profile, out.EvaluatedOn = profile, on
	}
	for i := range estate.Nodes {
		n := &estate.Nodes[i]
		m.nodes[n.ID] = i
		if n.Value.Compute {
			m.ours[n.Value.Domain] = true
		}
	}
	for i := range estate.Targets {
		m.targets[estate.Targets[i].ID] = &estate.Targets[i].Value
	}
	for _, a := range estate.CopyAgeMinutes {
		m.ages[a.ID] = a.Value
	}
	m.paths()
	m.scenarios()
	m.resolve()
	return m
}

func (m *model) paths() {
	m.out.Paths = slices.Clone(m.out.Paths)
	on := m.onUplink()
	for i := range m.out.Paths {
		p := &m.out.Paths[i]
		p.DependsOnUplink = slices.ContainsFunc(p.Transits, func(t string) bool { return on[t] })
		m.uplink[p.ID] = p.DependsOnUplink
	}
}

// onUplink is every entity whose closure of dependencies, itself included,
// meets the uplink: those that the uplink reaches backwards.
func (m *model) onUplink() map[string]bool {
	users := map[string][]string{}
	for _, d := range m.estate.DependsOn {
		for _, on := range d.Value {
			users[on] = append(users[on], d.ID)
		}
	}
	reached := map[string]bool{}
	queue := slices.Clone(m.out.Policy.UplinkEntities)
	for len(queue) > 0 {
		e := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if !reached[e] {
			reached[e] = true
			queue = append(queue, users[e]...)
		}
	}
	return reached
}

func (m *model) scenarios() {
	m.out.Scenarios = slices.Clone(m.out.Scenarios)
	m.sides = make([]sides, len(m.out.Scenarios))
	for i := range m.out.Scenarios {
		s := &m.out.Scenarios[i]
		s.Surviving, s.SurvivingToday, s.Lost, s.Total = 0, 0, 0, len(m.out.Stores)
		side := sides{of: make([]int32, len(m.estate.Nodes))}
		for n := range side.of {
			side.of[n] = -1
		}
		for p := range s.Partitions {
			for _, n := range s.Partitions[p].Nodes {
				side.of[m.nodes[n]] = int32(p)
			}
			if s.Partitions[p].Operator {
				side.operator = p
			}
		}
		m.sides[i] = side
	}
}

// resolve copies the stores and derives what concerns one copy at a time.
func (m *model) resolve() {
	m.out.Stores = slices.Clone(m.out.Stores)
	m.stores = make([]storeView, len(m.out.Stores))
	leases := map[string][]string{}
	for _, l := range m.estate.Leases {
		leases[l.Value] = append(leases[l.Value], l.ID)
	}
	health := map[string]string{}
	for _, h := range m.estate.Health {
		health[h.ID] = h.Value
	}
	for i := range m.out.Stores {
		s := &m.out.Stores[i]
		v := &m.stores[i]
		*v = storeView{m: m, at: i, s: s, primary: -1}
		s.HomeDomain = s.Primary.Domain
		if !s.Primary.Held() {
			v.primary = m.nodes[s.Primary.Node]
			s.HomeDomain = m.estate.Nodes[v.primary].Value.Domain
		}
		s.Status = nil
		if s.EntityID != nil {
			status, ok := health[*s.EntityID]
			if !ok {
				status = "unknown"
			}
			s.Status = &status
		}
		s.HostsLeaseFor = leases[s.ID]
		if s.HostsLeaseFor == nil {
			s.HostsLeaseFor = []string{}
		}
		if s.LocalFirst != nil {
			m.queues[s.ID] = append(m.queues[s.ID], s.ID)
			m.queues[s.LocalFirst.DrainsTo] = append(m.queues[s.LocalFirst.DrainsTo], s.ID)
		}
		s.Copies = slices.Clone(s.Copies)
		v.copies, v.indices = make([]copyView, len(s.Copies)), make([]int, len(s.Copies))
		for j := range s.Copies {
			v.indices[j] = j
			v.copies[j] = m.copy(s, &s.Copies[j])
		}
	}
}

func (m *model) copy(s *Store, c *Copy) copyView {
	t := m.targets[c.Target]
	c.Domain = t.Domain
	c.OffDomain = c.Domain != s.HomeDomain
	if c.Mode == Continuous {
		c.ExposureMinutes = *c.LagSec / 60
	} else {
		c.ExposureMinutes = *c.IntervalMinutes
	}
	c.Promotable = c.Kind == StreamingReplica
	c.Restorable = c.Kind != StreamingReplica
	v := copyView{Copy: c, feeder: m.nodes[c.Node], holder: -1, offsite: !m.ours[c.Domain], uplink: m.uplink[c.Path]}
	if t.Node != nil {
		v.holder = m.nodes[*t.Node]
	}
	return v
}

// protect derives what a store's copies give.
func (m *model) protect(i int) {
	v := &m.stores[i]
	s := v.s
	s.Domains = []string{}
	for _, c := range v.copies {
		s.Domains = with(s.Domains, c.Domain)
	}
	s.Domains = with(s.Domains, s.HomeDomain)

	design, offsite := protection(v.copies, func(*copyView) bool { return true })
	s.Design = Design{design.RPOMinutes, design.SiteRPOMinutes, offsite, design.HasOffsite, design.CopyCount}
	s.Today, _ = protection(v.copies, func(c *copyView) bool { return c.Running() })
	s.UplinkExposure = v.exposure()
	s.LastDrill = lastDrill(s.Restore)

	var planned []string
	for _, c := range v.copies {
		if !c.Running() {
			planned = append(planned, c.ID)
		}
	}
	if len(planned) > 0 {
		v.planned = " Planned: " + list(planned) + "."
	}
}

// protection is what the copies that count give, and the recovery point of
// those that are off-site.
func protection(copies []copyView, counts func(*copyView) bool) (Protection, *float64) {
	p := Protection{CopyCount: 1}
	var offsite *float64
	lower := func(to **float64, minutes float64) {
		if *to == nil || minutes < **to {
			*to = &minutes
		}
	}
	for i := range copies {
		c := &copies[i]
		if !counts(c) {
			continue
		}
		p.CopyCount++
		if c.offsite {
			p.HasOffsite = true
			lower(&offsite, c.ExposureMinutes)
		}
		if c.OffDomain {
			lower(&p.SiteRPOMinutes, c.ExposureMinutes)
		}
		if c.Restorable || c.Promotable {
			lower(&p.RPOMinutes, c.ExposureMinutes)
		}
	}
	return p, offsite
}

func (v *storeView) exposure() UplinkExposure {
	var u UplinkExposure
	off, all := false, true
	for _, c := range v.copies {
		switch {
		case !c.OffDomain:
		case !c.Running():
			u.OffsiteIndependentPlanned = u.OffsiteIndependentPlanned || !c.uplink
		default:
			off = true
			all = all && c.uplink
			u.OffsiteIndependent = u.OffsiteIndependent || !c.uplink
		}
	}
	u.Offsite = off && all
	for i := range v.s.Writers {
		u.Writes = u.Writes || v.exposed(&v.s.Writers[i])
	}
	return u
}

// exposed says whether a writer stands still while the uplink is down.
func (v *storeView) exposed(w *Writer) bool {
	return w.Mode != Queued && w.Path != nil && v.m.uplink[*w.Path] && v.m.domain(w.Node) != v.s.HomeDomain
}

func (m *model) domain(node string) string { return m.estate.Nodes[m.nodes[node]].Value.Domain }

// lastDrill is the last restore drill.
func lastDrill(r *Restore) *Drill {
	if r == nil {
		return nil
	}
	return lastOf(r.Drills)
}

// lastOf is the drill with the latest date; of one day, the one declared last.
func lastOf(drills []Drill) *Drill {
	var last *Drill
	for i := range drills {
		if last == nil || drills[i].Date >= last.Date {
			last = &drills[i]
		}
	}
	return last
}

// LastPassed is the promotion drill that its time is known by; nil for none.
func (p *Promotion) LastPassed() *Drill { return lastPassed(p.Drills) }

// LastPassed is the restore drill that its time is known by; nil for none.
func (r *Restore) LastPassed() *Drill { return lastPassed(r.Drills) }

// lastPassed is the last drill that passed, which therefore has a measure.
func lastPassed(drills []Drill) *Drill {
	var last *Drill
	for i := range drills {
		if d := &drills[i]; d.Outcome == Pass && (last == nil || d.Date >= last.Date) {
			last = d
		}
	}
	return last
}

func with(set []string, x string) []string {
	if slices.Contains(set, x) {
		return set
	}
	return append(set, x)
}

func (m *model) summarise() {
	u := Summary{
		Stores: len(m.out.Stores), Scenarios: len(m.out.Scenarios), Migrations: len(m.out.Migrations),
		CellsTotal: len(m.out.Stores) * len(m.out.Scenarios),
	}
	for i := range m.out.Stores {
		s := &m.out.Stores[i]
		u.Copies += len(s.Copies)
		u.CopiesRunning += s.Today.CopyCount - 1
		if s.UplinkExposure.Offsite {
			u.UplinkDependent++
		}
		if s.Durability != Durable {
			continue
		}
		u.Durable++
		if rpo := s.Today.RPOMinutes; rpo != nil && *rpo <= s.Objectives.RPOMinutes {
			u.MeetingRPO++
		}
		if s.Design.HasOffsite {
			u.WithOffsite++
		}
		if s.Today.HasOffsite {
			u.WithOffsiteToday++
		}
		if s.LastDrill != nil && s.LastDrill.Outcome == Pass {
			u.Drilled++
		}
	}
	for i := range m.out.Findings {
		switch m.out.Findings[i].Severity {
		case Gap:
			u.Gaps++
		case IsAccepted:
			u.Accepted++
		default:
			u.Notes++
		}
	}
	for i := range m.out.Scenarios {
		u.CellsSurvivingTarget += m.out.Scenarios[i].Surviving
		u.CellsSurvivingCurrent += m.out.Scenarios[i].SurvivingToday
	}
	for i := range m.out.Migrations {
		if m.out.Migrations[i].Reversible {
			u.MigrationsReversible++
		}
	}
	m.out.Summary = u
}
