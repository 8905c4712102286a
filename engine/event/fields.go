package event

// The fields of each kind, in the order of the line.

func (b *MatchStateChanged) fields(c *codec) {
	c.id("from", &b.From)
	c.id("to", &b.To)
}

func (b *TerritoryRegistered) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("class", &b.Class)
	c.id("agent", &b.Agent)
}

func (b *AgentStarted) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.id("territory", &b.Territory)
	c.id("model", &b.Model)
}

func (b *CompetitorStateChanged) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("from", &b.From)
	c.id("to", &b.To)
	c.text("reason", &b.Reason)
}

func (b *MilestoneEvaluationStarted) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.optUint("attempt", &b.Attempt)
}

func (b *MilestonePassed) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.uint("points", &b.Points)
	c.json("evidence", &b.Evidence)
	c.optUint("attempt", &b.Attempt)
	c.optID("record", &b.Record)
	c.optID("record_sha256", &b.RecordSHA)
	c.optNullUint("not_before_ms", &b.NotBefore)
	c.optNullUint("held_at_ms", &b.HeldAt)
}

func (b *MilestoneFailed) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.id("category", &b.Category)
	c.text("detail", &b.Detail)
	c.bool("retryable", &b.Retryable)
	c.optUint("attempt", &b.Attempt)
	c.optID("record", &b.Record)
	c.optID("record_sha256", &b.RecordSHA)
	c.optID("source", &b.Source)
}

func (b *MilestoneRevoked) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.text("reason", &b.Reason)
	c.optID("record", &b.Record)
	c.optID("record_sha256", &b.RecordSHA)
}

func (b *DurableDeploymentCompleted) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.optNullUint("durable_at_ms", &b.DurableAt)
	c.optNullUint("not_before_ms", &b.NotBefore)
	c.optUint("attack_ms", &b.AttackMS)
	c.optUint("fault_ms", &b.FaultMS)
}

func (b *MatchFinished) fields(c *codec) {
	c.nullID("winner", &b.Winner)
	c.text("reason", &b.Reason)
	c.optIDs("dead_heat", &b.DeadHeat)
}

func (b *UsageCharged) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.uint("resource_units", &b.ResourceUnits)
	c.nullUint("input_tokens", &b.InputTokens)
	c.nullUint("output_tokens", &b.OutputTokens)
	c.nullUint("cost_microusd", &b.CostMicroUSD)
}

func (b *PostMatchDrainStarted) fields(c *codec) {
	c.uint("timeout_ms", &b.TimeoutMS)
	c.uint("pending_agents", &b.PendingAgents)
}

func (b *PostMatchDrainFinished) fields(c *codec) {
	c.uint("captured_agents", &b.CapturedAgents)
	c.uint("terminated_agents", &b.TerminatedAgents)
}

func (b *AgentFinished) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.id("source", &b.Source)
	c.bool("success", &b.Success)
	c.text("detail", &b.Detail)
}

func (b *AgentInterrupted) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.id("source", &b.Source)
	c.text("detail", &b.Detail)
}

func (b *AgentTerminated) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.text("reason", &b.Reason)
}

func (b *AgentOutraced) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.text("reason", &b.Reason)
}

func (b *HealthObserved) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.bool("healthy", &b.Healthy)
	c.nullUint16("status", &b.Status)
	c.uint("latency_ms", &b.LatencyMS)
	c.text("detail", &b.Detail)
}

func (b *TerritoryStateChanged) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("from", &b.From)
	c.id("to", &b.To)
	c.text("reason", &b.Reason)
}

func (b *ResourcesChanged) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.int("delta", &b.Delta)
	c.uint("remaining", &b.Remaining)
	c.text("reason", &b.Reason)
}

func (b *TerritoryEliminated) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("source", &b.Source)
	c.text("detail", &b.Detail)
}

func (b *InfrastructureFailure) fields(c *codec) {
	c.id("component", &b.Component)
	c.id("source", &b.Source)
	c.text("detail", &b.Detail)
}

func (b *HeatPrepared) fields(c *codec) {
	c.id("driver", &b.Driver)
	c.id("start", &b.Start)
	c.uint("took_ms", &b.TookMS)
	c.seats("seats", &b.Seats)
}

func (b *AgentActionStarted) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("agent", &b.Agent)
	c.uint("action", &b.Action)
	c.id("channel", &b.Channel)
	c.id("machine", &b.Machine)
	c.text("command", &b.Command)
	c.optID("session", &b.Session)
	c.optBool("self_reported", &b.SelfReported)
}

func (b *AgentActionFinished) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("agent", &b.Agent)
	c.uint("action", &b.Action)
	c.nullInt("exit", &b.Exit)
	c.uint("took_ms", &b.TookMS)
	c.text("output", &b.Output)
	c.uint("bytes", &b.Bytes)
	c.optText("detail", &b.Detail)
}

func (b *AttackStarted) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.text("attack", &b.Attack)
}

