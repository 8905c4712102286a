package ledger

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// State is what is known of a scenario.
type State string

// The derived states. The last two are decisions, not knowledge.
const (
	NotInjected  State = "not-injected"
	Inconclusive State = "inconclusive" // there is evidence, and all of it was refused
	Sampled      State = "sampled"      // it passed the gates; the fault or the coverage is partial
	Observed     State = "observed"
	Contradicted State = "contradicted"
	Stale        State = "stale" // what passed is too old, or of another target
	Accepted     State = "accepted-exception"
	Owned        State = "owned"
)

// States are all states, from what is known least.
func States() []State {
	return []State{NotInjected, Inconclusive, Stale, Sampled, Observed, Contradicted, Accepted, Owned}
}

// strength orders what evidence can show; decisions and contradictions have none.
func (s State) strength() int {
	switch s {
	case Sampled:
		return 1
	case Observed:
		return 2
	}
	return 0
}

// Cause is what moves a scenario from one state to another.
type Cause string

// The causes.
const (
	ByEvidence Cause = "evidence"
	ByFix      Cause = "evidence that names a fix"
	ByTime     Cause = "time or drift"
	ByDecision Cause = "decision"
)

// moves are the transitions of section 2.3. Where it says "not injected",
// inconclusive and stale stand too as far as evidence goes: nothing that passed is
// current.
var moves = []struct {
	from []State
	to   State
	by   []Cause
}{
	{[]State{NotInjected}, Inconclusive, []Cause{ByEvidence, ByFix}},
	{[]State{NotInjected, Inconclusive, Stale}, Sampled, []Cause{ByEvidence, ByFix}},
	{[]State{NotInjected, Inconclusive, Stale, Sampled}, Observed, []Cause{ByEvidence, ByFix}},
	{[]State{NotInjected, Inconclusive, Sampled, Observed, Stale, Accepted, Owned}, Contradicted, []Cause{ByEvidence, ByFix}},
	{[]State{Contradicted}, Observed, []Cause{ByFix}},
	{[]State{Observed, Sampled}, Stale, []Cause{ByTime}},
	{[]State{NotInjected, Sampled, Observed}, Owned, []Cause{ByDecision}},
	{[]State{NotInjected}, Accepted, []Cause{ByDecision}},
	{[]State{Accepted, Owned}, NotInjected, []Cause{ByDecision}},
}

// Move says whether a scenario may go from one state to another. The error is a
// *Refusal: E_OVERCLAIM for observed without evidence, else E_TRANSITION.
func Move(from, to State, by Cause) error {
	for _, m := range moves {
		if m.to == to && slices.Contains(m.from, from) && slices.Contains(m.by, by) {
			return nil
		}
	}
	switch {
	case to == Observed && by != ByEvidence && by != ByFix:
		return refuse(Overclaim, "nothing is observed without evidence, by %s", by)
	case from == Accepted && (to == Observed || to == Sampled):
		return refuse(BadTransition, "an accepted exception cannot be tested away: what no fault can reach inside this topology stays accepted until it is decided anew")
	case from == Contradicted && to == Observed:
		return refuse(BadTransition, "what was contradicted is observed only by a later run that names the fix")
	}
	return refuse(BadTransition, "%s does not become %s by %s", from, to, by)
}

// Clause is a part of a declared evidence state: [scope ]token.
type Clause struct {
	Scope string // "full contract"; "" in the first clause
	Token string // not-injected, observed-by, sampled-by, accepted-exception, owned-by, deferred-to
	By    string // what comes after -by- or -to-
}

func (c Clause) String() string {
	s := c.Token
	if c.By != "" {
		s += "-" + c.By
	}
	if c.Scope != "" {
		s = c.Scope + " " + s
	}
	return s
}

// Declared is an evidence state as a model writes it: the first clause is the
// state, the later ones defer or delegate.
type Declared []Clause

func (d Declared) String() string {
	parts := make([]string, len(d))
	for i, c := range d {
		parts[i] = c.String()
	}
	return strings.Join(parts, "; ")
}

// State is the declared state.
func (d Declared) State() State {
	if len(d) == 0 {
		return NotInjected
	}
	switch d[0].Token {
	case "observed-by":
		return Observed
	case "sampled-by":
		return Sampled
	case "accepted-exception":
		return Accepted
	case "owned-by":
		return Owned
	}
	return NotInjected
}

var (
	tokenForm = regexp.MustCompile(`^(not-injected|accepted-exception|(observed-by|sampled-by|owned-by|deferred-to)-([a-z0-9]+(?:-[a-z0-9]+)*))$`)
	scopeForm = regexp.MustCompile(`^[A-Za-z0-9-]+( [A-Za-z0-9-]+)*$`)
)

// ParseDeclared reads an evidence state of a model. What it accepts prints as it
// was written.
func ParseDeclared(s string) (Declared, error) {
	var out Declared
	for i, part := range strings.Split(s, "; ") {
		var c Clause
		token := part
		if at := strings.LastIndexByte(part, ' '); at >= 0 {
			c.Scope, token = part[:at], part[at+1:]
			if !scopeForm.MatchString(c.Scope) {
				return nil, fmt.Errorf("%.60q: the scope is not made of plain words", part)
			}
		}
		m := tokenForm.FindStringSubmatch(token)
		if m == nil {
			return nil, fmt.Errorf("%.60q is none of not-injected, observed-by-X, sampled-by-X, accepted-exception, owned-by-X, deferred-to-X", token)
		}
		if c.Token = m[1]; m[2] != "" {
			c.Token, c.By = m[2], m[3]
		}
		delegates := c.Token == "owned-by" || c.Token == "deferred-to"
		switch {
		case i == 0 && c.Scope != "":
			return nil, fmt.Errorf("%.60q: the first clause is the whole scenario's state and has no scope", part)
		case i == 0 && c.Token == "deferred-to":
			return nil, fmt.Errorf("%.60q: the first clause is a state; what is deferred has none", part)
		case i > 0 && !delegates:
			return nil, fmt.Errorf("%.60q: a later clause only defers or delegates: owned-by-X, deferred-to-X", part)
		}
		out = append(out, c)
	}
	return out, nil
}
