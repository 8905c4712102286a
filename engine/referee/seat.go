package referee

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
)

// States of a competitor (recordings reference, section 4.1). The heat writes
// the step from preparing to building.
const (
	stateBuilding    = "building"
	stateVerifying   = "verifying"
	stateDurable     = "durable"
	stateIncomplete  = "incomplete"
	stateUnavailable = "unavailable"
)

const (
	// settle is how long after an observed action a seat is looked at again: a
	// unit's start returns before its service listens.
	firstSettle, secondSettle = 100 * time.Millisecond, 350 * time.Millisecond
	// roundGap is the least time between the starts of two rounds, however
	// busy a player is.
	roundGap = 50 * time.Millisecond
	// patience is how many ticks a disturbing check waits to be repeated when
	// nothing was observed.
	patience = 5
)

// seat is one seat's scheduler. Everything but the channels belongs to its
// goroutine while that runs.
type seat struct {
	race  *Race
	probe *probe.Seat
	id    string

	nudge chan struct{} // one is enough: it means "look again"
	lost  chan loss
	// orders are a referee's, done between two checks until ended is closed.
	orders chan order
	ended  chan struct{}
	last   string // the state in which it ended

	// decisive: what is being evaluated would make the seat durable.
	decisive atomic.Bool
	account  *account
	hurts    *hurts
	over     chan struct{} // closed: nothing new begins in the seat

	uncut   context.Context // ends at the deadline or with the race, not at the photo finish
	state   string
	benched bool   // by ruling, from was on
	was     string // its state then
	passed  map[string]*pass
	ladder  map[string]*rung
	nudged  time.Time
	hostile bool // that its evidence was, is in the log
	durable *instant
	reached atomic.Bool // it is durable, for who is not its scheduler
	counted bool        // as out, though it is still looked at

	unsaved   string          // the last milestone that passed since the state was saved
	inherited map[string]bool // milestones that earn nothing
	fresh     bool            // they have not been looked at

	quiet, gone bool // nothing changes in it; it is out of the race: the race's, under its mu
}

type loss struct{ source, detail string }

// rung is what is remembered of a milestone between attempts.
type rung struct {
	attempts uint64
	eligible uint64 // since, ms
	refused  uint64 // the last instant at which it was seen not to hold, ms
	ended    time.Time
	disturbs bool   // the last attempt disturbed the seat, and failed
	detail   string // of the last failure, with its category
	record   string // where that was first recorded, and the digest of it
	sha      string
	files    int
	revoked  *pass  // what was taken back, and may be upheld
	ruled    bool   // by a referee: not evaluated
	lost     bool   // for good: not evaluated
	held     bool   // it has passed once
	vain     uint64 // looks in vain since nobody plays any more, or a milestone first passed
}

// pass is a milestone that holds.
type pass struct {
	instant
	points   uint64
	evidence json.RawMessage
	attempt  uint64
	record   string // of its evidence, and the digest of it
	sha      string
}

// instant is when something came to hold: after notBefore, not after at.
type instant struct{ notBefore, at uint64 }

func newSeat(r *Race, p *probe.Seat) *seat {
	s := &seat{race: r, probe: p, id: p.Territory(), state: stateBuilding,
		account: newAccount(), hurts: newHurts(), over: make(chan struct{}), nudge: make(chan struct{}, 1), lost: make(chan loss, 1),
		orders: make(chan order), ended: make(chan struct{}),
		passed: map[string]*pass{}, ladder: map[string]*rung{}}
	for _, m := range r.rules.Milestones {
		s.ladder[m.ID] = &rung{}
		if len(m.DependsOn) == 0 {
			s.ladder[m.ID].eligible = 1 // from the start, whenever it is first looked at
		}
	}
	return s
}

// schedule runs the seat, and cuts off what it still evaluates after the freeze.
func (s *seat) schedule(ctx, timed context.Context) {
	defer s.end()
	cut, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.uncut = timed
	timed, stopTimed := context.WithCancelCause(timed)
	defer stopTimed(nil)
	var photo sync.WaitGroup
	defer photo.Wait()
	done := make(chan struct{})
	defer close(done)
	photo.Go(func() {
		if !s.awaitOver(done) {
			return
		}
		slow := func(d time.Duration) time.Duration {
			return time.Duration(float64(d) * max(1, s.race.rules.Slow))
		}
		t := time.NewTimer(slow(photoTime))
		defer t.Stop()
		select {
		case <-done:
			return
		case <-t.C:
		}
		if s.decisive.Load() {
			t.Reset(slow(finishTime - photoTime))
			select {
			case <-done:
				return
			case <-t.C:
			}
		}
		stop(errPhoto)
		stopTimed(errPhoto)
	})
	s.run(cut, timed)
	s.lastLook(cut, timed)
}

