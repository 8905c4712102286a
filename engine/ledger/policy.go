package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"refbox/engine/text"
)

// Policy says what counts as evidence: which faults exercise a scenario, how much
// must be seen before and after, and what nobody may conclude. It is part of a
// target: evidence of another policy is evidence of another target.
type Policy struct {
	// DrillMaxAgeDays is how old evidence may be before it is stale.
	DrillMaxAgeDays int `toml:"drill_max_age_days" json:"drill_max_age_days"`
	// AcksBefore and AcksAfter are how many acknowledged writes must bracket a fault.
	AcksBefore uint64      `toml:"acks_before" json:"acks_before"`
	AcksAfter  uint64      `toml:"acks_after" json:"acks_after"`
	Rules      []Rule      `toml:"rule" json:"rule"`
	Inferences []Inference `toml:"inference" json:"inference"`

	written []byte
}

// Rule is what counts for some scenarios.
type Rule struct {
	Scenarios []string `toml:"scenarios" json:"scenarios"`
	// Full are kinds of fault that are the scenario, Sample those that only sample
	// it. Without any in Full nothing can inject the scenario, and Why says why.
	Full   []string `toml:"full" json:"full"`
	Sample []string `toml:"sample" json:"sample"`
	Why    string   `toml:"why" json:"why,omitempty"`
	// Planned: it may be announced, since that is what it is.
	Planned bool `toml:"planned" json:"planned,omitempty"`
	// LossMS is the declared risk: of how many milliseconds the acknowledged writes
	// may be lost.
	LossMS uint64 `toml:"loss_ms" json:"loss_ms"`
	// Histories: observed only where somebody watched that a single history was
	// written to.
	Histories bool `toml:"histories" json:"histories,omitempty"`
}

// Injectable says that a fault can be the scenario.
func (r *Rule) Injectable() bool { return r != nil && len(r.Full) > 0 }

// Inference is a conclusion that somebody might draw, and the prohibited line that
// it would need.
type Inference struct {
	// Scenarios that tempt to it; "*" for all, "race" for every heat, "emulated" for
	// heats whose machines are.
	Scenarios  []string `toml:"scenarios" json:"scenarios"`
	Conclusion string   `toml:"conclusion" json:"conclusion"`
	Needs      string   `toml:"needs" json:"needs"`
	// Own: the policy prohibits it, whatever the model says; else it counts with
	// models that have the line.
	Own bool `toml:"own" json:"own,omitempty"`
}

const maxPolicy = 1 << 20

// ParsePolicy reads a policy, TOML. The error names every fault.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	if len(data) > maxPolicy {
		return nil, fmt.Errorf("%s: is larger than %d MiB, which no policy is", file, maxPolicy>>20)
	}
	p := &Policy{written: data}
	meta, err := toml.Decode(string(data), p)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%s:%d: %s", file, at.Position.Line, text.Line(at.Message))
		}
		return nil, fmt.Errorf("%s: %s", file, text.Line(err.Error()))
	}
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, text.Line(fmt.Sprintf(format, args...))) }
	for _, k := range meta.Undecoded() {
		fail("%s: unknown key", k)
	}
	if p.DrillMaxAgeDays < 1 || p.DrillMaxAgeDays > 3650 {
		fail("drill_max_age_days: must be from 1 to 3650")
	}
	if p.AcksBefore < 1 || p.AcksAfter < 1 {
		fail("acks_before, acks_after: must be 1 or more: a fault that nothing brackets proves nothing")
	}
	if len(p.Rules) == 0 || len(p.Rules) > maxScenarios || len(p.Inferences) > maxList {
		fail("there are %d rules and %d inferences: want 1 to %d, and at most %d", len(p.Rules), len(p.Inferences), maxScenarios, maxList)
	}
	seen := map[string]bool{}
	for i := range p.Rules {
		r := &p.Rules[i]
		for _, id := range r.Scenarios {
			if !idForm.MatchString(id) || seen[id] {
				fail("rule %d: scenario %.60q is no id, or has a rule already", i+1, id)
			}
			seen[id] = true
		}
		for _, k := range slices.Concat(r.Full, r.Sample) {
			if !idForm.MatchString(k) {
				fail("rule %d: fault %.60q is no id", i+1, k)
			}
		}
		if len(r.Scenarios) == 0 {
			fail("rule %d: names no scenario", i+1)
		}
		if len(r.Full) == 0 && strings.TrimSpace(r.Why) == "" {
			fail("rule %d: no fault is the scenario, and why does not say why", i+1)
		}
	}
	for i, f := range p.Inferences {
		if len(f.Scenarios) == 0 || strings.TrimSpace(f.Conclusion) == "" || strings.TrimSpace(f.Needs) == "" {
			fail("inference %d: lacks scenarios, conclusion or needs", i+1)
		}
	}
	if plain, err := json.Marshal(p); err == nil {
		_, odd := walk(plain)
		for _, o := range odd {
			fail("%s: %s", o.path, o.text)
		}
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("%s: %s", file, strings.Join(bad[:min(len(bad), 20)], "\n  "))
	}
	return p, nil
}

// Written is the policy as it was read, to the byte.
func (p *Policy) Written() []byte { return p.written }

// SHA256 is the digest of the policy as it was read.
func (p *Policy) SHA256() string { return digest(p.written) }

// Rule is the rule of a scenario, nil for none: then nothing is known to inject it.
func (p *Policy) Rule(scenario string) *Rule {
	for i := range p.Rules {
		if slices.Contains(p.Rules[i].Scenarios, scenario) {
			return &p.Rules[i]
		}
	}
	return nil
}
