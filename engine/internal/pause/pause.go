// Package pause waits between two tries, for no longer than they are wanted.
package pause

import (
	"context"
	"time"
)

// For waits for d, and says whether ctx let it.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
