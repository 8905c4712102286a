package referee

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/world"
	"refbox/vm"
)

// machine is what a race needs of one: it can be rebooted and be gone.
type machine struct {
	vm.Machine
	done   chan struct{}
	reboot func(context.Context) error
}

func (m *machine) Name() string                                  { return "host" }
func (m *machine) Err() error                                    { return nil }
func (m *machine) Console() vm.Console                           { return silentConsole{} }
func (m *machine) Done() <-chan struct{}                         { return m.done }
func (m *machine) Reboot(ctx context.Context, _ ...string) error { return m.reboot(ctx) }

type silentConsole struct{ vm.Console }

func (silentConsole) Attach(func([]byte)) func() { return func() {} }

// world is the state that scripted verifiers look at: what holds, since when.
type verifier struct {
	verify func(context.Context, *probe.Attempt) error
	boot   *probe.Boot
	attack []string
	strike func(ctx context.Context, territory string, i int) error
	undo   func(ctx context.Context, territory string, i int) error
	holds  func(ctx context.Context, territory string) error
}

func (v *verifier) Boot() *probe.Boot                            { return v.boot }
func (v *verifier) SHA256() string                               { return "none" }
func (v *verifier) Before(context.Context, *probe.Attempt) error { return nil }
func (v *verifier) Verify(ctx context.Context, a *probe.Attempt) (json.RawMessage, error) {
	if err := v.verify(ctx, a); err != nil {
		return nil, err
	}
	return json.RawMessage(`{}`), nil
}
func (v *verifier) Attacks() []string { return v.attack }
func (v *verifier) Attack(ctx context.Context, a *probe.Attempt, i int) error {
	return v.strike(ctx, a.Seat.Territory(), i)
}
func (v *verifier) Undo(ctx context.Context, a *probe.Attempt, i int) error {
	if v.undo == nil {
		return nil
	}
	return v.undo(ctx, a.Seat.Territory(), i)
}
func (v *verifier) Holds(ctx context.Context, a *probe.Attempt) error {
	if v.holds == nil {
		return nil
	}
	return v.holds(ctx, a.Seat.Territory())
}

func refused(format string, args ...any) error {
	return &probe.Failure{Category: probe.Contract, Source: "player", Reason: fmt.Sprintf(format, args...)}
}

// log keeps the lines of a race.
type log struct {
	mu    sync.Mutex
	clock func() uint64
	lines []event.Event
	files map[string]probe.Evidence
	fail  error
	fold  *world.World
}

func (l *log) World() *world.World {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fold.Clone()
}

func (l *log) Append(bodies ...event.Body) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return 0, l.fail
	}
	at := l.clock()
	for _, b := range bodies {
		l.lines = append(l.lines, event.Event{Sequence: uint64(len(l.lines)), ElapsedMS: at, Body: b})
		world.Apply(l.fold, l.lines[len(l.lines)-1])
	}
	return at, nil
}

func (l *log) Evidence(territory, name string, n uint64, e probe.Evidence) (string, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path := fmt.Sprintf("seats/%s/evidence/%s-%d.json", territory, name, n)
	if _, ok := l.files[path]; ok {
		return "", "", errors.New("written twice: " + path)
	}
	l.files[path] = e
	return path, "sha", nil
}

// text is the log, seat by seat: at one instant the seats' order is chance.
func (l *log) text() []byte {
	var b bytes.Buffer
	for _, id := range []string{"one", "two", "three", ""} {
		for _, e := range l.lines {
			e.Sequence = 0
			line := event.Encode(e)
			if id != "" && bytes.Contains(line, []byte(`"territory":"`+id+`"`)) || id == "" && !bytes.Contains(line, []byte(`"territory"`)) {
				b.Write(append(line, '\n'))
			}
		}
	}
	return b.Bytes()
}

// of gives the events of one kind, of one territory, as they were logged.
func of[T event.Body](l *log, keep func(T) bool) (out []T) {
	for _, e := range l.lines {
		if b, ok := e.Body.(T); ok && keep(b) {
			out = append(out, b)
		}
	}
	return out
}

// field is a race on a fake clock between seats whose verifiers are Go.
type field struct {
	t     *testing.T
	race  *Race
	log   *log
	start time.Time
	ms    map[string]*machine
}

// now is the time since the race began.
func (f *field) now() time.Duration { return time.Since(f.start) }

// after refuses until d has passed since the race began.
func (f *field) after(d time.Duration) error {
	if f.now() < d {
		return refused("not before %v", d)
	}
	return nil
}

