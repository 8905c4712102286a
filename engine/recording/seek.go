package recording

import (
	"sort"

	"refbox/engine/event"
	"refbox/engine/world"
)

const (
	keyEvents = 512       // events between two keyframes
	keyBytes  = 256 << 10 // and bytes
	keyBudget = 48 << 20  // bytes that keyframes may take; beyond it every other one goes
)

// seeker finds the world after any number of events: the fold from the keyframe
// before it.
type seeker struct {
	frames []keyframe
	stride int // keyframes are this many times as far apart as at first
	weight int

	near   *world.World // the world found last, and the copy of it that callers have
	given  *world.World
	nearAt int
	fold   event.Decoder
}

type keyframe struct {
	n     int // events folded
	end   int64
	world *world.World
}

func (s *seeker) start() {
	s.stride = 1
	s.frames = []keyframe{{0, 0, world.New()}}
}

// mark keeps a keyframe when it is time for one.
func (s *seeker) mark(w *world.World, n int, end int64) {
	last := &s.frames[len(s.frames)-1]
	if n-last.n < keyEvents*s.stride && end-last.end < keyBytes*int64(s.stride) {
		return
	}
	s.frames = append(s.frames, keyframe{n, end, w.Clone()})
	if s.weight += w.Weight(); s.weight < keyBudget {
		return
	}
	kept := s.frames[:1]
	s.weight = 0
	for i := 2; i < len(s.frames); i += 2 {
		kept = append(kept, s.frames[i])
		s.weight += s.frames[i].world.Weight()
	}
	clear(s.frames[len(kept):])
	s.frames = kept
	s.stride *= 2
}

func (r *Recording) worldAt(n int) *world.World {
	if n == len(r.offsets) {
		if r.shown == nil {
			r.shown = r.head.Clone()
		}
		return r.shown
	}
	if r.given != nil && r.nearAt == n {
		return r.given
	}
	k := sort.Search(len(r.frames), func(i int) bool { return r.frames[i].n > n }) - 1
	from, w := r.frames[k].n, r.frames[k].world
	if r.near != nil && r.nearAt <= n && r.nearAt >= from {
		from, w = r.nearAt, r.near
	}
	w = w.Clone()
	err := r.eachLine(from, n, func(line []byte) bool {
		if e, err := r.fold.Decode(line); err == nil {
			world.Apply(w, e)
		}
		return true
	})
	if err != nil {
		return w // as far as it could be read; the next look tries again
	}
	r.near, r.nearAt, r.given = w, n, w.Clone()
	return r.given
}
