package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/world"
	"refbox/tui/viewtest"
)

// pick chooses a kind on the faults' screen, below n faults that can be cleared.
func pick(d *driver, n int, kind control.FaultKind) {
	for range 30 {
		d.press("k")
	}
	for range n {
		d.press("j")
	}
	for _, k := range control.FaultKinds() {
		if k == kind {
			break
		}
		d.press("j")
	}
	d.press("enter")
}

func TestFaultsOfAReferee(t *testing.T) {
	d, x, desk := liveOf(t, false)
	d.press("2", "f")
	d.shows("faults · ann")
	d.shows("seat " + demoSeats[1])
	d.shows("nothing has hurt this seat")
	said := func(want string) {
		t.Helper()
		d.until(want, func() bool { return strings.HasSuffix(desk.said(), want) })
	}
	// What it does and what is proved of it is there before it is confirmed.
	pick(d, 0, "power-cut")
	d.shows("power-cut, for how long:")
	d.write("20s")
	d.shows("because:")
	d.write("drill")
	d.shows("cuts the power")
	d.shows("the host: the SSH port refuses")
	d.shows("Because: drill")
	d.press("esc")
	if desk.said() != "" {
		t.Fatalf("not confirmed, and yet: %s", desk.said())
	}
	pick(d, 0, "power-cut")
	d.press("enter")
	d.write("drill")
	d.shows("until it is cleared")
	d.press("y")
	said("fault ann: " + demoSeats[1] + " power-cut main {} 0s: drill")
	d.until("told", func() bool { return strings.HasPrefix(d.m.notice, "done: power-cut on main") })
	// Parameters, one after the other; those that may be left out, too.
	pick(d, 0, "process-kill")
	d.shows("process-kill, unit:")
	d.write("db.service")
	d.shows("process-kill, pid_file:")
	d.write("")
	d.shows("process-kill, port:")
	d.write("8080")
	d.write("why not")
	d.press("y")
	said("fault ann: " + demoSeats[1] + ` process-kill main/db.service {"port":8080,"unit":"db.service"} 0s: why not`)
	pick(d, 0, "clock-jump")
	d.write("soon")
	d.shows("jump_ms is not soon")
	pick(d, 0, "clock-jump")
	d.press("enter")
	d.shows("nothing done: fault clock-jump: jump_ms")
	pick(d, 0, "freeze")
	d.press("enter", "enter")
	d.shows("needs a reason")
	// It is undone from the same place.
	x.add(2500, event.FaultInjected{Territory: demoSeats[1], Fault: "freeze", Target: "main", Author: "ann", Reason: "drill"},
		event.FaultConfirmed{Territory: demoSeats[1], Fault: "freeze", Target: "main", Receipt: json.RawMessage(`{"saw":"its agent is silent for 3s"}`)})
	d.until("on", func() bool { return len(d.heat().world.Seat(demoSeats[1]).ActiveFaults()) == 1 })
	pick(d, 0, control.FaultKinds()[0])
	d.write("enough")
	d.shows("clear freeze on main")
	d.press("y")
	said("clear ann: " + demoSeats[1] + " freeze  main{} 0s: enough")
	d.press("f")
	d.lacks("faults · ann")
	d.press("r", "j", "j", "j", "j", "j", "j", "j", "j", "enter")
	d.shows("faults · ann")
}

func TestFaultsOfAReplay(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.press("f")
	d.shows("nothing can be hurt")
}

// hurtHeat has a fault of every outcome.
func hurtHeat(t *testing.T) *taped {
	x := startTape(t, demoArena())
	x.begin()
	one, two, three := demoSeats[0], demoSeats[1], demoSeats[2]
	saw := func(words string) json.RawMessage {
		b, _ := json.Marshal(map[string]any{"saw": words, "witness": "the host"})
		return b
	}
	x.add(1000, event.FaultInjected{Territory: one, Fault: "power-cut", Target: "main", Author: "arena", Reason: "scheduled", Schedule: "cut"},
		event.FaultInjected{Territory: two, Fault: "freeze", Target: "main", Author: "arena", Reason: "scheduled", Schedule: "ice", Proves: []string{"reads-restored"}})
	x.add(1400, event.FaultConfirmed{Territory: one, Fault: "power-cut", Target: "main", Receipt: saw("the port refuses connections")})
	x.add(2000, event.FaultFailed{Territory: two, Fault: "freeze", Target: "main", Stage: "confirm", Detail: "not seen within 10s", Receipt: saw("its agent answers"), Voids: []string{"reads-restored"}})
	x.add(3500, event.FaultCleared{Territory: one, Fault: "power-cut", Target: "main", Receipt: saw("another boot")},
		event.FaultInjected{Territory: three, Fault: "disk-full", Target: "main", Author: "bob", Reason: "drill", Alone: true})
	x.add(3600, event.FaultConfirmed{Territory: three, Fault: "disk-full", Target: "main", Receipt: saw("no space left on device")})
	x.add(5000, event.FaultFailed{Territory: three, Fault: "disk-full", Target: "main", Stage: "clear", Detail: "the agent does not answer"})
	x.add(6000, event.OperatorNote{Author: "ann", Text: "look at three"})
	return x
}

// In replay a fault shades its time on the lane, and marks the host of the picture while
// it is there; why tells what became of it.
func TestFaultsInReplay(t *testing.T) {
	x := hurtHeat(t)
	d := replayOf(t, x.dir, 120, 34, plainOutput())
	d.goTo("2s")
	d.shows("↯ Host")
	d.shows("↯ fault power-cut on main,")
	for _, size := range sizes {
		d := replayOf(t, x.dir, size[0], size[1], plainOutput())
		d.goTo("2s")
		d.golden(fmt.Sprintf("faults-%dx%d", size[0], size[1]))
	}
	d.press("G")
	d.shows("▒▒▒")
	d.press("w")
	d.shows("the fault power-cut on main bit (the port refuses connections); cleared (another boot)")
	d.press("esc", "2", "w")
	d.shows("did not bite (its agent answers): not seen within 10s")
	d.shows("void by")
	d.press("esc", "3", "w")
	d.shows("its clean-up FAILED")
	if s := d.heat().world.Seat(demoSeats[2]); s.Faults.At(0).State != world.FaultNotCleared {
		t.Errorf("%+v", s.Faults.At(0))
	}
}

func TestFaultFrames(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		x := hurtHeat(t)
		d := watchOf(t, x.dir, size[0], size[1], plainOutput(), Desk{Desk: &fakeDesk{}, Author: "ann", Owned: true})
		d.press("3", "f")
		d.shows("clear disk-full on main")
		d.golden(fmt.Sprintf("fault-%dx%d", size[0], size[1]))
		pick(d, 1, "power-cut")
		d.write("20s")
		d.write("drill")
		d.shows("Confirm")
		d.golden(fmt.Sprintf("fault-confirm-%dx%d", size[0], size[1]))
	}
	x := hurtHeat(t)
	d := watchOf(t, x.dir, 80, 24, plainOutput(), Desk{Desk: &fakeDesk{}, Author: "ann", Owned: true})
	d.press("f")
	for w := 40; w < 90; w += 7 {
		for h := 12; h < 30; h += 3 {
			d.send(tea.WindowSizeMsg{Width: w, Height: h})
			d.press("j")
			viewtest.Fits(t, d.m.View(), w, h)
		}
	}
}
