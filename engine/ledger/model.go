package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
)

// Model is a failure model as it is written.
type Model struct {
	Schema     string     `json:"schema"`
	Release    string     `json:"release"`
	Status     string     `json:"status"`
	Scenarios  []Scenario `json:"scenarios"`
	Prohibited []string   `json:"prohibited_inference"`

	written []byte
}

// Scenario is one way to fail.
type Scenario struct {
	ID              string `json:"id"`
	FailureDomain   string `json:"failure_domain"`
	Mechanism       string `json:"mechanism"`
	ExpectedService string `json:"expected_service"`
	DataRisk        string `json:"data_risk"`
	EvidenceState   string `json:"evidence_state"`
}

// Declared is the scenario's state as the model has it; of one that is not written
// right nothing.
func (s *Scenario) Declared() Declared {
	d, err := ParseDeclared(s.EvidenceState)
	if err != nil {
		return nil
	}
	return d
}

// MaxModel is how many bytes a failure model may have.
const MaxModel = 4 << 20

const (
	maxScenarios = 500
	maxList      = 500
)

var (
	schemaForm = regexp.MustCompile(`^[a-z0-9-]*failure-model-v1$`)
	idForm     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	statusForm = regexp.MustCompile(`(?:^|-)([a-z0-9]+)-observed(?:-|$)`)
)

// ParseModel reads a model, and finds everything that is wrong with it. The model
// is nil when it is no JSON object of that form at all; what is there can be shown
// otherwise. Every string of a model without breaks is plain text on one line.
func ParseModel(file string, data []byte) (*Model, []Finding) {
	bad := func(code Code, line int, path, format string, args ...any) Finding {
		return Finding{Severity: Break, Code: code, File: file, Line: line, Path: path, Text: text.Line(fmt.Sprintf(format, args...))}
	}
	if len(data) > MaxModel {
		return nil, []Finding{bad(BadSchema, 0, "", "is larger than %d MiB, which no failure model is", MaxModel>>20)}
	}
	places, faults := walk(data)
	m := &Model{written: bytes.Clone(data)}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		if _, again := d.Token(); again == nil || places == nil {
			return nil, []Finding{bad(BadSchema, places.lineAt(data, err), "", "is no failure model in JSON: %v", err)}
		}
		code := BadSchema
		if strings.Contains(err.Error(), "unknown field") {
			code = BadField
		}
		return nil, []Finding{bad(code, places.lineAt(data, err), "", "%v", err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, []Finding{bad(BadSchema, 0, "", "goes on after the model's end")}
	}
	var out []Finding
	add := func(code Code, path, format string, args ...any) {
		out = append(out, bad(code, places.of(path), path, format, args...))
	}
	for _, f := range faults {
		add(BadField, f.path, "%s", f.text)
	}
	if !schemaForm.MatchString(m.Schema) {
		add(BadSchema, "schema", "%.60q is not known: want a name that ends in failure-model-v1", m.Schema)
	}
	for _, f := range []struct{ name, value string }{{"release", m.Release}, {"status", m.Status}} {
		if strings.TrimSpace(f.value) == "" {
			add(BadField, f.name, "is missing or blank")
		}
	}
	if len(m.Scenarios) == 0 || len(m.Scenarios) > maxScenarios {
		add(ScenarioSet, "scenarios", "there are %d scenarios: want 1 to %d", len(m.Scenarios), maxScenarios)
		m.Scenarios = m.Scenarios[:min(len(m.Scenarios), maxScenarios)]
	}
	observed, seen := 0, map[string]bool{}
	for i := range m.Scenarios {
		s := &m.Scenarios[i]
		at := fmt.Sprintf("scenarios[%d]", i)
		switch {
		case !idForm.MatchString(s.ID):
			add(ScenarioSet, at+".id", "%.60q is no id: use a-z, 0-9 and -", s.ID)
		case seen[s.ID]:
			add(ScenarioSet, at+".id", "%q is there already", s.ID)
		}
		seen[s.ID] = true
		for _, f := range []struct{ name, value string }{{"failure_domain", s.FailureDomain}, {"mechanism", s.Mechanism}, {"expected_service", s.ExpectedService}, {"data_risk", s.DataRisk}} {
			if strings.TrimSpace(f.value) == "" {
				add(BadField, at+"."+f.name, "of %s is missing or blank", s.ID)
			}
		}
		d, err := ParseDeclared(s.EvidenceState)
		if err != nil {
			add(BadState, at+".evidence_state", "of %s: %v", s.ID, err)
		}
		if d.State() == Observed {
			observed++
		}
	}
	if n, ok := countIn(m.Status); ok && n != observed {
		add(Overclaim, "status", "counts %d observed, the scenarios %d: %q", n, observed, m.Status)
	} else if !ok && observed > 0 && statusForm.MatchString(m.Status) {
		add(Overclaim, "status", "does not say how many are observed; the scenarios say %d: %q", observed, m.Status)
	}
	if len(m.Prohibited) == 0 || len(m.Prohibited) > maxList {
		add(ProhibitedRemoved, "prohibited_inference", "there are %d prohibited inferences: a model has some, and at most %d", len(m.Prohibited), maxList)
		m.Prohibited = m.Prohibited[:min(len(m.Prohibited), maxList)]
	}
	for i, p := range m.Prohibited {
		if at := fmt.Sprintf("prohibited_inference[%d]", i); strings.TrimSpace(p) == "" {
			add(BadField, at, "is blank")
		} else if slices.Contains(m.Prohibited[:i], p) {
			add(BadField, at, "is there already")
		}
	}
	if !Breaks(out) && !bytes.Equal(bytes.TrimRight(data, "\n"), m.Encode()) {
		out = append(out, Finding{Severity: Note, File: file, Text: "says the same as it would if refbox wrote it, but is written otherwise (order of keys, spaces, escapes)"})
	}
	return m, out
}

var numbers = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// countIn is how many observed scenarios a status line counts, as in
// model-with-one-observed-planned-transition.
func countIn(status string) (n int, ok bool) {
	m := statusForm.FindStringSubmatch(status)
	if m == nil {
		return 0, false
	}
	if i := slices.Index(numbers, m[1]); i >= 0 {
		return i, true
	}
	if m[1] == "zero" {
		return 0, true
	}
	_, err := fmt.Sscanf(m[1], "%d", &n)
	return n, err == nil
}

// Encode is the model as JSON in the form of the reference's documents, without a
// newline at the end.
func (m *Model) Encode() []byte {
	b, err := plainjson.Indented(m)
	if err != nil { // strings alone: it cannot be
		return nil
	}
	return b
}

// Written is the model as it was read, to the byte.
func (m *Model) Written() []byte { return m.written }

// SHA256 is the digest of the model as it was read.
func (m *Model) SHA256() string { return digest(m.written) }

// Scenario is the scenario of that id, nil for none.
func (m *Model) Scenario(id string) *Scenario {
	if i := slices.IndexFunc(m.Scenarios, func(s Scenario) bool { return s.ID == id }); i >= 0 {
		return &m.Scenarios[i]
	}
	return nil
}

// IDs are the scenarios' ids, in the model's order.
func (m *Model) IDs() []string {
	out := make([]string, len(m.Scenarios))
	for i := range m.Scenarios {
		out[i] = m.Scenarios[i].ID
	}
	return out
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
