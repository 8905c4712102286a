package ledger

import (
	"fmt"
	"slices"
	"time"

	"refbox/engine/arena"
	"refbox/engine/text"
)

// Use is an arena that is in use: what its file is now, and what it declares.
type Use struct {
	ID        string
	SHA256    string
	Exercises []arena.Exercise
}

// Settings are what states are derived by, besides the ledger.
type Settings struct {
	Today  string // 2006-01-02
	Arenas []Use
}

// Picture is everything that follows from a ledger.
type Picture struct {
	Rows   []Row    `json:"scenarios"` // in the model's order
	Arenas []string `json:"arenas"`    // in use that declare one of them, then those that evidence names
	// Observed of Injectable scenarios are. Accepted or owned are of all the Rows: either
	// may be injectable, or not.
	Observed   int `json:"observed"`
	Injectable int `json:"injectable"`
	Accepted   int `json:"accepted"`
	Owned      int `json:"owned"`
	// Findings are those of the files, then what follows.
	Findings []Finding `json:"findings"`
}

// Row is a scenario: as declared, and as derived.
type Row struct {
	Scenario   string `json:"scenario"`
	Declared   string `json:"declared"`
	State      State  `json:"state"`
	Injectable bool   `json:"injectable"`
	// NotInjectable says why no fault can be the scenario.
	NotInjectable string    `json:"not_injectable,omitempty"`
	Decision      *Decision `json:"decision,omitempty"` // the one in force
	Cells         []Cell    `json:"cells"`              // one per arena, in their order
}

// Cell is what one arena has shown of a scenario.
type Cell struct {
	Arena string `json:"arena"`
	// State is "" where the arena neither declares the scenario nor has evidence.
	State    State    `json:"state"`
	Declares []string `json:"declares,omitempty"` // the faults by which it says it exercises it
	Evidence []Item   `json:"evidence,omitempty"` // oldest first
}

// Item is evidence in a ledger.
type Item struct {
	Line int   `json:"line"` // of the ledger's log
	Kept *Kept `json:"evidence"`
	// Stale says why it does not count any more; "" for what does.
	Stale string `json:"stale,omitempty"`
}

// Counts says whether the evidence supports anything: what a gate refused never did, and
// what is stale does not any more.
func (it Item) Counts() bool { return it.Kept.Outcome != Inconclusive && it.Stale == "" }

// Tally is how much of some evidence counts, in words for a cell: "2", "2+1" with one
// piece that does not, "0+1"; "" for none.
func Tally(items []Item) string {
	n := 0
	for _, it := range items {
		if it.Counts() {
			n++
		}
	}
	switch rest := len(items) - n; {
	case len(items) == 0:
		return ""
	case rest > 0:
		return fmt.Sprintf("%d+%d", n, rest)
	}
	return fmt.Sprint(n)
}

// Derive computes the state of everything.
func (l *Ledger) Derive(set Settings) *Picture {
	p := &Picture{Rows: []Row{}, Arenas: []string{}, Findings: slices.Clone(l.Findings)}
	note := func(code Code, scenario string, line int, format string, args ...any) {
		p.Findings = append(p.Findings, Finding{Severity: Note, Code: code, Scenario: scenario, Line: line, Text: text.Line(fmt.Sprintf(format, args...))})
	}
	items := l.items(set, p)
	for _, a := range set.Arenas {
		if slices.ContainsFunc(a.Exercises, func(x arena.Exercise) bool { return l.Model.Scenario(x.Scenario) != nil }) {
			p.Arenas = append(p.Arenas, a.ID)
		}
	}
	for _, it := range items {
		if !slices.Contains(p.Arenas, it.Kept.Arena) {
			p.Arenas = append(p.Arenas, it.Kept.Arena)
		}
	}
	for i := range l.Model.Scenarios {
		s := &l.Model.Scenarios[i]
		rule := l.Policy.Rule(s.ID)
		row := Row{Scenario: s.ID, Declared: s.EvidenceState, Injectable: rule.Injectable()}
		if !row.Injectable {
			row.NotInjectable = "the policy has no rule for it, so no fault counts as it"
			if rule != nil {
				row.NotInjectable = rule.Why
			}
		}
		f := folding{state: NotInjected, note: func(code Code, line int, format string, args ...any) { note(code, s.ID, line, format, args...) }}
		if d := s.Declared().State(); d == Accepted || d == Owned {
			f.state = d
		}
		passed := l.fold(&f, s.ID, items)
		row.State, row.Decision = f.settle(), f.decision
		if d := f.decision; d != nil && d.ReviewOn < set.Today {
			note("", s.ID, 0, "was to be looked at again on %s: decide it anew (refbox ledger decide)", d.ReviewOn)
		}
		p.compare(s, row.State, passed)
		for _, id := range p.Arenas {
			row.Cells = append(row.Cells, cell(id, s.ID, items, set))
		}
		p.Rows = append(p.Rows, row)
		p.count(&row)
	}
	if p.Findings == nil {
		p.Findings = []Finding{}
	}
	return p
}

