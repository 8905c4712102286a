package season

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/text"
)

// Verdict is what a check came to.
type Verdict string

// Verdicts. Only Broken means that the thing checked does not hold.
const (
	Holds     Verdict = "holds"
	Note      Verdict = "note"
	Broken    Verdict = "broken"
	Unchecked Verdict = "not checkable"
)

// Check is one line of an audit. Codes are those of the seasons reference,
// section 8 (engine/season/telling has T1 to T3); F is the document's form, J the journals of attempts, R the heats'
// recordings.
type Check struct {
	Code    string  `json:"code"`
	Verdict Verdict `json:"verdict"`
	Where   string  `json:"where,omitempty"`
	Text    string  `json:"text"`
	Want    string  `json:"want,omitempty"` // of a break: what follows from the rules
	Got     string  `json:"got,omitempty"`  // and what is written
	Missing string  `json:"missing,omitempty"`
	// Fields are those that nothing here binds: "week: rounds[].heats[].output".
	// Whoever changes one of them alone is not found out.
	Fields []string `json:"fields,omitempty"`
}

// Checks are what an audit has found so far.
type Checks []Check

// maxBreaks bounds the breaks of one code that are told.
const maxBreaks = 50

// Add adds a check. A document can be wrong everywhere: of a code's breaks the
// first 50 are kept.
func (l *Checks) Add(c Check) {
	if c.Verdict != Broken || l.Breaks(c.Code) < maxBreaks {
		*l = append(*l, c)
	}
}

// Breaks counts the breaks of a code, so that a check can say that it holds when
// there are none.
func (l Checks) Breaks(code string) int {
	n := 0
	for _, c := range l {
		if c.Code == code && c.Verdict == Broken {
			n++
		}
	}
	return n
}

// Audit is what came of checking what there is of a week.
type Audit struct {
	Path      string   `json:"path"`
	SeasonID  string   `json:"season_id"`
	Week      string   `json:"week"`
	Documents []string `json:"documents"`
	RuleSet   string   `json:"rule_set"`
	Checks    Checks   `json:"checks"`
}

