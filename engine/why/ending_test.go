package why

import (
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/world"
)

// How a player ended follows from what was seen, and is told with the lines behind
// it.
func TestEndings(t *testing.T) {
	zero := 0
	started := event.AgentStarted{Agent: "a", Territory: "one"}
	did := func(n uint64, command string, exit *int, detail string) []event.Body {
		return []event.Body{
			event.AgentActionStarted{Territory: "one", Agent: "a", Action: n, Channel: "exec", Machine: "host", Command: command},
			event.AgentActionFinished{Territory: "one", Agent: "a", Action: n, Exit: exit, Detail: detail},
		}
	}
	terminal := []event.Body{
		event.AgentActionStarted{Territory: "one", Agent: "a", Action: 9, Channel: "terminal", Command: "claude -p", SelfReported: true},
		event.AgentActionFinished{Territory: "one", Agent: "a", Action: 9, Detail: "signal: killed"},
	}
	failed := func(source, detail string) event.Body {
		return event.AgentFinished{Agent: "a", Source: source, Detail: detail}
	}
	done := event.AgentFinished{Agent: "a", Source: "player", Success: true, Detail: "done"}
	all := func(parts ...any) (out []event.Body) {
		for _, p := range parts {
			switch p := p.(type) {
			case event.Body:
				out = append(out, p)
			case []event.Body:
				out = append(out, p...)
			}
		}
		return out
	}
	for _, tt := range []struct {
		name string
		log  []event.Body
		want Ending
		line string
	}{
		{"plays", all(started), StillPlaying, ""},
		{"finished", all(started, did(1, "fix", &zero, ""), event.DurableDeploymentCompleted{Territory: "one"}, done), Finished, "agent a: completed: done"},
		{"not durable", all(started, did(1, "fix", &zero, ""), done), NotDurable, "a came to its end, and one is not durable"},
		{"gave up", all(started, did(1, "fix", &zero, ""), failed("player", "no idea")), GaveUp, "agent a: failed: no idea"},
		{"self-rebooted", all(started, did(1, "sync; systemctl reboot", nil, "the connection to machine host was lost"), terminal, failed("player", "exited with status 255")),
			SelfRebooted, "a ended with the session in which it rebooted its own machine: action 1, sync; systemctl reboot: the connection to machine host was lost"},
		{"self-rebooted, by its harness", all(started, did(1, "/sbin/reboot", nil, "lost"), failed("harness", "255")), SelfRebooted, "rebooted its own machine"},
		{"disconnected", all(started, did(1, "cat /etc/reboot.conf", nil, "the connection to machine host was lost"), failed("player", "255")), Disconnected, "a session that broke: action 1, cat"},
		{"the referee's reboot is not its own", all(started, did(1, "top", nil, "the referee rebooted the machine"), failed("player", "255")), GaveUp, "agent a: failed"},
		{"another action after the broken one", all(started, did(1, "reboot", nil, "lost"), did(2, "uptime", &zero, ""), failed("player", "no")), GaveUp, ""},
		{"killed", all(started, did(1, "fix", &zero, ""), terminal, failed("harness", "the program was killed by signal 9 (killed)")), Killed, "killed by signal 9"},
		{"drained", all(started, event.AgentTerminated{Agent: "a", Reason: "post-match drain deadline expired"}), Killed, "drain deadline"},
		{"provider", all(started, failed("provider", "the endpoint answered 429")), ProviderFault, "a ended for its provider's sake"},
		{"never started", all(started, terminal, failed("harness", "claude cannot be started")), NeverStarted, "a did nothing on the wire"},
		{"no seat", all(event.SeatUnavailable{Territory: "one", Source: "controller", Detail: "no memory"}), NeverStarted, "the seat became unavailable, charged to controller: no memory"},
		{"harness", all(started, did(1, "fix", &zero, ""), failed("harness", "its result cannot be used")), HarnessFault, "agent a: failed"},
		{"limit", all(started, event.LimitReached{Agent: "a", Limit: "turns", Detail: "used 5 of 4 turns"}, failed("player", "used 5 of 4 turns")), LimitReached, "limit reached: turns: used 5 of 4 turns"},
		{"outraced", all(started, event.AgentOutraced{Agent: "a", Reason: "two reached durable first"}), Cut, "two reached durable first"},
		{"interrupted", all(started, event.AgentInterrupted{Agent: "a", Source: "arena", Detail: "the heat was over"}), Cut, "the heat was over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log []event.Event
			for i, b := range append([]event.Body{event.TerritoryRegistered{Territory: "one", Agent: "a"}}, tt.log...) {
				log = append(log, event.Event{Sequence: uint64(i), ElapsedMS: uint64(i), Body: b})
			}
			e, ok := Explain(folded(log...), &arena.Manifest{}, "one")
			if !ok || e.Ending != tt.want {
				t.Fatalf("%s, want %s; %+v", e.Ending, tt.want, e.Lines)
			}
			var lines []string
			for _, l := range e.Lines {
				lines = append(lines, l.Text)
			}
			if !strings.Contains(strings.Join(lines, "\n"), tt.line) {
				t.Errorf("%q is not told in %q", tt.line, lines)
			}
		})
	}
}

// folded is the world after events.
func folded(events ...event.Event) *world.World {
	w := world.New()
	for _, e := range events {
		world.Apply(w, e)
	}
	return w
}
