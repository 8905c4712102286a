// Package referee decides a heat: which milestone of which seat passed, when,
// and who won. It hides the schedulers and the arithmetic of instants.
//
// Every seat has a scheduler of its own (design: section 1, decision 4): a slow,
// wedged or hostile seat delays nobody. A scheduler evaluates what is eligible on
// every tick, soon after an observed action ends (Nudge), and at once when a
// milestone passes and makes others eligible. Within a seat evaluations follow
// one another, in the manifest's order.
//
// Rules, where the design leaves them open:
//
//   - A seat is durable when its completion milestone and every required one
//     have passed; that is final.
//   - A milestone that passed its verifier is attacked, then looked at again
//     (holds), before it counts. Its instant is that of its verifier. A reboot
//     may be an attack of its own, and comes before the verifier.
//   - The referee's own work, attacks, such reboots and looking again, is taken
//     off a durable seat's instant, within the bounds that account tells.
//   - After a check that restarted or rebooted something, passed or not, every
//     milestone that had passed is looked at again; one that no longer holds is
//     revoked, and the check does not pass.
//   - A failed check that disturbs the seat (an attack, a restart, a reboot) is
//     repeated after an observed action, but not sooner than a tick, or after
//     five ticks; others on every occasion.
//   - At the first durable seat (stop_on_first_durable) the others go on until
//     their own clocks, which stand still while the referee works, have passed its
//     instant: who was as early may have been held up by the referee. Then what is
//     being evaluated finishes, and what could be evaluated at that instant and has
//     not been looked at since is evaluated once: who was as early may not have been
//     looked at yet. That takes a few seconds, and a few more where it could make its
//     seat durable; then it is cut off, charged to nobody. Nothing else begins. A reboot is seen through, bounded by its milestone's timeout, so that
//     who blocks it is charged for it. So no seat can hold up the end for longer
//     than the timeouts of what is under way.
//   - At the deadline what is being evaluated is cut off, save attacks on what had
//     passed its verifier.
//   - Without stop_on_first_durable the race ends when every seat is durable or
//     unavailable.
//   - When nobody plays any more, the race ends once nothing changes in any seat
//     (PlayersEnded).
//   - A referee's ruling about a seat takes hold between two checks. A seat ruled
//     unavailable may be restored while another is in the race; a milestone revoked by
//     ruling is not evaluated again until it is upheld, with the instant that it had.
//   - While the race is held (Hold) no check begins.
//   - A fault that the referee puts on a seat is not the seat's to pay for: see Fault.
package referee

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/world"
)

// Operations before a milestone's verifier runs.
const (
	Observe    = "observe"
	HostReboot = "host_reboot"
)

// Milestone is one rung of the ladder.
type Milestone struct {
	ID        string
	DependsOn []string
	Operation string
	Timeout   time.Duration // of the verifier, of each attack, and of the operation
	Points    uint64
	Required  bool
	Verifier  probe.Verifier
	File      string   // the verifier's name in the package
	Rests     []string // names of faults: it is evaluated only once each was confirmed in the seat
}

// Rules of a race. Ids and dependencies have been validated with the manifest.
type Rules struct {
	Milestones         []Milestone
	Completion         string
	StopOnFirstDurable bool
	Duration           time.Duration
	Tick               time.Duration
	Slow               float64 // stretches the photo finish, for emulated machines; 0 is 1
	// Save, if there is one, is called between two checks of a seat once a milestone has
	// passed, the last one, and before a check that disturbs it: the seat's machines are
	// as the player left them. What it takes, within ctx, is the referee's work.
	Save     func(ctx context.Context, territory, milestone string)
	Thorough bool // the end waits for as many looks at what a check disturbs: PlayersEnded
}

func (r Rules) milestone(id string) *Milestone {
	i := slices.IndexFunc(r.Milestones, func(m Milestone) bool { return m.ID == id })
	return &r.Milestones[i]
}

// The photo finish: how long what is being evaluated at the freeze may take, and
// how long when it could make its seat durable.
const (
	photoTime  = 2 * time.Second
	finishTime = 12 * time.Second
)

// Log is where the race is written. Its methods may be called from any
// goroutine. An error ends the race.
type Log interface {
	// Append writes the events one after the other, on one reading of the clock.
	Append(bodies ...event.Body) (uint64, error)
	// Evidence keeps what is behind a verdict, under a name and number that come
	// once; path is relative to the heat, sha the hex digest of the file.
	Evidence(territory, name string, n uint64, e probe.Evidence) (path, sha string, err error)
	// World is the fold of the log: who won is decided by what everybody can
	// read.
	World() *world.World
}

// Race is one race. Run is called once.
type Race struct {
	rules Rules
	log   Log
	clock func() uint64
	seats []*seat
	byID  map[string]*seat

	freeze chan struct{} // closed: nothing new begins

	expired chan struct{} // closed: the limit has passed

	idle atomic.Bool // nobody plays any more

	mu      sync.Mutex
	reason  string // of the freeze
	first   uint64 // the earliest durable seat's instant, ms; 0 for none
	abort   context.CancelCauseFunc
	limit   time.Duration
	held    bool          // nothing begins for now
	inside  int           // checks under way
	racing  int           // seats that are in the race
	reached bool          // one that was became durable
	done    bool          // Run has no seat to wait for any more
	changed chan struct{} // closed, and made anew, when one of these changes
}

