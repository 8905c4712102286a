// Package vmtest is the conformance suite of package vm: what a driver must do
// for the rest of refbox to rest on it, and for the simulated twin to stand in
// for real machines.
//
// It uses of a guest only what both model: files, systemd units, a POSIX shell
// with common commands, and one service of its own, which each driver's test
// supplies (see Fixture).
package vmtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
)

// Fixture is a driver and what its guests are made of.
type Fixture struct {
	Driver vm.Driver
	// Machine describes a machine of that name with conform.service enabled and
	// running: an HTTP server on port 8080 of every address that answers GET
	// /ping with "pong\n", keeps the body of PUT /kv/<name> durably before it
	// answers 204, and answers GET /kv/<name> with it or with 404. It forwards
	// 8080, and 8081, on which nothing listens.
	Machine func(name string) vm.MachineSpec
	// Helper is the file of the guest in which the referee's helper is; a line
	// more at its end does not keep it from working.
	Helper string
	// Patience bounds each single thing: a boot, a set-up, a login.
	Patience time.Duration
	// Unflushed is a shell command of the guest that writes a line "new" over the
	// beginning of /var/lib/cut/file, of 8 KiB, as far as the disk's cache, and does
	// not flush it; "" when the disk has none to lose.
	Unflushed string
	// Left lists what should be gone once every cluster is closed, such as
	// processes; nil when there can be nothing.
	Left func() []string
}

// Run holds the driver to package vm's promises.
func Run(t *testing.T, f Fixture) {
	s := &suite{Fixture: f}
	s.signer, s.public = newKey(t)
	s.single = vm.Spec{Machines: []vm.MachineSpec{f.Machine("host")}}
	s.pair = vm.Spec{
		Machines: []vm.MachineSpec{f.Machine("one"), f.Machine("two")},
		Links:    []vm.LinkSpec{{Name: "private", Ends: []string{"one", "two"}, Subnet: "10.81.0"}},
	}
	// In this order: each may build on what the ones before have shown.
	ok := t.Run("Prepare", s.prepare) && t.Run("Resumed", s.resumed)
	if !ok {
		return
	}
	t.Run("Cold", s.cold)
	t.Run("Save", s.saves)
	t.Run("Pair", s.pairs)
	t.Run("Cancelled", s.cancelled)
	if f.Left != nil {
		if left := f.Left(); len(left) > 0 {
			t.Errorf("after everything was closed there is still: %v", left)
		}
	}
}

type suite struct {
	Fixture
	signer       ssh.Signer
	public       ssh.PublicKey
	single, pair vm.Spec
	template     vm.Template // of single
}

func (s *suite) ctx(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	t.Cleanup(cancel)
	return ctx
}

const password = "correct horse battery staple"

// start starts a cluster that is closed with the test.
func (s *suite) start(t *testing.T, tpl vm.Template, name string, cold bool) (vm.Cluster, string) {
	t.Helper()
	dir := t.TempDir()
	c, err := s.Driver.Start(s.ctx(t), tpl, vm.Start{
		Name: name, Password: password, AuthorizedKey: s.public, Dir: dir, Cold: cold,
	})
	if err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
	})
	return c, dir
}

