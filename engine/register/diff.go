package register

import (
	"fmt"

	"refbox/engine/text"
)

// Changes are what differs between two derived registers.
type Changes struct {
	Opened   []Finding       `json:"opened"`   // gaps and notes that only the second has
	Closed   []Finding       `json:"closed"`   // those that only the first has
	Turned   []Turned        `json:"turned"`   // those whose severity changed
	Reworded []Turned        `json:"reworded"` // those of which only the detail changed
	Cells    []CellChange    `json:"cells"`
	Points   []PointChange   `json:"recoveryPoints"`
	Summary  []CounterChange `json:"summary"`
	Drills   []Drilled       `json:"drills"` // drills and rehearsals that only the second has
}

// Empty says that nothing differs.
func (c *Changes) Empty() bool {
	return len(c.Drills)+len(c.Opened)+len(c.Closed)+len(c.Turned)+len(c.Reworded)+len(c.Cells)+len(c.Points)+len(c.Summary) == 0
}

// GapsOpened counts what is a gap in the second register only, gaps that were
// accepted before included.
func (c *Changes) GapsOpened() int {
	n := 0
	for i := range c.Opened {
		if c.Opened[i].Severity == Gap {
			n++
		}
	}
	for i := range c.Turned {
		if c.Turned[i].After.Severity == Gap {
			n++
		}
	}
	return n
}

// Turned is a finding before and after.
type Turned struct {
	Before Finding `json:"before"`
	After  Finding `json:"after"`
}

// CellChange is a cell before and after; a side that only one of them has is
// null.
type CellChange struct {
	Posture    Posture `json:"posture"`
	StoreID    string  `json:"storeId"`
	ScenarioID string  `json:"scenarioId"`
	Before     *Cell   `json:"before"`
	After      *Cell   `json:"after"`
}

// PointChange is a store's recovery points before and after.
type PointChange struct {
	StoreID string      `json:"storeId"`
	Before  *Protection `json:"before"` // today; null where the store is absent
	After   *Protection `json:"after"`
}

