package tui

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/event"
	"refbox/tui/viewtest"
)

// What people said into the log is on the overview, on the lanes and in the why.
func TestRemarks(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	x.middle() // with a note at 5 s
	x.add(7100, event.RefereeRuling{Ruling: "no-contest", Territory: demoSeats[1], Milestone: "reads-restored", Author: "bob", Reason: "the console was touched"})
	x.add(7200, event.OperatorNote{Author: "ann", Text: "for the record"})
	x.finish()
	d := replayOf(t, x.dir, 120, 34, plainOutput())
	d.goTo("4s")
	d.lacks("✎")
	d.goTo("6s")
	d.shows("✎ 00:05.0 referee notes: seat three guesses")
	if !strings.Contains(axisOf(d), "✎") {
		t.Fatalf("the axis has no mark:\n%s", d.text())
	}
	d.goTo("7150ms")
	d.shows("§ 00:07.1 bob ruled no-contest failover-two reads-restored: the console was touched")
	d.shows("2 remarks")
	for line := range strings.SplitSeq(d.text(), "\n") {
		if strings.Contains(line, " failover-two ") && strings.Contains(line, "┄") && !strings.Contains(line, "§") {
			t.Fatalf("the lane has no mark: %s", line)
		}
	}
	d.goTo("end")
	d.press("2", "w")
	d.shows("✎ referee notes: seat three guesses")
	d.shows("§ bob ruled no-contest reads-restored: the console was touched")
	d.shows("✎ ann notes: for the record")
	viewtest.Fits(t, d.m.View(), 120, 34)
}

// axisOf is the row of the time line.
func axisOf(d *driver) string {
	rows := strings.Split(d.text(), "\n")
	return rows[len(rows)-2]
}

// A heat that is only a match-report.json shows the graph that the report carries,
// or says that it has none.
func TestReportHasAPicture(t *testing.T) {
	heat := demoHeat(t)
	read := func(name string) (v any) {
		data, err := os.ReadFile(filepath.Join(heat, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	log, err := os.ReadFile(filepath.Join(heat, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var events []json.RawMessage
	for line := range strings.Lines(string(log)) {
		events = append(events, json.RawMessage(line))
	}
	for _, picture := range []any{read("arena.json").(map[string]any)["visualization"], nil} {
		data, err := json.Marshal(map[string]any{"schema_version": 1, "events": events, "world": read("world.json"), "provenance": read("match.json"), "visualization": picture})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "match-report.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		d := replayOf(t, dir, 200, 60, plainOutput())
		d.goTo("end")
		if picture == nil {
			d.shows("this recording names no topology")
			continue
		}
		d.until("the report's graph is read", func() bool { return d.heat().reported != nil })
		d.press("2", "1")
		d.shows("✓ Data Router")
		d.lacks("names no topology")
	}
}
