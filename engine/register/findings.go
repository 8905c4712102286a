package register

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Code names a finding.
type Code string

func (c Code) valid() bool { return ruleOf(c) != nil }

func (Code) known() []string {
	out := make([]string, len(rules))
	for i := range rules {
		out[i] = string(rules[i].code)
	}
	return out
}

// Rule says what a finding means.
type Rule struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Profile  Profile  `json:"profile"` // the smallest that has it
	Title    string   `json:"title"`
	Says     string   `json:"says"` // when it fires
}

// Rules lists every finding, in the order in which they are told of a store,
// then of a migration, then of an acceptance.
func Rules() []Rule {
	out := make([]Rule, len(rules))
	for i := range rules {
		r := &rules[i]
		out[i] = Rule{r.code, r.severity, r.profile(), r.title, r.says}
	}
	return out
}

// rule is one finding: exactly one of store, migration and acceptance is set.
type rule struct {
	code       Code
	severity   Severity
	full       bool // an own rule, not the seed's
	title      string
	says       string
	store      func(*storeView, *report)
	migration  func(*migrationView, *report)
	acceptance func(*acceptanceView, *report)
}

func (r *rule) profile() Profile {
	if r.full {
		return Full
	}
	return Seed
}

var byCode = map[Code]*rule{}

func init() {
	for i := range rules {
		byCode[rules[i].code] = &rules[i]
	}
}

func ruleOf(c Code) *rule { return byCode[c] }

type migrationView struct {
	m  *model
	at int
	*Migration
	store *storeView
}

// copy finds one of the store's copies.
func (v *storeView) copy(id string) *copyView {
	for i := range v.copies {
		if v.copies[i].ID == id {
			return &v.copies[i]
		}
	}
	return nil
}

type acceptanceView struct {
	m  *model
	at int
	*Acceptance
	store *storeView
	used  bool // it matches a gap
}

// report takes what the rules find. While explaining it also takes what they
// looked at, and why they did not fire.
type report struct {
	emit  func(Finding)
	rule  *rule
	store string

	scenario, migration *string

	trace  *[]Evaluation // nil unless explaining
	inputs []Input
	prefix string // of the inputs' paths
}

// see notes a fact that the rule looks at.
func (r *report) see(path string, value any) {
	if r.trace != nil {
		r.inputs = append(r.inputs, Input{r.prefix + path, value})
	}
}

// seeAt is see with a path from the document's root.
func (r *report) seeAt(path string, value any) {
	if r.trace != nil {
		r.inputs = append(r.inputs, Input{path, value})
	}
}

// no ends a rule that does not fire.
func (r *report) no(format string, a ...any) {
	if r.trace != nil {
		r.conclude(false, fmt.Sprintf(format, a...), nil)
	}
}

func (r *report) fire(format string, a ...any) { r.fireAs(r.rule.severity, format, a...) }

func (r *report) fireAs(severity Severity, format string, a ...any) {
	f := Finding{
		Code: r.rule.code, Severity: severity, Title: r.rule.title, StoreID: r.store,
		ScenarioID: r.scenario, MigrationID: r.migration, Detail: fmt.Sprintf(format, a...),
	}
	if r.trace != nil {
		r.conclude(true, f.Detail, &f)
	}
	r.emit(f)
}

func (r *report) conclude(fired bool, because string, f *Finding) {
	*r.trace = append(*r.trace, Evaluation{
		ScenarioID: r.scenario, MigrationID: r.migration, Fired: fired, Because: because, Inputs: r.inputs, Finding: f,
	})
	r.inputs = nil
}

// findings runs every rule of the profile and sorts: stores, migrations and
// acceptances in their order, then gaps before accepted before notes.
func (m *model) findings() {
	var bySeverity [3][]Finding
	m.accepted = m.acceptances()
	r := &report{emit: func(f Finding) {
		m.accept(&f)
		i := 2
		switch f.Severity {
		case Gap:
			i = 0
		case IsAccepted:
			i = 1
		}
		bySeverity[i] = append(bySeverity[i], f)
	}}
	for i := range m.stores {
		m.runStore(i, r, nil)
	}
	for i := range m.out.Migrations {
		m.runMigration(i, r, nil)
	}
	for i := range m.estate.Acceptances {
		m.runAcceptance(i, r, nil)
	}
	m.out.Findings = make([]Finding, 0, len(bySeverity[0])+len(bySeverity[1])+len(bySeverity[2]))
	for _, list := range bySeverity {
		m.out.Findings = append(m.out.Findings, list...)
	}
}

