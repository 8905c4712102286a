package vmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/vm"
	"refbox/vm/fault"
)

// everyFault is one fault of each kind, on the machine "one" of a pair.
func everyFault() []fault.Fault {
	var out []fault.Fault
	for _, k := range fault.Kinds() {
		f := fault.Fault{Kind: k, Machine: "one"}
		switch k {
		case fault.ProcessKill, fault.ServiceStop:
			f.Unit, f.Port = "conform.service", 8080
		case fault.LinkDown, fault.OneWay, fault.SlowLink:
			f.Link, f.Peer = "private", "two"
		case fault.ClockJump:
			f.JumpMS = 3_600_000
		case fault.MemoryPressure:
			f.MiB = 64
		}
		if k == fault.SlowLink {
			f.DelayMS, f.LossPercent = 400, 40
		}
		out = append(out, f)
	}
	return out
}

// Faults holds the driver to package fault's promises, with one pair of machines
// for all of them: each kind bites, is seen to by its witness and by what the test
// itself can see, and is undone; each one whose injection or whose undoing is
// sabotaged is noticed.
func Faults(t *testing.T, f Fixture) {
	s := &suite{Fixture: f}
	s.signer, s.public = newKey(t)
	s.pair = vm.Spec{
		Machines: []vm.MachineSpec{f.Machine("one"), f.Machine("two")},
		Links:    []vm.LinkSpec{{Name: "private", Ends: []string{"one", "two"}, Subnet: "10.81.0"}},
	}
	tpl, err := s.Driver.Prepare(s.ctx(t), s.pair, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := s.start(t, tpl, "faults", false)
	one, two := c.Machine("one"), c.Machine("two")
	s.await(t, "conform.service", func() error { return errors.Join(s.ping(one), s.ping(two)) })
	t.Run("Sabotaged", func(t *testing.T) { s.sabotaged(t, c) })
	t.Run("Unfit", func(t *testing.T) { s.unfit(t, c) })
	for _, f := range everyFault() {
		t.Run(string(f.Kind), func(t *testing.T) { s.fault(t, c, f) })
	}
	for _, k := range []fault.Kind{fault.ProcessKill, fault.ServiceStop} {
		t.Run(string(k)+" by systemd", func(t *testing.T) {
			s.fault(t, c, fault.Fault{Kind: k, Machine: "one", Unit: "conform.service"})
		})
	}
	t.Run("Uncleared", func(t *testing.T) { s.uncleared(t, c) })
	if s.Unflushed != "" {
		t.Run("Unflushed", func(t *testing.T) { s.unflushed(t, one) })
	}
	s.await(t, "the other machine", func() error { return s.ping(two) })
}

// effects are what the test sees itself of a fault, by other means than the
// witness's: nil when it is there.
func (s *suite) effect(c vm.Cluster, f fault.Fault, before vm.Hello) error {
	m, two := c.Machine("one"), c.Machine("two")
	ctx, cancel := contextWithin(20 * time.Second)
	defer cancel()
	want := func(ok bool, what string) error {
		if ok {
			return nil
		}
		return errors.New(what)
	}
	power := func(is vm.Power) error {
		p, err := m.Power(ctx)
		return errors.Join(err, want(p == is, "its power is "+string(p)))
	}
	reach := func(from vm.Machine, to string) (time.Duration, string) {
		addr, _ := c.Links()[0].Spec().Addr(to)
		start := time.Now()
		r, err := from.Guest().HTTP(ctx, vm.HTTPRequest{Method: "GET", URL: "http://" + addr + ":8080/ping", Timeout: 4 * time.Second})
		if err != nil {
			r.Err = err.Error()
		}
		return time.Since(start), r.Err
	}
	switch f.Kind {
	case fault.ProcessKill:
		return nil // systemd may have started it again
	case fault.ServiceStop:
		return want(s.ping(m) != nil, "the service still answers")
	case fault.PowerCut:
		return power(vm.PowerOff)
	case fault.HardReset, fault.CleanReboot:
		h, err := m.Guest().Hello(ctx)
		return errors.Join(err, want(h.BootID != before.BootID && h.Uptime < before.Uptime+time.Since(before.Time), "the same boot goes on"))
	case fault.Freeze:
		return power(vm.PowerPaused)
	case fault.LinkDown, fault.OneWay:
		_, there := reach(m, "two")
		_, back := reach(two, "one") // an answer must come back as well
		return want(there != "" && back != "", "the machines still reach each other")
	case fault.SlowLink:
		took, _ := reach(m, "two")
		// A request has at least two round trips.
		return want(took > time.Duration(4*f.DelayMS)*time.Millisecond, "the link is quick")
	case fault.DiskStall, fault.DiskError, fault.DiskFull:
		status, _, err := s.http(m, "PUT", fmt.Sprint("/kv/hurt", time.Now().UnixNano()), strings.Repeat("x", 64<<10))
		return want(err != nil || status != 204, "the service still writes")
	case fault.ClockJump:
		h, err := m.Guest().Hello(ctx)
		return errors.Join(err, want(time.Until(h.Time) > time.Duration(f.JumpMS)*time.Millisecond-time.Minute, "its clock did not jump"))
	case fault.MemoryPressure:
		_, err := m.Guest().Stat(ctx, "/dev/shm/.refbox-pressure")
		return err
	}
	return errors.New("no effect is known")
}

func (s *suite) fault(t *testing.T, c vm.Cluster, f fault.Fault) {
	m := c.Machine(f.Machine)
	s.await(t, "conform.service before", func() error { return s.ping(m) })
	before, err := m.Guest().Hello(s.ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	before.Time = time.Now()
	active, err := fault.Inject(s.ctx(t), c, f)
	if err != nil {
		t.Fatal(err)
	}
	receipt(t, active.Receipt, "inject")
	if err := s.effect(c, f, before); err != nil {
		t.Errorf("confirmed, but %v", err)
	}
	r, err := active.Clear(s.ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	receipt(t, r, "clear")
	if (f.Kind == fault.PowerCut) != (active.Receipt.LostBytes != nil) {
		t.Errorf("lost bytes %v", active.Receipt.LostBytes)
	}
	if _, err := active.Clear(s.ctx(t)); err == nil {
		t.Error("it is cleared twice")
	}
	s.await(t, "conform.service after", func() error { return s.ping(m) })
	if status, _, err := s.http(m, "PUT", "/kv/healed", "x"); err != nil || status != 204 {
		t.Errorf("writing afterwards: %d, %v", status, err)
	}
	if f.Kind != fault.HardReset && f.Kind != fault.CleanReboot && f.Kind != fault.ProcessKill && s.effect(c, f, before) == nil {
		t.Error("cleared, but its effect is still there")
	}
	t.Logf("%s: before %q, saw %q in %d ms; cleared: saw %q in %d ms", f.Target(), active.Receipt.Before, active.Receipt.Saw, active.Receipt.TookMS, r.Saw, r.TookMS)
}

func receipt(t *testing.T, r fault.Receipt, step string) {
	t.Helper()
	if !r.Confirmed || r.Step != step || r.Witness == "" || r.Saw == "" || step == "inject" && (r.Before == "" || r.Before == r.Saw) {
		t.Errorf("receipt %+v", r)
	}
}

// unfit: a target on which the fault could not be seen is left alone.
func (s *suite) unfit(t *testing.T, c vm.Cluster) {
	for _, f := range []fault.Fault{
		{Kind: "earthquake", Machine: "one"},
		{Kind: fault.Freeze, Machine: "nobody"},
		{Kind: fault.LinkDown, Machine: "one", Link: "nowhere", Peer: "two"},
		{Kind: fault.ServiceStop, Machine: "one", Unit: "no such.service"},
		{Kind: fault.MemoryPressure, Machine: "one", MiB: 32 << 10},
	} {
		ctx, cancel := contextWithin(3 * time.Second)
		_, err := fault.Inject(ctx, c, f)
		cancel()
		if !errors.Is(err, fault.ErrUnfit) || errors.Is(err, fault.ErrNoEffect) {
			t.Errorf("%+v: %v, want ErrUnfit", f, err)
		}
	}
}

// sabotaged: none of the injections happens, and each says that it did.
func (s *suite) sabotaged(t *testing.T, c vm.Cluster) {
	boot := s.bootID(t, c.Machine("one"))
	var wg sync.WaitGroup
	few := make(chan struct{}, 4) // at once: an emulated guest has one processor
	if s.Driver.Kind() == "sim" {
		few = make(chan struct{}, len(fault.Kinds()))
	}
	for _, f := range everyFault() {
		wg.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			ctx, cancel := contextWithin(s.Patience / 4)
			defer cancel()
			_, err := fault.Inject(ctx, deaf{c, func() bool { return true }}, f)
			var e *fault.Error
			if !errors.As(err, &e) || !errors.Is(err, fault.ErrNoEffect) || errors.Is(err, fault.ErrNotCleared) || e.Stage != "confirm" || e.Receipt.Confirmed || e.Receipt.Saw == "" {
				t.Errorf("%s: %v; want ErrNoEffect and a receipt that says what was seen", f.Kind, err)
			}
		})
	}
	wg.Wait()
	if now := s.bootID(t, c.Machine("one")); now != boot {
		t.Errorf("boot %s became %s", boot, now)
	}
}

// uncleared: an undoing that does not happen is an outcome of its own, and can be
// tried again.
func (s *suite) uncleared(t *testing.T, c vm.Cluster) {
	var actives []*fault.Active
	undone := false
	hard := deaf{c, func() bool { return undone }}
	for _, f := range everyFault() {
		// Those that don't exclude each other.
		if !slices.Contains([]fault.Kind{fault.ServiceStop, fault.LinkDown, fault.ClockJump, fault.MemoryPressure}, f.Kind) {
			continue
		}
		a, err := fault.Inject(s.ctx(t), hard, f)
		if err != nil {
			t.Fatal(err)
		}
		actives = append(actives, a)
	}
	undone = true
	var wg sync.WaitGroup
	for _, a := range actives {
		wg.Go(func() {
			ctx, cancel := contextWithin(s.Patience / 4)
			defer cancel()
			var e *fault.Error
			if r, err := a.Clear(ctx); !errors.As(err, &e) || !errors.Is(err, fault.ErrNotCleared) || e.Stage != "clear" || r.Confirmed {
				t.Errorf("%s: %v; want ErrNotCleared", a.Fault.Kind, err)
			}
		})
	}
	wg.Wait()
	undone = false
	for _, a := range actives {
		if r, err := a.Clear(s.ctx(t)); err != nil || !r.Confirmed {
			t.Errorf("%s, tried again: %v", a.Fault.Kind, err)
		}
	}
}

// deaf is a cluster that reports as done, and does not do, what changes it, while
// off says so.
type deaf struct {
	vm.Cluster
	off func() bool
}

func (d deaf) Machine(name string) vm.Machine {
	if m := d.Cluster.Machine(name); m != nil {
		return deafMachine{m, d.off}
	}
	return nil
}

func (d deaf) Links() []vm.Link {
	var out []vm.Link
	for _, l := range d.Cluster.Links() {
		out = append(out, deafLink{l, d.off})
	}
	return out
}

type deafLink struct {
	vm.Link
	off func() bool
}

func (l deafLink) Plug(ctx context.Context, m string, in bool) error {
	if l.off() {
		return nil
	}
	return l.Link.Plug(ctx, m, in)
}

func (l deafLink) Impair(from, to string, i vm.Impairment) error {
	if l.off() {
		return nil
	}
	return l.Link.Impair(from, to, i)
}

type deafMachine struct {
	vm.Machine
	off func() bool
}

func (m deafMachine) do(f func(context.Context) error, ctx context.Context) error {
	if m.off() {
		return nil
	}
	return f(ctx)
}

func (m deafMachine) Guest() vm.Guest                    { return deafGuest{m.Machine.Guest(), m.off} }
func (m deafMachine) Disk() vm.Disk                      { return deafDisk{m.Machine.Disk(), m.off} }
func (m deafMachine) Reset(ctx context.Context) error    { return m.do(m.Machine.Reset, ctx) }
func (m deafMachine) PowerCut(ctx context.Context) error { return m.do(m.Machine.PowerCut, ctx) }
func (m deafMachine) PowerOnAgain(ctx context.Context) error {
	return m.do(m.Machine.PowerOnAgain, ctx)
}
func (m deafMachine) Pause(ctx context.Context) error  { return m.do(m.Machine.Pause, ctx) }
func (m deafMachine) Resume(ctx context.Context) error { return m.do(m.Machine.Resume, ctx) }
func (m deafMachine) Reboot(ctx context.Context, wants ...string) error {
	return m.do(func(ctx context.Context) error { return m.Machine.Reboot(ctx, wants...) }, ctx)
}
func (m deafMachine) SetClock(ctx context.Context, ahead time.Duration) error {
	return m.do(func(ctx context.Context) error { return m.Machine.SetClock(ctx, ahead) }, ctx)
}

type deafDisk struct {
	vm.Disk
	off func() bool
}

func (d deafDisk) Stall(ctx context.Context, on bool) error {
	if d.off() {
		return nil
	}
	return d.Disk.Stall(ctx, on)
}

func (d deafDisk) FailWrites(ctx context.Context, on bool) error {
	if d.off() {
		return nil
	}
	return d.Disk.FailWrites(ctx, on)
}

type deafGuest struct {
	vm.Guest
	off func() bool
}

func (g deafGuest) Run(ctx context.Context, argv []string, stdin []byte) (vm.RunResult, error) {
	if g.off() && argv[0] != "ping" && argv[0] != "date" {
		exit := 0
		if argv[0] == "fallocate" && argv[1] == "-o" {
			exit = 1 // it ends when nothing fits any more
		}
		return vm.RunResult{Exit: exit}, nil
	}
	return g.Guest.Run(ctx, argv, stdin)
}

func (g deafGuest) Remove(ctx context.Context, path string) error {
	if g.off() && path != "/var/tmp/.refbox-probe" {
		return nil
	}
	return g.Guest.Remove(ctx, path)
}

// unflushed: a power cut loses what was acknowledged before it was flushed, and
// nothing else.
func (s *suite) unflushed(t *testing.T, m vm.Machine) {
	for range 3 {
		s.run(t, m, "mkdir -p /var/lib/cut; (echo old; head -c 8188 /dev/zero) >/var/lib/cut/file; sync")
		if status, _, err := s.http(m, "PUT", "/kv/synced", "kept"); err != nil || status != 204 {
			t.Fatalf("PUT: %d, %v", status, err)
		}
		s.run(t, m, s.Unflushed)
		if err := m.PowerCut(s.ctx(t)); err != nil {
			t.Fatal(err)
		}
		lost := m.Disk().Lost()
		if err := m.PowerOnAgain(s.ctx(t)); err != nil {
			t.Fatal(err)
		}
		if got := s.run(t, m, "head -n 1 /var/lib/cut/file"); got != "old" || lost == 0 {
			t.Errorf("what was not flushed is %q after the cut, want \"old\"; %d bytes are lost", got, lost)
		}
		s.await(t, "conform.service", func() error { return s.ping(m) })
		if _, got, err := s.http(m, "GET", "/kv/synced", ""); err != nil || got != "kept" {
			t.Errorf("what was flushed is %q, %v", got, err)
		}
	}
}
