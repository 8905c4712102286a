package heat

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/vm"
)

// stalled is a driver that stops at a stage until the test has gone on.
type stalled struct {
	vm.Driver
	prepare, start func(ctx context.Context, name string) error
}

func (d stalled) Prepare(ctx context.Context, spec vm.Spec, r vm.Report) (vm.Template, error) {
	if d.prepare != nil {
		if err := d.prepare(ctx, ""); err != nil {
			return nil, err
		}
	}
	return d.Driver.Prepare(ctx, spec, r)
}

func (d stalled) Start(ctx context.Context, t vm.Template, s vm.Start) (vm.Cluster, error) {
	if d.start != nil {
		if err := d.start(ctx, s.Name); err != nil {
			return nil, err
		}
	}
	return d.Driver.Start(ctx, t, s)
}

// player is a function that plays.
type player func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result

func (p player) Play(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
	return p(ctx, s, r)
}

func registry(p player) agent.Registry {
	return agent.Registry{"own": func(string) (agent.Player, error) { return p, nil }}
}

// cancelled runs a heat whose context ends as soon as reached is closed, and checks that it ends quickly, cleanly, and as aborted unless over.
func cancelled(t *testing.T, cfg Config, reached <-chan struct{}, state string) Result {
	t.Helper()
	cfg.Dir, cfg.Runtime = filepath.Join(t.TempDir(), "heat"), runtimeFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var at time.Time
	var wg sync.WaitGroup
	h := New(cfg)
	wg.Go(func() {
		select {
		case <-reached:
		case <-time.After(20 * time.Second):
			t.Error("the stage was not reached")
		}
		at = time.Now()
		cancel()
	})
	res, err := h.Run(ctx)
	wg.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(at); d > 5*time.Second {
		t.Errorf("it took %v to end", d)
	}
	r := open(t, res.Dir)
	w := r.World(r.Len())
	if w.MatchState != state || res.Aborted != (state == "aborted") {
		t.Errorf("state %s, result %+v\n%s", w.MatchState, res, logOf(res.Dir))
	}
	for _, a := range w.Agents() {
		if a.Running {
			t.Errorf("agent %s still runs in the log", a.ID)
		}
	}
	if m := r.Match(); m == nil || m.End == nil || m.End.State != state {
		t.Errorf("match.json has no end: %+v", m)
	}
	return res
}

// logged returns once the log of a player's heat says so.
func logged(t *testing.T, s agent.Seat, holds func(*world.World) bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := recording.Open(filepath.Dir(filepath.Dir(s.Dir)))
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	grown := r.Follow(ctx)
	defer func() {
		cancel()
		for range grown { // until nothing follows any more
		}
	}()
	for !holds(r.World(r.Len())) {
		if _, ok := <-grown; !ok {
			t.Errorf("%s: what was waited for is not in the log", s.Territory)
			return
		}
	}
}

// givenUp tells whether an agent did not end before the drain did.
func givenUp(agent string) func(*world.World) bool {
	return func(w *world.World) bool {
		a := w.Agent(agent)
		return a != nil && a.TerminalState != nil && *a.TerminalState == "terminated"
	}
}

func TestCancelWhilePreparing(t *testing.T) {
	reached := make(chan struct{})
	var once sync.Once
	d := stalled{Driver: driver(), prepare: func(ctx context.Context, _ string) error {
		once.Do(func() { close(reached) })
		<-ctx.Done()
		return ctx.Err()
	}}
	cancelled(t, Config{Package: pkg(t, idle, idle, idle), Driver: d}, reached, "aborted")
}

func TestCancelWhileStarting(t *testing.T) {
	reached := make(chan struct{})
	d := stalled{Driver: driver(), start: func(ctx context.Context, name string) error {
		if name != "failover-two" { // the others start
			return nil
		}
		close(reached)
		<-ctx.Done()
		return ctx.Err()
	}}
	cancelled(t, Config{Package: pkg(t, idle, idle, idle), Driver: d}, reached, "aborted")
}

