package arena

import "fmt"

// Exercise declares which scenario of a failure model a fault in this arena's
// heats exercises, so that a heat's evidence can be judged when it ends: package
// ledger. Nothing is inferred from an arena's name.
type Exercise struct {
	Scenario string `json:"scenario"` // its id in the failure model
	// Fault is the kind that the heat's fault events name, or StartsBroken.
	Fault string `json:"fault"`
	// Target is that of the fault's events; without one any.
	Target *string `json:"target,omitempty"`
	// Coverage says how much of the scenario's failure domain the fault takes.
	Coverage string `json:"coverage" default:"partial" enum:"partial,whole"`
	// Machinery says whether what fails is what the scenario names, or a stand-in,
	// of which no more than a sample can come.
	Machinery string `json:"machinery" default:"stand-in" enum:"stand-in,real"`
	// Announced: players are told that it comes.
	Announced bool `json:"announced" default:"false"`
	// From is a milestone that must have been passed before the fault, To one whose
	// first pass after it shows the expected service, SingleWriter one that passes
	// when a single history is written to, and fails for good (final) only when there
	// are two.
	From         *string `json:"from,omitempty"`
	To           *string `json:"to,omitempty"`
	SingleWriter *string `json:"single_writer,omitempty"`
	// WithinSeconds is how soon the expected service must be there, counted from
	// the fault; 0: however late.
	WithinSeconds uint64 `json:"within_seconds,omitempty"`
}

// StartsBroken is the fault of an arena whose machines are broken before the heat.
const StartsBroken = "starts-broken"

// Values of Exercise.Coverage and Exercise.Machinery.
const (
	WholeDomain   = "whole"
	RealMachinery = "real"
)

// exercises checks what the arena says that it exercises.
func (c *checker) exercises() {
	c.failIf(len(c.m.Exercises) > maxItems, "exercises", "must be at most %d", maxItems)
	seen := map[string]bool{}
	for i, e := range c.m.Exercises {
		at := fmt.Sprintf("exercises[%d]", i)
		c.failIf(!isID(e.Scenario), at+".scenario", badID, quote(e.Scenario))
		c.failIf(!isID(e.Fault), at+".fault", badID, quote(e.Fault))
		key := e.Scenario + " " + e.Fault
		if e.Target != nil {
			c.failIf(blank(*e.Target), at+".target", notBlank)
			key += " " + *e.Target
		}
		c.failIf(seen[key], at, "is there already: %s by %s", quote(e.Scenario), quote(e.Fault))
		seen[key] = true
		c.failIf(e.Coverage == WholeDomain && e.Machinery != RealMachinery, at+".coverage",
			"a stand-in never covers the whole domain: set machinery = \"real\" if what fails is what the scenario names, or coverage = \"partial\"")
		c.failIf(e.Fault == StartsBroken && (e.Target != nil || e.From != nil), at, "an arena that starts broken has no target and nothing that holds before")
		for _, m := range []struct {
			key string
			id  *string
		}{{"from", e.From}, {"to", e.To}, {"single_writer", e.SingleWriter}} {
			if m.id != nil {
				_, ok := c.m.Milestone(*m.id)
				c.failIf(!ok, at+"."+m.key, "no milestone is called %s", quote(*m.id))
			}
		}
		c.failIf(e.WithinSeconds > c.m.Rules.DurationSeconds, at+".within_seconds", "must be at most rules.duration_seconds (%d)", c.m.Rules.DurationSeconds)
	}
}
