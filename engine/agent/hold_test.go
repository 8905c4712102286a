package agent

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBoundsStandStillWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{}
		start := time.Now()
		var mu sync.Mutex // two are due at the same time
		fired := map[string]time.Duration{}
		bound := func(name string, d time.Duration) func() {
			return g.hold.after(d, func() {
				mu.Lock()
				defer mu.Unlock()
				fired[name] = time.Since(start)
			})
		}
		bound("before", time.Second)
		bound("over", 3*time.Second)
		stopped := bound("stopped", 3*time.Second)
		time.Sleep(2 * time.Second)
		g.Hold()
		g.Hold() // twice is once
		bound("within", time.Second)
		time.Sleep(time.Hour)
		stopped()
		g.Release()
		g.Release()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for name, want := range map[string]time.Duration{"before": time.Second, "over": time.Hour + 3*time.Second, "within": time.Hour + 3*time.Second} {
			if got, ok := fired[name]; !ok || got < want || got > want+time.Second {
				t.Errorf("%s: after %v, want %v", name, got, want)
			}
		}
		if _, ok := fired["stopped"]; ok {
			t.Error("a stopped one fired")
		}
	})
}