// New prepares a race between seats that have been started. Clock is the heat's,
// in ms; its zero is when Run is called.
func New(rules Rules, seats []*probe.Seat, log Log, clock func() uint64) *Race {
	r := &Race{rules: rules, log: log, clock: clock, freeze: make(chan struct{}), byID: map[string]*seat{},
		expired: make(chan struct{}), limit: rules.Duration, racing: len(seats), changed: make(chan struct{})}
	for _, p := range seats {
		s := newSeat(r, p)
		r.seats = append(r.seats, s)
		r.byID[p.Territory()] = s
	}
	return r
}

// Nudge says that something may have changed in a seat: an observed action ended.
func (r *Race) Nudge(territory string) {
	if s := r.byID[territory]; s != nil {
		select {
		case s.nudge <- struct{}{}:
		default:
		}
	}
}

// Unavailable takes a seat out of the race, for instance because it did not
// start. It may be called before and during Run.
func (r *Race) Unavailable(territory, source, detail string) {
	if s := r.byID[territory]; s != nil {
		select {
		case s.lost <- loss{source, detail}:
		default:
		}
	}
}

// Causes with which evaluations are cut off.
var (
	errDeadline = errors.New("the heat's time is over")
	errPhoto    = errors.New("the heat is decided")
)

// Run runs the race to its outcome, which is in the log when it returns. An
// error is the log's or ctx's cause; then the log has no outcome.
func (r *Race) Run(ctx context.Context) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.abort = cancel
	timed, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg, watch sync.WaitGroup
	watching, unwatch := context.WithCancel(ctx)
	watch.Go(func() {
		if r.expire(watching); watching.Err() == nil {
			r.finish("match timer expired") // before a seat says that it is out
			stop(errDeadline)
		}
	})
	defer watch.Wait()
	defer unwatch()

	for _, s := range r.seats {
		wg.Go(func() { s.schedule(ctx, timed) })
	}
	wg.Wait()
	r.mu.Lock()
	r.done = true
	r.poke()
	r.mu.Unlock()
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	if timed.Err() != nil {
		r.finish("match timer expired")
	}
	r.finish("no seat is left") // there never was one
	return r.conclude()
}

// finish freezes the race: the first reason stands.
func (r *Race) finish(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == "" {
		r.reason = reason
		close(r.freeze)
		r.poke()
	}
}

// won freezes the race at a seat's becoming durable.
func (r *Race) won(at uint64) {
	r.mu.Lock()
	if r.first == 0 || at < r.first {
		r.first = max(at, 1)
	}
	r.mu.Unlock()
	r.finish("first durable deployment")
}

func (r *Race) earliest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

func (r *Race) frozen() bool {
	select {
	case <-r.freeze:
		return true
	default:
		return false
	}
}

// append writes to the log; when that fails, the race is over.
func (r *Race) append(bodies ...event.Body) uint64 {
	at, err := r.log.Append(bodies...)
	if err != nil {
		r.abort(fmt.Errorf("write the log: %w", err))
	}
	return at
}

// conclude logs the end. All schedulers have returned.
func (r *Race) conclude() (Outcome, error) {
	// Who is not durable by now will not be: that changes no one's rank.
	o := decide(r.log.World(), func(id string) string {
		s := r.byID[id]
		if s == nil {
			return stateUnavailable // never came to the start
		}
		if s.state == stateDurable || s.state == stateUnavailable {
			return s.state
		}
		return stateIncomplete
	})
	o.Reason = r.reason
	why := "the heat ended: " + o.Reason
	switch {
	case len(o.DeadHeat) > 0:
		o.Reason = "dead heat"
		why = "outraced in a dead heat"
	case o.Winner != "":
		why = "outraced by " + o.Winner
	}
	var bodies []event.Body
	for _, s := range r.seats {
		if s.id != o.Winner && (s.state == stateBuilding || s.state == stateVerifying) {
			bodies = append(bodies, s.become(stateIncomplete, why))
		} else if s.state != stateDurable && s.state != stateUnavailable {
			bodies = append(bodies, s.become(stateIncomplete, "the heat ended: "+o.Reason))
		}
	}
	end := event.MatchFinished{Reason: o.Reason, DeadHeat: o.DeadHeat}
	if o.Winner != "" {
		end.Winner = &o.Winner
	}
	bodies = append(bodies, event.MatchStateChanged{From: "running", To: "finished"}, end)
	if _, err := r.log.Append(bodies...); err != nil {
		return o, fmt.Errorf("write the log: %w", err)
	}
	return o, nil
}

// previous is what a verifier may know of a seat's earlier milestones.
func (s *seat) previous() map[string]json.RawMessage {
	m := make(map[string]json.RawMessage, len(s.passed))
	for id, p := range s.passed {
		m[id] = p.evidence
	}
	return m
}