func (p *Picture) count(r *Row) {
	if r.Injectable {
		p.Injectable++
	}
	switch r.State {
	case Observed:
		p.Observed++
	case Accepted:
		p.Accepted++
	case Owned:
		p.Owned++
	}
}

// compare holds what is declared to what is derived.
func (p *Picture) compare(s *Scenario, derived State, evidence int) {
	declared := s.Declared().State()
	f := Finding{Severity: Note, Scenario: s.ID}
	switch {
	case derived == Contradicted:
		f.Text = fmt.Sprintf("contradicted by evidence here; declared %q", s.EvidenceState)
		if declared.strength() > 0 {
			f.Severity, f.Code = Break, Overclaim
		}
	case declared.strength() > derived.strength() && evidence == 0 && derived != Inconclusive:
		f.Text = fmt.Sprintf("%s is declared, no evidence here", s.EvidenceState)
	case declared.strength() > derived.strength():
		f.Text = fmt.Sprintf("overclaimed: %q is declared, %s follows from the evidence here", s.EvidenceState, derived)
	case derived.strength() > declared.strength() && declared != Accepted && declared != Owned:
		f.Text = fmt.Sprintf("underclaimed: %q is declared, %s follows from the evidence here", s.EvidenceState, derived)
	default:
		return
	}
	p.Findings = append(p.Findings, f)
}

// items is all evidence, with what has become of it since, and of nothing more
// worth than its gates give.
func (l *Ledger) items(set Settings, p *Picture) []Item {
	image := map[string]string{} // of each arena's latest evidence
	for _, e := range l.Entries {
		if e.Kept != nil && e.Kept.Target.Image != "" {
			image[e.Kept.Arena] = e.Kept.Target.Image
		}
	}
	terms := Terms{Model: l.Model, Policy: l.Policy}
	var out []Item
	for i := range l.Entries {
		k := l.Entries[i].Kept
		if k == nil || l.Model.Scenario(k.Scenario) == nil {
			continue
		}
		it := Item{Line: l.Entries[i].line, Kept: k}
		if k.Target.Policy == l.Policy.SHA256() && k.Target.Release == l.Model.Release && k.Outcome != Inconclusive {
			if v := terms.Judge(&k.Evidence); v.Outcome != k.Outcome {
				p.Findings = append(p.Findings, Finding{Severity: Break, Code: Integrity, File: l.File, Line: it.Line, Scenario: k.Scenario,
					Text: fmt.Sprintf("is kept as %s, and its gates give %s %v", k.Outcome, v.Outcome, v.Refused())})
				lesser := *k
				lesser.Outcome, lesser.Refused, lesser.Why = v.Outcome, v.Refused(), v.Why
				it.Kept = &lesser
			}
		}
		it.Stale = l.stale(it.Kept, set, image)
		out = append(out, it)
	}
	return out
}

// stale says why evidence does not count any more.
func (l *Ledger) stale(k *Kept, set Settings, image map[string]string) string {
	day, err := time.Parse(time.DateOnly, k.Day)
	today, terr := time.Parse(time.DateOnly, set.Today)
	if err != nil {
		return "of an unknown day"
	}
	if age := int(today.Sub(day).Hours() / 24); terr == nil && age > l.Policy.DrillMaxAgeDays {
		return fmt.Sprintf("%d days old; evidence counts for %d", age, l.Policy.DrillMaxAgeDays)
	}
	drift := Terms{Model: l.Model, Policy: l.Policy, Arenas: map[string]string{}}
	for _, a := range set.Arenas {
		drift.Arenas[a.ID] = a.SHA256
	}
	if why := drift.drifted(&k.Evidence); why != "" {
		return why
	}
	if image[k.Arena] != k.Target.Image {
		return "the machines have another image since"
	}
	return ""
}

