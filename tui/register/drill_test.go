package register

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/drill"
	"refbox/tui/viewtest"
)

func arenaOf(name, procedure string, ids ...string) drill.Arena {
	m := &arena.Manifest{Arena: arena.Arena{ID: name, DisplayName: "The " + name}, Procedure: &procedure, Clock: &arena.Clock{To: "done"}}
	for i, p := range []**string{&m.Store, &m.Copy} {
		if i < len(ids) {
			*p = &ids[i]
		}
	}
	return drill.Arena{Name: "arenas/" + name, Manifest: m}
}

// drilling is the example with arenas, as a file of the user's.
func drilling(arenas ...drill.Arena) Source {
	src := example()
	src.Drills = &Drills{File: "mine.toml", Machines: "real machines", Arenas: func() ([]drill.Arena, []string) {
		return arenas, []string{"arenas/broken: no manifest"}
	}}
	return src
}

// d on a finding proposes the heat that closes it, or says that there is none and
// why; enter races it.
func TestDrillOfAFinding(t *testing.T) {
	restore := arenaOf("restore-mail", arena.Restore, "member-mail", "mail-export")
	d := drive(t, drilling(restore), 120, 34)
	d.press("tab", "tab", "tab", "/")
	d.write("store:member never")
	d.press("d")
	d.shows("drill: restore-never-drilled", "closes   restore-never-drilled", "races    arenas/restore-mail", "on       real machines", "enter races it", "✗ arenas/broken: no manifest")
	d.press("enter")
	if d.race == nil || d.race.Arena != "arenas/restore-mail" || d.race.Register != "mine.toml" || d.race.Store != "member-mail" {
		t.Fatalf("%+v", d.race)
	}

	d = drive(t, drilling(), 120, 34)
	d.press("tab", "tab", "tab", "/")
	d.write("store:member never")
	d.press("d")
	d.shows("✗ no arena", `procedure = "restore"`)
	d.press("enter")
	if d.race != nil || !strings.Contains(d.said, "no heat to race") {
		t.Fatalf("%+v %s", d.race, d.said)
	}
	d.press("esc")
	d.lacks("✗ no arena")
	if d.s.focus != findings {
		t.Errorf("the focus is on %d", d.s.focus)
	}
	d.press("/")
	d.write("code:no-offsite")
	d.press("d")
	d.shows("✗ no heat", "No heat closes no-offsite-copy")
	d.press("d")
	d.lacks("✗ no heat")
}

// On a cell: a promotion is rehearsed where no arena is of the store; what stays
// writable needs none. On a line of a runbook: what the line is about.
func TestDrillOfACell(t *testing.T) {
	failover := arenaOf("failover", arena.Promotion)
	d := drive(t, drilling(failover), 200, 60)
	found := map[string]bool{}
	doc := d.s.r.now.Document()
	for range doc.Scenarios {
		d.press("d")
		for _, want := range []string{"◐ a rehearsal", "✗ no heat"} {
			found[want] = found[want] || strings.Contains(d.text(), want)
		}
		d.press("esc", "l")
	}
	if !found["◐ a rehearsal"] || !found["✗ no heat"] {
		t.Errorf("%v\n%s", found, d.text())
	}
	d.press("enter", "g", "d")
	if d.s.side == drills {
		t.Error("the store's name has a drill")
	}
	if !strings.Contains(d.said, "choose a cell") {
		t.Error(d.said)
	}

	// The example is no file: nothing is raced for it.
	src := drilling(failover)
	src.Drills.File = ""
	d = drive(t, src, 200, 60)
	for range doc.Scenarios {
		d.press("d")
		if strings.Contains(d.text(), "◐ a rehearsal") {
			d.press("enter")
			break
		}
		d.press("esc", "l")
	}
	if d.race != nil || !strings.Contains(d.said, "refbox register init") {
		t.Errorf("%+v %q", d.race, d.said)
	}
}

// What came of a heat is shown where it was asked for; enter makes the change, once.
func TestDrillResult(t *testing.T) {
	kept := 0
	src := drilling()
	src.Drills.Result = &Result{Store: "member-mail", Lines: []string{"drill of member-mail: restore", "one by right: 42s (38987 ms)", "closes restore-never-drilled", "opens restore-exceeds-rto: it is slow", "no drill, since its machines were not real ones"},
		Diff: "--- mine.toml\n+++ mine.toml\n@@ -1,1 +1,2 @@\n a\n+b\x1b[31m\n", Keep: func() error { kept++; return nil }}
	d := drive(t, src, 120, 34)
	d.shows("the heat for member-mail", "enter shows the change", "✓ closes restore-never-drilled", "✗ opens restore-exceeds-rto", "○ no drill, since", "the change, not made yet", "+b")
	if strings.Contains(d.text(), "\x1b") {
		t.Error("an escape")
	}
	if d.s.storeID() != "member-mail" {
		t.Error(d.s.storeID())
	}
	d.press("enter")
	d.shows("the change, not made yet", "enter makes the change")
	if kept != 0 || !strings.Contains(d.said, "enter makes it, esc does not") {
		t.Errorf("made without being asked: %d %s", kept, d.said)
	}
	d.press("enter", "enter")
	d.shows("the change, made")
	if kept != 1 || !strings.Contains(d.said, "it is in the register") {
		t.Errorf("%d %s", kept, d.said)
	}
	src.Drills.Result.Kept = false
	src.Drills.Result.Keep = func() error { return errors.New("it has changed") }
	d = drive(t, src, 80, 24)
	d.press("enter", "enter")
	if !strings.Contains(d.said, "it has changed") {
		t.Error(d.said)
	}
	src.Drills.Result = &Result{Store: "member-mail", Lines: []string{"no heat: no QEMU"}}
	d = drive(t, src, 80, 24)
	d.press("enter")
	if !strings.Contains(d.said, "nothing to add") {
		t.Error(d.said)
	}
}

func TestGoldenDrill(t *testing.T) {
	restore := arenaOf("restore-mail", arena.Restore, "member-mail", "mail-export")
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		w, h := size[0], size[1]
		d := drive(t, drilling(restore), w, h)
		d.press("tab", "tab", "tab", "/")
		d.write("store:member never")
		d.press("d")
		viewtest.Fits(t, d.text(), w, h-2)
		viewtest.Golden(t, fmt.Sprintf("drill-%dx%d", w, h), d.text())
	}
}
