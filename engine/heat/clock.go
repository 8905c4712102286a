package heat

import (
	"context"
	"sync"
	"time"
)

// stopwatch is the heat's clock: 0 until it starts, and still while it is stopped.
type stopwatch struct {
	mu    sync.Mutex
	since time.Time // of the stretch that runs; zero when none does
	past  time.Duration
	news  chan struct{} // closed, and made anew, when it starts or stops; nil for nobody waits
}

// await waits until it shows ms, or ctx ends. It may stand still meanwhile.
func (s *stopwatch) await(ctx context.Context, ms uint64) error {
	for {
		s.mu.Lock()
		if s.news == nil {
			s.news = make(chan struct{})
		}
		news, runs, past := s.news, !s.since.IsZero(), s.past
		if runs {
			past += time.Since(s.since)
		}
		s.mu.Unlock()
		left := time.Duration(ms)*time.Millisecond - past
		if left <= 0 {
			return ctx.Err()
		}
		var due <-chan time.Time
		if runs {
			t := time.NewTimer(left)
			defer t.Stop()
			due = t.C
		}
		select {
		case <-due:
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// goOn waits until it has gone on by d, or ctx ends.
func (s *stopwatch) goOn(ctx context.Context, d time.Duration) error {
	return s.await(ctx, s.ms()+uint64(d.Milliseconds()))
}

// tell wakes who awaits; mu is held.
func (s *stopwatch) tell() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
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
		s.tell()
	}
}

func (s *stopwatch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.past += time.Since(s.since)
		s.since = time.Time{}
		s.tell()
	}
}
