package vmtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"refbox/vm"
)

func contextWithin(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func (s *suite) bootID(t *testing.T, m vm.Machine) string {
	t.Helper()
	h, err := m.Guest().Hello(s.ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	return h.BootID
}

// newBoot insists that do ends in another boot of the same machine, at the same
// addresses, with what was durably written still there.
func (s *suite) newBoot(t *testing.T, m vm.Machine, do func() error) {
	t.Helper()
	boot, id := s.bootID(t, m), s.run(t, m, "cat /etc/machine-id; hostname")
	addr, err := m.Addr(8080)
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, "conform.service before", func() error { return s.ping(m) })
	kept := fmt.Sprint("kept ", time.Now().UnixNano())
	if status, _, err := s.http(m, "PUT", "/kv/kept", kept); err != nil || status != 204 {
		t.Fatalf("PUT: %d, %v", status, err)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if got := s.bootID(t, m); got == boot || got == "" {
		t.Errorf("boot %s became %q", boot, got)
	}
	s.clock(t, m)
	if got := s.run(t, m, "cat /etc/machine-id; hostname"); got != id {
		t.Errorf("machine id and hostname %q became %q", id, got)
	}
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerOn {
		t.Errorf("power %q, %v", p, err)
	}
	if got, err := m.Addr(8080); err != nil || got != addr {
		t.Errorf("address %s became %s, %v", addr, got, err)
	}
	s.await(t, "conform.service after", func() error { return s.ping(m) })
	if status, got, err := s.http(m, "GET", "/kv/kept", ""); err != nil || status != 200 || got != kept {
		t.Errorf("what was kept: %d %q, %v", status, got, err)
	}
}

func (s *suite) reboot(t *testing.T, m vm.Machine) {
	s.newBoot(t, m, func() error { return m.Reboot(s.ctx(t)) })
	// Only what is enabled comes back.
	s.run(t, m, "systemctl disable conform.service")
	if err := m.Reboot(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	if u, err := m.Guest().Unit(s.ctx(t), "conform.service"); err != nil || u.ActiveState != "inactive" || u.UnitFileState != "disabled" {
		t.Errorf("a disabled unit after a reboot: %+v, %v", u, err)
	}
	s.run(t, m, "systemctl enable --now conform.service")
	s.await(t, "conform.service", func() error { return s.ping(m) })
}

// wanting insists that the host can have a unit started by a boot, for that boot
// only, whatever the disk says of it but a mask, and that it looks at the helper.
func (s *suite) wanting(t *testing.T, m vm.Machine) {
	const unit = "conform.service"
	active := func(want string) {
		t.Helper()
		if want == "active" {
			s.await(t, unit, func() error { return s.ping(m) })
		}
		u, err := m.Guest().Unit(s.ctx(t), unit)
		if err != nil || u.ActiveState != want {
			t.Errorf("the unit is %+v, %v; want %s", u, err, want)
		}
	}
	for _, bad := range []string{"", "conform", "../x.service", "a b.service", "x.service refbox.wants=y.service"} {
		boot := s.bootID(t, m)
		if err := m.Reboot(s.ctx(t), bad); err == nil || s.bootID(t, m) != boot {
			t.Errorf("a boot that wants %q: %v", bad, err)
		}
	}
	s.run(t, m, "systemctl disable conform.service")
	s.newBoot(t, m, func() error { return m.Reboot(s.ctx(t), unit) })
	active("active")
	s.run(t, m, "mv /etc/systemd/system/conform.service /root; systemctl mask conform.service")
	if err := m.Reboot(s.ctx(t), unit); err != nil {
		t.Fatal(err)
	}
	s.booted(t, m)
	active("inactive")
	s.refused(t, m, 8080)
	// A file of the order's that leads to what the host compares with must not be
	// written through, and a helper that is a link must not be looked up in the
	// host's own file system: there this one leads to a copy that nobody altered.
	s.run(t, m, "systemctl unmask conform.service; mv /root/conform.service /etc/systemd/system; systemctl daemon-reload; cp -p "+s.Helper+" /root/kept; "+
		"mkdir -p /etc/refbox; rm -f /etc/refbox/order; ln -s /sums /etc/refbox/order")
	escape := strings.Repeat("../", strings.Count(s.Helper, "/")) + "root/root/altered"
	for _, alter := range []string{
		"echo >>" + s.Helper,
		"mkdir -p /root/root; cp -p /root/kept /root/altered; cp -p /root/kept /root/root/altered; echo >>/root/root/altered; rm " + s.Helper + "; ln -s " + escape + " " + s.Helper,
	} {
		s.run(t, m, alter)
		if err := m.Reboot(s.ctx(t), unit); !errors.Is(err, vm.ErrGuestRefused) || !strings.Contains(err.Error(), s.Helper) {
			t.Errorf("with an altered helper (%s): %v, want ErrGuestRefused, naming %s", alter, err, s.Helper)
		}
		active("active")
	}
	s.run(t, m, "rm -r /root/root /root/altered "+s.Helper+"; cp -p /root/kept "+s.Helper)
	// Neither the order nor what it found outlives the boot.
	if err := m.Reboot(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	s.booted(t, m)
	active("inactive")
	s.run(t, m, "systemctl enable --now conform.service")
	active("active")
}

// booted waits until the guest has started what it starts at boot. It asks seldom:
// the answers take the processor that the boot needs.
func (s *suite) booted(t *testing.T, m vm.Machine) {
	t.Helper()
	s.awaitEvery(t, time.Second, "multi-user.target", func() error {
		u, err := m.Guest().Unit(s.ctx(t), "multi-user.target")
		if err == nil && u.ActiveState != "active" {
			err = errors.New(u.ActiveState)
		}
		return err
	})
}

func (s *suite) pause(t *testing.T, m, other vm.Machine) {
	if err := m.Pause(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerPaused {
		t.Errorf("power %q, %v; want paused", p, err)
	}
	if err := m.Pause(s.ctx(t)); !errors.Is(err, vm.ErrPower) {
		t.Errorf("pausing twice: %v, want ErrPower", err)
	}
	ctx, cancel := contextWithin(300 * time.Millisecond)
	defer cancel()
	if _, err := m.Guest().Hello(ctx); !errors.Is(err, vm.ErrGuestLost) {
		t.Errorf("a paused guest: %v, want ErrGuestLost", err)
	}
	if err := s.ping(other); err != nil {
		t.Errorf("the other machine suffers: %v", err)
	}
	if err := m.Resume(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	s.clock(t, m)
	if err := m.Resume(s.ctx(t)); !errors.Is(err, vm.ErrPower) {
		t.Errorf("resuming what runs: %v, want ErrPower", err)
	}
	if err := m.PowerOnAgain(s.ctx(t)); !errors.Is(err, vm.ErrPower) {
		t.Errorf("powering on what is on: %v, want ErrPower", err)
	}
	s.await(t, "conform.service", func() error { return s.ping(m) })
}

func (s *suite) powerCut(t *testing.T, m vm.Machine) {
	s.newBoot(t, m, func() error {
		if err := m.PowerCut(s.ctx(t)); err != nil {
			return err
		}
		s.off(t, m)
		return m.PowerOnAgain(s.ctx(t))
	})
}

// off insists on all that is true of a machine that is off.
func (s *suite) off(t *testing.T, m vm.Machine) {
	t.Helper()
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerOff {
		t.Errorf("power %q, %v; want off", p, err)
	}
	for what, do := range s.changes(m) {
		if what == "PowerOnAgain" {
			continue
		}
		if err := do(s.ctx(t)); !errors.Is(err, vm.ErrPower) {
			t.Errorf("%s of a machine that is off: %v, want ErrPower", what, err)
		}
	}
	if _, err := m.Guest().Hello(s.ctx(t)); !errors.Is(err, vm.ErrTransport) {
		t.Errorf("hello of a machine that is off: %v, want ErrTransport", err)
	}
	if _, err := m.Console().Write([]byte("x")); err == nil {
		t.Error("the console of a machine that is off takes input")
	}
	select {
	case <-m.Done():
		t.Error("Done is closed though the machine can be powered on again")
	default:
	}
	addr, err := m.Addr(8080)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Errorf("%s, of a machine that is off, takes connections", addr)
	}
}

func (s *suite) powersOff(t *testing.T, m vm.Machine) {
	ctx, cancel := contextWithin(min(5*time.Second, s.Patience/4))
	defer cancel()
	// The answer may be lost with the machine.
	m.Guest().Run(ctx, []string{"systemctl", "poweroff"}, nil)
	s.await(t, "powering off", func() error {
		if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerOff {
			return fmt.Errorf("power %q, %w", p, err)
		}
		return nil
	})
	s.off(t, m)
	if err := m.PowerOnAgain(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	s.await(t, "conform.service", func() error { return s.ping(m) })
}

func (s *suite) cold(t *testing.T) {
	c, _ := s.start(t, s.template, "gamma", true)
	m := c.Machine("host")
	s.clock(t, m)
	if got := s.run(t, m, "hostname"); got != "gamma" {
		t.Errorf("hostname %q", got)
	}
	s.service(t, m)
}

func (s *suite) pairs(t *testing.T) {
	tpl, err := s.Driver.Prepare(s.ctx(t), s.pair, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tpl.Key() == s.template.Key() {
		t.Error("another spec has the same key")
	}
	a, _ := s.start(t, tpl, "delta", false)
	b, _ := s.start(t, tpl, "epsilon", false)
	ms := a.Machines()
	if len(ms) != 2 || ms[0].Name() != "one" || ms[1].Name() != "two" {
		t.Fatalf("machines: %v", ms)
	}
	one, two := ms[0], ms[1]
	if got := s.run(t, one, "hostname"); got != "delta-one" {
		t.Errorf("hostname %q, want delta-one", got)
	}
	// Each has its own; the two clusters use the same addresses.
	for c, value := range map[vm.Cluster]string{a: "delta", b: "epsilon"} {
		m := c.Machine("two")
		s.await(t, "conform.service", func() error { return s.ping(m) })
		if status, _, err := s.http(m, "PUT", "/kv/who", value); err != nil || status != 204 {
			t.Fatalf("PUT: %d, %v", status, err)
		}
	}
	linked := func(m vm.Machine, url, want string) {
		t.Helper()
		if got := s.run(t, m, "curl -s -m 5 "+url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	linked(one, "http://two:8080/kv/who", "delta")
	linked(one, "http://10.81.0.11:8080/kv/who", "delta")
	linked(two, "http://one:8080/ping", "pong")
	linked(b.Machine("one"), "http://two:8080/kv/who", "epsilon")
	if err := two.PowerCut(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	if r, err := one.Guest().Run(s.ctx(t), []string{"curl", "-s", "-m", "2", "http://two:8080/ping"}, nil); err != nil || r.Exit == 0 {
		t.Errorf("a machine that is off answers on the link: %+v, %v", r, err)
	}
	linked(b.Machine("one"), "http://two:8080/kv/who", "epsilon")
	if err := two.PowerOnAgain(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	s.await(t, "conform.service", func() error { return s.ping(two) })
	linked(one, "http://two:8080/kv/who", "delta")
}

func (s *suite) cancelled(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	start := vm.Start{Name: "zeta", Password: password, AuthorizedKey: s.public, Dir: dir}
	if c, err := s.Driver.Start(gone, s.template, start); err == nil {
		c.Close()
		t.Error("Start succeeded under a context that had ended")
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v, want Canceled", err)
	}
	s.empty(t, dir)

	c, _ := s.start(t, s.template, "zeta", false)
	m := c.Machine("host")
	for what, do := range map[string]func(context.Context) error{
		"Reboot": func(ctx context.Context) error { return m.Reboot(ctx) }, "Reset": m.Reset, "Pause": m.Pause,
		"Hello": func(ctx context.Context) error { _, err := m.Guest().Hello(ctx); return err },
	} {
		if err := do(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want Canceled", what, err)
		}
	}
	// Close ends what is under way.
	reset := make(chan error, 1)
	go func() { reset <- m.Reset(context.Background()) }()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-reset:
		if err != nil && !errors.Is(err, vm.ErrPower) {
			t.Errorf("a reset under way at Close: %v, want ErrPower", err)
		}
	case <-time.After(s.Patience):
		t.Error("a reset under way outlives Close")
	}
}
