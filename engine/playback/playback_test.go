package playback

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 8, 14, 12, 0, 0, 0, time.UTC)

func after(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestStates(t *testing.T) {
	over, live := Head{MS: 10_000}, Head{MS: 10_000, Live: true}
	grown := Head{MS: 20_000, Live: true}
	play := Playhead{}.Play(start, over)
	for name, c := range map[string]struct {
		p     Playhead
		now   time.Time
		h     Head
		at    uint64
		state State
	}{
		"zero":                              {Playhead{}, after(5), over, 0, Paused},
		"playing":                           {play, after(2500), over, 2500, Playing},
		"played to the end":                 {play, after(99_000), over, 10_000, Ended},
		"played to the live end":            {play, after(99_000), live, 10_000, Following},
		"paused":                            {play.Pause(after(1000), over), after(9000), over, 1000, Paused},
		"paused and played":                 {play.Pause(after(1000), over).Play(after(5000), over), after(6000), over, 2000, Playing},
		"double speed":                      {play.Faster(after(1000), over), after(2000), over, 3000, Playing},
		"half speed":                        {play.Slower(after(1000), over), after(2000), over, 1500, Playing},
		"normal again":                      {play.Faster(start, over).Faster(start, over).Normal(after(1000), over), after(2000), over, 5000, Playing},
		"following a live heat":             {Playhead{}.Follow(), after(1), grown, 20_000, Following},
		"following one that ended":          {Playhead{}.Follow(), after(1), over, 10_000, Ended},
		"paused while following":            {Playhead{}.Follow().Pause(start, live), after(9000), grown, 10_000, Paused},
		"rewound while following":           {Playhead{}.Follow().Seek(start, live, 4000), after(1000), grown, 5000, Playing},
		"rewound after the end":             {Playhead{}.Follow().Seek(start, over, 4000), after(1000), over, 4000, Paused},
		"skip back too far":                 {play.Skip(after(1000), over, -5000), after(1500), over, 500, Playing},
		"skip forward too far":              {play.Skip(after(1000), over, math.MaxInt64), after(1500), over, 10_000, Ended},
		"the least skip":                    {play.Skip(after(1000), over, math.MinInt64), after(1000), over, 0, Playing},
		"played again from the end":         {Playhead{}.Follow().Play(start, over), after(700), over, 700, Playing},
		"toggled at the end":                {Playhead{}.Follow().Toggle(start, over), after(700), over, 700, Playing},
		"toggled while following":           {Playhead{}.Follow().Toggle(start, live), after(700), grown, 10_000, Paused},
		"pinned":                            {play.Pin(17, 6000), after(700), over, 6000, Paused},
		"pinned to the last event":          {play.Pin(20, 10_000), after(700), over, 10_000, Paused},
		"a clock that goes back":            {play, start.Add(-time.Hour), over, 0, Playing},
		"playing long after a live end":     {play, after(math.MaxInt32), grown, 20_000, Following},
		"empty heat":                        {Playhead{}.Play(start, Head{Live: true}), after(100), Head{Live: true}, 0, Following},
		"seek beyond the end":               {Playhead{}.Seek(start, over, 99_000), after(1), over, 10_000, Ended},
		"paused at the end of a live heat":  {Playhead{}.Seek(start, live, 99_000), after(1), grown, 10_000, Paused},
		"faster than there is stays at ×64": {fastest(play, over), after(100), over, 6400, Playing},
	} {
		t.Run(name, func(t *testing.T) {
			if at := c.p.At(c.now, c.h); at != c.at {
				t.Errorf("At = %d, want %d", at, c.at)
			}
			if state := c.p.State(c.now, c.h); state != c.state {
				t.Errorf("State = %s, want %s", state, c.state)
			}
		})
	}
}

func fastest(p Playhead, h Head) Playhead {
	for range 20 {
		p = p.Faster(start, h)
	}
	return p
}

func TestPinnedIsForgottenWhenItMoves(t *testing.T) {
	h := Head{MS: 1000}
	p := Playhead{}.Pin(7, 300)
	if n, ok := p.Pinned(); n != 7 || !ok {
		t.Fatalf("%d %v", n, ok)
	}
	for name, q := range map[string]Playhead{"play": p.Play(start, h), "seek": p.Seek(start, h, 5), "follow": p.Follow(), "skip": p.Skip(start, h, 1)} {
		if _, ok := q.Pinned(); ok {
			t.Errorf("still pinned after %s", name)
		}
	}
	if _, ok := p.Faster(start, h).Pinned(); !ok {
		t.Error("a change of speed moved it")
	}
}

// clocks draws events' clocks, with stretches of nothing.
func clocks(rt *rapid.T) []uint64 {
	steps := rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 1, 10, 999, 1000, 1001, 5000, 100_000}), 1, 30).Draw(rt, "gaps")
	at := uint64(0)
	for i, s := range steps {
		at += s
		steps[i] = at
	}
	return steps
}

