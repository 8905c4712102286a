package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"refbox/vm"
)

// Faults makes the host of one machine misbehave, for tests: mostly the referee's
// channel, that is vm.Guest calls.
type Faults struct {
	mu     sync.Mutex
	fail   func(error)
	flakes int
	delay  time.Duration
	wedged chan struct{} // nil: not wedged; closed by release
}

// Faults is the switchboard of the machine of that name in every cluster that
// is started as start (vm.Start.Name). It may be asked for before the start.
func (d *Driver) Faults(start, machine string) *Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [2]string{start, machine}
	f := d.faults[key]
	if f == nil {
		f = &Faults{}
		d.faults[key] = f
	}
	return f
}

// Flake makes the next n calls fail with vm.ErrTransport, before the guest has
// seen them.
func (f *Faults) Flake(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flakes = n
}

// Delay holds every later call up for that long.
func (f *Faults) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// Wedge makes every call hang until its context ends, when it fails with
// vm.ErrGuestLost, or until release is called, when it goes on.
func (f *Faults) Wedge() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wedged == nil {
		f.wedged = make(chan struct{})
	}
	mine := f.wedged
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.wedged == mine {
			close(mine)
			f.wedged = nil
		}
	}
}

// Fail ends the machine for good, as a host does that cannot go on with it (see
// vm.Machine.Err). The machine must have been started.
func (f *Faults) Fail(err error) {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	fail(err)
}

// apply does to a call what the switches say.
func (f *Faults) apply(ctx context.Context) error {
	f.mu.Lock()
	delay, wedged := f.delay, f.wedged
	if f.flakes > 0 {
		f.flakes--
		f.mu.Unlock()
		return fmt.Errorf("%w: injected", vm.ErrTransport)
	}
	f.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if wedged != nil {
		select {
		case <-wedged:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
