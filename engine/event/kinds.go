package event

import "encoding/json"

// Body is the part of an event that its kind defines. It is one of the structs
// of this file, by value.
type Body interface{ Kind() string }

// The reference's kinds (recordings reference, section 2.1). Field order is the order
// on the line.
type (
	MatchStateChanged struct {
		From string `json:"from"` // preparing, running, finished, aborted
		To   string `json:"to"`
	}
	TerritoryRegistered struct {
		Territory string `json:"territory"`
		Class     string `json:"class"`
		Agent     string `json:"agent"`
	}
	AgentStarted struct {
		Agent     string `json:"agent"`
		Territory string `json:"territory"`
		Model     string `json:"model"`
	}
	CompetitorStateChanged struct {
		Territory string `json:"territory"`
		From      string `json:"from"` // preparing, building, verifying, durable, incomplete, unavailable
		To        string `json:"to"`
		Reason    string `json:"reason"`
	}
	MilestoneEvaluationStarted struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		Attempt   uint64 `json:"attempt,omitempty"` // ours; from 1
	}
	MilestonePassed struct {
		Territory string          `json:"territory"`
		Milestone string          `json:"milestone"`
		Points    uint64          `json:"points"`
		Evidence  json.RawMessage `json:"evidence"`
		Attempt   uint64          `json:"attempt,omitempty"`       // ours
		Record    string          `json:"record,omitempty"`        // ours; path of the probe records, relative to the heat
		RecordSHA string          `json:"record_sha256,omitempty"` // ours; hex digest of that file, which so is part of the chain
		NotBefore *uint64         `json:"not_before_ms,omitempty"` // ours; the last instant at which it was seen not to hold
		HeldAt    *uint64         `json:"held_at_ms,omitempty"`    // ours; the first instant at which a probe saw it hold
	}
	MilestoneFailed struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		Category  string `json:"category"` // verification_failed in the reference; ours: contract, transport, timeout, verifier
		Detail    string `json:"detail"`
		Retryable bool   `json:"retryable"`
		Attempt   uint64 `json:"attempt,omitempty"` // ours
		Record    string `json:"record,omitempty"`  // ours
		RecordSHA string `json:"record_sha256,omitempty"`
		Source    string `json:"source,omitempty"` // ours; who is charged, in the reference's words
	}
	MilestoneRevoked struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		Reason    string `json:"reason"`
		Record    string `json:"record,omitempty"` // ours
		RecordSHA string `json:"record_sha256,omitempty"`
	}
	// DurableDeploymentCompleted: the reference repeats elapsed_ms on the line;
	// ours writes each key once, the envelope's clock being the instant of the
	// verdict (recordings reference, section 2.3).
	DurableDeploymentCompleted struct {
		Territory string `json:"territory"`
		// Ours. The instant the seat is ranked by, the referee's own work not charged, and the
		// last instant at which it was known not to be durable: the true
		// instant lies in (NotBefore, DurableAt].
		DurableAt *uint64 `json:"durable_at_ms,omitempty"`
		NotBefore *uint64 `json:"not_before_ms,omitempty"`
		// AttackMS is what was taken off: the time that the seat waited for the
		// referee's attacks, reboots and looking again, of one evaluation at most its
		// milestone's timeout, and nothing from before the seat last failed a check.
		AttackMS uint64 `json:"attack_ms,omitempty"`
		// FaultMS is the part of AttackMS in which a fault that no other seat had was on
		// this one.
		FaultMS uint64 `json:"fault_ms,omitempty"`
		// Repeated is the second elapsed_ms of a reference line; nil in ours.
		Repeated *uint64 `json:"-"`
	}
	MatchFinished struct {
		Winner   *string  `json:"winner"` // a territory
		Reason   string   `json:"reason"`
		DeadHeat []string `json:"dead_heat,omitempty"` // ours; the territories that cannot be told apart
	}
	UsageCharged struct {
		Agent         string  `json:"agent"`
		ResourceUnits uint64  `json:"resource_units"`
		InputTokens   *uint64 `json:"input_tokens"`
		OutputTokens  *uint64 `json:"output_tokens"`
		CostMicroUSD  *uint64 `json:"cost_microusd"`
	}
	PostMatchDrainStarted struct {
		TimeoutMS     uint64 `json:"timeout_ms"`
		PendingAgents uint64 `json:"pending_agents"`
	}
	PostMatchDrainFinished struct {
		CapturedAgents   uint64 `json:"captured_agents"`
		TerminatedAgents uint64 `json:"terminated_agents"`
	}
	AgentFinished struct {
		Agent   string `json:"agent"`
		Source  string `json:"source"` // player, harness, provider, arena, controller, unknown
		Success bool   `json:"success"`
		Detail  string `json:"detail"`
	}
	AgentInterrupted struct {
		Agent  string `json:"agent"`
		Source string `json:"source"`
		Detail string `json:"detail"`
	}
	AgentTerminated struct {
		Agent  string `json:"agent"`
		Reason string `json:"reason"`
	}
	AgentOutraced struct {
		Agent  string `json:"agent"`
		Reason string `json:"reason"`
	}
	HealthObserved struct {
		Territory string  `json:"territory"`
		Healthy   bool    `json:"healthy"`
		Status    *uint16 `json:"status"`
		LatencyMS uint64  `json:"latency_ms"`
		Detail    string  `json:"detail"`
	}
	TerritoryStateChanged struct {
		Territory string `json:"territory"`
		From      string `json:"from"` // provisioning, healthy, degraded, recovering, eliminated
		To        string `json:"to"`
		Reason    string `json:"reason"`
	}
	ResourcesChanged struct {
		Territory string `json:"territory"`
		Delta     int64  `json:"delta"`
		Remaining uint64 `json:"remaining"`
		Reason    string `json:"reason"`
	}
	TerritoryEliminated struct {
		Territory string `json:"territory"`
		Source    string `json:"source"`
		Detail    string `json:"detail"`
	}
	InfrastructureFailure struct {
		Component string `json:"component"`
		Source    string `json:"source"`
		Detail    string `json:"detail"`
	}
)

