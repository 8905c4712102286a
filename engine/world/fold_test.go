package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"refbox/engine/arena"
	"refbox/engine/event"
)

func ptr[T any](v T) *T { return &v }

// events makes a log: a clock, then the bodies at it.
func events(parts ...any) []event.Event {
	var out []event.Event
	ms := uint64(0)
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			ms = uint64(p)
		case event.Body:
			out = append(out, event.Event{Sequence: uint64(len(out)), ElapsedMS: ms, Body: p})
		}
	}
	return out
}

// get walks world.json by keys.
func get(t *testing.T, w *World, path string) string {
	t.Helper()
	text, err := w.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Split(path, " ") {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%s: nothing at %s", path, key)
		}
		if v, ok = m[key]; !ok {
			t.Fatalf("%s: no %s", path, key)
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const (
	t1 = "territories one "
	m1 = "territories one milestones m "
	a1 = "agents a "
)

// TestEveryKind folds a hand-made log for each kind and looks at what it is for.
func TestEveryKind(t *testing.T) {
	started := event.MilestoneEvaluationStarted{Territory: "one", Milestone: "m", Attempt: 1}
	passed := event.MilestonePassed{Territory: "one", Milestone: "m", Points: 30, Evidence: json.RawMessage(`{"b":1,"a":[null]}`)}
	failed := event.MilestoneFailed{Territory: "one", Milestone: "m", Category: "contract", Detail: "no", Retryable: true}
	agent := event.AgentStarted{Agent: "a", Territory: "one", Model: "v/m"}
	tests := map[string]struct {
		log  []event.Event
		want map[string]string
		ours func(w *World) any // compared with true
	}{
		"match_state_changed": {
			events(event.MatchStateChanged{From: "preparing", To: "running"}, 9, event.MatchStateChanged{From: "running", To: "aborted"}, event.MatchFinished{Reason: "operator interrupt"}),
			map[string]string{"match_state": `"aborted"`, "winner": `null`, "finish_reason": `"operator interrupt"`, "elapsed_ms": `9`, "last_sequence": `2`},
			func(w *World) any { return w.Over() && *w.FinishedMS == 9 },
		},
		"territory_registered": {
			events(event.CompetitorStateChanged{Territory: "one", To: "building"}, event.CompetitorStateChanged{Territory: "two", To: "building"},
				event.TerritoryRegistered{Territory: "two", Class: "c", Agent: "b"}, event.TerritoryRegistered{Territory: "one", Class: "c", Agent: "a"}),
			map[string]string{t1 + "class": `"c"`, t1 + "agent": `"a"`, t1 + "state": `"provisioning"`, t1 + "resources": `0`},
			func(w *World) any { return w.Seats()[0].ID == "two" && w.Seats()[1].ID == "one" },
		},
		"agent_started": {
			events(agent, event.UsageCharged{Agent: "a", ResourceUnits: 3}, agent),
			map[string]string{a1 + "territory": `"one"`, a1 + "model": `"v/m"`, a1 + "running": `true`, a1 + "resource_units_used": `0`, a1 + "successful": `null`},
			func(w *World) any { return w.Agent("a").CostComplete() == nil },
		},
		"competitor_state_changed": {
			events(event.CompetitorStateChanged{Territory: "one", From: "building", To: "verifying"}),
			map[string]string{t1 + "competitor_state": `"verifying"`, t1 + "class": `null`}, nil,
		},
		"milestone_evaluation_started": {
			events(5, started),
			map[string]string{m1 + "evaluating": `true`, m1 + "passed": `false`, m1 + "points": `0`, m1 + "evidence": `null`, m1 + "failure_detail": `null`, m1 + "attempts": `1`, m1 + "first_ms": `5`}, nil,
		},
		"milestone_passed": {
			events(5, started, failed, 7, started, passed, passed),
			map[string]string{m1 + "evaluating": `false`, m1 + "passed": `true`, m1 + "points": `30`, m1 + "evidence": `{"a":[null],"b":1}`, m1 + "failure_category": `null`, t1 + "milestone_points": `30`, m1 + "passed_ms": `7`, m1 + "failures": `1`},
			func(w *World) any {
				s := w.Seat("one")
				span := s.Spans.At(0)
				return s.Passed() == 1 && !span.Open && span.Ended == "passed" && s.Milestone("m").Failure.Detail == "no" && s.ProgressMS == 7
			},
		},
		"milestone_failed": {
			events(5, started, failed, 6, started, failed, 7, started, event.MilestoneFailed{Territory: "one", Milestone: "m", Category: "transport", Detail: "gone"}),
			map[string]string{m1 + "failure_category": `"transport"`, m1 + "failure_detail": `"gone"`, m1 + "failures": `3`, m1 + "passed": `false`},
			func(w *World) any {
				s := w.Seat("one")
				first, second := s.Spans.At(0), s.Spans.At(1)
				return s.Spans.Len() == 2 && first.Count == 2 && first.SinceMS == 5 && first.LastMS == 6 && first.Ended == "changed" && first.First == 1 && first.Last == 3 &&
					second.Count == 1 && second.Open && s.Milestone("m").FirstFailure.MS == 5
			},
		},
		"milestone_failed without words": {
			events(event.MilestoneFailed{Territory: "one", Milestone: "m"}),
			map[string]string{m1 + "failure_category": `""`, m1 + "failure_detail": `""`, m1 + "evaluating": `false`}, nil,
		},
		"milestone_revoked": {
			events(started, passed, 8, event.MilestoneRevoked{Territory: "one", Milestone: "m", Reason: "came undone"}, event.MilestoneRevoked{Territory: "one", Milestone: "m"}),
			map[string]string{m1 + "passed": `false`, m1 + "points": `30`, m1 + "evidence": `null`, t1 + "milestone_points": `0`, t1 + "revocations": `2`},
			func(w *World) any {
				r := w.Seat("one").Revocations.At(0)
				return r.Points == 30 && r.MS == 8 && r.Reason == "came undone" && w.Seat("one").Revocations.At(1).Points == 0
			},
		},
		"durable_deployment_completed of ours": {
			events(50, event.DurableDeploymentCompleted{Territory: "one", DurableAt: ptr(uint64(40)), NotBefore: ptr(uint64(35)), AttackMS: 9}),
			map[string]string{t1 + "competitor_state": `"durable"`, t1 + "durable_at_ms": `50`, t1 + "durable": `{"at_ms":40,"not_before_ms":35}`, t1 + "attack_ms": `9`}, nil,
		},
		"durable_deployment_completed of the reference": {
			events(50, event.DurableDeploymentCompleted{Territory: "one", Repeated: ptr(uint64(49))}),
			map[string]string{t1 + "durable_at_ms": `49`, t1 + "durable": `{"at_ms":49,"not_before_ms":null}`}, nil,
		},
		"match_finished": {
			events(50, event.MatchFinished{Winner: ptr("one"), Reason: "first durable deployment"}),
			map[string]string{"match_state": `"finished"`, "winner": `"one"`, "finish_reason": `"first durable deployment"`, "refbox finished_ms": `50`}, nil,
		},
		"match_finished with a dead heat": {
			events(event.DurableDeploymentCompleted{Territory: "one"}, event.DurableDeploymentCompleted{Territory: "two"}, event.MatchFinished{DeadHeat: []string{"one", "two"}}),
			map[string]string{"winner": `null`, "refbox dead_heat": `["one","two"]`},
			func(w *World) any {
				return OutcomeOf(w, "one") == OutcomeDeadHeat && OutcomeOf(w, "two") == OutcomeDeadHeat
			},
		},
		"usage_charged": {
			events(event.UsageCharged{Agent: "a", ResourceUnits: 1, InputTokens: ptr(uint64(10)), CostMicroUSD: ptr(^uint64(0))},
				event.UsageCharged{Agent: "a", InputTokens: ptr(uint64(5)), OutputTokens: ptr(uint64(2)), CostMicroUSD: ptr(uint64(7))}, event.UsageCharged{Agent: "a"}),
			map[string]string{a1 + "input_tokens": `15`, a1 + "output_tokens": `2`, a1 + "tokens_unknown": `2`, a1 + "cost_unknown": `1`, a1 + "cost_complete": `false`, a1 + "territory": `""`},
			func(w *World) any { return w.Agent("a").CostMicroUSD == ^uint64(0) }, // saturated
		},
		"post_match_drain_started": {
			events(3, event.PostMatchDrainStarted{TimeoutMS: 30000, PendingAgents: 2}),
			map[string]string{"refbox drain": `"draining"`, "elapsed_ms": `3`},
			func(w *World) any { return w.Drain.Pending == 2 && w.Drain.StartMS == 3 },
		},
		"post_match_drain_finished": {
			events(3, event.PostMatchDrainStarted{}, event.PostMatchDrainFinished{CapturedAgents: 1, TerminatedAgents: 2}),
			map[string]string{"refbox drain": `"done"`}, func(w *World) any { return w.Drain.Captured == 1 && w.Drain.Terminated == 2 },
		},
		"agent_finished": {
			events(agent, 4, event.AgentFinished{Agent: "a", Source: "player", Success: true, Detail: "done"}),
			map[string]string{a1 + "running": `false`, a1 + "successful": `true`, a1 + "failure_source": `"player"`, a1 + "terminal_state": `"completed"`, a1 + "terminal_detail": `"done"`},
			func(w *World) any { return *w.Agent("a").EndedMS == 4 },
		},
		"agent_finished in failure": {
			events(agent, event.AgentFinished{Agent: "a", Source: "provider"}),
			map[string]string{a1 + "successful": `false`, a1 + "failure_source": `"provider"`, a1 + "terminal_state": `"failed"`, a1 + "terminal_detail": `""`}, nil,
		},
		"agent_interrupted": {
			events(agent, event.AgentInterrupted{Agent: "a", Source: "arena", Detail: "reboot"}),
			map[string]string{a1 + "successful": `null`, a1 + "failure_source": `"arena"`, a1 + "terminal_state": `"interrupted"`, a1 + "terminal_detail": `"reboot"`, a1 + "running": `false`}, nil,
		},
		"agent_terminated": {
			events(agent, event.AgentTerminated{Agent: "a", Reason: "deadline"}),
			map[string]string{a1 + "successful": `null`, a1 + "failure_source": `"controller"`, a1 + "terminal_state": `"terminated"`, a1 + "terminal_detail": `"deadline"`}, nil,
		},
		"agent_outraced": {
			events(agent, event.AgentFinished{Agent: "a", Source: "player", Success: true}, event.AgentOutraced{Agent: "a", Reason: "late"}),
			map[string]string{a1 + "successful": `false`, a1 + "failure_source": `"player"`, a1 + "terminal_state": `"incomplete"`, a1 + "terminal_detail": `"late"`}, nil,
		},
		"health_observed": {
			events(event.TerritoryStateChanged{Territory: "one", To: "healthy"}, event.HealthObserved{Territory: "one", Healthy: true, Status: ptr(uint16(200))}, event.HealthObserved{Territory: "one", LatencyMS: 3, Detail: "refused"}),
			map[string]string{t1 + "last_health": `{"detail":"refused","healthy":false,"latency_ms":3,"status":null}`},
			func(w *World) any { return w.Seat("one").UptimeTicks == 2 }, // the state counts, as long as it lasts
		},
		"territory_state_changed": {
			events(event.TerritoryStateChanged{Territory: "one", To: "healthy"}, 10, event.TerritoryStateChanged{Territory: "one", To: "degraded"}, 15,
				event.TerritoryStateChanged{Territory: "one", To: "recovering"}, 30, event.TerritoryStateChanged{Territory: "one", To: "healthy"}),
			map[string]string{t1 + "state": `"healthy"`},
			func(w *World) any { return w.Seat("one").DegradedMS == 20 && w.Seat("one").StateSinceMS == 30 },
		},
		"resources_changed": {
			events(event.ResourcesChanged{Territory: "one", Delta: -1, Remaining: 899}),
			map[string]string{t1 + "resources": `899`}, nil,
		},
		"territory_eliminated": {
			events(event.TerritoryEliminated{Territory: "one", Source: "player", Detail: "too late"}, event.MatchStateChanged{To: "finished"}),
			map[string]string{t1 + "state": `"eliminated"`, t1 + "elimination_source": `"player"`, t1 + "elimination_detail": `"too late"`},
			func(w *World) any { return OutcomeOf(w, "one") == OutcomeEliminated },
		},
		"infrastructure_failure": {
			events(event.InfrastructureFailure{Component: "qemu", Source: "controller", Detail: "x"}),
			map[string]string{"infrastructure_failures": `1`}, func(w *World) any { return w.Failures.At(0).Component == "qemu" },
		},
		"heat_prepared": {
			events(event.HeatPrepared{Driver: "sim", Start: "prepared", TookMS: 5, Seats: []event.PreparedSeat{{Territory: "one", Machines: []string{"host"}, Adapter: "script:careful", Note: "bundled"}}}),
			map[string]string{t1 + "state": `"provisioning"`},
			func(w *World) any { return w.Prepared.Driver == "sim" && w.Seat("one").Prepared.Note == "bundled" },
		},
		"agent_action_started": {
			events(5, event.AgentActionStarted{Territory: "one", Agent: "a", Action: 1, Channel: "exec", Machine: "host", Command: "ls"}),
			map[string]string{t1 + "actions": `1`, t1 + "running_actions": `1`},
			func(w *World) any {
				a := w.Seat("one").RunningActions()[0]
				return a.Command == "ls" && a.StartMS == 5 && !a.Done && a.End == -1
			},
		},
		"agent_action_finished": {
			events(5, event.AgentActionStarted{Territory: "one", Action: 1, Command: "ls"}, event.AgentActionStarted{Territory: "one", Action: 2, Command: "sleep"}, 9,
				event.AgentActionFinished{Territory: "one", Action: 1, Exit: ptr(2), TookMS: 4, Output: strings.Repeat("é", 4000)}, 20, event.AgentActionFinished{Territory: "one", Action: 7, TookMS: 3}),
			map[string]string{t1 + "actions": `3`, t1 + "running_actions": `1`},
			func(w *World) any {
				s := w.Seat("one")
				a, lost := s.Actions.At(0), s.Actions.At(2)
				return a.Done && *a.Exit == 2 && a.EndMS == 9 && a.End == 2 && len(a.Output) <= 512 && s.RunningActions()[0].Number == 2 && lost.Start == -1 && lost.StartMS == 17 && lost.Exit == nil
			},
		},
		"attack_started": {
			events(5, event.AttackStarted{Territory: "one", Milestone: "m", Attack: "starts the old primary"}),
			map[string]string{t1 + "attacks": `1`, t1 + "attacks_held": `0`},
			func(w *World) any { return w.Seat("one").RunningAttacks()[0].StartMS == 5 },
		},
		"attack_finished": {
			events(5, event.AttackStarted{Territory: "one", Milestone: "m", Attack: "x"}, 8, event.AttackFinished{Territory: "one", Milestone: "m", Attack: "x", Held: true, Undone: true, TookMS: 3}, event.AttackFinished{Territory: "one", Attack: "y"}),
			map[string]string{t1 + "attacks": `2`, t1 + "attacks_held": `1`},
			func(w *World) any {
				s := w.Seat("one")
				return len(s.RunningAttacks()) == 0 && s.Attacks.At(0).EndMS == 8 && s.Attacks.At(1).Start == -1
			},
		},
		"fault_injected": {
			events(5, event.FaultInjected{Territory: "one", Fault: "net-cut", Target: "host", Author: "ann", Reason: "drill"}),
			map[string]string{t1 + "faults": `1`, t1 + "fault_list": `[{"confirmed_ms":null,"ended_ms":null,"fault":"net-cut","injected_ms":5,"state":"injected","target":"host"}]`},
			func(w *World) any {
				f := w.Seat("one").Faults.At(0)
				return f.State == FaultInjected && f.On() && !f.Bit() && len(w.Seat("one").ActiveFaults()) == 1
			},
		},
		"fault_confirmed": {
			events(event.FaultInjected{Territory: "one", Fault: "f", Target: "h"}, 6, event.FaultConfirmed{Territory: "one", Fault: "f", Target: "h", Receipt: json.RawMessage(`1`)}),
			map[string]string{t1 + "faults": `1`, t1 + "fault_list": `[{"confirmed_ms":6,"ended_ms":null,"fault":"f","injected_ms":0,"state":"confirmed","target":"h"}]`},
			func(w *World) any {
				f := w.Seat("one").Faults.At(0)
				return f.State == FaultConfirmed && *f.ConfirmedMS == 6 && string(f.Receipt) == "1" && f.EndedMS == nil
			},
		},
		"fault_cleared": {
			events(event.FaultInjected{Territory: "one", Fault: "f", Target: "h"}, event.FaultInjected{Territory: "one", Fault: "f", Target: "g"}, 7, event.FaultCleared{Territory: "one", Fault: "f", Target: "h"}, event.FaultCleared{Territory: "one", Fault: "z"}),
			map[string]string{t1 + "faults": `3`, t1 + "fault_list": `[{"confirmed_ms":null,"ended_ms":7,"fault":"f","injected_ms":0,"state":"cleared","target":"h"},{"confirmed_ms":null,"ended_ms":null,"fault":"f","injected_ms":0,"state":"injected","target":"g"},{"confirmed_ms":null,"ended_ms":7,"fault":"z","injected_ms":7,"state":"cleared","target":""}]`},
			func(w *World) any {
				f := &w.Seat("one").Faults
				return f.At(0).State == "cleared" && *f.At(0).EndedMS == 7 && f.At(1).State == "injected" && f.At(2).State == "cleared"
			},
		},
		"fault_failed": {
			events(event.FaultInjected{Territory: "one", Fault: "f"}, event.FaultFailed{Territory: "one", Fault: "f", Stage: "confirm", Detail: "nothing seen", Voids: []string{"m"}}),
			map[string]string{t1 + "faults": `1`, t1 + "fault_list": `[{"confirmed_ms":null,"ended_ms":0,"fault":"f","injected_ms":0,"state":"no effect","target":"","voids":["m"]}]`},
			func(w *World) any {
				f := w.Seat("one").Faults.At(0)
				_, void := w.Seat("one").Void("m")
				return f.State == FaultNoEffect && f.Stage == "confirm" && f.Detail == "nothing seen" && f.EndedMS != nil && void
			},
		},
		"canary_sample": {
			events(5, event.CanarySample{Territory: "one", Write: 4, Outcome: "indeterminate", Acknowledged: 3, Indeterminate: 1}),
			map[string]string{t1 + "state": `"provisioning"`},
			func(w *World) any {
				c := w.Seat("one").Canary
				return c.MS == 5 && c.Write == 4 && c.Outcome == "indeterminate"
			},
		},
		"canary_result": {
			events(5, event.CanarySample{Territory: "one", Write: 4, Outcome: "acknowledged", Acknowledged: 4, Writes: 4, SinceMS: new(uint64)},
				7, event.CanarySample{Territory: "one", Write: 5, Outcome: "acknowledged", Acknowledged: 5},
				8, event.CanarySample{Territory: "one", Write: 6, Outcome: "failed", Acknowledged: 5, Failed: 1},
				9, event.CanaryResult{Territory: "one", Writes: 6, Acknowledged: 5, Failed: 1, Lost: 2, LossMS: 30}),
			map[string]string{t1 + "canary acknowledged": `5`, t1 + "canary spans": `2`, t1 + "canary result lost": `2`},
			func(w *World) any {
				s := w.Seat("one")
				return s.CanaryResult.MS == 9 && s.CanaryResult.Index == 3 && s.CanarySpans.At(0) == CanarySpan{"acknowledged", 0, 7, 5}
			},
		},
		"limit_reached": {
			events(agent, 5, event.LimitReached{Agent: "a", Limit: "cost", Detail: "over"}),
			map[string]string{t1 + "limits": `["cost"]`}, func(w *World) any { return w.Seat("one").Limits.At(0).MS == 5 },
		},
		"seat_unavailable": {
			events(event.SeatUnavailable{Territory: "one", Source: "player", Detail: "blocks its reboot"}, event.MatchFinished{}),
			map[string]string{t1 + "unavailable": `"blocks its reboot"`, t1 + "unavailable_source": `"player"`},
			func(w *World) any { return OutcomeOf(w, "one") == OutcomeUnavailable },
		},
		"heat_paused": {
			events(5, event.HeatPaused{Author: "ann", Reason: "x"}), map[string]string{"refbox paused_ms": `0`},
			func(w *World) any { return w.Pause.SinceMS == 5 && w.Pause.Author == "ann" },
		},
		"heat_resumed": {
			events(5, event.HeatPaused{}, event.HeatResumed{PausedMS: 900}, event.HeatResumed{PausedMS: 100}), map[string]string{"refbox paused_ms": `1000`},
			func(w *World) any { return w.Pause == nil },
		},
		"console_attached": {
			events(5, event.ConsoleAttached{Territory: "one", Machine: "host", Author: "ann"}), map[string]string{t1 + "touched": `true`},
			func(w *World) any { return w.Seat("one").Attached() && w.Seat("one").Touches.At(0).ToMS == nil },
		},
		"console_detached": {
			events(5, event.ConsoleAttached{Territory: "one", Machine: "host", Author: "ann"}, 8, event.ConsoleDetached{Territory: "one", Machine: "host", Author: "ann", Bytes: 3, Input: "ls"}), map[string]string{t1 + "touched": `true`},
			func(w *World) any {
				s := w.Seat("one")
				return !s.Attached() && *s.Touches.At(0).ToMS == 8 && s.Touches.At(0).Input == "ls"
			},
		},
		"referee_ruling": {
			events(event.RefereeRuling{Ruling: "void", Author: "ann", Reason: "x"}), map[string]string{"refbox rulings": `1`},
			func(w *World) any { return w.Rulings.At(0).Ruling == "void" },
		},
		"operator_note": {
			events(5, event.OperatorNote{Author: "ann", Text: "look"}), map[string]string{"refbox notes": `1`},
			func(w *World) any { return w.Notes.At(0) == Note{5, 0, "ann", "look"} },
		},
		"hostile_output": {
			events(event.HostileOutput{Territory: "one", Where: "console"}), map[string]string{t1 + "hostile_outputs": `1`}, nil,
		},
		"state_saved": {
			events(5, event.StateSaved{Territory: "one", Milestone: "m", State: "0123456789abcdef", Bytes: 7, TookMS: 2}), nil,
			func(w *World) any {
				s := w.Seat("one").States.At(0)
				return s == State{5, 0, s.Sequence, "m", "0123456789abcdef"}
			},
		},
		"heat_branched": {
			events(0, event.HeatBranched{Territory: "one", Heat: "h", Milestone: "m", AtMS: 5}), map[string]string{"refbox branched_from": `"h"`},
			func(w *World) any { return w.BranchedFrom() == "branched from h at m" },
		},
		"milestone_inherited": {
			events(0, event.MilestoneInherited{Territory: "one", Milestone: "m", Attempt: 3, Evidence: []byte(`{"a":1}`)},
				event.MilestonePassed{Territory: "one", Milestone: "n", Points: 5}), nil,
			func(w *World) any {
				s := w.Seat("one")
				m := s.Milestone("m")
				return m.Passed && m.Inherited && m.Points == 0 && string(m.Evidence) == `{"a":1}` && s.Points == 5 && !s.Milestone("n").Inherited
			},
		},
		"decoy_used": {
			events(5, event.DecoyUsed{Territory: "one", Agent: "a", Decoy: "spare-key", Detail: "shown"}), map[string]string{t1 + "decoys_used": `1`},
			func(w *World) any { return w.Seat("one").Decoys.At(0) == DecoyUse{5, 0, "spare-key", "shown"} },
		},
		"an unknown kind": {
			events(5, event.Unknown{Name: "moon_rose"}), map[string]string{"refbox unknown_kinds": `1`, "elapsed_ms": `5`, "territories": `{}`}, nil,
		},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			w := fold(c.log)
			for path, want := range c.want {
				if got := get(t, w, path); got != want {
					t.Errorf("%s = %s, want %s", path, got, want)
				}
			}
			if c.ours != nil && c.ours(w) != true {
				text, _ := w.JSON()
				t.Errorf("does not hold: %s", text)
			}
			if got := get(t, w, "refbox events"); got != fmt.Sprint(len(c.log)) {
				t.Errorf("counts %s events", got)
			}
		})
	}
	// The table above has each kind that there is.
	for _, kind := range event.Kinds() {
		if !slices.ContainsFunc(mapKeys(tests), func(name string) bool { return name == kind || strings.HasPrefix(name, kind+" ") }) {
			t.Errorf("no log for %s", kind)
		}
	}
}

func mapKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestEmptyWorld(t *testing.T) {
	if got := get(t, New(), "last_sequence"); got != "null" {
		t.Errorf("last_sequence = %s", got)
	}
	if got := get(t, New(), "match_state"); got != `"preparing"` {
		t.Errorf("match_state = %s", got)
	}
}

func TestStandings(t *testing.T) {
	durable := func(territory string, notBefore, at int) event.Body {
		d := event.DurableDeploymentCompleted{Territory: territory, DurableAt: ptr(uint64(at))}
		if notBefore >= 0 {
			d.NotBefore = ptr(uint64(notBefore))
		}
		return d
	}
	points := func(territory string, n int, milestones ...string) (out []any) {
		for _, m := range milestones {
			out = append(out, event.MilestonePassed{Territory: territory, Milestone: m, Points: uint64(n)})
		}
		return out
	}
	reg := func(names ...string) (out []any) {
		for _, n := range names {
			out = append(out, event.TerritoryRegistered{Territory: n})
		}
		return out
	}
	join := func(lists ...any) (out []any) {
		for _, l := range lists {
			if list, ok := l.([]any); ok {
				out = append(out, list...)
			} else {
				out = append(out, l)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		log    []any
		want   string // rank, territory, "=" for a tie
		winner string
	}{
		"nobody yet":                   {reg("b", "a"), "1a= 1b=", ""},
		"by points":                    {join(reg("b", "a", "c"), points("b", 5, "x"), points("c", 20, "x")), "1c 2b 3a", "c"},
		"by milestones":                {join(reg("a", "b"), points("a", 10, "x"), points("b", 5, "x", "y")), "1b 2a", "b"},
		"a tie":                        {join(reg("a", "b", "c"), points("a", 10, "x"), points("b", 10, "x")), "1a= 1b= 3c", ""},
		"durable before points":        {join(reg("a", "b"), points("a", 50, "x"), durable("b", 5, 10)), "1b 2a", "b"},
		"certainly earlier":            {join(durable("a", 20, 30), durable("b", 5, 20)), "1b 2a", "b"},
		"overlapping":                  {join(durable("a", 19, 30), durable("b", 5, 20)), "1a= 1b=", ""},
		"overlapping, points differ":   {join(points("a", 50, "x"), durable("a", 19, 30), durable("b", 5, 20)), "1a= 1b=", ""},
		"a chain of overlaps":          {join(durable("a", 0, 2), durable("b", 1, 4), durable("c", 3, 6)), "1a= 1b= 3c", ""},
		"a wide one joins":             {join(durable("a", 10, 12), durable("b", 13, 15), durable("c", 0, 20)), "1a= 1c= 3b", ""},
		"dead heat, then the rest":     {join(reg("x", "y"), points("y", 3, "m"), durable("a", 0, 9), durable("b", 0, 9)), "1a= 1b= 3y 4x", ""},
		"reference: by instant":        {join(durable("a", -1, 30), durable("b", -1, 29)), "1b 2a", "b"},
		"reference: same, by points":   {join(durable("a", -1, 30), durable("b", -1, 30), points("b", 1, "x")), "1b 2a", "b"},
		"reference: same in all":       {join(durable("b", -1, 30), durable("a", -1, 30)), "1a= 1b=", ""},
		"a point inside an interval":   {join(durable("a", -1, 30), durable("b", 20, 40)), "1a= 1b=", ""},
		"revoked after being durable":  {join(durable("a", 1, 5), event.CompetitorStateChanged{Territory: "a", From: "durable", To: "verifying"}, durable("b", 7, 9)), "1b 2a", "b"},
		"a last refusal after the end": {join(durable("a", 50, 30), durable("b", 60, 40)), "1a 2b", "a"},
		"conquest": {join(event.TerritoryStateChanged{Territory: "a", To: "healthy"}, event.TerritoryStateChanged{Territory: "b", To: "healthy"}, event.TerritoryStateChanged{Territory: "c", To: "healthy"},
			event.HealthObserved{Territory: "a", Healthy: true}, event.HealthObserved{Territory: "c", Healthy: true}, event.HealthObserved{Territory: "c", Healthy: true}, event.TerritoryEliminated{Territory: "c"},
			event.ResourcesChanged{Territory: "b", Remaining: 900}), "1a 2b 3c", "a"},
		"conquest by resources": {join(event.TerritoryStateChanged{Territory: "a", To: "healthy"}, event.TerritoryStateChanged{Territory: "b", To: "healthy"}, event.ResourcesChanged{Territory: "b", Remaining: 1}), "1b 2a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			standings := Standings(fold(events(c.log...)))
			var got []string
			for _, s := range standings {
				mark := ""
				if len(s.Tied) > 0 {
					mark = "="
				}
				got = append(got, fmt.Sprintf("%d%s%s", s.Rank, s.Territory, mark))
				if s.DeadHeat() != (s.Durable != nil && mark != "") {
					t.Errorf("%s: dead heat %v", s.Territory, s.DeadHeat())
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
			if w := Winner(standings); w != c.winner {
				t.Errorf("winner %q, want %q", w, c.winner)
			}
		})
	}
}

// TestStandingsHoldWhatInstantsProve: nobody is ranked before one who was
// certainly earlier, and who shares the first rank cannot be told from its first.
func TestStandingsHoldWhatInstantsProve(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var log []any
		for i := range rapid.IntRange(1, 8).Draw(rt, "seats") {
			at := rapid.Uint64Range(0, 60).Draw(rt, "at")
			d := event.DurableDeploymentCompleted{Territory: string(rune('a' + i)), DurableAt: &at}
			if rapid.Bool().Draw(rt, "known") {
				d.NotBefore = ptr(at - min(at, rapid.Uint64Range(0, 20).Draw(rt, "width")))
			}
			log = append(log, d)
		}
		w := fold(events(log...))
		st := Standings(w)
		if len(st) != len(log) {
			rt.Fatalf("%d of %d ranked", len(st), len(log))
		}
		for i, a := range st {
			beaten := false
			for j, b := range st {
				if a.Durable.Before(*b.Durable) && b.Durable.Before(*a.Durable) {
					rt.Fatalf("%v and %v are each before the other", a.Durable, b.Durable)
				}
				if a.Durable.Before(*b.Durable) && a.Rank > b.Rank {
					rt.Fatalf("%s was certainly before %s, but has rank %d against %d", a.Territory, b.Territory, a.Rank, b.Rank)
				}
				beaten = beaten || b.Durable.Before(*a.Durable)
				if (i < j) && a.Rank > b.Rank {
					rt.Fatalf("ranks are not in order: %v", st)
				}
			}
			if !beaten != (a.Rank == 1) {
				rt.Fatalf("%s has rank %d, certainly beaten: %v", a.Territory, a.Rank, beaten)
			}
		}
	})
}

func TestLadderAndBlocker(t *testing.T) {
	manifest := &arena.Manifest{Build: &arena.Build{Milestones: []arena.Milestone{
		{ID: "up", DisplayName: "Service Up", Points: 10}, {ID: "read", DisplayName: "Reads", Points: 20, DependsOn: []string{"up"}},
		{ID: "side", DisplayName: "Side", Points: 5}, {ID: "write", DisplayName: "Writes", Points: 30, DependsOn: []string{"read"}},
	}}}
	fail := event.MilestoneFailed{Territory: "one", Milestone: "read", Category: "contract", Detail: "502"}
	start := event.MilestoneEvaluationStarted{Territory: "one", Milestone: "read"}
	w := fold(events(event.TerritoryRegistered{Territory: "one"}, event.TerritoryRegistered{Territory: "two"},
		100, event.MilestoneEvaluationStarted{Territory: "one", Milestone: "up"}, event.MilestonePassed{Territory: "one", Milestone: "up", Points: 10},
		200, start, fail, 300, start, fail, 400, start, fail, 500, start,
		event.MilestoneEvaluationStarted{Territory: "two", Milestone: "up"}, event.MilestonePassed{Territory: "two", Milestone: "up", Points: 10}, event.MilestoneRevoked{Territory: "two", Milestone: "up"}))
	states := func(m *arena.Manifest, territory string) string {
		var out []string
		for _, r := range Ladder(w, m, territory) {
			out = append(out, fmt.Sprintf("%s:%s:%d", r.ID, r.State, r.Points))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		m    *arena.Manifest
		seat string
		want string
	}{
		{manifest, "one", "up:passed:10 read:verifying:20 side:pending:5 write:locked:30"},
		{manifest, "two", "up:revoked:10 read:locked:20 side:pending:5 write:locked:30"},
		{nil, "one", "up:passed:10 read:verifying:0"},
		{nil, "two", "up:revoked:10 read:locked:0"},
		{manifest, "nobody", ""},
	} {
		if got := states(c.m, c.seat); got != c.want {
			t.Errorf("ladder of %s:\n got %s\nwant %s", c.seat, got, c.want)
		}
	}
	b, ok := BlockerOf(w, manifest, "one")
	if !ok || b.Name != "Reads" || b.Count != 3 || b.SinceMS != 200 || b.For(w) != 300 || b.Attempts != 4 || !b.Verifying || b.Detail != "502" {
		t.Errorf("blocker %+v %v", b, ok)
	}
	if b, ok := BlockerOf(w, nil, "two"); ok {
		t.Errorf("two is blocked by %+v", b)
	}
}

func TestOutcomes(t *testing.T) {
	open := events(event.TerritoryRegistered{Territory: "one"}, event.TerritoryRegistered{Territory: "two"}, event.DurableDeploymentCompleted{Territory: "one"})
	if got := OutcomeOf(fold(open), "one"); got != OutcomeOpen {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		end  []any
		want map[string]Outcome
	}{
		"won":     {[]any{event.DurableDeploymentCompleted{Territory: "one"}, event.MatchFinished{Winner: ptr("one")}}, map[string]Outcome{"one": OutcomeWon, "two": OutcomeOutraced}},
		"second":  {[]any{event.DurableDeploymentCompleted{Territory: "one"}, event.DurableDeploymentCompleted{Territory: "two"}, event.MatchFinished{Winner: ptr("one")}}, map[string]Outcome{"one": OutcomeWon, "two": OutcomeDurable}},
		"timer":   {[]any{event.MatchFinished{Reason: "match timer expired"}}, map[string]Outcome{"one": OutcomeIncomplete, "two": OutcomeIncomplete, "none": OutcomeOpen}},
		"aborted": {[]any{event.MatchStateChanged{To: "aborted"}}, map[string]Outcome{"one": OutcomeAborted}},
	} {
		w := fold(events(append([]any{event.TerritoryRegistered{Territory: "one"}, event.TerritoryRegistered{Territory: "two"}}, c.end...)...))
		for seat, want := range c.want {
			if got := OutcomeOf(w, seat); got != want {
				t.Errorf("%s: %s is %s, want %s", name, seat, got, want)
			}
		}
	}
}

// drawLog draws a log of few names, so that events meet.
func drawLog(rt *rapid.T) []event.Event {
	names := rapid.SampledFrom([]string{"a", "b", ""})
	ms := uint64(0)
	n := rapid.IntRange(0, 80).Draw(rt, "n")
	var out []event.Event
	for range n {
		ms += rapid.Uint64Range(0, 5).Draw(rt, "pass")
		s, m, k := names.Draw(rt, "seat"), names.Draw(rt, "milestone"), rapid.Uint64Range(0, 3).Draw(rt, "k")
		bodies := []event.Body{
			event.TerritoryRegistered{Territory: s, Class: m}, event.MilestoneEvaluationStarted{Territory: s, Milestone: m},
			event.MilestonePassed{Territory: s, Milestone: m, Points: k}, event.MilestoneFailed{Territory: s, Milestone: m, Detail: fmt.Sprint(k % 2)},
			event.MilestoneRevoked{Territory: s, Milestone: m}, event.DurableDeploymentCompleted{Territory: s}, event.AgentStarted{Agent: m, Territory: s},
			event.AgentActionStarted{Territory: s, Action: k}, event.AgentActionFinished{Territory: s, Action: k}, event.FaultInjected{Territory: s, Fault: m},
			event.FaultConfirmed{Territory: s, Fault: m}, event.FaultFailed{Territory: s, Fault: m, Stage: []string{"inject", "confirm", "clear", ""}[k], Voids: []string{m}},
			event.FaultCleared{Territory: s, Fault: m}, event.ConsoleAttached{Territory: s, Author: m}, event.ConsoleDetached{Territory: s, Author: m},
			event.AttackStarted{Territory: s, Milestone: m}, event.AttackFinished{Territory: s, Milestone: m}, event.MatchStateChanged{To: "running"},
			event.OperatorNote{Text: s}, event.UsageCharged{Agent: m, ResourceUnits: k}, event.MatchFinished{Winner: &s}, event.TerritoryStateChanged{Territory: s, To: "degraded"},
		}
		out = append(out, event.Event{Sequence: uint64(len(out)), ElapsedMS: ms, Body: rapid.SampledFrom(bodies).Draw(rt, "body")})
	}
	return out
}

// dump is all that a world says, also what world.json leaves out.
func dump(t interface{ Fatal(...any) }, w *World) string {
	text, err := w.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var rest []any
	for _, s := range w.Seats() {
		rest = append(rest, s.ID, s.Actions.Slice(0, s.Actions.Len()), s.Spans.Slice(0, s.Spans.Len()), s.Faults.Slice(0, s.Faults.Len()),
			s.Touches.Slice(0, s.Touches.Len()), s.Attacks.Slice(0, s.Attacks.Len()), s.RunningActions(), s.RunningAttacks(), s.Attached(), s.ProgressMS, s.DegradedMS)
	}
	more, err := json.Marshal(rest)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + string(more)
}

func TestFoldIsDeterministicAndCopiesAreIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := drawLog(rt)
		cut := rapid.IntRange(0, len(log)).Draw(rt, "cut")
		w := New()
		var kept *World
		var before string
		for i, e := range log {
			if i == cut {
				kept = w.Clone()
				before = dump(rt, kept)
			}
			Apply(w, e)
		}
		whole := dump(rt, fold(log))
		if got := dump(rt, w); got != whole {
			rt.Fatal("folding the same events twice differs: " + cmp.Diff(whole, got))
		}
		if kept == nil {
			return
		}
		if got := dump(rt, kept); got != before {
			rt.Fatal("the original changed the copy: " + cmp.Diff(before, got))
		}
		for _, e := range log[cut:] {
			Apply(kept, e)
		}
		if got := dump(rt, kept); got != whole {
			rt.Fatal("going on from a copy differs: " + cmp.Diff(whole, got))
		}
		if got := dump(rt, w); got != whole {
			rt.Fatal("the copy changed the original")
		}
	})
}

