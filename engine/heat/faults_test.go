package heat

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/review"
	"refbox/engine/world"
	"refbox/vm"
	"refbox/vm/fault"
)

func ptr[T any](v T) *T { return &v }

// withFaults is an arena with a schedule, that ends by itself.
func withFaults(t testing.TB, seconds uint64, faults ...arena.Fault) *arena.Package {
	t.Helper()
	p := pkg(t, idle, idle, idle)
	p.Manifest.Rules.DurationSeconds = seconds
	for i := range faults {
		if faults[i].Seats == "" {
			faults[i].Seats = arena.AllSeats
		}
	}
	p.Manifest.Faults = faults
	for _, problem := range arena.Check(p.Manifest) {
		if strings.HasPrefix(problem.Path, "faults") {
			t.Fatal(problem)
		}
	}
	return p
}

// A schedule's faults come to each seat at their moment, are confirmed and undone; a drawn
// moment, and a drawn seat, follow from the seed that the recording reveals.
func TestScheduledFaults(t *testing.T) {
	t.Parallel()
	p := withFaults(t, 9,
		arena.Fault{ID: "stop", Kind: "service-stop", Unit: ptr("failover-proxy.service"), Port: 8080, After: ptr(first), WaitMS: ptr[uint64](200), ForMS: 500},
		arena.Fault{ID: "jump", Kind: "clock-jump", BackMS: 3_600_000, WindowMS: []uint64{100, 2000}, ForMS: 300, Reason: ptr("drill")},
		arena.Fault{ID: "cut", Kind: "power-cut", WindowMS: []uint64{2500, 3000}, Seats: arena.OneSeat},
		arena.Fault{ID: "late", Kind: "hard-reset", AtMS: ptr[uint64](8900), Machine: ptr("host")},
	)
	p.Manifest.Rules.DurationSeconds = 8
	f := race(t, driver(), p)
	w := f.rec.World(f.rec.Len())
	var seed probe.Secret
	if n, err := hex.Decode(seed[:], []byte(f.rec.Match().End.Seed)); err != nil || n != len(seed) {
		t.Fatal(n, err)
	}
	cut := 0
	for _, s := range w.Seats() {
		got := map[string]world.Fault{}
		for _, x := range s.Faults.All() {
			got[x.Schedule] = x
			if x.State != world.FaultCleared || !x.Bit() || x.On() || x.PlannedMS == nil || x.InjectedMS < *x.PlannedMS || x.Author != "arena" || len(x.Receipt) == 0 || len(x.Undone) == 0 {
				t.Errorf("%s: %+v", s.ID, x)
			}
			if lasted := *x.EndedMS - *x.ConfirmedMS; lasted < *x.ForMS {
				t.Errorf("%s: %s lasted %d ms", s.ID, x.Schedule, lasted)
			}
		}
		if got["stop"].Target != "host/failover-proxy.service" || got["jump"].Reason != "scheduled: drill" || got["stop"].Reason != "scheduled after "+first || got["late"].Fault != "" {
			t.Errorf("%s: %+v", s.ID, got)
		}
		if want := seed.Draw(100, 2000, "fault", "jump", "moment"); *got["jump"].PlannedMS != want {
			t.Errorf("%s: drawn %d, want %d", s.ID, *got["jump"].PlannedMS, want)
		}
		if m := s.Milestone(first); m == nil || *got["stop"].PlannedMS != m.PassedMS+200 {
			t.Errorf("%s: the stop was planned for %d", s.ID, *got["stop"].PlannedMS)
		}
		if x := got["cut"]; x.Fault != "" {
			cut++
			if !x.Alone || s.ID != p.Manifest.Territories[seed.Draw(0, 2, "fault", "cut", "seat")].ID {
				t.Errorf("%s was drawn for %+v", s.ID, x)
			}
		}
	}
	if cut != 1 {
		t.Errorf("%d seats had the fault of one", cut)
	}
	r, err := review.Heat(t.Context(), f.rec, p, false, "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range r.Verdicts {
		if v.Kind == "fault" {
			n++
			if v.Status != review.Follows {
				t.Errorf("%+v", v)
			}
		}
	}
	if n != 7 {
		t.Errorf("%d moments were reviewed", n)
	}
}

// A player that a fault ends is not charged with it; one that gives up by itself, long
// after it, is.
func TestPlayerEndedByFault(t *testing.T) {
	t.Parallel()
	p := withFaults(t, 10, arena.Fault{ID: "cut", Kind: "power-cut", AtMS: ptr[uint64](1500), ForMS: 300})
	scripts := []string{"# must\nsleep 60\n", idle, "# pause 6s\n# must\nfalse\n"}
	for i := range p.Manifest.Agents {
		p.FS.(overlay).over[*p.Manifest.Agents[i].Script].Data = []byte(scripts[i])
	}
	f := race(t, driver(), p)
	want := map[string]string{p.Manifest.Agents[0].ID: "arena", p.Manifest.Agents[2].ID: "player"}
	for _, b := range of(t, f.rec, func(b event.AgentFinished) bool { return !b.Success }) {
		if b.Source != want[b.Agent] {
			t.Errorf("%s is charged with %q", b.Source, b.Detail)
		}
		delete(want, b.Agent)
	}
	if len(want) > 0 {
		t.Errorf("these did not fail: %v", want)
	}
}

