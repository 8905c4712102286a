package playback

import (
	"fmt"
	"testing"

	"refbox/engine/event"
	"refbox/engine/world"
)

func heatOf(bodies map[uint64][]event.Body) Side {
	w := world.New()
	for ms := range uint64(100) {
		for _, b := range bodies[ms] {
			world.Apply(w, event.Event{ElapsedMS: ms, Body: b})
		}
	}
	return Side{World: w}
}

func pass(seat, milestone string) []event.Body {
	return []event.Body{event.MilestoneEvaluationStarted{Territory: seat, Milestone: milestone}, event.MilestonePassed{Territory: seat, Milestone: milestone, Points: 10}}
}

func told(lanes []Lane) string {
	out := ""
	at := func(p *uint64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	for _, l := range lanes {
		out += l.Seat.Territory + "/"
		if l.Against != nil {
			out += l.Against.Territory
		}
		for _, s := range l.Splits {
			out += fmt.Sprintf(" %s %s %s", s.Milestone, at(s.MS), at(s.AgainstMS))
			if s.DeltaMS != nil {
				out += fmt.Sprintf(" %+d", *s.DeltaMS)
			}
		}
		out += "\n"
	}
	return out
}

func TestCompare(t *testing.T) {
	a := heatOf(map[uint64][]event.Body{
		0:  {event.TerritoryRegistered{Territory: "one"}, event.TerritoryRegistered{Territory: "two"}, event.TerritoryRegistered{Territory: "x"}, event.TerritoryRegistered{Territory: "y"}},
		10: pass("one", "reads"), 30: pass("one", "writes"), 31: {event.DurableDeploymentCompleted{Territory: "one"}},
		40: append(pass("two", "reads"), event.MilestoneRevoked{Territory: "two", Milestone: "reads"}),
	})
	b := heatOf(map[uint64][]event.Body{
		0:  {event.TerritoryRegistered{Territory: "z"}, event.TerritoryRegistered{Territory: "two"}, event.TerritoryRegistered{Territory: "one"}},
		15: pass("one", "reads"), 20: pass("one", "writes"), 25: pass("one", "reboot"), 50: pass("two", "reads"),
	})
	want := `one/one reads 10 15 -5 writes 30 20 +10 reboot - 25 durable 31 -
two/two reads - 50 writes - - reboot - -
x/z reads - - writes - - reboot - -
y/ reads - - writes - -
`
	if got := told(Compare(a, b)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// Who plays decides before where it is played.
	c := heatOf(map[uint64][]event.Body{0: {event.TerritoryRegistered{Territory: "one", Agent: "ann"}, event.TerritoryRegistered{Territory: "two", Agent: "bob"}, event.TerritoryRegistered{Territory: "three"}}})
	d := heatOf(map[uint64][]event.Body{0: {event.TerritoryRegistered{Territory: "one", Agent: "bob"}, event.TerritoryRegistered{Territory: "three"}, event.TerritoryRegistered{Territory: "two", Agent: "ann"}}})
	if got := told(Compare(c, d)); got != "one/two\ntwo/one\nthree/three\n" {
		t.Errorf("%s", got)
	}
	for _, l := range Compare(a, a) {
		for _, s := range l.Splits {
			if s.DeltaMS != nil && *s.DeltaMS != 0 || (s.MS == nil) != (s.AgainstMS == nil) {
				t.Errorf("against itself: %+v", s)
			}
		}
	}
	if got := Compare(Side{World: world.New()}, b); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
