package heat

import (
	"context"
	"fmt"

	"refbox/engine/referee"
	"refbox/vm/fault"
)

// halts says that a machine does not run while a fault of the kind is on it.
func halts(k fault.Kind) bool { return k == fault.Freeze || k.Boots() }

// halting is another fault by which a machine that x needs does not run; nil when there
// is none. f.mu is held.
func (f *faults) halting(x *onSeat) *onSeat {
	for _, o := range f.on {
		if o != x && o.seat == x.seat && halts(o.fault.Kind) && (o.fault.Machine == x.fault.Machine || o.fault.Machine == x.fault.Peer) {
			return o
		}
	}
	return nil
}

// awaitRunning waits, if not for ever, until no other fault keeps what x needs from
// running: what is off can't be mended.
func (f *faults) awaitRunning(ctx context.Context, x *onSeat) {
	if halts(x.fault.Kind) {
		return // it is what the others wait for
	}
	ctx, cancel := context.WithTimeout(ctx, injectTime)
	defer cancel()
	for {
		f.mu.Lock()
		o := f.halting(x)
		f.mu.Unlock()
		if o == nil {
			return
		}
		select {
		case <-o.undo:
		case <-ctx.Done():
			return
		}
	}
}

// spoiling is another fault that would end x, or that x would end, without anybody's
// clearing it: the log would say of one that it lasts which does not. nil when there is
// none. f.mu is held.
func (f *faults) spoiling(x *onSeat) *onSeat {
	for _, o := range f.on {
		if o.seat == x.seat && o.fault.Machine == x.fault.Machine && (x.fault.Kind.Undoes(o.fault.Kind) || o.fault.Kind.Undoes(x.fault.Kind)) {
			return o
		}
	}
	return nil
}

// claim makes a fault the only one of its kind on its target, of a machine that runs, and
// on which nothing is that either would undo. A scheduled one waits for that.
func (f *faults) claim(ctx context.Context, x *onSeat, wait bool) error {
	for {
		f.mu.Lock()
		was := f.on[x.id]
		if was == nil {
			was = f.halting(x)
		}
		if was == nil {
			was = f.spoiling(x)
		}
		switch {
		case f.over:
			f.mu.Unlock()
			return referee.ErrOver
		case was == nil:
			f.on[x.id] = x
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		if !wait {
			return fmt.Errorf("%s has a %s on %s already: clear it first", x.id.territory, was.id.kind, was.id.target)
		}
		select {
		case <-was.undo:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
