// Package playback moves a playhead over a heat's clock. Everything is a pure
// value: no clock of its own, no goroutine; the caller says what time it is and
// how far the heat has come.
//
// Guarantees: while it plays the position never goes back; a change of speed or of
// idle compression never moves it; a playhead that was pinned to an event stands
// after exactly that event, whatever shares its instant.
package playback

import (
	"math"
	"time"
)

// State of a playhead.
type State string

// States.
const (
	Following State = "following" // pinned to the end of a live heat
	Playing   State = "playing"
	Paused    State = "paused"
	Ended     State = "ended" // at the end of a heat that is over
)

// Speeds, slowest first.
var Speeds = []float64{0.25, 0.5, 1, 2, 4, 8, 16, 32, 64}

const normal = 2 // index of ×1

// Playhead is a position on a heat's clock that may move. The zero value is paused
// at 0, at normal speed.
type Playhead struct {
	mode   mode
	speed  int // steps from normal
	at     uint64
	since  time.Time // while playing: when it was at at
	idle   *Idle
	pinned int // events that are shown, plus one; 0 when it is not pinned
}

type mode uint8

const (
	paused mode = iota
	playing
	following
)

// Head is how far the heat has come, and whether it still goes on.
type Head struct {
	MS   uint64
	Live bool
}

// At is the position in milliseconds.
func (p Playhead) At(now time.Time, h Head) uint64 {
	switch p.mode {
	case following:
		return h.MS
	case paused:
		return min(p.at, h.MS)
	}
	// Whole milliseconds stay whole: seconds as a float would not.
	passed := float64(max(0, now.Sub(p.since))) / float64(time.Millisecond) * p.Speed()
	to := addMS(p.at, passed)
	if p.idle != nil {
		// Rounding may fall short of where it was, never may the playhead.
		to = max(p.at, p.idle.real(addMS(p.idle.short(p.at), passed)))
	}
	return min(to, h.MS)
}

func addMS(at uint64, more float64) uint64 {
	if more >= math.MaxInt64 || at > math.MaxUint64-uint64(more) {
		return math.MaxUint64
	}
	return at + uint64(more)
}

// State is what the playhead does. One that plays and has caught up with a live
// heat follows it.
func (p Playhead) State(now time.Time, h Head) State {
	atEnd := p.At(now, h) >= h.MS
	switch {
	case p.mode == paused && (!atEnd || h.Live || p.pinned > 0):
		return Paused
	case atEnd && !h.Live:
		return Ended
	case atEnd:
		return Following
	}
	return Playing
}

// Speed is the factor of Speeds that is set.
func (p Playhead) Speed() float64 { return Speeds[normal+p.speed] }

// Pinned is the number of events that are shown, when the playhead stands on an
// event; an instant may have several.
func (p Playhead) Pinned() (events int, ok bool) { return p.pinned - 1, p.pinned > 0 }

// settle makes the position at now the one that it goes on from.
func (p Playhead) settle(now time.Time, h Head) Playhead {
	p.at, p.since = p.At(now, h), now
	return p
}

// Play goes on from where it stands, and from the start when the heat has ended.
func (p Playhead) Play(now time.Time, h Head) Playhead {
	if p.mode == following && h.Live {
		return p
	}
	if p.State(now, h) == Ended {
		return Playhead{mode: playing, speed: p.speed, idle: p.idle, since: now}
	}
	p = p.settle(now, h)
	p.mode, p.pinned = playing, 0
	return p
}

// Pause stops where it is.
func (p Playhead) Pause(now time.Time, h Head) Playhead {
	p = p.settle(now, h)
	p.mode = paused
	return p
}

// Toggle pauses what moves and plays what does not.
func (p Playhead) Toggle(now time.Time, h Head) Playhead {
	switch p.State(now, h) {
	case Playing, Following:
		return p.Pause(now, h)
	}
	return p.Play(now, h)
}

// Follow pins the playhead to the end.
func (p Playhead) Follow() Playhead {
	p.mode, p.pinned = following, 0
	return p
}

// Seek goes to a place on the clock. What moved goes on moving: one that followed
// a live heat plays on behind it.
func (p Playhead) Seek(now time.Time, h Head, ms uint64) Playhead {
	if p.mode == following {
		p.mode = paused
		if h.Live {
			p.mode = playing
		}
	}
	p.at, p.since, p.pinned = min(ms, h.MS), now, 0
	return p
}

// Skip goes forward or back by milliseconds.
func (p Playhead) Skip(now time.Time, h Head, deltaMS int64) Playhead {
	at := p.At(now, h)
	if deltaMS < 0 {
		back := uint64(-(deltaMS + 1)) + 1
		return p.Seek(now, h, at-min(at, back))
	}
	if forward := uint64(deltaMS); at < h.MS && forward <= h.MS-at {
		return p.Seek(now, h, at+forward)
	}
	return p.Seek(now, h, h.MS)
}

// Pin pauses after the first events of the log, the last of which is at ms.
func (p Playhead) Pin(events int, ms uint64) Playhead {
	p.mode, p.at, p.pinned = paused, ms, max(events, 0)+1
	return p
}

// Faster takes the next higher speed, Slower the next lower, Normal ×1.
func (p Playhead) Faster(now time.Time, h Head) Playhead { return p.setSpeed(now, h, p.speed+1) }

// Slower takes the next lower speed.
func (p Playhead) Slower(now time.Time, h Head) Playhead { return p.setSpeed(now, h, p.speed-1) }

// Normal takes ×1.
func (p Playhead) Normal(now time.Time, h Head) Playhead { return p.setSpeed(now, h, 0) }

func (p Playhead) setSpeed(now time.Time, h Head, speed int) Playhead {
	p = p.settle(now, h)
	p.speed = max(-normal, min(speed, len(Speeds)-1-normal))
	return p
}

// Compress plays gaps that the map knows as short ones; nil plays them in full.
func (p Playhead) Compress(now time.Time, h Head, m *Idle) Playhead {
	p = p.settle(now, h)
	p.idle = m
	return p
}

// Compressed says that gaps are played short.
func (p Playhead) Compressed() bool { return p.idle != nil }
