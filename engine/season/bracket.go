package season

import (
	"fmt"
	"maps"
	"slices"

	"refbox/engine/text"
)

// Bounds of what is drawn. They keep hostile documents from costing more than a
// moment.
const (
	maxEntrants = 100_000
	maxHeatSize = 240
)

// Shape is the bracket for a field: every round after the first is a whole number
// of heats, and the last is one heat (seasons reference, section 1.5).
func Shape(field, size int) ([]Stage, error) {
	switch {
	case size < 2 || size > maxHeatSize:
		return nil, fmt.Errorf("a heat has 2 to %d seats, not %d", maxHeatSize, size)
	case field < size:
		return nil, fmt.Errorf("%s cannot fill a heat of %d", text.Count(field, "entrant"), size)
	case field > maxEntrants:
		return nil, fmt.Errorf("%s are more than %d", text.Count(field, "entrant"), maxEntrants)
	}
	var shape []Stage
	for round := 1; ; round++ {
		s := Stage{Round: round, Field: field, Heats: field / size, Byes: field % size}
		if s.Heats == 1 && s.Byes == 0 {
			return append(shape, s), nil
		}
		advancing := s.Heats + s.Byes
		if advancing < size {
			s.Wildcards = size - advancing
		} else {
			s.Wildcards = (size - advancing%size) % size
		}
		if s.Wildcards > s.Heats*(size-1) {
			return nil, fmt.Errorf("round %d would need %d wildcards from %d heats of %d", round, s.Wildcards, s.Heats, size)
		}
		shape = append(shape, s)
		field = advancing + s.Wildcards
	}
}

// seat fills a round's heats from a list that has been shuffled: consecutive
// chunks, each seated on its own shuffle of the territories; what is left over
// has a bye (section 1.4).
func seat(s *stream, round int, order []string, territories []string) Seating {
	size := len(territories)
	out := Seating{Round: round, Heats: []Pairing{}, Byes: []string{}}
	for len(order) >= size {
		places := slices.Clone(territories)
		shuffle(s, places)
		p := Pairing{Heat: len(out.Heats) + 1, Seats: make(map[string]string, size)}
		for k, t := range places {
			p.Seats[t] = order[k]
		}
		out.Heats = append(out.Heats, p)
		order = order[size:]
	}
	out.Byes = append(out.Byes, order...)
	return out
}

// Seater seats the rounds after the first, one after the other, from the results
// of the round before. It is a replay of one stream, so a resumed week gets the
// same seats.
type Seater struct{ s *stream }

// NewSeater begins at round 2 of the week with a draw seed.
func NewSeater(drawSeed string) *Seater { return &Seater{roundsStream(drawSeed)} }

// Seat seats the next round: the field is the winners of the round before in the
// order of its heats, its byes, its wildcards.
func (x *Seater) Seat(round int, field, territories []string) Seating {
	order := slices.Clone(field)
	shuffle(x.s, order)
	return seat(x.s, round, order, territories)
}

// Field is who goes on from a finished round: its winners in the order of its
// heats, its byes, its wildcards.
func (r *Round) Field() []string {
	var field []string
	for _, h := range r.Heats {
		if h.Winner != nil {
			field = append(field, *h.Winner)
		}
	}
	return slices.Concat(field, r.Byes, r.Wildcards)
}

func sameSeats(a, b map[string]string) bool { return maps.Equal(a, b) }
