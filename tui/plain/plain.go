// Package plain tells a heat in lines: one per event, repeats folded, no cursor, no
// colour. It is what a pipe, a dumb terminal and a screen reader get.
package plain

import (
	"fmt"
	"strings"
	"time"

	"refbox/engine/event"
	"refbox/engine/playback"
	"refbox/engine/text"
)

// nameWidth is the room for who an event is about.
const nameWidth = 16

// Line is one event: clock, whom it is about, and what happened. It is one line
// of sanitised text, whatever the event holds.
func Line(e event.Event) string {
	who, what := tell(e.Body)
	return row(e.ElapsedMS, who, what)
}

func row(elapsedMS uint64, who, what string) string {
	return fmt.Sprintf("%s  %s  %s", playback.Format(elapsedMS), text.Pad(text.Line(who), nameWidth), text.Line(what))
}

func failed(b event.MilestoneFailed) string {
	return fmt.Sprintf("failed %s (%s): %s", b.Milestone, b.Category, b.Detail)
}

// tell says whom an event is about and what happened.
func tell(b event.Body) (who, what string) {
	switch b := b.(type) {
	case event.HeatPrepared:
		return "", fmt.Sprintf("%s ready on %s machines, %s start, in %.1f s", text.Count(len(b.Seats), "seat"), b.Driver, b.Start, float64(b.TookMS)/1000)
	case event.MatchStateChanged:
		return "", "heat " + b.To
	case event.TerritoryRegistered:
		return b.Territory, "taken by " + b.Agent
	case event.AgentStarted:
		return b.Territory, fmt.Sprintf("agent %s (%s) started", b.Agent, b.Model)
	case event.CompetitorStateChanged:
		return b.Territory, fmt.Sprintf("%s: %s", b.To, b.Reason)
	case event.MilestoneEvaluationStarted:
		return b.Territory, "checking " + b.Milestone
	case event.MilestonePassed:
		return b.Territory, fmt.Sprintf("PASSED %s, +%d", b.Milestone, b.Points)
	case event.MilestoneFailed:
		return b.Territory, failed(b)
	case event.MilestoneRevoked:
		return b.Territory, fmt.Sprintf("REVOKED %s: %s", b.Milestone, b.Reason)
	case event.DurableDeploymentCompleted:
		return b.Territory, "DURABLE"
	case event.MatchFinished:
		switch {
		case b.Winner != nil:
			return *b.Winner, "WINS: " + b.Reason
		case len(b.DeadHeat) > 0:
			return "", "DEAD HEAT of " + strings.Join(b.DeadHeat, " and ") + ": " + b.Reason
		}
		return "", "NO WINNER: " + b.Reason
	case event.UsageCharged:
		return b.Agent, usage(b)
	case event.PostMatchDrainStarted:
		return "", fmt.Sprintf("draining: up to %d s for %s", b.TimeoutMS/1000, text.Count(b.PendingAgents, "agent"))
	case event.PostMatchDrainFinished:
		return "", fmt.Sprintf("drained: %d captured, %d terminated", b.CapturedAgents, b.TerminatedAgents)
	case event.AgentFinished:
		state := "failed"
		if b.Success {
			state = "completed"
		}
		return b.Agent, fmt.Sprintf("agent %s: %s", state, b.Detail)
	case event.AgentInterrupted:
		return b.Agent, "agent interrupted: " + b.Detail
	case event.AgentTerminated:
		return b.Agent, "agent terminated: " + b.Reason
	case event.AgentOutraced:
		return b.Agent, "agent outraced: " + b.Reason
	case event.HealthObserved:
		if b.Healthy {
			return b.Territory, fmt.Sprintf("healthy in %d ms", b.LatencyMS)
		}
		return b.Territory, "unhealthy: " + b.Detail
	case event.TerritoryStateChanged:
		return b.Territory, fmt.Sprintf("%s: %s", b.To, b.Reason)
	case event.ResourcesChanged:
		return b.Territory, fmt.Sprintf("resources %+d, %d left: %s", b.Delta, b.Remaining, b.Reason)
	case event.TerritoryEliminated:
		return b.Territory, "ELIMINATED: " + b.Detail
	case event.InfrastructureFailure:
		return "", fmt.Sprintf("infrastructure failure in %s (%s): %s", b.Component, b.Source, b.Detail)
	}
	return tellOurs(b)
}