// lastLook evaluates, once each, what may have come to hold before the first seat
// was durable, and has not been looked at since: that a seat's scheduler had not
// come to it yet is not the player's doing. A reboot that would not make the seat
// durable holds up the end for nothing, and is left out.
func (s *seat) lastLook(ctx, timed context.Context) {
	first := s.race.earliest()
	if first == 0 || s.benched || (s.state != stateBuilding && s.state != stateVerifying) {
		return
	}
	for i := range s.race.rules.Milestones {
		m := &s.race.rules.Milestones[i]
		complete := s.state != stateDurable && s.wouldComplete(m.ID)
		if s.state == stateDurable && !s.extra(m) {
			continue
		}
		if !s.unseen(m, first) || (m.Operation == HostReboot && !complete) {
			continue
		}
		if ctx.Err() != nil || !s.enterLast(timed) {
			return
		}
		s.decisive.Store(complete)
		err := s.evaluate(ctx, timed, m)
		s.leave()
		if errors.Is(err, probe.ErrGone) {
			s.leaves(loss{"controller", err.Error()})
			return
		}
	}
}

// unseen tells whether a milestone could be evaluated at an instant of the seat's
// clock, and has not been seen to fail since. What was disturbed for nothing is
// not disturbed again unless something was done there.
func (s *seat) unseen(m *Milestone, since uint64) bool {
	g := s.ladder[m.ID]
	if ready, _ := s.hurts.ready(m); !ready {
		return false
	}
	if s.passed[m.ID] != nil || g.ruled || g.lost || !s.stands(m) || g.eligible == 0 || (g.disturbs && !s.nudged.After(g.ended)) {
		return false
	}
	own := func(ms uint64) uint64 { return ms - min(ms, s.account.credit(ms)) }
	return own(g.eligible) <= since && own(g.refused) < since
}

// awaitOver waits until the race is frozen and the seat's clock has passed the
// instant of whoever froze it; false when done was closed before.
func (s *seat) awaitOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	case <-s.race.freeze:
	}
	for {
		wait, changed, behind := s.account.before(s.race.earliest(), s.race.clock())
		if !behind {
			close(s.over)
			return true
		}
		t := time.NewTimer(wait)
		select {
		case <-done:
			t.Stop()
			return false
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// isOver tells whether nothing new begins in the seat.
func (s *seat) isOver() bool {
	if !s.race.frozen() {
		return false
	}
	_, _, behind := s.account.before(s.race.earliest(), s.race.clock())
	return !behind
}

// run schedules the seat until it has nothing more to win, the race is over for
// it, or ctx ends. Timed ends at the deadline, or with ctx.
func (s *seat) run(ctx, timed context.Context) {
	tick := time.NewTicker(s.race.rules.Tick)
	defer tick.Stop()
	settle := time.NewTimer(time.Hour)
	defer settle.Stop()
	var again []time.Duration // further looks after a nudge
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.over:
			return
		case l := <-s.lost:
			s.leaves(l)
			return
		case x := <-s.orders:
			if !s.obey(x) {
				return
			}
		case <-tick.C:
		case <-s.nudge:
			s.nudged = time.Now()
			again = []time.Duration{firstSettle, secondSettle - firstSettle}
			settle.Reset(again[0])
		case <-settle.C:
			if len(again) > 0 {
				again = again[1:]
			}
			if len(again) > 0 {
				settle.Reset(again[0])
			}
		}
		if wait := roundGap - time.Since(last); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		last = time.Now()
		if s.benched {
			continue
		}
		if !s.round(ctx, timed) {
			return
		}
		if s.state != stateDurable {
			s.race.hush(s, s.still())
		}
	}
}

