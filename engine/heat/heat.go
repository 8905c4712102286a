// Package heat runs whole heats: machines, gateways, players, the referee and
// the recording. It hides the order in which they start and end.
//
// Promises:
//
//   - Whatever happens (a seat that does not start, a context that ends at any
//     stage, a full disk), everything that a heat started has ended when Run
//     returns, and its folder is closed and says how far it got.
//   - A seat that does not start is out of the race, charged to the arena when
//     its set-up failed and to the controller otherwise; the others race on. A
//     heat without any seat is aborted.
//   - A heat all of whose players were failed by their harnesses is aborted as no
//     contest.
//   - Where the arena declares a canary, a client of the referee's writes to every seat
//     from the clock's start to the freeze, and reads back once no player reaches a
//     machine any more, for at most the drain's time again.
//   - A conquest begins with services that are healthy. Territories that its manifest
//     links are machines of one cluster, with passwords of their own; a territory that is
//     eliminated has its player ended and its machine switched off. It has no faults.
//   - Faults that the arena schedules, or a referee injects, are on their seat alone:
//     what one waits for delays no other. Before anything is read back, and before the
//     heat ends otherwise than by an abort, each is undone.
//   - A heat that branches from another starts with what its seat had reached there, and
//     says so in match.json and in its log; what the seat's set-up made is on its disks.
//   - At the freeze players are told to stop, and have the manifest's drain time
//     to leave their artefacts; nothing of that changes the outcome.
package heat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/branch"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/recording"
	"refbox/engine/referee"
	"refbox/engine/world"
	"refbox/vm"
)

// Config describes a heat.
type Config struct {
	Package *arena.Package
	Driver  vm.Driver
	Dir     string // the recording's folder; made; must not hold a heat
	// Runtime is where sockets and passwords live while the heat runs; "" is
	// XDG_RUNTIME_DIR, or the folder for temporary files.
	Runtime string
	// Disks is where the machines' disks live while the heat runs: each may grow to
	// its machine's size, and a runtime folder is often a small one in memory. "" is
	// Runtime.
	Disks string
	// Players are the adapters that can be run here; script is always there.
	Players agent.Registry
	// Budgets are what players may use up, by agent, in place of the manifest's.
	Budgets map[string]agent.Budget
	Cold    bool // boot the machines instead of resuming their prepared state
	// Thorough: once nobody plays any more, what a check disturbs is looked at as
	// often as everything else before the heat ends.
	Thorough bool
	// States takes what the seats' machines are when a milestone passes, for heats that
	// branch from this one; "" keeps nothing. That it cannot never fails a heat.
	States branch.Store
	// Branch is where the only seat's machines start from; nil for a heat of its own. The
	// package fits it, and Secret is its secret.
	Branch *branch.Point
	// Secret is what the heat's secret values are derived from; nil for a new one.
	Secret  *probe.Secret
	Version string // of refbox, for the provenance
	// Progress hears of the set-up, from when the folder is this heat's on. It is
	// called from several goroutines.
	Progress func(Progress)
}

// Progress is a step of the set-up.
type Progress struct {
	Territory string // "" for the whole heat
	Step      string
	Done      float64 // in [0,1], negative when unknown
}

// Result is what came of a heat.
type Result struct {
	Dir     string
	Aborted bool
	Voided  bool            // a referee ruled that it counts for nobody
	Outcome referee.Outcome // valid unless Aborted
	Notes   []arena.Note
}

// Run runs a heat to its end. The error is the reason of an abort, or what went
// wrong with the recording; a heat that ctx ended after its outcome has both an
// outcome and an error.
func Run(ctx context.Context, cfg Config) (Result, error) { return New(cfg).Run(ctx) }

// ended is the cause of a heat that a person ended or voided.
type ended struct{ author, reason, ruling string }

func (e ended) Error() string {
	if e.ruling == event.RulingVoided {
		return fmt.Sprintf("voided by %s: %s", e.author, e.reason)
	}
	return fmt.Sprintf("ended by %s: %s", e.author, e.reason)
}

// Heat is one heat. It is its own referee's desk. Run is called once.
type Heat struct {
	cfg    Config
	secret probe.Secret
	slow   float64
	limits limits
	// untilHealthy is how long a conquest's services may take to be healthy at the
	// start, before emulation's factor.
	untilHealthy time.Duration

	rec      *recording.Writer
	watch    stopwatch
	begun    atomic.Bool // the log says that the heat runs, or is about to
	mu       sync.Mutex  // of the log: groups of events are not interleaved
	froze    *uint64
	unlogged sync.Once

	seats []*seat
	field *field // nil where no territories are linked
	notes []arena.Note

	canaries *canaries // set before race is

	race   atomic.Pointer[contest]
	faults atomic.Pointer[faults] // set before race is
	ctx    context.Context        // of Run, from when race is set

	endMu sync.Mutex
	end   context.CancelCauseFunc
	early *ended // End was called before Run
	ended *ended // and after
	desks sync.WaitGroup

	hearing chan struct{} // holds a token while a ruling is heard
	paused  *paused       // belongs to whoever holds the token
}

