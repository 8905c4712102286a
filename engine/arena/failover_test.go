package arena_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/probe"
	"refbox/vm"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

const territory = "failover-one"

// rig is one seat of primary-failover on a machine, with its verifiers and no
// referee.
type rig struct {
	t        *testing.T
	p        *arena.Package
	m        vm.Machine
	secret   probe.Secret
	seat     *probe.Seat
	attempts map[string]uint64
	previous map[string]json.RawMessage
}

func newRig(t *testing.T, d vm.Driver) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := p.Spec(territory)
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := d.Prepare(ctx, spec, func(step string, done float64) { t.Logf("prepare: %s %.2f", step, done) })
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(ctx, tpl, vm.Start{Name: territory, Password: "secret", AuthorizedKey: key(t), Dir: runtimeDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r := &rig{t: t, p: p, m: c.Machine("host"), secret: probe.NewSecret(), attempts: map[string]uint64{}, previous: map[string]json.RawMessage{}}
	values := map[string]arena.Record{}
	for _, v := range p.Guest().Values {
		values[v.Name] = arena.Record(r.secret.Seat(territory, v.Name))
	}
	res, err := r.m.Guest().Run(ctx, p.Guest().Seat, arena.SeatInput(values))
	if err != nil || res.Exit != 0 {
		t.Fatalf("seat: exit %d, %v\n%s", res.Exit, err, res.Stderr)
	}
	began := time.Now()
	r.seat, err = probe.NewSeat(probe.Config{
		Territory: territory, ServicePort: 8080, Machines: []vm.Machine{r.m}, Secret: r.secret,
		Clock: func() uint64 { return uint64(time.Since(began).Milliseconds()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.seat.Close)
	return r
}

// runtimeDir is short: sockets live in it.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "arena")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func key(t *testing.T) ssh.PublicKey {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (r *rig) verifier(milestone string) probe.Verifier {
	r.t.Helper()
	v, err := probe.Load(r.p.FS, r.p.Verifier(milestone))
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) attempt(milestone string) (context.Context, *probe.Attempt) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	r.t.Cleanup(cancel)
	r.attempts[milestone]++
	return ctx, &probe.Attempt{Seat: r.seat, Milestone: milestone, Number: r.attempts[milestone], Previous: r.previous}
}

func (r *rig) verify(milestone string) (map[string]any, error) {
	r.t.Helper()
	ctx, a := r.attempt(milestone)
	raw, err := r.verifier(milestone).Verify(ctx, a)
	if err != nil {
		return nil, err
	}
	outside := slices.ContainsFunc(first(a.Records()), func(rec probe.Record) bool { return rec.Outside })
	if !outside {
		r.t.Errorf("%s passed without a witness outside the guest", milestone)
	}
	r.previous[milestone] = raw
	var evidence map[string]any
	if err := json.Unmarshal(raw, &evidence); err != nil {
		r.t.Fatal(err)
	}
	return evidence, nil
}

func first[A, B any](a A, _ B) A { return a }

// strike runs every attack on the fence, each with its undoing, and gives what
// came of each: nil is withstood.
func (r *rig) strike() []error {
	r.t.Helper()
	v := r.verifier("old-primary-fenced")
	ctx, a := r.attempt("old-primary-fenced")
	var out []error
	for i, words := range v.Attacks() {
		err := v.Attack(ctx, a, i)
		var f *probe.Failure
		if err != nil && (!errors.As(err, &f) || f.Category != probe.Contract) {
			r.t.Errorf("%s: %v", words, err)
		}
		out = append(out, err)
		if err := v.Undo(ctx, a, i); err != nil {
			r.t.Errorf("%s is not undone: %v", words, err)
		}
	}
	return out
}

func (r *rig) sh(script string) {
	r.t.Helper()
	res, err := r.m.Guest().Run(r.t.Context(), []string{"/bin/sh", "-ec", script}, nil)
	if err != nil || res.Exit != 0 {
		r.t.Fatalf("%s: exit %d, %v\n%s%s", script, res.Exit, err, res.Stdout, res.Stderr)
	}
}

// play runs a bundled player's blocks, without its pauses.
func (r *rig) play(name string) {
	r.t.Helper()
	file := "players/" + name + ".sh"
	data, err := fs.ReadFile(r.p.FS, file)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := agent.ParseScript(file, data)
	if err != nil {
		r.t.Fatal(err)
	}
	if s.Player != name || s.Skill == "" {
		r.t.Errorf("%s calls itself %q, skill %q", file, s.Player, s.Skill)
	}
	for _, b := range s.Blocks {
		if b.Text == "" {
			continue
		}
		deadline := time.Now()
		if b.Repeat != nil {
			deadline = deadline.Add(b.Repeat.For)
		}
		for {
			res, err := r.m.Guest().Run(r.t.Context(), []string{"/bin/sh", "-c", b.Text}, nil)
			if err != nil {
				r.t.Fatalf("%s:%d: %v", file, b.Line, err)
			}
			if b.Repeat != nil && res.Exit != b.Repeat.Until && time.Now().Before(deadline) {
				time.Sleep(50 * time.Millisecond) // the script's own rhythm
				continue
			}
			if b.Must && res.Exit != 0 {
				r.t.Fatalf("%s:%d: exit %d\n%s%s", file, b.Line, res.Exit, res.Stdout, res.Stderr)
			}
			if strings.Contains(string(res.Stderr), "not found") {
				r.t.Errorf("%s:%d: %s", file, b.Line, res.Stderr)
			}
			break
		}
	}
}

// reboot is the milestone's boot attack, with its undoing.
func (r *rig) reboot(milestone string) error {
	r.t.Helper()
	ctx, a := r.attempt(milestone)
	v := r.verifier(milestone)
	if err := v.Before(ctx, a); err != nil {
		r.t.Fatal(err)
	}
	boot := v.Boot()
	back, err := a.Reboot(ctx, boot)
	if back && err == nil {
		err = boot.Run(ctx, a)
	}
	if back {
		if err := boot.Undo(ctx, a); err != nil {
			r.t.Errorf("%s is not undone: %v", boot.Words, err)
		}
	}
	return err
}

const (
	promote = "printf 'primary\\n' >/var/lib/failover/replica.role; printf '8082\\n' >/var/lib/failover/upstream\n"
	mask    = "systemctl mask failover-primary.service\n"
	unmask  = "systemctl unmask failover-primary.service\n"
)

// fences are ways to keep the old primary from coming back.
var fences = map[string]string{
	"masked":              mask,
	"condition":           "mkdir -p /etc/systemd/system/failover-primary.service.d; printf '[Unit]\\nConditionPathExists=/nowhere\\n' >/etc/systemd/system/failover-primary.service.d/fence.conf; systemctl daemon-reload",
	"not executable":      "chmod a-x /opt/failover/primary.py",
	"program gone":        "rm /opt/failover/primary.py",
	"a start that fails":  "mkdir -p /etc/systemd/system/failover-primary.service.d; printf '[Service]\\nExecStartPre=/bin/false\\n' >/etc/systemd/system/failover-primary.service.d/fence.conf; systemctl daemon-reload",
	"program that is sad": "printf '#!/bin/sh\\nexit 1\\n' >/opt/failover/primary.py",
}

// unfenced are states that only look like a fence.
var unfenced = map[string]string{
	"stopped and disabled":             "systemctl stop failover-primary.service; systemctl disable failover-primary.service",
	"marker file":                      "touch /var/lib/failover/primary.fenced /var/lib/failover/primary.failed /etc/failover-primary.fenced",
	"condition not loaded by any unit": "mkdir -p /etc/systemd/system/failover.service.d; printf '[Unit]\\nConditionPathExists=/nowhere\\n' >/etc/systemd/system/failover.service.d/fence.conf; systemctl daemon-reload",
}

// ladder is every milestone with the keys of its evidence (recordings
// reference, section 5.8).
var ladder = []struct{ milestone, keys string }{
	{"failed-primary-preserved", "failed_primary listening preserved"},
	{"reads-restored", "reads records role"},
	{"old-primary-fenced", "old_port old_primary promoted_port"},
	{"writes-restored", "record value writes"},
	{"service-restart", "record restart value"},
	{"host-reboot", "old_primary reboot record role value"},
}

func driver() vm.Driver {
	return sim.New(sim.Config{Programs: failover.Programs(), LoseUnsynced: true})
}

// TestLadder climbs the whole ladder with each player that does it right.
func TestLadder(t *testing.T) {
	for _, player := range []string{"right", "careful"} {
		t.Run(player, func(t *testing.T) {
			t.Parallel()
			climb(t, newRig(t, driver()), player)
		})
	}
}

func climb(t *testing.T, r *rig, player string) {
	for _, l := range ladder[1:] {
		if l.milestone == "service-restart" || l.milestone == "host-reboot" {
			continue
		}
		if _, err := r.verify(l.milestone); err == nil {
			t.Errorf("%s holds before anything was done", l.milestone)
		}
	}
	if _, err := r.verify(ladder[0].milestone); err != nil {
		t.Fatal(err)
	}
	r.play(player)
	for _, l := range ladder {
		if l.milestone == "host-reboot" {
			if err := r.reboot(l.milestone); err != nil {
				t.Fatal(err)
			}
		}
		evidence, err := r.verify(l.milestone)
		if err != nil {
			t.Fatalf("%s: %v", l.milestone, err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(evidence)), " "); got != l.keys {
			t.Errorf("%s: evidence has %s, want %s", l.milestone, got, l.keys)
		}
		if l.milestone == "old-primary-fenced" {
			for i, err := range r.strike() {
				if err != nil {
					t.Errorf("attack %d: %v", i, err)
				}
			}
		}
		for _, before := range ladder {
			ctx, a := r.attempt(before.milestone)
			if err := r.verifier(before.milestone).Holds(ctx, a); err != nil {
				t.Errorf("after %s, %s no longer holds: %v", l.milestone, before.milestone, err)
			}
			if before == l {
				break
			}
		}
	}
	u, err := r.m.Guest().Unit(t.Context(), "failover-primary.service")
	if err != nil || u.UnitFileState == "enabled" || u.ActiveState == "active" {
		t.Errorf("the referee left the old primary's unit as %+v, %v", u, err)
	}
}

// TestAttacks shows that each attack succeeds against an old primary that is
// not fenced, and fails against one that is.
func TestAttacks(t *testing.T) {
	for name, script := range unfenced {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, driver())
			r.sh(promote + script)
			attacked(t, r, true)
		})
	}
	for name, script := range fences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, driver())
			r.sh(promote)
			attacked(t, r, true)
			r.sh(script)
			attacked(t, r, false)
		})
	}
}

