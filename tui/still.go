package tui

import (
	"context"
	"time"

	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// Still draws a heat's first screen at any instant of its clock, by the code that
// draws it live, without a terminal. A recording that has ended is drawn as it
// looks while it is played from its start. Not for use by several goroutines.
type Still struct {
	m    *model
	heat *heat
	now  time.Time
}

// NewStill opens rec, read to its end, on a screen of w × h cells; it owns rec
// from then on. What is said in the footer takes the place of the keys, which
// nobody can press.
func NewStill(ctx context.Context, rec *recording.Recording, o canvas.Output, w, h int, footer string) *Still {
	s := &Still{now: time.Unix(0, 0)}
	s.heat = openHeat(ctx, rec, Desk{}, s.now)
	s.heat.readNow(ctx)
	cfg := Config{Keys: keymap.Default(), Output: o, Clock: func() time.Time { return s.now }}
	s.m = newModel(ctx, cfg, &overview{heat: s.heat})
	s.m.w, s.m.h, s.m.grid = w, h, canvas.New(w, h)
	s.m.say(footer)
	return s
}

// latest is the last instant that is drawn, 139 years after the start.
const latest = 1 << 42

// At is the frame at ms of the heat's clock: rows separated by "\n".
func (s *Still) At(ms uint64) string {
	s.now = time.Unix(0, 0).Add(time.Duration(min(ms, latest)) * time.Millisecond)
	s.m.top().advance(s.now)
	s.m.dirty = true
	return s.m.View()
}

// Close lets the recording go.
func (s *Still) Close() { s.heat.release() }
