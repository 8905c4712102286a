package world

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"refbox/engine/event"
)

const (
	maxDetail = 2 << 10
	maxOutput = 512
)

// Apply changes the world by one event. It never fails: what an event names and
// the world does not have is made, as the reference does (recordings reference,
// section 3.1).
func Apply(w *World, e event.Event) {
	i := w.Events
	w.Events++
	w.LastSequence = e.Sequence
	w.ElapsedMS = e.ElapsedMS
	switch b := e.Body.(type) {
	case event.MilestoneEvaluationStarted:
		w.evaluationStarted(e, b)
	case event.MilestoneFailed:
		w.milestoneFailed(i, e, b)
	case event.MilestonePassed:
		w.milestonePassed(i, e, b)
	case event.MilestoneRevoked:
		w.milestoneRevoked(i, e, b)
	case event.MatchStateChanged:
		w.MatchState = b.To
		if w.Over() && w.FinishedMS == nil {
			w.FinishedMS = at(e)
		}
	case event.MatchFinished:
		if w.MatchState != Aborted {
			w.MatchState = Finished
		}
		w.Winner, w.FinishReason = b.Winner, &b.Reason
		w.DeadHeat = b.DeadHeat
		w.FinishedMS = at(e)
		w.Pause = nil // a heat that ended while it was paused
		w.annul()
	case event.TerritoryRegistered:
		w.register(b)
	case event.TerritoryStateChanged:
		if s := w.seat(b.Territory); s != nil {
			s.changeState(b.To, e.ElapsedMS)
			s.Steps.push(Step{e.ElapsedMS, i, b.To, clip(b.Reason, maxDetail)})
		}
	case event.HealthObserved:
		if s := w.seat(b.Territory); s != nil {
			s.LastHealth = &Health{b.Healthy, b.Status, b.LatencyMS, b.Detail}
			if s.State == "healthy" {
				s.UptimeTicks++ // taken back if it is what degrades it
			}
		}
	case event.ResourcesChanged:
		if s := w.seat(b.Territory); s != nil {
			s.Resources = b.Remaining
		}
	case event.TerritoryEliminated:
		if s := w.seat(b.Territory); s != nil {
			s.changeState("eliminated", e.ElapsedMS)
			s.EliminationSource, s.EliminationDetail = &b.Source, &b.Detail
		}
	case event.CompetitorStateChanged:
		if s := w.seat(b.Territory); s != nil {
			s.CompetitorState = b.To
		}
	case event.DurableDeploymentCompleted:
		w.durable(e, b)
	case event.AgentStarted:
		if a := w.agent(b.Agent); a != nil {
			*a = Agent{ID: a.ID, Territory: b.Territory, Model: b.Model, Running: true, StartedMS: e.ElapsedMS}
		}
	case event.AgentFinished:
		state := "failed"
		if b.Success {
			state = "completed"
		}
		w.endAgent(e, b.Agent, &b.Success, b.Source, state, b.Detail)
	case event.AgentInterrupted:
		w.endAgent(e, b.Agent, nil, b.Source, "interrupted", b.Detail)
	case event.AgentTerminated:
		w.endAgent(e, b.Agent, nil, "controller", "terminated", b.Reason)
	case event.AgentOutraced:
		success := false
		w.endAgent(e, b.Agent, &success, "player", "incomplete", b.Reason)
	case event.UsageCharged:
		if a := w.agent(b.Agent); a != nil {
			a.charge(b)
		}
	case event.PostMatchDrainStarted:
		w.Drain = Drain{State: "draining", StartMS: e.ElapsedMS, TimeoutMS: b.TimeoutMS, Pending: b.PendingAgents}
	case event.PostMatchDrainFinished:
		w.Drain.State, w.Drain.Captured, w.Drain.Terminated = "done", b.CapturedAgents, b.TerminatedAgents
	case event.InfrastructureFailure:
		w.InfrastructureFailures++
		w.Failures.push(Infrastructure{e.ElapsedMS, i, b})
	case event.Unknown:
		w.Unknown++
	default:
		w.applyOurs(i, e)
	}
}

// seat returns a territory for changing, made when it is new; nil beyond the
// limits.
func (w *World) seat(id string) *Seat {
	at, ok := w.seatAt(id)
	if ok {
		return w.seats[at]
	}
	if !w.room() {
		return nil
	}
	s := &Seat{ID: id, State: "provisioning"}
	at, _ = slices.BinarySearchFunc(w.seats, id, func(s *Seat, id string) int { return strings.Compare(s.ID, id) })
	w.seats = slices.Insert(w.seats, at, s)
	// Seats without registration are shown after the others, by id.
	pos := w.registered
	for pos < len(w.order) && w.order[pos].ID < id {
		pos++
	}
	w.order = slices.Insert(w.order, pos, s)
	return s
}

func (w *World) room() bool {
	if w.entries >= MaxEntries {
		w.Ignored++
		return false
	}
	w.entries++
	return true
}

func (w *World) agent(id string) *Agent {
	at, ok := w.agentAt(id)
	if ok {
		return w.agents[at]
	}
	if !w.room() {
		return nil
	}
	a := &Agent{ID: id}
	w.agents = slices.Insert(w.agents, at, a)
	return a
}

// milestone returns a seat's milestone for changing. The pointer is good until
// the next milestone is made.
func (w *World) milestone(territory, id string) (*Seat, *Milestone) {
	s := w.seat(territory)
	if s == nil {
		return nil, nil
	}
	if m := s.Milestone(id); m != nil {
		return s, m
	}
	if len(s.Milestones) >= MaxMilestones {
		w.Ignored++
		return nil, nil
	}
	if !w.room() {
		return nil, nil
	}
	s.Milestones = append(s.Milestones, Milestone{ID: id})
	return s, &s.Milestones[len(s.Milestones)-1]
}

