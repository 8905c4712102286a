package ledger

import (
	"fmt"
	"strings"

	"refbox/engine/ledger"
	"refbox/tui/view"
)

// scenarioLines tell a scenario as the model has it, and what follows.
func scenarioLines(r *reading, row *ledger.Row, width int) []line {
	g := page{width: width}
	if row == nil {
		return nil
	}
	s := r.ledger.Model.Scenario(row.Scenario)
	const n = 15
	g.mark(stateSign(row.State), n, plain, "%s", meaning(row.State))
	g.say("declared", n, plain, "%s", row.Declared)
	g.blank()
	g.say("what fails", n, plain, "%s", s.FailureDomain)
	g.say("mechanism", n, plain, "%s", s.Mechanism)
	g.say("service", n, plain, "%s", s.ExpectedService)
	g.say("at risk", n, plain, "%s", s.DataRisk)
	if d := row.Decision; d != nil {
		g.heading("decided: %s", d.Kind)
		g.say("owner", n, plain, "%s", d.Owner)
		g.say("reason", n, plain, "%s", d.Reason)
		g.say("look again", n, plain, "%s", d.ReviewOn)
	}
	if rule := r.ledger.Policy.Rule(row.Scenario); row.Injectable {
		g.heading("what counts as it")
		g.say("faults", n, plain, "%s", strings.Join(rule.Full, ", "))
		if len(rule.Sample) > 0 {
			g.say("sampled by", n, plain, "%s", strings.Join(rule.Sample, ", "))
		}
		if rule.Planned {
			g.say("planned", n, plain, "it may be announced")
		}
		g.say("may lose", n, plain, "%.1f s of acknowledged writes", float64(rule.LossMS)/1000)
	} else {
		why := "why nothing can inject it"
		if row.State == ledger.Accepted {
			why = "why it is an accepted exception"
		}
		g.heading("%s", why)
		g.say("", 0, plain, "The mechanism is %q, and the risk: %s.", s.Mechanism, s.DataRisk)
		g.say("", 0, plain, "%s", row.NotInjectable)
	}
	first := true
	for _, f := range r.picture.Findings {
		if f.Scenario != row.Scenario {
			continue
		}
		if first {
			g.heading("findings")
			first = false
		}
		st := plain
		if f.Severity == ledger.Break {
			st = alarm
		}
		f.Scenario = ""
		g.say(string(f.Severity), 7, st, "%s", f)
	}
	return g.lines
}

// meaning is a state in a sentence.
func meaning(s ledger.State) string {
	switch s {
	case ledger.NotInjected:
		return "nothing has been shown of it here"
	case ledger.Inconclusive:
		return "there is evidence, and every piece was refused by a gate"
	case ledger.Stale:
		return "what was shown is too old, or of another target"
	case ledger.Sampled:
		return "evidence passed every gate, and covers a part of it"
	case ledger.Observed:
		return "evidence passed every gate, and covers all of it, on its target, on its day"
	case ledger.Contradicted:
		return "valid evidence says otherwise; only a later run that names the fix ends that"
	case ledger.Accepted:
		return "decided: it is not survived, and no evidence can make it observed"
	}
	return "decided: somebody else answers for it"
}

// evidenceLines tell what is behind the chosen cell, newest first, with every
// gate.
func evidenceLines(r *reading, row *ledger.Row, cell *ledger.Cell, width int) []line {
	g := page{width: width}
	if row == nil {
		return nil
	}
	items := row.Items()
	if cell != nil {
		items = cell.Evidence
	}
	if len(items) == 0 {
		g.say("", 0, plain, "No evidence here.")
		if d := r.ledger.Model.Scenario(row.Scenario).Declared().State(); d == ledger.Observed || d == ledger.Sampled {
			g.say("", 0, warn, "%s is declared, no evidence here.", row.Declared)
		}
		for i := range row.Cells {
			if c := &row.Cells[i]; len(c.Declares) > 0 && (cell == nil || cell.Arena == c.Arena) {
				g.say("", 0, dim, "%s says that it exercises it by %s: run a heat, then refbox ledger add.", c.Arena, strings.Join(c.Declares, ", "))
				for _, fault := range c.Declares {
					if why := ledger.Foregone(fault); why != "" {
						g.say("", 0, dim, "%s", why)
					}
				}
			}
		}
		g.heading("what a gate will ask")
		for _, q := range ledger.GateQuestions() {
			g.say(q.Name, 14, dim, "%s", q.Text)
		}
		return g.lines
	}
	for i := len(items) - 1; i >= 0; i-- {
		g.item(r, items[i])
	}
	return g.lines
}

