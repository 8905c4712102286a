package drill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Figures are what heats of one arena say of a recovery time together.
type Figures struct {
	Arena    string `json:"arena"`
	Finished int    `json:"finished"`
	Censored int    `json:"censored"`
	Failed   int    `json:"failed"`
	MinMS    *int64 `json:"min_ms"`
	// MedianMS is Kaplan and Meier's; null with fewer than five finishes, or when fewer
	// than half of all would have finished.
	MedianMS *int64 `json:"median_ms"`
}

// fewest finishes of which a median is told.
const fewest = 5

// Sum sums measures up, arena by arena, in the order in which they come first.
func Sum(list []Measure) []Figures {
	out := []Figures{}
	seats := map[string][]Seat{}
	for _, m := range list {
		i := slices.IndexFunc(out, func(f Figures) bool { return f.Arena == m.Arena })
		if i < 0 {
			i = len(out)
			out = append(out, Figures{Arena: m.Arena})
		}
		f := &out[i]
		for _, s := range m.Seats {
			seats[m.Arena] = append(seats[m.Arena], s)
			switch s.Outcome {
			case Passed:
				f.Finished++
				if f.MinMS == nil || s.MS < *f.MinMS {
					f.MinMS = &s.MS
				}
			case Failed:
				f.Failed++
			default:
				f.Censored++
			}
		}
	}
	for i := range out {
		if f := &out[i]; f.Finished >= fewest {
			f.MedianMS = median(seats[f.Arena])
		}
	}
	return out
}

// median is the first time at which half of the seats would have finished, by the
// product-limit estimate: a seat that did not finish counts for as long as it tried.
func median(seats []Seat) *int64 {
	list := slices.Clone(seats)
	slices.SortFunc(list, func(a, b Seat) int { return cmp.Compare(a.MS, b.MS) })
	left, alive := 1.0, len(list)
	for i := 0; i < len(list); {
		ms, at, done := list[i].MS, 0, 0
		for ; i < len(list) && list[i].MS == ms; i++ {
			at++
			if list[i].Outcome == Passed {
				done++
			}
		}
		if done > 0 {
			if left *= 1 - float64(done)/float64(alive); left <= 0.5+1e-12 {
				return &ms
			}
		}
		alive -= at
	}
	return nil
}

// String says the figures with what they are worth.
func (f Figures) String() string {
	parts := []string{fmt.Sprintf("%d finished", f.Finished), fmt.Sprintf("%d censored", f.Censored)}
	if f.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", f.Failed))
	}
	if f.MinMS != nil {
		parts = append(parts, fmt.Sprintf("shortest %d ms", *f.MinMS))
	}
	switch {
	case f.MedianMS != nil:
		parts = append(parts, fmt.Sprintf("median %d ms (Kaplan and Meier)", *f.MedianMS))
	case f.Finished >= fewest:
		parts = append(parts, "no median: fewer than half would have finished")
	case f.Finished > 0:
		parts = append(parts, fmt.Sprintf("no median of fewer than %d finishes", fewest))
	}
	out := f.Arena + ": " + strings.Join(parts, ", ")
	if f.Censored > 0 && f.Finished > 0 {
		out += "; winners of a race are its shortest times, so this is biased low"
	}
	return out
}
