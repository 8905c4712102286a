package tui

import (
	"fmt"

	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// ghost is another heat, whole, that is shown behind this one on one clock.
type ghost struct {
	name string
	end  uint64
	side playback.Side

	of    *foldKey // what lanes were made from
	lanes []playback.Lane
}

// foldKey tells one fold of a log from another.
type foldKey struct{ index, restarts int }

// newGhost folds a recording that was read to its end; it is not kept.
func newGhost(rec *recording.Recording) *ghost {
	w := rec.World(rec.Len())
	return &ghost{name: rec.Name(), end: max(rec.Head(), w.ElapsedMS), side: playback.Side{World: w, Manifest: rec.Manifest()}}
}

// rivals are the seats beside the ghost's, as of the playhead on this side.
func (h *heat) rivals() []playback.Lane {
	g := h.ghost
	key := foldKey{h.index, h.restarts}
	if g.of == nil || *g.of != key {
		g.of, g.lanes = &key, playback.Compare(playback.Side{World: h.world, Manifest: h.manifest}, g.side)
	}
	return g.lanes
}

// splitText is a split in at most five cells: −3.2 is 3.2 s earlier than the ghost.
func splitText(ms int64) string {
	sign, abs := "+", ms
	if ms < 0 {
		sign, abs = "−", -ms
	}
	switch s := float64(abs) / 1000; {
	case s < 99.95:
		return fmt.Sprintf("%s%.1f", sign, s)
	case s < 9999:
		return fmt.Sprintf("%s%.0f", sign, s)
	}
	return sign + "2h+"
}

func splitStyle(ms int64) canvas.Style {
	switch {
	case ms < 0:
		return canvas.Fg(canvas.Ok)
	case ms > 0:
		return canvas.Fg(canvas.Bad)
	}
	return canvas.Fg(canvas.Text)
}

// drawGhost draws the ghost's passes below a seat's lane: what it had done by the
// playhead, then faintly what it did later; beside a pass the seat's split, once
// both have it. The split of the furthest milestone stands at the right.
func (h *heat) drawGhost(c canvas.Canvas, y, names, left, right int, lane playback.Lane, end uint64) {
	w, _ := c.Size()
	dim := canvas.Fg(canvas.Dim)
	if lane.Against == nil {
		c.PutFit(1, y, w-2, "nobody to run against", dim)
		return
	}
	c.PutFit(1, y, names, "/ "+h.ghostName(lane), dim)
	strip := c.Sub(canvas.Rect{X: left, Y: y, W: right - left, H: 1})
	room := right - left
	marks := map[int]bool{}
	for _, s := range lane.Splits {
		if s.AgainstMS == nil {
			continue
		}
		x := column(*s.AgainstMS, end, room)
		marks[x] = true
		sign := '○'
		if s.Milestone == playback.Durable {
			sign = '☆'
		}
		st := dim
		if *s.AgainstMS <= h.now {
			st = canvas.Fg(canvas.Text)
		}
		strip.Set(x, 0, sign, st)
	}
	var last *int64
	free := 0
	for _, s := range lane.Splits {
		if s.DeltaMS == nil || *s.AgainstMS > h.now || s.Milestone == playback.Durable {
			continue
		}
		last = s.DeltaMS
		label := splitText(*s.DeltaMS)
		x := column(*s.AgainstMS, end, room) + 1
		fits := x >= free && x+text.Width(label) <= room
		for i := x; i < x+text.Width(label)+1; i++ {
			fits = fits && !marks[i]
		}
		if fits {
			free = strip.Put(x, 0, label, splitStyle(*s.DeltaMS)) + 1
		}
	}
	if last != nil {
		c.PutRight(w-1, y, 5, splitText(*last), splitStyle(*last))
	}
}

// ghostName is who runs against a seat: the model where it is known, since the
// territory mostly is the same.
func (h *heat) ghostName(l playback.Lane) string {
	if l.Against.Territory != l.Seat.Territory {
		return l.Against.Territory
	}
	if m := modelName(l.Against.Model); m != "" {
		return m
	}
	return l.Against.Territory
}
