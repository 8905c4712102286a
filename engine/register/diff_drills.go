package register

import (
	"fmt"
)

// Drilled is a drill of a store, or a rehearsal. Of a drain or a migration's rollback
// only the day is known.
type Drilled struct {
	StoreID     string    `json:"storeId"`
	MigrationID *string   `json:"migrationId"`
	Procedure   Procedure `json:"procedure"`
	Rehearsed   bool      `json:"rehearsed"`
	Drill       Drill     `json:"drill"`
	// RTOMinutes is the store's objective, null for none; Holds whether a drill that
	// passed is within it, null where there is nothing to hold.
	RTOMinutes *float64 `json:"rtoMinutes"`
	Holds      *bool    `json:"holds"`
}

// diffDrills are the drills that only the second register has.
func diffDrills(before, after *Document) []Drilled {
	out := []Drilled{}
	old := map[string]int{}
	for _, d := range drillsOf(before) {
		old[d.key()]++
	}
	for _, d := range drillsOf(after) {
		if k := d.key(); old[k] > 0 {
			old[k]--
			continue
		}
		out = append(out, d)
	}
	return out
}

func (d *Drilled) key() string {
	number := func(f *float64) any {
		if f == nil {
			return "-"
		}
		return *f
	}
	m := ""
	if d.MigrationID != nil {
		m = *d.MigrationID
	}
	x := d.Drill
	return fmt.Sprintf("%s\x00%s\x00%s\x00%t\x00%s\x00%s\x00%v\x00%s\x00%s", d.StoreID, m, d.Procedure, d.Rehearsed, x.Date, x.Outcome, number(x.MeasuredMinutes), x.Heat, x.Note)
}

// drillsOf lists a register's drills and rehearsals.
func drillsOf(doc *Document) []Drilled {
	var out []Drilled
	for i := range doc.Stores {
		s := &doc.Stores[i]
		add := func(p Procedure, rehearsed bool, list ...Drill) {
			for _, d := range list {
				x := Drilled{StoreID: s.ID, Procedure: p, Rehearsed: rehearsed, Drill: d}
				if s.Objectives != nil && (p == Restoring || p == Promoting) {
					rto := s.Objectives.RTOMinutes
					x.RTOMinutes = &rto
					if d.Outcome == Pass && d.MeasuredMinutes != nil {
						holds := *d.MeasuredMinutes <= rto
						x.Holds = &holds
					}
				}
				out = append(out, x)
			}
		}
		if s.Restore != nil {
			add(Restoring, false, s.Restore.Drills...)
		}
		if s.Promotion != nil {
			add(Promoting, false, s.Promotion.Drills...)
		}
		if l := s.LocalFirst; l != nil && l.DrainVerifiedOn != nil {
			add(Draining, false, Drill{Date: *l.DrainVerifiedOn, Outcome: Pass})
		}
		for _, r := range s.Rehearsals {
			add(r.Procedure, true, Drill{Date: r.Date, Outcome: r.Outcome, MeasuredMinutes: r.MeasuredMinutes, MeasuredMs: r.MeasuredMs, Heat: r.Heat, Note: r.Note})
		}
	}
	for i := range doc.Migrations {
		if m := &doc.Migrations[i]; m.Rollback.TestedOn != nil {
			out = append(out, Drilled{StoreID: m.Store, MigrationID: &m.ID, Procedure: RollingBack, Drill: Drill{Date: *m.Rollback.TestedOn, Outcome: Pass}})
		}
	}
	return out
}

// String tells a drill in a line, with the verdict about its time.
func (d *Drilled) String() string {
	what := "drill"
	if d.Rehearsed {
		what = "rehearsal"
	}
	out := fmt.Sprintf("%s: %s of its %s on %s: %s", d.StoreID, what, d.Procedure, d.Drill.Date, d.Drill.Outcome)
	if d.MigrationID != nil {
		out = fmt.Sprintf("%s: drill of the rollback of %s on %s: %s", d.StoreID, *d.MigrationID, d.Drill.Date, d.Drill.Outcome)
	}
	switch m := d.Drill.MeasuredMinutes; {
	case m == nil:
	case d.Drill.MeasuredMs != nil:
		out += fmt.Sprintf(", %s (%d ms)", span(m), *d.Drill.MeasuredMs)
	default:
		out += ", " + span(m)
	}
	if d.Holds != nil {
		verdict := "within"
		if !*d.Holds {
			verdict = "OVER"
		}
		out += fmt.Sprintf(", %s its objective of %s", verdict, span(d.RTOMinutes))
	}
	if d.Rehearsed {
		out += "; closes nothing"
	}
	return out
}
