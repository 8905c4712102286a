package heat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/internal/pause"
	"refbox/engine/referee"
	"refbox/vm"
	"refbox/vm/fault"
)

const (
	injectTime = 2 * time.Minute // of one injection, and of one undoing: each may take a boot
	clearTries = 3
)

// clearPause is how long a fault is left alone that could not be undone, before the next
// try: longer with each.
const clearPause = 500 * time.Millisecond

// faults are those of a heat: the arena's schedule and the referees'. Each seat's are
// run on their own, so that what one waits for delays no other.
type faults struct {
	h    *Heat
	race *referee.Race // nil in a conquest, which has none

	ctx    context.Context // of the schedule: no fault begins after its end
	cancel context.CancelFunc
	live   sync.WaitGroup

	ending sync.Once

	mu     sync.Mutex
	over   bool // no fault begins any more
	on     map[faultID]*onSeat
	passes map[[2]string]*passing // territory and milestone
}

type faultID struct{ territory, kind, target string }

// onSeat is a fault that is, or may be, on a seat.
type onSeat struct {
	id     faultID
	seat   *seat
	fault  fault.Fault
	struck *referee.Struck

	clearing chan struct{} // holds a token while it is undone; and while it is injected
	active   *fault.Active
	undo     chan struct{} // closed when it is gone
	calm     func()        // ends what it excuses in the eyes of the seat's watch

	placed bool // it may be on the machines: faults.mu
}

// passing is the first passing of a milestone that a schedule waits for.
type passing struct {
	done chan struct{}
	at   uint64
}

func (h *Heat) newFaults(race *referee.Race) *faults {
	f := &faults{h: h, race: race, on: map[faultID]*onSeat{}, passes: map[[2]string]*passing{}, cancel: func() {}}
	for _, a := range h.cfg.Package.Manifest.Faults {
		if a.After != nil {
			for _, s := range h.seats {
				p := &passing{done: make(chan struct{})}
				if h.inherits(*a.After) {
					close(p.done)
				}
				f.passes[[2]string{s.id(), *a.After}] = p
			}
		}
	}
	return f
}

// passed notes that a milestone has passed, whichever way.
func (f *faults) passed(b event.MilestonePassed, at uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.passes[[2]string{b.Territory, b.Milestone}]; p != nil {
		select {
		case <-p.done:
		default:
			p.at = at
			close(p.done)
		}
	}
}

// start begins the schedule.
func (f *faults) start(ctx context.Context) {
	f.mu.Lock()
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.mu.Unlock()
	m := f.h.cfg.Package.Manifest
	for _, a := range m.Faults {
		if len(a.Proves) > 0 && !slices.ContainsFunc(a.Proves, func(id string) bool { return !f.h.inherits(id) }) {
			continue // what it was for has passed in the heat that this one branched from
		}
		hit := m.Hit(a, f.h.secret.Draw)
		for _, s := range f.h.seats {
			if s.failed == nil && slices.Contains(hit, s.id()) {
				f.live.Go(func() { f.scheduled(s, a) })
			}
		}
	}
}

// scheduled waits for a fault's moment in a seat, injects it and undoes it when its
// time is over.
func (f *faults) scheduled(s *seat, a arena.Fault) {
	from, why := uint64(0), "scheduled"
	if a.After != nil {
		p := f.passes[[2]string{s.id(), *a.After}]
		select {
		case <-p.done:
		case <-f.ctx.Done():
			return
		}
		from, why = p.at, "scheduled after "+*a.After
	}
	if a.Reason != nil {
		why += ": " + *a.Reason
	}
	planned := from + a.Moment(f.h.secret.Draw)
	if f.h.watch.await(f.ctx, planned) != nil {
		return
	}
	source := referee.Fault{Name: a.ID, Source: "arena", Alone: a.Seats == arena.OneSeat, Proves: a.Proves}
	x, err := f.inject(f.ctx, s, a.Spec(s.machines()), source, event.FaultInjected{Author: "arena", Reason: why, Schedule: a.ID, PlannedMS: &planned, ForMS: &a.ForMS})
	if err != nil || x == nil {
		if err != nil && f.ctx.Err() == nil {
			slog.Info("a scheduled fault came to nothing", "territory", s.id(), "fault", a.ID, "error", err)
		}
		return
	}
	if f.h.watch.await(f.ctx, f.h.clock()+a.ForMS) == nil {
		f.clear(f.ctx, x, "", "") //nolint:errcheck // the log has it, and the heat's end tries again
	}
}

// machines are the names of a seat's machines, in order.
func (s *seat) machines() (names []string) {
	for _, m := range s.cluster.Machines() {
		names = append(names, m.Name())
	}
	return names
}

