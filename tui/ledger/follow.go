package ledger

import (
	"sync/atomic"

	"refbox/engine/ledger"
	"refbox/tui/view"
)

// reading is the ledger as it was last understood. It never changes; a newer one
// takes its place.
type reading struct {
	ledger  *ledger.Ledger
	picture *ledger.Picture
	// trouble is why the files could not be read since; "" when what is shown is
	// what they say.
	trouble string
}

func load(src Source) (*reading, error) {
	l, set, err := src.Load()
	if err != nil {
		return nil, err
	}
	return &reading{ledger: l, picture: l.Derive(set)}, nil
}

// follow follows the files of what was read first.
func follow(src Source, first *reading) *view.Follower[*reading] {
	var last atomic.Pointer[reading]
	last.Store(first)
	return view.NewFollower(view.Followed[*reading]{
		Paths: func() []string { return last.Load().ledger.Files() },
		Read: func(bool) (*reading, error) {
			r, err := load(src)
			if err == nil {
				last.Store(r)
			}
			return r, err
		},
	})
}
