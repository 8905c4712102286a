package plain

import (
	"reflect"
	"strings"
	"testing"

	"refbox/engine/event"
	"refbox/engine/text"
)

var bodies = []event.Body{
	event.HeatPrepared{}, event.MatchStateChanged{}, event.TerritoryRegistered{}, event.AgentStarted{}, event.CompetitorStateChanged{},
	event.MilestoneEvaluationStarted{}, event.MilestonePassed{}, event.MilestoneFailed{}, event.MilestoneRevoked{},
	event.DurableDeploymentCompleted{}, event.MatchFinished{}, event.UsageCharged{}, event.PostMatchDrainStarted{},
	event.PostMatchDrainFinished{}, event.AgentFinished{}, event.AgentInterrupted{}, event.AgentTerminated{}, event.AgentOutraced{},
	event.HealthObserved{}, event.TerritoryStateChanged{}, event.ResourcesChanged{}, event.TerritoryEliminated{}, event.InfrastructureFailure{},
	event.DecoyUsed{}, event.AgentActionStarted{}, event.AgentActionFinished{}, event.AttackStarted{}, event.AttackFinished{}, event.FaultInjected{},
	event.FaultConfirmed{}, event.FaultCleared{}, event.FaultFailed{}, event.CanarySample{}, event.CanaryResult{}, event.LimitReached{}, event.SeatUnavailable{},
	event.HeatPaused{}, event.HeatResumed{}, event.ConsoleAttached{}, event.ConsoleDetached{}, event.RefereeRuling{}, event.OperatorNote{},
	event.HostileOutput{}, event.StateSaved{}, event.HeatBranched{}, event.MilestoneInherited{},
}

// Every kind is told in words of its own, in one line of clean text, whatever its
// strings hold.
func TestEveryKindIsOneCleanLine(t *testing.T) {
	const hostile = "a\x1b[2J\x1b]0;x\x07\nb\u202ec\x00\xff\r"
	for _, b := range bodies {
		v := reflect.New(reflect.TypeOf(b)).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String {
				f.SetString(hostile)
			}
		}
		line := Line(event.Event{ElapsedMS: 61_500, Body: v.Interface().(event.Body)})
		if text.Line(line) != line || strings.ContainsAny(line, "\n\x1b") {
			t.Errorf("%s: %q", b.Kind(), line)
		}
		if !strings.HasPrefix(line, "01:01.5  ") || strings.HasSuffix(line, "  "+b.Kind()) {
			t.Errorf("%s is not told: %q", b.Kind(), line)
		}
	}
}

func TestLines(t *testing.T) {
	one, exit := "failover-one", 3
	for _, tc := range []struct {
		body event.Body
		want string
	}{
		{event.MilestonePassed{Territory: one, Milestone: "fenced", Points: 20}, "00:01.0  failover-one      PASSED fenced, +20"},
		{event.MilestoneFailed{Territory: one, Milestone: "fenced", Category: "contract", Detail: "502"}, "00:01.0  failover-one      failed fenced (contract): 502"},
		{event.MatchFinished{Winner: &one, Reason: "first durable deployment"}, "00:01.0  failover-one      WINS: first durable deployment"},
		{event.MatchFinished{DeadHeat: []string{"a", "b"}, Reason: "x"}, "00:01.0                    DEAD HEAT of a and b: x"},
		{event.MatchFinished{Reason: "time is up"}, "00:01.0                    NO WINNER: time is up"},
		{event.AgentActionFinished{Territory: one, Action: 2, Exit: &exit, TookMS: 40}, "00:01.0  failover-one      action 2 exit 3 after 40 ms"},
		{event.AgentActionFinished{Territory: one, Action: 2, TookMS: 40, Detail: "session broke"}, "00:01.0  failover-one      action 2 cut after 40 ms: session broke"},
		{event.AttackFinished{Territory: one, Held: true, TookMS: 40, Attack: "started", Detail: "withstood"}, "00:01.0  failover-one      attack withstood after 40 ms: started"},
		{event.AttackFinished{Territory: one, TookMS: 40, Attack: "started", Detail: "it runs"}, "00:01.0  failover-one      attack BROKE THROUGH after 40 ms: started: it runs"},
		{event.ConsoleDetached{Territory: one, Machine: "host", Author: "a", Bytes: 1}, "00:01.0  failover-one      a left the console of host after typing 1 byte"},
		{event.RefereeRuling{Ruling: "heat_ended", Author: "a", Reason: "enough"}, "00:01.0                    ruling by a: heat_ended: enough"},
		{event.RefereeRuling{Territory: one, Ruling: "void", Milestone: "m", Author: "a", Reason: "x"}, "00:01.0  failover-one      ruling by a: void m: x"},
		{event.UsageCharged{Agent: "x"}, "00:01.0  x                 used nothing that it told of"},
		{event.MilestonePassed{Territory: strings.Repeat("long", 9), Milestone: "m"}, "00:01.0  longlonglonglon…  PASSED m, +0"},
	} {
		if got := Line(event.Event{ElapsedMS: 1000, Body: tc.body}); got != tc.want {
			t.Errorf("%q\nnot %q", got, tc.want)
		}
	}
}
