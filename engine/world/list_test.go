package world

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestListCopiesAreIndependent does the same to lists and to plain slices.
func TestListCopiesAreIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lists := []*List[int]{{}}
		models := [][]int{nil}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			k := rapid.IntRange(0, len(lists)-1).Draw(rt, "which")
			switch rapid.IntRange(0, 5).Draw(rt, "do") {
			case 0:
				if len(lists) < 8 {
					c := lists[k].clone()
					lists, models = append(lists, &c), append(models, slices.Clone(models[k]))
				}
			case 1, 2:
				if n := len(models[k]); n > 0 {
					i, v := rapid.IntRange(0, n-1).Draw(rt, "i"), rapid.Int().Draw(rt, "v")
					*lists[k].edit(i) = v
					models[k][i] = v
				}
			default:
				for range rapid.IntRange(1, 20).Draw(rt, "many") {
					v := rapid.Int().Draw(rt, "v")
					if at := lists[k].push(v); at != len(models[k]) {
						rt.Fatalf("pushed at %d", at)
					}
					models[k] = append(models[k], v)
				}
			}
			for i := range lists {
				if got := lists[i].Slice(0, lists[i].Len()); !slices.Equal(got, models[i]) {
					rt.Fatalf("list %d is %v, want %v", i, got, models[i])
				}
			}
		}
	})
}