func newField(t *testing.T, rules Rules, territories ...string) *field {
	f := &field{t: t, start: time.Now(), ms: map[string]*machine{}}
	clock := func() uint64 { return uint64(time.Since(f.start).Milliseconds()) }
	f.log = &log{clock: clock, files: map[string]probe.Evidence{}, fold: world.New()}
	var seats []*probe.Seat
	for _, id := range territories {
		m := &machine{done: make(chan struct{}), reboot: func(ctx context.Context) error { return sleep(ctx, 5*time.Second) }}
		f.ms[id] = m
		s, err := probe.NewSeat(probe.Config{Territory: id, Machines: []vm.Machine{m}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		seats = append(seats, s)
		world.Apply(f.log.fold, event.Event{Body: event.TerritoryRegistered{Territory: id}})
	}
	if rules.Tick == 0 {
		rules.Tick = time.Second
	}
	if rules.Duration == 0 {
		rules.Duration = 5 * time.Minute
	}
	f.race = New(rules, seats, f.log, clock)
	return f
}

func (f *field) run() Outcome {
	f.t.Helper()
	o, err := f.race.Run(f.t.Context())
	if err != nil {
		f.t.Fatalf("run: %v", err)
	}
	return o
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step is a milestone whose verifier asks f.
func step(id string, points uint64, verify func(ctx context.Context, territory string) error, deps ...string) Milestone {
	return Milestone{ID: id, DependsOn: deps, Operation: Observe, Timeout: 30 * time.Second, Points: points, Required: true, File: id + ".star",
		Verifier: &verifier{verify: func(ctx context.Context, a *probe.Attempt) error { return verify(ctx, a.Seat.Territory()) }}}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func passes(context.Context, string) error { return nil }

func TestWinnerIsFirstDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		ready := map[string]time.Duration{"one": 7 * time.Second, "two": 3500 * time.Millisecond, "three": time.Hour}
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			step("seen", 5, passes),
			step("up", 95, func(ctx context.Context, s string) error { return f.after(ready[s]) }, "seen"),
		}}, "one", "two", "three")
		time.AfterFunc(3500*time.Millisecond, func() { f.race.Nudge("two") })
		o := f.run()
		if o.Winner != "two" || o.Reason != "first durable deployment" {
			t.Fatalf("outcome %+v", o)
		}
		got := []string{}
		for _, s := range o.Seats {
			got = append(got, fmt.Sprintf("%d %s %s %d", s.Rank, s.Territory, s.State, s.Points))
		}
		want := []string{"1 two durable 100", "2 one incomplete 5", "2 three incomplete 5"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		golden(t, "winner.jsonl", f.log.text())
	})
}

// golden compares with testdata; UPDATE=1 writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestWedgedSeatDelaysNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: false, Duration: time.Minute, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(ctx context.Context, s string) error {
				if s == "wedged" {
					<-ctx.Done() // until its own timeout
					return ctx.Err()
				}
				return f.after(2 * time.Second)
			}),
		}}, "wedged", "quick")
		o := f.run()
		if o.Winner != "quick" || o.Seats[0].Durable.At != 2000 {
			t.Fatalf("outcome %+v", o)
		}
		fails := of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "wedged" })
		if len(fails) != 2 || fails[0].Category != "timeout" || !fails[0].Retryable || fails[1].Retryable {
			t.Fatalf("failures of the wedged seat: %+v", fails)
		}
		if f.now() != time.Minute {
			t.Errorf("ended after %v, not exactly at the deadline", f.now())
		}
		if o.Reason != "match timer expired" {
			t.Errorf("reason %q", o.Reason)
		}
	})
}

func TestDeadlineIsExactBetweenTicks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Duration: 10*time.Second + 300*time.Millisecond, Completion: "up", Milestones: []Milestone{
			step("up", 10, func(context.Context, string) error { return refused("no") }),
		}}, "one", "two")
		o := f.run()
		if o.Winner != "" || len(o.DeadHeat) != 0 || f.now() != 10300*time.Millisecond {
			t.Fatalf("outcome %+v after %v", o, f.now())
		}
	})
}

// Both seats become durable while the other is being looked at.
func TestDeadHeatInThePhotoFinish(t *testing.T) {
	for _, tc := range []struct {
		name     string
		reboot   time.Duration // of two
		ready    time.Duration // when two's work is done
		deadHeat []string
		winner   string
	}{
		{"overlapping instants", 5300 * time.Millisecond, 0, []string{"one", "two"}, ""},
		{"a slow reboot costs nothing", 25 * time.Second, 0, []string{"one", "two"}, ""},
		{"further apart", 5 * time.Second, 1500 * time.Millisecond, nil, "one"},
		{"a quick reboot gains nothing", time.Second, 1500 * time.Millisecond, nil, "one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var f *field
				f = newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
					step("work", 10, func(_ context.Context, s string) error {
						if s == "one" {
							return nil
						}
						return f.after(tc.ready)
					}),
					{ID: "up", DependsOn: []string{"work"}, Operation: HostReboot, Timeout: 40 * time.Second, Points: 10, Required: true,
						Verifier: &verifier{verify: func(ctx context.Context, a *probe.Attempt) error { return sleep(ctx, 500*time.Millisecond) }}},
				}}, "one", "two")
				f.ms["two"].reboot = func(ctx context.Context) error { return sleep(ctx, tc.reboot) }
				o := f.run()
				if !slices.Equal(o.DeadHeat, tc.deadHeat) || o.Winner != tc.winner {
					t.Fatalf("outcome %+v", o)
				}
				want := uint64(1500)
				if tc.ready > 0 {
					want = 2500
				}
				if o.Seats[1].Durable == nil || o.Seats[1].Durable.At != want || o.Seats[0].Durable.At != 1500 {
					t.Errorf("%+v", o.Seats)
				}
				end := of(f.log, func(event.MatchFinished) bool { return true })
				if len(end) != 1 || !slices.Equal(end[0].DeadHeat, tc.deadHeat) {
					t.Errorf("end %+v", end)
				}
			})
		})
	}
}

