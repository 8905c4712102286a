package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"refbox/engine/internal/pause"
	"refbox/engine/text"
	"refbox/vm"
)

// Config is what a seat's probes reach.
type Config struct {
	Territory   string
	ServicePort int          // the public service, on the first machine
	Machines    []vm.Machine // at least one
	Secret      Secret
	Password    string        // root's, for verifiers that are executables
	Clock       func() uint64 // the heat's clock, ms
	// Slow stretches the probes' own default timeouts, for machines that are
	// emulated; 1 or less leaves them.
	Slow float64
	// Rebooted is called after a machine was rebooted, whether it came back or
	// not; nil calls nobody.
	Rebooted func(machine string)
}

// Seat is one seat, as its probes see it. Its methods may be called from any
// goroutine.
type Seat struct {
	c        Config
	consoles []*tail
	replay   *Replay // answers in the machines' place; nil with machines
	closed   sync.Once
	watching watching
	canary   func(context.Context) (Canary, error) // nil where the arena has none
}

// Measures gives the seat what seat.canary() asks; before any attempt.
func (s *Seat) Measures(canary func(context.Context) (Canary, error)) { s.canary = canary }

// NewSeat starts to remember the consoles of the seat's machines.
func NewSeat(c Config) (*Seat, error) {
	if len(c.Machines) == 0 {
		return nil, fmt.Errorf("seat %s has no machine to probe", c.Territory)
	}
	if c.Slow < 1 {
		c.Slow = 1
	}
	s := &Seat{c: c}
	for _, m := range c.Machines {
		t := &tail{}
		t.detach = m.Console().Attach(t.add)
		s.consoles = append(s.consoles, t)
	}
	return s, nil
}

// Close ends the seat's watch and lets go of the consoles. It is idempotent.
func (s *Seat) Close() {
	s.closed.Do(func() {
		s.watching.stop()
		for _, t := range s.consoles {
			t.detach()
		}
	})
}

func (s *Seat) machine(name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	for i, m := range s.c.Machines {
		if m.Name() == name {
			return i, nil
		}
	}
	return 0, failure(Broken, "the seat has no machine %q", name)
}

func (s *Seat) slow(d time.Duration) time.Duration { return time.Duration(float64(d) * s.c.Slow) }

// gone tells whether a machine has ended for good.
func (s *Seat) gone(m vm.Machine) error {
	select {
	case <-m.Done():
		if err := m.Err(); err != nil {
			return fmt.Errorf("machine %s: %w: the host failed it: %w", m.Name(), ErrGone, err)
		}
		return fmt.Errorf("machine %s: %w", m.Name(), ErrGone)
	default:
		return nil
	}
}

// isOff tells whether a machine is off, which is its guest's doing. The probes
// that then fail are no failure of the way to it.
func isOff(ctx context.Context, m vm.Machine) bool {
	p, err := m.Power(ctx)
	return err == nil && p == vm.PowerOff
}

// tailSize is how much of a console is remembered.
const tailSize = 256 << 10

type tail struct {
	mu     sync.Mutex
	b      []byte
	detach func()
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b); n > 2*tailSize {
		t.b = append(t.b[:0], t.b[n-tailSize:]...)
	}
}

func (t *tail) contains(s string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.b[max(0, len(t.b)-tailSize):], []byte(s))
}

// Attempt is one evaluation of one milestone: what its verifier may use, and the
// records of what it did. It belongs to one goroutine.
type Attempt struct {
	Seat      *Seat
	Milestone string
	Number    uint64 // from 1
	// Previous holds the evidence of the milestones that passed.
	Previous map[string]json.RawMessage
	// Full holds, per milestone, the reference's view of it, for executables
	// that ask for AOE_PREVIOUS_EVIDENCE.
	Full json.RawMessage

	records   []Record
	dropped   int
	disrupted bool
	refusal   uint64 // instant before which the last refused probe was seen
	refused   string
	lastAt    uint64
	hostile   string
}

// Records are the calls so far, oldest first, and how many were dropped from
// their middle.
func (a *Attempt) Records() ([]Record, int) {
	return a.records, a.dropped
}

// Hostile is what, in what was seen of the seat, would have driven a terminal
// that showed it; "" for nothing.
func (a *Attempt) Hostile() string { return a.hostile }

// look looks for that in what a record is going to show.
func (a *Attempt) look(shown []byte) {
	if a.hostile == "" {
		a.hostile = new(text.Detector).Scan(shown[:min(len(shown), 2*maxShown)])
	}
}

