package register

import (
	"fmt"
	"strings"
)

// Input is a fact that a rule looked at: where it stands in the document and
// what it is.
type Input struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Evaluation is one application of a rule.
type Evaluation struct {
	ScenarioID  *string  `json:"scenarioId"`
	MigrationID *string  `json:"migrationId"`
	Fired       bool     `json:"fired"`
	Because     string   `json:"because"`
	Inputs      []Input  `json:"inputs"`
	Finding     *Finding `json:"finding"` // as it is told, acceptance included; null if it did not fire
}

// Explanation says what a rule made of a store.
type Explanation struct {
	Rule Rule `json:"rule"`
	// Active is whether the profile has the rule; it is evaluated all the same.
	Active      bool         `json:"active"`
	StoreID     string       `json:"storeId"`
	Evaluations []Evaluation `json:"evaluations"` // none: nothing to apply the rule to
}

// CellExplanation says how one cell came about.
type CellExplanation struct {
	Cell  Cell              `json:"cell"`
	Sides []SideExplanation `json:"sides"`
}

// SideExplanation is one side of a cell: the rule that held and what became of
// each copy.
type SideExplanation struct {
	Side
	Rule   string    `json:"rule"`
	Copies []Reached `json:"copies"`
}

// Reached says whether a side can use a copy, and why.
type Reached struct {
	ID      string `json:"id"`
	Usable  bool   `json:"usable"`
	Because string `json:"because"`
}

// Explainer answers questions about one derived register. It is not safe for
// concurrent use.
type Explainer struct{ m *model }

// NewExplainer derives a register once, for any number of questions. The input
// must be valid, as for [Derive].
func NewExplainer(doc *Document, estate *Estate, on Date, profile Profile) *Explainer {
	return &Explainer{deriveModel(doc, estate, on, profile)}
}

// Document is the derived register.
func (e *Explainer) Document() *Document { return e.m.out }

func (v *storeView) path() string { return fmt.Sprintf("stores[%d].", v.at) }

// Finding explains what the rule of a code made of a store, its migrations or
// its acceptances.
func (e *Explainer) Finding(code Code, storeID string) (Explanation, error) {
	ru := ruleOf(code)
	if ru == nil {
		return Explanation{}, fmt.Errorf("there is no finding %q; the findings are %s", code, strings.Join(code.known(), ", "))
	}
	m := e.m
	v, err := e.store(storeID)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{
		Rule:   Rule{ru.code, ru.severity, ru.profile(), ru.title, ru.says},
		Active: !ru.full || m.profile == Full, StoreID: storeID, Evaluations: []Evaluation{},
	}
	r := &report{trace: &out.Evaluations, emit: func(f Finding) {
		m.accept(&f)
		out.Evaluations[len(out.Evaluations)-1].Finding = &f
	}}
	switch {
	case ru.store != nil:
		r.prefix = v.path()
		m.runStore(v.at, r, ru)
	case ru.migration != nil:
		for i := range m.out.Migrations {
			if m.out.Migrations[i].Store == storeID {
				r.prefix = fmt.Sprintf("migrations[%d].", i)
				m.runMigration(i, r, ru)
			}
		}
	default:
		for i := range m.estate.Acceptances {
			if m.estate.Acceptances[i].StoreID == storeID {
				r.prefix = fmt.Sprintf("estate.acceptances[%d].", i)
				m.runAcceptance(i, r, ru)
			}
		}
	}
	return out, nil
}

func (e *Explainer) store(id string) (*storeView, error) {
	ids := make([]string, len(e.m.stores))
	for i := range e.m.stores {
		if e.m.stores[i].s.ID == id {
			return &e.m.stores[i], nil
		}
		ids[i] = e.m.stores[i].s.ID
	}
	return nil, fmt.Errorf("there is no store %q; the stores are %s", id, clip(list(ids)))
}

// Cell explains a cell of the matrix.
func (e *Explainer) Cell(posture Posture, storeID, scenarioID string) (CellExplanation, error) {
	v, err := e.store(storeID)
	if err != nil {
		return CellExplanation{}, err
	}
	at := -1
	ids := make([]string, len(e.m.out.Scenarios))
	for i := range e.m.out.Scenarios {
		ids[i] = e.m.out.Scenarios[i].ID
		if ids[i] == scenarioID {
			at = i
		}
	}
	if at < 0 {
		return CellExplanation{}, fmt.Errorf("there is no scenario %q; the scenarios are %s", scenarioID, clip(list(ids)))
	}
	k := 0
	if posture == CurrentPosture {
		k = 1
	}
	sc := &e.m.out.Scenarios[at]
	n := len(sc.Partitions)
	verdicts := make([]verdict, n)
	v.judge(at, posture, make([]bench, n), verdicts)
	out := CellExplanation{Cell: v.cells[k][at]}
	for p := range sc.Partitions {
		side := SideExplanation{Side: out.Cell.Partitions[p], Rule: cellRules[verdicts[p].rule].says, Copies: []Reached{}}
		for j := range v.copies {
			side.Copies = append(side.Copies, v.reached(&v.copies[j], at, p, posture))
		}
		out.Sides = append(out.Sides, side)
	}
	return out, nil
}

// reached tells judge's view of one copy from one side in words.
func (v *storeView) reached(c *copyView, scenario, side int, posture Posture) Reached {
	sc := &v.m.out.Scenarios[scenario]
	out := Reached{ID: c.ID}
	switch on := int(v.m.sides[scenario].of[c.feeder]); {
	case !c.pool(posture):
		out.Because = "planned: it protects nothing today"
	case on < 0:
		out.Because = c.Node + ", which feeds it, is lost"
	case on != side:
		out.Because = fmt.Sprintf("%s, which feeds it, is on the side %s", c.Node, sc.Partitions[on].ID)
	case v.m.reach(c, scenario) < 0:
		out.Because = fmt.Sprintf("it is off-site in %s, and this side has no internet", c.Domain)
	default:
		out.Usable = true
		use := "it can be restored from"
		if c.Serves == ServesReads {
			use = "it serves reads"
		} else if !c.Restorable {
			use = "it can be promoted, but serves nothing"
		}
		out.Because = fmt.Sprintf("%s, which feeds it, is on this side; %s", c.Node, use)
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Estate are the facts that the register was derived with.
func (e *Explainer) Estate() *Estate { return e.m.estate }

// On is the day of evaluation.
func (e *Explainer) On() Date { return e.m.on }

// Profile is the rules that were used.
func (e *Explainer) Profile() Profile { return e.m.profile }

// Assuming derives the register as it would be; e stays as it is. What the
// register does not have is an error. It may run while e answers questions.
func (e *Explainer) Assuming(w WhatIf) (*Explainer, error) {
	doc, err := w.Apply(e.m.out)
	if err != nil {
		return nil, err
	}
	out := NewExplainer(doc, e.m.estate, e.m.on, e.m.profile)
	out.m.out.Source, out.m.out.Estate = e.m.out.Source, e.m.out.Estate
	return out, nil
}
