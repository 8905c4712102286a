package heat

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/referee"
	"refbox/engine/world"
	"refbox/vm"
	"refbox/vm/qemu/qemutest"
)

// overSocket serves the heat's desk and gives what another process has of it.
func overSocket(t *testing.T, h *Heat) (control.Desk, func()) {
	t.Helper()
	socket := filepath.Join(runtimeFolder(t), "desk")
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, socket, h) }()
	for {
		c, err := control.Dial(socket)
		if err == nil {
			return c, func() {
				stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}
		}
		select {
		case err := <-served:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitWorld returns when the heat's world is so.
func awaitWorld(t *testing.T, h *Heat, so func(w *world.World) bool) error {
	limit := time.Now().Add(time.Minute)
	for !h.begun.Load() || !so(h.World()) {
		if time.Now().After(limit) {
			return errors.New("it never came to be so")
		}
		select {
		case <-t.Context().Done():
			return t.Context().Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

const first = "failed-primary-preserved" // passes without anybody's doing

func passedFirst(w *world.World) bool {
	for _, s := range w.Seats() {
		if m := s.Milestone(first); m == nil || !m.Passed {
			return false
		}
	}
	return len(w.Seats()) == 3
}

func powers(h *Heat) (out []vm.Power) {
	for _, s := range h.seats {
		for _, m := range s.cluster.Machines() {
			p, err := m.Power(context.Background())
			if err != nil {
				p = vm.Power(err.Error())
			}
			out = append(out, p)
		}
	}
	return out
}

// refused wants an error with these words.
func refused(err error, words string) error {
	if err == nil || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("got %v, want %q", err, words)
	}
	return nil
}

// Every action, from here and from another process: what it does to the machines
// and the world, and that what no longer applies is refused.
func TestEveryRuling(t *testing.T) {
	for name, from := range map[string]func(*testing.T, *Heat) (control.Desk, func()){
		"in process": func(_ *testing.T, h *Heat) (control.Desk, func()) { return h, func() {} },
		"socket":     overSocket,
	} {
		t.Run(name, func(t *testing.T) {
			var clock uint64
			f := atDesk(t, func(h *Heat) error {
				d, leave := from(t, h)
				defer leave()
				ctx := t.Context()
				do := func(a control.Action, what ...string) error {
					r := control.Ruling{Action: a, Reason: "because"}
					if len(what) > 0 {
						r.Territory = what[0]
					}
					if len(what) > 1 {
						r.Milestone = what[1]
					}
					if a == control.Extend {
						r.By = time.Minute
					}
					return control.Do(ctx, d, "ann", r)
				}
				if err := awaitWorld(t, h, passedFirst); err != nil {
					return err
				}
				if err := do(control.Pause); err != nil {
					return err
				}
				clock = h.clock()
				if p := fmt.Sprint(powers(h)); p != "[paused paused paused]" {
					t.Errorf("paused, the machines are %s", p)
				}
				errs := []error{
					refused(do(control.Pause), "ann paused the heat already: because"),
					do(control.AddNote),
					do(control.Extend),
					refused(do(control.Restore, "failover-two"), "not unavailable"),
					refused(do(control.Unavailable, "nobody"), "its seats are failover-one, failover-two, failover-three"),
					do(control.Unavailable, "failover-two"),
					refused(do(control.Unavailable, "failover-two"), "already"),
					do(control.Revoke, "failover-one", first),
					refused(do(control.Revoke, "failover-one", first), "nothing to revoke"),
					refused(do(control.Uphold, "failover-three", first), "it is not revoked"),
				}
				if got := h.clock(); got != clock {
					t.Errorf("the clock went from %d to %d", clock, got)
				}
				errs = append(errs, do(control.Resume), refused(do(control.Resume), "not paused"))
				if p := fmt.Sprint(powers(h)); p != "[on on on]" {
					t.Errorf("resumed, the machines are %s", p)
				}
				w := h.World()
				if s := w.Seat("failover-two"); s.Unavailable == nil || s.CompetitorState != "unavailable" {
					t.Errorf("ruled unavailable: %+v", s.Unavailable)
				}
				if s := w.Seat("failover-one"); s.Points != 0 || s.Milestone(first).Passed || s.Revocations.Len() != 1 {
					t.Errorf("revoked, the seat has %d points", s.Points)
				}
				errs = append(errs, do(control.Uphold, "failover-one", first), do(control.Restore, "failover-two"))
				w = h.World()
				if s := w.Seat("failover-two"); s.Unavailable != nil || s.CompetitorState == "unavailable" {
					t.Errorf("restored: %+v, %s", s.Unavailable, s.CompetitorState)
				}
				if s := w.Seat("failover-one"); s.Points != 5 || !s.Milestone(first).Passed {
					t.Errorf("upheld, the seat has %d points", s.Points)
				}
				if w.ExtendedMS != 60_000 || w.PausedMS == 0 || w.Pause != nil || w.Pauses.Len() != 1 || w.Notes.Len() != 1 || w.Rulings.Len() != 5 {
					t.Errorf("extended %d, paused %d, %d pauses, %d notes, %d rulings", w.ExtendedMS, w.PausedMS, w.Pauses.Len(), w.Notes.Len(), w.Rulings.Len())
				}
				// The race goes on: what fails is looked at again.
				looks := func(w *world.World) uint64 {
					if m := w.Seat("failover-two").Milestone("reads-restored"); m != nil {
						return m.Attempts
					}
					return 0 // nobody has looked yet
				}
				n := looks(w)
				errs = append(errs, awaitWorld(t, h, func(w *world.World) bool { return looks(w) > n }))
				errs = append(errs, do(control.EndHeat), refused(do(control.EndHeat), "the heat ends already: ended by ann: because"), refused(do(control.Void), "the heat ends already"))
				return errors.Join(errs...)
			})
			if !f.Aborted || f.Voided {
				t.Errorf("%+v", f.Result)
			}
			// In replay it is the same, and nothing was checked while it was paused.
			paused := false
			err := f.rec.Events(0, f.rec.Len(), func(_ int, e event.Event) bool {
				switch e.Body.(type) {
				case event.HeatPaused:
					paused = true
				case event.HeatResumed:
					paused = false
				case event.MilestoneEvaluationStarted, event.MilestoneFailed:
					if paused {
						t.Errorf("%s while it was paused", e.Body.Kind())
					}
				}
				if paused && e.ElapsedMS != clock {
					t.Errorf("%s at %d, the clock stands at %d", e.Body.Kind(), e.ElapsedMS, clock)
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Voided while it runs, the heat ends without a winner; from another process too.
func TestVoidRunning(t *testing.T) {
	f := atDesk(t, func(h *Heat) error {
		d, leave := overSocket(t, h)
		defer leave()
		return errors.Join(control.Do(t.Context(), d, "ann", control.Ruling{Action: control.Pause, Reason: "wait"}),
			control.Do(t.Context(), d, "ann", control.Ruling{Action: control.Void, Reason: "the arena is broken"}))
	})
	w := f.rec.World(f.rec.Len())
	if !f.Voided || !f.Aborted || w.Winner != nil || w.MatchState != world.Aborted || world.OutcomeOf(w, "failover-one") != world.OutcomeVoided ||
		w.FinishReason == nil || *w.FinishReason != "voided by ann: the arena is broken" || w.Pause != nil {
		t.Errorf("%+v, %s, %v", f.Result, w.MatchState, w.FinishReason)
	}
	if got := of(t, f.rec, func(b event.RefereeRuling) bool { return b.Ruling != event.RulingVoided }); len(got) != 0 {
		t.Errorf("beside the void: %+v", got)
	}
}

// While late artefacts are collected the outcome can be voided, and nothing else.
func TestVoidDecided(t *testing.T) {
	t.Parallel()
	var h *Heat
	var errs error
	h = New(Config{Package: own(pkg(t, right, idle, idle)), Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			if s.Territory != "failover-one" {
				<-ctx.Done()
				return agent.Result{}
			}
			c, err := shell(ctx, s)
			if err != nil {
				return agent.Result{Status: agent.HarnessError, Summary: err.Error()}
			}
			defer c.Close()
			for _, line := range strings.Split(strings.TrimSpace(right), "\n") {
				if session, err := c.NewSession(); err == nil {
					session.Run(line) //nolint:errcheck // the race tells
				}
			}
			<-ctx.Done() // the freeze: the outcome is in the log
			if !h.over() {
				return agent.Result{Status: agent.Completed}
			}
			rule := func(a control.Action, territory string) error {
				return h.Rule(t.Context(), "ann", control.Ruling{Action: a, Territory: territory, By: time.Minute, Reason: "late"})
			}
			errs = errors.Join(refused(rule(control.Pause, ""), referee.ErrOver.Error()), refused(rule(control.Extend, ""), referee.ErrOver.Error()),
				refused(rule(control.Unavailable, "failover-one"), referee.ErrOver.Error()),
				rule(control.Void, ""), refused(rule(control.Void, ""), "ann voided the heat already: late"))
			return agent.Result{Status: agent.Completed}
		})})
	res, err := h.Run(t.Context())
	if err != nil || errs != nil || !res.Voided || res.Aborted {
		t.Fatalf("%+v, %v, %v", res, err, errs)
	}
	rec := open(t, res.Dir)
	w := rec.World(rec.Len())
	if w.Winner != nil || w.MatchState != world.Finished || world.OutcomeOf(w, "failover-one") != world.OutcomeVoided {
		t.Errorf("%v, %s", w.Winner, w.MatchState)
	}
}

// Referees at once, here and in another process, do not corrupt a heat: what each
// is told is what the log says, and the log makes sense.
func TestRefereesAtOnce(t *testing.T) {
	t.Parallel()
	type tally struct {
		sync.Mutex
		done, refused int
	}
	var count tally
	f := atDesk(t, func(h *Heat) error {
		if err := awaitWorld(t, h, passedFirst); err != nil {
			return err
		}
		d, leave := overSocket(t, h)
		defer leave()
		var wg sync.WaitGroup
		for i, desk := range []control.Desk{h, d, h, d} {
			dice := rand.New(rand.NewSource(int64(i)))
			wg.Go(func() {
				for range 60 {
					r := control.Ruling{Territory: []string{"failover-one", "failover-two"}[dice.Intn(2)], Milestone: first, By: time.Second, Reason: "x",
						Action: []control.Action{control.Pause, control.Resume, control.Resume, control.Extend, control.Unavailable, control.Restore, control.Revoke, control.Uphold}[dice.Intn(8)]}
					err := control.Do(t.Context(), desk, fmt.Sprint("referee-", i), r)
					count.Lock()
					if err == nil {
						count.done++
					} else {
						count.refused++
					}
					count.Unlock()
				}
			})
		}
		wg.Wait()
		return nil
	})
	if count.done < 30 || count.refused < 30 {
		t.Errorf("%d done, %d refused: that is no contest", count.done, count.refused)
	}
	state := map[string]string{} // the last of each pair
	logged := 0
	turn := func(what, to string) {
		if logged++; state[what] == to || state[what] == "" && (to == "resumed" || to == event.RulingRestored || to == event.RulingUpheld) {
			t.Errorf("%s: %s after %q", what, to, state[what])
		}
		state[what] = to
	}
	err := f.rec.Events(0, f.rec.Len(), func(_ int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.HeatPaused:
			turn("heat", "paused")
		case event.HeatResumed:
			turn("heat", "resumed")
		case event.RefereeRuling:
			switch b.Ruling {
			case event.RulingExtended:
				logged++
			case event.RulingUnavailable, event.RulingRestored:
				turn(b.Territory, b.Ruling)
			case event.RulingRevoked, event.RulingUpheld:
				turn(b.Territory+" "+b.Milestone, b.Ruling)
			}
		}
		return true
	})
	if err != nil || logged != count.done {
		t.Errorf("%v; %d rulings are in the log, %d were said to be done", err, logged, count.done)
	}
}

// A pause costs nobody anything: not the limit, not the instants.
func TestPauseIsNotOnTheClock(t *testing.T) {
	t.Parallel()
	const pause = 1500 * time.Millisecond
	p := own(pkg(t, idle, idle, idle))
	p.Manifest.Rules.DurationSeconds = 2
	racing := make(chan struct{})
	once := sync.OnceFunc(func() { close(racing) })
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			once()
			<-ctx.Done()
			return agent.Result{}
		})})
	var wg sync.WaitGroup
	var began time.Time
	wg.Go(func() {
		<-racing
		began = time.Now()
		rule := func(r control.Ruling) {
			r.Reason = "x"
			if err := h.Rule(t.Context(), "ann", r); err != nil {
				t.Error(err)
			}
		}
		rule(control.Ruling{Action: control.Pause})
		time.Sleep(pause) // it is what is measured
		rule(control.Ruling{Action: control.Extend, By: time.Second})
		rule(control.Ruling{Action: control.Resume})
	})
	res, err := h.Run(t.Context())
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	rec := open(t, res.Dir)
	w := rec.World(rec.Len())
	if w.FinishReason == nil || *w.FinishReason != "match timer expired" || *w.FinishedMS < 3000 || *w.FinishedMS > 6000 {
		t.Errorf("ended at %v: %v", *w.FinishedMS, w.FinishReason)
	}
	if took < 3*time.Second+pause-100*time.Millisecond || w.PausedMS < uint64(pause.Milliseconds()) {
		t.Errorf("took %v, paused for %d ms", took, w.PausedMS)
	}
}

// Nor is it of the time that a player has of its own.
func TestPauseIsNotThePlayersTime(t *testing.T) {
	t.Parallel()
	const pause = 1500 * time.Millisecond
	p := own(pkg(t, idle, idle, idle))
	racing := make(chan struct{})
	once := sync.OnceFunc(func() { close(racing) })
	budgets := map[string]agent.Budget{}
	for _, a := range p.Manifest.Agents {
		budgets[a.ID] = agent.Budget{Time: time.Second}
	}
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t), Budgets: budgets,
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			once()
			<-ctx.Done()
			return agent.Result{Status: agent.CutStatus(ctx)}
		})})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-racing
		for _, r := range []control.Ruling{{Action: control.Pause}, {Action: control.Resume}} {
			r.Reason = "x"
			if err := h.Rule(t.Context(), "ann", r); err != nil {
				t.Error(err)
			}
			if r.Action == control.Pause {
				time.Sleep(pause) // it is what is measured
			}
		}
	})
	res, err := h.Run(t.Context())
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	ends := 0
	rec := open(t, res.Dir)
	err = rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		if l, ok := e.Body.(event.LimitReached); ok {
			ends++
			if l.Limit != "time" || e.ElapsedMS < 950 || e.ElapsedMS > 2500 {
				t.Errorf("at %d ms of the heat's clock: %+v", e.ElapsedMS, l)
			}
		}
		return true
	})
	if err != nil || ends != len(budgets) {
		t.Errorf("%d players of %d came to their end, %v\n%s", ends, len(budgets), err, logOf(res.Dir))
	}
}

