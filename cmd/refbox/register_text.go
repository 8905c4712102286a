package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
)

// lines prints lines and remembers the first error. Whatever a register says
// is sanitised here, once.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) f(format string, a ...any) {
	if l.err != nil {
		return
	}
	_, l.err = io.WriteString(l.w, text.Line(fmt.Sprintf(format, a...))+"\n")
}

func printCheck(w io.Writer, r *register.Result) error {
	l := &lines{w: w}
	for _, d := range r.Differences {
		l.f("%s:%d:%d: %s: says %s, derives %s", r.File, d.Line, d.Column, d.Path, orAbsent(d.Have), orAbsent(d.Want))
	}
	if n := r.Total - len(r.Differences); n > 0 {
		l.f("and %d more", n)
	}
	if d := r.Form; d != nil {
		l.f("%s:%d:%d: says the same, but is written otherwise: %s, where derive writes %s", r.File, d.Line, d.Column, d.Have, d.Want)
	}
	for i := range r.Findings {
		printLine(l, "", &r.Findings[i])
	}
	s := &r.Summary
	l.f("%s, %s; surviving cells: %d of %d today, %d in the design", text.Count(s.Stores, "store"), text.Count(s.Scenarios, "scenario"), s.CellsSurvivingCurrent, s.CellsTotal, s.CellsSurvivingTarget)
	l.f("%s, %d accepted, %s, by the %s rules, as of %s", text.Count(s.Gaps, "gap"), s.Accepted, text.Count(s.Notes, "note"), r.Profile, r.On)
	switch {
	case !r.Rendered:
		l.f("%s is sound; it declares, and renders nothing that could be compared", r.File)
	case r.Holds:
		l.f("%s holds: every derived field is what it derives", r.File)
	case r.Total == 0:
		l.f("%s does not hold: write it anew with refbox register derive", r.File)
	default:
		l.f("%s does not hold: %s", r.File, text.Count(r.Total, "difference"))
	}
	return l.err
}

func orAbsent(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// printLine tells one finding on a line.
func printLine(l *lines, indent string, f *register.Finding) {
	about := f.StoreID
	if f.ScenarioID != nil {
		about += " in " + *f.ScenarioID
	}
	if f.MigrationID != nil {
		about += " by " + *f.MigrationID
	}
	l.f("%s%-8s  %s  %s: %s", indent, f.Severity, f.Code, about, f.Says())
}

func printFinding(w io.Writer, x *register.Explanation) error {
	l := &lines{w: w}
	l.f("%s on %s: %s", x.Rule.Code, x.StoreID, x.Rule.Title)
	l.f("  fires when %s", x.Rule.Says)
	if !x.Active {
		l.f("  the seed profile does not have this rule; this is what it would say")
	}
	if len(x.Evaluations) == 0 {
		l.f("  not applied: %s has nothing that the rule is about", x.StoreID)
	}
	for _, e := range x.Evaluations {
		about := ""
		if e.ScenarioID != nil {
			about = " in " + *e.ScenarioID
		}
		if e.MigrationID != nil {
			about = " for " + *e.MigrationID
		}
		verdict := "does not fire"
		if e.Fired {
			verdict = "fires"
			if f := e.Finding; f != nil && f.Acceptance != nil {
				verdict = fmt.Sprintf("fires, and %s accepts it until %s", f.Acceptance.AcceptedBy, f.Acceptance.ReviewOn)
			}
		}
		l.f("  %s%s: %s", verdict, about, e.Because)
		for _, in := range e.Inputs {
			l.f("    %s = %s", in.Path, inputText(in.Value))
		}
	}
	return l.err
}

func inputText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return text.Truncate(string(b), 200, text.Ellipsis)
}