func (s *suite) prepare(t *testing.T) {
	tpl, err := s.Driver.Prepare(s.ctx(t), s.single, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.template = tpl
	start := time.Now()
	again, err := s.Driver.Prepare(s.ctx(t), s.single, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Key() != tpl.Key() {
		t.Errorf("the same spec has keys %s and %s", tpl.Key(), again.Key())
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("preparing anew what is prepared took %v", took)
	}
	bad := s.single
	bad.Machines = slices.Clone(bad.Machines)
	bad.Machines[0].Setup = []string{"/bin/sh", "-c", "echo no such luck >&2; exit 3"}
	if tpl, err := s.Driver.Prepare(s.ctx(t), bad, nil); err == nil {
		t.Error("a failing set-up did not fail Prepare")
		if tpl.Key() == s.template.Key() {
			t.Error("another set-up has the same key")
		}
	} else if !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("the set-up's words are not in the error: %v", err)
	}
}

// resumed is all that one machine does, and another beside it.
func (s *suite) resumed(t *testing.T) {
	var record safeBuffer
	dirA := t.TempDir()
	a, err := s.Driver.Start(s.ctx(t), s.template, vm.Start{
		Name: "alpha", Password: password, AuthorizedKey: s.public, Dir: dirA,
		Console: func(machine string) io.Writer {
			if machine != "host" {
				t.Errorf("a console for machine %q", machine)
			}
			return &record
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	b, _ := s.start(t, s.template, "beta", false)
	one, other := a.Machine("host"), b.Machine("host")
	if one == nil || other == nil || len(a.Machines()) != 1 || a.Machine("nobody") != nil {
		t.Fatalf("machines: %v", a.Machines())
	}
	t.Run("Identity", func(t *testing.T) { s.identity(t, one, other) })
	t.Run("Clock", func(t *testing.T) { s.clock(t, one); s.clock(t, other) })
	t.Run("Verbs", func(t *testing.T) { s.verbs(t, one) })
	t.Run("Service", func(t *testing.T) { s.service(t, one) })
	t.Run("Isolation", func(t *testing.T) { s.isolation(t, one, other) })
	t.Run("Console", func(t *testing.T) { s.console(t, one, "alpha", &record) })
	t.Run("Pause", func(t *testing.T) { s.pause(t, one, other) })
	t.Run("Reboot", func(t *testing.T) { s.reboot(t, one) })
	t.Run("RebootWanting", func(t *testing.T) { s.wanting(t, one) })
	t.Run("Reset", func(t *testing.T) {
		s.newBoot(t, one, func() error { return one.Reset(s.ctx(t)) })
	})
	t.Run("PowerCut", func(t *testing.T) { s.powerCut(t, one) })
	t.Run("GuestRefuses", func(t *testing.T) { s.refuses(t, one) })
	t.Run("GuestLost", func(t *testing.T) { s.lost(t, one) })
	t.Run("GuestPowersOff", func(t *testing.T) { s.powersOff(t, one) })
	t.Run("Untouched", func(t *testing.T) { s.service(t, other) })
	t.Run("Close", func(t *testing.T) { s.close(t, a, dirA) })
}

func (s *suite) run(t *testing.T, m vm.Machine, script string) string {
	t.Helper()
	r, err := m.Guest().Run(s.ctx(t), []string{"/bin/sh", "-c", script}, nil)
	if err != nil {
		t.Fatalf("%s: %s: %v", m.Name(), script, err)
	}
	if r.Exit != 0 {
		t.Fatalf("%s: %s: exit %d: %s", m.Name(), script, r.Exit, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}

func (s *suite) identity(t *testing.T, one, other vm.Machine) {
	for name, script := range map[string]string{
		"hostname":   "cat /etc/hostname",
		"machine id": "cat /etc/machine-id",
		"password":   "grep ^root: /etc/shadow",
		"host key":   "cat /etc/ssh/ssh_host_ed25519_key.pub",
		"randomness": "head -c 32 /dev/urandom | od -An -tx1",
	} {
		if x, y := s.run(t, one, script), s.run(t, other, script); x == y || x == "" || y == "" {
			t.Errorf("%s: %q and %q", name, x, y)
		}
	}
	for m, name := range map[vm.Machine]string{one: "alpha", other: "beta"} {
		if got := s.run(t, m, "hostname"); got != name {
			t.Errorf("hostname %q, want %q", got, name)
		}
		if h, err := m.Guest().Hello(s.ctx(t)); err != nil || h.Hostname != name || h.BootID == "" {
			t.Errorf("hello %+v, %v", h, err)
		}
		for how, auth := range map[string]ssh.AuthMethod{
			"key": ssh.PublicKeys(s.signer), "password": ssh.Password(password),
		} {
			c, err := s.dial(t, m, auth)
			if err != nil {
				t.Errorf("%s: SSH with the %s: %v", name, how, err)
				continue
			}
			c.Close()
		}
		if c, err := s.dial(t, m, ssh.Password("not the password")); err == nil {
			c.Close()
			t.Errorf("%s: SSH with a wrong password is let in", name)
		}
	}
}

// dial logs in as root and insists on the machine's host key.
func (s *suite) dial(t *testing.T, m vm.Machine, auth ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	addr, err := m.Addr(22)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{auth}, Timeout: s.Patience,
		HostKeyCallback:   ssh.FixedHostKey(m.HostKey()),
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
}

func (s *suite) clock(t *testing.T, m vm.Machine) {
	t.Helper()
	// The offset is known to half the round trip, so the best of a few counts.
	best := time.Hour
	for range 5 {
		before := time.Now()
		h, err := m.Guest().Hello(s.ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		rtt := time.Since(before)
		off := h.Time.Sub(before.Add(rtt / 2)).Abs()
		best = min(best, off+rtt/2)
	}
	if best > 50*time.Millisecond {
		t.Errorf("%s: the clock may be off by %v", m.Name(), best)
	}
}

func (s *suite) service(t *testing.T, m vm.Machine) {
	t.Helper()
	s.await(t, "conform.service from outside", func() error { return s.ping(m) })
	body := fmt.Sprint("value ", time.Now().UnixNano())
	if status, _, err := s.http(m, "PUT", "/kv/alpha", body); err != nil || status != 204 {
		t.Fatalf("PUT: %d, %v", status, err)
	}
	if status, got, err := s.http(m, "GET", "/kv/alpha", ""); err != nil || status != 200 || got != body {
		t.Fatalf("GET: %d %q, %v; want %q", status, got, err, body)
	}
	if status, _, err := s.http(m, "GET", "/kv/nobody", ""); err != nil || status != 404 {
		t.Fatalf("GET of nothing: %d, %v", status, err)
	}
	if _, err := m.Addr(9999); err == nil {
		t.Error("an address for a port that is not forwarded")
	}
	s.refused(t, m, 8081)
}

// refused insists that a forwarded port on which nothing listens ends a
// connection soon and without a byte. Whether it is refused at once or taken and
// closed is the forwarder's affair.
func (s *suite) refused(t *testing.T, m vm.Machine, port int) {
	t.Helper()
	addr, err := m.Addr(port)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	n, err := io.WriteString(c, "GET /ping HTTP/1.0\r\n\r\n")
	_ = n
	if err == nil {
		var got []byte
		got, err = io.ReadAll(c)
		if len(got) > 0 {
			t.Errorf("port %d, on which nothing listens, says %q", port, got)
		}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("port %d, on which nothing listens, hangs", port)
	}
}

func (s *suite) http(m vm.Machine, method, path, body string) (int, string, error) {
	addr, err := m.Addr(8080)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func (s *suite) ping(m vm.Machine) error {
	status, body, err := s.http(m, "GET", "/ping", "")
	if err == nil && (status != 200 || body != "pong\n") {
		err = fmt.Errorf("%d %q", status, body)
	}
	return err
}

// await tries something that no event announces until it works.
func (s *suite) await(t *testing.T, what string, try func() error) {
	t.Helper()
	s.awaitEvery(t, 20*time.Millisecond, what, try)
}

func (s *suite) awaitEvery(t *testing.T, every time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.NewTimer(s.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// safeBuffer is a console record that a test reads while it grows.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newKey(t *testing.T) (ssh.Signer, ssh.PublicKey) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return signer, signer.PublicKey()
}

func (s *suite) close(t *testing.T, c vm.Cluster, dir string) {
	m := c.Machine("host")
	addr, err := m.Addr(8080)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	select {
	case <-m.Done():
	default:
		t.Error("Done is not closed")
	}
	if err := m.Err(); err != nil {
		t.Errorf("a closed machine is the host's failure: %v", err)
	}
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerGone {
		t.Errorf("power %q, %v; want gone", p, err)
	}
	for what, do := range s.changes(m) {
		if err := do(s.ctx(t)); !errors.Is(err, vm.ErrPower) {
			t.Errorf("%s of a closed machine: %v, want ErrPower", what, err)
		}
	}
	if _, err := m.Guest().Hello(s.ctx(t)); err == nil {
		t.Error("the guest of a closed machine answers")
	}
	if _, err := m.Console().Write([]byte("x")); err == nil {
		t.Error("the console of a closed machine takes input")
	}
	s.empty(t, dir)
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Errorf("something still listens on %s", addr)
	}
}

func (s *suite) changes(m vm.Machine) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Reboot": func(ctx context.Context) error { return m.Reboot(ctx) }, "Reset": m.Reset, "PowerCut": m.PowerCut, "PowerOnAgain": m.PowerOnAgain,
		"Pause": m.Pause, "Resume": m.Resume,
	}
}

func (s *suite) empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
}
