// Package ledger keeps apart what a failure model says and what has been shown
// of it. A model declares scenarios, the state of their evidence, and inferences
// that nobody may make; a ledger is a log of evidence, decisions and adopted
// models that only grows; the state of a scenario is derived from both, never
// written (the split of declared and derived is that of engine/register).
//
// It hides the forms of the files, the gates that evidence passes, the transitions
// between states, and how evidence is made of a recorded heat.
//
// Promises:
//
//   - A model is kept as it was written: what is read encodes to the same bytes.
//   - Evidence is made by the referee of a heat's recording alone, and can be made
//     again of it: its files by their digests, its figures by its events.
//   - No state is observed without evidence that passed every gate; contradicting
//     evidence is never outweighed but by a later observation that names the fix.
//   - A prohibited inference stays prohibited, whatever is observed, and cannot be
//     taken out of a model that a ledger has adopted.
//   - The lines of a ledger are chained; what is torn at its end is left out.
//   - Opening writes nothing. Every string that comes out is fit to be shown.
//
// The codes, gates and transitions are those of the failure model's reference,
// sections 2.3 and 2.4; what stays prohibited, section 2.6.
package ledger

import (
	"fmt"
	"slices"
)

// Code names what is refused.
type Code string

// The codes: of the gates of evidence in their order, of models, of moves between
// states, of claims.
const (
	TargetDrift Code = "E_TARGET_DRIFT"
	SelfReport  Code = "E_SELF_REPORT"
	Integrity   Code = "E_INTEGRITY"
	FaultKind   Code = "E_FAULT_KIND"
	Announced   Code = "E_ANNOUNCED"
	Unconfirmed Code = "E_UNCONFIRMED"
	BadClock    Code = "E_CLOCK"
	Bracket     Code = "E_BRACKET"
	Tokens      Code = "E_TOKENS"
	Baseline    Code = "E_BASELINE"
	Negative    Code = "E_NEGATIVE"

	BadSchema         Code = "E_SCHEMA"
	ScenarioSet       Code = "E_SCENARIO_SET"
	BadField          Code = "E_FIELD"
	BadState          Code = "E_STATE"
	Overclaim         Code = "E_OVERCLAIM"
	ProhibitedRemoved Code = "E_PROHIBITED_REMOVED"

	BadTransition Code = "E_TRANSITION"
	BadDecision   Code = "E_DECISION"

	Prohibited  Code = "E_PROHIBITED"
	Unsupported Code = "E_UNSUPPORTED"
)

// Severity of a finding.
type Severity string

// Severities (design, section 7): only breaks fail a check.
const (
	Note  Severity = "note"
	Break Severity = "break"
)

// Finding is something that is not as it should be, or that a reader must know.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code,omitempty"` // of a break; of a note where it is one of the codes
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // from 1; 0: the whole file
	Path     string   `json:"path,omitempty"` // scenarios[2].data_risk
	Scenario string   `json:"scenario,omitempty"`
	Text     string   `json:"text"`
}

func (f Finding) String() string {
	s := f.Text
	if f.Path != "" {
		s = f.Path + ": " + s
	}
	if f.Code != "" {
		s = string(f.Code) + " " + s
	}
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, s)
	case f.File != "":
		return f.File + ": " + s
	}
	return s
}

// Breaks says whether any finding is one.
func Breaks(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Severity == Break })
}

// Refusal is the error of what the rules don't allow.
type Refusal struct {
	Code Code
	Text string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Text }

func refuse(code Code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}
