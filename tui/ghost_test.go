package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"refbox/engine/recording"
	"refbox/tui/viewtest"
)

// raceOf shows a recording with another behind it, paused at the start.
func raceOf(t testing.TB, dir, against string, w, h int) *driver {
	t.Helper()
	var recs [2]*recording.Recording
	for i, d := range []string{dir, against} {
		rec, err := recording.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Load(context.Background()); err != nil {
			t.Fatal(err)
		}
		recs[i] = rec
	}
	t.Cleanup(func() { recs[1].Close() })
	d := drive(t, w, h, plainOutput(), func(ctx context.Context, cfg Config) screen {
		heat := openHeat(ctx, recs[0], Desk{}, cfg.Clock())
		heat.ghost = newGhost(recs[1])
		return &overview{heat: heat}
	})
	d.press(" ")
	return d
}

func TestGhostLanes(t *testing.T) {
	this := demoHeat(t)
	x := startTape(t, demoArena())
	x.begin()
	x.middle()
	x.finishAt(12_500)
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		d := raceOf(t, this, x.dir, size[0], size[1])
		d.goTo("end")
		d.golden(fmt.Sprintf("ghost-%dx%d", size[0], size[1]))
		// The last milestone: 9.0 s here, 12.5 s there, which has not come by 9 s.
		d.lacks("−3.5")
		d.shows("+0.0")
		d.press("enter")
		viewtest.Fits(t, d.m.View(), size[0], size[1])
		d.shows("+0.0")
		d.press("esc", "w")
		viewtest.Fits(t, d.m.View(), size[0], size[1])
	}
	// The other way round the splits are against this side.
	d := raceOf(t, x.dir, this, 120, 34)
	d.goTo("end")
	d.shows("+3.5")
	d.goTo("10s")
	d.lacks("+3.5")
}

func TestGhostOfEveryRecording(t *testing.T) {
	dirs := viewtest.Recordings(t)
	for i, dir := range dirs {
		d := raceOf(t, dir, dirs[(i+3)%len(dirs)], 100, 30)
		for _, at := range []string{"0", "50%", "end"} {
			d.goTo(at)
			viewtest.Fits(t, d.m.View(), 100, 30)
			if !strings.Contains(d.text(), "/ ") && len(d.heat().world.Seats()) > 0 {
				t.Fatalf("no ghost:\n%s", d.text())
			}
		}
	}
}

func TestSplitText(t *testing.T) {
	for ms, want := range map[int64]string{0: "+0.0", 49: "+0.0", -3200: "−3.2", 99_949: "+99.9", 99_950: "+100", -924_000: "−924", 9_998_000: "+9998", 1 << 62: "+2h+"} {
		if got := splitText(ms); got != want {
			t.Errorf("%d is %q, want %q", ms, got, want)
		}
	}
}
