package main

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/world"
)

// The desk from other terminals: two referees at once, what each is told, and how
// the heat's own process ends.
func TestDeskFromOtherTerminals(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	heat := b.simulated(dir)
	heat.until(heat.output, "passed", time.Minute)
	desk := func(args ...string) *process { return b.run(30*time.Second, append([]string{"desk", dir}, args...)...) }

	var wg sync.WaitGroup
	var both [2]*process
	for i := range both {
		wg.Go(func() { both[i] = desk("pause", "--reason", "look at it") })
	}
	wg.Wait()
	if codes := [2]int{both[0].code, both[1].code}; codes != [2]int{0, 1} && codes != [2]int{1, 0} {
		t.Fatalf("two pause at once: %v", codes)
	}
	for _, p := range both {
		if p.code == 1 {
			p.says(1, "paused the heat already: look at it")
		}
	}
	desk("extend", "90s", "--reason", "it took long").says(0)
	desk("extend", "soon", "--reason", "x").says(2, "no length of time")
	desk("revoke", "failover-one", "--reason", "x").says(2, "revoke SEAT MILESTONE")
	desk("dance", "--reason", "x").says(2, "there are pause, resume, extend")
	desk("void").says(2, "needs a reason")
	desk("unavailable", "nobody", "--reason", "x").says(1, "its seats are failover-one")
	desk("unavailable", "failover-three", "--reason", "its host").says(0)
	p := desk("unavailable", "failover-three", "--reason", "its host", "--json")
	p.says(1)
	var told ruled
	if err := json.Unmarshal([]byte(p.output.String()), &told); err != nil || told.Done || !strings.Contains(told.Error, "already") {
		t.Errorf("%v: %s", err, p.output)
	}
	p = desk("--json")
	p.says(0)
	var now deskStanding
	if err := json.Unmarshal([]byte(p.output.String()), &now); err != nil || now.State != "paused" || now.Paused == nil || now.ExtendedMS != 90_000 || len(now.Rulings) != 2 {
		t.Errorf("%v: %s", err, p.output)
	}
	desk("restore", "failover-three", "--reason", "it is back").says(0)
	tells := func(p *process, words ...string) {
		t.Helper()
		p.says(0)
		for _, w := range words {
			if !strings.Contains(p.output.String(), w) {
				t.Errorf("%v does not tell %q:\n%s", p.cmd.Args[1:], w, p.output)
			}
		}
	}
	desk("fault", "freeze", "failover-two", "host", "--reason", "x").says(1, "the heat is paused")
	desk("resume", "--reason", "go on").says(0)
	// A fault is explained before it is injected, and undone from the same place.
	tells(desk("fault", "power-cut"), "cuts the power", "the SSH port refuses", "powers it on again")
	desk("fault", "earthquake").says(2, "there are process-kill")
	desk("fault", "freeze", "failover-two").says(2, "fault KIND SEAT MACHINE")
	desk("fault", "freeze", "failover-two", "host").says(2, "needs a reason")
	desk("fault", "service-stop", "failover-two", "host", "units=x", "--reason", "x").says(2, "takes unit=… [port=…]")
	desk("fault", "freeze", "failover-two", "mars", "--reason", "x").says(1, "no machine")
	tells(desk("fault", "freeze", "failover-two", "host", "--reason", "drill"), "is silent for 3 s", "done: failover-two: freeze on host bit")
	tells(desk(), "freeze on host bit", "it is still there")
	desk("clear", "freeze", "failover-one", "--reason", "x").says(1, "no fault is on failover-one")
	tells(desk("clear", "freeze", "failover-two", "--reason", "long enough"), "cleared", "long enough")
	tells(desk("fault", "service-stop", "failover-two", "host", "unit=failover-proxy.service", "port=8080", "--for", "100ms", "--reason", "drill", "--json"), `"kind": "service-stop"`)
	desk("note", "--reason", "seat three guesses").says(0)
	desk("void", "--reason", "the arena is broken").says(0)
	heat.wait(30 * time.Second)
	heat.says(1, "voided by", "the arena is broken")
	desk("note", "--reason", "late").says(1, "its recording is closed")
	if w := b.run(30*time.Second, "why", dir); !strings.Contains(w.output.String(), "counts for nobody: the arena is broken") ||
		!strings.Contains(w.output.String(), "paused the heat: look at it") || !strings.Contains(w.output.String(), "seat_unavailable: its host") {
		t.Errorf("why:\n%s", w.output)
	}
	if r := b.run(30*time.Second, "review", dir); r.code != 0 || !strings.Contains(r.output.String(), "0 differ") {
		t.Errorf("review exits %d:\n%s", r.code, r.output)
	}
	rec := recorded(t, dir)
	w := rec.World(rec.Len())
	if w.Voided == nil || w.Winner != nil || world.OutcomeOf(w, "failover-one") != world.OutcomeVoided || w.PausedMS == 0 || w.Notes.Len() != 1 {
		t.Errorf("%+v, %v, paused %d", w.Voided, w.Winner, w.PausedMS)
	}
	if got := events[event.HeatPaused](t, rec); len(got) != 1 {
		t.Errorf("paused %d times", len(got))
	}
	b.nothingLeft()
	b.readable(dir, false)
}
