package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"refbox/vm"
)

// TestScale starts a thousand clusters in one process.
func TestScale(t *testing.T) {
	clusters := 1000
	if raceEnabled {
		clusters = 100
	}
	d := New(kvConfig())
	tmpl, err := d.Prepare(t.Context(), kvSpec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := heap()
	began := time.Now()
	all := make([]vm.Cluster, clusters)
	var wg sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range all {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c, err := d.Start(t.Context(), tmpl, vm.Start{Name: fmt.Sprint("seat-", i), Password: "pw"})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = c
		})
	}
	wg.Wait()
	started := time.Since(began)
	defer func() {
		for _, c := range all {
			if c != nil {
				wg.Go(func() { c.Close() })
			}
		}
		wg.Wait()
	}()
	if t.Failed() {
		return
	}
	each := (heap() - before) / uint64(clusters)
	t.Logf("%d clusters in %s, %d KiB each", clusters, started, each>>10)
	if each > 300<<10 && !raceEnabled {
		t.Errorf("an idle machine costs %d KiB, more than 300", each>>10)
	}
	for i, c := range all {
		h, err := c.Machine("host").Guest().Hello(t.Context())
		if err != nil || h.Hostname != fmt.Sprint("seat-", i) {
			t.Fatalf("%d: %+v %v", i, h, err)
		}
	}
}

// TestWedgedDelaysNobody: one wedged seat, a hundred that go on.
func TestWedgedDelaysNobody(t *testing.T) {
	d := New(kvConfig())
	wedged := begin(t, d, kvSpec(), vm.Start{Name: "wedged"}).Machine("host")
	release := d.Faults("wedged", "host").Wedge()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan error, 1)
	go func() { _, err := wedged.Guest().Hello(ctx); stuck <- err }()
	for i := range 100 {
		m := begin(t, d, kvSpec(), vm.Start{Name: fmt.Sprint("seat-", i)}).Machine("host")
		if _, err := m.Guest().Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-stuck:
		t.Fatalf("the wedged call ended: %v", err)
	default:
	}
	cancel()
	if err := <-stuck; !errors.Is(err, context.Canceled) || errors.Is(err, vm.ErrGuestLost) {
		t.Fatalf("the caller's own cancelling must not be the guest's fault: %v", err)
	}
}
