package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// Terms are what evidence is judged by.
type Terms struct {
	Model  *Model
	Policy *Policy
	// Arenas are the digests of the arena files that are in use, by the arena's id;
	// one that is not here is taken for the one that is.
	Arenas map[string]string
	// Digest is that of a file of the evidence's heat; nil where the heat is not at
	// hand: then its files are not looked at.
	Digest func(name string) (string, error)
}

// Gate is what one gate said.
type Gate struct {
	// Name is what it looks at; Code is of its refusal, whether it refused or not.
	Name string `json:"gate"`
	Code Code   `json:"code"`
	Pass bool   `json:"pass"`
	Text string `json:"text"`
}

// Verdict is what evidence is worth.
type Verdict struct {
	// Outcome is inconclusive when a gate refused it, else sampled, observed or
	// contradicted.
	Outcome State  `json:"outcome"`
	Gates   []Gate `json:"gates"` // all of them, in their order
	// Why says what makes it less than observed, or a contradiction.
	Why []string `json:"why,omitempty"`
}

// Refused are the codes of the gates that refused it.
func (v Verdict) Refused() []Code {
	var out []Code
	for _, g := range v.Gates {
		if !g.Pass {
			out = append(out, g.Code)
		}
	}
	return out
}

// GateQuestions are the gates in their order, with what each asks.
func GateQuestions() []Gate {
	return []Gate{
		{Name: "target", Code: TargetDrift, Text: "is it of this target?"},
		{Name: "recorder", Code: SelfReport, Text: "was it recorded by the referee, and reviewed by another than who is judged?"},
		{Name: "files", Code: Integrity, Text: "are its files what they were?"},
		{Name: "fault", Code: FaultKind, Text: "does the fault belong to the scenario?"},
		{Name: "surprise", Code: Announced, Text: "did an unplanned fault come unannounced?"},
		{Name: "witness", Code: Unconfirmed, Text: "did another than the injector see it bite?"},
		{Name: "clock", Code: BadClock, Text: "are its instants in order, on the referee's clock?"},
		{Name: "service", Code: Bracket, Text: "was there service before and after?"},
		{Name: "writes", Code: Tokens, Text: "do the writes add up, with nothing unreconciled?"},
		{Name: "baseline", Code: Baseline, Text: "was it healthy before the fault?"},
		{Name: "control", Code: Negative, Text: "are spoilt copies of it refused?"},
	}
}

// Judge holds evidence to every gate, and says what it is worth. It is pure but
// for t.Digest.
func (t Terms) Judge(e *Evidence) Verdict {
	rule := t.Policy.Rule(e.Scenario)
	v := Verdict{}
	for _, g := range GateQuestions() {
		g.Text = t.refusal(g.Code, e, rule)
		if g.Pass = g.Text == ""; g.Pass {
			g.Text = passed(g.Code, e)
		}
		v.Gates = append(v.Gates, g)
	}
	if len(v.Refused()) > 0 {
		v.Outcome = Inconclusive
		return v
	}
	v.Outcome, v.Why = t.worth(e, rule)
	return v
}

// refusal is why a gate refuses the evidence; "" when it does not.
func (t Terms) refusal(code Code, e *Evidence, rule *Rule) string {
	switch code {
	case TargetDrift:
		return t.drifted(e)
	case SelfReport:
		switch {
		case !strings.HasPrefix(e.Recorder, Recorder):
			return fmt.Sprintf("recorded by %q, not by the referee", e.Recorder)
		case e.Reviewer == "" || e.Reviewer == e.Agent:
			return fmt.Sprintf("reviewed by %q, who is judged by it, or nobody", e.Reviewer)
		}
	case Integrity:
		return t.altered(e)
	case FaultKind:
		if rule == nil {
			return "the policy has no rule for this scenario"
		}
		if !slices.Contains(rule.Full, e.Fault.Kind) && !slices.Contains(rule.Sample, e.Fault.Kind) {
			return fmt.Sprintf("%s is not a fault of this scenario", e.Fault.Kind)
		}
	case Announced:
		if e.Fault.AnnouncedToAgent && (rule == nil || !rule.Planned) {
			return "the player was told of it, and the scenario is not a planned one"
		}
	case Unconfirmed:
		switch e.Fault.ConfirmedBy {
		case "":
			return "nobody saw it bite"
		case e.Fault.Injector:
			return "only its injector says that it bit"
		}
	case BadClock:
		return disorder(e.Clock)
	case Bracket:
		switch {
		case e.Probe.Before < t.Policy.AcksBefore:
			return fmt.Sprintf("%d acknowledged writes before the fault; want %d", e.Probe.Before, t.Policy.AcksBefore)
		case e.ExpectedServiceMet == nil:
			return "the heat ended before the expected service came or was overdue"
		case *e.ExpectedServiceMet && e.Probe.After < t.Policy.AcksAfter:
			return fmt.Sprintf("%d acknowledged writes after the fault; want %d", e.Probe.After, t.Policy.AcksAfter)
		}
	case Tokens:
		return unreconciled(e.Probe)
	case Baseline:
		if !e.BaselineHealthy {
			return "it was not healthy before the fault"
		}
	case Negative:
		if want := len(spoilings(rule)); e.NegativeControl.Cases != want || e.NegativeControl.Rejected != want {
			return fmt.Sprintf("of %d spoilt copies %d were refused; want %d", e.NegativeControl.Cases, e.NegativeControl.Rejected, want)
		}
	}
	return ""
}

