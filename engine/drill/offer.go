package drill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
)

// Offer is what a heat has for a store of a register.
type Offer struct {
	Measure Measure            `json:"measure"`
	Store   string             `json:"store"`
	Name    string             `json:"name"`
	Kind    register.Procedure `json:"procedure"`
	// Because says why it is a rehearsal, which closes nothing; empty for a drill.
	Because []string `json:"because,omitempty"`
	// Verdicts hold the times of the seats that got there against what the store
	// declares.
	Verdicts []Verdict `json:"verdicts"`
	// Additions are what the register would get of it; Known those that it has.
	Additions []register.Addition `json:"additions"`
	Known     int                 `json:"known"`
	// Nothing says why there is nothing to add; "" when there is, or was.
	Nothing string `json:"nothing,omitempty"`
}

// ErrNoStore is of a register that has not the store that is meant.
var ErrNoStore = errors.New("the register has no store")

// Drill says that the heat is one of the store, not only a rehearsal.
func (o Offer) Drill() bool { return len(o.Because) == 0 }

// Verdict is a measured time against a declared one.
type Verdict struct {
	Territory string  `json:"territory"`
	Minutes   float64 `json:"minutes"`
	MS        int64   `json:"ms"`
	Against   string  `json:"against"` // objectives.rtoMinutes or promotion.minutes
	Limit     float64 `json:"limit"`
	Holds     bool    `json:"holds"`
}

func (v Verdict) String() string {
	holds := "within"
	if !v.Holds {
		holds = "OVER"
	}
	what := map[string]string{"objectives.rtoMinutes": "the objective (RTO)", "promotion.minutes": "what the promotion is declared to take"}[v.Against]
	return fmt.Sprintf("%s (%d ms) is %s %s, %s", register.Span(&v.Minutes), v.MS, holds, what, register.Span(&v.Limit))
}

// Short is the verdict without the time.
func (v Verdict) Short() string {
	holds := "within"
	if !v.Holds {
		holds = "OVER"
	}
	if v.Against == "promotion.minutes" {
		return fmt.Sprintf("%s the %s declared", holds, register.Span(&v.Limit))
	}
	return fmt.Sprintf("%s its RTO of %s", holds, register.Span(&v.Limit))
}

// For says what a measured heat is to a store of a declared register. Without a store
// the one that the arena names is meant. The error is ErrNoStore for a register that has
// no such store, and another for an arena that names none.
func (m Measure) For(doc *register.Document, store string) (Offer, error) {
	bound := store
	if bound == "" {
		bound = m.Store
	}
	if bound == "" {
		return Offer{}, fmt.Errorf("arena %s names no store; say which one is meant", m.Arena)
	}
	i := slices.IndexFunc(doc.Stores, func(s register.Store) bool { return s.ID == bound })
	if i < 0 {
		return Offer{}, fmt.Errorf("%w %s; it has %s", ErrNoStore, bound, storeIDs(doc))
	}
	s := &doc.Stores[i]
	o := Offer{Measure: m, Store: s.ID, Name: s.Name, Kind: m.Procedure, Because: slices.Clone(m.Doubts), Verdicts: []Verdict{}, Additions: []register.Addition{}}
	o.Because = append(o.Because, m.unbound(doc, s)...)
	paused := false
	for _, x := range m.Seats {
		paused = paused || x.Paused && x.Outcome == Passed
		if x.Outcome == Passed {
			o.Verdicts = append(o.Verdicts, verdicts(s, m.Procedure, x)...)
		}
	}
	if paused {
		o.Because = append(o.Because, "it stood still while the clock ran")
	}
	o.add(s)
	return o, nil
}

func storeIDs(doc *register.Document) string {
	var ids []string
	for i := range doc.Stores {
		ids = append(ids, doc.Stores[i].ID)
		if i == 9 && len(doc.Stores) > 11 {
			return strings.Join(ids, ", ") + fmt.Sprintf(" and %d more", len(doc.Stores)-10)
		}
	}
	return strings.Join(ids, ", ")
}

// unbound are the reasons why the heat did not run on a copy of the store's own.
func (m Measure) unbound(doc *register.Document, s *register.Store) []string {
	var out []string
	no := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	switch m.Store {
	case s.ID:
	case "":
		no("arena %s names no store: its machines held nothing of %s", m.Arena, s.ID)
		return append(out, undeclared(doc, s, m.Procedure, m.Migration)...)
	default:
		no("arena %s is of the store %s", m.Arena, m.Store)
		return append(out, undeclared(doc, s, m.Procedure, m.Migration)...)
	}
	out = append(out, undeclared(doc, s, m.Procedure, m.Migration)...)
	i := slices.IndexFunc(s.Copies, func(c register.Copy) bool { return c.ID == m.Copy })
	switch {
	case m.Copy == "":
		no("arena %s does not say of which copy of %s its machines are", m.Arena, s.ID)
	case i < 0:
		no("%s has no copy %s", s.ID, m.Copy)
	case !s.Copies[i].Running():
		no("%s is only planned: nothing can have run on it", m.Copy)
	case m.Procedure == register.Restoring && s.Copies[i].Kind == register.StreamingReplica:
		no("%s is a %s, which cannot be restored from", m.Copy, s.Copies[i].Kind)
	case m.Procedure == register.Promoting && s.Promotion != nil && s.Promotion.From != m.Copy:
		no("the promotion is of %s, not of %s", s.Promotion.From, m.Copy)
	}
	return out
}

