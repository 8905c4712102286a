package ledger

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"refbox/engine/text"
)

// Claim is what may be said of a scenario or a heat, and what may not.
type Claim struct {
	About string `json:"about"`
	State State  `json:"state,omitempty"` // of a scenario
	// Proves are the sentences that the evidence carries, DoesNot those that it does
	// not, with the reason.
	Proves  []string `json:"proves"`
	DoesNot []string `json:"does_not_prove"`
	// Prohibited are conclusions that tempt here, with the inference each would need.
	Prohibited []Temptation `json:"prohibited"`
	// Always are the model's other prohibited lines: they hold everywhere, and never
	// expire.
	Always []string `json:"always_prohibited"`
}

// Temptation is a conclusion, and the prohibited inference that it needs.
type Temptation struct {
	Conclusion string `json:"conclusion"`
	Needs      string `json:"needs"`
	// OfModel: the model prohibits it; else the policy does.
	OfModel bool `json:"of_model"`
}

// Claim is what may be said of a scenario; a *Refusal with E_SCENARIO_SET for one
// that the model does not have.
func (l *Ledger) Claim(p *Picture, scenario string) (Claim, error) {
	row := p.Row(scenario)
	if row == nil {
		return Claim{}, refuse(ScenarioSet, "the model has no scenario %.60q; it has %s", scenario, strings.Join(l.Model.IDs(), ", "))
	}
	c := Claim{About: scenario, State: row.State}
	for _, it := range row.Items() {
		k := it.Kept
		switch {
		case k.Outcome == Inconclusive:
			c.DoesNot = append(c.DoesNot, fmt.Sprintf("anything by the heat of %s on %s: the evidence was refused by %s", k.Day, k.Arena, joined(k.Refused)))
		case it.Stale != "":
			c.DoesNot = append(c.DoesNot, fmt.Sprintf("anything of today by the heat of %s on %s: %s", k.Day, k.Arena, it.Stale))
		default:
			c.Proves = append(c.Proves, k.Sentence())
			if k.Outcome == Sampled {
				c.DoesNot = append(c.DoesNot, fmt.Sprintf("the whole scenario by the heat of %s on %s: %s", k.Day, k.Arena, strings.Join(k.Why, "; ")))
			}
		}
	}
	c.DoesNot = folded(c.DoesNot)
	switch row.State {
	case NotInjected:
		c.DoesNot = append(c.DoesNot, "anything: there is no evidence of it here")
	case Accepted:
		c.DoesNot = append(c.DoesNot, "that it is survived: it is an accepted exception, and no evidence can make it observed. "+row.NotInjectable)
	case Owned:
		c.DoesNot = append(c.DoesNot, "that it is dealt with: somebody else owns it ("+row.Declared+")")
	}
	if len(c.Proves) > 0 {
		c.DoesNot = append(c.DoesNot, "that it goes so on another target, by another fault, or another time")
	}
	if d := l.Model.Scenario(scenario).Declared().State(); d.strength() > row.State.strength() {
		c.DoesNot = append(c.DoesNot, fmt.Sprintf("that %q holds here: the model declares it, and no evidence here carries it", row.Declared))
	}
	l.tempt(&c, scenario, "*")
	return c, nil
}

// folded says equal sentences once, with how often they hold.
func folded(list []string) []string {
	var out []string
	n := map[string]int{}
	for _, s := range list {
		if n[s]++; n[s] == 1 {
			out = append(out, s)
		}
	}
	for i, s := range out {
		if n[s] > 1 {
			out[i] = fmt.Sprintf("%s (%d times)", s, n[s])
		}
	}
	return out
}

// ClaimHeat is what may be said of a heat by its evidence.
func (l *Ledger) ClaimHeat(j Judged) Claim {
	c := Claim{About: text.Line(j.Heat)}
	kinds := []string{"*", "race"}
	if j.Emulated {
		kinds = append(kinds, "emulated")
	}
	for i := range j.Offers {
		o := &j.Offers[i]
		k := o.Kept()
		if !slices.Contains(kinds, k.Scenario) {
			kinds = append(kinds, k.Scenario)
		}
		if k.Outcome == Inconclusive {
			c.DoesNot = append(c.DoesNot, fmt.Sprintf("anything of %s at %s: the evidence is refused by %s", k.Scenario, k.Territory, joined(k.Refused)))
			continue
		}
		c.Proves = append(c.Proves, k.Sentence())
		if k.Outcome == Sampled {
			c.DoesNot = append(c.DoesNot, fmt.Sprintf("the whole of %s at %s: %s", k.Scenario, k.Territory, strings.Join(k.Why, "; ")))
		}
	}
	c.DoesNot = append(c.DoesNot, j.Notes...)
	if len(c.Proves) > 0 {
		c.DoesNot = append(c.DoesNot, "that it goes so on another target, by another fault, or another time")
	}
	l.tempt(&c, kinds...)
	return c
}