// own gives every seat the adapter "own".
func own(p *arena.Package) *arena.Package {
	for i := range p.Manifest.Agents {
		p.Manifest.Agents[i].Adapter, p.Manifest.Agents[i].Script = "own", nil
	}
	return p
}

func TestCancelWhileRacing(t *testing.T) {
	reached := make(chan struct{})
	var once sync.Once
	p := own(pkg(t, idle, idle, idle))
	cfg := Config{Package: p, Driver: driver(), Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		time.AfterFunc(300*time.Millisecond, func() { once.Do(func() { close(reached) }) })
		<-ctx.Done()
		return agent.Result{}
	})}
	cancelled(t, cfg, reached, "aborted")
}

func TestCancelWhileDraining(t *testing.T) {
	t.Parallel()
	p := own(pkg(t, idle, idle, idle))
	p.Manifest.Rules.DurationSeconds = 1
	p.Manifest.Heat.DrainSeconds = 60
	draining := make(chan struct{})
	var once sync.Once
	cfg := Config{Package: p, Driver: driver(), Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		<-ctx.Done()
		logged(t, s, func(w *world.World) bool { return w.MatchState == "finished" })
		once.Do(func() { close(draining) })
		// It tidies up until it is given up.
		logged(t, s, givenUp(s.Agent))
		return agent.Result{Status: agent.Completed}
	})}
	res := cancelled(t, cfg, draining, "finished")
	if res.Outcome.Reason != "match timer expired" {
		t.Errorf("%+v", res.Outcome)
	}
}

// A heat that was cancelled before it waits for its players waits no longer than
// one that is cancelled meanwhile.
func TestCancelledHeatHasNoPatience(t *testing.T) {
	for _, when := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), when)
			defer cancel()
			p := &players{ends: make(chan playerEnd), left: map[*seat]bool{{}: true}}
			began := time.Now()
			p.wait(ctx, time.Hour)
			if d := time.Since(began); d != when+abortGrace {
				t.Errorf("cancelled after %v: it waited for %v", when, d)
			}
		})
	}
}

func TestDrainTakesLateResults(t *testing.T) {
	p := own(pkg(t, idle, idle, idle))
	p.Manifest.Rules.DurationSeconds = 1
	p.Manifest.Heat.DrainSeconds = 1
	tokens := func(n uint64) *uint64 { return &n }
	dir := filepath.Join(t.TempDir(), "heat")
	res, err := Run(t.Context(), Config{Package: p, Driver: driver(), Dir: dir, Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			r.Usage(agent.Usage{InputTokens: tokens(100), ResourceUnits: 2})
			if s.Territory == "failover-two" { // done before the freeze
				return agent.Result{Status: agent.Completed, Summary: "done", Usage: agent.Usage{InputTokens: tokens(150), ResourceUnits: 3}}
			}
			<-ctx.Done()
			if s.Territory == "failover-three" { // too late
				logged(t, s, givenUp(s.Agent))
			}
			return agent.Result{Status: agent.Completed, Summary: "late", Usage: agent.Usage{InputTokens: tokens(120), ResourceUnits: 2}}
		})})
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, res.Dir)
	w := r.World(r.Len())
	got := map[string]string{}
	for _, a := range w.Agents() {
		got[a.Territory] = *a.TerminalState
	}
	if got["failover-one"] != "incomplete" || got["failover-two"] != "completed" || got["failover-three"] != "terminated" {
		t.Errorf("%v", got)
	}
	if a := w.Agent("careful"); a.InputTokens != 150 || a.ResourceUnits != 3 {
		t.Errorf("usage %+v", a)
	}
	if w.Drain.Captured != 1 || w.Drain.Terminated != 1 || w.Drain.Pending != 2 {
		t.Errorf("drain %+v", w.Drain)
	}
}