// Foregone says why evidence of a fault is refused whatever a heat shows, as a
// sentence; "" when it is not. People are to know it before they run one.
func Foregone(fault string) string {
	if fault == arena.StartsBroken {
		return "Evidence of machines that start broken is always refused: the service was not healthy before the fault."
	}
	return ""
}

// Recorder is how the name of whoever records evidence begins.
const Recorder = "refbox referee"

func (t Terms) drifted(e *Evidence) string {
	is := e.Target
	switch {
	case t.Model.Scenario(e.Scenario) == nil:
		return "the model has no such scenario"
	case is.Digest != is.Sum():
		return "the target's digest is not that of its parts"
	case is.Image == "":
		return "the machines were simulated: a twin is another target"
	case is.Policy != t.Policy.SHA256():
		return "it was judged by another policy"
	case is.Release != t.Model.Release:
		return fmt.Sprintf("it is of release %s of the model, which is %s now", is.Release, t.Model.Release)
	case t.Arenas[e.Arena] != "" && t.Arenas[e.Arena] != is.Arena:
		return "the arena's file is another one now"
	}
	return ""
}

func (t Terms) altered(e *Evidence) string {
	if len(e.Artifacts) == 0 {
		return "it names no files"
	}
	if t.Digest == nil {
		return ""
	}
	for _, name := range sorted(e.Artifacts) {
		got, err := t.Digest(name)
		switch {
		case err != nil:
			return fmt.Sprintf("%s cannot be read: %v", name, err)
		case got != e.Artifacts[name]:
			return name + " is not the file that it was"
		}
	}
	return ""
}

func disorder(c Clock) string {
	switch {
	case c.PausedMS > 0:
		return "the heat was paused while the fault ran: what it took is not known"
	case c.BaselineMS > c.InjectedMS, c.InjectedMS > c.ConfirmedMS, c.ConfirmedMS > c.EndMS:
		return fmt.Sprintf("baseline %d, injected %d, confirmed %d, end %d are not in that order", c.BaselineMS, c.InjectedMS, c.ConfirmedMS, c.EndMS)
	case c.RestoredMS != nil && (*c.RestoredMS < c.InjectedMS || *c.RestoredMS > c.EndMS):
		return fmt.Sprintf("restored at %d, which is not between %d and %d", *c.RestoredMS, c.InjectedMS, c.EndMS)
	}
	return ""
}

func unreconciled(p Probe) string {
	switch {
	case p.Writes == 0:
		return "the referee's client wrote nothing, or its result is not there"
	case p.Acknowledged+p.Failed+p.Indeterminate != p.Writes:
		return fmt.Sprintf("%d acknowledged, %d failed and %d indeterminate are not the %s", p.Acknowledged, p.Failed, p.Indeterminate, text.Count(p.Writes, "write"))
	case !p.Counted:
		return "the client's samples and its result differ"
	case p.Unread > 0:
		return fmt.Sprintf("%d acknowledged writes were never read back", p.Unread)
	case p.Lost > p.Acknowledged || p.Before+p.After > p.Acknowledged:
		return "more is lost, or was seen, than was acknowledged"
	case p.Shared && p.Lost > 0:
		return fmt.Sprintf("%s lost, and several faults struck the seat: whose they are cannot be told", text.Count(p.Lost, "write"))
	}
	return ""
}

// worth is what evidence that passed every gate shows.
func (t Terms) worth(e *Evidence, rule *Rule) (State, []string) {
	var why []string
	if n := e.MaxWritableHistories; n != nil && *n > 1 {
		why = append(why, fmt.Sprintf("%d histories were written to at once", *n))
	}
	if e.Probe.Phantoms > 0 {
		why = append(why, fmt.Sprintf("%s done that the service had declined: a retry doubles them", text.Count(e.Probe.Phantoms, "write")))
	}
	if !e.LossWithinDeclaredRisk {
		why = append(why, fmt.Sprintf("%d acknowledged writes are lost, of %.1f s: more than the %.1f s at risk", e.Probe.Lost, seconds(e.Probe.LossMS), seconds(rule.LossMS)))
	}
	if !*e.ExpectedServiceMet {
		why = append(why, "the service was other than expected")
	}
	if len(why) > 0 {
		return Contradicted, why
	}
	if !slices.Contains(rule.Full, e.Fault.Kind) {
		why = append(why, e.Fault.Kind+" only samples the scenario")
	}
	if !e.CoversWholeDomain {
		why = append(why, "the arena's machinery stands in for the real one, or covers a part of the domain")
	}
	if e.Fault.Forgeable != "" && !e.Fault.Untouched {
		why = append(why, "root in the guest could forge what was seen of the fault: "+e.Fault.Forgeable)
	}
	if rule.Histories && e.MaxWritableHistories == nil {
		why = append(why, "nobody watched that a single history was written to")
	}
	if len(why) > 0 {
		return Sampled, why
	}
	return Observed, nil
}