// Our kinds (design, section 3).
type (
	// HeatPrepared opens our logs: what each seat's machines are, and that they
	// are ready. Clock 0.
	HeatPrepared struct {
		Driver string         `json:"driver"` // "qemu" or "sim"
		Start  string         `json:"start"`  // "prepared", "cold" or "saved"
		TookMS uint64         `json:"took_ms"`
		Seats  []PreparedSeat `json:"seats"`
	}
	// PreparedSeat says who really plays a seat: an agent whose adapter has no
	// command here is played by a bundled script, and Note says so.
	PreparedSeat struct {
		Territory string   `json:"territory"`
		Machines  []string `json:"machines"`
		Agent     string   `json:"agent"`
		Adapter   string   `json:"adapter"` // the adapter that runs, e.g. "script:careful"
		Note      string   `json:"note,omitempty"`
	}
	AgentActionStarted struct {
		Territory string `json:"territory"`
		Agent     string `json:"agent"`
		Action    uint64 `json:"action"`  // from 1, per territory
		Channel   string `json:"channel"` // exec, shell, sftp, forward, announced
		Machine   string `json:"machine"`
		Command   string `json:"command"` // as on the wire, sanitised, at most 4 KiB
		Session   string `json:"session,omitempty"`
		// SelfReported: the guest's shell announced it; the wire only shows the
		// session.
		SelfReported bool `json:"self_reported,omitempty"`
	}
	AgentActionFinished struct {
		Territory string `json:"territory"`
		Agent     string `json:"agent"`
		Action    uint64 `json:"action"`
		Exit      *int   `json:"exit"` // null when the session broke
		TookMS    uint64 `json:"took_ms"`
		Output    string `json:"output"` // both streams' head and tail, sanitised, at most 4 KiB
		Bytes     uint64 `json:"bytes"`  // of output on the wire
		Detail    string `json:"detail,omitempty"`
	}
	AttackStarted struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		Attack    string `json:"attack"` // what is tried, in words
	}
	AttackFinished struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		Attack    string `json:"attack"`
		Held      bool   `json:"held"` // the seat withstood it
		Detail    string `json:"detail"`
		TookMS    uint64 `json:"took_ms"`
		Undone    bool   `json:"undone"` // what it left is removed, and that was confirmed
		Record    string `json:"record,omitempty"`
		RecordSHA string `json:"record_sha256,omitempty"`
	}
	// FaultInjected says that a fault is about to be injected into a seat; what came
	// of it follows.
	FaultInjected struct {
		Territory string          `json:"territory"`
		Fault     string          `json:"fault"` // a kind of vm/fault
		Target    string          `json:"target"`
		Params    json.RawMessage `json:"params,omitempty"`
		Author    string          `json:"author"` // "arena", or the referee's
		Reason    string          `json:"reason"`
		Schedule  string          `json:"schedule,omitempty"`   // the arena's id of it; "" for a referee's
		PlannedMS *uint64         `json:"planned_ms,omitempty"` // when the schedule wanted it
		ForMS     *uint64         `json:"for_ms,omitempty"`     // how long it is to last; null until it is undone
		Proves    []string        `json:"proves,omitempty"`     // milestones that rest on it
		// Alone: other seats don't get it, so that its time is not charged to this one.
		Alone bool `json:"alone,omitempty"`
	}
	FaultConfirmed struct {
		Territory string          `json:"territory"`
		Fault     string          `json:"fault"`
		Target    string          `json:"target"`
		Receipt   json.RawMessage `json:"receipt"`
	}
	FaultCleared struct {
		Territory string          `json:"territory"`
		Fault     string          `json:"fault"`
		Target    string          `json:"target"`
		Receipt   json.RawMessage `json:"receipt"`
		Author    string          `json:"author,omitempty"` // of an undoing that a referee asked for
		Reason    string          `json:"reason,omitempty"`
	}
	// FaultFailed: at inject the fault was not injected, at confirm its witness saw
	// nothing of it, and nothing of it is left; at clear it may still be there.
	FaultFailed struct {
		Territory string          `json:"territory"`
		Fault     string          `json:"fault"`
		Target    string          `json:"target"`
		Stage     string          `json:"stage"` // inject, confirm, clear
		Detail    string          `json:"detail"`
		Receipt   json.RawMessage `json:"receipt,omitempty"`
		Voids     []string        `json:"voids,omitempty"` // milestones that rested on it, and can't be passed any more
		Author    string          `json:"author,omitempty"`
		Reason    string          `json:"reason,omitempty"`
	}
	// CanarySample is what became of writes of the referee's client, one after the
	// other, that ended in the same way. Package canary defines the words.
	CanarySample struct {
		Territory     string  `json:"territory"`
		Write         uint64  `json:"write"`              // number of the last of them
		Outcome       string  `json:"outcome"`            // acknowledged, failed, indeterminate; mixed for many of a service that flaps
		LatencyMS     uint64  `json:"latency_ms"`         // the longest of theirs
		Acknowledged  uint64  `json:"acknowledged"`       // of all writes up to this one
		Failed        uint64  `json:"failed"`             // likewise
		Indeterminate uint64  `json:"indeterminate"`      // likewise
		Writes        uint64  `json:"writes,omitempty"`   // how many of them; 0 is one
		SinceMS       *uint64 `json:"since_ms,omitempty"` // when the first of them was sent
	}
	// CanaryResult is what the client measured, once it had read everything back. Its
	// keys are those of canary.Measure, which defines them; the last four are those of
	// its first outage, null for what was not or did not happen.
	CanaryResult struct {
		Territory     string  `json:"territory"`
		Writes        uint64  `json:"writes"`
		Acknowledged  uint64  `json:"acknowledged"`
		Failed        uint64  `json:"failed"`
		Indeterminate uint64  `json:"indeterminate"`
		Lost          uint64  `json:"lost"`
		Unread        uint64  `json:"unread"`
		Phantoms      uint64  `json:"phantoms"`
		LossMS        uint64  `json:"loss_ms"`
		Outages       uint64  `json:"outages"`
		OutageMS      uint64  `json:"outage_ms"`
		LongestMS     uint64  `json:"longest_outage_ms"`
		OutageFromMS  *uint64 `json:"outage_from_ms"`
		FirstReadMS   *uint64 `json:"first_read_ms"`
		FirstAckMS    *uint64 `json:"first_acknowledged_ms"`
		SteadyMS      *uint64 `json:"steady_ms"`
	}
	LimitReached struct {
		Agent  string `json:"agent"`
		Limit  string `json:"limit"` // time, cost, resource_units, turns, tokens
		Detail string `json:"detail"`
	}
	SeatUnavailable struct {
		Territory string `json:"territory"`
		Source    string `json:"source"`
		Detail    string `json:"detail"`
	}
	HeatPaused struct {
		Author string `json:"author"`
		Reason string `json:"reason"`
	}
	HeatResumed struct {
		Author   string `json:"author"`
		Reason   string `json:"reason"`
		PausedMS uint64 `json:"paused_ms"`
	}
	// ConsoleAttached marks the seat as touched by a person.
	ConsoleAttached struct {
		Territory string `json:"territory"`
		Machine   string `json:"machine"`
		Author    string `json:"author"`
	}
	ConsoleDetached struct {
		Territory string `json:"territory"`
		Machine   string `json:"machine"`
		Author    string `json:"author"`
		Bytes     uint64 `json:"input_bytes"`
		// Input is what was typed, sanitised, at most 4 KiB: the lines that the
		// console showed. Of others, such as passwords, it says that they were.
		Input string `json:"input"`
	}
	// RefereeRuling is a person's decision about the heat. What it changes is said
	// with it, in the kinds that say so otherwise, or follows from the ruling alone:
	// see the list of rulings.
	RefereeRuling struct {
		Ruling    string `json:"ruling"`
		Territory string `json:"territory,omitempty"`
		Milestone string `json:"milestone,omitempty"`
		Author    string `json:"author"`
		Reason    string `json:"reason"`
		ExtendMS  uint64 `json:"extend_ms,omitempty"` // of limit_extended
	}
	OperatorNote struct {
		Author string `json:"author"`
		Text   string `json:"text"`
	}
	// HostileOutput: bytes that would have driven the user's terminal were
	// found and neutralised.
	HostileOutput struct {
		Territory string `json:"territory"`
		Where     string `json:"where"` // console, action, evidence, result
		Detail    string `json:"detail"`
	}
	// DecoyUsed: a player used something that was planted to be left alone. Once
	// for each decoy of a seat.
	DecoyUsed struct {
		Territory string `json:"territory"`
		Agent     string `json:"agent"`
		Decoy     string `json:"decoy"` // its name in the manifest
		Where     string `json:"where"` // action, input
		Detail    string `json:"detail"`
	}
	// StateSaved: the disks of a seat's machines were kept, as they were between two
	// checks; what had passed by then is in the log before it. Milestone passed last.
	StateSaved struct {
		Territory string `json:"territory"`
		Milestone string `json:"milestone"`
		State     string `json:"state"` // its name in the cache, 16 hex digits
		Bytes     uint64 `json:"bytes"`
		TookMS    uint64 `json:"took_ms"` // the referee's work, not charged
	}
	// HeatBranched: the seat's machines started from a state of another heat's. Clock 0.
	HeatBranched struct {
		Territory string `json:"territory"`
		Heat      string `json:"heat"`     // the parent recording's name
		LogHead   string `json:"log_head"` // of its log when it was branched from
		Milestone string `json:"milestone"`
		Event     uint64 `json:"event"` // the sequence of its state_saved
		AtMS      uint64 `json:"at_ms"` // on the parent's clock
	}
	// MilestoneInherited: it had passed in the parent heat. It counts, and earns nothing.
	MilestoneInherited struct {
		Territory string          `json:"territory"`
		Milestone string          `json:"milestone"`
		Attempt   uint64          `json:"attempt"` // the parent's that passed
		Evidence  json.RawMessage `json:"evidence"`
	}
	// Unknown keeps a kind that this version does not know.
	Unknown struct {
		Name string
		Raw  json.RawMessage // the whole line, without the newline
	}
)