func (b *AttackFinished) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.text("attack", &b.Attack)
	c.bool("held", &b.Held)
	c.text("detail", &b.Detail)
	c.uint("took_ms", &b.TookMS)
	c.bool("undone", &b.Undone)
	c.optID("record", &b.Record)
	c.optID("record_sha256", &b.RecordSHA)
}

func (b *FaultInjected) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("fault", &b.Fault)
	c.id("target", &b.Target)
	c.optJSON("params", &b.Params)
	c.id("author", &b.Author)
	c.text("reason", &b.Reason)
	c.optID("schedule", &b.Schedule)
	c.optNullUint("planned_ms", &b.PlannedMS)
	c.optNullUint("for_ms", &b.ForMS)
	c.optIDs("proves", &b.Proves)
	c.optBool("alone", &b.Alone)
}

func (b *FaultConfirmed) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("fault", &b.Fault)
	c.id("target", &b.Target)
	c.json("receipt", &b.Receipt)
}

func (b *FaultCleared) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("fault", &b.Fault)
	c.id("target", &b.Target)
	c.json("receipt", &b.Receipt)
	c.optID("author", &b.Author)
	c.optText("reason", &b.Reason)
}

func (b *FaultFailed) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("fault", &b.Fault)
	c.id("target", &b.Target)
	c.id("stage", &b.Stage)
	c.text("detail", &b.Detail)
	c.optJSON("receipt", &b.Receipt)
	c.optIDs("voids", &b.Voids)
	c.optID("author", &b.Author)
	c.optText("reason", &b.Reason)
}

func (b *CanarySample) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.uint("write", &b.Write)
	c.id("outcome", &b.Outcome)
	c.uint("latency_ms", &b.LatencyMS)
	c.uint("acknowledged", &b.Acknowledged)
	c.uint("failed", &b.Failed)
	c.uint("indeterminate", &b.Indeterminate)
	c.optUint("writes", &b.Writes)
	c.optNullUint("since_ms", &b.SinceMS)
}

func (b *CanaryResult) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.uint("writes", &b.Writes)
	c.uint("acknowledged", &b.Acknowledged)
	c.uint("failed", &b.Failed)
	c.uint("indeterminate", &b.Indeterminate)
	c.uint("lost", &b.Lost)
	c.uint("unread", &b.Unread)
	c.uint("phantoms", &b.Phantoms)
	c.uint("loss_ms", &b.LossMS)
	c.uint("outages", &b.Outages)
	c.uint("outage_ms", &b.OutageMS)
	c.uint("longest_outage_ms", &b.LongestMS)
	c.nullUint("outage_from_ms", &b.OutageFromMS)
	c.nullUint("first_read_ms", &b.FirstReadMS)
	c.nullUint("first_acknowledged_ms", &b.FirstAckMS)
	c.nullUint("steady_ms", &b.SteadyMS)
}

func (b *LimitReached) fields(c *codec) {
	c.id("agent", &b.Agent)
	c.id("limit", &b.Limit)
	c.text("detail", &b.Detail)
}

func (b *SeatUnavailable) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("source", &b.Source)
	c.text("detail", &b.Detail)
}

func (b *HeatPaused) fields(c *codec) {
	c.id("author", &b.Author)
	c.text("reason", &b.Reason)
}

func (b *HeatResumed) fields(c *codec) {
	c.id("author", &b.Author)
	c.text("reason", &b.Reason)
	c.uint("paused_ms", &b.PausedMS)
}

func (b *ConsoleAttached) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("machine", &b.Machine)
	c.id("author", &b.Author)
}

func (b *ConsoleDetached) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("machine", &b.Machine)
	c.id("author", &b.Author)
	c.uint("input_bytes", &b.Bytes)
	c.text("input", &b.Input)
}

func (b *RefereeRuling) fields(c *codec) {
	c.id("ruling", &b.Ruling)
	c.optID("territory", &b.Territory)
	c.optID("milestone", &b.Milestone)
	c.id("author", &b.Author)
	c.text("reason", &b.Reason)
	c.optUint("extend_ms", &b.ExtendMS)
}

func (b *OperatorNote) fields(c *codec) {
	c.id("author", &b.Author)
	c.text("text", &b.Text)
}

func (b *HostileOutput) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("where", &b.Where)
	c.text("detail", &b.Detail)
}

func (b *DecoyUsed) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("agent", &b.Agent)
	c.id("decoy", &b.Decoy)
	c.id("where", &b.Where)
	c.text("detail", &b.Detail)
}

