package heat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/recording"
	"refbox/vm"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

// overlay lays files of the test over a package's.
type overlay struct {
	fs.FS
	over fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if _, ok := o.over[name]; ok {
		return o.over.Open(name)
	}
	return o.FS.Open(name)
}

// bundledScript is a bundled player's script without its pauses.
func bundledScript(t testing.TB, name string) string {
	t.Helper()
	b, err := fs.ReadFile(assets.Arenas(), "primary-failover/players/"+name+".sh")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?m)^# pause .*\n").ReplaceAllString(string(b), "")
}

// pkg is the bundled primary-failover with quick ticks and the given scripts, one
// per seat.
func pkg(t testing.TB, scripts ...string) *arena.Package {
	t.Helper()
	p, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	over := fstest.MapFS{}
	m := p.Manifest
	m.Rules.TickMS = 100
	m.Heat = &arena.Heat{DrainSeconds: 5}
	for i := range m.Agents {
		file := "players/own-" + m.Agents[i].ID + ".sh"
		over[file] = &fstest.MapFile{Data: []byte(scripts[i])}
		m.Agents[i].Script = &file
	}
	p.FS = overlay{p.FS, over}
	return p
}

// Scripts of the tests' own.
const (
	idle  = "sleep 300\n"
	right = "systemctl mask failover-primary.service\nprintf 'primary\\n' >/var/lib/failover/replica.role\nprintf '8082\\n' >/var/lib/failover/upstream\n"
	hasty = "printf '8082\\n' >/var/lib/failover/upstream\n"
	// marker only claims a fence.
	marker = "touch /var/lib/failover/primary.fenced\nprintf 'primary\\n' >/var/lib/failover/replica.role\nprintf '8082\\n' >/var/lib/failover/upstream\n"
)

// after plays a script later.
func after(d time.Duration, script string) string {
	return fmt.Sprintf("# pause %v\n%s", d, script)
}

func driver() *sim.Driver { return sim.New(sim.Config{Programs: failover.Programs()}) }

// runtimeFolder is short, since sockets may lie in it, and empty at the end.
func runtimeFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("something was left: %v", err)
		}
	})
	return dir
}

type finished struct {
	Result
	rec *recording.Recording
}

// race runs a heat on simulated machines and opens what it recorded.
func race(t testing.TB, d vm.Driver, p *arena.Package) finished {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "heat")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	res, err := Run(ctx, Config{Package: p, Driver: d, Dir: dir, Runtime: runtimeFolder(t), Version: "test"})
	if err != nil {
		t.Fatalf("run: %v\n%s", err, logOf(dir))
	}
	return finished{res, open(t, dir)}
}

func open(t testing.TB, dir string) *recording.Recording {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	rep, err := r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rep.Breaks() > 0 {
		t.Errorf("the recording does not verify: %+v", rep)
	}
	return r
}

func logOf(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	return string(b)
}

