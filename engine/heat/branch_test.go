package heat

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/engine/branch"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/vm"
	"refbox/vm/qemu/qemutest"
)

func TestBranch(t *testing.T)     { t.Parallel(); branches(t, driver(), 100, time.Second) }
func TestRealBranch(t *testing.T) { branches(t, qemutest.Driver(t), 1000, 4*time.Second) }

const rest = "systemctl mask failover-primary.service\nprintf 'primary\\n' >/var/lib/failover/replica.role\n"

// recorded runs a heat of the first seat alone, and opens what it recorded.
func recorded(t *testing.T, cfg Config, script string, tick uint64) *recording.Recording {
	t.Helper()
	p := pkg(t, script, idle, idle)
	p.Manifest.Rules.TickMS = tick
	p, err := p.Only("failover-one")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg.Package, cfg.Dir, cfg.Runtime, cfg.Disks = p, filepath.Join(t.TempDir(), "heat"), runtimeFolder(t), t.TempDir()
	res, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(res.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	if err := rec.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if rep, err := rec.Verify(ctx); err != nil || rep.Breaks() > 0 {
		t.Errorf("verify: %+v, %v", rep, err)
	}
	if res.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", res.Outcome, logOf(res.Dir))
	}
	return rec
}

// A heat is raced on from the middle of another: what had passed is inherited and earns
// nothing, the rest is judged with the parent's secret values, and what a player still
// has to do has to be done.
func branches(t *testing.T, d vm.Driver, tick uint64, pause time.Duration) {
	states := branch.Store(filepath.Join(t.TempDir(), "states"))
	parent := recorded(t, Config{Driver: d, States: states}, hasty+"---\n"+after(pause, rest), tick)
	saved := of(t, parent, func(event.StateSaved) bool { return true })
	var middle int
	for i, s := range saved {
		t.Logf("state after %s: %d bytes in %d ms", s.Milestone, s.Bytes, s.TookMS)
		if s.Milestone == "reads-restored" {
			middle = i
		}
	}
	if len(saved) < 2 || saved[middle].Milestone != "reads-restored" {
		t.Fatalf("saved: %+v\n%s", saved, logOf(parent.Path()))
	}
	at := parent.World(parent.Len()).Seat("failover-one").States.At(middle)
	if _, err := states.At(parent, "failover-one", 3); err == nil || !strings.Contains(err.Error(), "by then") {
		t.Errorf("before anything was saved: %v", err)
	}
	p, err := states.At(parent, "", at.Index+1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Origin.Milestone != "reads-restored" || strings.Join(p.Passed, " ") != "failed-primary-preserved reads-restored" {
		t.Fatalf("%+v", p)
	}
	own := pkg(t, idle, idle, idle)
	parts, err := Parts(own)
	if err != nil {
		t.Fatal(err)
	}
	// The test's own scripts are not in the parts that must agree.
	if err := p.Fits(own.SHA256, parts); err != nil {
		t.Error(err)
	}
	parts["guest"] = "another"
	if err := p.Fits(own.SHA256, parts); err == nil || !strings.Contains(err.Error(), "has changed since heat: guest") {
		t.Errorf("of a guest that has changed: %v", err)
	}

	child := recorded(t, Config{Driver: d, States: states, Branch: &p, Secret: &p.Secret}, rest, tick)
	w := child.World(child.Len())
	seat := w.Seat("failover-one")
	if w.BranchedFrom() != "branched from heat at reads-restored" || w.Prepared.Start != "saved" || child.Match().Branched == nil || *child.Match().Branched != p.Origin {
		t.Errorf("%q, %+v, %+v", w.BranchedFrom(), w.Prepared, child.Match().Branched)
	}
	if seat.Points != 75 || !seat.Milestone("reads-restored").Inherited || seat.Milestone("old-primary-fenced").Inherited || seat.Revocations.Len() > 0 {
		t.Errorf("%d points\n%s", seat.Points, logOf(child.Path()))
	}
	if r := seat.CanaryResult; r == nil || r.Acknowledged == 0 || r.Lost+r.Phantoms > 0 {
		t.Errorf("canary: %+v", r)
	}
	// A grandchild does not derive what its elders did.
	g, err := states.At(child, "", child.Len())
	if err != nil {
		t.Fatal(err)
	}
	for id, x := range p.From {
		if g.From[id].Attempts < x.Attempts {
			t.Errorf("%s: attempt %d in the child, %d in the grandchild", id, x.Attempts, g.From[id].Attempts)
		}
	}
	if _, err := branch.Store(t.TempDir()).At(parent, "", parent.Len()); err == nil || !strings.Contains(err.Error(), "thrown away") {
		t.Errorf("of a state that is not here: %v", err)
	}
}

// What was fixed in no file does not outlive the boot: it is revoked, and earns nothing
// when it is mended again.
func TestBranchRevokesWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	states := branch.Store(filepath.Join(t.TempDir(), "states"))
	d := driver()
	parent := recorded(t, Config{Driver: d, States: states}, hasty+"---\n"+after(time.Second, rest), 100)
	at := parent.World(parent.Len()).Seat("failover-one").States.At(1)
	p, err := states.At(parent, "", at.Index+1)
	if err != nil || p.Origin.Milestone != "reads-restored" {
		t.Fatalf("%+v, %v", p.Origin, err)
	}
	// The state of another instant stands for one that did not last.
	first, err := states.At(parent, "", parent.World(parent.Len()).Seat("failover-one").States.At(0).Index+1)
	if err != nil {
		t.Fatal(err)
	}
	p.Disks = first.Disks
	child := recorded(t, Config{Driver: d, Branch: &p, Secret: &p.Secret}, after(11*time.Second, hasty+rest), 100) // it is waited for ten
	seat := child.World(child.Len()).Seat("failover-one")
	if seat.Revocations.Len() != 1 || seat.Revocations.At(0).Milestone != "reads-restored" || seat.Points != 75 {
		t.Errorf("%d points, %d revocations\n%s", seat.Points, seat.Revocations.Len(), logOf(child.Path()))
	}
}