func TestSpansFitTheMilestones(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := fold(drawLog(rt))
		for _, s := range w.Seats() {
			open := 0
			for _, m := range s.Milestones {
				if _, ok := s.Span(&m); ok {
					open++
				}
			}
			for _, span := range s.Spans.All() {
				if span.Open {
					open--
				}
				if span.Count < 1 || span.LastMS < span.SinceMS || span.Last < span.First {
					rt.Fatalf("span %+v", span)
				}
			}
			if open != 0 {
				rt.Fatalf("open spans and failing milestones differ by %d", open)
			}
		}
	})
}

func TestWorldIsBounded(t *testing.T) {
	w := New()
	for i := range 50_000 {
		Apply(w, event.Event{Body: event.MilestoneEvaluationStarted{Territory: fmt.Sprint("t", i), Milestone: "m"}})
		Apply(w, event.Event{Body: event.MilestoneEvaluationStarted{Territory: "t0", Milestone: fmt.Sprint("m", i)}})
		Apply(w, event.Event{Body: event.UsageCharged{Agent: fmt.Sprint("a", i)}})
		Apply(w, event.Event{Body: event.AgentActionStarted{Territory: "t0", Action: uint64(i)}})
	}
	if w.entries > MaxEntries || len(w.Seat("t0").Milestones) > MaxMilestones || len(w.Seat("t0").RunningActions()) > MaxRunning || w.Ignored == 0 {
		t.Fatalf("%d entries, %d milestones, ignored %d", w.entries, len(w.Seat("t0").Milestones), w.Ignored)
	}
	if w.Events != 200_000 {
		t.Fatal(w.Events)
	}
}

// fold is the world after a log.
func fold(log []event.Event) *World {
	w := New()
	for _, e := range log {
		Apply(w, e)
	}
	return w
}
