package season

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/season/series"
	"refbox/recordings"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

func n[T any](v T) *T { return &v }

// together is a series and a benchmark of made-up heats.
func together() (Together, Together) {
	var runs []series.Run
	for i := range 4 {
		r := series.Run{Name: "round-00" + string(rune('1'+i)), ArenaID: "primary-failover", Key: "k", Finished: i != 3, Host: series.Host{PreparedMS: int64(1000 + 900*(i/2))}}
		for k, id := range []string{"ann", "bob", "cy"} {
			p := series.Player{Agent: id, Territory: []string{"one", "two", "three"}[(k+i)%3], Model: "maker/" + id, Adapter: "llm", Effort: "high", Passed: k, Milestones: 6, UsageRecorded: id != "cy", CostKnown: id != "cy", CostMicroUSD: 12_345}
			if k == i%2 {
				r.Winner, p.DurableMS = p.Territory, n(int64(40_000+i))
			}
			r.Players = append(r.Players, p)
		}
		runs = append(runs, r)
	}
	s := series.Aggregate("primary-failover", 5, []string{"s/round-001", "s/round-002", "s/round-003", "s/round-004"}, runs)
	b := series.Bench("core", []series.ArenaRuns{
		{Planned: series.Planned{ArenaID: "primary-failover", Manifest: "primary-failover", CompatibilityKey: "k", Rounds: 3, Output: "01-primary-failover"}, Runs: runs[:3]},
		{Planned: series.Planned{ArenaID: "durable-job-queue", Manifest: "durable-job-queue", CompatibilityKey: "q", Rounds: 3, Output: "02-durable-job-queue"}},
	})
	f := series.Compute(runs)
	heats := []Heat{{"s/round-001", &runs[0]}, {"s/round-002", &runs[1]}, {"s/round-003", &runs[2]}, {"s/round-004", nil}}
	return Together{Series: &s, Figures: &f, Checks: s.Check(nil), Heats: heats}, Together{Benchmark: &b, Figures: &f, Checks: b.Check(nil), Heats: heats[:3]}
}

func sheet(t *testing.T, x Together, w, h int) *driver {
	t.Helper()
	s, err := NewSheet(TogetherSource{Name: "s", Load: func() (Together, error) { return x, nil }, Heat: func(name string) (*recording.Recording, error) {
		if !strings.HasSuffix(name, "round-001") {
			return absent(name)
		}
		return recording.OpenFS(recordings.Heats(), "primary-failover")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return show(t, s, w, h)
}

func TestGoldenSheets(t *testing.T) {
	s, b := together()
	for name, x := range map[string]Together{"series": s, "benchmark": b} {
		for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
			viewtest.Looks(t, fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), size[0], size[1]-2, sheet(t, x, size[0], size[1]).frame)
		}
		d := sheet(t, x, 120, 60)
		viewtest.Fits(t, d.text(), 120, 58)
		viewtest.Golden(t, name+"-120x60", d.text()+"\n"+d.status())
	}
	for w := 20; w < 210; w += 47 {
		viewtest.Fits(t, sheet(t, b, w, 20).text(), w, 18)
	}
}

// Enter opens the heat of a line, or says that it is not here.
func TestASheetsHeatsAreOpened(t *testing.T) {
	s, _ := together()
	d := sheet(t, s, 120, 40)
	at := func(what string) {
		t.Helper()
		p := &d.s.(*Sheet).page
		for i, l := range p.lines {
			if l.opens == what {
				p.at = i
				return
			}
		}
		t.Fatalf("no line opens %s", what)
	}
	d.press("enter")
	if !strings.Contains(d.said, "choose a heat") {
		t.Errorf("%q", d.said)
	}
	at("s/round-001")
	d.press("enter")
	if len(d.opened) != 1 {
		t.Errorf("%v, %q", d.opened, d.said)
	}
	at("s/round-004")
	d.press("enter")
	if !strings.Contains(d.said, "s/round-004 is not here") {
		t.Errorf("%q", d.said)
	}
	d.press("]", "[", "G", "g", "y")
}

func TestHostileSheets(t *testing.T) {
	o := canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}
	one, two := together()
	for _, x := range []Together{one, two} {
		poison(reflect.ValueOf(&x).Elem())
		x.Checks = append(x.Checks, season.Check{Code: viewtest.Hostile, Verdict: viewtest.Hostile, Text: viewtest.Hostile})
		d := sheet(t, x, 120, 34)
		for range 8 {
			viewtest.OnlySGR(t, "sheet", d.frame(o))
			viewtest.Fits(t, d.frame(o), 120, 32)
			d.press("pgdown", "y")
			viewtest.OnlySGR(t, "copied", "x"+d.copied)
		}
		viewtest.OnlySGR(t, "status", d.status())
	}
}
