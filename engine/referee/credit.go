package referee

import (
	"math"
	"sync"
	"time"
)

// account keeps how much of the race a seat spent waiting for the referee: its
// attacks, the reboots that are attacks, and looking again afterwards. That time
// is not charged (design, section 5), so that who wins depends on the players'
// work and not on what the referee's work costs a busy host. The rule:
//
//   - What is credited of one evaluation is at most its milestone's timeout: who
//     makes the referee's work last longer pays for the rest.
//   - The work of an evaluation that fails by the player's doing is charged, and
//     all before such a failure is: the seat was not complete then, so it was not
//     the referee that it waited for. What a player still does during an attack
//     therefore gains nothing unless it was the last thing to do.
//   - The time of a fault that no other seat has is credited whole and for good: it
//     is not the seat's time at all (see Fault).
//
// A seat's own clock is the heat's less what is credited: it stands still while
// the referee works, and jumps ahead when that proves to have been charged. Its
// methods may be called from any goroutine.
type account struct {
	mu      sync.Mutex
	spans   []span // credited, in order
	begun   int    // spans before the evaluation under way
	left    uint64 // of its timeout, ms
	working bool   // the referee is at work since the last span's from
	since   uint64 // instant up to which everything is charged
	still   []span // in which the seat's time stood still, in the order of their beginning
	faults  int    // of them that last
	changed chan struct{}
}

// span is some time of the referee's work, ms.
type span struct{ from, to uint64 }

func newAccount() *account { return &account{changed: make(chan struct{})} }

// poke wakes who waits for the seat's clock; mu is held.
func (a *account) poke() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// begin begins an evaluation of which at most limit is credited.
func (a *account) begin(limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun, a.left = len(a.spans), uint64(limit.Milliseconds())
}

// work notes that the referee is at work from now on, rest that it is no more.
func (a *account) work(now uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spans, a.working = append(a.spans, span{now, now}), true
	a.poke()
}

func (a *account) rest(now uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := &a.spans[len(a.spans)-1]
	last.to = min(max(now, last.from), last.from+a.left)
	a.left -= last.to - last.from
	a.working = false
	a.poke()
}

// charge ends an evaluation that failed by the player's doing, and was last seen
// not to hold at an instant.
func (a *account) charge(at uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spans = a.spans[:a.begun]
	a.since = max(a.since, at)
	a.poke()
}

// credit is what is not charged of the time up to now.
func (a *account) credit(now uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.credited(now)
}

func (a *account) credited(now uint64) (ms uint64) {
	ms = length(a.still, now)
	for i, s := range a.spans {
		if a.working && i == len(a.spans)-1 {
			s.to = s.from + a.left
		}
		from, to := max(s.from, a.since), min(s.to, now)
		if to <= from {
			continue
		}
		ms += to - from
		// What stood still is not credited twice.
		ms -= length(a.still, to) - length(a.still, from)
	}
	return ms
}

// length is how long the spans are together, up to now, what several cover once.
func length(spans []span, now uint64) (ms uint64) {
	var upto uint64
	for _, s := range spans {
		from, to := max(s.from, upto), min(s.to, now)
		if to > from {
			ms += to - from
		}
		upto = max(upto, to)
	}
	return ms
}

// standStill begins a time that is not the seat's; end ends it, and may be called
// twice.
func (a *account) standStill(clock func() uint64) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := len(a.still)
	a.still = append(a.still, span{clock(), math.MaxUint64})
	a.faults++
	a.poke()
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.still[at].to = max(clock(), a.still[at].from)
		a.faults--
		a.poke()
	})
}

// stood is how long the seat's time stood still up to now.
func (a *account) stood(now uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return length(a.still, now)
}

// before tells whether the seat's clock has not passed limit at now; wait is the
// least time after which it may have, should nothing change before changed is
// closed.
func (a *account) before(limit, now uint64) (wait time.Duration, changed <-chan struct{}, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clock := now - min(a.credited(now), now)
	if clock >= limit {
		return 0, a.changed, false
	}
	ms := limit - clock
	if a.faults > 0 {
		ms = max(ms, 1000) // its end is told
	}
	if a.working {
		last := a.spans[len(a.spans)-1]
		if end := last.from + a.left; end > now {
			ms += end - now
		}
	}
	return time.Duration(ms) * time.Millisecond, a.changed, true
}
