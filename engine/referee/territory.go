package referee

import (
	"fmt"
	"time"
)

// States of a territory of a conquest (recordings reference, section 4.7).
const (
	stateHealthy    = "healthy"
	stateDegraded   = "degraded"
	stateRecovering = "recovering"
	stateEliminated = "eliminated"
)

// Holding are the terms on which a territory is held.
type Holding struct {
	// Failures is how many bad probes in a row degrade it, and how many good ones
	// make a degraded one healthy.
	Failures uint32
	// Recovery is how long after it was degraded it is eliminated, unless it was
	// healthy again.
	Recovery time.Duration
}

// standing is how a territory stands: a value, changed only by what is observed and
// by the clock.
type standing struct {
	state     string
	bad, good uint32 // probes in a row
	until     uint64 // not healthy: the end of the recovery window, ms
	last      string // what was wrong with the last bad probe
}

// shift is a step from one state to another.
type shift struct{ from, to, reason string }

// observed is how a territory stands after a probe: at most one step. Bad says what
// was wrong with it; "" for a good one. A probe that comes after the end of the window
// comes too late.
func (s standing) observed(h Holding, bad string, now uint64) (standing, *shift) {
	if s.state == stateEliminated {
		return s, nil
	}
	if bad != "" {
		s.bad, s.good, s.last = s.bad+1, 0, bad
	} else {
		s.bad, s.good = 0, s.good+1
	}
	if next, out := s.expired(h, now); out != nil {
		return next, out
	}
	switch {
	case s.state == stateHealthy && s.bad >= h.Failures:
		s.until = now + uint64(h.Recovery.Milliseconds())
		return s.step(stateDegraded, fmt.Sprintf("%s: %s", count(s.bad, "bad probe"), bad))
	case (s.state == stateDegraded || s.state == stateRecovering) && s.good >= h.Failures:
		s.until = 0
		return s.step(stateHealthy, count(s.good, "good probe"))
	case s.state == stateDegraded && s.good > 0:
		return s.step(stateRecovering, "a good probe")
	case s.state == stateRecovering && s.bad > 0:
		return s.step(stateDegraded, "a bad probe: "+bad)
	}
	return s, nil
}

// expired is how it stands at an instant without a probe.
func (s standing) expired(h Holding, now uint64) (standing, *shift) {
	if (s.state != stateDegraded && s.state != stateRecovering) || now < s.until {
		return s, nil
	}
	return s.step(stateEliminated, fmt.Sprintf("%s; not healthy again within %v", s.last, h.Recovery))
}

func (s standing) step(to, reason string) (standing, *shift) {
	out := &shift{s.state, to, reason}
	s.state = to
	return s, out
}

func count(n uint32, what string) string {
	if n == 1 {
		return "a " + what
	}
	return fmt.Sprintf("%d %ss in a row", n, what)
}