// round evaluates what is eligible, in the manifest's order, until nothing more
// has become so. It reports whether the seat is still in the race.
func (s *seat) round(ctx, timed context.Context) bool {
	if s.fresh {
		if !s.enter() {
			return true
		}
		s.fresh = false
		s.look(timed)
		s.leave()
	}
	tried := map[string]bool{}
	for progress := true; progress; {
		progress = false
		for i := range s.race.rules.Milestones {
			m := &s.race.rules.Milestones[i]
			if tried[m.ID] || !s.eligible(m) {
				continue
			}
			if timed.Err() != nil || s.state != stateDurable && s.isOver() {
				return false
			}
			select {
			case l := <-s.lost:
				s.leaves(l)
				return false
			case x := <-s.orders:
				return s.obey(x)
			default:
			}
			if !s.enter() {
				return true
			}
			if m.disturbs() {
				s.save(timed)
			}
			tried[m.ID] = true
			s.decisive.Store(s.state != stateDurable && s.wouldComplete(m.ID))
			err := s.evaluate(ctx, timed, m)
			s.leave()
			if errors.Is(err, probe.ErrGone) {
				s.leaves(loss{"controller", err.Error()})
				return false
			}
			progress = progress || s.passed[m.ID] != nil
		}
	}
	if s.unsaved != "" && s.enter() {
		s.save(timed)
		s.leave()
	}
	return s.state != stateDurable || s.goesOn()
}

// goesOn says that a durable seat may still earn what is optional: the race does not wait
// for that, and until it is over it is looked for. A race that the first durable seat
// decides has looked once by now.
func (s *seat) goesOn() bool {
	open := slices.ContainsFunc(s.race.rules.Milestones, func(m Milestone) bool { return s.extra(&m) })
	if s.race.rules.StopOnFirstDurable || !open {
		return false
	}
	if !s.counted {
		s.counted = true
		s.race.out(s)
	}
	return true
}

// extra says that a milestone is one that a durable seat may still earn: nothing that it
// is durable by is touched for it.
func (s *seat) extra(m *Milestone) bool {
	g := s.ladder[m.ID]
	return s.passed[m.ID] == nil && !s.race.rules.needs(m.ID) && !m.disturbs() && !g.disturbs && !g.ruled && !g.lost && !s.voided(m)
}

// eligible tells whether a milestone is to be evaluated now.
func (s *seat) eligible(m *Milestone) bool {
	if s.passed[m.ID] != nil || s.ladder[m.ID].ruled || s.ladder[m.ID].lost || s.state == stateDurable && !s.extra(m) {
		return false
	}
	if ready, _ := s.hurts.ready(m); !ready || !s.stands(m) {
		return false
	}
	g := s.ladder[m.ID]
	if g.eligible == 0 {
		g.eligible = max(1, s.race.clock())
	}
	if !g.disturbs {
		return true
	}
	since := time.Since(g.ended)
	return since >= patience*s.race.rules.Tick || (since >= s.race.rules.Tick && s.nudged.After(g.ended))
}

// stands tells whether everything that a milestone rests on has passed, directly
// or not: a revocation may have taken away what is below its own dependencies.
func (s *seat) stands(m *Milestone) bool {
	below := slices.Clone(m.DependsOn)
	for i := 0; i < len(below); i++ {
		if s.passed[below[i]] == nil {
			return false
		}
		for _, d := range s.race.rules.milestone(below[i]).DependsOn {
			if !slices.Contains(below, d) {
				below = append(below, d)
			}
		}
	}
	return true
}

// become is the step to another state, as an event.
func (s *seat) become(state, reason string) event.Body {
	from := s.state
	s.state = state
	return event.CompetitorStateChanged{Territory: s.id, From: from, To: state, Reason: reason}
}

// leaves takes a seat out of the race, unless it is durable: that is final.
func (s *seat) leaves(l loss) {
	if s.state != stateDurable {
		s.unavailable(l)
	}
}

func (s *seat) unavailable(l loss) {
	out := event.SeatUnavailable{Territory: s.id, Source: l.source, Detail: l.detail}
	if s.benched {
		s.race.append(out)
		return
	}
	s.race.append(out, s.become(stateUnavailable, l.detail))
}

// end notes that the seat's scheduler has ended.
func (s *seat) end() {
	s.last = s.state
	if !s.benched && !s.counted {
		s.race.out(s)
	}
	close(s.ended)
}

// wouldComplete tells whether the seat is durable once this milestone passes.
func (s *seat) wouldComplete(id string) bool {
	for _, m := range s.race.rules.Milestones {
		if (m.Required || m.ID == s.race.rules.Completion) && m.ID != id && s.passed[m.ID] == nil {
			return false
		}
	}
	return true
}

// complete tells whether the completion milestone and every required one have
// passed, and since when.
func (s *seat) complete() (last instant, ok bool) {
	if s.passed[s.race.rules.Completion] == nil {
		return instant{}, false
	}
	for _, m := range s.race.rules.Milestones {
		p := s.passed[m.ID]
		if p == nil {
			if m.Required {
				return instant{}, false
			}
			continue
		}
		if (m.Required || m.ID == s.race.rules.Completion) && p.at >= last.at {
			last = p.instant
		}
	}
	return last, true
}
