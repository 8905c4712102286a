package world

import (
	"strings"
	"testing"

	"refbox/engine/event"
)

// at gives events at these clocks.
func atClock(ms uint64, bodies ...event.Body) (out []event.Event) {
	for _, b := range bodies {
		out = append(out, event.Event{ElapsedMS: ms, Body: b})
	}
	return out
}

func winner(id string) event.MatchFinished { return event.MatchFinished{Winner: &id, Reason: "x"} }

func durableSeat(id string) []event.Body {
	at := uint64(5)
	return []event.Body{event.TerritoryRegistered{Territory: id, Class: "c", Agent: "a-" + id},
		event.MilestonePassed{Territory: id, Milestone: "up", Points: 10}, event.DurableDeploymentCompleted{Territory: id, DurableAt: &at, NotBefore: &at}}
}

func TestRulings(t *testing.T) {
	void := event.RefereeRuling{Ruling: event.RulingVoided, Author: "ann", Reason: "broken"}
	for name, x := range map[string]struct {
		bodies []event.Body
		check  func(w *World) bool
	}{
		"a heat voided while it ran has no winner": {
			append(durableSeat("one"), void, event.MatchStateChanged{From: "running", To: "aborted"}, event.MatchFinished{Reason: "voided by ann: broken"}),
			func(w *World) bool {
				return w.Winner == nil && w.Voided.Author == "ann" && OutcomeOf(w, "one") == OutcomeVoided && w.Seat("one").Points == 10
			},
		},
		"one voided after its outcome loses the winner": {
			append(durableSeat("one"), event.MatchStateChanged{From: "running", To: "finished"}, winner("one"), void),
			func(w *World) bool {
				return w.Winner == nil && OutcomeOf(w, "one") == OutcomeVoided && w.MatchState == Finished
			},
		},
		"a second void changes nothing": {
			[]event.Body{void, event.RefereeRuling{Ruling: event.RulingVoided, Author: "bob", Reason: "also"}},
			func(w *World) bool { return w.Voided.Author == "ann" && w.Rulings.Len() == 2 },
		},
		"extensions add up": {
			[]event.Body{event.RefereeRuling{Ruling: event.RulingExtended, ExtendMS: 1000}, event.RefereeRuling{Ruling: event.RulingExtended, ExtendMS: 500}},
			func(w *World) bool { return w.ExtendedMS == 1500 },
		},
		"only an extension extends": {
			[]event.Body{event.RefereeRuling{Ruling: "dance", ExtendMS: 1000}},
			func(w *World) bool { return w.ExtendedMS == 0 && w.Rulings.Len() == 1 },
		},
		"a seat ruled out is unavailable": {
			append(durableSeat("one"), event.RefereeRuling{Ruling: event.RulingUnavailable, Territory: "one"},
				event.SeatUnavailable{Territory: "one", Source: "controller", Detail: "d"}, event.CompetitorStateChanged{Territory: "one", To: "unavailable"}, event.MatchFinished{}),
			func(w *World) bool {
				return OutcomeOf(w, "one") == OutcomeUnavailable && w.Seat("one").Points == 10 && !Standings(w)[0].DeadHeat()
			},
		},
		"and behind those in the race, whatever it reached": {
			[]event.Body{event.MilestonePassed{Territory: "one", Milestone: "up", Points: 10}, event.MilestonePassed{Territory: "two", Milestone: "up", Points: 5},
				event.RefereeRuling{Ruling: event.RulingUnavailable, Territory: "one"}, event.SeatUnavailable{Territory: "one"}},
			func(w *World) bool { return Winner(Standings(w)) == "two" },
		},
		"and restored is not": {
			append(durableSeat("one"), event.SeatUnavailable{Territory: "one"}, event.RefereeRuling{Ruling: event.RulingRestored, Territory: "one"},
				event.CompetitorStateChanged{Territory: "one", To: "building"}, event.MatchFinished{}),
			func(w *World) bool {
				return w.Seat("one").Unavailable == nil && w.Seat("one").CompetitorState == "building"
			},
		},
		"a ruling about a seat that nobody knows makes none": {
			[]event.Body{event.RefereeRuling{Ruling: event.RulingRestored, Territory: "ghost"}},
			func(w *World) bool { return len(w.Seats()) == 0 },
		},
		"revoked and upheld": {
			append(durableSeat("one"), event.RefereeRuling{Ruling: event.RulingRevoked, Territory: "one", Milestone: "up"},
				event.MilestoneRevoked{Territory: "one", Milestone: "up"}, event.RefereeRuling{Ruling: event.RulingUpheld, Territory: "one", Milestone: "up"},
				event.MilestonePassed{Territory: "one", Milestone: "up", Points: 10}),
			func(w *World) bool {
				s := w.Seat("one")
				return s.Points == 10 && s.Milestone("up").Passed && s.Revocations.Len() == 1 && w.Rulings.Len() == 2
			},
		},
		"a heat that ended while it was paused is not paused": {
			[]event.Body{event.HeatPaused{Author: "ann"}, event.MatchFinished{}},
			func(w *World) bool { return w.Pause == nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := atClock(7, x.bodies...)
			w := fold(events)
			if !x.check(w) {
				text, _ := w.JSON()
				t.Errorf("%s", text)
			}
			// As it is seen in replay: the same, from a snapshot at any event.
			want, _ := w.JSON()
			for n := range events {
				c := fold(events[:n]).Clone()
				for _, e := range events[n:] {
					Apply(c, e)
				}
				if got, _ := c.JSON(); string(got) != string(want) {
					t.Errorf("from event %d:\n%s", n, got)
				}
			}
		})
	}
}

// What a log without rulings folds to is written as it always was.
func TestRulingsAreWrittenOnlyWhenThereAreSome(t *testing.T) {
	text, _ := fold(atClock(1, durableSeat("one")...)).JSON()
	if strings.Contains(string(text), "voided") || strings.Contains(string(text), "extended") {
		t.Errorf("%s", text)
	}
	text, _ = fold(atClock(1, event.RefereeRuling{Ruling: event.RulingVoided}, event.RefereeRuling{Ruling: event.RulingExtended, ExtendMS: 3})).JSON()
	if !strings.Contains(string(text), `"voided": true`) || !strings.Contains(string(text), `"extended_ms": 3`) {
		t.Errorf("%s", text)
	}
}
