package world

import "iter"

const chunkLen = 8

// List is an append-only sequence that is cheap to copy: copies share what they
// have in common, and changing one leaves the others as they are. The zero List
// is empty. A List is copied with clone, never by assignment alone.
type List[T any] struct {
	full   []*chunk[T] // all but the last chunk
	tail   *chunk[T]   // the last, with n - len(full)*chunkLen items
	n      int
	owner  *byte // who may change a chunk in place
	shared bool  // a copy sees the elements of full
}

type chunk[T any] struct {
	owner *byte
	items [chunkLen]T
}

// Len is the number of items.
func (l *List[T]) Len() int { return l.n }

// At returns item i, 0 ≤ i < Len.
func (l *List[T]) At(i int) T {
	if k := i / chunkLen; k < len(l.full) {
		return l.full[k].items[i%chunkLen]
	}
	return l.tail.items[i%chunkLen]
}

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

// clone is a copy. Neither may change in place what both have; only the original
// may go on appending to full in place, since the copy's ends where it is.
func (l *List[T]) clone() List[T] {
	if l.n == 0 {
		return List[T]{}
	}
	l.owner = nil
	l.shared = true
	c := *l
	c.full = l.full[:len(l.full):len(l.full)]
	return c
}

func (l *List[T]) push(item T) int {
	switch at := l.n - len(l.full)*chunkLen; {
	case l.tail == nil:
		l.tail = &chunk[T]{owner: l.own()}
	case at == chunkLen:
		l.full = append(l.full, l.tail)
		l.tail = &chunk[T]{owner: l.own()}
	}
	l.n++
	*l.edit(l.n - 1) = item
	return l.n - 1
}

// edit returns item i for changing.
func (l *List[T]) edit(i int) *T {
	owner := l.own()
	k := i / chunkLen
	if k == len(l.full) {
		if l.tail.owner != owner {
			l.tail = &chunk[T]{owner: owner, items: l.tail.items}
		}
		return &l.tail.items[i%chunkLen]
	}
	c := l.full[k]
	if c.owner != owner {
		c = &chunk[T]{owner: owner, items: c.items}
		if l.shared {
			l.full = append(make([]*chunk[T], 0, len(l.full)+8), l.full...)
			l.shared = false
		}
		l.full[k] = c
	}
	return &c.items[i%chunkLen]
}

func (l *List[T]) own() *byte {
	if l.owner == nil {
		l.owner = new(byte)
	}
	return l.owner
}
