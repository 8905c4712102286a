package drill

import (
	"fmt"
	"slices"

	"refbox/engine/arena"
	"refbox/engine/register"
)

// Arena is an arena that could be raced.
type Arena struct {
	Name     string // as refbox run takes it
	Manifest *arena.Manifest
}

// Question is what somebody wants to see green: a finding, or a cell of the matrix as
// it is today.
type Question struct {
	Store     string
	Code      register.Code // of a finding; "" for a cell
	Migration string        // of a finding that is about one
	Scenario  string        // of a cell
}

// Proposal is the heat that would answer a question, or why there is none.
type Proposal struct {
	Store     string
	Migration string
	Procedure register.Procedure // "" when no heat could
	// Closes are the store's open findings that a passed drill of the procedure closes.
	Closes []register.Code
	// Arena is the one to race; "" when there is none.
	Arena string
	// Rehearses: the arena follows the procedure, but not on the store's own copy, so
	// that its heat closes nothing.
	Rehearses bool
	// Says explains all of it, a paragraph each.
	Says []string
}

// of says which procedure a passed drill of closes a finding.
var of = map[register.Code]register.Procedure{
	"restore-never-drilled":          register.Restoring,
	"restore-drill-stale":            register.Restoring,
	"restore-drill-failed":           register.Restoring,
	"restore-exceeds-rto":            register.Restoring,
	"promotion-drill-failed":         register.Promoting,
	"promotion-slower-than-declared": register.Promoting,
	"local-first-drain-unverified":   register.Draining,
	"drain-verification-stale":       register.Draining,
	"migration-rollback-untested":    register.RollingBack,
}

// fast are the findings that only a quicker heat than the last closes.
var fast = []register.Code{"restore-exceeds-rto", "promotion-slower-than-declared", "promotion-exceeds-rto"}

// Propose answers a question of a derived register with one of the arenas.
func Propose(doc *register.Document, q Question, arenas []Arena) Proposal {
	p := Proposal{Store: q.Store, Migration: q.Migration}
	i := slices.IndexFunc(doc.Stores, func(s register.Store) bool { return s.ID == q.Store })
	if i < 0 {
		p.say("The register has no store %s.", q.Store)
		return p
	}
	s := &doc.Stores[i]
	if q.Code != "" {
		p.finding(s, q.Code)
	} else {
		p.cell(doc, i, q.Scenario)
	}
	if p.Procedure == "" {
		return p
	}
	if why := undeclared(doc, s, p.Procedure, p.Migration); why != nil {
		p.say("No heat can drill that before the register declares it: %s.", why[0])
		p.Procedure = ""
		return p
	}
	for k := range doc.Findings {
		f := &doc.Findings[k]
		if f.StoreID == s.ID && (of[f.Code] == p.Procedure || f.Code == q.Code) && (f.MigrationID == nil || *f.MigrationID == p.Migration) && !slices.Contains(p.Closes, f.Code) {
			p.Closes = append(p.Closes, f.Code)
		}
	}
	p.choose(doc, s, arenas)
	return p
}

func (p *Proposal) say(format string, a ...any) { p.Says = append(p.Says, fmt.Sprintf(format, a...)) }

func (p *Proposal) finding(s *register.Store, code register.Code) {
	switch {
	case of[code] != "":
		p.Procedure = of[code]
		p.say("%s closes when a %s of %s is drilled on its own copy, and passes.", code, p.Procedure, s.ID)
		if slices.Contains(fast, code) {
			p.say("It closes only by a heat that is quick enough.")
		}
	case code == "promotion-exceeds-rto" && s.Promotion != nil && s.Objectives != nil && s.Promotion.Minutes <= s.Objectives.RTOMinutes:
		p.Procedure = register.Promoting
		p.say("%s closes when a promotion of %s is drilled within its objective.", code, s.ID)
	default:
		p.say("No heat closes %s: it is about what the register declares, or about copies and where they are, and not about a procedure that somebody could run. refbox register plan says what planned copies would close; W asks what if one ran.", code)
	}
}

