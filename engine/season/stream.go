package season

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

// stream is the public generator of draws: SplitMix64, seeded with a text
// (seasons reference, section 1.3). Equal texts give equal streams, on every
// machine and in every version: published draws rest on it.
type stream struct{ state uint64 }

func newStream(seed string) *stream {
	sum := sha256.Sum256([]byte(seed))
	return &stream{binary.LittleEndian.Uint64(sum[:8])}
}

func (s *stream) next() uint64 {
	s.state += 0x9E3779B97F4A7C15
	z := s.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below is a fair number in [0, n); n > 0.
func (s *stream) below(n int) int {
	m := uint64(n)
	limit := math.MaxUint64 - math.MaxUint64%m
	for {
		if v := s.next(); v < limit {
			return int(v % m)
		}
	}
}

func shuffle[T any](s *stream, list []T) {
	for i := len(list) - 1; i > 0; i-- {
		j := s.below(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// The streams of a week, from its draw seed D: D itself for the arenas and the
// first round, and these.
func entrantsStream(d string) *stream { return newStream(d + "/entrants") }

// roundsStream seats the second round and later ones. Its first value is the
// first round's, and thrown away (section 1.6).
func roundsStream(d string) *stream {
	s := newStream(d + "/rounds")
	s.next()
	return s
}

func wildcardsStream(d string, round int) *stream {
	return newStream(fmt.Sprintf("%s/wildcards/round-%d", d, round))
}