// undeclared is why a store has nothing that the procedure drills.
func undeclared(doc *register.Document, s *register.Store, p register.Procedure, migration string) []string {
	why := ""
	switch {
	case p == register.RollingOut:
		why = "registers keep no drills of rollouts"
	case p == register.Restoring && s.Restore == nil:
		why = s.ID + " declares no restore"
	case p == register.Promoting && s.Promotion == nil:
		why = s.ID + " declares no promotion"
	case p == register.Draining && s.LocalFirst == nil:
		why = s.ID + " has no queue that drains"
	case p == register.RollingBack && !slices.ContainsFunc(doc.Migrations, func(x register.Migration) bool { return x.ID == migration && x.Store == s.ID }):
		why = cmp.Or(migration, "a migration") + " is none of " + s.ID
	default:
		return nil
	}
	return []string{why}
}

func verdicts(s *register.Store, p register.Procedure, x Seat) []Verdict {
	var out []Verdict
	hold := func(against string, limit float64) {
		out = append(out, Verdict{x.Territory, x.Minutes(), x.MS, against, limit, x.Minutes() <= limit})
	}
	if p == register.Promoting && s.Promotion != nil {
		hold("promotion.minutes", s.Promotion.Minutes)
	}
	if s.Objectives != nil && (p == register.Promoting || p == register.Restoring) {
		hold("objectives.rtoMinutes", s.Objectives.RTOMinutes)
	}
	return out
}

// add makes the additions: one of each seat that got there or failed, the slowest
// last, since of one day the last drill counts.
func (o *Offer) add(s *register.Store) {
	m := o.Measure
	seats := slices.Clone(m.Seats)
	slices.SortStableFunc(seats, func(a, b Seat) int { return cmp.Compare(a.MS, b.MS) })
	finished, censored := 0, 0
	for _, x := range seats {
		switch x.Outcome {
		case Passed:
			finished++
		case Censored:
			censored++
		}
	}
	have := heatsOf(s, o.Drill())
	dated := m.Procedure == register.Draining || m.Procedure == register.RollingBack
	for _, x := range seats {
		if x.Outcome == Censored || x.Outcome == Failed && dated && o.Drill() {
			continue
		}
		d := register.Drill{Date: m.Day, Outcome: register.Fail, Heat: m.ID + "/" + x.Territory}
		note := fmt.Sprintf("%s by %s on arena %s: not there in %s", m.Procedure, x.Agent, m.Arena, x.span())
		if x.Outcome == Passed {
			ms, minutes := x.MS, x.Minutes()
			d.Outcome, d.MeasuredMs, d.MeasuredMinutes = register.Pass, &ms, &minutes
			note = fmt.Sprintf("%s by %s on arena %s, from %s to %s", m.Procedure, x.Agent, m.Arena, m.From, m.To)
			if censored > 0 {
				note += fmt.Sprintf("; %d of %d seats got there before the heat ended, so these are its shortest times", finished, len(seats))
			}
			if o.Drill() {
				d.RestoredTo = "seat " + x.Territory + " of arena " + m.Arena
			}
		}
		if !o.Drill() {
			note += "; a rehearsal: " + strings.Join(o.Because, "; ")
		}
		d.Note = text.Truncate(note, 600, text.Ellipsis) // names come from a recording
		if slices.ContainsFunc(have, func(id string) bool { return after(id) == after(d.Heat) }) {
			o.Known++
			continue
		}
		o.Additions = append(o.Additions, register.Addition{Store: o.Store, Migration: m.Migration, Procedure: m.Procedure, Drill: d, Rehearses: !o.Drill()})
	}
	if len(o.Additions)+o.Known == 0 {
		o.Nothing = "no seat got there, and none failed: a seat that was cut short says nothing"
		if dated && censored < len(seats) {
			o.Nothing = fmt.Sprintf("no seat got there, and a register keeps no failed %s", m.Procedure)
		}
	}
}

// after is what of a heat's id does not depend on where it lies.
func after(id string) string {
	_, rest, ok := strings.Cut(id, "@")
	if !ok {
		return id
	}
	return rest
}

// heatsOf are the heats that a store's drills name, and for a rehearsal also those of
// its rehearsals: a rehearsal that was kept stands in no drill's way.
func heatsOf(s *register.Store, drill bool) []string {
	var out []string
	of := func(list []register.Drill) {
		for _, d := range list {
			if d.Heat != "" {
				out = append(out, d.Heat)
			}
		}
	}
	if s.Restore != nil {
		of(s.Restore.Drills)
	}
	if s.Promotion != nil {
		of(s.Promotion.Drills)
	}
	for _, r := range s.Rehearsals {
		if r.Heat != "" && !drill {
			out = append(out, r.Heat)
		}
	}
	return out
}
