package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/engine/world"
)

// Evaluation is the extension infrastructure_evaluation, version 1, with the
// reference's keys (seasons reference, section 5).
type Evaluation struct {
	SchemaVersion int `json:"schema_version"`
	Producer      struct {
		Name     string  `json:"name"`
		Version  string  `json:"version"`
		Revision *string `json:"revision"`
	} `json:"producer"`
	Task struct {
		ID      string  `json:"id"`
		Version *string `json:"version"` // the compatibility key
		Pack    *string `json:"pack"`
	} `json:"task"`
	Execution struct {
		Agent         string   `json:"agent"`
		Model         string   `json:"model"`
		Effort        *string  `json:"reasoning_effort"`
		Timeout       *float64 `json:"timeout_seconds"`
		Duration      float64  `json:"duration_seconds"`
		Suite         *string  `json:"suite"`
		Territory     string   `json:"territory"`
		ResourceUnits *uint64  `json:"budget_resource_units"`
	} `json:"execution"`
	Outcome struct {
		Status          string                  `json:"status"`
		Reward          uint64                  `json:"reward"`
		FailureCategory *string                 `json:"failure_category"`
		Verification    map[string]Verification `json:"verification"`
		Durable         bool                    `json:"durable"`
		DurableAtMS     *uint64                 `json:"durable_at_ms"`
		Winner          *string                 `json:"winner"`
		MatchState      string                  `json:"match_state"`
		FinishReason    *string                 `json:"finish_reason"`
	} `json:"outcome"`
	Provenance *Provenance `json:"provenance"`
}

// Verification is the referee's state of one milestone.
type Verification struct {
	Passed          bool    `json:"passed"`
	Evaluating      bool    `json:"evaluating"`
	Points          uint64  `json:"points"`
	FailureCategory *string `json:"failure_category"`
	FailureDetail   *string `json:"failure_detail"`
}

// Provenance are hashes of what the heat was run with.
type Provenance struct {
	Manifest    string  `json:"manifest_sha256"`
	PlayerBrief *string `json:"player_brief_sha256"`
	Verifier    string  `json:"verifier_sha256"`
	Adapter     *string `json:"adapter_sha256"`
}

// ErrNoTranscript is what OpenSeat's error Is for a seat of which none was
// recorded.
var ErrNoTranscript = errors.New("no transcript was recorded")

// OpenSeat opens what a seat's agent did in a recording that was read to its end:
// the actions that were seen on the wire in one of ours, else the transcript that
// was recorded of this heat. The caller closes the Source's transcript, and gives
// it a Redactor.
func OpenSeat(ctx context.Context, rec *recording.Recording, territory string) (Source, error) {
	w := rec.World(rec.Len())
	seat := w.Seat(territory)
	if seat == nil {
		return Source{}, fmt.Errorf("the heat has no seat %q", territory)
	}
	s := Source{Territory: seat.ID, Agent: "unknown", Version: "unknown", Session: rec.Name() + "/" + seat.Agent}
	s.Evaluation = evaluate(rec, w, seat)
	s.Model = s.Evaluation.Execution.Model
	if m := rec.Manifest(); m != nil {
		for _, a := range m.Agents {
			if a.ID == seat.Agent || a.Territory == seat.ID && seat.Agent == "" {
				s.Agent, s.Effort = a.Adapter, a.ReasoningEffort
			}
		}
	}
	if m := rec.Match(); m != nil {
		for _, x := range m.Seats {
			if x.Territory == seat.ID && x.Adapter != "" {
				s.Agent = x.Adapter
			}
		}
		if v := m.AdapterSHA256[seat.Agent]; v != "" {
			s.Version = v
		} else if v := m.AdapterSHA256[s.Agent]; v != "" {
			s.Version = v
		}
	}
	err := s.open(ctx, rec)
	if err != nil {
		return Source{}, fmt.Errorf("%s: %w", text.Line(territory), err)
	}
	return s, nil
}