func attacked(t *testing.T, r *rig, succeeds bool) {
	t.Helper()
	if _, err := r.verify("old-primary-fenced"); err != nil {
		t.Fatalf("before the attacks: %v", err)
	}
	results := r.strike()
	if len(results) < 3 {
		t.Fatalf("there are %d attacks", len(results))
	}
	for i, err := range results {
		if (err != nil) != succeeds {
			t.Errorf("attack %d: %v, want success %v", i, err, succeeds)
		}
		if err != nil && i > 0 && !strings.Contains(err.Error(), "acknowledged") {
			t.Errorf("attack %d shows no acknowledged write: %v", i, err)
		}
	}
	if _, err := r.verify("old-primary-fenced"); err != nil {
		t.Errorf("the attacks left something: %v", err)
	}
	ctx, a := r.attempt("old-primary-fenced")
	if err := r.verifier("old-primary-fenced").Holds(ctx, a); (err != nil) != succeeds {
		t.Errorf("holds: %v", err)
	}
	// What the attacks wrote is gone from the old primary's data.
	r.sh("systemctl unmask failover-primary.service || true")
	for _, name := range []string{"inside", "outside", "public"} {
		id := r.secret.Fresh(territory, "old-primary-fenced", r.attempts["old-primary-fenced"]-2, name).ID
		for _, db := range []string{"primary.sqlite3", "replica.sqlite3"} {
			data, err := r.m.Guest().ReadFile(t.Context(), "/var/lib/failover/"+db, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), id) {
				t.Errorf("%s still holds the record of the attack %s", db, name)
			}
		}
	}
}