// tellOurs is tell for the kinds that the reference lacks.
func tellOurs(b event.Body) (who, what string) {
	switch b := b.(type) {
	case event.AgentActionStarted:
		return b.Territory, fmt.Sprintf("action %d %s: %s", b.Action, b.Channel, b.Command)
	case event.AgentActionFinished:
		if b.Exit == nil {
			return b.Territory, fmt.Sprintf("action %d cut after %d ms: %s", b.Action, b.TookMS, b.Detail)
		}
		return b.Territory, fmt.Sprintf("action %d exit %d after %d ms", b.Action, *b.Exit, b.TookMS)
	case event.AttackStarted:
		return b.Territory, fmt.Sprintf("attack on %s: %s", b.Milestone, b.Attack)
	case event.AttackFinished:
		result := "BROKE THROUGH"
		if b.Held {
			result = "withstood"
		}
		told := fmt.Sprintf("attack %s after %d ms: %s", result, b.TookMS, b.Attack)
		if b.Detail != "" && b.Detail != result {
			told += ": " + b.Detail
		}
		return b.Territory, told
	case event.FaultInjected:
		return b.Territory, fmt.Sprintf("fault %s on %s by %s: %s", b.Fault, b.Target, b.Author, b.Reason)
	case event.FaultConfirmed:
		return b.Territory, fmt.Sprintf("FAULT %s on %s%s", b.Fault, b.Target, saw(b.Receipt))
	case event.FaultCleared:
		told := fmt.Sprintf("fault %s on %s cleared%s", b.Fault, b.Target, saw(b.Receipt))
		if b.Author != "" {
			told += fmt.Sprintf(", by %s: %s", b.Author, b.Reason)
		}
		return b.Territory, told
	case event.FaultFailed:
		told := fmt.Sprintf("fault %s on %s ", b.Fault, b.Target)
		switch b.Stage {
		case "clear":
			told += "NOT CLEARED: "
		case "inject":
			told += "not injected: "
		default:
			told += "did not bite: "
		}
		if told += b.Detail; len(b.Voids) > 0 {
			told += "; void by that: " + strings.Join(b.Voids, ", ")
		}
		return b.Territory, told
	case event.CanaryResult:
		return b.Territory, b.Words()
	case event.CanarySample:
		return b.Territory, b.Words()
	case event.LimitReached:
		return b.Agent, fmt.Sprintf("limit %s reached: %s", b.Limit, b.Detail)
	case event.SeatUnavailable:
		return b.Territory, fmt.Sprintf("UNAVAILABLE, charged to %s: %s", b.Source, b.Detail)
	case event.HeatPaused:
		return "", fmt.Sprintf("paused by %s: %s", b.Author, b.Reason)
	case event.HeatResumed:
		return "", fmt.Sprintf("resumed by %s after %d ms: %s", b.Author, b.PausedMS, b.Reason)
	case event.ConsoleAttached:
		return b.Territory, fmt.Sprintf("%s attached to the console of %s", b.Author, b.Machine)
	case event.ConsoleDetached:
		return b.Territory, fmt.Sprintf("%s left the console of %s after typing %s", b.Author, b.Machine, bytesOf(b.Bytes))
	case event.RefereeRuling:
		ruling := b.Ruling
		if b.Milestone != "" {
			ruling += " " + b.Milestone
		}
		if b.ExtendMS > 0 {
			ruling += fmt.Sprintf(" by %v", time.Duration(b.ExtendMS)*time.Millisecond)
		}
		return b.Territory, fmt.Sprintf("ruling by %s: %s: %s", b.Author, ruling, b.Reason)
	case event.OperatorNote:
		return "", fmt.Sprintf("note by %s: %s", b.Author, b.Text)
	case event.DecoyUsed:
		return b.Territory, fmt.Sprintf("decoy %s used by %s: %s", b.Decoy, b.Agent, b.Detail)
	case event.StateSaved:
		return b.Territory, fmt.Sprintf("state saved after %s, %s in %d ms", b.Milestone, bytesOf(b.Bytes), b.TookMS)
	case event.HeatBranched:
		return b.Territory, fmt.Sprintf("branched from %s at %s, %.1fs into it", b.Heat, b.Milestone, float64(b.AtMS)/1000)
	case event.MilestoneInherited:
		return b.Territory, b.Milestone + " inherited"
	case event.HostileOutput:
		return b.Territory, fmt.Sprintf("hostile output in %s: %s", b.Where, b.Detail)
	}
	return "", b.Kind()
}

// saw is what a fault's witness saw.
func saw(receipt []byte) string {
	if s := event.Saw(receipt); s != "" {
		return ": seen: " + s
	}
	return ""
}

func bytesOf(n uint64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func usage(b event.UsageCharged) string {
	parts := []string{}
	if b.InputTokens != nil && b.OutputTokens != nil {
		parts = append(parts, fmt.Sprintf("%d+%d tokens", *b.InputTokens, *b.OutputTokens))
	}
	if b.CostMicroUSD != nil {
		parts = append(parts, fmt.Sprintf("$%.4f", float64(*b.CostMicroUSD)/1e6))
	}
	if b.ResourceUnits > 0 {
		parts = append(parts, text.Count(b.ResourceUnits, "unit"))
	}
	if len(parts) == 0 {
		return "used nothing that it told of"
	}
	return "used " + strings.Join(parts, ", ")
}