// of are the recorded events of one kind.
func of[T event.Body](t testing.TB, r *recording.Recording, keep func(T) bool) (out []T) {
	t.Helper()
	err := r.Events(0, r.Len(), func(_ int, e event.Event) bool {
		if b, ok := e.Body.(T); ok && keep(b) {
			out = append(out, b)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRightPlayerWins(t *testing.T) {
	t.Parallel()
	f := race(t, driver(), pkg(t, bundledScript(t, "right"), after(time.Minute, bundledScript(t, "careful")), bundledScript(t, "hasty")))
	if f.Outcome.Winner != "failover-one" || f.Outcome.Seats[0].Points != 100 {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	w := f.rec.World(f.rec.Len())
	if w.Winner == nil || *w.Winner != "failover-one" || w.Seat("failover-one").Points != 100 {
		t.Errorf("the recorded winner is %v", w.Winner)
	}
	hasty := w.Seat("failover-three")
	if hasty.CompetitorState != "incomplete" || hasty.Points >= 30 {
		t.Errorf("hasty: %s with %d points", hasty.CompetitorState, hasty.Points)
	}
	if a := w.Agent("careful"); a.Running || a.TerminalState == nil || *a.TerminalState != "incomplete" {
		t.Errorf("careful: %+v", a)
	}
	e, err := f.rec.Event(0)
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := e.Body.(event.HeatPrepared); !ok || h.Driver != "sim" || len(h.Seats) != 3 || h.Seats[0].Adapter != "script:own-right" {
		t.Errorf("the log begins with %+v", e.Body)
	}
	for _, path := range []string{"arena.json", "match.json", "world.json", "seats/failover-one/brief.md", "seats/failover-one/result.json",
		"seats/failover-one/usage.json", "seats/failover-two/machines/host/console.cast", "seats/failover-one/session-1.cast"} {
		if info, err := os.Stat(filepath.Join(f.Dir, path)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := len(of(t, f.rec, func(b event.AgentActionStarted) bool { return b.Territory == "failover-one" })); n < 5 {
		t.Errorf("%d actions of the winner were observed", n)
	}
	m := f.rec.Match()
	if m.End == nil || m.End.State != "finished" || m.SeedSHA256 == "" || m.Seats[0].Agent != "right" || m.CompatibilityKey == "" {
		t.Errorf("match.json: %+v", m)
	}
}

// A marker file that nothing heeds is no fence: a named attack refuses it.
func TestMarkerIsNoFence(t *testing.T) {
	t.Parallel()
	p := pkg(t, marker, idle, idle)
	p.Manifest.Rules.DurationSeconds = 4
	f := race(t, driver(), p)
	if f.Outcome.Winner != "failover-one" || f.Outcome.Reason != "match timer expired" || f.Outcome.Seats[0].Passed != 2 {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	lost := of(t, f.rec, func(b event.AttackFinished) bool { return !b.Held })
	if len(lost) == 0 || !strings.Contains(lost[0].Attack, "unit is started") || !lost[0].Undone {
		t.Fatalf("attacks: %+v", lost)
	}
	refused := of(t, f.rec, func(b event.MilestoneFailed) bool {
		return b.Territory == "failover-one" && b.Milestone == "old-primary-fenced" && strings.HasPrefix(b.Detail, "attack: ")
	})
	if len(refused) == 0 || refused[0].Source != "player" || refused[0].Record == "" {
		t.Errorf("refusals: %+v", refused)
	}
	if n := len(of(t, f.rec, func(b event.MilestonePassed) bool { return b.Milestone == "old-primary-fenced" })); n != 0 {
		t.Error("the fence passed")
	}
}

// Each attack succeeds against an old primary that is not fenced, is undone, and
// fails against one that is.
func TestAttacksBite(t *testing.T) { attacksBite(t, driver()) }

func attacksBite(t *testing.T, d vm.Driver) {
	p := pkg(t, idle, idle, idle)
	h := New(Config{Package: p, Driver: d})
	if err := h.seatPlayers(); err != nil {
		t.Fatal(err)
	}
	s := h.seats[0]
	tpl, err := d.Prepare(t.Context(), s.arena.Spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.cluster, err = d.Start(t.Context(), tpl, vm.Start{Name: "attacked", Password: "p", AuthorizedKey: mustKey(t), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.cluster.Close()
	if err := s.setUp(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	h.watch.start()
	seat, err := probe.NewSeat(probe.Config{Territory: s.id(), ServicePort: 8080, Machines: s.cluster.Machines(), Secret: h.secret, Clock: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer seat.Close()
	guest := s.cluster.Machines()[0].Guest()
	sh := func(script string) {
		t.Helper()
		if r, err := guest.Run(t.Context(), []string{"sh", "-ec", script}, nil); err != nil || r.Exit != 0 {
			t.Fatalf("%s: %d %v %s", script, r.Exit, err, r.Stderr)
		}
	}
	v, err := probe.Load(p.FS, p.Verifier("old-primary-fenced"))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Attacks()) < 3 {
		t.Fatalf("attacks: %v", v.Attacks())
	}
	sh(marker) // promoted and switched; not fenced
	for _, fenced := range []bool{false, true} {
		if fenced {
			sh("systemctl mask failover-primary.service")
		}
		for i, words := range v.Attacks() {
			a := seat.Attempt("old-primary-fenced", 1, nil)
			if _, err := v.Verify(t.Context(), a); err != nil {
				t.Fatalf("before %q: %v", words, err)
			}
			err := v.Attack(t.Context(), a, i)
			var f *probe.Failure
			switch {
			case fenced && err != nil:
				t.Errorf("%q succeeded against a fenced old primary: %v", words, err)
			case !fenced && (!errors.As(err, &f) || f.Category != probe.Contract):
				t.Errorf("%q did not succeed against an unfenced old primary: %v", words, err)
			}
			if err := v.Undo(t.Context(), a, i); err != nil {
				t.Errorf("%q was not undone: %v", words, err)
			}
		}
	}
}

func mustKey(t *testing.T) ssh.PublicKey {
	k, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	return k.PublicKey()
}

func TestBlockedRebootSuffersAlone(t *testing.T) {
	t.Parallel()
	p := pkg(t, after(500*time.Millisecond, bundledScript(t, "right")), right+"systemctl mask reboot.target poweroff.target\n", idle)
	for i := range p.Manifest.Build.Milestones {
		if m := &p.Manifest.Build.Milestones[i]; m.ID == "host-reboot" {
			m.TimeoutSeconds = 9 // a boot is watched for some five
		}
	}
	f := race(t, driver(), p)
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	blocked := of(t, f.rec, func(b event.MilestoneFailed) bool {
		return b.Territory == "failover-two" && b.Milestone == "host-reboot"
	})
	if len(blocked) == 0 || blocked[0].Source != "player" || blocked[0].Category != "contract" {
		t.Errorf("the blocker's failures: %+v", blocked)
	}
	if blocked[0].Detail == "" || f.Outcome.Seats[1].Points != 85 {
		t.Errorf("%+v %+v", blocked[0], f.Outcome.Seats[1])
	}
}

func TestWedgedGuestDelaysNobody(t *testing.T) {
	t.Parallel()
	d := driver()
	p := pkg(t, bundledScript(t, "right"), idle, idle)
	h := New(Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	h.cfg.Progress = func(pr Progress) {
		if pr.Territory == "failover-two" && pr.Step == "seat ready" {
			t.Cleanup(d.Faults("failover-two", "host").Wedge())
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := h.Run(ctx)
	if err != nil || res.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v %v\n%s", res, err, logOf(res.Dir))
	}
	r := open(t, res.Dir)
	// The wedged seat's evaluation is in flight at the freeze and ends by its own
	// timeout; the winner's instants are not affected.
	w := r.World(r.Len())
	if at := w.Seat("failover-one").Durable.At; at > 4000 {
		t.Errorf("durable at %d", at)
	}
	if time.Since(start) > 15*time.Second {
		t.Errorf("took %v\n%s", time.Since(start), logOf(res.Dir))
	}
	if n := len(of(t, r, func(b event.MilestonePassed) bool { return b.Territory == "failover-two" })); n != 0 {
		t.Error("the wedged seat passed something")
	}
}

func TestFlakesChargeNobody(t *testing.T) {
	t.Parallel()
	d := driver()
	p := pkg(t, after(time.Second, bundledScript(t, "right")), idle, idle)
	h := New(Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	h.cfg.Progress = func(pr Progress) {
		if pr.Step == "seat ready" {
			d.Faults(pr.Territory, "host").Flake(10)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := h.Run(ctx)
	if err != nil || res.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v %v\n%s", res, err, logOf(res.Dir))
	}
	r := open(t, res.Dir)
	flakes := of(t, r, func(b event.MilestoneFailed) bool { return b.Category == "transport" })
	charged := of(t, r, func(b event.MilestoneFailed) bool {
		return b.Milestone == "failed-primary-preserved" && b.Source == "player"
	})
	if len(flakes) == 0 || len(charged) != 0 {
		t.Errorf("%d flakes became failures, charged to players: %+v", len(flakes), charged)
	}
	for _, b := range flakes {
		if b.Source != "controller" {
			t.Errorf("%+v", b)
		}
	}
}

func TestKilledHelperIsChargedToThePlayer(t *testing.T) {
	t.Parallel()
	p := pkg(t, after(2*time.Second, bundledScript(t, "right")), right+"systemctl stop refbox-agent.service\nsystemctl mask refbox-agent.service\n", idle)
	f := race(t, driver(), p)
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	lost := of(t, f.rec, func(b event.MilestoneFailed) bool {
		return b.Territory == "failover-two" && strings.Contains(b.Detail, vm.ErrGuestLost.Error())
	})
	if len(lost) == 0 || lost[0].Source != "player" || lost[0].Category != "contract" {
		t.Errorf("%+v\n%s", lost, logOf(f.Dir))
	}
}

func TestDeadlineEndsAHeat(t *testing.T) {
	p := pkg(t, hasty+"---\n"+idle, hasty, hasty)
	p.Manifest.Rules.DurationSeconds = 2
	f := race(t, driver(), p)
	if f.Outcome.Winner != "" || f.Outcome.Reason != "match timer expired" {
		t.Fatalf("%+v", f.Outcome)
	}
	w := f.rec.World(f.rec.Len())
	if w.FinishedMS == nil || *w.FinishedMS < 2000 || *w.FinishedMS > 3500 {
		t.Errorf("finished at %d\n%s", *w.FinishedMS, logOf(f.Dir))
	}
	// Whatever came after is on the frozen clock.
	if w.ElapsedMS != *w.FinishedMS {
		t.Errorf("the clock went on to %d", w.ElapsedMS)
	}
}

func TestRaceToTheLast(t *testing.T) {
	t.Parallel()
	// Late enough not to be in a dead heat, however busy the host is.
	p := pkg(t, after(3*time.Second, right), right, right)
	p.Manifest.Build.StopOnFirstDurable = false
	f := race(t, driver(), p)
	for _, s := range f.Outcome.Seats {
		if s.State != "durable" || s.Points != 100 {
			t.Errorf("%+v", s)
		}
	}
	if f.Outcome.Winner == "failover-one" || f.Outcome.Seats[2].Territory != "failover-one" {
		t.Errorf("%+v", f.Outcome)
	}
}
