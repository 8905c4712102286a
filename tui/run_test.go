package tui

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// The whole program on a pipe: it leaves at q, and everything that it started
// has ended (TestMain looks for goroutines). What it writes beside frames is the
// few modes of a full-screen program.
func TestWatchLeavesNothing(t *testing.T) {
	rec, err := recording.Open(demoHeat(t))
	if err != nil {
		t.Fatal(err)
	}
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer keys.Close()
	var out lockedBuffer
	cfg := Config{Keys: keymap.Default(), Output: canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}}
	done := make(chan error, 1)
	go func() {
		_, err := Watch(context.Background(), cfg, rec, Desk{}, in, &out)
		done <- err
	}()
	if _, err := keys.WriteString(".ww\tq"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rest := regexp.MustCompile(`\x1b\[[0-9;]*[mHKJABCD]|\x1b\[\?(25|1049|2004|1002|1003|1006)[hl]`).ReplaceAllString(out.String(), "")
	rest = strings.ReplaceAll(rest, "\x1b]2;refbox\x07", "")
	if i := strings.IndexByte(rest, 0x1b); i >= 0 {
		t.Fatalf("a sequence that is not a full-screen program's: %q", rest[i:min(len(rest), i+40)])
	}
}

// Ending the context ends the program, and says so.
func TestWatchEndsWithItsContext(t *testing.T) {
	rec, err := recording.Open(demoHeat(t))
	if err != nil {
		t.Fatal(err)
	}
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer keys.Close()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out lockedBuffer
	_, err = Watch(ctx, Config{Keys: keymap.Default()}, rec, Desk{}, in, &out)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