// On real machines: a paused guest does not run, and its clock is right again.
func TestRealPause(t *testing.T) {
	d := qemutest.Driver(t)
	racing := make(chan struct{})
	once := sync.OnceFunc(func() { close(racing) })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	h := New(Config{Package: own(pkg(t, idle, idle, idle)), Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			once()
			<-ctx.Done()
			return agent.Result{}
		})})
	const pause = 4 * time.Second
	var wg sync.WaitGroup
	wg.Go(func() {
		defer h.End(ctx, "ann", "enough") //nolint:errcheck // then it ends already
		select {
		case <-racing:
		case <-ctx.Done():
			return
		}
		if err := awaitWorld(t, h, func(w *world.World) bool {
			return passedFirst(w) && w.Seat("failover-one").Milestone("reads-restored") != nil
		}); err != nil {
			t.Error(err)
			return
		}
		uptimes := func() (out []time.Duration) {
			for _, s := range h.seats {
				hello, err := s.cluster.Machines()[0].Guest().Hello(ctx)
				if err != nil {
					t.Error(err)
				}
				if off := time.Since(hello.Time).Abs(); off > 2*time.Second {
					t.Errorf("%s: the guest's clock is %v off", s.id(), off)
				}
				out = append(out, hello.Uptime)
			}
			return out
		}
		before, at := uptimes(), time.Now()
		if err := h.Rule(ctx, "ann", control.Ruling{Action: control.Pause, Reason: "x"}); err != nil {
			t.Error(err)
			return
		}
		held, clock := time.Now(), h.clock()
		if p := fmt.Sprint(powers(h)); p != "[paused paused paused]" {
			t.Error(p)
		}
		select {
		case <-time.After(pause): // it is what is measured
		case <-ctx.Done():
		}
		if h.clock() != clock {
			t.Error("the clock went on")
		}
		stood := time.Since(held)
		if err := h.Rule(ctx, "ann", control.Ruling{Action: control.Resume, Reason: "x"}); err != nil {
			t.Error(err)
			return
		}
		after := uptimes()
		ran := time.Since(at) - stood
		for i := range after {
			if got := after[i] - before[i]; got > ran+500*time.Millisecond {
				t.Errorf("seat %d: the guest ran for %v, of at most %v outside the pause of %v", i, got, ran, stood)
			}
		}
		t.Logf("held after %v; guests ran %v, %v, %v of %v", held.Sub(at), after[0]-before[0], after[1]-before[1], after[2]-before[2], time.Since(at))
		n := h.World().Seat("failover-one").Milestone("reads-restored").Attempts
		if err := awaitWorld(t, h, func(w *world.World) bool { return w.Seat("failover-one").Milestone("reads-restored").Attempts > n }); err != nil {
			t.Error(err)
		}
	})
	res, err := h.Run(ctx)
	wg.Wait()
	var e ended
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	rec := open(t, res.Dir)
	if w := rec.World(rec.Len()); w.PausedMS < uint64(pause.Milliseconds()) || w.Pauses.Len() != 1 {
		t.Errorf("paused for %d ms", w.PausedMS)
	}
}