// Count is the number of checks with a verdict.
func (a *Audit) Count(v Verdict) int {
	n := 0
	for _, c := range a.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Badge sums an audit up in a word or two.
func (a *Audit) Badge() string {
	switch {
	case a.Count(Broken) > 0:
		return fmt.Sprintf("broken: %d", a.Count(Broken))
	case a.Count(Note) > 0:
		return fmt.Sprintf("holds, %d noted", a.Count(Note))
	}
	return "holds"
}

// Sources are what an audit may use beside the documents. Each may be nil.
type Sources struct {
	Manifest *Manifest
	// Attempt reads the recording of an attempt, by the folder that a heat names or
	// would have named for it. An error that Is fs.ErrNotExist: it is not here.
	Attempt func(output string) (Attempt, error)
	// Key recomputes an arena's compatibility key and what it rests on, in the form that
	// it was drawn in: ours where it has Hashes, were they empty; "" when the arena is not
	// here.
	Key func(Arena) (key string, hashes map[string]string, err error)
	// Others are labels of other draws of the season that lie beside this one.
	Others []string
	// Journals are the attempts that were written down heat by heat, by
	// "round-01/heat-01".
	Journals map[string]Heat
}

// Attempt is what a recording says of an attempt.
type Attempt struct {
	Ends    []Ended
	Winner  string // the territory that the referee named
	Aborted bool
	Key     string // compatibility key
	Ours    bool   // recorded by refbox, whose keys are in no form of the reference's
	Seed    string // of the heat's secret values, hex; "" when it was not revealed
	Broken  string // what breaks the recording itself; "" for nothing
	Told    Checks // of what its agents tell, each Where an agent
}

// auditor gathers the checks.
type auditor struct {
	docs  Documents
	src   Sources
	rules RuleSet
	named bool // the draw says which rules are in force
	out   *Audit
}

func (a *auditor) holds(code, format string, args ...any) {
	a.out.Checks.Add(Check{Code: code, Verdict: Holds, Text: fmt.Sprintf(format, args...)})
}

func (a *auditor) note(code, where, format string, args ...any) {
	a.out.Checks.Add(Check{Code: code, Verdict: Note, Where: where, Text: fmt.Sprintf(format, args...)})
}

func (a *auditor) broken(code, where, what string, want, got any) {
	a.out.Checks.Add(Check{Code: code, Verdict: Broken, Where: where, Text: what, Want: shown(want), Got: shown(got)})
}

func (a *auditor) missing(code, what, missing string, fields ...string) {
	a.out.Checks.Add(Check{Code: code, Verdict: Unchecked, Text: what, Missing: missing, Fields: fields})
}

// shown is a value as one line.
func shown(v any) string {
	switch x := v.(type) {
	case string:
		return text.Truncate(text.Line(x), 400, "…")
	case *string:
		if x == nil {
			return "none"
		}
		return shown(*x)
	case *int64:
		if x == nil {
			return "none"
		}
		return fmt.Sprint(*x)
	case *bool:
		if x == nil {
			return "unknown"
		}
		return fmt.Sprint(*x)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return text.Truncate(text.Line(string(data)), 400, "…")
}

// Check audits what there is of a week. It never fails: what cannot be checked is
// said.
func (docs Documents) Check(src Sources) *Audit {
	a := &auditor{docs: docs, src: src, rules: Reference, out: &Audit{Path: docs.Path, Checks: []Check{}}}
	if d := docs.Draw; d != nil {
		a.out.SeasonID, a.out.Week = d.SeasonID, d.Week
		a.out.Documents = append(a.out.Documents, "draw")
		a.named = d.RuleSet != nil
		var err error
		if a.rules, err = d.InForce(); err != nil {
			a.out.Checks.Add(Check{Code: "F", Verdict: Broken, Where: "draw", Text: text.Line(err.Error())})
			a.rules = Reference
		}
	}
	if w := docs.Week; w != nil {
		a.out.SeasonID, a.out.Week = w.SeasonID, w.Week
		a.out.Documents = append(a.out.Documents, "week")
	}
	if len(src.Journals) > 0 {
		a.out.Documents = append(a.out.Documents, text.Count(len(src.Journals), "journal"))
	}
	if src.Manifest != nil {
		a.out.Documents = append(a.out.Documents, "season manifest")
	}
	a.out.RuleSet = "not written down"
	if a.named {
		a.out.RuleSet = fmt.Sprintf("%s %d", a.rules.Name, a.rules.Version)
	}
	a.form()
	if docs.Draw != nil {
		a.drawSeed()
		a.entrants()
		a.shape()
		a.manifest()
		a.keys()
	}
	a.digest()
	a.grinding()
	if docs.Week != nil {
		a.secret()
		a.week()
		a.evidence()
		a.unboundWeek()
	}
	if docs.Draw != nil {
		a.unboundDraw()
	}
	slices.SortStableFunc(a.out.Checks, func(x, y Check) int { return strings.Compare(codeOrder(x.Code), codeOrder(y.Code)) })
	return a.out
}

// codeOrder keeps the order of the reference's table.
func codeOrder(code string) string {
	for i, p := range []string{"F", "D", "W", "J", "R", "P", "S", "T"} {
		if strings.HasPrefix(code, p) {
			return fmt.Sprint(i, code)
		}
	}
	return "9" + code
}

func (a *auditor) form() {
	for _, odd := range a.docs.Odd {
		a.note("F", "", "a document %s", odd)
	}
	if d := a.docs.Draw; d != nil && d.SchemaVersion != Schema {
		a.broken("F", "draw", "schema_version", Schema, d.SchemaVersion)
	}
	w := a.docs.Week
	if w == nil {
		return
	}
	if w.SchemaVersion != Schema {
		a.broken("F", "week", "schema_version", Schema, w.SchemaVersion)
	}
	d := a.docs.Draw
	if d == nil {
		return
	}
	for _, p := range []struct{ name, draw, week string }{
		{"season_id", d.SeasonID, w.SeasonID}, {"week", d.Week, w.Week}, {"draw_seed", d.DrawSeed, w.DrawSeed},
		{"variation_seed_commitment", d.Commitment, w.Commitment},
	} {
		if p.draw != p.week {
			a.broken("F", "week", p.name+" is not the draw's", p.draw, p.week)
		}
	}
}