// inject puts a fault on a seat. The error is nil when it was confirmed, and then it is
// on the seat until clear.
func (f *faults) inject(ctx context.Context, s *seat, spec fault.Fault, how referee.Fault, said event.FaultInjected) (*onSeat, error) {
	x := &onSeat{id: faultID{s.id(), string(spec.Kind), spec.Target()}, seat: s, fault: spec, clearing: make(chan struct{}, 1), undo: make(chan struct{})}
	x.clearing <- struct{}{}
	if err := f.claim(ctx, x, how.Source == "arena"); err != nil {
		return nil, err
	}
	var err error
	if x.struck, err = f.race.Strike(ctx, s.id(), how); err != nil {
		f.drop(x)
		return nil, err
	}
	x.calm = s.probe.Disturb()
	said.Territory, said.Fault, said.Target, said.Params = s.id(), string(spec.Kind), spec.Target(), spec.Params()
	said.Proves, said.Alone = how.Proves, how.Alone
	if err := f.h.sayRunning(said); err != nil {
		x.struck.Failed(err.Error(), false)
		f.drop(x)
		return nil, err
	}
	// Whoever asked may leave; the heat's end is what ends it.
	within, cancel := context.WithTimeout(f.h.ctx, injectTime)
	defer cancel()
	// Nothing is undone of what dies with the heat.
	dying := context.AfterFunc(f.h.ctx, func() { s.cluster.Close() })
	defer dying()
	active, err := fault.Inject(within, s.cluster, spec)
	f.mu.Lock()
	x.active, x.placed = active, active != nil
	f.mu.Unlock()
	if spec.Kind.Boots() && !errors.Is(err, fault.ErrUnfit) {
		s.gateway.Drop(spec.Machine, "the referee's fault "+string(spec.Kind)+" ended the machine's boot")
	}
	var failed *fault.Error
	if !errors.As(err, &failed) {
		f.h.say(event.FaultConfirmed{Territory: s.id(), Fault: string(spec.Kind), Target: spec.Target(), Receipt: receipt(active.Receipt)})
		x.struck.Confirmed()
		<-x.clearing
		return x, nil
	}
	if f.h.ctx.Err() != nil { // the heat ends, and the machines with it
		x.struck.Failed("the heat ended", false)
		f.drop(x)
		return nil, err
	}
	left := active != nil
	why := words(failed.Err.Error())
	end := event.FaultFailed{Territory: s.id(), Fault: string(spec.Kind), Target: spec.Target(), Stage: failed.Stage, Detail: why, Receipt: receipt(failed.Receipt)}
	if left {
		end.Stage = "clear"
	}
	// The failure is in the log before what follows from it.
	for _, id := range how.Proves {
		if !f.voided(s.id(), id) {
			end.Voids = append(end.Voids, id)
		}
	}
	f.h.say(end)
	x.struck.Failed(fmt.Sprintf("%s on %s: %s", spec.Kind, spec.Target(), why), left)
	if left {
		<-x.clearing
		f.clear(f.h.ctx, x, "", "") //nolint:errcheck // the log has it
	} else {
		f.drop(x)
	}
	return nil, err
}

// voided says that a milestone of a seat is void already.
func (f *faults) voided(territory, milestone string) bool {
	s := f.h.World().Seat(territory)
	if s == nil {
		return false
	}
	_, void := s.Void(milestone)
	return void
}

func receipt(r fault.Receipt) json.RawMessage {
	b, err := json.Marshal(r)
	if err != nil { // plain data always encodes
		return nil
	}
	return b
}

// drop forgets a fault that is gone.
func (f *faults) drop(x *onSeat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.on, x.id)
	if x.calm != nil {
		x.calm()
	}
	close(x.undo)
}

// clear undoes a fault. One that is gone by then needs nothing. A seat with one that
// cannot be undone is out of the race until a referee restores it: whatever disturbs it
// could never be checked again, and that is nobody's fault in it.
func (f *faults) clear(ctx context.Context, x *onSeat, author, reason string) error {
	f.awaitRunning(ctx, x)
	select {
	case x.clearing <- struct{}{}:
	case <-x.undo:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.clearing }()
	select {
	case <-x.undo:
		return errGone
	default:
	}
	done, err := x.struck.Clearing(ctx)
	if err != nil {
		return err
	}
	defer done()
	var r fault.Receipt
	for n := range clearTries {
		if n > 0 && !pause.For(f.h.ctx, time.Duration(n)*clearPause) {
			break
		}
		within, cancel := context.WithTimeout(f.h.ctx, injectTime)
		r, err = x.active.Clear(within)
		cancel()
		if err == nil || f.h.ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		x.struck.Stay()
		if f.h.ctx.Err() != nil {
			return err // the machines end with the heat
		}
		var failed *fault.Error
		detail := err.Error()
		if errors.As(err, &failed) {
			detail = failed.Err.Error()
		}
		f.h.say(event.FaultFailed{Territory: x.id.territory, Fault: x.id.kind, Target: x.id.target, Stage: "clear", Detail: words(detail), Receipt: receipt(r), Author: author, Reason: reason})
		// Benched, not lost: it may be restored once the fault was cleared by hand. One
		// that is out already, or durable, stays what it is.
		f.race.Order(f.h.ctx, x.id.territory, referee.Order{Do: referee.Bench, Author: "refbox", //nolint:errcheck
			Reason: fmt.Sprintf("its %s on %s could not be undone: %s", x.id.kind, x.id.target, words(detail))})
		return err
	}
	f.h.say(event.FaultCleared{Territory: x.id.territory, Fault: x.id.kind, Target: x.id.target, Receipt: receipt(r), Author: author, Reason: reason})
	x.struck.Cleared()
	f.drop(x)
	return nil
}