// fenced is a ladder of a fence that is attacked, and a reboot.
func fenced(attack func(territory string) time.Duration, ready func(territory string) error) []Milestone {
	return []Milestone{
		{ID: "fence", Operation: Observe, Timeout: 10 * time.Second, Points: 20, Required: true, Verifier: &verifier{
			verify: func(_ context.Context, a *probe.Attempt) error { return ready(a.Seat.Territory()) },
			attack: []string{"a", "b"},
			strike: func(ctx context.Context, s string, _ int) error { return sleep(ctx, attack(s)) },
		}},
		{ID: "up", DependsOn: []string{"fence"}, Operation: HostReboot, Timeout: 40 * time.Second, Points: 80, Required: true,
			Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}},
	}
}

// A seat that the referee still held up when another was durable, and that was
// as early on its own clock, goes on, and wins.
func TestHeldUpSeatGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: fenced(func(s string) time.Duration {
			if s == "early" {
				return 4500 * time.Millisecond
			}
			return 100 * time.Millisecond
		}, func(s string) error {
			switch s {
			case "early":
				return nil
			case "late":
				return f.after(2 * time.Second)
			}
			return f.after(9 * time.Second) // when the race is over for it
		})}, "early", "late", "idle")
		o := f.run()
		if o.Winner != "early" || o.Seats[0].Durable.At != 1000 || o.Seats[1].Durable.At != 2000 {
			t.Fatalf("outcome %+v", o)
		}
		began := of(f.log, func(e event.MilestoneEvaluationStarted) bool { return e.Milestone == "up" && e.Territory == "early" })
		if idle := of(f.log, func(e event.MilestonePassed) bool { return e.Territory == "idle" }); len(idle) != 0 {
			t.Errorf("the idle seat went on: %+v", idle)
		}
		if len(began) != 1 || f.now() != 15*time.Second {
			t.Errorf("%d reboots, ended after %v", len(began), f.now())
		}
	})
}

// Who makes the referee's work last gains no more than the milestone's timeout.
func TestCreditIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{Completion: "up", Milestones: fenced(func(s string) time.Duration {
			if s == "slow" {
				return 9 * time.Second
			}
			return time.Second
		}, func(string) error { return nil })}, "slow", "fair")
		o := f.run()
		if o.Winner != "fair" || o.Seats[0].Durable.At != 1000 || o.Seats[1].Durable.At != 9000 {
			t.Fatalf("outcome %+v", o)
		}
		d := of(f.log, func(b event.DurableDeploymentCompleted) bool { return b.Territory == "slow" })
		if d[0].AttackMS != 15000 {
			t.Errorf("credited %d, want 10 s of the attacks and 5 s of the reboot", d[0].AttackMS)
		}
	})
}

// Who was not done when the attacks were over did not wait for them, and a reboot
// that failed by the player's doing is charged.
func TestOnlyWaitingIsCredited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		ms := fenced(func(string) time.Duration { return 4 * time.Second }, func(string) error { return nil })
		tries := 0
		ms[1].Verifier = &verifier{verify: func(context.Context, *probe.Attempt) error {
			if tries++; tries == 1 {
				return refused("not yet")
			}
			return nil
		}}
		f = newField(t, Rules{Completion: "up", Milestones: ms}, "one")
		o := f.run()
		// Fence 1 s, attacks to 9 s, reboot to 14 s; again after five ticks, at 19 s.
		if at := o.Seats[0].Durable.At; at != 19000 {
			t.Fatalf("durable at %d: %+v", at, o)
		}
	})
}

