package term

import "refbox/tui/canvas"

// history is a ring of at most Scrollback lines.
type history struct {
	ring  []*line
	start int // of the oldest, once the ring is full
}

func (h *history) len() int { return len(h.ring) }

// at returns line i, 0 being the oldest.
func (h *history) at(i int) *line { return h.ring[(h.start+i)%len(h.ring)] }

func (h *history) clone() history {
	return history{append([]*line(nil), h.ring...), h.start}
}

// push keeps what l shows now; l itself stays the caller's if it is t's own.
func (h *history) push(t *Term, l *line) {
	full := len(h.ring) >= Scrollback
	kept := l // a line of nobody is never written again
	if l.owner == t.own {
		kept = nil
		if full {
			if old := h.ring[h.start]; old.owner == t.own && cap(old.cells) >= l.used && cap(old.cells) <= 2*l.used+32 {
				kept = old
				kept.cells = kept.cells[:l.used]
			}
		}
		if kept == nil {
			kept = &line{cells: make([]canvas.Cell, l.used), owner: t.own}
		}
		kept.used = copy(kept.cells, l.cells[:l.used])
	}
	if !full {
		h.ring = append(h.ring, kept)
		return
	}
	h.ring[h.start] = kept
	h.start = (h.start + 1) % len(h.ring)
}