func (p *page) item(r *reading, it ledger.Item) {
	k := it.Kept
	p.heat = k.Heat
	p.heading("%s  %s at %s, %s", k.Day, k.Arena, k.Territory, k.Agent)
	p.mark(stateSign(k.Outcome), 15, plain, "%s", outcome(k))
	if it.Stale != "" && k.Outcome != ledger.Inconclusive { // what was refused never counted
		p.mark(stateSign(ledger.Stale), 15, warn, "%s", it.Stale)
	}
	if k.Fix != "" {
		p.say("fix", 15, plain, "%s", k.Fix)
	}
	const n = 15
	f := fmt.Sprintf("%s of %s, by %s", k.Fault.Kind, k.Fault.Target, k.Fault.Injector)
	p.say("fault", n, plain, "%s", f)
	if k.Fault.ConfirmedBy != "" {
		p.say("seen", n, plain, "%s: %s", k.Fault.ConfirmedBy, k.Fault.Saw)
	}
	p.say("when", n, plain, "%s", when(k.Clock))
	p.say("writes", n, plain, "%d acknowledged, %d failed, %d indeterminate; %s", k.Probe.Acknowledged, k.Probe.Failed, k.Probe.Indeterminate, lost(k.Probe))
	if told := ledger.ToldWords(k.Told); told != "" {
		p.say("served", n, plain, "%s", told)
	}
	if watched := ledger.ToldWords(k.Watched); watched != "" {
		p.say("watched", n, plain, "%s", watched)
	}
	if h := k.MaxWritableHistories; h != nil {
		p.say("histories", n, plain, "%d written to at once, at most", *h)
	}
	for _, g := range gates(r, k) {
		m := gateSign(g.Pass)
		m.Word = g.Name
		st := dim
		if !g.Pass {
			st, m.Word = alarm, strings.TrimPrefix(string(g.Code), "E_")
		}
		p.mark(m, 17, st, "%s", g.Text)
	}
	p.say("ledger", n, dim, "line %d, reviewed by %s", it.Line, k.Reviewer)
	p.say("heat", n, dim, "%s", k.Heat)
	p.heat = ""
}

// gates are those of the evidence as it was judged: what is judged by another policy
// today keeps the refusals that it had.
func gates(r *reading, k *ledger.Kept) []ledger.Gate {
	terms := ledger.Terms{Model: r.ledger.Model, Policy: r.ledger.Policy}
	out := terms.Judge(&k.Evidence).Gates
	for i := range out {
		refused := false
		for _, c := range k.Refused {
			refused = refused || c == out[i].Code
		}
		switch {
		case refused && out[i].Pass:
			out[i].Pass, out[i].Text = false, "refused when it was judged"
		case !refused && !out[i].Pass:
			out[i].Pass, out[i].Text = true, "passed when it was judged"
		}
	}
	return out
}

func outcome(k *ledger.Kept) string {
	switch {
	case len(k.Refused) > 0:
		codes := make([]string, len(k.Refused))
		for i, c := range k.Refused {
			codes[i] = string(c)
		}
		return "refused by " + strings.Join(codes, ", ")
	case len(k.Why) > 0:
		return strings.Join(k.Why, "; ")
	}
	return "all of the scenario, on this target"
}

func when(c ledger.Clock) string {
	s := fmt.Sprintf("injected %s, confirmed +%s", view.Clock(c.InjectedMS), view.Span(c.ConfirmedMS-min(c.InjectedMS, c.ConfirmedMS)))
	if c.RestoredMS == nil {
		return s + ", never restored"
	}
	return s + ", restored +" + view.Span(*c.RestoredMS-min(c.InjectedMS, *c.RestoredMS))
}

func lost(p ledger.Probe) string {
	s := "none lost"
	if p.Lost > 0 {
		s = fmt.Sprintf("%d lost, of %s", p.Lost, view.Span(p.LossMS))
	}
	if p.GapMS != nil {
		s += ", longest gap " + view.Span(*p.GapMS)
	}
	return s
}

// claimLines tell what may be said of a scenario, and what may not.
func claimLines(r *reading, row *ledger.Row, width int) []line {
	g := page{width: width}
	if row == nil {
		return nil
	}
	c, err := r.ledger.Claim(r.picture, row.Scenario)
	if err != nil {
		g.say("", 0, alarm, "%v", err)
		return g.lines
	}
	g.heading("it proves")
	if len(c.Proves) == 0 {
		g.say("", 0, plain, "nothing")
	}
	for _, s := range c.Proves {
		g.mark(bare(gateSign(true)), 2, plain, "%s", s)
	}
	g.heading("it does not prove")
	for _, s := range c.DoesNot {
		g.say("–", 2, plain, "%s", s)
	}
	if len(c.Prohibited) > 0 {
		g.heading("must not be concluded")
	}
	for _, p := range c.Prohibited {
		g.mark(bare(gateSign(false)), 2, plain, "%s", p.Conclusion)
		by := "the policy"
		if p.OfModel {
			by = "the model"
		}
		g.say("", 2, dim, "needs: %s (%s prohibits it)", p.Needs, by)
	}
	g.heading("prohibited whatever is observed")
	if len(c.Always) == 0 {
		g.say("", 0, dim, "nothing beside these")
	}
	for _, s := range c.Always {
		g.mark(bare(gateSign(false)), 2, dim, "%s", s)
	}
	return g.lines
}

// bare is a sign's shape alone.
func bare(s view.Sign) view.Sign {
	s.Word = ""
	return s
}