func TestRebootAsAnAttack(t *testing.T) {
	for _, tc := range []struct {
		name           string
		reboot, run    error
		source, reason string
		undone         int
	}{
		{"withstood", nil, nil, "", "", 1},
		{"lost", nil, refused("the old primary came up"), "player", "attack: boot it enabled: the old primary came up", 1},
		{"blocked", fmt.Errorf("%w: it did not go down in time", vm.ErrGuestRefused), nil, "player", "attack: boot it enabled: reboot: the guest did not comply: it did not go down in time", 1},
		{"the host's fault", fmt.Errorf("%w: no process", vm.ErrTransport), nil, "controller", "attack: boot it enabled: reboot: channel to the guest failed: no process", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				undone := 0
				boot := &probe.Boot{Words: "boot it enabled", Wants: []string{"old.service"},
					Run: func(ctx context.Context, _ *probe.Attempt) error {
						return errors.Join(sleep(ctx, 2*time.Second), tc.run)
					},
					Undo: func(context.Context, *probe.Attempt) error { undone++; return nil }}
				f := newField(t, Rules{StopOnFirstDurable: true, Duration: 9 * time.Second, Completion: "up", Milestones: []Milestone{
					{ID: "up", Operation: HostReboot, Timeout: 40 * time.Second, Points: 10, Required: true,
						Verifier: &verifier{boot: boot, verify: func(ctx context.Context, a *probe.Attempt) error { return sleep(ctx, 500*time.Millisecond) }}},
				}}, "one")
				f.ms["one"].reboot = func(ctx context.Context) error { return errors.Join(sleep(ctx, 5*time.Second), tc.reboot) }
				o := f.run()
				fin := of(f.log, func(event.AttackFinished) bool { return true })
				if len(fin) != 1 || fin[0].Held != (tc.reason == "") || undone != tc.undone || fin[0].Milestone != "up" || f.log.files[fin[0].Record].Records[0].Call != "reboot" {
					t.Fatalf("attacks %+v, undone %d", fin, undone)
				}
				if tc.reason == "" {
					if o.Winner != "one" || o.Seats[0].Durable.At != 1500 || *o.Seats[0].Durable.NotBefore != 1000 {
						t.Errorf("outcome %+v", o)
					}
					return
				}
				fail := of(f.log, func(event.MilestoneFailed) bool { return true })
				if o.Winner != "" || len(fail) == 0 || fail[0].Source != tc.source || fail[0].Detail != tc.reason {
					t.Errorf("outcome %+v, failures %+v", o, fail)
				}
			})
		})
	}
}

func TestOnlyWhatIsInFlightFinishes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "last", Milestones: []Milestone{
			step("first", 10, func(ctx context.Context, s string) error {
				if s == "slow" {
					return sleep(ctx, 3*time.Second) // in flight when the other wins
				}
				return nil
			}),
			step("last", 10, func(ctx context.Context, s string) error { return f.after(2 * time.Second) }, "first"),
		}}, "slow", "fast")
		o := f.run()
		if o.Winner != "fast" {
			t.Fatalf("outcome %+v", o)
		}
		if s := o.Seats[1]; s.Passed != 1 || s.Points != 10 || s.State != "incomplete" {
			t.Errorf("slow: %+v", s)
		}
		if n := len(of(f.log, func(b event.MilestoneEvaluationStarted) bool { return b.Territory == "slow" && b.Milestone == "last" })); n != 0 {
			t.Errorf("%d evaluations began after the freeze", n)
		}
	})
}

// A seat that does not answer holds up the end for a moment only.
func TestPhotoFinishIsBounded(t *testing.T) {
	for _, decisive := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var f *field
			wedge := func(ctx context.Context, s string) error {
				if s == "wedged" {
					<-ctx.Done()
					return ctx.Err()
				}
				return f.after(1500 * time.Millisecond)
			}
			first := step("first", 1, passes)
			ms := []Milestone{first, step("up", 1, wedge, "first")}
			want := 2*time.Second + finishTime
			if !decisive {
				ms = append(ms, step("last", 1, passes, "up"))
				want = 2*time.Second + photoTime
			}
			f = newField(t, Rules{StopOnFirstDurable: true, Completion: ms[len(ms)-1].ID, Milestones: ms}, "wedged", "fair")
			o := f.run()
			if o.Winner != "fair" || f.now() != want {
				t.Fatalf("outcome %+v after %v", o, f.now())
			}
			cut := of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "wedged" })
			if len(cut) != 1 || cut[0].Source != "controller" || cut[0].Detail != "cut off: the heat is decided" {
				t.Fatalf("%+v", cut)
			}
		})
	}
}

func TestAttackThatIsCutOffHasNoEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			{ID: "fence", Operation: Observe, Timeout: time.Minute, Points: 20, Required: true, Verifier: &verifier{
				verify: func(context.Context, *probe.Attempt) error { return nil },
				attack: []string{"a"},
				strike: func(ctx context.Context, s string, _ int) error {
					if s == "slow" {
						return sleep(ctx, 40*time.Second)
					}
					return sleep(ctx, time.Second)
				},
			}},
			step("up", 80, passes, "fence"),
		}}, "slow", "fair")
		if o := f.run(); o.Winner != "fair" || f.now() != 2*time.Second+photoTime {
			t.Fatalf("outcome %+v after %v", o, f.now())
		}
		if n := of(f.log, func(b event.AttackFinished) bool { return b.Territory == "slow" }); len(n) != 0 {
			t.Errorf("%+v", n)
		}
		cut := of(f.log, func(event.MilestoneFailed) bool { return true })
		if len(cut) != 1 || cut[0].Source != "controller" || cut[0].Detail != "attack: a: cut off: the heat is decided" {
			t.Errorf("%+v", cut)
		}
	})
}

func TestAttackRefusesAndIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		undone := 0
		var fenced atomic.Bool
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "fence", Milestones: []Milestone{
			{ID: "fence", Operation: Observe, Timeout: 10 * time.Second, Points: 20, Required: true, Verifier: &verifier{
				verify: func(context.Context, *probe.Attempt) error { return nil },
				attack: []string{"start the old primary"},
				strike: func(ctx context.Context, _ string, _ int) error {
					if err := sleep(ctx, 2*time.Second); err != nil {
						return err
					}
					if !fenced.Load() {
						return refused("it acknowledged a write")
					}
					return nil
				},
				undo: func(context.Context, string, int) error { undone++; return nil },
			}},
		}}, "one")
		time.AfterFunc(3500*time.Millisecond, func() { fenced.Store(true); f.race.Nudge("one") })
		o := f.run()
		if o.Winner != "one" {
			t.Fatalf("outcome %+v", o)
		}
		fin := of(f.log, func(event.AttackFinished) bool { return true })
		if len(fin) != 2 || fin[0].Held || !fin[0].Undone || !fin[1].Held || undone != 2 || fin[1].TookMS != 2000 {
			t.Fatalf("attacks %+v, undone %d", fin, undone)
		}
		fail := of(f.log, func(event.MilestoneFailed) bool { return true })
		if len(fail) != 1 || fail[0].Detail != "attack: start the old primary: it acknowledged a write" || fail[0].Source != "player" {
			t.Fatalf("failures %+v", fail)
		}
		// Seen to hold when its verifier passed, not when the attacks were over.
		pass := of(f.log, func(event.MilestonePassed) bool { return true })
		if *pass[0].HeldAt >= 6000 {
			t.Errorf("held at %d", *pass[0].HeldAt)
		}
		e := f.log.files[pass[0].Record]
		if len(e.Attacks) != 1 || e.Verdict != "passed" {
			t.Errorf("evidence %+v", e)
		}
	})
}

// An attack on an earlier milestone delays the seat; that is taken off.
func TestAttackTimeIsNotCharged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		fence := Milestone{ID: "fence", Operation: Observe, Timeout: 30 * time.Second, Points: 20, Required: true, Verifier: &verifier{
			verify: func(context.Context, *probe.Attempt) error { return nil },
			attack: []string{"a"},
			strike: func(ctx context.Context, s string, _ int) error {
				if s == "long" {
					return sleep(ctx, 9*time.Second)
				}
				return sleep(ctx, time.Second)
			},
		}}
		f = newField(t, Rules{StopOnFirstDurable: false, Completion: "up", Milestones: []Milestone{
			fence, step("up", 80, func(ctx context.Context, s string) error {
				if s == "late" {
					return f.after(3 * time.Second)
				}
				return nil
			}, "fence"),
		}}, "long", "late")
		o := f.run()
		if o.Winner != "long" {
			t.Fatalf("outcome %+v", o)
		}
		if o.Seats[0].Durable.At != 1000 {
			t.Errorf("durable at %d, want the tick of its first evaluation", o.Seats[0].Durable.At)
		}
		d := of(f.log, func(b event.DurableDeploymentCompleted) bool { return b.Territory == "long" })
		if d[0].AttackMS != 9000 {
			t.Errorf("attack time %d", d[0].AttackMS)
		}
	})
}

// TestLookingAgainIsNotCharged: a fence is attacked again after a reboot, and
// fences differ in how long that takes.
func TestLookingAgainIsNotCharged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fence := step("fence", 20, passes)
		fence.Verifier.(*verifier).holds = func(ctx context.Context, s string) error {
			if s == "long" {
				return sleep(ctx, 9*time.Second)
			}
			return sleep(ctx, time.Second)
		}
		f := newField(t, Rules{Completion: "up", Milestones: []Milestone{
			fence,
			{ID: "reboot", DependsOn: []string{"fence"}, Operation: HostReboot, Timeout: time.Minute, Points: 40, Required: true,
				Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}},
			step("up", 40, passes, "reboot"),
		}}, "long", "short")
		f.run()
		got := map[string]uint64{}
		for _, d := range of(f.log, func(event.DurableDeploymentCompleted) bool { return true }) {
			got[d.Territory] = *d.DurableAt
		}
		if diff := cmp.Diff(map[string]uint64{"long": 1000, "short": 1000}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUndoThatFailsRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Duration: 10 * time.Second, Completion: "fence", Milestones: []Milestone{
			{ID: "fence", Operation: Observe, Timeout: time.Second, Points: 20, Required: true, Verifier: &verifier{
				verify: func(context.Context, *probe.Attempt) error { return nil },
				attack: []string{"a"},
				strike: func(context.Context, string, int) error { return nil },
				undo:   func(context.Context, string, int) error { return refused("the unit still runs") },
			}},
		}}, "one")
		o := f.run()
		fin := of(f.log, func(event.AttackFinished) bool { return true })
		if o.Winner != "" || len(fin) == 0 || !fin[0].Held || fin[0].Undone {
			t.Fatalf("outcome %+v, attacks %+v", o, fin)
		}
	})
}

func TestBlockedRebootSuffersAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := Milestone{ID: "up", Operation: HostReboot, Timeout: 40 * time.Second, Points: 10, Required: true,
			Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}}
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{up}}, "blocker", "fair")
		f.ms["blocker"].reboot = func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("it did not go down: %w", vm.ErrGuestRefused)
		}
		o := f.run()
		if o.Winner != "fair" || o.Seats[0].Durable.At != 1000 {
			t.Fatalf("outcome %+v", o)
		}
		fails := of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "blocker" })
		if len(fails) != 1 || fails[0].Category != "contract" || fails[0].Source != "player" {
			t.Fatalf("failures %+v", fails)
		}
	})
}

func TestMachineGoneIsASeatLess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			{ID: "up", Operation: HostReboot, Timeout: 40 * time.Second, Points: 10, Required: true,
				Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return f.after(8 * time.Second) }}},
		}}, "dead", "alive")
		f.ms["dead"].reboot = func(context.Context) error { close(f.ms["dead"].done); return vm.ErrTransport }
		o := f.run()
		if o.Winner != "alive" || o.Seats[1].State != "unavailable" {
			t.Fatalf("outcome %+v", o)
		}
		un := of(f.log, func(event.SeatUnavailable) bool { return true })
		if len(un) != 1 || un[0].Source != "controller" || un[0].Territory != "dead" {
			t.Fatalf("unavailable %+v", un)
		}
	})
}

func TestNoSeatLeftEndsTheRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{step("up", 1, passes)}}, "one", "two")
		f.race.Unavailable("one", "controller", "did not start")
		f.race.Unavailable("two", "arena", "set-up failed")
		o := f.run()
		if o.Winner != "" || o.Reason != "no seat is left" || f.now() != 0 {
			t.Fatalf("outcome %+v after %v", o, f.now())
		}
	})
}

func TestTransportIsChargedToNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		flakes := 3
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			step("up", 1, func(context.Context, string) error {
				if flakes--; flakes >= 0 {
					return &probe.Failure{Category: probe.Transport, Source: "controller", Reason: "channel closed"}
				}
				return nil
			}),
		}}, "one")
		f.run()
		for _, b := range of(f.log, func(event.MilestoneFailed) bool { return true }) {
			if b.Source != "controller" || b.Category != "transport" {
				t.Errorf("%+v", b)
			}
		}
		// A flake says nothing about the seat: it does not move the instant.
		p := of(f.log, func(event.MilestonePassed) bool { return true })[0]
		if *p.NotBefore != 1 || *p.HeldAt != 4000 {
			t.Errorf("in (%d, %d]", *p.NotBefore, *p.HeldAt)
		}
	})
}

// TestRebootThatIsCutOffIsNobodysFault: neither the end of the heat's time nor
// another seat's victory makes a player out of time with its own reboot.
func TestRebootThatIsCutOffIsNobodysFault(t *testing.T) {
	for name, after := range map[string]time.Duration{"decided": time.Second, "time": time.Hour} {
		bubble(t, func(t *testing.T) {
			var f *field
			up := Milestone{ID: "up", Operation: HostReboot, Timeout: time.Minute, Points: 10, Required: true,
				Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}}
			ready := step("ready", 1, func(_ context.Context, s string) error {
				if s == "fair" {
					return f.after(after)
				}
				return nil
			})
			up.DependsOn = []string{"ready"}
			f = newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Duration: 30 * time.Second, Milestones: []Milestone{ready, up}}, "slow", "fair")
			f.ms["slow"].reboot = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			f.run()
			cut := of(f.log, func(b event.MilestoneFailed) bool { return b.Territory == "slow" })
			if len(cut) != 1 || cut[0].Source != "controller" || cut[0].Category != string(probe.Timeout) || !strings.HasPrefix(cut[0].Detail, "cut off: ") {
				t.Fatalf("%s: %+v", name, cut)
			}
		})
	}
}

