package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/event"
	"refbox/tui/viewtest"
)

// choose moves to the action in that row of the desk.
func choose(d *driver, row int) {
	d.press("k", "k", "k", "k", "k", "k", "k", "k", "k", "k")
	for range row {
		d.press("j")
	}
	d.press("enter")
}

func TestRefereesDesk(t *testing.T) {
	d, x, desk := liveOf(t, false)
	for _, id := range demoSeats {
		x.add(2000, event.MilestonePassed{Territory: id, Milestone: "reads-restored", Points: 5})
	}
	d.until("passed", func() bool { return d.heat().world.Seat(demoSeats[1]).Points == 5 })
	d.press("2", "r")
	d.shows("referee's desk · ann")
	d.shows("seat " + demoSeats[1])
	said := func(want string) {
		t.Helper()
		d.until(want, func() bool { return strings.HasSuffix(desk.said(), want) })
	}
	choose(d, 0)
	d.shows("pause all seats, because:")
	d.press("enter")
	d.shows("pause needs a reason")
	choose(d, 0)
	d.write("the clock")
	said("pause ann: / 0s: the clock")
	d.until("told", func() bool { return d.m.notice == "done: pause all seats" })
	choose(d, 1)
	d.shows("the heat is not paused")
	choose(d, 2)
	d.write("soon")
	d.shows("no length of time")
	choose(d, 2)
	d.write("90s")
	d.shows("extend the limit, because:")
	d.write("more")
	said("extend ann: / 1m30s: more")
	choose(d, 3)
	d.write("out")
	said("unavailable ann: " + demoSeats[1] + "/ 0s: out")
	choose(d, 5)
	d.shows("revoke a milestone: which?")
	d.press("esc")
	d.lacks("which?")
	choose(d, 5)
	d.press("enter")
	d.shows("revoke reads-restored of " + demoSeats[1] + ", because:")
	d.write("cheated")
	said("revoke ann: " + demoSeats[1] + "/reads-restored 0s: cheated")
	x.add(2100, event.RefereeRuling{Ruling: event.RulingRevoked, Territory: demoSeats[1], Milestone: "reads-restored", Author: "ann", Reason: "cheated"},
		event.MilestoneRevoked{Territory: demoSeats[1], Milestone: "reads-restored", Reason: "ruled by ann: cheated"},
		event.HeatPaused{Author: "bob", Reason: "wait"})
	d.until("revoked", func() bool { return strings.Contains(d.text(), "ann ruled milestone revoked") })
	d.shows("bob paused the heat: wait")
	d.shows("PAUSED")
	choose(d, 6)
	d.press("enter")
	d.write("was right")
	said("uphold ann: " + demoSeats[1] + "/reads-restored 0s: was right")
	choose(d, 1)
	d.write("go")
	said("resume ann: / 0s: go")
	choose(d, 8)
	d.shows("no fault is on")
	choose(d, 9)
	d.write("a note")
	said("note ann: a note")
	choose(d, 11)
	d.write("broken")
	said("void ann: / 0s: broken")
	// The desk has the last word.
	desk.err = fmt.Errorf("bob was quicker\x1b[2J")
	choose(d, 10)
	d.write("over")
	d.until("told", func() bool { return strings.HasPrefix(d.m.notice, "bob was quicker") })
	if strings.Contains(d.m.notice, "\x1b") {
		t.Errorf("%q", d.m.notice)
	}
	d.press("tab")
	d.shows("seat " + demoSeats[2])
	d.press("r")
	d.lacks("referee's desk")
}

func TestDeskOfAReplay(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.press("r")
	d.shows("nothing to referee")
}

// What was ruled is seen in replay, where it was.
func TestRulingsInReplay(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	x.add(2000, event.HeatPaused{Author: "ann", Reason: "wait"})
	x.add(2000, event.RefereeRuling{Ruling: event.RulingExtended, Author: "ann", Reason: "more", ExtendMS: 60_000})
	x.add(2000, event.HeatResumed{Author: "bob", Reason: "on", PausedMS: 4200})
	x.add(3000, event.RefereeRuling{Ruling: event.RulingVoided, Author: "ann", Reason: "broken"}, event.MatchStateChanged{From: "running", To: "aborted"},
		event.MatchFinished{Reason: "voided by ann: broken"})
	d := replayOf(t, x.dir, 120, 34, plainOutput())
	d.press("G")
	d.shows("VOIDED")
	d.shows("ann ruled heat voided: broken")
	d.press("w")
	d.shows("counts for nobody")
	d.shows("ann paused the heat: wait")
	d.shows("bob resumed it after 4.2 s that counted for nobody: on")
	d.shows("ann ruled limit_extended by 1m0s: more")
}

func TestDeskFrames(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		d, x, _ := liveOf(t, false)
		d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		x.add(2000, event.MilestonePassed{Territory: demoSeats[0], Milestone: "reads-restored", Points: 5},
			event.HeatPaused{Author: "bob", Reason: "the arena's clock looks wrong"}, event.OperatorNote{Author: "ann", Text: "seat three guesses"},
			event.RefereeRuling{Ruling: event.RulingUnavailable, Territory: demoSeats[1], Author: "bob", Reason: "its host was swapped"},
			event.SeatUnavailable{Territory: demoSeats[1], Source: "controller", Detail: "ruled by bob: its host was swapped"})
		d.until("ruled", func() bool { return d.heat().world.Rulings.Len() == 1 })
		d.press("2", "r", "j")
		d.shows("its host was swapped")
		d.golden(fmt.Sprintf("desk-%dx%d", size[0], size[1]))
		d.press("1", "j", "j", "j", "j", "enter")
		d.shows("which?")
		viewtest.Fits(t, d.m.View(), size[0], size[1])
	}
	for w := 40; w < 90; w += 7 {
		for h := 12; h < 30; h += 3 {
			d, _, _ := liveOf(t, false)
			d.send(tea.WindowSizeMsg{Width: w, Height: h})
			d.press("r")
			for range 10 {
				d.press("j")
				viewtest.Fits(t, d.m.View(), w, h)
			}
		}
	}
}
