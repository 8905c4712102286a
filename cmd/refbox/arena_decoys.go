package main

import (
	"fmt"

	"refbox/engine/playback"
	"refbox/engine/world"
)

// decoyLines are the marks of a seat whose player used planted decoys, for under its
// line in the standings.
func decoyLines(s *world.Seat) []string {
	var out []string
	for i := range s.Decoys.Len() {
		d := s.Decoys.At(i)
		out = append(out, fmt.Sprintf("   ! decoy %s used at %s: %s", d.Decoy, playback.Format(d.MS), d.Detail))
	}
	return out
}
