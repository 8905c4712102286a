// Package playback moves a playhead over a heat's clock. Everything is a pure
// value: no clock of its own, no goroutine; the caller says what time it is.
//
// Guarantees: the position never goes back while it plays; a change of speed
// never moves it; back-stepping is exact.
package playback

import "time"

// State of a playhead.
type State string

// States.
const (
	Following State = "following" // pinned to the end
	Playing   State = "playing"
	Paused    State = "paused"
	Ended     State = "ended" // played to the end of a heat that is over
)

// Playhead is a position on a heat's clock that may move. The zero value is
// paused at 0, speed 1.
type Playhead struct {
	state  State
	quarts int // speed in quarters; 0 means 4
	at     uint64
	since  time.Time
	idle   *Idle
}

// Head is how far the heat has come, and whether it still goes on.
type Head struct {
	MS   uint64
	Live bool
}

// The speeds, slowest first: ¼, ½, 1, 2, 4, 8, 16, 32, 64.
var Speeds = []float64{0.25, 0.5, 1, 2, 4, 8, 16, 32, 64}

func (p Playhead) State(now time.Time, h Head) State                  { return p.state }
func (p Playhead) At(now time.Time, h Head) uint64                    { return p.at }
func (p Playhead) Speed() float64                                     { return 1 }
func (p Playhead) Play(now time.Time, h Head) Playhead                { return p }
func (p Playhead) Pause(now time.Time, h Head) Playhead               { return p }
func (p Playhead) Toggle(now time.Time, h Head) Playhead              { return p }
func (p Playhead) Follow() Playhead                                   { return p }
func (p Playhead) Seek(now time.Time, h Head, ms uint64) Playhead     { return p }
func (p Playhead) Skip(now time.Time, h Head, deltaMS int64) Playhead { return p }
func (p Playhead) Faster(now time.Time, h Head) Playhead              { return p }
func (p Playhead) Slower(now time.Time, h Head) Playhead              { return p }
func (p Playhead) Normal(now time.Time, h Head) Playhead              { return p }

// Compress plays gaps that the map knows as shorter ones; nil plays them in full.
func (p Playhead) Compress(now time.Time, h Head, m *Idle) Playhead { return p }
func (p Playhead) Compressed() bool                                 { return false }

// Idle maps the heat's clock to a shorter one, in which gaps between events that
// are longer than a limit take only the limit.
type Idle struct{}

// NewIdle builds the map from the clocks of events, in order.
func NewIdle(limitMS uint64, n int, ms func(i int) uint64) *Idle { return nil }

// Parse reads a place on the clock as a person types it: "50%", "12m30s", "750ms",
// "12:30", "1:02:03.5", "90" (seconds). Percent are of the head.
func Parse(s string, h Head) (uint64, error) { return 0, nil }

// Format writes a clock as 00:31.4, or 1:02:03.4 from an hour on.
func Format(ms uint64) string { return "" }
