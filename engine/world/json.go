package world

import (
	"encoding/json"

	"refbox/engine/event"
	"refbox/engine/internal/plainjson"
)

// The reference's world.json, keys in its order (recordings reference, section 3.1).
type (
	refWorld struct {
		MatchState             string              `json:"match_state"`
		Territories            map[string]refSeat  `json:"territories"`
		Agents                 map[string]refAgent `json:"agents"`
		Winner                 *string             `json:"winner"`
		FinishReason           *string             `json:"finish_reason"`
		InfrastructureFailures uint64              `json:"infrastructure_failures"`
		LastSequence           *uint64             `json:"last_sequence"`
		ElapsedMS              uint64              `json:"elapsed_ms"`
	}
	refSeat struct {
		Class             *string                 `json:"class"`
		Agent             *string                 `json:"agent"`
		State             string                  `json:"state"`
		Resources         uint64                  `json:"resources"`
		LastHealth        *Health                 `json:"last_health"`
		EliminationSource *string                 `json:"elimination_source"`
		EliminationDetail *string                 `json:"elimination_detail"`
		CompetitorState   *string                 `json:"competitor_state"`
		Milestones        map[string]refMilestone `json:"milestones"`
		Points            uint64                  `json:"milestone_points"`
		DurableAtMS       *uint64                 `json:"durable_at_ms"`
		*ourSeat
	}
	refMilestone struct {
		Evaluating      bool            `json:"evaluating"`
		Passed          bool            `json:"passed"`
		Points          uint64          `json:"points"`
		Evidence        json.RawMessage `json:"evidence"`
		FailureCategory *string         `json:"failure_category"`
		FailureDetail   *string         `json:"failure_detail"`
		*ourMilestone
	}
	refAgent struct {
		Territory     string  `json:"territory"`
		Model         string  `json:"model"`
		Running       bool    `json:"running"`
		Successful    *bool   `json:"successful"`
		FailureSource *string `json:"failure_source"`
		TerminalState *string `json:"terminal_state"`
		TerminalNote  *string `json:"terminal_detail"`
		ResourceUnits uint64  `json:"resource_units_used"`
		InputTokens   uint64  `json:"input_tokens"`
		OutputTokens  uint64  `json:"output_tokens"`
		CostMicroUSD  uint64  `json:"cost_microusd"`
		*ourAgent
	}
)