// TestNothingIsCheckedAboveWhatWasRevoked: what a reboot has broken has to survive
// one once it is mended, so the next comes after that.
func TestNothingIsCheckedAboveWhatWasRevoked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		var reboots []time.Duration
		broken := false
		reads := step("reads", 20, func(context.Context, string) error {
			if broken {
				return f.after(time.Minute)
			}
			return nil
		})
		reads.Verifier.(*verifier).holds = func(context.Context, string) error {
			if broken && f.now() < time.Minute {
				return refused("GET gave 502")
			}
			return nil
		}
		f = newField(t, Rules{StopOnFirstDurable: true, Completion: "reboot", Milestones: []Milestone{
			reads,
			step("writes", 20, passes, "reads"),
			{ID: "reboot", DependsOn: []string{"writes"}, Operation: HostReboot, Timeout: time.Minute, Points: 60, Required: true,
				Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}},
		}}, "one")
		f.ms["one"].reboot = func(context.Context) error {
			reboots, broken = append(reboots, f.now()), true
			return nil
		}
		if o := f.run(); o.Winner != "one" || len(reboots) != 2 || reboots[1] < time.Minute {
			t.Fatalf("outcome %+v after reboots at %v", o, reboots)
		}
	})
}

func TestRestartRevokesWhatItBroke(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := false
		reads := step("reads", 20, passes)
		reads.Verifier.(*verifier).holds = func(context.Context, string) error {
			if broken {
				broken = false // mended by the player at once
				return refused("GET gave 502")
			}
			return nil
		}
		reboots := 0
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "reboot", Milestones: []Milestone{
			reads,
			{ID: "reboot", DependsOn: []string{"reads"}, Operation: HostReboot, Timeout: time.Minute, Points: 80, Required: true,
				Verifier: &verifier{verify: func(context.Context, *probe.Attempt) error { return nil }}},
		}}, "one")
		f.ms["one"].reboot = func(context.Context) error {
			reboots++
			broken = reboots == 1
			return nil
		}
		o := f.run()
		if o.Winner != "one" || o.Seats[0].Points != 100 || reboots != 2 {
			t.Fatalf("outcome %+v after %d reboots", o, reboots)
		}
		rev := of(f.log, func(event.MilestoneRevoked) bool { return true })
		if len(rev) != 1 || rev[0].Milestone != "reads" || rev[0].Reason != "GET gave 502" || f.log.files[rev[0].Record].Verdict != "revoked" {
			t.Fatalf("revoked %+v", rev)
		}
		fail := of(f.log, func(event.MilestoneFailed) bool { return true })
		if len(fail) != 1 || fail[0].Milestone != "reboot" || !strings.Contains(fail[0].Detail, "reads no longer holds") {
			t.Fatalf("failed %+v", fail)
		}
	})
}

func TestBranchesOptionalAndEarlyCompletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		extra := step("extra", 5, func(context.Context, string) error { return refused("never") }, "root")
		extra.Required = false
		f = newField(t, Rules{StopOnFirstDurable: false, Completion: "left", Milestones: []Milestone{
			step("root", 10, passes),
			step("left", 20, passes, "root"), // the completion milestone is not the last
			step("right", 30, func(ctx context.Context, s string) error {
				return f.after(map[string]time.Duration{"one": 6 * time.Second, "two": 3 * time.Second}[s])
			}, "root"),
			extra,
		}}, "one", "two")
		o := f.run()
		if o.Winner != "two" || o.Reason != "every seat is durable or out" || f.now() != 6*time.Second {
			t.Fatalf("outcome %+v after %v", o, f.now())
		}
		for _, s := range o.Seats {
			if s.State != "durable" || s.Points != 60 {
				t.Errorf("%+v", s)
			}
		}
		if o.Seats[0].Durable.At != 3000 { // not at the completion milestone, since right is required
			t.Errorf("durable at %d", o.Seats[0].Durable.At)
		}
	})
}

