package playback

import (
	"math/bits"
	"sort"
)

// Idle maps the heat's clock to a shorter one, in which gaps between events that
// are longer than a limit take only the limit. A gap's inside is played evenly.
type Idle struct {
	limit uint64
	gaps  []gap
}

// gap is a long stretch without events.
type gap struct {
	from, to uint64 // on the heat's clock
	short    uint64 // where it begins on the shorter one
}

// NewIdle builds the map from the clocks of n events, which must not go back. A
// limit of 0 cuts nothing.
func NewIdle(limitMS uint64, n int, ms func(i int) uint64) *Idle {
	m := &Idle{limit: limitMS}
	last, cut := uint64(0), uint64(0)
	for i := range n {
		at := ms(i)
		if limitMS > 0 && at > last && at-last > limitMS {
			m.gaps = append(m.gaps, gap{from: last, to: at, short: last - cut})
			cut += at - last - limitMS
		}
		last = max(last, at)
	}
	return m
}

// Short is where a place of the heat's clock is on the shorter one.
func (m *Idle) Short(ms uint64) uint64 { return m.short(ms) }

func (m *Idle) short(ms uint64) uint64 {
	i := sort.Search(len(m.gaps), func(i int) bool { return m.gaps[i].from > ms }) - 1
	if i < 0 {
		return ms
	}
	g := m.gaps[i]
	if ms < g.to {
		return g.short + scale(ms-g.from, m.limit, g.to-g.from)
	}
	return g.short + m.limit + (ms - g.to)
}

// real is the inverse of short, rounded down.
func (m *Idle) real(short uint64) uint64 {
	i := sort.Search(len(m.gaps), func(i int) bool { return m.gaps[i].short > short }) - 1
	if i < 0 {
		return short
	}
	g := m.gaps[i]
	if in := short - g.short; in < m.limit {
		return g.from + scale(in, g.to-g.from, m.limit)
	}
	past := short - g.short - m.limit
	if past > ^uint64(0)-g.to {
		return ^uint64(0)
	}
	return g.to + past
}

// scale is n × by / of, for n ≤ of, without overflow.
func scale(n, by, of uint64) uint64 {
	hi, lo := bits.Mul64(n, by)
	q, _ := bits.Div64(hi, lo, of)
	return q
}
