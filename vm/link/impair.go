package link

import (
	"math/rand/v2"
	"time"

	"refbox/vm"
)

// way is one direction between two ports, by name: a port that is plugged in
// anew finds what was said of it before.
type way struct{ from, to string }

// Impair replaces what happens to the frames that one port sends another; the
// zero Impairment is none. Frames under way keep the delay that they entered with.
func (h *Hub) Impair(from, to string, i vm.Impairment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i == (vm.Impairment{}) {
		delete(h.ways, way{from, to})
		return
	}
	h.ways[way{from, to}] = i
}

// frame is what waits for a port.
type frame struct {
	wire []byte
	due  time.Time // zero: at once
}

// pass is the frame as it goes one way, or false when it is lost.
func pass(i vm.Impairment, wire []byte) (frame, bool) {
	if i.Drop || i.Loss > 0 && rand.Float64() < i.Loss {
		return frame{}, false
	}
	f := frame{wire: wire}
	if i.Delay > 0 {
		f.due = time.Now().Add(i.Delay)
	}
	return f, true
}
