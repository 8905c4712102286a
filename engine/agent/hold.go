package agent

import (
	"sync"
	"time"
)

// hold is a clock that stands still while the gateway's machines are frozen, so
// that no bound on their answers runs out meanwhile. The zero hold runs.
type hold struct {
	mu   sync.Mutex
	at   time.Time // since when it stands; zero when it runs
	past time.Duration
}

// Hold says that the machines are frozen: what waits for one waits for as long as
// that lasts. Release says that they run again.
func (g *Gateway) Hold() { g.hold.stop() }

// Release ends what Hold began.
func (g *Gateway) Release() { g.hold.start() }

func (h *hold) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() {
		h.at = time.Now()
	}
}

func (h *hold) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() {
		h.past += time.Since(h.at)
		h.at = time.Time{}
	}
}

// now is a time of which differences count; held tells whether it stands.
func (h *hold) now() (t time.Time, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() {
		return h.at.Add(-h.past), true
	}
	return time.Now().Add(-h.past), false
}

// after calls f once d has passed on the clock, unless stop is called before. As
// with time.AfterFunc f may run while stop returns.
func (h *hold) after(d time.Duration, f func()) (stop func()) {
	from, _ := h.now()
	var mu sync.Mutex
	var t *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(d, func() {
		now, held := h.now()
		left := d - now.Sub(from)
		if held {
			left = max(left, time.Second)
		}
		if left <= 0 {
			f()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			t.Reset(left)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		t.Stop()
	}
}