func (w *World) register(b event.TerritoryRegistered) {
	s := w.seat(b.Territory)
	if s == nil {
		return
	}
	s.Class, s.Agent = b.Class, b.Agent
	if s.Registered {
		return
	}
	s.Registered = true
	from := slices.Index(w.order, s)
	w.order = slices.Delete(w.order, from, from+1)
	w.order = slices.Insert(w.order, w.registered, s)
	w.registered++
}

func (w *World) evaluationStarted(e event.Event, b event.MilestoneEvaluationStarted) {
	_, m := w.milestone(b.Territory, b.Milestone)
	if m == nil {
		return
	}
	if m.Attempts == 0 {
		m.FirstMS = e.ElapsedMS
	}
	m.Evaluating = true
	m.Attempts++
	m.StartedMS = e.ElapsedMS
}

func (w *World) milestonePassed(i int, e event.Event, b event.MilestonePassed) {
	s, m := w.milestone(b.Territory, b.Milestone)
	if m == nil {
		return
	}
	if !m.Passed {
		s.Points = add(s.Points, b.Points)
	}
	m.Evaluating, m.Passed, m.Failing = false, true, false
	m.Points, m.Evidence, m.Inherited = b.Points, b.Evidence, false
	m.PassedMS, m.PassedIndex = e.ElapsedMS, i
	m.Record, m.RecordSHA, m.NotBefore, m.HeldAt = b.Record, b.RecordSHA, b.NotBefore, b.HeldAt
	s.ProgressMS = e.ElapsedMS
	s.endSpan(m, "passed", e.ElapsedMS)
}

func (w *World) milestoneFailed(i int, e event.Event, b event.MilestoneFailed) {
	s, m := w.milestone(b.Territory, b.Milestone)
	if m == nil {
		return
	}
	m.Evaluating = false
	m.Failing = true
	m.Failures++
	m.Failure = Failure{e.ElapsedMS, i, b.Attempt, b.Category, b.Detail, b.Source, b.Record, b.RecordSHA}
	if m.FirstFailure == nil {
		first := m.Failure
		m.FirstFailure = &first
	}
	if m.span > 0 {
		span := s.Spans.edit(m.span - 1)
		if span.Category == b.Category && (span.Detail == b.Detail || len(b.Detail) > maxDetail && span.Detail == clip(b.Detail, maxDetail)) {
			span.LastMS, span.Last = e.ElapsedMS, i
			span.Count++
			return
		}
		s.endSpan(m, "changed", e.ElapsedMS)
	}
	m.span = 1 + s.Spans.push(Span{Milestone: b.Milestone, Category: b.Category, Detail: clip(b.Detail, maxDetail), Source: b.Source,
		SinceMS: e.ElapsedMS, LastMS: e.ElapsedMS, Count: 1, First: i, Last: i, Open: true})
}

func (s *Seat) endSpan(m *Milestone, why string, ms uint64) {
	if m.span == 0 {
		return
	}
	span := s.Spans.edit(m.span - 1)
	span.Open, span.Ended, span.EndMS = false, why, ms
	m.span = 0
}

func (w *World) milestoneRevoked(i int, e event.Event, b event.MilestoneRevoked) {
	s, m := w.milestone(b.Territory, b.Milestone)
	if m == nil {
		return
	}
	r := Revocation{MS: e.ElapsedMS, Index: i, Milestone: b.Milestone, Reason: clip(b.Reason, maxDetail), Record: b.Record, RecordSHA: b.RecordSHA}
	if m.Passed {
		r.Points = m.Points
		s.Points -= min(s.Points, m.Points)
	}
	// The points and failure of the milestone stay, as in the reference.
	m.Evaluating, m.Passed, m.Inherited, m.Evidence = false, false, false, nil
	m.Revoked++
	s.endSpan(m, "revoked", e.ElapsedMS)
	s.Revocations.push(r)
	s.ProgressMS = e.ElapsedMS
}

func (w *World) durable(e event.Event, b event.DurableDeploymentCompleted) {
	s := w.seat(b.Territory)
	if s == nil {
		return
	}
	s.CompetitorState = "durable"
	verdict := e.ElapsedMS
	if b.Repeated != nil {
		verdict = *b.Repeated
	}
	s.DurableAtMS = &verdict
	s.Durable = &Instant{At: verdict, NotBefore: b.NotBefore}
	if b.DurableAt != nil {
		s.Durable.At = *b.DurableAt
	}
	s.AttackMS, s.FaultMS = b.AttackMS, b.FaultMS
}

func (w *World) endAgent(e event.Event, id string, success *bool, source, state, note string) {
	a := w.agent(id)
	if a == nil {
		return
	}
	a.Running = false
	a.Successful, a.FailureSource, a.TerminalState, a.TerminalNote = success, &source, &state, &note
	a.EndedMS = at(e)
}

func (a *Agent) charge(b event.UsageCharged) {
	a.Charges++
	a.ResourceUnits = add(a.ResourceUnits, b.ResourceUnits)
	if b.InputTokens == nil || b.OutputTokens == nil {
		a.TokensUnknown++
	}
	if b.CostMicroUSD == nil {
		a.CostUnknown++
	}
	a.InputTokens = add(a.InputTokens, value(b.InputTokens))
	a.OutputTokens = add(a.OutputTokens, value(b.OutputTokens))
	a.CostMicroUSD = add(a.CostMicroUSD, value(b.CostMicroUSD))
}

// at is the event's clock as an optional time.
func at(e event.Event) *uint64 { ms := e.ElapsedMS; return &ms }

// add is the reference's saturating addition.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func value(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

// clip cuts a string at limit bytes, without keeping the whole of it alive.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
