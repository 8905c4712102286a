package tui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"refbox/tui/canvas"
)

// A frame at 200×60 with three consoles that change, Update and View together
// (figure: design, section 7).
func BenchmarkFrame(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) { benchmarkFrame(b, size[0], size[1]) })
	}
}

func benchmarkFrame(b *testing.B, w, h int) {
	x := startTape(b, demoArena())
	x.begin()
	x.middle()
	// A minute in which every console prints a line each 20 ms.
	const step, events = 20, 3000
	for i := range uint64(events) {
		ms := 7000 + i*step
		x.clock.Store(ms)
		for _, s := range demoSeats {
			x.console(s, fmt.Sprintf("\r\n\x1b[32m[%9d]\x1b[m systemd[1]: \x1b[1mStarted\x1b[m unit-%d.service - as wide as a pane", ms, i))
		}
		if i%50 == 0 {
			x.fail(ms, demoSeats[1], "reads-restored", 7+i, "GET /health: 502")
		}
	}
	x.finishAt(7000 + events*step)
	d := watchOf(b, x.dir, w, h, canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}, Desk{})
	d.m.watched[d.heat().feed()] = true // the file does not grow: only ticks count
	d.goTo("7s")
	d.press("backspace")
	const frame = 33 * time.Millisecond
	took := make([]time.Duration, 0, 1<<16)
	bytes := 0
	last := d.m.View()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		d.now = d.now.Add(frame)
		if d.heat().now+100 > 7000+events*step {
			b.StopTimer()
			d.goTo("7s")
			d.m.View()
			b.StartTimer()
		}
		begin := time.Now()
		d.m.Update(tickMsg{d.m.ticks})
		f := d.m.View()
		took = append(took, time.Since(begin))
		if f == last {
			b.Fatal("the frame did not change")
		}
		last = f
		bytes += len(f)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e6, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e6, "median-ms")
	b.ReportMetric(float64(bytes)/float64(len(took)), "frame-bytes")
}

// A message that changes nothing, while paused.
func BenchmarkIdle(b *testing.B) {
	d := replayOf(b, demoHeat(b), 200, 60, canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()})
	d.goTo("7s")
	drawn := d.m.frames
	b.ReportAllocs()
	for b.Loop() {
		d.m.Update(struct{}{})
		d.m.View()
	}
	b.ReportMetric(float64(d.m.frames-drawn), "frames")
}