// folding is a scenario's state while lines are read.
type folding struct {
	state    State
	decision *Decision
	support  []Item // what passed since the state was last decided anew
	note     func(code Code, line int, format string, args ...any)
}

// fold reads the lines about a scenario, and counts the evidence that passed.
func (l *Ledger) fold(f *folding, scenario string, items []Item) (passed int) {
	byLine := map[int]Item{}
	for _, it := range items {
		byLine[it.Line] = it
	}
	for _, e := range l.Entries {
		switch {
		case e.Decision != nil && e.Decision.Scenario == scenario:
			f.decide(e.Decision, e.At.Format(time.DateOnly), e.line)
		case e.Kept != nil && e.Kept.Scenario == scenario:
			it := byLine[e.line]
			if it.Kept.Outcome != Inconclusive {
				passed++
			}
			f.take(it)
		}
	}
	return passed
}

// Permits says whether a decision may be made now: a *Refusal when it may not.
func (l *Ledger) Permits(set Settings, d *Decision) error {
	if err := d.Check(l.Model, set.Today); err != nil {
		return err
	}
	to, _ := d.Kind.to()
	return Move(l.Derive(set).Row(d.Scenario).State, to, ByDecision)
}

func (f *folding) decide(d *Decision, day string, line int) {
	err := d.Check(nil, day)
	to, _ := d.Kind.to()
	if err == nil {
		err = Move(f.state, to, ByDecision)
	}
	if r, ok := err.(*Refusal); ok {
		f.note(r.Code, line, "the decision %s does not count: %s", d.Kind, r.Text)
		return
	}
	f.state, f.decision = to, d
	if d.Kind == Reopen {
		f.decision, f.support = nil, nil
	}
}

func (f *folding) take(it Item) {
	to := it.Kept.Outcome
	by := ByEvidence
	if it.Kept.Fix != "" {
		by = ByFix
	}
	if to.strength() > 0 && f.state.strength() >= to.strength() {
		f.support = append(f.support, it)
		return
	}
	if f.state == to || to == Inconclusive && f.state != NotInjected {
		return
	}
	if err := Move(f.state, to, by); err != nil {
		r := err.(*Refusal)
		f.note(r.Code, it.Line, "the evidence is kept and changes nothing: %s", r.Text)
		return
	}
	if f.state == Contradicted || to == Contradicted {
		f.support = nil
	}
	f.state = to
	f.support = append(f.support, it)
}

// settle lets what is stale go: the state rests on what still counts.
func (f *folding) settle() State {
	if f.state.strength() == 0 {
		return f.state
	}
	best := Stale
	for _, it := range f.support {
		if it.Stale == "" && it.Kept.Outcome.strength() > best.strength() {
			best = it.Kept.Outcome
		}
	}
	if best == Stale && Move(f.state, Stale, ByTime) != nil {
		return f.state
	}
	return best
}

// cell is what one arena has shown: by its evidence alone.
func cell(arenaID, scenario string, items []Item, set Settings) Cell {
	c := Cell{Arena: arenaID}
	for _, a := range set.Arenas {
		for _, x := range a.Exercises {
			if a.ID == arenaID && x.Scenario == scenario {
				c.Declares, c.State = append(c.Declares, x.Fault), NotInjected
			}
		}
	}
	f := folding{state: NotInjected, note: func(Code, int, string, ...any) {}}
	for _, it := range items {
		if it.Kept.Arena == arenaID && it.Kept.Scenario == scenario {
			c.Evidence = append(c.Evidence, it)
			f.take(it)
		}
	}
	if len(c.Evidence) > 0 {
		c.State = f.settle()
	}
	return c
}

// Row is the row of a scenario, nil for none.
func (p *Picture) Row(scenario string) *Row {
	if i := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Scenario == scenario }); i >= 0 {
		return &p.Rows[i]
	}
	return nil
}

// Items is all evidence of a row, in the order of the ledger.
func (r *Row) Items() []Item {
	var out []Item
	for _, c := range r.Cells {
		out = append(out, c.Evidence...)
	}
	slices.SortFunc(out, func(a, b Item) int { return a.Line - b.Line })
	return out
}