func printCells(w io.Writer, cells []register.CellExplanation) error {
	l := &lines{w: w}
	for _, x := range cells {
		c := &x.Cell
		outcome := string(c.Outcome)
		if c.Minutes != nil {
			outcome += " in " + register.Span(c.Minutes)
		}
		l.f("%s in %s, %s: %s, %d side(s) writable", c.StoreID, c.ScenarioID, postureText(c.Posture), outcome, c.ConcurrentWriters)
		for _, n := range c.Notes {
			l.f("  %s", n)
		}
		for _, s := range x.Sides {
			operator := ""
			if s.Operator {
				operator = ", where the operator is"
			}
			l.f("  side %s%s: %s, because %s", s.ID, operator, s.Outcome, s.Rule)
			for _, r := range s.Copies {
				mark := "no "
				if r.Usable {
					mark = "yes"
				}
				l.f("    %s %s: %s", mark, r.ID, r.Because)
			}
		}
	}
	return l.err
}

func postureText(p register.Posture) string {
	if p == register.TargetPosture {
		return "as designed"
	}
	return "today"
}

func printPlan(w io.Writer, p *register.Plan) error {
	l := &lines{w: w}
	if len(p.Stores) == 0 {
		l.f("no copy is planned")
	}
	for i := range p.Stores {
		s := &p.Stores[i]
		l.f("%s: today %s", s.StoreID, s.All.Before)
		for j := range s.Each {
			printStep(l, "  with "+s.Each[j].Copies[0], &s.Each[j])
		}
		if len(s.Each) > 1 {
			printStep(l, "  with all of them", &s.All)
		}
	}
	l.f("%s that no planned copy closes", text.Count(len(p.Open), "gap"))
	for i := range p.Open {
		printLine(l, "  ", &p.Open[i])
	}
	return l.err
}

func printStep(l *lines, what string, s *register.Step) {
	l.f("%s: %s", what, s.After)
	for i := range s.Closes {
		l.f("    closes %s", brief(&s.Closes[i]))
	}
	for i := range s.Opens {
		l.f("    opens  %s: %s", brief(&s.Opens[i]), s.Opens[i].Says())
	}
	for _, c := range s.Cells {
		l.f("    %s: %s → %s", c.ScenarioID, cellText(c.Before), cellText(c.After))
	}
	if len(s.Closes)+len(s.Opens)+len(s.Cells) == 0 {
		l.f("    changes no finding and no cell")
	}
}

// brief names a finding without its text.
func brief(f *register.Finding) string {
	s := string(f.Code)
	if f.Severity != register.Gap {
		s = string(f.Severity) + " " + s
	}
	if f.ScenarioID != nil {
		s += " in " + *f.ScenarioID
	}
	return s
}

// cellText shows every side, for a change may be on the other one.
func cellText(c *register.Cell) string {
	if c == nil {
		return "absent"
	}
	var sides []string
	for _, s := range c.Partitions {
		mark := ""
		if s.Operator {
			mark = "*"
		}
		sides = append(sides, s.ID+mark+" "+string(s.Outcome))
	}
	out := strings.Join(sides, ", ")
	if c.Minutes != nil {
		out += " (" + register.Span(c.Minutes) + ")"
	}
	return out
}

func printChanges(w io.Writer, c *register.Changes) error {
	l := &lines{w: w}
	if c.Empty() {
		l.f("nothing differs")
		return l.err
	}
	for i := range c.Opened {
		printLine(l, "opened    ", &c.Opened[i])
	}
	for i := range c.Closed {
		printLine(l, "closed    ", &c.Closed[i])
	}
	for i := range c.Turned {
		t := &c.Turned[i]
		printLine(l, fmt.Sprintf("was %-8s  now ", t.Before.Severity), &t.After)
	}
	for i := range c.Reworded {
		printLine(l, "reworded  ", &c.Reworded[i].After)
	}
	for i := range c.Drills {
		l.f("drill     %s", c.Drills[i].String())
	}
	for _, p := range c.Points {
		before, after := "absent", "absent"
		if p.Before != nil {
			before = p.Before.String()
		}
		if p.After != nil {
			after = p.After.String()
		}
		l.f("point     %s: %s → %s", p.StoreID, before, after)
	}
	for _, x := range c.Cells {
		l.f("cell      %s in %s, %s: %s → %s", x.StoreID, x.ScenarioID, postureText(x.Posture), cellText(x.Before), cellText(x.After))
	}
	for _, x := range c.Summary {
		l.f("count     %s: %d → %d", x.Name, x.Before, x.After)
	}
	return l.err
}
