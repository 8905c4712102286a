package heat

import (
	"sync"
	"time"
)

// stopwatch is the heat's clock: 0 until it starts, and still while it is stopped.
type stopwatch struct {
	mu    sync.Mutex
	since time.Time // of the stretch that runs; zero when none does
	past  time.Duration
}

// ms is the time that it has run.
func (s *stopwatch) ms() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.past
	if !s.since.IsZero() {
		d += time.Since(s.since)
	}
	return uint64(d.Milliseconds())
}

func (s *stopwatch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

func (s *stopwatch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.past += time.Since(s.since)
		s.since = time.Time{}
	}
}