var _ control.Desk = (*Heat)(nil)

// New prepares a heat; nothing is started or written before Run.
func New(cfg Config) *Heat {
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	h := &Heat{cfg: cfg, secret: probe.NewSecret(), slow: 1, limits: seatLimits, untilHealthy: startTime, hearing: make(chan struct{}, 1)}
	if cfg.Secret != nil {
		h.secret = *cfg.Secret
	}
	return h
}

// clock is the heat's clock, in ms: 0 until the race begins, and still while it is
// paused.
func (h *Heat) clock() uint64 { return h.watch.ms() }

// Append writes events, one after the other, on one reading of the clock, which
// stands still from match_finished on.
func (h *Heat) Append(bodies ...event.Body) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.append(bodies...)
}

// append is Append while h.mu is held.
func (h *Heat) append(bodies ...event.Body) (uint64, error) {
	at := h.clock()
	if h.froze != nil {
		at = *h.froze
	}
	for _, b := range bodies {
		// Before it can be read, so that who reads it finds the desk open.
		if s, ok := b.(event.MatchStateChanged); ok && s.To == "running" {
			h.begun.Store(true)
		}
		if _, err := h.rec.Append(at, b); err != nil {
			return at, err
		}
		switch b := b.(type) {
		case event.MatchFinished:
			h.froze = &at
		case event.MilestonePassed:
			if f := h.faults.Load(); f != nil {
				f.passed(b, at)
			}
		}
	}
	return at, nil
}

// say is Append for what is told to the log from the side. A log that cannot be
// written ends the heat.
func (h *Heat) say(bodies ...event.Body) {
	if _, err := h.Append(bodies...); err != nil {
		h.unlogged.Do(func() {
			slog.Error("the log cannot be written", "kind", bodies[0].Kind(), "error", err)
			h.stop(err)
		})
	}
}

// Evidence keeps what is behind a verdict. It is charged to the seat, and that of
// a failure has no path once the seat's budget is used up.
func (h *Heat) Evidence(territory, name string, n uint64, e probe.Evidence) (path, sha string, err error) {
	i := slices.IndexFunc(h.seats, func(s *seat) bool { return s.id() == territory })
	if i >= 0 && e.Verdict == "failed" && !h.seats[i].budget.take(0) {
		return "", "", nil
	}
	path, sha, err = h.rec.Evidence(territory, name, n, e)
	if info, serr := os.Stat(filepath.Join(h.rec.Dir(), path)); i >= 0 && err == nil && serr == nil {
		h.seats[i].budget.take(int(info.Size()))
	}
	return path, sha, err
}

// World is the fold of the log.
func (h *Heat) World() *world.World { return h.rec.World() }

// Run runs the heat; see the function Run.
func (h *Heat) Run(ctx context.Context) (res Result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.endMu.Lock()
	h.end = cancel
	if h.early != nil {
		cancel(*h.early)
	}
	h.endMu.Unlock()

	res.Dir = h.cfg.Dir
	versions, err := h.cfg.Driver.Versions(ctx, h.cfg.Package.Guest().Packages)
	if err != nil {
		return res, fmt.Errorf("the machines cannot be made: %w", err)
	}
	if versions["accel"] == "tcg" {
		h.slow = emulationFactor
	}
	var rules referee.Rules
	if h.cfg.Package.Manifest.Build != nil {
		if rules, err = h.rules(); err != nil {
			return res, err
		}
	}
	if err := h.seatPlayers(); err != nil {
		return res, err
	}
	res.Notes = h.notes
	match, err := h.match(versions)
	if err != nil {
		return res, err
	}
	runtime, leave, err := ownFolder(h.cfg.runtimeBase())
	if err != nil {
		return res, err
	}
	defer leave()
	disks, leaveDisks, err := ownFolder(h.cfg.disksBase())
	if err != nil {
		return res, err
	}
	defer leaveDisks()
	for i, s := range h.seats {
		s.disks = filepath.Join(disks, strconv.Itoa(i))
	}
	if h.field, err = h.newField(disks); err != nil {
		return res, err
	}
	h.rec, err = recording.Create(h.cfg.Dir, recording.Start{Match: match, Manifest: h.cfg.Package.Manifest, Seed: h.secret[:], Clock: h.clock})
	if err != nil {
		return res, err
	}

	// From here on the recording is always closed properly.
	res.Outcome, err = h.run(ctx, runtime, rules)
	res.Aborted = err != nil && !h.over()
	if res.Aborted {
		h.abort(ctx, err)
	}
	h.stopMachines()
	h.endMu.Lock()
	h.end = nil
	h.endMu.Unlock()
	h.desks.Wait()
	res.Voided = h.rec.World().Voided != nil
	for _, s := range h.seats {
		s.endConsoles()
		s.hostile.close()
		s.budget.close()
	}
	if cerr := h.rec.Finish(); cerr != nil && err == nil {
		err = cerr
	}
	return res, errors.Join(err, h.rec.Close())
}