func TestPlayingNeverGoesBackAndNothingElseMovesIt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := clocks(rt)
		h := Head{MS: events[len(events)-1], Live: rapid.Bool().Draw(rt, "live")}
		m := NewIdle(1000, len(events), func(i int) uint64 { return events[i] })
		p := Playhead{}.Play(start, h)
		now, last := start, uint64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 2_000_000_000).Draw(rt, "pass")))
			at := p.At(now, h)
			if at < last || at > h.MS {
				rt.Fatalf("went from %d to %d of %d", last, at, h.MS)
			}
			before := p
			switch rapid.IntRange(0, 4).Draw(rt, "do") {
			case 0:
				p = p.Faster(now, h)
			case 1:
				p = p.Slower(now, h)
			case 2:
				p = p.Compress(now, h, m)
			case 3:
				p = p.Compress(now, h, nil)
			case 4:
				p = p.Pause(now, h)
				if got := p.At(now.Add(time.Hour), h); got != at {
					rt.Fatalf("moved from %d to %d while paused", at, got)
				}
				if p.State(now, h) != Ended {
					p = p.Play(now, h)
				} else {
					p = before
				}
			}
			if got := p.At(now, h); got != at {
				rt.Fatalf("moved from %d to %d by what should not move it", at, got)
			}
			last = at
		}
	})
}

func TestSeekAlgebra(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := Head{MS: rapid.Uint64Range(0, 1_000_000).Draw(rt, "end")}
		a := rapid.Uint64Range(0, 2_000_000).Draw(rt, "a")
		d := rapid.Int64Range(-1_000_000, 1_000_000).Draw(rt, "d")
		p := Playhead{}.Seek(start, h, a)
		if got := p.At(start, h); got != min(a, h.MS) {
			rt.Fatalf("Seek(%d) is at %d", a, got)
		}
		want := min(max(int64(min(a, h.MS))+d, 0), int64(h.MS))
		if got := p.Skip(start, h, d).At(start, h); got != uint64(want) {
			rt.Fatalf("Skip(%d) from %d is at %d, want %d", d, a, got, want)
		}
		// Playing for a time at a speed is playing for a longer time at a lower one.
		p = Playhead{}.Play(start, h)
		ms := rapid.IntRange(0, 100_000).Draw(rt, "ms")
		if x, y := p.Faster(start, h).At(after(ms), h), p.At(after(2*ms), h); x != y {
			rt.Fatalf("twice as fast for %d ms is at %d, not %d", ms, x, y)
		}
	})
}

func TestIdleMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := clocks(rt)
		limit := rapid.Uint64Range(1, 3000).Draw(rt, "limit")
		m := NewIdle(limit, len(events), func(i int) uint64 { return events[i] })
		last := uint64(0)
		for _, at := range events {
			// Between two events passes what passed, at most the limit.
			if got, want := m.short(at)-m.short(last), min(at-last, limit); got != want {
				rt.Fatalf("from %d to %d plays for %d, want %d", last, at, got, want)
			}
			if back := m.real(m.short(at)); back != at {
				rt.Fatalf("event at %d comes back as %d", at, back)
			}
			last = at
		}
		x := rapid.Uint64Range(0, last+10_000).Draw(rt, "x")
		y := rapid.Uint64Range(0, last+10_000).Draw(rt, "y")
		if x > y {
			x, y = y, x
		}
		if m.short(x) > m.short(y) || m.real(x) > m.real(y) || m.real(m.short(x)) > x || m.short(x) > x {
			rt.Fatalf("not in order at %d, %d", x, y)
		}
	})
	far := NewIdle(1000, 2, func(i int) uint64 { return []uint64{0, math.MaxUint64}[i] })
	if got := far.real(far.short(math.MaxUint64)); got != math.MaxUint64 {
		t.Errorf("the longest gap ends at %d", got)
	}
}

func TestParse(t *testing.T) {
	h := Head{MS: 900_000}
	for in, want := range map[string]uint64{
		"0": 0, "90": 90_000, "1.5": 1500, "50%": 450_000, ":50%": 450_000, "100%": 900_000, "0.1%": 900, "12m30s": 750_000, "750ms": 750,
		"12:30": 750_000, "00:31.4": 31_400, "0:12:30": 750_000, "1:00:00": 900_000, "2h": 900_000, " 5s ": 5000, "99999999999": 900_000,
	} {
		if got, err := Parse(in, h); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-5", "-5s", "101%", "NaN%", "1:2:3:4", "1:60", "1.5:00", "Inf", "1e3", "%", ":", "1..2", "\x1b[31m"} {
		if got, err := Parse(in, h); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", in, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for ms, want := range map[uint64]string{0: "00:00.0", 31_449: "00:31.4", 59_999: "00:59.9", 3_599_999: "59:59.9", 3_723_400: "1:02:03.4"} {
		if got := Format(ms); got != want {
			t.Errorf("Format(%d) = %s, want %s", ms, got, want)
		}
		if back, err := Parse(want, Head{MS: math.MaxUint64}); err != nil || back/100 != ms/100 {
			t.Errorf("Parse(Format(%d)) = %d, %v", ms, back, err)
		}
	}
}

func TestExact(t *testing.T) {
	for ms, want := range map[uint64]string{0: "00:00.000", 31_402: "00:31.402", 31_449: "00:31.449", 59_999: "00:59.999", 3_599_999: "59:59.999", 3_723_070: "1:02:03.070"} {
		if got := Exact(ms); got != want {
			t.Errorf("Exact(%d) = %s, want %s", ms, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("12m30s", uint64(5))
	f.Fuzz(func(t *testing.T, s string, end uint64) {
		if got, err := Parse(s, Head{MS: end}); err == nil && got > end {
			t.Fatalf("%d is beyond %d", got, end)
		}
	})
}