// A fault is undone once the machine runs that another one has frozen, and none begins
// that would undo one which is there, nor is undone by it: a thaw puts the clock right, and
// a boot starts what was stopped.
func TestOverlappingFaults(t *testing.T) {
	t.Parallel()
	f := race(t, driver(), withFaults(t, 20,
		arena.Fault{ID: "stop", Kind: "service-stop", Unit: ptr("failover-proxy.service"), AtMS: ptr[uint64](300), ForMS: 300},
		arena.Fault{ID: "ice", Kind: "freeze", AtMS: ptr[uint64](310), ForMS: 900},
		arena.Fault{ID: "jump", Kind: "clock-jump", AheadMS: 60_000, AtMS: ptr[uint64](700), ForMS: 800},
		arena.Fault{ID: "cut", Kind: "power-cut", AtMS: ptr[uint64](4800), ForMS: 200},
		arena.Fault{ID: "again", Kind: "clock-jump", AheadMS: 60_000, AtMS: ptr[uint64](4700), ForMS: 900},
	))
	w := f.rec.World(f.rec.Len())
	for _, s := range w.Seats() {
		got := map[string]world.Fault{}
		for _, x := range s.Faults.All() {
			got[x.Schedule] = x
			if x.State != world.FaultCleared || x.Detail != "" || *x.EndedMS >= *w.FinishedMS {
				t.Errorf("%s: %+v", s.ID, x)
			}
		}
		if len(got) != 5 || *got["stop"].EndedMS < *got["ice"].EndedMS {
			t.Errorf("%s: %+v", s.ID, got)
			continue
		}
		for _, x := range [][2]string{{"ice", "jump"}, {"ice", "again"}, {"cut", "jump"}, {"cut", "again"}, {"cut", "stop"}} {
			if a, b := got[x[0]], got[x[1]]; a.InjectedMS < *b.EndedMS && b.InjectedMS < *a.EndedMS {
				t.Errorf("%s: %s from %d to %d, and %s from %d to %d", s.ID, x[0], a.InjectedMS, *a.EndedMS, x[1], b.InjectedMS, *b.EndedMS)
			}
		}
	}
}

// sabotaged are machines that a freeze does nothing to in one seat, and that can't be
// thawed in another.
type sabotaged struct {
	vm.Driver
	deaf, stuck string
	thaw        *atomic.Bool // the stuck one can be thawed again
	tried       *atomic.Int64
}

func (d sabotaged) Start(ctx context.Context, t vm.Template, s vm.Start) (vm.Cluster, error) {
	c, err := d.Driver.Start(ctx, t, s)
	if err != nil {
		return nil, err
	}
	return sabotagedCluster{c, d, s.Name}, nil
}

type sabotagedCluster struct {
	vm.Cluster
	d    sabotaged
	seat string
}

func (c sabotagedCluster) Machines() (out []vm.Machine) {
	for _, m := range c.Cluster.Machines() {
		out = append(out, sabotagedMachine{m, c.d, c.seat})
	}
	return out
}

func (c sabotagedCluster) Machine(name string) vm.Machine {
	if m := c.Cluster.Machine(name); m != nil {
		return sabotagedMachine{m, c.d, c.seat}
	}
	return nil
}

type sabotagedMachine struct {
	vm.Machine
	d    sabotaged
	seat string
}

func (m sabotagedMachine) Pause(ctx context.Context) error {
	if m.seat == m.d.deaf {
		return nil
	}
	return m.Machine.Pause(ctx)
}

func (m sabotagedMachine) Resume(ctx context.Context) error {
	if m.seat == m.d.stuck && !m.d.thaw.Load() {
		m.d.tried.Add(1)
		return errors.New("it does not thaw")
	}
	return m.Machine.Resume(ctx)
}