// decoders by kind. The frequent ones are spelled out in decode.go: there the body
// is built on the stack.
var decoders = map[string]func(*codec) Body{
	"match_state_changed":          decodeAs[MatchStateChanged],
	"territory_registered":         decodeAs[TerritoryRegistered],
	"agent_started":                decodeAs[AgentStarted],
	"competitor_state_changed":     decodeCompetitorStateChanged,
	"milestone_evaluation_started": decodeMilestoneEvaluationStarted,
	"milestone_passed":             decodeMilestonePassed,
	"milestone_failed":             decodeMilestoneFailed,
	"milestone_revoked":            decodeAs[MilestoneRevoked],
	"durable_deployment_completed": decodeAs[DurableDeploymentCompleted],
	"match_finished":               decodeAs[MatchFinished],
	"usage_charged":                decodeUsageCharged,
	"post_match_drain_started":     decodeAs[PostMatchDrainStarted],
	"post_match_drain_finished":    decodeAs[PostMatchDrainFinished],
	"agent_finished":               decodeAs[AgentFinished],
	"agent_interrupted":            decodeAs[AgentInterrupted],
	"agent_terminated":             decodeAs[AgentTerminated],
	"agent_outraced":               decodeAs[AgentOutraced],
	"health_observed":              decodeHealthObserved,
	"territory_state_changed":      decodeAs[TerritoryStateChanged],
	"resources_changed":            decodeResourcesChanged,
	"territory_eliminated":         decodeAs[TerritoryEliminated],
	"infrastructure_failure":       decodeAs[InfrastructureFailure],
	"heat_prepared":                decodeAs[HeatPrepared],
	"agent_action_started":         decodeAgentActionStarted,
	"agent_action_finished":        decodeAgentActionFinished,
	"attack_started":               decodeAs[AttackStarted],
	"attack_finished":              decodeAs[AttackFinished],
	"fault_injected":               decodeAs[FaultInjected],
	"fault_confirmed":              decodeAs[FaultConfirmed],
	"fault_cleared":                decodeAs[FaultCleared],
	"fault_failed":                 decodeAs[FaultFailed],
	"canary_sample":                decodeCanarySample,
	"canary_result":                decodeAs[CanaryResult],
	"limit_reached":                decodeAs[LimitReached],
	"seat_unavailable":             decodeAs[SeatUnavailable],
	"heat_paused":                  decodeAs[HeatPaused],
	"heat_resumed":                 decodeAs[HeatResumed],
	"console_attached":             decodeAs[ConsoleAttached],
	"console_detached":             decodeAs[ConsoleDetached],
	"referee_ruling":               decodeAs[RefereeRuling],
	"operator_note":                decodeAs[OperatorNote],
	"hostile_output":               decodeAs[HostileOutput],
	"decoy_used":                   decodeAs[DecoyUsed],
	"state_saved":                  decodeAs[StateSaved],
	"heat_branched":                decodeAs[HeatBranched],
	"milestone_inherited":          decodeAs[MilestoneInherited],
}

func (c *codec) encodeBody(b Body) {
	switch b := b.(type) {
	case MatchStateChanged:
		b.fields(c)
	case TerritoryRegistered:
		b.fields(c)
	case AgentStarted:
		b.fields(c)
	case CompetitorStateChanged:
		b.fields(c)
	case MilestoneEvaluationStarted:
		b.fields(c)
	case MilestonePassed:
		b.fields(c)
	case MilestoneFailed:
		b.fields(c)
	case MilestoneRevoked:
		b.fields(c)
	case DurableDeploymentCompleted:
		b.fields(c)
	case MatchFinished:
		b.fields(c)
	case UsageCharged:
		b.fields(c)
	case PostMatchDrainStarted:
		b.fields(c)
	case PostMatchDrainFinished:
		b.fields(c)
	case AgentFinished:
		b.fields(c)
	case AgentInterrupted:
		b.fields(c)
	case AgentTerminated:
		b.fields(c)
	case AgentOutraced:
		b.fields(c)
	case HealthObserved:
		b.fields(c)
	case TerritoryStateChanged:
		b.fields(c)
	case ResourcesChanged:
		b.fields(c)
	case TerritoryEliminated:
		b.fields(c)
	case InfrastructureFailure:
		b.fields(c)
	case HeatPrepared:
		b.fields(c)
	case AgentActionStarted:
		b.fields(c)
	case AgentActionFinished:
		b.fields(c)
	case AttackStarted:
		b.fields(c)
	case AttackFinished:
		b.fields(c)
	case FaultInjected:
		b.fields(c)
	case FaultConfirmed:
		b.fields(c)
	case FaultCleared:
		b.fields(c)
	case FaultFailed:
		b.fields(c)
	case CanarySample:
		b.fields(c)
	case CanaryResult:
		b.fields(c)
	case LimitReached:
		b.fields(c)
	case SeatUnavailable:
		b.fields(c)
	case HeatPaused:
		b.fields(c)
	case HeatResumed:
		b.fields(c)
	case ConsoleAttached:
		b.fields(c)
	case ConsoleDetached:
		b.fields(c)
	case RefereeRuling:
		b.fields(c)
	case OperatorNote:
		b.fields(c)
	case HostileOutput:
		b.fields(c)
	case DecoyUsed:
		b.fields(c)
	case StateSaved:
		b.fields(c)
	case HeatBranched:
		b.fields(c)
	case MilestoneInherited:
		b.fields(c)
	}
}
