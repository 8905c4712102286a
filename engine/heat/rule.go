package heat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"refbox/engine/agent"
	"refbox/engine/canary"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/referee"
	"refbox/vm"
	"refbox/vm/fault"
)

// freezeTime bounds freezing and thawing one machine, before emulation's factor.
const freezeTime = 10 * time.Second

// paused is who paused the heat, and when.
type paused struct {
	author, reason string
	since          time.Time
}

// Rule does what a referee ruled. One ruling at a time is heard; each looks at the
// heat as the one before left it, so that two referees cannot both pause it.
func (h *Heat) Rule(ctx context.Context, author string, r control.Ruling) error {
	if err := r.Check(); err != nil {
		return err
	}
	if !h.enter() {
		return errNotRunning
	}
	defer h.desks.Done()
	author, r.Reason = words(author), words(r.Reason)
	if r.Reason == "" { // it was nothing but what cannot be shown
		return fmt.Errorf("%s needs a reason: it goes into the log", r.Action)
	}
	if r.Action == control.Void { // nor does an end wait for a pause that waits for checks
		return h.void(author, r.Reason)
	}
	if r.Action == control.InjectFault || r.Action == control.ClearFault { // each seat has its own, which may take a boot
		s, err := h.running(r.Territory)
		switch {
		case err != nil:
			return err
		case r.Action == control.ClearFault:
			return h.faults.Load().lift(ctx, author, r.Reason, s, string(r.Fault.Kind), r.Target)
		}
		return h.faults.Load().strike(ctx, author, r.Reason, s, r.Fault, r.By)
	}
	select {
	case h.hearing <- struct{}{}:
		defer func() { <-h.hearing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	race := h.contest()
	if race == nil {
		return errNotRunning
	}
	switch r.Action {
	case control.Pause:
		return h.pause(ctx, race, author, r.Reason)
	case control.Resume:
		return h.resume(race, author, r.Reason)
	case control.Extend:
		if err := race.Extend(r.By); err != nil {
			return err
		}
		return h.sayRunning(event.RefereeRuling{Ruling: event.RulingExtended, Author: author, Reason: r.Reason, ExtendMS: uint64(r.By.Milliseconds())})
	}
	does := map[control.Action]referee.Do{control.Unavailable: referee.Bench, control.Restore: referee.Restore,
		control.Revoke: referee.Revoke, control.Uphold: referee.Uphold}[r.Action]
	if does == "" {
		return fmt.Errorf("the desk has another call for %s", r.Action)
	}
	if h.seat(r.Territory) == nil {
		return fmt.Errorf("this heat has no seat %q; its seats are %s", words(r.Territory), h.seatNames())
	}
	return race.Order(ctx, r.Territory, referee.Order{Do: does, Milestone: r.Milestone, Author: author, Reason: r.Reason})
}

// sayRunning is Append while the race has no outcome; afterwards it is an error.
func (h *Heat) sayRunning(bodies ...event.Body) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.froze != nil {
		return referee.ErrOver
	}
	_, err := h.append(bodies...)
	return err
}

// void rules that the heat counts for nobody, and ends it when it runs.
func (h *Heat) void(author, reason string) error {
	h.mu.Lock()
	if v := h.rec.World().Voided; v != nil {
		h.mu.Unlock()
		return fmt.Errorf("%s voided the heat already: %s", v.Author, v.Reason)
	}
	if h.froze != nil {
		_, err := h.append(event.RefereeRuling{Ruling: event.RulingVoided, Author: author, Reason: reason})
		h.mu.Unlock()
		return err
	}
	h.mu.Unlock()
	return h.cut(ended{author: author, reason: reason, ruling: event.RulingVoided})
}

// pause holds the race, stops the clock and freezes every machine. Once nothing is
// under way any more it is done whole, or undone.
func (h *Heat) pause(ctx context.Context, race contest, author, reason string) error {
	if p := h.paused; p != nil {
		return fmt.Errorf("%s paused the heat already: %s", p.author, p.reason)
	}
	if err := race.Hold(ctx); err != nil {
		return err
	}
	h.canaries.each((*canary.Client).Hold)
	h.probes((*probe.Seat).Hold)
	h.watch.stop()
	h.gateways((*agent.Gateway).Hold)
	err := h.each(ctx, h.freeze)
	if err == nil {
		err = h.sayRunning(event.HeatPaused{Author: author, Reason: reason})
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("the heat is not paused: %w", err), h.each(ctx, h.thaw))
		h.gateways((*agent.Gateway).Release)
		h.probes((*probe.Seat).Release)
		h.watch.start()
		h.canaries.each((*canary.Client).Release)
		race.Release()
		return err
	}
	h.paused = &paused{author, reason, time.Now()}
	return nil
}

