package tui

import (
	"context"
	"strings"
	"testing"
)

// What is to be said once the heat has ended is said when it has, and not before.
func TestLater(t *testing.T) {
	ended := make(chan struct{})
	x := startTape(t, demoArena())
	x.begin()
	d := watchOf(t, x.dir, 80, 24, plainOutput(), Desk{Later: func(ctx context.Context) string {
		select {
		case <-ended:
			return "3 pieces of evidence"
		case <-ctx.Done():
			return ""
		}
	}})
	if strings.Contains(d.text(), "evidence") {
		t.Errorf("said too soon:\n%s", d.text())
	}
	close(ended)
	d.until("the notice", func() bool { return strings.Contains(d.text(), "3 pieces of evidence") })
}