// TestProxyThatIgnoresItsUpstream: a player may replace the proxy; a write that
// the new primary takes is no breach of the fence.
func TestProxyThatIgnoresItsUpstream(t *testing.T) {
	programs := failover.Programs()
	programs["/opt/failover/proxy.py"] = func(ctx context.Context, p *sim.Process) error {
		return p.Serve(ctx, ":8080", &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:8082"}) },
			Transport: p.HTTP().Transport,
		})
	}
	r := newRig(t, sim.New(sim.Config{Programs: programs}))
	r.sh(promote + mask)
	attacked(t, r, false)
}

// TestSwallowedWrites: a write that is acknowledged and not kept counts nowhere.
func TestSwallowedWrites(t *testing.T) {
	programs := failover.Programs()
	programs["/opt/failover/proxy.py"] = func(ctx context.Context, p *sim.Process) error {
		honest := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:8082"}) },
			Transport: p.HTTP().Transport,
		}
		return p.Serve(ctx, ":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := p.ReadFile("/etc/swallow"); err == nil && r.Method == http.MethodPut {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			honest.ServeHTTP(w, r)
		}))
	}
	r := newRig(t, sim.New(sim.Config{Programs: programs}))
	const swallow, keep = "touch /etc/swallow", "rm /etc/swallow"
	r.sh(promote + mask)
	for _, m := range []string{"writes-restored", "service-restart", "host-reboot"} {
		if m == "host-reboot" {
			if err := r.reboot(m); err != nil {
				t.Fatal(err)
			}
		}
		r.sh(swallow)
		if _, err := r.verify(m); err == nil || !strings.Contains(err.Error(), "new record") {
			t.Errorf("%s: %v", m, err)
		}
		r.sh(keep)
		if _, err := r.verify(m); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// TestReboot: a fence that does not survive a reboot is found out by it.
func TestReboot(t *testing.T) {
	r := newRig(t, driver())
	r.sh(promote + mask + "sync")
	for _, m := range []string{"failed-primary-preserved", "reads-restored", "old-primary-fenced", "writes-restored", "service-restart"} {
		if _, err := r.verify(m); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	r.sh(unmask) // once the milestone is had
	err := r.reboot("host-reboot")
	var f *probe.Failure
	if !errors.As(err, &f) || f.Source != "player" || f.Reason != "the old primary came up with the boot, and acknowledged a write" {
		t.Errorf("a boot that starts the old primary's unit: %v", err)
	}
	u, uerr := r.m.Guest().Unit(t.Context(), "failover-primary.service")
	if uerr != nil || strings.HasPrefix(u.UnitFileState, "enabled") || u.ActiveState == "active" {
		t.Errorf("the referee left the unit as %+v, %v", u, uerr)
	}
	ctx, a := r.attempt("old-primary-fenced")
	if err := r.verifier("old-primary-fenced").Holds(ctx, a); err == nil {
		t.Error("the fence still holds")
	}

	// The same with the fence: durable.
	r.sh(mask + "sync")
	if err := r.reboot("host-reboot"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.verify("host-reboot"); err != nil {
		t.Error(err)
	}
}

// TestRefusals: what each milestone refuses, and why.
func TestRefusals(t *testing.T) {
	right := promote + mask
	tests := []struct{ name, script, milestone, reason string }{
		{"old primary started", "systemctl start failover-primary", "failed-primary-preserved", "answers on the old primary's port"},
		{"mark gone", "rm /var/lib/failover/primary.failed", "failed-primary-preserved", "mark of the failed primary is gone"},
		{"data gone", "rm /var/lib/failover/primary.sqlite3", "failed-primary-preserved", "data is gone"},
		{"data emptied", ": >/var/lib/failover/primary.sqlite3", "failed-primary-preserved", "data is not what it was"},
		{"nothing done", "true", "reads-restored", "GET /health: 502"},
		{"switched, not promoted", "printf '8082\\n' >/var/lib/failover/upstream", "reads-restored", "reads come from a replica"},
		{"promoted, not switched", "printf 'primary\\n' >/var/lib/failover/replica.role", "reads-restored", "GET /health: 502"},
		{"proxy stopped", promote + "systemctl stop failover-proxy", "reads-restored", "GET /health: closed"},
		{"records lost", promote + "systemctl stop failover-replica; rm /var/lib/failover/replica.sqlite3; systemctl start failover-replica", "reads-restored", "GET /records/"},
		{"old primary instead", "systemctl start failover-primary", "old-primary-fenced", "answers on the old primary's port"},
		{"not promoted", mask + "printf '8082\\n' >/var/lib/failover/upstream", "old-primary-fenced", "GET /role: replica"},
		{"not switched", mask + "printf 'primary\\n' >/var/lib/failover/replica.role", "old-primary-fenced", "GET /role: 502"},
		{"demoted", right + "printf 'replica\\n' >/var/lib/failover/replica.role", "writes-restored", "PUT a new record: 503"},
		{"nothing written before", right, "service-restart", "no written record"},
		{"nothing written before the reboot", right, "host-reboot", "no written record"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, driver())
			r.sh(tt.script)
			ctx, a := r.attempt(tt.milestone)
			var err error
			for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				// A started program opens its port in its own time.
				if _, err = r.verifier(tt.milestone).Verify(ctx, a); err != nil && strings.Contains(err.Error(), tt.reason) {
					break
				}
			}
			var f *probe.Failure
			if !errors.As(err, &f) || f.Category != probe.Contract || f.Source != "player" || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, want %q", err, tt.reason)
			}
		})
	}
}