// resume thaws the machines and lets the race go on. A seat one of whose machines
// does not come back is out; the others are not held up for it.
func (h *Heat) resume(race contest, author, reason string) error {
	p := h.paused
	if p == nil {
		return errors.New("the heat is not paused")
	}
	if h.over() {
		return referee.ErrOver
	}
	h.each(context.Background(), func(m vm.Machine, ctx context.Context) error { //nolint:errcheck // each seat hears of its own
		err := h.thaw(m, ctx)
		if err != nil {
			race.Unavailable(h.seatOf(m).id(), "controller", "after a pause: "+words(err.Error()))
		}
		return err
	})
	h.gateways((*agent.Gateway).Release)
	h.paused = nil
	err := h.sayRunning(event.HeatResumed{Author: author, Reason: reason, PausedMS: uint64(time.Since(p.since).Milliseconds())})
	h.watch.start()
	h.probes((*probe.Seat).Release)
	h.canaries.each((*canary.Client).Release)
	race.Release()
	return err
}

func (h *Heat) probes(do func(*probe.Seat)) {
	for _, s := range h.seats {
		if s.failed == nil {
			do(s.probe)
		}
	}
}

func (h *Heat) gateways(do func(*agent.Gateway)) {
	for _, s := range h.seats {
		if s.failed == nil {
			do(s.gateway)
		}
	}
}

// freeze pauses a machine, unless a fault keeps it frozen.
func (h *Heat) freeze(m vm.Machine, ctx context.Context) error {
	if _, frozen := h.faults.Load().keeps(m, fault.Freeze); frozen {
		// One that was thawed, and could not be seen to be, runs.
		if p, err := m.Power(ctx); err == nil && p == vm.PowerPaused {
			return nil
		}
	}
	return m.Pause(ctx)
}

// thaw resumes a machine that is frozen, unless a fault keeps it so. A clock that a fault
// set is set again, since resuming puts it right.
func (h *Heat) thaw(m vm.Machine, ctx context.Context) error {
	f := h.faults.Load()
	if _, frozen := f.keeps(m, fault.Freeze); frozen {
		return nil
	}
	if p, err := m.Power(ctx); err != nil || p != vm.PowerPaused {
		return err
	}
	if err := m.Resume(ctx); err != nil {
		return err
	}
	if x, jumped := f.keeps(m, fault.ClockJump); jumped {
		return m.SetClock(ctx, time.Duration(x.fault.JumpMS)*time.Millisecond)
	}
	return nil
}

// each does something to every machine at the same time; one that is off, or gone,
// is left as it is. Whoever asked for it may leave: it is not left half done.
func (h *Heat) each(ctx context.Context, do func(vm.Machine, context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(float64(freezeTime)*h.slow))
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, s := range h.seats {
		if s.failed != nil {
			continue
		}
		for _, m := range s.cluster.Machines() {
			wg.Go(func() {
				err := do(m, ctx)
				if errors.Is(err, vm.ErrPower) {
					if p, perr := m.Power(ctx); perr == nil && (p == vm.PowerOff || p == vm.PowerGone) {
						return
					}
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("%s: %w", s.id(), err))
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Heat) seat(territory string) *seat {
	for _, s := range h.seats {
		if s.id() == territory {
			return s
		}
	}
	return nil
}

func (h *Heat) seatOf(m vm.Machine) *seat {
	for _, s := range h.seats {
		if s.cluster != nil && s.cluster.Machine(m.Name()) == m {
			return s
		}
	}
	return nil
}

func (h *Heat) seatNames() string {
	var names []string
	for _, s := range h.seats {
		names = append(names, s.id())
	}
	return strings.Join(names, ", ")
}
