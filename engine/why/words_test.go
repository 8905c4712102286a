package why

import (
	"slices"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
)

// What happened beside the milestones is told in whole words, and once.
func TestWords(t *testing.T) {
	var log []event.Event
	for i, b := range []event.Body{
		event.TerritoryRegistered{Territory: "one", Agent: "right"},
		event.AgentStarted{Agent: "right", Territory: "one"},
		event.ConsoleAttached{Territory: "one", Machine: "host", Author: "ann"},
		event.ConsoleDetached{Territory: "one", Machine: "host", Author: "ann", Bytes: 1},
		event.AgentFinished{Agent: "right", Source: "player", Success: true, Detail: "right: 9 blocks, 9 commands"},
		event.OperatorNote{Author: "ann", Text: "the host hums"},
		event.RefereeRuling{Territory: "one", Ruling: "upheld", Milestone: "m", Author: "ann", Reason: "seen"},
		event.RefereeRuling{Territory: "two", Ruling: "void", Milestone: "m", Author: "ann", Reason: "not here"},
		event.RefereeRuling{Ruling: "heat_ended", Author: "ann", Reason: "enough"},
	} {
		log = append(log, event.Event{Sequence: uint64(i), ElapsedMS: uint64(i), Body: b})
	}
	e, ok := Explain(folded(log...), &arena.Manifest{}, "one")
	if !ok {
		t.Fatal("there is no such seat")
	}
	var got []string
	for _, l := range e.Lines {
		got = append(got, l.Text)
	}
	for _, want := range []string{
		"ann attached to the console of host and typed 1 byte",
		"agent right: completed: 9 blocks, 9 commands",
		"ann notes: the host hums",
		"ann ruled upheld m: seen",
		"ann ruled heat_ended: enough",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not told in %q", want, got)
		}
	}
	if slices.Contains(got, "ann ruled void m: not here") {
		t.Error("a ruling on another seat is told")
	}
}