// cell proposes what is behind the operator's outcome. No heat changes an outcome:
// that follows from copies, and from who reaches them.
func (p *Proposal) cell(doc *register.Document, store int, scenario string) {
	k := slices.IndexFunc(doc.Scenarios, func(x register.Scenario) bool { return x.ID == scenario })
	c := doc.Cell(register.CurrentPosture, store, k)
	s := &doc.Stores[store]
	switch {
	case c == nil:
		p.say("The register has no scenario %s.", scenario)
	case c.Outcome == register.Writable:
		p.say("%s stays writable in %s: there is nothing to recover, and nothing to drill.", s.ID, scenario)
	case c.Outcome == register.Lost:
		p.say("No heat turns this cell: in %s no copy of %s can be reached from where the operator is, so that there is nothing to recover from. A copy that runs elsewhere would: refbox register plan, or W.", scenario, s.ID)
	case c.Outcome == register.ReadOnly:
		p.Procedure = register.Promoting
		p.say("In %s %s is read-only until somebody promotes a replica. The cell stays so, whatever is drilled; a drill shows how long the promotion takes, which is declared to be %s.", scenario, s.ID, register.Span(c.Minutes))
	case s.Durability == register.Rebuildable:
		p.say("In %s %s is made anew, from %s. It holds nothing that a restore could bring back, so there is no drill of it.", scenario, s.ID, rebuildFrom(s))
	default:
		p.Procedure = register.Restoring
		p.say("In %s %s has to be restored. The cell stays so, whatever is drilled; a drill that passes takes the place of the objective as its time.", scenario, s.ID)
	}
}

func rebuildFrom(s *register.Store) string {
	if s.Rebuild == nil {
		return "nothing"
	}
	return s.Rebuild.From
}

// choose picks an arena that is of the store, or else one that rehearses the
// procedure.
func (p *Proposal) choose(doc *register.Document, s *register.Store, arenas []Arena) {
	var almost []string
	for _, a := range arenas {
		m := a.Manifest
		if m.Procedure == nil || *m.Procedure != string(p.Procedure) || deref(m.Store) != s.ID || deref(m.Migration) != p.Migration {
			continue
		}
		asked := Measure{Arena: m.Arena.ID, Procedure: p.Procedure, Store: s.ID, Copy: deref(m.Copy), Migration: p.Migration}
		if why := asked.unbound(doc, s); why != nil {
			almost = append(almost, why...)
			continue
		}
		p.Arena = a.Name
		p.say("Arena %s (%s) is of %s and follows its %s on a copy of %s.", m.Arena.ID, m.Arena.DisplayName, s.ID, p.Procedure, *m.Copy)
		return
	}
	for _, why := range almost {
		p.say("No drill: %s.", why)
	}
	how := fmt.Sprintf("procedure = %q, store = %q, copy = %q", p.Procedure, s.ID, copyFor(s, p.Procedure))
	if p.Migration != "" {
		how += fmt.Sprintf(", migration = %q", p.Migration)
	}
	p.say("No arena here follows the %s of %s on a copy of its own. One that does is a package whose machines hold such a copy (refbox arena init), in a folder arenas beside the register, and whose manifest says %s, and the milestone that stops the clock.", p.Procedure, s.ID, how)
	for _, a := range arenas {
		if m := a.Manifest; m.Procedure != nil && *m.Procedure == string(p.Procedure) && m.Store == nil {
			p.Arena, p.Rehearses = a.Name, true
			p.say("Arena %s (%s) rehearses a %s on data of its own: that closes nothing, but it can be run and its time is kept beside the drills.", m.Arena.ID, m.Arena.DisplayName, p.Procedure)
			return
		}
	}
}

// copyFor is the copy that a procedure of a store runs on.
func copyFor(s *register.Store, p register.Procedure) string {
	switch {
	case p == register.Promoting && s.Promotion != nil:
		return s.Promotion.From
	case p == register.Restoring && s.Restore != nil:
		return s.Restore.From
	case len(s.Copies) > 0:
		return s.Copies[0].ID
	}
	return "…"
}
