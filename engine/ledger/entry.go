package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"refbox/engine/event"
	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
)

// Schema of a ledger's lines. Its hash is what the first line carries.
const Schema = "refbox-ledger-v1"

// Entry is a line of a ledger: one of Model, Evidence and Decision.
type Entry struct {
	Schema   string    `json:"schema"`
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Model    *Adoption `json:"model,omitempty"`
	Kept     *Kept     `json:"evidence,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	Prev     string    `json:"prev"` // the hash of the line before; the last key

	line int
}

// Adoption says by which model and policy the lines after it go.
type Adoption struct {
	File         string   `json:"file"` // beside the ledger
	SHA256       string   `json:"sha256"`
	Release      string   `json:"release"`
	Scenarios    []string `json:"scenarios"`
	Prohibited   []string `json:"prohibited_inference"`
	Policy       string   `json:"policy"` // beside the ledger
	PolicySHA256 string   `json:"policy_sha256"`
}

// Kept is evidence as a ledger keeps it: with what it was worth when it was judged,
// by the model and the policy that it names.
type Kept struct {
	Evidence
	Outcome State    `json:"outcome"`
	Refused []Code   `json:"refused,omitempty"`
	Why     []string `json:"why,omitempty"`
}

// Decision is what somebody decided about a scenario.
type Decision struct {
	Scenario string       `json:"scenario"`
	Kind     DecisionKind `json:"kind"`
	Owner    string       `json:"owner"`
	Reason   string       `json:"reason"`
	ReviewOn string       `json:"review_on"` // 2006-01-02
}

// DecisionKind is what a decision does.
type DecisionKind string

// The kinds of decisions.
const (
	Accept DecisionKind = "accept" // an exception
	Own    DecisionKind = "own"    // somebody else owns the scenario
	Reopen DecisionKind = "reopen" // an acceptance or ownership has expired, or the topology changed
)

// to is the state that a decision makes.
func (k DecisionKind) to() (State, bool) {
	switch k {
	case Accept:
		return Accepted, true
	case Own:
		return Owned, true
	case Reopen:
		return NotInjected, true
	}
	return "", false
}

// Check refuses a decision that is not whole on the day that it is made: a
// *Refusal with E_DECISION.
func (d *Decision) Check(m *Model, day string) error {
	_, known := d.Kind.to()
	review, err := time.Parse(time.DateOnly, d.ReviewOn)
	today, terr := time.Parse(time.DateOnly, day)
	switch {
	case !known:
		return refuse(BadDecision, "%.40q is no decision: want %s, %s or %s", d.Kind, Accept, Own, Reopen)
	case m != nil && m.Scenario(d.Scenario) == nil:
		return refuse(BadDecision, "the model has no scenario %.60q", d.Scenario)
	case strings.TrimSpace(text.Line(d.Owner)) == "":
		return refuse(BadDecision, "%s of %s: nobody owns it", d.Kind, d.Scenario)
	case strings.TrimSpace(text.Line(d.Reason)) == "":
		return refuse(BadDecision, "%s of %s: no reason is given", d.Kind, d.Scenario)
	case err != nil:
		return refuse(BadDecision, "%s of %s: review_on %.20q is no day; write it as 2006-01-02", d.Kind, d.Scenario, d.ReviewOn)
	case terr == nil && d.Kind != Reopen && !review.After(today):
		return refuse(BadDecision, "%s of %s: review_on %s is not in the future", d.Kind, d.Scenario, d.ReviewOn)
	}
	return nil
}

func parseEntry(line []byte) (Entry, error) {
	var e Entry
	places, odd := walk(line)
	if places == nil {
		return e, errors.New("is no JSON object")
	}
	if len(odd) > 0 {
		return e, fmt.Errorf("%s %s", odd[0].path, odd[0].text)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	n := 0
	for _, there := range []bool{e.Model != nil, e.Kept != nil, e.Decision != nil} {
		if there {
			n++
		}
	}
	switch {
	case e.Schema != Schema:
		return e, fmt.Errorf("schema %.40q is not %s", e.Schema, Schema)
	case n != 1:
		return e, errors.New("is not one of model, evidence and decision")
	case e.Kept != nil && !slices.Contains(States(), e.Kept.Outcome):
		return e, fmt.Errorf("outcome %.40q is no state", e.Kept.Outcome)
	}
	return e, nil
}

func genesis() string { return event.Hash([]byte(Schema)) }

// encode is entries as lines, chained to what comes before.
func encode(entries []Entry, sequence uint64, head string) ([]byte, error) {
	var out []byte
	for _, e := range entries {
		e.Schema, e.Sequence, e.Prev = Schema, sequence, head
		line, err := plainjson.Compact(e)
		if err != nil {
			return nil, err
		}
		head = event.Hash(line)
		out = append(append(out, line...), '\n')
		sequence++
	}
	return out, nil
}