func (h *Heat) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.froze != nil
}

// run is everything between the recording's creation and its end. Players and
// gateways have ended when it returns; machines have not.
func (h *Heat) run(ctx context.Context, runtime string, rules referee.Rules) (referee.Outcome, error) {
	began := time.Now()
	defer h.closeDoors()
	if err := h.startSeats(ctx, runtime); err != nil {
		return referee.Outcome{}, err
	}
	if err := h.open(time.Since(began)); err != nil {
		return referee.Outcome{}, err
	}
	for _, s := range h.seats {
		s.budget.open(func(limit, detail string) {
			h.say(event.LimitReached{Agent: s.arena.Agent.ID, Limit: limit, Detail: detail})
		})
	}
	race, faults, err := h.contests(rules)
	if err != nil {
		return referee.Outcome{}, err
	}
	if h.canaries, err = h.newCanaries(); err != nil {
		return referee.Outcome{}, err
	}
	defer h.canaries.stop()
	h.ctx = ctx
	faults.start(ctx)
	defer faults.end(ctx)
	h.faults.Store(faults)
	h.race.Store(&race)
	h.watch.start()
	h.canaries.start(ctx)
	players := h.startPlayers(ctx, time.Now().Add(h.cfg.Package.Manifest.Duration()), race.Expired())
	out, err := race.Run(ctx)
	h.canaries.cancel()
	var clearing sync.WaitGroup
	clearing.Go(func() { faults.end(ctx) })
	defer clearing.Wait()
	if err != nil {
		players.stop(err)
		players.wait(ctx, abortGrace)
		return out, err
	}
	return out, h.drain(ctx, players, out)
}

// contests makes what decides the heat, and its faults.
func (h *Heat) contests(rules referee.Rules) (contest, *faults, error) {
	if h.cfg.Package.Manifest.Build == nil {
		c, err := h.newConquest()
		return c, h.newFaults(nil), err
	}
	var probes []*probe.Seat
	for _, s := range h.seats {
		if s.failed == nil {
			probes = append(probes, s.probe)
		}
	}
	race := referee.New(rules, probes, h, h.clock)
	if b := h.cfg.Branch; b != nil {
		race.Inherit(b.Origin.Territory, b.From)
	}
	return race, h.newFaults(race), nil
}

// emulationFactor stretches the manifest's and the probes' timeouts when the
// machines are emulated: without hardware help a guest computes several times
// slower. It is recorded in match.json.
const emulationFactor = 3

func (h *Heat) rules() (referee.Rules, error) {
	m := h.cfg.Package.Manifest
	r := referee.Rules{Save: h.saver(), Completion: m.Build.CompletionMilestone, StopOnFirstDurable: m.Build.StopOnFirstDurable,
		Duration: m.Duration(), Tick: m.Tick(), Slow: h.slow, Thorough: h.cfg.Thorough}
	for _, ms := range m.Build.Milestones {
		file := h.cfg.Package.Verifier(ms.ID)
		v, err := probe.Load(h.cfg.Package.FS, file)
		if err != nil {
			return r, fmt.Errorf("arena %s: milestone %s: %w", m.Arena.ID, ms.ID, err)
		}
		r.Milestones = append(r.Milestones, referee.Milestone{ID: ms.ID, DependsOn: ms.DependsOn, Operation: ms.Operation,
			Timeout: time.Duration(float64(ms.Timeout()) * h.slow), Points: ms.Points, Required: ms.Required, Rests: m.Rests(ms.ID),
			Verifier: v, File: file})
	}
	return r, nil
}

// abort closes the log of a heat that has no outcome.
func (h *Heat) abort(ctx context.Context, cause error) {
	reason := cause.Error()
	var bodies []event.Body
	var e ended
	switch {
	case errors.As(context.Cause(ctx), &e):
		bodies = append(bodies, event.RefereeRuling{Ruling: cmp.Or(e.ruling, event.RulingEnded), Author: e.author, Reason: e.reason})
		reason = e.Error()
	case errors.Is(context.Cause(ctx), context.Canceled):
		reason = "operator interrupt"
	}
	from := "running"
	if h.race.Load() == nil {
		from = "preparing"
	}
	bodies = append(bodies, event.MatchStateChanged{From: from, To: "aborted"}, event.MatchFinished{Reason: reason})
	h.say(bodies...)
	for _, s := range h.seats {
		if s.playing.CompareAndSwap(true, false) {
			h.say(event.AgentTerminated{Agent: s.arena.Agent.ID, Reason: "the heat was aborted"})
		}
	}
}