// A fault that does not bite is said so, and what rests on it is void: a seat that needs
// that is out, charged to the controller. One that cannot be undone is an outcome of its
// own. The others race on.
func TestFaultThatFails(t *testing.T) {
	t.Parallel()
	p := withFaults(t, 60, arena.Fault{ID: "ice", Kind: "freeze", AtMS: ptr[uint64](100), ForMS: 200, Proves: []string{"writes-restored"}})
	script := right
	for i := range p.Manifest.Agents {
		p.FS.(overlay).over[*p.Manifest.Agents[i].Script].Data = []byte(script)
	}
	p.Manifest.Build.StopOnFirstDurable = false
	d := sabotaged{driver(), "failover-two", "failover-three", &atomic.Bool{}, &atomic.Int64{}}
	h := New(Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			err := awaitWorld(t, h, func(w *world.World) bool {
				s := w.Seat("failover-three")
				return s != nil && s.Faults.Len() == 1 && s.Faults.At(0).State == world.FaultNotCleared
			})
			if err != nil {
				return err
			}
			if x := h.World().Seat("failover-three").Faults.At(0); !x.On() || !strings.Contains(x.Detail, "does not thaw") {
				return fmt.Errorf("not cleared: %+v", x)
			}
			// It was tried again, and then the seat was out, charged to nobody in it.
			if err := awaitWorld(t, h, func(w *world.World) bool { return w.Seat("failover-three").Unavailable != nil }); err != nil {
				return err
			}
			if n := d.tried.Load(); n != clearTries {
				return fmt.Errorf("it was tried %d times", n)
			}
			if u := h.World().Seat("failover-three").Unavailable; u.Source != "controller" || !strings.Contains(u.Detail, "its freeze on host could not be undone") {
				return fmt.Errorf("the seat that cannot be mended: %+v", u)
			}
			lift := control.Ruling{Action: control.ClearFault, Territory: "failover-three", Fault: control.Fault{Kind: fault.Freeze}, Reason: "by hand"}
			if err := refused(h.Rule(t.Context(), "ann", lift), "does not thaw"); err != nil {
				return err
			}
			d.thaw.Store(true)
			return errors.Join(h.Rule(t.Context(), "ann", lift),
				h.Rule(t.Context(), "ann", control.Ruling{Action: control.Restore, Territory: "failover-three", Reason: "it thawed"}))
		}()
	}()
	res, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f := finished{res, open(t, res.Dir)}
	w := f.rec.World(f.rec.Len())
	deaf := w.Seat("failover-two")
	x := deaf.Faults.At(0)
	if x.State != world.FaultNoEffect || x.On() || !reflect.DeepEqual(x.Voids, []string{"writes-restored"}) || x.Stage != "confirm" || x.Detail == "" {
		t.Errorf("a fault that did not bite: %+v", x)
	}
	if u := deaf.Unavailable; u == nil || u.Source != "controller" || !strings.Contains(u.Detail, "writes-restored") {
		t.Errorf("the seat that needs it: %+v", u)
	}
	if m := deaf.Milestone("writes-restored"); m != nil {
		t.Errorf("what is void was evaluated: %+v", m)
	}
	state := ""
	for _, r := range world.Ladder(w, p.Manifest, "failover-two") {
		if r.ID == "writes-restored" {
			state = string(r.State)
		}
	}
	if state != string(world.RungVoid) {
		t.Errorf("on the ladder it is %s", state)
	}
	for _, id := range []string{"failover-one", "failover-three"} {
		s := w.Seat(id)
		x := s.Faults.At(0)
		if x.State != world.FaultCleared || s.CompetitorState != "durable" || s.Milestone("writes-restored").PassedMS < *x.ConfirmedMS {
			t.Errorf("%s is %s: %+v", id, s.CompetitorState, x)
		}
	}
	if x := w.Seat("failover-three").Faults.At(0); x.UndoneBy != "ann" || x.UndoneWhy != "by hand" {
		t.Errorf("undone by hand: %+v", x)
	}
}

