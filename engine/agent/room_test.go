package agent

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// A program's files are kept as long as its seat has room; without it the program
// ends as it would have.
func TestCommandFilesNeedRoom(t *testing.T) {
	for _, tc := range []struct {
		room int64
		kept bool
	}{{100 << 10, true}, {20 << 10, false}} {
		seat, _ := commandSeat(t)
		left := atomic.Int64{}
		left.Store(tc.room)
		seat.Room = func(n int) bool { return left.Add(-int64(n)) >= 0 }
		text := "head -c 30000 /dev/zero | tr '\\0' x >transcript.jsonl\n" + result("completed")
		r, err := Run(context.Background(), CommandPlayer(Command{Argv: []string{script(t, text)}}), seat, &heard{})
		if err != nil || r.Status != Completed || (r.Transcript == "transcript.json") != tc.kept {
			t.Errorf("room for %d: %+v, %v", tc.room, r, err)
		}
		if _, err := os.Stat(filepath.Join(seat.Dir, "transcript.json")); (err == nil) != tc.kept {
			t.Errorf("room for %d: %v", tc.room, err)
		}
		if used := tc.room - left.Load(); tc.kept && used > 35<<10 {
			t.Errorf("%d bytes were taken", used)
		}
	}
}
