package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/tui/viewtest"
)

// damaged is the demo heat with one byte of its log changed, a line that is no
// event, and its arena.json gone.
func damaged(t testing.TB) string {
	t.Helper()
	dir := demoHeat(t)
	log := filepath.Join(dir, "events.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i := 20; ; i++ { // the first failure from there on
		if was := lines[i]; strings.Contains(was, "502") {
			lines[i] = strings.Replace(was, "502", "503", 1)
			break
		}
	}
	lines[30] = "no event\x1b[2J\n"
	if err := os.WriteFile(log, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "arena.json")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestIntegrityPanel(t *testing.T) {
	dir := damaged(t)
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		d := replayOf(t, dir, size[0], size[1], plainOutput())
		d.press("i")
		d.until("the recording is checked", func() bool { return d.heat().report.Verified && !d.heat().verifying })
		d.shows("chain_broken")
		d.shows("✗ broken")
		d.golden(fmt.Sprintf("integrity-%dx%d", size[0], size[1]))
		for range 40 {
			d.press("j")
		}
		d.shows("missing_file")
		d.press("i")
		d.lacks("chain_broken")
		d.shows("✗ ")
	}
}

func TestIntegrityOfASoundHeatIsQuiet(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.until("the recording is checked", func() bool { return d.heat().report.Verified })
	if _, long, _ := d.heat().badge(); long != "" {
		t.Fatalf("a sound heat has the badge %q: %+v", long, d.heat().report)
	}
	d.lacks("integrity")
	d.press("i")
	d.shows("nothing is wrong with what is there")
	d.shows("chained and sealed")
}

// Transcripts of the reference's recordings stand in for actions, on the heat's
// clock, and say that they are self-reported; those of another match do not.
func TestToldActions(t *testing.T) {
	d := replayOf(t, viewtest.Shared(t, "recordings", "infra-core-primary-failover-round-002"), 200, 60, plainOutput())
	d.until("the transcripts are read", func() bool { return len(d.heat().told) == 3 })
	d.shows("actions ±1.8 s, self-reported")
	d.lacks("$ ")
	d.goTo("20s")
	d.shows("$ ")
	seat := d.heat().chosen()
	if n := d.heat().deeds(seat).Len(); n == 0 || n >= len(d.heat().told[seat.ID].Calls) {
		t.Fatalf("%d calls at 20 s", n)
	}
	// Steps by action go through the calls, both ways, and end there.
	d.goTo("start")
	calls := d.heat().told[seat.ID].Calls
	var at []uint64
	for range len(calls) + 3 {
		d.press("}")
		if n := len(at); n == 0 || at[n-1] != d.heat().now {
			at = append(at, d.heat().now)
		}
	}
	for i, ms := range at {
		if ms != calls[i].StartMS { // one agent of this heat calls nothing twice at once
			t.Fatalf("step %d is at %d, call at %d", i, ms, calls[i].StartMS)
		}
	}
	d.press("{")
	if d.heat().now != at[len(at)-2] {
		t.Fatalf("back is at %d", d.heat().now)
	}
	d.press("enter", "tab", "j")
	d.shows("bytes  self-reported")

	d = replayOf(t, viewtest.Shared(t, "recordings", "first-build-real-20260814-075912-round-003"), 200, 60, plainOutput())
	d.until("the transcripts are read", func() bool { return len(d.heat().told) == 3 })
	d.goTo("end")
	d.shows("the transcript is of another match")
	if strings.Count(d.text(), "self-reported") != 1 {
		t.Fatalf("a foreign transcript is told:\n%s", d.text())
	}
}