// A referee's fault, from here and from another process: what it does, that it is undone
// from the same place, that two of a kind don't meet, and that its time is not the seat's.
func TestRefereesFault(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]func(*testing.T, *Heat) (control.Desk, func()){
		"in process": func(_ *testing.T, h *Heat) (control.Desk, func()) { return h, func() {} },
		"socket":     overSocket,
	} {
		t.Run(name, func(t *testing.T) {
			f := atDesk(t, func(h *Heat) error {
				d, leave := from(t, h)
				defer leave()
				if err := awaitWorld(t, h, passedFirst); err != nil {
					return err
				}
				do := func(seat string, f control.Fault, by time.Duration) error {
					return control.Do(t.Context(), d, "ann", control.Ruling{Action: control.InjectFault, Territory: seat, Fault: f, By: by, Reason: "drill"})
				}
				lift := func(seat string, k fault.Kind, target string) error {
					return control.Do(t.Context(), d, "ann", control.Ruling{Action: control.ClearFault, Territory: seat, Fault: control.Fault{Kind: k}, Target: target, Reason: "enough"})
				}
				frozen := control.Fault{Kind: fault.Freeze, Machine: "host"}
				if err := do("failover-two", frozen, 0); err != nil {
					return err
				}
				errs := []error{
					refused(do("failover-two", frozen, 0), "already: clear it first"),
					refused(do("failover-two", control.Fault{Kind: fault.ClockJump, Machine: "host", JumpMS: 60_000}, 0), "already: clear it first"),
					refused(do("nobody", frozen, 0), "no running seat"),
					refused(do("failover-one", control.Fault{Kind: fault.Freeze, Machine: "mars"}, 0), "no machine"),
					refused(do("failover-one", control.Fault{Kind: fault.ProcessKill, Machine: "host"}, 0), "unit"),
					refused(do("failover-one", control.Fault{Kind: fault.HardReset, Machine: "host"}, time.Second), "does not last"),
					refused(lift("failover-one", fault.Freeze, ""), "no fault is on"),
					refused(lift("failover-two", fault.PowerCut, ""), "there is freeze on host"),
					control.Do(t.Context(), d, "ann", control.Ruling{Action: control.Pause, Reason: "because"}),
					refused(do("failover-one", frozen, 0), "paused"),
					refused(lift("failover-two", fault.Freeze, ""), "paused"),
					control.Do(t.Context(), d, "ann", control.Ruling{Action: control.Resume, Reason: "because"}),
				}
				if p := fmt.Sprint(powers(h)); p != "[on paused on]" {
					t.Errorf("after a pause the machines are %s", p)
				}
				errs = append(errs,
					lift("failover-two", fault.Freeze, "host"),
					do("failover-one", control.Fault{Kind: fault.ProcessKill, Machine: "host", Unit: "failover-proxy.service"}, 0),
					do("failover-three", control.Fault{Kind: fault.ClockJump, Machine: "host", JumpMS: 60_000}, 300*time.Millisecond),
					awaitWorld(t, h, func(w *world.World) bool {
						for _, s := range w.Seats() {
							if s.Faults.Len() != 1 || s.Faults.At(0).State != world.FaultCleared {
								return false
							}
						}
						return true
					}))
				if p := fmt.Sprint(powers(h)); p != "[on on on]" {
					t.Errorf("in the end the machines are %s", p)
				}
				return errors.Join(errs...)
			})
			w := f.rec.World(f.rec.Len())
			x := w.Seat("failover-two").Faults.At(0)
			if x.Author != "ann" || x.Reason != "drill" || x.UndoneBy != "ann" || x.UndoneWhy != "enough" || !x.Alone || x.ForMS != nil {
				t.Errorf("%+v", x)
			}
			for _, b := range of(t, f.rec, func(b event.MilestoneFailed) bool {
				return b.Territory == "failover-two" && b.Source == "player"
			}) {
				if strings.Contains(b.Detail, "timeout") {
					t.Errorf("charged for the referee's fault: %+v", b)
				}
			}
		})
	}
}

// The time of a fault that one seat alone has is not charged to it: it wins over a seat
// that did the same at the same instant.
func TestLoneFaultIsCredited(t *testing.T) {
	t.Parallel()
	p := own(pkg(t, idle, idle, idle))
	work := make(chan struct{})
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			select {
			case <-work:
			case <-ctx.Done():
			}
			if c, err := shell(ctx, s); err == nil && s.Territory != "failover-three" {
				defer c.Close()
				if se, err := c.NewSession(); err == nil {
					se.Run(right) //nolint:errcheck // the race tells
				}
			}
			<-ctx.Done()
			return agent.Result{}
		})})
	done := make(chan error, 1)
	go func() {
		err := awaitWorld(t, h, passedFirst)
		if err == nil {
			err = h.Rule(t.Context(), "ann", control.Ruling{Action: control.InjectFault, Territory: "failover-one",
				Fault: control.Fault{Kind: fault.ClockJump, Machine: "host", JumpMS: 60_000}, By: 4 * time.Second, Reason: "drill"})
		}
		time.AfterFunc(2*time.Second, func() { close(work) })
		done <- err
	}()
	res, err := h.Run(t.Context())
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	f := finished{res, open(t, res.Dir)}
	w := f.rec.World(f.rec.Len())
	one, two := w.Seat("failover-one"), w.Seat("failover-two")
	if res.Outcome.Winner != "failover-one" || one.DurableAtMS == nil || two.DurableAtMS == nil || *one.DurableAtMS <= *two.DurableAtMS {
		t.Fatalf("%+v; durable at %v and %v by the heat's clock", res.Outcome, one.DurableAtMS, two.DurableAtMS)
	}
	x := one.Faults.At(0)
	if lasted := *x.EndedMS - x.InjectedMS; one.FaultMS+1500 < lasted || one.FaultMS > lasted+1500 || one.AttackMS < one.FaultMS || two.FaultMS != 0 {
		t.Errorf("the fault lasted %d ms; credited are %d of %d, and to the other %d", lasted, one.FaultMS, one.AttackMS, two.FaultMS)
	}
}
