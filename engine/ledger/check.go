package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"refbox/engine/recording"
	"refbox/engine/text"
)

// Report is a check of a model or a ledger.
type Report struct {
	File string `json:"file"`
	// Kind is "model" or "ledger".
	Kind string `json:"kind"`
	// Holds: there is no break.
	Holds   bool   `json:"holds"`
	Entries int    `json:"entries"`
	Head    string `json:"head,omitempty"`
	Heats   int    `json:"heats_rechecked"`
	*Picture
}

// Check derives everything, and makes evidence again of those heats that are at
// hand: open opens one by its path, with an error that Is fs.ErrNotExist when it is
// not there. The error is the context's.
func (l *Ledger) Check(ctx context.Context, set Settings, open func(path string) (*recording.Recording, error)) (Report, error) {
	r := Report{File: l.File, Kind: "model", Head: l.Head, Entries: len(l.Entries), Picture: l.Derive(set)}
	if l.Log() != "" {
		r.Kind = "ledger"
	}
	terms := Terms{Model: l.Model, Policy: l.Policy}
	// A heat is judged once for everything that was kept of it by one review.
	type by struct{ heat, reviewer, fix string }
	judged, heats := map[by]*Judged{}, map[string]bool{}
	for i := range l.Entries {
		k := l.Entries[i].Kept
		if k == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		add := func(s Severity, format string, args ...any) {
			f := Finding{Severity: s, File: l.File, Line: l.Entries[i].line, Scenario: k.Scenario, Text: text.Line(fmt.Sprintf(format, args...))}
			if s == Break {
				f.Code = Integrity
			}
			r.Findings = append(r.Findings, f)
		}
		of := by{k.Heat, k.Reviewer, k.Fix}
		j := judged[of]
		if j == nil {
			rec, err := open(k.Heat)
			if err != nil {
				why := "cannot be opened: " + err.Error()
				if errors.Is(err, fs.ErrNotExist) {
					why = "is not there"
				}
				add(Note, "the heat %s %s: the evidence is not checked again", k.Heat, why)
				continue
			}
			now, err := terms.JudgeHeat(ctx, rec, Review{By: k.Reviewer, Fix: k.Fix})
			rec.Close()
			if err != nil {
				return r, err
			}
			j, judged[of], heats[k.Heat] = &now, &now, true
		}
		for _, d := range j.differs(&k.Evidence) {
			add(Break, "the evidence is not what its heat gives: %s", d)
		}
	}
	r.Heats = len(heats)
	r.Holds = !Breaks(r.Findings)
	return r, nil
}
