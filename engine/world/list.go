package world

import "iter"

const chunkLen = 32

// List is an append-only sequence that is cheap to copy: copies share what they
// have in common, and changing one leaves the others as they are. The zero List
// is empty. A List is copied with clone, never by assignment alone.
type List[T any] struct {
	chunks []*chunk[T]
	n      int
	owner  *byte // who may change a chunk in place
	shared bool  // chunks itself is shared with a copy
}

type chunk[T any] struct {
	owner *byte
	items [chunkLen]T
}

// Len is the number of items.
func (l *List[T]) Len() int { return l.n }

// At returns item i, 0 ≤ i < Len.
func (l *List[T]) At(i int) T { return l.chunks[i/chunkLen].items[i%chunkLen] }

// Last returns the last item; false when there is none.
func (l *List[T]) Last() (item T, ok bool) {
	if l.n == 0 {
		return item, false
	}
	return l.At(l.n - 1), true
}

// All goes through the items in order.
func (l *List[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := range l.n {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// Slice copies the items from to to (excluded).
func (l *List[T]) Slice(from, to int) []T {
	out := make([]T, 0, max(0, to-from))
	for i := from; i < to; i++ {
		out = append(out, l.At(i))
	}
	return out
}

func (l *List[T]) clone() List[T] {
	if l.n == 0 {
		return List[T]{}
	}
	l.owner = nil // neither may change in place what both have
	l.shared = true
	return *l
}

func (l *List[T]) push(item T) int {
	l.own()
	if l.n == len(l.chunks)*chunkLen {
		l.chunks = append(l.chunks, &chunk[T]{owner: l.owner})
	}
	l.n++
	*l.edit(l.n - 1) = item
	return l.n - 1
}

// edit returns item i for changing.
func (l *List[T]) edit(i int) *T {
	l.own()
	c := l.chunks[i/chunkLen]
	if c.owner != l.owner {
		c = &chunk[T]{owner: l.owner, items: c.items}
		l.chunks[i/chunkLen] = c
	}
	return &c.items[i%chunkLen]
}

func (l *List[T]) own() {
	if l.owner == nil {
		l.owner = new(byte)
	}
	if l.shared {
		l.chunks = append(make([]*chunk[T], 0, len(l.chunks)+1), l.chunks...)
		l.shared = false
	}
}