// Our keys, after the reference's in each object.
type (
	ourWorld struct {
		refWorld
		Refbox struct {
			Version    int            `json:"version"` // of these keys
			Events     int            `json:"events"`
			Unknown    int            `json:"unknown_kinds"`
			Ignored    int            `json:"ignored"`
			FinishedMS *uint64        `json:"finished_ms"`
			DeadHeat   []string       `json:"dead_heat"`
			Drain      string         `json:"drain"`
			PausedMS   uint64         `json:"paused_ms"`
			Notes      int            `json:"notes"`
			Rulings    int            `json:"rulings"`
			ExtendedMS uint64         `json:"extended_ms,omitempty"`
			Voided     bool           `json:"voided,omitempty"`
			Branched   string         `json:"branched_from,omitempty"` // the heat's name
			Standings  []standingJSON `json:"standings"`
		} `json:"refbox"`
	}
	standingJSON struct {
		Rank      int      `json:"rank"`
		Territory string   `json:"territory"`
		Outcome   Outcome  `json:"outcome"`
		Durable   *Instant `json:"durable"`
		Points    uint64   `json:"points"`
		Tied      []string `json:"tied"`
		Decoys    int      `json:"decoys_used,omitempty"`
	}
	ourSeat struct {
		Durable     *Instant    `json:"durable"`
		AttackMS    uint64      `json:"attack_ms"`
		Actions     int         `json:"actions"`
		Running     int         `json:"running_actions"`
		Attacks     int         `json:"attacks"`
		AttacksHeld int         `json:"attacks_held"`
		Revocations int         `json:"revocations"`
		Faults      int         `json:"faults"`
		Touched     bool        `json:"touched"`
		Hostile     uint64      `json:"hostile_outputs"`
		Decoys      int         `json:"decoys_used,omitempty"`
		Limits      []string    `json:"limits"`
		Unavailable *string     `json:"unavailable"`
		Source      *string     `json:"unavailable_source"`
		Canary      *canaryJSON `json:"canary,omitempty"`
		FaultMS     uint64      `json:"fault_ms,omitempty"`
		FaultList   []faultJSON `json:"fault_list,omitempty"`
	}
	faultJSON struct {
		Fault       string     `json:"fault"`
		Target      string     `json:"target"`
		Schedule    string     `json:"schedule,omitempty"`
		State       FaultState `json:"state"`
		InjectedMS  uint64     `json:"injected_ms"`
		ConfirmedMS *uint64    `json:"confirmed_ms"`
		EndedMS     *uint64    `json:"ended_ms"`
		Voids       []string   `json:"voids,omitempty"`
	}
	canaryJSON struct {
		Acknowledged  uint64              `json:"acknowledged"`
		Failed        uint64              `json:"failed"`
		Indeterminate uint64              `json:"indeterminate"`
		Spans         int                 `json:"spans"`
		Result        *event.CanaryResult `json:"result"` // null when it was not read back
	}
	ourMilestone struct {
		Attempts  uint64  `json:"attempts"`
		Failures  uint64  `json:"failures"`
		FirstMS   uint64  `json:"first_ms"`
		PassedMS  *uint64 `json:"passed_ms"`
		HeldAt    *uint64 `json:"held_at_ms"`
		NotBefore *uint64 `json:"not_before_ms"`
		Record    *string `json:"record"`
		RecordSHA *string `json:"record_sha256"`
		Revoked   uint64  `json:"revoked"`
		Inherited bool    `json:"inherited,omitempty"`
	}
	ourAgent struct {
		CostComplete  *bool  `json:"cost_complete"`
		Charges       uint64 `json:"charges"`
		TokensUnknown uint64 `json:"tokens_unknown"`
		CostUnknown   uint64 `json:"cost_unknown"`
	}
)

// MarshalJSON writes the reference's keys in its order and ours after them, each
// object on its own. It is what world.json holds.
func (w *World) MarshalJSON() ([]byte, error) {
	var out ourWorld
	out.refWorld = w.reference(true)
	r := &out.Refbox
	r.Version, r.Events, r.Unknown, r.Ignored = 1, w.Events, w.Unknown, w.Ignored
	r.FinishedMS, r.DeadHeat, r.PausedMS = w.FinishedMS, w.DeadHeat, w.PausedMS
	r.ExtendedMS, r.Voided = w.ExtendedMS, w.Voided != nil
	if w.Branched != nil {
		r.Branched = w.Branched.Heat
	}
	r.Drain, r.Notes, r.Rulings = w.Drain.State, w.Notes.Len(), w.Rulings.Len()
	for _, s := range Standings(w) {
		r.Standings = append(r.Standings, standingJSON{s.Rank, s.Territory, OutcomeOf(w, s.Territory), s.Durable, s.Points, s.Tied, s.Decoys})
	}
	return plainjson.Compact(out)
}

// JSON is the text of world.json: MarshalJSON with two spaces of indentation and
// no newline at the end.
func (w *World) JSON() ([]byte, error) { return plainjson.Indented(w) }

// ReferenceJSON is world.json as the reference writes it: its keys alone.
func (w *World) ReferenceJSON() ([]byte, error) { return plainjson.Indented(w.reference(false)) }