// Disrupted tells whether the attempt started, stopped or restarted something.
func (a *Attempt) Disrupted() bool { return a.disrupted }

// Refusal is the instant of the last probe that did not show what was required,
// 0 when there was none, and what was missing.
func (a *Attempt) Refusal() (ms uint64, reason string) { return a.refusal, a.refused }

// Note adds a record of something that the referee did to the seat.
func (a *Attempt) Note(r Record) {
	a.lastAt = r.AtMS
	if len(a.records) >= maxRecords {
		half := maxRecords / 2
		copy(a.records[half:], a.records[half+1:])
		a.records = a.records[:len(a.records)-1]
		a.dropped++
	}
	a.records = append(a.records, r)
}

// refuse marks that a requirement was not met by what was probed up to now.
func (a *Attempt) refuse(reason string) {
	a.refusal, a.refused = max(a.refusal, a.lastAt), reason
	if n := len(a.records); n > 0 {
		a.records[n-1].Refused = reason
	} else {
		a.refusal = a.Seat.c.Clock()
	}
}

// call makes one probe call and records it.
func (a *Attempt) call(ctx context.Context, r Record, m vm.Machine, do func(context.Context) (map[string]any, error)) error {
	r, err := a.Seat.call(ctx, r, m, do)
	a.Note(r)
	return err
}

// call makes one probe call. Transport failures and a guest that does not answer
// are tried again; what is left of them is a Failure, or wraps ErrGone, or is
// ctx's error.
func (s *Seat) call(ctx context.Context, r Record, m vm.Machine, do func(context.Context) (map[string]any, error)) (Record, error) {
	clock := s.c.Clock
	r.AtMS, r.Machine = clock(), m.Name()
	var (
		res map[string]any
		err error
	)
	for try := 0; ; try++ {
		if r.Tries = try; try > 0 {
			r.Tries++
		}
		if err = ctx.Err(); err != nil {
			break
		}
		if err = s.gone(m); err != nil {
			break
		}
		res, err = do(ctx)
		if errors.Is(err, vm.ErrTransport) && isOff(ctx, m) {
			err = failure(Contract, "machine %s is off", m.Name())
		}
		if err == nil || try == len(backoff) || !(errors.Is(err, vm.ErrTransport) || errors.Is(err, vm.ErrGuestLost)) {
			break
		}
		if !pause.For(ctx, backoff[try]) {
			err = ctx.Err()
			break
		}
	}
	if err != nil {
		if g := s.gone(m); g != nil {
			err = g
		}
		err = classify(ctx, r.Call, err)
		r.fail(err)
	} else {
		r.Response = res
	}
	r.TookMS = clock() - r.AtMS
	return r, err
}

// backoff are the pauses between tries of one call.
var backoff = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond}

// classify gives an error of a call its category. A context that has ended is
// left as it is: whoever set it knows what it means.
func classify(ctx context.Context, call string, err error) error {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, ErrGone), unknown(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, vm.ErrGuestLost):
		return failure(Contract, "%s: %v", call, err)
	case errors.Is(err, vm.ErrGuestRefused):
		return failure(Contract, "%s: %v", call, err)
	case errors.Is(err, vm.ErrPower):
		return failure(Contract, "%s: %v", call, err)
	case errors.Is(err, vm.ErrTransport):
		return failure(Transport, "%s: %v", call, err)
	case errors.Is(err, context.DeadlineExceeded):
		return failure(Contract, "%s: the guest did not answer in time", call)
	}
	return failure(Contract, "%s: %v", call, err)
}

// unknown says that a call of a replay has no answer.
func unknown(err error) bool {
	var i *Insufficient
	return errors.As(err, &i) || errors.Is(err, ErrCutOff)
}

// Attempt begins an evaluation.
func (s *Seat) Attempt(milestone string, number uint64, previous map[string]json.RawMessage) *Attempt {
	return &Attempt{Seat: s, Milestone: milestone, Number: number, Previous: previous}
}

// Territory is the seat's.
func (s *Seat) Territory() string { return s.c.Territory }

// What root could forge of a reboot with and without an order for the new boot.
const (
	rebootForgeable = "nothing: the end of the old boot is seen outside the guest"
	cutForgeable    = "nothing: the host ended the old boot, and what the guest had not flushed is gone"
	bootForgeable   = "what the guest's own systemd makes of the order, and what is not the helper's but acts on it later; not the end of the old boot, nor the order and the look at the helper, which were confirmed before anything of the disk ran"
)