func TestSeatThatDoesNotStartIsOut(t *testing.T) {
	t.Parallel()
	d := stalled{Driver: driver(), start: func(_ context.Context, name string) error {
		if name == "failover-two" {
			return errors.New("no memory\x1b[2J")
		}
		return nil
	}}
	f := race(t, d, pkg(t, right, right, idle))
	if f.Outcome.Winner != "failover-one" || len(f.Outcome.Seats) != 3 || f.Outcome.Seats[2].State != "unavailable" {
		t.Fatalf("%+v", f.Outcome)
	}
	un := of(t, f.rec, func(event.SeatUnavailable) bool { return true })
	if len(un) != 1 || un[0].Territory != "failover-two" || un[0].Source != "controller" || !strings.Contains(un[0].Detail, "no memory") {
		t.Errorf("%+v", un)
	}
	if s := f.rec.World(f.rec.Len()).Seat("failover-two"); s.CompetitorState != "unavailable" {
		t.Errorf("state %s", s.CompetitorState)
	}
}

func TestNoSeatStarts(t *testing.T) {
	d := stalled{Driver: driver(), start: func(context.Context, string) error { return errors.New("no memory") }}
	dir := filepath.Join(t.TempDir(), "heat")
	res, err := Run(t.Context(), Config{Package: pkg(t, idle, idle, idle), Driver: d, Dir: dir, Runtime: runtimeFolder(t)})
	if err == nil || !res.Aborted || !strings.Contains(err.Error(), "no memory") {
		t.Fatalf("%+v %v", res, err)
	}
	r := open(t, dir)
	if w := r.World(r.Len()); w.MatchState != "aborted" {
		t.Errorf("state %s", w.MatchState)
	}
}

func TestDesk(t *testing.T) {
	racing := make(chan struct{})
	var once sync.Once
	h := New(Config{Package: own(pkg(t, idle, idle, idle)), Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			once.Do(func() { close(racing) })
			<-ctx.Done()
			return agent.Result{}
		})})
	if err := h.Note(t.Context(), "ann", "too early"); err == nil {
		t.Error("a note was taken before the heat")
	}
	if _, err := h.Attach(t.Context(), "ann", "failover-one", "host"); err == nil {
		t.Error("a console was attached before the heat")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		<-racing
		if err := h.Note(t.Context(), "ann\x1b[2J", "it hums"); err != nil {
			t.Error(err)
		}
		if _, err := h.Attach(t.Context(), "ann", "nowhere", "host"); err == nil {
			t.Error("a seat that is not there was attached")
		}
		c, err := h.Attach(t.Context(), "ann", "failover-one", "host")
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.WriteString(c, "root\r"); err != nil {
			t.Error(err)
		}
		if err := until(c, "root\r\n"); err != nil {
			t.Error(err)
		}
		c.Close()
		c.Close()
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("a detached console takes input")
		}
		left, err := h.Attach(t.Context(), "bob", "failover-two", "host") // ends with the heat
		if err != nil {
			t.Error(err)
			return
		}
		if err := h.End(t.Context(), "ann", "enough"); err != nil {
			t.Error(err)
		}
		io.Copy(io.Discard, left)
	})
	res, err := h.Run(t.Context())
	wg.Wait()
	var e ended
	if !errors.As(err, &e) || !res.Aborted || e.author != "ann" {
		t.Fatalf("%+v %v", res, err)
	}
	if err := h.Note(t.Context(), "ann", "too late"); err == nil {
		t.Error("a note was taken after the heat")
	}
	r := open(t, res.Dir)
	if n := of(t, r, func(event.OperatorNote) bool { return true }); len(n) != 1 || n[0].Author != "ann" || n[0].Text != "it hums" {
		t.Errorf("notes %+v", n)
	}
	d := of(t, r, func(event.ConsoleDetached) bool { return true })
	if len(d) != 2 || d[0].Author != "ann" || d[0].Input != "root" && d[0].Input != "root\n" || d[0].Bytes != 5 {
		t.Errorf("detached %+v", d)
	}
	if rr := of(t, r, func(event.RefereeRuling) bool { return true }); len(rr) != 1 || rr[0].Reason != "enough" {
		t.Errorf("ruling %+v", rr)
	}
	if s := r.World(r.Len()).Seat("failover-one"); s.Touches.Len() != 1 {
		t.Error("the seat is not marked as touched")
	}
}

