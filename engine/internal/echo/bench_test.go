package echo

import (
	"bytes"
	"testing"
)

// What a player can make dearest: lines of one letter waiting, and a guest that
// prints that letter in small pieces.
func BenchmarkHostile(b *testing.B) {
	line := append(bytes.Repeat([]byte("a"), patience/2), '\r')
	piece := bytes.Repeat([]byte("a"), 16)
	b.SetBytes(patience)
	for b.Loop() {
		var i Input
		for range maxWaiting {
			i.Typed(line)
		}
		for range patience / len(piece) {
			i.Printed(piece)
		}
	}
}
