package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/event"
	"refbox/engine/recording"
)

// played is a live heat whose first seat a person plays.
func played(t *testing.T, w, h int) (*driver, *taped, *fakeDesk) {
	t.Helper()
	x := startTape(t, demoArena())
	x.add(0, event.HeatPrepared{Driver: "sim", Start: "cold", Seats: []event.PreparedSeat{
		{Territory: "failover-one", Machines: []string{"main"}, Agent: "ann", Adapter: "human:ann"},
		{Territory: "failover-two", Machines: []string{"main"}, Agent: "bot", Adapter: "script:careful"},
	}}, event.MatchStateChanged{From: "preparing", To: "running"})
	for _, at := range [][2]string{{"failover-one", "ann"}, {"failover-two", "bot"}} {
		seat, agent := at[0], at[1]
		x.add(0, event.TerritoryRegistered{Territory: seat, Class: "builder", Agent: agent},
			event.AgentStarted{Agent: agent, Territory: seat, Model: "human"})
	}
	if err := x.w.Brief("failover-one", "# Repair it\n\nThe primary\nhas died.\n\n- one\n- two\n\x1b[2J"); err != nil {
		t.Fatal(err)
	}
	desk := &fakeDesk{}
	rec, err := recording.Open(x.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	d := drive(t, w, h, plainOutput(), func(ctx context.Context, cfg Config) screen {
		return &overview{heat: openHeat(ctx, rec, Desk{Desk: desk, Author: "ann", Plays: "failover-one"}, cfg.Clock())}
	})
	desk.told = func() { d.msgs <- doneMsg{} }
	d.m.push(newSit(d.heat(), "failover-one"))
	d.send(tickMsg{d.m.ticks})
	return d, x, desk
}

func TestAPersonPlays(t *testing.T) {
	for name, size := range map[string][2]int{"80x24": {80, 24}, "120x34": {120, 34}, "200x60": {200, 60}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, x, desk := played(t, size[0], size[1])
			d.shows("your brief · failover-one")
			d.shows("The primary has died.")
			d.shows("left of 15:00")
			d.press("enter")
			d.until("seated", func() bool { return d.heat().chair != nil })
			if !strings.HasPrefix(desk.said(), "sit ann: failover-one/ ") {
				t.Fatal(desk.said())
			}
			guest := desk.console(0)
			guest.guest.Write([]byte("\x1b[1mroot@failover-one:~#\x1b[m \x1b]0;title\a")) //nolint:errcheck // the screen reads
			d.until("prompt", func() bool { return strings.Contains(d.text(), "root@failover-one:~#") })
			d.lacks("title")
			// Every key is the machine's, also those that mean something to refbox.
			d.press("q", "?", "X", "ctrl+c", "enter")
			d.until("typed", func() bool { typed, _ := guest.state(); return typed == "q?X\x03\r" })
			// Its size is the place that it has, and follows it.
			d.until("sized", func() bool { return strings.Contains(desk.said(), "size {") || size[0] == 80 })
			before := desk.said()
			d.send(tea.WindowSizeMsg{Width: size[0] + 10, Height: size[1] + 3})
			d.m.View()
			d.until("sized again", func() bool { return desk.said() != before })

			// It is left for the heat's screen, and stays as it is.
			d.press("ctrl+]")
			d.shows("1 failover-one")
			if _, closed := guest.state(); closed {
				t.Fatal("the session ended with its screen")
			}
			d.press("ctrl+]")
			d.shows("root@failover-one:~#")

			// What it has come to is said plainly, and the session's end.
			guest.guest.Close()
			d.until("ended", func() bool { return strings.Contains(d.text(), "the session has ended; enter opens another") })
			d.press("enter")
			d.until("again", func() bool { return d.heat().chair != nil && !d.heat().chair.over.Load() })
			x.add(5000, event.CompetitorStateChanged{Territory: "failover-two", From: "verifying", To: "durable", Reason: "completion milestone passed"},
				event.DurableDeploymentCompleted{Territory: "failover-two", DurableAt: ptr(uint64(5000))},
				event.MatchStateChanged{From: "running", To: "finished"}, event.MatchFinished{Winner: ptr("failover-two"), Reason: "first durable deployment"})
			d.until("verdict", func() bool { return strings.Contains(d.text(), "OUTRACED: failover-two reached durable first") })
		})
	}
}

func TestGoldenSit(t *testing.T) {
	for _, size := range sizes {
		d, _, desk := played(t, size[0], size[1])
		d.golden(fmt.Sprintf("brief-%dx%d", size[0], size[1]))
		d.press("enter")
		d.until("seated", func() bool { return d.heat().chair != nil })
		guest := desk.console(0)
		guest.guest.Write([]byte("\x1b[1mroot@failover-one:~#\x1b[m ")) //nolint:errcheck // the screen reads
		d.until("prompt", func() bool { return strings.Contains(d.text(), "root@failover-one:~#") })
		d.golden(fmt.Sprintf("sit-%dx%d", size[0], size[1]))
		guest.guest.Close()
		d.until("ended", func() bool { return strings.Contains(d.text(), "the session has ended") })
	}
}

func TestNobodySitsInAHeatOfScripts(t *testing.T) {
	d, _, desk := liveOf(t, false)
	d.press("S")
	d.shows("no person plays in this heat")
	d.press("ctrl+]")
	d.shows("no person plays in this heat")
	if desk.said() != "" {
		t.Error(desk.said())
	}
	d = replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.press("S")
	d.shows("take a seat in the lobby")
}

func TestWhyThereIsNoTerminal(t *testing.T) {
	d, _, desk := played(t, 120, 34)
	desk.err = errPlain("the machine\x1b[2J is on fire")
	d.press("enter")
	d.until("told", func() bool { return strings.Contains(d.text(), "is on fire; enter tries again") })
	desk.mu.Lock()
	desk.err = nil
	desk.mu.Unlock()
	d.press("enter")
	d.until("seated", func() bool { return d.heat().chair != nil })
}

type errPlain string

func (e errPlain) Error() string { return string(e) }