// Reboot reboots every machine of the seat cleanly, at the same time, and records
// it; the first as boot orders, which may be nil. A guest that blocks it until
// ctx's deadline is charged for it, and so is one whose helper proves to be
// altered; when ctx ends for another cause, nobody is. Back tells whether all came
// back as ordered, which an error about a watched port does not deny.
func (a *Attempt) Reboot(ctx context.Context, boot *Boot) (back bool, err error) {
	a.disrupted = true
	defer a.Seat.disturb(settleBootTime)()
	if boot == nil {
		boot = new(Boot)
	}
	if p := a.Seat.replay; p != nil {
		return p.reboot(a, boot)
	}
	errs := make([]error, len(a.Seat.c.Machines))
	recs := make([]Record, len(errs))
	up := make(chan struct{})
	var rebooting, watching sync.WaitGroup
	watched, watches := make([]Record, len(boot.Ports)), make([]error, len(boot.Ports))
	for i, port := range boot.Ports {
		watching.Go(func() { watched[i], watches[i] = a.Seat.watch(ctx, up, a.Seat.c.Machines[0], port) })
	}
	for i, m := range a.Seat.c.Machines {
		rebooting.Go(func() {
			r := Record{Call: "reboot", Machine: m.Name(), Outside: true, AtMS: a.Seat.c.Clock(), Forgeable: rebootForgeable}
			var wants []string
			if i == 0 && len(boot.Wants) > 0 {
				wants = boot.Wants
				r.Request, r.Forgeable = map[string]any{"wants": wants}, bootForgeable
			}
			var err error
			if boot.Cut {
				r.Request, r.Forgeable = cutRequest, cutForgeable
				err = powerCycle(ctx, m)
			} else {
				err = m.Reboot(ctx, wants...)
			}
			if err == nil && wants != nil {
				r.Response = map[string]any{"confirmed": "the boot wants the units, and the referee's helper is what the image holds"}
			}
			if f := a.Seat.c.Rebooted; f != nil {
				f(m.Name())
			}
			if g := a.Seat.gone(m); g != nil {
				err = g
			}
			if err != nil {
				switch {
				case errors.Is(err, ErrGone):
				case ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded &&
					(!errors.Is(err, vm.ErrGuestRefused) || errors.Is(err, context.DeadlineExceeded)):
					err = ctx.Err() // cut off before its time was over
				case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
					err = failure(Contract, "the host did not reboot: %v", err)
				default:
					err = classify(ctx, "reboot", err)
				}
				r.fail(err)
			}
			r.TookMS = a.Seat.c.Clock() - r.AtMS
			errs[i], recs[i] = err, r
		})
	}
	rebooting.Wait()
	close(up)
	watching.Wait()
	for _, r := range append(recs, watched...) {
		a.Note(r)
	}
	for i, err := range watches {
		if err != nil {
			a.refuse(watched[i].Refused)
		}
	}
	back = errors.Join(errs...) == nil
	return back, errors.Join(append(errs, watches...)...)
}

// cutRequest marks the record of a reboot that was a power cut.
var cutRequest = map[string]any{"cut": true}

// powerCycle cuts a machine's power, unless it is off already, and puts it on again.
func powerCycle(ctx context.Context, m vm.Machine) error {
	if err := m.PowerCut(ctx); err != nil && !isOff(ctx, m) {
		return err
	}
	return m.PowerOnAgain(ctx)
}

// watchEvery is how often a watched port is looked at.
const watchEvery = 100 * time.Millisecond

// watch looks at a port again and again until done is closed. That something
// answered is a Failure; a look that failed is none.
func (s *Seat) watch(ctx context.Context, done <-chan struct{}, m vm.Machine, port int) (Record, error) {
	r := Record{Call: "watch", Machine: m.Name(), Outside: true, Forgeable: portForgeable, AtMS: s.c.Clock(), Request: map[string]any{"port": port}}
	addr, err := m.Addr(port)
	if err != nil {
		err = failure(Broken, "boot_attack: port %d of %s is not forwarded: %v", port, m.Name(), err)
		r.fail(err)
		return r, err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	looks, open := 0, 0
	for {
		select {
		case <-tick.C:
			looks++
			if state, _ := lookAtPort(ctx, addr, anyWords, s.slow(portWait)); state == "open" {
				open++
			}
			continue
		case <-done:
		case <-ctx.Done():
		}
		r.TookMS = s.c.Clock() - r.AtMS
		r.Response = map[string]any{"looks": looks, "open": open}
		if open == 0 {
			return r, nil
		}
		f := failure(Contract, "something answered on port %d while the machine rebooted", port)
		r.Refused = f.Reason
		return r, f
	}
}