func TestEndBeforeRun(t *testing.T) {
	h := New(Config{Package: pkg(t, idle, idle, idle), Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	if err := h.End(t.Context(), "ann", "wrong arena"); err != nil {
		t.Fatal(err)
	}
	res, err := h.Run(t.Context())
	if !res.Aborted || err == nil {
		t.Fatalf("%+v %v", res, err)
	}
	r := open(t, res.Dir)
	if w := r.World(r.Len()); w.MatchState != "aborted" || w.FinishReason == nil || !strings.Contains(*w.FinishReason, "wrong arena") {
		t.Errorf("%+v", w)
	}
}

func TestSetUpFailureIsTheArenas(t *testing.T) {
	p := pkg(t, idle, idle, idle)
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	p.Manifest.FogOfWar = &arena.FogOfWar{PlayerBrief: "CONTRACT.md", GuestLeakAudit: &arena.GuestLeakAudit{
		ScanPaths: []string{"/opt/failover"}, ForbiddenStrings: []string{"replica.sqlite3"}}}
	res, err := h.Run(t.Context())
	if !res.Aborted || err == nil || h.seats[0].failed == nil || h.seats[0].failed.source != "arena" {
		t.Fatalf("%+v %v %+v", res, err, h.seats[0].failed)
	}
}

func TestNoContest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	_, err := Run(t.Context(), Config{Package: own(pkg(t, idle, idle, idle)), Driver: driver(), Dir: dir, Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			if s.Territory == "failover-one" {
				return agent.Result{Status: agent.Unavailable, Summary: "no credit"}
			}
			return agent.Result{Status: agent.HarnessError, Summary: "exit 127"}
		})})
	if err == nil || !strings.Contains(err.Error(), "no contest") {
		t.Fatal(err)
	}
	r := open(t, dir)
	if w := r.World(r.Len()); w.MatchState != "aborted" || *w.Agent("right").FailureSource != "provider" || *w.Agent("hasty").FailureSource != "harness" {
		t.Errorf("%s\n%s", w.MatchState, logOf(dir))
	}
}

// A host that fails a machine takes its seat out of the race, and charges nobody who
// plays; the others go on.
func TestHostFailsAMachine(t *testing.T) {
	t.Parallel()
	d := driver()
	p := pkg(t, after(2*time.Second, bundledScript(t, "right")), idle, idle)
	h := New(Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	var once sync.Once
	h.cfg.Progress = func(pr Progress) {
		if pr.Territory == "failover-two" && pr.Step == "seat ready" {
			once.Do(func() { d.Faults("failover-two", "host").Fail(syscall.ENOSPC) })
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := h.Run(ctx)
	if err != nil || res.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v %v\n%s", res, err, logOf(res.Dir))
	}
	r := open(t, res.Dir)
	out := of(t, r, func(b event.SeatUnavailable) bool { return true })
	if len(out) != 1 || out[0].Territory != "failover-two" || out[0].Source != "controller" || !strings.Contains(out[0].Detail, syscall.ENOSPC.Error()) {
		t.Errorf("%+v\n%s", out, logOf(res.Dir))
	}
	if n := len(of(t, r, func(b event.MilestoneFailed) bool { return b.Territory == "failover-two" && b.Source == "player" })); n != 0 {
		t.Errorf("%d failures are charged to its player\n%s", n, logOf(res.Dir))
	}
}
