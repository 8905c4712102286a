package referee

import (
	"context"
	"errors"
	"fmt"
	"time"

	"refbox/engine/event"
)

// ErrOver answers a referee whose race is decided or over.
var ErrOver = errors.New("the race is decided: its outcome can only be voided")

// Hold lets no check begin, waits for those under way, and then holds the race:
// whoever calls it may stop the clock and the machines. After an error the race
// goes on.
//
// A check is seen through rather than cut off, since a cut one could leave a seat
// in the middle of an attack. So this takes as long as the longest check under
// way, of which the milestone's timeouts are the bound.
func (r *Race) Hold(ctx context.Context) error {
	r.mu.Lock()
	if r.reason != "" || r.done {
		r.mu.Unlock()
		return ErrOver
	}
	r.held = true
	r.poke()
	for {
		if r.reason != "" || r.done {
			r.release()
			r.mu.Unlock()
			return ErrOver
		}
		if r.inside == 0 {
			r.mu.Unlock()
			return nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			r.Release()
			return ctx.Err()
		}
		r.mu.Lock()
	}
}

// Release lets a held race go on.
func (r *Race) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release()
}

func (r *Race) release() {
	r.held = false
	r.poke()
}

// poke wakes who waits for something of the race to change; mu is held.
func (r *Race) poke() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// enter asks whether a check may begin now; leave ends it. A race that is decided
// is not held any more.
func (r *Race) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held && r.reason == "" {
		return false
	}
	r.inside++
	return true
}

func (r *Race) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
	r.poke()
}

// Extend puts the race's limit off.
func (r *Race) Extend(by time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != "" || r.done {
		return ErrOver
	}
	r.limit += by
	r.poke()
	return nil
}

// Expired is closed when the limit has passed.
func (r *Race) Expired() <-chan struct{} { return r.expired }

// expire closes expired once the heat's clock has passed the limit, or returns
// when ctx ends. The clock may stand still and the limit move.
func (r *Race) expire(ctx context.Context) {
	for {
		r.mu.Lock()
		left, changed, held := r.limit-time.Duration(r.clock())*time.Millisecond, r.changed, r.held
		if left <= 0 {
			close(r.expired)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if held && left < time.Second {
			left = time.Second // the clock may stand already; to let go pokes
		}
		t := time.NewTimer(left)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// Do is what a referee may rule about a seat.
type Do string

// What may be ruled. A seat on the bench is out of the race until it is restored;
// a revoked milestone is not evaluated until it is upheld.
const (
	Bench   Do = "bench"
	Restore Do = "restore"
	Revoke  Do = "revoke"
	Uphold  Do = "uphold"
)

// Order is a ruling about a seat.
type Order struct {
	Do             Do
	Milestone      string // of Revoke and Uphold
	Author, Reason string
}

type order struct {
	Order
	answer chan error // takes one
}

// Order has a seat's scheduler do what was ruled, after the check under way, and
// returns when that is in the log. An error says why nothing was done.
func (r *Race) Order(ctx context.Context, territory string, o Order) error {
	s := r.byID[territory]
	if s == nil {
		return fmt.Errorf("%s did not come to the start: it cannot be ruled about", territory)
	}
	if o.Milestone != "" && s.ladder[o.Milestone] == nil {
		return fmt.Errorf("there is no milestone %q", o.Milestone)
	}
	x := order{o, make(chan error, 1)}
	select {
	case s.orders <- x:
	case <-s.ended:
		return s.past()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-x.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// past says why a seat whose scheduler has ended takes no orders.
func (s *seat) past() error {
	switch {
	case s.race.frozen():
	case s.last == stateUnavailable:
		return fmt.Errorf("%s is out of the race: its machines cannot be reached any more", s.id)
	case s.last == stateDurable:
		return s.final()
	}
	return ErrOver
}

func (s *seat) final() error {
	return fmt.Errorf("%s is durable, which is final: the heat can only be voided", s.id)
}

// obey does what was ruled, and tells whether the seat is still in the race.
func (s *seat) obey(x order) bool {
	err := s.rule(x.Order)
	x.answer <- err
	return err != nil || s.state != stateDurable || s.goesOn()
}

func (s *seat) rule(o Order) error {
	if s.race.frozen() {
		return ErrOver
	}
	if s.state == stateDurable {
		return s.final()
	}
	ruling := event.RefereeRuling{Territory: s.id, Milestone: o.Milestone, Author: o.Author, Reason: o.Reason}
	g := s.ladder[o.Milestone]
	switch o.Do {
	case Bench:
		if s.benched {
			return fmt.Errorf("%s has been ruled unavailable already", s.id)
		}
		s.benched, s.was = true, s.state
		ruling.Ruling = event.RulingUnavailable
		detail := "ruled by " + o.Author + ": " + o.Reason
		s.race.append(ruling, event.SeatUnavailable{Territory: s.id, Source: "controller", Detail: detail}, s.become(stateUnavailable, detail))
		s.race.out(s)
	case Restore:
		if !s.benched {
			return fmt.Errorf("%s is not unavailable: there is nothing to restore", s.id)
		}
		if !s.race.in(s) {
			return ErrOver
		}
		s.benched = false
		ruling.Ruling = event.RulingRestored
		s.race.append(ruling, s.become(s.was, "restored by "+o.Author+": "+o.Reason))
	case Revoke:
		p := s.passed[o.Milestone]
		if p == nil {
			return fmt.Errorf("%s has not passed %s: there is nothing to revoke", s.id, o.Milestone)
		}
		delete(s.passed, o.Milestone)
		g.revoked, g.ruled = p, true
		g.eligible, g.refused = 0, max(g.refused, s.race.clock())
		ruling.Ruling = event.RulingRevoked
		s.race.append(ruling, event.MilestoneRevoked{Territory: s.id, Milestone: o.Milestone, Reason: "ruled by " + o.Author + ": " + o.Reason})
	case Uphold:
		p := g.revoked
		switch {
		case s.passed[o.Milestone] != nil:
			return fmt.Errorf("%s of %s stands: it is not revoked", o.Milestone, s.id)
		case p == nil:
			return fmt.Errorf("%s has never passed %s: there is nothing to uphold", s.id, o.Milestone)
		}
		g.revoked, g.ruled = nil, false
		ruling.Ruling = event.RulingUpheld
		s.hold(o.Milestone, p, ruling)
	}
	return nil
}

// out counts a seat that is no longer in the race; with the last one the race is
// over. A benched seat that ends was counted already.
func (r *Race) out(s *seat) {
	r.mu.Lock()
	r.racing--
	s.gone = true
	last := r.racing == 0
	r.reached = r.reached || s.state == stateDurable
	reached := r.reached
	r.mu.Unlock()
	switch {
	case last && reached:
		r.finish("every seat is durable or out")
	case last:
		r.finish("no seat is left")
	}
}

// in counts a seat that is back; false when the race is over.
func (r *Race) in(s *seat) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != "" {
		return false
	}
	r.racing++
	s.gone = false
	return true
}
