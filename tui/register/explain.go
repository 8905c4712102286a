package register

import (
	"encoding/json"
	"fmt"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// question is what x asks: a cell, or the rules of some findings on a store.
type question struct {
	store    string
	scenario string // of a cell; else the codes are asked
	posture  register.Posture
	codes    []register.Code
}

func (q question) title() string {
	switch {
	case q.scenario != "":
		return "explain " + q.store + " in " + q.scenario
	case len(q.codes) == 1:
		return "explain " + string(q.codes[0]) + " on " + q.store
	}
	return "explain " + q.store
}

func (q question) key() string { return fmt.Sprint(q) }

// explainLines answer a question: which rule held, and what it looked at.
func explainLines(r *reading, q question, width int) []line {
	g := page{width: width}
	if q.scenario != "" {
		x, err := r.now.Cell(q.posture, q.store, q.scenario)
		if err != nil {
			g.say("", 0, alarm, "%v", err)
			return g.lines
		}
		g.cellExplained(r, &x)
		return g.lines
	}
	for _, code := range q.codes {
		x, err := r.now.Finding(code, q.store)
		if err != nil {
			g.say("", 0, alarm, "%v", err)
			continue
		}
		g.ruleExplained(&x)
	}
	if len(g.lines) == 0 {
		g.row(seg{"nothing here has a rule behind it", dim})
	}
	return g.lines
}

func (p *page) cellExplained(r *reading, x *register.CellExplanation) {
	m := timed(&x.Cell)
	p.row(seg{string(m.Shape) + " " + m.Word, m.Style.With(canvas.Bold)}, seg{", " + postureWord(x.Cell.Posture) + "; " + writers(&x.Cell) + " side(s) writable", plain})
	for _, n := range x.Cell.Notes {
		p.say("", 0, plain, "%s", n)
	}
	for i := range x.Sides {
		s := &x.Sides[i]
		who := ""
		if s.Operator {
			who = " ◆ operator: this side decides"
		}
		p.heading("side " + s.ID + who)
		m := outcomeSign(s.Outcome)
		p.row(seg{string(m.Shape) + " " + string(s.Outcome), m.Style})
		p.say("because", 10, plain, "%s", s.Rule)
		for _, c := range s.Copies {
			sign, st := "✗ no ", dim
			if c.Usable {
				sign, st = "✓ yes", canvas.Fg(canvas.Ok)
			}
			p.row(seg{sign + "  ", st}, seg{c.ID, plain.With(canvas.Bold)})
			p.say("", 7, dim, "%s", c.Because)
		}
		if len(s.Copies) == 0 {
			p.row(seg{"the store has no copy", dim})
		}
	}
}

func (p *page) ruleExplained(x *register.Explanation) {
	p.heading(string(x.Rule.Code))
	p.say("", 0, plain, "%s", x.Rule.Title)
	p.say("fires when", 12, dim, "%s", x.Rule.Says)
	if !x.Active {
		p.say("", 0, canvas.Fg(canvas.Warn), "The seed profile does not have this rule; this is what it would say.")
	}
	if len(x.Evaluations) == 0 {
		p.row(seg{"not applied: the store has nothing that the rule is about", dim})
	}
	for _, e := range x.Evaluations {
		sign, st := "○ does not fire", dim
		if e.Fired {
			sign, st = "✗ fires", alarm
			if f := e.Finding; f != nil && f.Severity != register.Gap {
				m := severitySign(f.Severity)
				sign, st = fmt.Sprintf("%c fires, as %s", m.Shape, m.Word), m.Style
			}
		}
		about := ""
		if e.ScenarioID != nil {
			about = " in " + *e.ScenarioID
		}
		if e.MigrationID != nil {
			about = " for " + *e.MigrationID
		}
		p.row(seg{sign, st.With(canvas.Bold)}, seg{about, plain})
		p.say("", 2, plain, "%s", e.Because)
		for _, in := range e.Inputs {
			p.say("", 4, dim, "%s = %s", in.Path, valueText(in.Value))
		}
	}
}

// valueText is an input's value, cut where it is long.
func valueText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return text.Truncate(text.Line(string(b)), 300, text.Ellipsis)
}
