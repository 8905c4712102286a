package referee

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"refbox/engine/event"
)

// Fault is a fault that is put on a seat, as far as the race goes.
//
// What it costs is not the seat's to pay:
//
//   - A fault begins between two checks of its seat, and none begins until it was
//     confirmed. While it is on the seat, a check that disturbs it (an attack, a
//     reboot) does not begin.
//   - What fails while a fault is on the seat, or came or went, is not charged to the
//     player but to Source, and takes no credit away.
//   - The time of one that no other seat has (Alone) is credited whole and for good: the
//     seat's clock stands still from its injection to its clearing. A fault that all
//     seats have is part of what they race at, and credited to none.
type Fault struct {
	Name   string   // of the schedule; "" for a referee's
	Source string   // "arena" for a scheduled one, "controller" for a referee's
	Alone  bool     // no other seat has it
	Proves []string // milestones that are evaluated only once it was confirmed
}

// Struck is a fault on a seat. Exactly one of Confirmed and Failed is called, and after
// Confirmed, Cleared.
type Struck struct {
	Fault
	s     *seat
	ended func() // the credit's
}

// hurts are a seat's faults. Its methods may be called from any goroutine.
type hurts struct {
	busy chan struct{} // holds a token while a check, or an injection, is under way

	mu     sync.Mutex
	on     map[*Struck]bool
	moved  uint64          // how many came or went
	bit    map[string]bool // schedules' faults that were confirmed
	void   map[string]bool // milestones
	source string          // of the latest
}

func newHurts() *hurts {
	return &hurts{busy: make(chan struct{}, 1), on: map[*Struck]bool{}, bit: map[string]bool{}, void: map[string]bool{}}
}

// watch begins to look whether a fault is on the seat; the answer says who is charged
// for what failed since, "" when there was none.
func (h *hurts) watch() func() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	moved, on := h.moved, len(h.on) > 0
	return func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if on || h.moved != moved {
			return h.source
		}
		return ""
	}
}

// ready tells whether a milestone may be evaluated as far as faults go, and settled
// whether that will not change by itself.
func (h *hurts) ready(m *Milestone) (ready, settled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.void[m.ID] {
		return false, true
	}
	for _, f := range m.Rests {
		if !h.bit[f] {
			return false, false
		}
	}
	return len(h.on) == 0 || !m.disturbs(), len(h.on) == 0
}

// disturbs says that checking a milestone does something to the seat.
func (m *Milestone) disturbs() bool {
	return m.Operation == HostReboot || len(m.Verifier.Attacks()) > 0 || m.Verifier.Boot() != nil
}

// enter asks whether a check may begin in the seat now; leave ends it.
func (s *seat) enter() bool {
	select {
	case s.hurts.busy <- struct{}{}:
	default:
		return false // a fault is being injected; its end nudges
	}
	if !s.race.enter() {
		<-s.hurts.busy
		return false
	}
	return true
}

// enterLast is enter that waits for an injection.
func (s *seat) enterLast(ctx context.Context) bool {
	select {
	case s.hurts.busy <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil || !s.race.enter() {
		<-s.hurts.busy
		return false
	}
	return true
}

func (s *seat) leave() {
	<-s.hurts.busy
	s.race.leave()
}

// Strike waits until no check of a seat is under way, nor another injection, and the
// race is not held; then the seat is not checked until the fault was confirmed or has
// failed. An error says why the seat can't be struck any more.
func (r *Race) Strike(ctx context.Context, territory string, f Fault) (*Struck, error) {
	s := r.byID[territory]
	if s == nil {
		return nil, fmt.Errorf("%s did not come to the start: nothing can be done to it", territory)
	}
	if err := s.strikable(); err != nil {
		return nil, err
	}
	select {
	case s.hurts.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := r.enterFault(ctx); err != nil {
		<-s.hurts.busy
		return nil, err
	}
	if err := s.strikable(); err != nil {
		s.leave()
		return nil, err
	}
	x := &Struck{Fault: f, s: s, ended: func() {}}
	if f.Alone {
		x.ended = s.account.standStill(r.clock)
	}
	h := s.hurts
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on[x], h.source = true, f.Source
	h.moved++
	return x, nil
}

// strikable says why a seat can't be struck any more.
func (s *seat) strikable() error {
	select {
	case <-s.ended:
		return s.past()
	default:
	}
	switch {
	case s.race.frozen():
		return ErrOver
	case s.reached.Load():
		return s.final()
	}
	return nil
}

// enterFault waits until the race is not held, and counts a fault's step as a check:
// the race is not held in the middle of it.
func (r *Race) enterFault(ctx context.Context) error {
	for {
		r.mu.Lock()
		switch {
		case r.reason != "" || r.done:
			r.mu.Unlock()
			return ErrOver
		case !r.held:
			r.inside++
			r.mu.Unlock()
			return nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Frozen is closed when the race is decided, or over.
func (r *Race) Frozen() <-chan struct{} { return r.freeze }

// Held says that the race is held, or is about to be.
func (r *Race) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Confirmed says that the fault bit. The seat is checked again.
func (x *Struck) Confirmed() {
	h := x.s.hurts
	h.mu.Lock()
	if x.Name != "" {
		h.bit[x.Name] = true
	}
	h.mu.Unlock()
	x.s.leave()
	x.s.race.Nudge(x.s.id)
}

// Failed says that the fault did not bite: what it was to prove is void, and a seat
// that can't be durable without it is out, charged to the controller. Left says that
// something of the fault may be left: then it stays on the seat, until Cleared, and is
// not credited any more.
func (x *Struck) Failed(why string, left bool) {
	s, h := x.s, x.s.hurts
	var voids []string
	h.mu.Lock()
	needed := false
	for _, id := range x.Proves {
		if s.ladder[id] == nil || h.void[id] {
			continue
		}
		h.void[id] = true
		voids = append(voids, id)
		needed = needed || s.race.rules.needs(id)
	}
	h.mu.Unlock()
	if x.ended(); !left {
		x.Cleared()
	}
	if needed {
		s.race.Unavailable(s.id, "controller", fmt.Sprintf("%s, which rests on a fault, is void: %s", strings.Join(voids, ", "), why))
	}
	s.leave()
	s.race.Nudge(s.id)
}

// needs says that no seat is durable without a milestone.
func (r Rules) needs(id string) bool {
	return slices.ContainsFunc(r.Milestones, func(m Milestone) bool {
		return m.ID == id && (m.Required || id == r.Completion)
	})
}

// Clearing waits until the race is not held, and keeps it from being held until done is
// called. Once the race is over there is nothing to wait for.
func (x *Struck) Clearing(ctx context.Context) (done func(), err error) {
	r := x.s.race
	switch err := r.enterFault(ctx); {
	case err == nil:
		return r.leave, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return func() {}, nil
}

// Stay ends the credit of a fault that could not be cleared: it is on the seat all the
// same.
func (x *Struck) Stay() { x.ended() }

// Cleared says that nothing of the fault is left.
func (x *Struck) Cleared() {
	h := x.s.hurts
	h.mu.Lock()
	delete(h.on, x)
	h.moved++
	h.mu.Unlock()
	x.ended()
	x.s.race.Nudge(x.s.id)
}

// durableEvent is the event of the seat's becoming durable, credit being taken off.
func (s *seat) durableEvent(at, credit uint64) event.Body {
	return event.DurableDeploymentCompleted{Territory: s.id, DurableAt: &s.durable.at, NotBefore: &s.durable.notBefore, AttackMS: credit,
		FaultMS: min(credit, s.account.stood(at))}
}