// passed says what a gate saw.
func passed(code Code, e *Evidence) string {
	switch code {
	case TargetDrift:
		return "target " + short(e.Target.Digest)
	case SelfReport:
		return fmt.Sprintf("recorded by %s, reviewed by %s", e.Recorder, e.Reviewer)
	case Integrity:
		return fmt.Sprintf("%s, by their digests", text.Count(len(e.Artifacts), "file"))
	case FaultKind:
		return e.Fault.Kind
	case Announced:
		if e.Fault.AnnouncedToAgent {
			return "announced, as what is planned may be"
		}
		return "the player was not told"
	case Unconfirmed:
		if e.Fault.Untouched {
			return "seen by " + e.Fault.ConfirmedBy + "; nobody had entered the machines who could forge it"
		}
		return "seen by " + e.Fault.ConfirmedBy
	case BadClock:
		return fmt.Sprintf("baseline %d, injected %d, confirmed %d, end %d ms", e.Clock.BaselineMS, e.Clock.InjectedMS, e.Clock.ConfirmedMS, e.Clock.EndMS)
	case Bracket:
		return fmt.Sprintf("%d acknowledged writes before, %d after", e.Probe.Before, e.Probe.After)
	case Tokens:
		return fmt.Sprintf("%s: %d acknowledged, %d failed, %d indeterminate, %d lost", text.Count(e.Probe.Writes, "write"), e.Probe.Acknowledged, e.Probe.Failed, e.Probe.Indeterminate, e.Probe.Lost)
	case Baseline:
		return "healthy"
	}
	return fmt.Sprintf("%d of %d spoilt copies refused", e.NegativeControl.Rejected, e.NegativeControl.Cases)
}

// spoiling is a way to doctor evidence, and the gate that must refuse it.
type spoiling struct {
	name string
	code Code
	do   func(*Evidence)
}

// spoilings are those that mean something under a rule: what is planned may be
// announced.
func spoilings(rule *Rule) []spoiling {
	all := []spoiling{
		{"another target", TargetDrift, func(e *Evidence) { e.Target.Image = digest([]byte(e.Target.Image)) }},
		{"reported by the player", SelfReport, func(e *Evidence) { e.Recorder = e.Agent }},
		{"an altered file", Integrity, func(e *Evidence) { spoilFile(e) }},
		{"another fault", FaultKind, func(e *Evidence) { e.Fault.Kind += "-rehearsed" }},
		{"announced to the player", Announced, func(e *Evidence) { e.Fault.AnnouncedToAgent = true }},
		{"confirmed by its injector", Unconfirmed, func(e *Evidence) { e.Fault.ConfirmedBy = e.Fault.Injector }},
		{"confirmed before it was injected", BadClock, func(e *Evidence) { e.Clock.InjectedMS = e.Clock.ConfirmedMS + 1 }},
		{"nothing before it", Bracket, func(e *Evidence) { e.Probe.Before = 0 }},
		{"a write too many", Tokens, func(e *Evidence) { e.Probe.Acknowledged++ }},
		{"hurt before it", Baseline, func(e *Evidence) { e.BaselineHealthy = false }},
	}
	if rule != nil && rule.Planned {
		return slices.DeleteFunc(all, func(s spoiling) bool { return s.code == Announced })
	}
	return all
}

func spoilFile(e *Evidence) {
	files := map[string]string{}
	for i, name := range sorted(e.Artifacts) {
		files[name] = e.Artifacts[name]
		if i == 0 {
			files[name] = digest([]byte(e.Artifacts[name]))
		}
	}
	e.Artifacts = files
}

// control shows the gates spoilt copies of evidence, and counts those that are
// refused for what was spoilt.
func (t Terms) control(e *Evidence) NegativeControl {
	var n NegativeControl
	for _, s := range spoilings(t.Policy.Rule(e.Scenario)) {
		spoilt := *e
		s.do(&spoilt)
		n.Cases++
		if slices.Contains(t.Judge(&spoilt).Refused(), s.code) {
			n.Rejected++
		}
	}
	return n
}

// TermsOf are the terms for one heat: its files are looked at. Of a recording that
// is a single log there are none.
//
// Each file is read once, whatever is judged by the terms: evidence and its spoilt copies
// name the same ones. What is read after ctx has ended is its error.
func (t Terms) TermsOf(ctx context.Context, rec *recording.Recording) Terms {
	type sum struct {
		hex string
		err error
	}
	var mu sync.Mutex
	known := map[string]sum{}
	t.Digest = func(name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		s, ok := known[name]
		if !ok {
			if s.hex, s.err = fileDigest(ctx, rec.Tree(), name); ctx.Err() != nil {
				return "", ctx.Err()
			}
			known[name] = s
		}
		return s.hex, s.err
	}
	return t
}

// covers says whether an arena's declaration can show more than a sample.
func covers(x arena.Exercise) bool {
	return x.Coverage == arena.WholeDomain && x.Machinery == arena.RealMachinery
}
