package world

import "cmp"

// Health is a conquest's last probe.
type Health struct {
	Healthy   bool    `json:"healthy"`
	Status    *uint16 `json:"status"`
	LatencyMS uint64  `json:"latency_ms"`
	Detail    string  `json:"detail"`
}

// Step is a conquest's territory becoming what it was not.
type Step struct {
	MS            uint64
	Index         int
	State, Reason string
}

// Conquest says that the seat is one of a conquest: what counts is survival.
func (s *Seat) Conquest() bool {
	return s.CompetitorState == "" && (s.LastHealth != nil || s.State != "" && s.State != "provisioning")
}

func (s *Seat) changeState(to string, ms uint64) {
	if s.State == "degraded" || s.State == "recovering" {
		s.DegradedMS += ms - min(ms, s.StateSinceMS)
	}
	switch {
	case to == "healthy" && (s.State == "recovering" || s.State == "degraded"):
		s.UptimeTicks++ // the tick whose probe ended the recovery counts
	case to == "degraded" && s.State == "healthy":
		s.UptimeTicks -= min(1, s.UptimeTicks)
	}
	if to != s.State {
		s.State, s.StateSinceMS = to, ms
	}
}

// bySurvival ranks a conquest's territories (recordings reference, section 4.7).
func bySurvival(a, b *Seat) int {
	gone := func(s *Seat) int {
		if s.State == "eliminated" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(gone(a), gone(b)),
		cmp.Compare(b.UptimeTicks, a.UptimeTicks),
		cmp.Compare(b.Resources, a.Resources),
		cmp.Compare(a.DegradedMS, b.DegradedMS),
	)
}