// tempt adds what is prohibited: what tempts to any of these, then the rest of the
// model's lines.
func (l *Ledger) tempt(c *Claim, kinds ...string) {
	lines := l.prohibited()
	used := map[string]bool{}
	for _, f := range l.Policy.Inferences {
		of := slices.ContainsFunc(lines, func(p string) bool { return plain(p) == plain(f.Needs) })
		if (of || f.Own) && slices.ContainsFunc(f.Scenarios, func(s string) bool { return slices.Contains(kinds, s) }) {
			used[plain(f.Needs)] = true
			c.Prohibited = append(c.Prohibited, Temptation{f.Conclusion, f.Needs, of})
		}
	}
	for _, p := range lines {
		if !used[plain(p)] {
			c.Always = append(c.Always, p)
		}
	}
	for _, list := range []*[]string{&c.Proves, &c.DoesNot, &c.Always} {
		if *list == nil {
			*list = []string{}
		}
	}
	if c.Prohibited == nil {
		c.Prohibited = []Temptation{}
	}
}

// prohibited are the lines of the model, and of every one that was adopted before:
// none expires.
func (l *Ledger) prohibited() []string {
	out := slices.Clone(l.Model.Prohibited)
	for _, p := range l.everProhibited() {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// Guard holds a sentence that somebody wants to say to a claim: a *Refusal with
// E_PROHIBITED when it is a prohibited inference, or a conclusion that needs one;
// with E_UNSUPPORTED when nothing here carries it. A state's word is a sentence,
// too: "observed".
func (l *Ledger) Guard(c Claim, says string) error {
	said := plain(says)
	lines := l.prohibited()
	of := func(s string) bool {
		return slices.ContainsFunc(lines, func(p string) bool { return plain(p) == plain(s) })
	}
	if of(says) {
		return refuse(Prohibited, "%q is prohibited by the model, whatever is observed", text.Line(says))
	}
	for _, f := range l.Policy.Inferences {
		if (f.Own || of(f.Needs)) && (plain(f.Needs) == said || plain(f.Conclusion) == said) {
			return refuse(Prohibited, "%q would need the prohibited inference %q", text.Line(says), f.Needs)
		}
	}
	for _, s := range c.Proves {
		if plain(s) == said {
			return nil
		}
	}
	if said == plain(string(c.State)) && said != "" {
		return nil
	}
	if want := State(strings.TrimSpace(strings.ToLower(says))); want.strength() > 0 && c.State.strength() >= want.strength() {
		return nil
	}
	return refuse(Unsupported, "nothing in this ledger carries %q about %s", text.Line(says), c.About)
}

// plain is a sentence without what does not change what it says.
func plain(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, " ")
}

// Kept is the offer as a ledger keeps it.
func (o *Offer) Kept() *Kept {
	return &Kept{Evidence: o.Evidence, Outcome: o.Verdict.Outcome, Refused: o.Verdict.Refused(), Why: o.Verdict.Why}
}

// Sentence is what the evidence shows, as far as it goes: on this target, on this
// day.
func (k *Kept) Sentence() string {
	var b strings.Builder
	fmt.Fprintf(&b, "On %s, on target %s (%s at %s), %s", k.Day, short(k.Target.Digest), k.Arena, k.Territory, k.Fault.Kind)
	if k.Fault.Target != "" && k.Fault.Target != k.Territory {
		fmt.Fprintf(&b, " of %s", k.Fault.Target)
	}
	fmt.Fprintf(&b, " happened, seen by %s; ", k.Fault.ConfirmedBy)
	switch {
	case k.Clock.RestoredMS == nil:
		b.WriteString("no write was acknowledged again until the end")
	case k.Probe.GapMS != nil && *k.Probe.GapMS == 0:
		b.WriteString("no write was refused")
	default:
		fmt.Fprintf(&b, "from %.1f s after its injection writes were acknowledged for good", seconds(*k.Clock.RestoredMS-min(k.Clock.InjectedMS, *k.Clock.RestoredMS)))
		if k.Probe.GapMS != nil {
			fmt.Fprintf(&b, "; the longest stretch without an acknowledged one took %.1f s", seconds(*k.Probe.GapMS))
		}
	}
	fmt.Fprintf(&b, "; of %d acknowledged writes %d were lost", k.Probe.Acknowledged, k.Probe.Lost)
	if k.Outcome == Contradicted {
		b.WriteString("; this contradicts the model: " + strings.Join(k.Why, "; "))
	}
	return b.String()
}

func joined(codes []Code) string {
	out := make([]string, len(codes))
	for i, c := range codes {
		out[i] = string(c)
	}
	return strings.Join(out, ", ")
}