// wanted says whether a rule runs; only names one to explain.
func (m *model) wanted(ru *rule, only *rule) bool {
	if only != nil {
		return ru == only
	}
	return !ru.full || m.profile == Full
}

func (m *model) runStore(i int, r *report, only *rule) {
	v := &m.stores[i]
	r.store = v.s.ID
	for k := range rules {
		if ru := &rules[k]; ru.store != nil && m.wanted(ru, only) {
			r.rule, r.scenario, r.migration = ru, nil, nil
			ru.store(v, r)
		}
	}
}

func (m *model) runMigration(i int, r *report, only *rule) {
	v := &migrationView{m: m, at: i, Migration: &m.out.Migrations[i]}
	v.store = m.storeByID(v.Store)
	r.store = v.Store
	for k := range rules {
		if ru := &rules[k]; ru.migration != nil && m.wanted(ru, only) {
			r.rule, r.scenario, r.migration = ru, nil, &v.ID
			ru.migration(v, r)
		}
	}
}

func (m *model) runAcceptance(i int, r *report, only *rule) {
	a := &m.estate.Acceptances[i]
	v := m.accepted[acceptKey{a.Code, a.StoreID}]
	r.store = a.StoreID
	for k := range rules {
		if ru := &rules[k]; ru.acceptance != nil && m.wanted(ru, only) {
			r.rule, r.scenario, r.migration = ru, nil, nil
			ru.acceptance(v, r)
		}
	}
}

func (m *model) storeByID(id string) *storeView {
	if m.byID == nil {
		m.byID = make(map[string]int, len(m.stores))
		for i := range m.stores {
			m.byID[m.stores[i].s.ID] = i
		}
	}
	return &m.stores[m.byID[id]]
}

type acceptKey struct {
	code  Code
	store string
}

func (m *model) acceptances() map[acceptKey]*acceptanceView {
	all := make(map[acceptKey]*acceptanceView, len(m.estate.Acceptances))
	for i := range m.estate.Acceptances {
		a := &m.estate.Acceptances[i]
		all[acceptKey{a.Code, a.StoreID}] = &acceptanceView{m: m, at: i, Acceptance: a, store: m.storeByID(a.StoreID)}
	}
	return all
}

// accept turns a gap that somebody lives with. In the full profile an
// acceptance that is past its review turns nothing.
func (m *model) accept(f *Finding) {
	if f.Severity != Gap {
		return
	}
	a := m.accepted[acceptKey{f.Code, f.StoreID}]
	if a == nil {
		return
	}
	a.used = true
	if m.profile == Full && a.expired() {
		return
	}
	f.Severity = IsAccepted
	f.Acceptance = &Accepted{a.Reason, a.AcceptedBy, a.ReviewOn}
}

func (a *acceptanceView) expired() bool { return a.ReviewOn < a.m.on }

// span writes minutes as texts do: none, 30s, 5m, 6h, 1d. It rounds up, so
// that what is over a limit never reads as the limit.
func span(minutes *float64) string {
	if minutes == nil {
		return "none"
	}
	m := *minutes
	switch {
	case m == 0:
		return "0m"
	case m < 1:
		return strconv.FormatFloat(math.Ceil(m*60-1e-9), 'f', -1, 64) + "s"
	case math.Mod(m, 1440) == 0:
		return strconv.FormatFloat(m/1440, 'f', -1, 64) + "d"
	case math.Mod(m, 60) == 0:
		return strconv.FormatFloat(m/60, 'f', -1, 64) + "h"
	}
	return strconv.FormatFloat(math.Ceil(m*10-1e-9)/10, 'f', -1, 64) + "m"
}

func list(ids []string) string { return strings.Join(ids, ", ") }

func isOrAre(ids []string) string {
	if len(ids) == 1 {
		return "is"
	}
	return "are"
}