func (w *World) reference(ours bool) refWorld {
	out := refWorld{
		MatchState: w.MatchState, Winner: w.Winner, FinishReason: w.FinishReason,
		InfrastructureFailures: w.InfrastructureFailures, ElapsedMS: w.ElapsedMS,
		Territories: make(map[string]refSeat, len(w.seats)), Agents: make(map[string]refAgent, len(w.agents)),
	}
	if w.Events > 0 {
		out.LastSequence = &w.LastSequence
	}
	for _, s := range w.seats {
		r := refSeat{
			State: s.State, Resources: s.Resources, LastHealth: s.LastHealth,
			EliminationSource: s.EliminationSource, EliminationDetail: s.EliminationDetail,
			Milestones: make(map[string]refMilestone, len(s.Milestones)), Points: s.Points, DurableAtMS: s.DurableAtMS,
		}
		if s.Registered {
			r.Class, r.Agent = &s.Class, &s.Agent
		}
		if s.CompetitorState != "" {
			r.CompetitorState = &s.CompetitorState
		}
		for i := range s.Milestones {
			r.Milestones[s.Milestones[i].ID] = s.Milestones[i].reference(ours)
		}
		if ours {
			r.ourSeat = s.ours()
		}
		out.Territories[s.ID] = r
	}
	for _, a := range w.agents {
		r := refAgent{
			Territory: a.Territory, Model: a.Model, Running: a.Running, Successful: a.Successful, FailureSource: a.FailureSource,
			TerminalState: a.TerminalState, TerminalNote: a.TerminalNote, ResourceUnits: a.ResourceUnits,
			InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, CostMicroUSD: a.CostMicroUSD,
		}
		if ours {
			r.ourAgent = &ourAgent{a.CostComplete(), a.Charges, a.TokensUnknown, a.CostUnknown}
		}
		out.Agents[a.ID] = r
	}
	return out
}

func (m *Milestone) reference(ours bool) refMilestone {
	r := refMilestone{Evaluating: m.Evaluating, Passed: m.Passed, Points: m.Points, Evidence: m.Evidence}
	if m.Failing {
		r.FailureCategory, r.FailureDetail = &m.Failure.Category, &m.Failure.Detail
	}
	if ours {
		o := &ourMilestone{Attempts: m.Attempts, Failures: m.Failures, FirstMS: m.FirstMS, HeldAt: m.HeldAt, NotBefore: m.NotBefore, Revoked: m.Revoked, Inherited: m.Inherited}
		if m.Passed {
			o.PassedMS = &m.PassedMS
		}
		if m.Record != "" {
			o.Record, o.RecordSHA = &m.Record, &m.RecordSHA
		}
		r.ourMilestone = o
	}
	return r
}

func (s *Seat) ours() *ourSeat {
	o := &ourSeat{
		Durable: s.Durable, AttackMS: s.AttackMS, Actions: s.Actions.Len(), Running: len(s.running), Attacks: s.Attacks.Len(),
		Revocations: s.Revocations.Len(), Faults: s.Faults.Len(), Touched: s.Touched(), Hostile: s.Hostile, Decoys: s.Decoys.Len(),
	}
	for _, a := range s.Attacks.All() {
		if a.Done && a.Held {
			o.AttacksHeld++
		}
	}
	o.FaultMS = s.FaultMS
	for _, f := range s.Faults.All() {
		o.FaultList = append(o.FaultList, faultJSON{f.Fault, f.Target, f.Schedule, f.State, f.InjectedMS, f.ConfirmedMS, f.EndedMS, f.Voids})
	}
	for _, l := range s.Limits.All() {
		o.Limits = append(o.Limits, l.Limit)
	}
	if c := s.Canary; c != nil {
		o.Canary = &canaryJSON{Acknowledged: c.Acknowledged, Failed: c.Failed, Indeterminate: c.Indeterminate, Spans: s.CanarySpans.Len()}
		if r := s.CanaryResult; r != nil {
			o.Canary.Result = &r.CanaryResult
		}
	}
	if s.Unavailable != nil {
		o.Unavailable, o.Source = &s.Unavailable.Detail, &s.Unavailable.Source
	}
	return o
}