// CounterChange is one number of the summary.
type CounterChange struct {
	Name   string `json:"name"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

type findingKey struct {
	code                       Code
	store, scenario, migration string
}

func (f *Finding) key() findingKey {
	k := findingKey{code: f.Code, store: f.StoreID}
	if f.ScenarioID != nil {
		k.scenario = *f.ScenarioID
	}
	if f.MigrationID != nil {
		k.migration = *f.MigrationID
	}
	return k
}

// Diff compares two derived registers, findings by what they are about rather
// than by their words.
func Diff(before, after *Document) *Changes {
	c := diffFindings(before.Findings, after.Findings)
	c.Cells = diffCells(before.Matrix, after.Matrix)
	c.Points, c.Summary = diffPoints(before, after), diffSummaries(&before.Summary, &after.Summary)
	c.Drills = diffDrills(before, after)
	return c
}

func diffFindings(before, after []Finding) *Changes {
	c := &Changes{
		Opened: []Finding{}, Closed: []Finding{}, Turned: []Turned{}, Reworded: []Turned{},
		Cells: []CellChange{}, Points: []PointChange{}, Summary: []CounterChange{},
	}
	// A code may be told several times of one store (of writers, of copies):
	// equal ones are paired first, then the rest in order.
	type slot struct {
		f    *Finding
		used bool
	}
	old := map[findingKey][]*slot{}
	for i := range before {
		k := before[i].key()
		old[k] = append(old[k], &slot{f: &before[i]})
	}
	take := func(f *Finding, equal bool) *Finding {
		for _, s := range old[f.key()] {
			if !s.used && (!equal || s.f.Detail == f.Detail) {
				s.used = true
				return s.f
			}
		}
		return nil
	}
	pairs := make([]*Finding, len(after))
	for i := range after {
		pairs[i] = take(&after[i], true)
	}
	for i := range after {
		f := &after[i]
		if pairs[i] == nil {
			pairs[i] = take(f, false)
		}
		switch was := pairs[i]; {
		case was == nil:
			c.Opened = append(c.Opened, *f)
		case was.Severity != f.Severity:
			c.Turned = append(c.Turned, Turned{*was, *f})
		case was.Detail != f.Detail:
			c.Reworded = append(c.Reworded, Turned{*was, *f})
		}
	}
	for i := range before {
		for _, s := range old[before[i].key()] {
			if s.f == &before[i] && !s.used {
				c.Closed = append(c.Closed, before[i])
			}
		}
	}
	return c
}

type cellKey struct {
	posture         Posture
	store, scenario string
}

func diffCells(before, after []Cell) []CellChange {
	out := []CellChange{}
	if sameShape(before, after) { // nearly always, and there are many cells
		for i := range after {
			if a, b := &after[i], &before[i]; !sameCell(b, a) {
				out = append(out, CellChange{a.Posture, a.StoreID, a.ScenarioID, b, a})
			}
		}
		return out
	}
	old := make(map[cellKey]*Cell, len(before))
	for i := range before {
		old[cellKey{before[i].Posture, before[i].StoreID, before[i].ScenarioID}] = &before[i]
	}
	for i := range after {
		a := &after[i]
		k := cellKey{a.Posture, a.StoreID, a.ScenarioID}
		b := old[k]
		delete(old, k)
		if b == nil || !sameCell(b, a) {
			out = append(out, CellChange{a.Posture, a.StoreID, a.ScenarioID, b, a})
		}
	}
	for i := range before {
		b := &before[i]
		if old[cellKey{b.Posture, b.StoreID, b.ScenarioID}] != nil {
			out = append(out, CellChange{b.Posture, b.StoreID, b.ScenarioID, b, nil})
		}
	}
	return out
}

// sameShape says whether two matrices are about the same stores and scenarios in
// the same order.
func sameShape(a, b []Cell) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].StoreID != b[i].StoreID || a[i].ScenarioID != b[i].ScenarioID || a[i].Posture != b[i].Posture {
			return false
		}
	}
	return true
}

func sameCell(a, b *Cell) bool {
	if a.Outcome != b.Outcome || !samePoint(a.Minutes, b.Minutes) || a.ConcurrentWriters != b.ConcurrentWriters ||
		len(a.Notes) != len(b.Notes) || len(a.Partitions) != len(b.Partitions) {
		return false
	}
	for i := range a.Notes {
		if a.Notes[i] != b.Notes[i] {
			return false
		}
	}
	for i := range a.Partitions {
		if a.Partitions[i] != b.Partitions[i] {
			return false
		}
	}
	return true
}

func samePoint(a, b *float64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func diffPoints(before, after *Document) []PointChange {
	out := []PointChange{}
	old := map[string]*Protection{}
	for i := range before.Stores {
		old[before.Stores[i].ID] = &before.Stores[i].Today
	}
	for i := range after.Stores {
		s := &after.Stores[i]
		b := old[s.ID]
		delete(old, s.ID)
		if b == nil || !samePoint(b.RPOMinutes, s.Today.RPOMinutes) || !samePoint(b.SiteRPOMinutes, s.Today.SiteRPOMinutes) ||
			b.HasOffsite != s.Today.HasOffsite || b.CopyCount != s.Today.CopyCount {
			out = append(out, PointChange{s.ID, b, &s.Today})
		}
	}
	for i := range before.Stores {
		if b := old[before.Stores[i].ID]; b != nil {
			out = append(out, PointChange{before.Stores[i].ID, b, nil})
		}
	}
	return out
}

func diffSummaries(a, b *Summary) []CounterChange {
	out := []CounterChange{}
	x, y := a.Counters(), b.Counters()
	for i := range x {
		if x[i].Value != y[i].Value {
			out = append(out, CounterChange{x[i].Name, x[i].Value, y[i].Value})
		}
	}
	return out
}

// Counter is one number of a summary, by its name in the document.
type Counter struct {
	Name  string
	Value int
}

// Counters lists the summary in the document's order.
func (s *Summary) Counters() []Counter {
	return []Counter{
		{"stores", s.Stores}, {"durable", s.Durable}, {"copies", s.Copies}, {"copiesRunning", s.CopiesRunning},
		{"meetingRpo", s.MeetingRPO}, {"withOffsite", s.WithOffsite}, {"withOffsiteToday", s.WithOffsiteToday},
		{"drilled", s.Drilled}, {"uplinkDependent", s.UplinkDependent}, {"gaps", s.Gaps}, {"accepted", s.Accepted},
		{"notes", s.Notes}, {"scenarios", s.Scenarios}, {"cellsSurvivingTarget", s.CellsSurvivingTarget},
		{"cellsSurvivingCurrent", s.CellsSurvivingCurrent}, {"cellsTotal", s.CellsTotal},
		{"migrations", s.Migrations}, {"migrationsReversible", s.MigrationsReversible},
	}
}

// Span writes minutes as findings do: none, 30s, 5m, 6h, 1d; rounded up.
func Span(minutes *float64) string { return span(minutes) }

func (p Protection) String() string {
	offsite := "no off-site copy"
	if p.HasOffsite {
		offsite = "off-site"
	}
	return fmt.Sprintf("%s / site %s, %s, %s", span(p.RPOMinutes), span(p.SiteRPOMinutes), text.Count(p.CopyCount, "place"), offsite)
}