func (s *Source) open(ctx context.Context, rec *recording.Recording) (err error) {
	if rec.Match().Ours() {
		tree := rec.Tree()
		if tree == nil {
			s.T, err = transcript.Open(rec.Path())
		} else {
			s.T, err = transcript.OpenFS(tree, "events.jsonl")
		}
		if err != nil {
			return err
		}
		if err := s.T.Load(ctx); err != nil {
			return errors.Join(err, s.T.Close())
		}
		for i, a := range s.T.Agents() {
			if a.ID == s.Territory && i > 0 {
				s.Agents = []int{i}
				return nil
			}
		}
		return errors.Join(ErrNoTranscript, s.T.Close())
	}
	told, err := rec.Activities(ctx)
	if err != nil {
		return err
	}
	act := told[s.Territory]
	if act == nil {
		return ErrNoTranscript
	}
	if act.Trouble != "" {
		return fmt.Errorf("%s: %s", act.File, act.Trouble)
	}
	blob, file, err := rec.OpenTold(act)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoTranscript
	}
	if err != nil {
		return err
	}
	s.T, err = transcript.OpenBlob(file, blob)
	return err
}

func evaluate(rec *recording.Recording, w *world.World, seat *world.Seat) *Evaluation {
	e := &Evaluation{SchemaVersion: 1}
	e.Producer.Name = "refbox"
	e.Task.ID = rec.Arena()
	if m := rec.Match(); m != nil {
		e.Producer.Version, e.Producer.Revision = m.ControllerVersion, m.SourceRevision
		if !m.Ours() {
			e.Producer.Name = "aoe-controller"
		}
		e.Task.Version = some(m.CompatibilityKey)
		e.Provenance = &Provenance{Manifest: m.ManifestSHA256, PlayerBrief: m.PlayerBriefSHA256, Verifier: m.VerifierSHA256,
			Adapter: some(m.AdapterSHA256[seat.Agent])}
	}
	x := &e.Execution
	x.Agent, x.Territory = seat.Agent, seat.ID
	x.Duration = float64(w.ElapsedMS) / 1000
	if a := w.Agent(seat.Agent); a != nil {
		x.Model = a.Model
		if a.EndedMS != nil {
			x.Duration = float64(*a.EndedMS) / 1000
		}
		if a.TerminalState != nil {
			e.Outcome.Status = *a.TerminalState
		}
	}
	if m := rec.Manifest(); m != nil {
		for _, a := range m.Agents {
			if a.ID == seat.Agent {
				x.Effort, x.ResourceUnits = some(a.ReasoningEffort), &a.Budget.ResourceUnits
			}
		}
		seconds := m.Duration().Seconds()
		x.Timeout = &seconds
	}
	o := &e.Outcome
	if o.Status == "" {
		o.Status = string(world.OutcomeOf(w, seat.ID))
	}
	o.Reward, o.Winner, o.MatchState, o.FinishReason = seat.Points, w.Winner, w.MatchState, w.FinishReason
	o.Durable, o.DurableAtMS = seat.DurableAtMS != nil, seat.DurableAtMS
	o.Verification = map[string]Verification{}
	first := ""
	for i := range seat.Milestones {
		m := &seat.Milestones[i]
		v := Verification{Passed: m.Passed, Evaluating: m.Evaluating, Points: m.Points}
		if m.Failures > 0 {
			v.FailureCategory, v.FailureDetail = some(m.Failure.Category), some(m.Failure.Detail)
			// The first in the order of ids, whatever came of it later: the reference's rule.
			if v.FailureCategory != nil && (first == "" || m.ID < first) {
				first, o.FailureCategory = m.ID, v.FailureCategory
			}
		}
		o.Verification[m.ID] = v
	}
	return e
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// evaluation is the referee's word without secrets in what services and verifiers said.
func (s *Source) evaluation() (any, error) {
	if s.Evaluation == nil {
		return nil, nil
	}
	b, err := json.Marshal(s.Evaluation)
	if err != nil {
		return nil, err
	}
	return s.decoded(b)
}