// Rulings, and what each changes.
const (
	RulingEnded       = "heat_ended"        // the heat is aborted; match_state_changed and match_finished follow
	RulingVoided      = "heat_voided"       // the heat counts for nobody and has no winner, whatever was or is decided
	RulingExtended    = "limit_extended"    // the limit is extend_ms later
	RulingUnavailable = "seat_unavailable"  // seat_unavailable and competitor_state_changed follow
	RulingRestored    = "seat_restored"     // the seat is no longer unavailable; competitor_state_changed follows
	RulingRevoked     = "milestone_revoked" // milestone_revoked follows; not evaluated again while that stands
	RulingUpheld      = "milestone_upheld"  // milestone_passed follows, as it passed before it was revoked
)

// Kinds on the line.
func (MatchStateChanged) Kind() string          { return "match_state_changed" }
func (TerritoryRegistered) Kind() string        { return "territory_registered" }
func (AgentStarted) Kind() string               { return "agent_started" }
func (CompetitorStateChanged) Kind() string     { return "competitor_state_changed" }
func (MilestoneEvaluationStarted) Kind() string { return "milestone_evaluation_started" }
func (MilestonePassed) Kind() string            { return "milestone_passed" }
func (MilestoneFailed) Kind() string            { return "milestone_failed" }
func (MilestoneRevoked) Kind() string           { return "milestone_revoked" }
func (DurableDeploymentCompleted) Kind() string { return "durable_deployment_completed" }
func (MatchFinished) Kind() string              { return "match_finished" }
func (UsageCharged) Kind() string               { return "usage_charged" }
func (PostMatchDrainStarted) Kind() string      { return "post_match_drain_started" }
func (PostMatchDrainFinished) Kind() string     { return "post_match_drain_finished" }
func (AgentFinished) Kind() string              { return "agent_finished" }
func (AgentInterrupted) Kind() string           { return "agent_interrupted" }
func (AgentTerminated) Kind() string            { return "agent_terminated" }
func (AgentOutraced) Kind() string              { return "agent_outraced" }
func (HealthObserved) Kind() string             { return "health_observed" }
func (TerritoryStateChanged) Kind() string      { return "territory_state_changed" }
func (ResourcesChanged) Kind() string           { return "resources_changed" }
func (TerritoryEliminated) Kind() string        { return "territory_eliminated" }
func (InfrastructureFailure) Kind() string      { return "infrastructure_failure" }
func (HeatPrepared) Kind() string               { return "heat_prepared" }
func (AgentActionStarted) Kind() string         { return "agent_action_started" }
func (AgentActionFinished) Kind() string        { return "agent_action_finished" }
func (AttackStarted) Kind() string              { return "attack_started" }
func (AttackFinished) Kind() string             { return "attack_finished" }
func (FaultInjected) Kind() string              { return "fault_injected" }
func (FaultConfirmed) Kind() string             { return "fault_confirmed" }
func (FaultCleared) Kind() string               { return "fault_cleared" }
func (FaultFailed) Kind() string                { return "fault_failed" }
func (CanarySample) Kind() string               { return "canary_sample" }
func (CanaryResult) Kind() string               { return "canary_result" }
func (LimitReached) Kind() string               { return "limit_reached" }
func (SeatUnavailable) Kind() string            { return "seat_unavailable" }
func (HeatPaused) Kind() string                 { return "heat_paused" }
func (HeatResumed) Kind() string                { return "heat_resumed" }
func (ConsoleAttached) Kind() string            { return "console_attached" }
func (ConsoleDetached) Kind() string            { return "console_detached" }
func (RefereeRuling) Kind() string              { return "referee_ruling" }
func (OperatorNote) Kind() string               { return "operator_note" }
func (HostileOutput) Kind() string              { return "hostile_output" }
func (DecoyUsed) Kind() string                  { return "decoy_used" }
func (StateSaved) Kind() string                 { return "state_saved" }
func (HeatBranched) Kind() string               { return "heat_branched" }
func (MilestoneInherited) Kind() string         { return "milestone_inherited" }
func (u Unknown) Kind() string                  { return u.Name }