var errGone = errors.New("the fault is gone already")

// end lets no fault begin any more and undoes what is on the seats, once the race is
// over: what follows, such as reading back, meets machines that are well. It may be
// called again, and returns when all that is done.
func (f *faults) end(ctx context.Context) { f.ending.Do(func() { f.endOnce(ctx) }) }

func (f *faults) endOnce(ctx context.Context) {
	f.cancel()
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.live.Wait()
	if ctx.Err() != nil {
		return
	}
	var all sync.WaitGroup
	for _, x := range f.list() {
		all.Go(func() { f.clear(ctx, x, "", "") }) //nolint:errcheck // the log has it
	}
	all.Wait()
}

func (f *faults) list() (all []*onSeat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.on {
		all = append(all, x)
	}
	return all
}

// keeps says that a fault of that kind is on a machine; nil faults have none.
func (f *faults) keeps(m vm.Machine, k fault.Kind) (*onSeat, bool) {
	if f == nil {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.on { // one that still waits for its moment is on nothing
		if x.placed && x.fault.Kind == k && x.seat.cluster.Machine(x.fault.Machine) == m {
			return x, true
		}
	}
	return nil, false
}

// strike is a referee's fault: the error says why it is not on the seat. It lasts for d,
// or, when d is 0 and its kind lasts, until it is undone or the race is decided.
func (f *faults) strike(ctx context.Context, author, reason string, s *seat, spec fault.Fault, d time.Duration) error {
	if f == nil || f.ctx == nil {
		return errNotRunning
	}
	if f.race == nil {
		return errors.New("a conquest has no referee's faults")
	}
	if f.race.Held() {
		return errors.New("the heat is paused: resume it first")
	}
	if s.cluster.Machine(spec.Machine) == nil {
		return fmt.Errorf("seat %s has no machine %q; it has %s", s.id(), words(spec.Machine), strings.Join(s.machines(), ", "))
	}
	said := event.FaultInjected{Author: author, Reason: reason}
	if d > 0 || !spec.Kind.Lasts() {
		ms := uint64(d.Milliseconds())
		said.ForMS = &ms
	}
	began := make(chan error, 1)
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return referee.ErrOver
	}
	f.live.Add(1)
	f.mu.Unlock()
	go func() {
		defer f.live.Done()
		x, err := f.inject(f.ctx, s, spec, referee.Fault{Source: "controller", Alone: true}, said)
		began <- err
		if x == nil {
			return
		}
		if said.ForMS == nil {
			select { // nobody waits for a seat whose time stands still for good
			case <-f.race.Frozen():
			case <-x.undo:
				return
			case <-f.ctx.Done():
				return
			}
		} else if f.h.watch.await(f.ctx, f.h.clock()+*said.ForMS) != nil {
			return
		}
		f.clear(f.ctx, x, "", "") //nolint:errcheck // the log has it
	}()
	select {
	case err := <-began:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lift is a referee's undoing of a fault, whoever put it there. Without a target it is
// the only one of its kind on the seat.
func (f *faults) lift(ctx context.Context, author, reason string, s *seat, kind, target string) error {
	if f == nil || f.ctx == nil {
		return errNotRunning
	}
	var mine []*onSeat
	var names []string
	for _, x := range f.list() {
		if x.seat != s {
			continue
		}
		names = append(names, x.id.kind+" on "+x.id.target)
		if x.id.kind == kind && (target == "" || x.id.target == target) {
			mine = append(mine, x)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return fmt.Errorf("no fault is on %s", s.id())
	case len(mine) == 0:
		return fmt.Errorf("no such fault is on %s; there is %s", s.id(), strings.Join(names, ", "))
	case len(mine) > 1:
		return fmt.Errorf("say which of them: on %s there is %s", s.id(), strings.Join(names, ", "))
	case f.race.Held():
		return errors.New("the heat is paused: resume it first")
	}
	return f.clear(ctx, mine[0], author, reason)
}
