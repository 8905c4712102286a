package probe

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"refbox/engine/text"
)

// Bounds of what is kept. A hostile guest chooses what it answers, not how much
// of it we remember.
const (
	maxBody     = 64 << 10 // of a response, given to a verifier
	maxShown    = 1 << 10  // of a response, in a record
	maxReason   = 1 << 10
	maxEvidence = 64 << 10
	maxRecords  = 400 // per attempt: the first half, then the last
)

// Record is one probe call: what was asked, what came back.
type Record struct {
	Call     string         `json:"call"`
	Machine  string         `json:"machine,omitempty"`
	Request  map[string]any `json:"request,omitempty"`
	Response map[string]any `json:"response,omitempty"`
	AtMS     uint64         `json:"at_ms"` // the heat's clock
	TookMS   uint64         `json:"took_ms"`
	Tries    int            `json:"tries,omitempty"` // when more than one
	// Outside: seen from outside the guest, a witness.
	Outside bool `json:"outside"`
	// Forgeable is what root in the guest could forge of it; "" is nothing.
	Forgeable string `json:"forgeable"`
	// Error is the category of a call that failed; refused marks a requirement
	// that the answers up to here did not meet.
	Error   Category `json:"error,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

// fail notes why the call failed: its failure's category, or that it was cut off.
func (r *Record) fail(err error) {
	r.Error = Timeout
	var f *Failure
	if errors.As(err, &f) {
		r.Error = f.Category
	}
	r.Response = map[string]any{"error": bounded(err.Error(), maxShown)}
}

// Evidence is the file behind a verdict.
type Evidence struct {
	SchemaVersion  int             `json:"schema_version"`
	Territory      string          `json:"territory"`
	Milestone      string          `json:"milestone"`
	Attempt        uint64          `json:"attempt"`
	Verifier       string          `json:"verifier"`
	VerifierSHA256 string          `json:"verifier_sha256"`
	StartedMS      uint64          `json:"started_ms"`
	FinishedMS     uint64          `json:"finished_ms"`
	Verdict        string          `json:"verdict"` // passed, failed, revoked; of an attack withstood, failed
	Category       Category        `json:"category,omitempty"`
	Source         string          `json:"source,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Evidence       json.RawMessage `json:"evidence,omitempty"`
	NotBeforeMS    *uint64         `json:"not_before_ms,omitempty"`
	HeldMS         *uint64         `json:"held_ms,omitempty"`
	Attacks        []AttackResult  `json:"attacks,omitempty"`
	Records        []Record        `json:"records"`
	// Dropped counts records left out of the middle.
	Dropped int `json:"dropped,omitempty"`
}

// AttackResult is one attack of an attempt.
type AttackResult struct {
	Attack    string `json:"attack"`
	Held      bool   `json:"held"`
	Detail    string `json:"detail"`
	StartedMS uint64 `json:"started_ms"`
	TookMS    uint64 `json:"took_ms"` // undoing included
	Undone    bool   `json:"undone"`
	Record    string `json:"record,omitempty"` // its own evidence file
}

// bounded makes s fit to be stored and shown: sanitised, and cut to n bytes.
func bounded(s string, n int) string {
	cut := false
	if len(s) > 4*n {
		s, cut = s[:4*n], true
	}
	s = text.Block(s)
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, cut = s[:n], true
	}
	if cut {
		s += text.Ellipsis
	}
	return s
}