// What is optional is earned by a durable seat, too: by one that decides the race when it
// holds then, by others until the race is over. It takes nothing from what they reached,
// and nobody waits for it.
func TestOptionalAfterDurable(t *testing.T) {
	optional := func(m Milestone) Milestone { m.Required = false; return m }
	for _, stop := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			var f *field
			boots := optional(Milestone{ID: "boots", DependsOn: []string{"done"}, Operation: HostReboot, Timeout: time.Minute, Points: 7, Verifier: &verifier{}})
			f = newField(t, Rules{StopOnFirstDurable: stop, Completion: "done", Milestones: []Milestone{
				optional(step("late", 1, func(context.Context, string) error { return f.after(4500 * time.Millisecond) })),
				step("done", 10, func(_ context.Context, s string) error {
					return f.after(map[string]time.Duration{"one": 3 * time.Second, "two": 8 * time.Second}[s])
				}),
				optional(step("held", 2, passes, "done")),
				optional(step("never", 4, func(context.Context, string) error { return refused("never") })),
				boots,
			}}, "one", "two")
			f.ms["one"].reboot = func(context.Context) error { t.Error("a durable seat is rebooted for points"); return nil }
			f.ms["two"].reboot = func(ctx context.Context) error { return errors.New("no") }
			if !stop {
				time.AfterFunc(6500*time.Millisecond, func() { // nothing is done to it any more
					if _, err := f.race.Strike(t.Context(), "one", Fault{}); err == nil || !strings.Contains(err.Error(), "durable, which is final") {
						t.Errorf("struck: %v", err)
					}
					if err := f.race.Order(t.Context(), "one", Order{Do: Revoke, Milestone: "done"}); err == nil || !strings.Contains(err.Error(), "durable, which is final") {
						t.Errorf("ordered: %v", err)
					}
					f.race.Unavailable("one", "controller", "its machine is gone")
				})
			}
			o := f.run()
			want := map[bool]uint64{true: 12, false: 13}[stop]
			if o.Winner != "one" || o.Seats[0].Points != want || o.Seats[0].State != "durable" || o.Seats[0].Durable.At != 3000 {
				t.Errorf("stop %t: %+v", stop, o)
			}
			if end := map[bool]time.Duration{true: 3 * time.Second, false: 8 * time.Second}[stop]; f.now() != end {
				t.Errorf("stop %t: it ended after %v", stop, f.now())
			}
			n := len(of(f.log, func(b event.DurableDeploymentCompleted) bool { return b.Territory == "one" }))
			if n != 1 || len(of(f.log, func(event.SeatUnavailable) bool { return true })) != 0 {
				t.Errorf("stop %t: durable %d times", stop, n)
			}
		})
	}
}

func TestNudgeLooksAtOnceAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *field
		f = newField(t, Rules{StopOnFirstDurable: true, Tick: 10 * time.Second, Completion: "b", Milestones: []Milestone{
			step("a", 1, func(context.Context, string) error { return f.after(2 * time.Second) }),
			// The service listens a moment after the action ended.
			step("b", 1, func(context.Context, string) error { return f.after(2*time.Second + 80*time.Millisecond) }, "a"),
		}}, "one")
		time.AfterFunc(2*time.Second, func() { f.race.Nudge("one") })
		o := f.run()
		if at := o.Seats[0].Durable.At; at != 2100 {
			t.Fatalf("durable at %d, want 2100", at)
		}
	})
}

func TestManyNudgesAreFewRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		f := newField(t, Rules{StopOnFirstDurable: true, Duration: time.Second, Tick: 10 * time.Second, Completion: "a", Milestones: []Milestone{
			step("a", 1, func(context.Context, string) error { n++; return refused("no") }),
		}}, "one")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for sleep(ctx, time.Millisecond) == nil {
				f.race.Nudge("one")
			}
		}()
		f.run()
		cancel()
		if n > 21 {
			t.Errorf("%d evaluations in a second", n)
		}
	})
}

func TestRepeatedFailuresShareARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Duration: 20 * time.Second, Completion: "a", Milestones: []Milestone{
			step("a", 1, func(context.Context, string) error { return refused("502") }),
		}}, "one")
		f.run()
		fails := of(f.log, func(event.MilestoneFailed) bool { return true })
		if len(f.log.files) != 1 || len(fails) < 19 || fails[0].Record != fails[18].Record || fails[18].Attempt != 19 {
			t.Fatalf("%d failures, %d files", len(fails), len(f.log.files))
		}
	})
}

func TestAbortIsQuickAndLeavesNoOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{
			{ID: "up", Operation: HostReboot, Timeout: time.Minute, Points: 1, Required: true, Verifier: &verifier{}},
		}}, "one")
		f.ms["one"].reboot = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("stop it")
		time.AfterFunc(1500*time.Millisecond, func() { cancel(cause) })
		_, err := f.race.Run(ctx)
		if !errors.Is(err, cause) || f.now() != 1500*time.Millisecond {
			t.Fatalf("err %v after %v", err, f.now())
		}
		if n := len(of(f.log, func(event.MatchFinished) bool { return true })); n != 0 {
			t.Error("an outcome was logged")
		}
	})
}

func TestLogFailureEndsTheRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newField(t, Rules{StopOnFirstDurable: true, Completion: "up", Milestones: []Milestone{step("up", 1, func(context.Context, string) error { return refused("no") })}}, "one")
		full := errors.New("no space left")
		time.AfterFunc(2500*time.Millisecond, func() { f.log.mu.Lock(); f.log.fail = full; f.log.mu.Unlock() })
		_, err := f.race.Run(t.Context())
		if !errors.Is(err, full) || f.now() > 4*time.Second {
			t.Fatalf("err %v after %v", err, f.now())
		}
	})
}