// TestLosers: the bundled players that go wrong get as far as they should.
func TestLosers(t *testing.T) {
	t.Run("hasty", func(t *testing.T) {
		r := newRig(t, driver())
		r.play("hasty")
		if _, err := r.verify("failed-primary-preserved"); err != nil {
			t.Error(err)
		}
		if _, err := r.verify("reads-restored"); err == nil {
			t.Error("reads count without a primary")
		}
	})
	t.Run("marker-only", func(t *testing.T) {
		r := newRig(t, driver())
		r.play("marker-only")
		if _, err := r.verify("reads-restored"); err != nil {
			t.Error(err)
		}
		attacked(t, r, true)
	})
	t.Run("reboot-blocker", func(t *testing.T) {
		r := newRig(t, driver())
		r.play("reboot-blocker")
		for _, m := range []string{"failed-primary-preserved", "reads-restored", "old-primary-fenced", "writes-restored", "service-restart"} {
			if _, err := r.verify(m); err != nil {
				t.Fatalf("%s: %v", m, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.m.Reboot(ctx); !errors.Is(err, vm.ErrGuestRefused) {
			t.Errorf("the reboot: %v", err)
		}
	})
}

// TestValuesAreSecretPerSeat: no two seats have the same records.
func TestValuesAreSecretPerSeat(t *testing.T) {
	a, b := newRig(t, driver()), newRig(t, driver())
	for _, r := range []*rig{a, b} {
		r.sh(promote + mask)
	}
	ea, err := a.verify("reads-restored")
	if err != nil {
		t.Fatal(err)
	}
	eb, err := b.verify("reads-restored")
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ea["records"]) == fmt.Sprint(eb["records"]) {
		t.Error("two heats have the same record ids")
	}
}
