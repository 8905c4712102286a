package heat

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"refbox/assets"
	"refbox/engine/event"
	"refbox/engine/heat/heattest"
	"refbox/engine/recording"
	"refbox/vm/qemu/qemutest"
)

// bundledPlayer is a bundled player's script as it is.
func bundledPlayer(t testing.TB, name string) string {
	t.Helper()
	b, err := fs.ReadFile(assets.Arenas(), "primary-failover/players/"+name+".sh")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRealHeat(t *testing.T) {
	d := qemutest.Driver(t)
	p := pkg(t, bundledPlayer(t, "right"), bundledPlayer(t, "careful"), bundledPlayer(t, "hasty"))
	p.Manifest.Rules.TickMS = 1000
	before := time.Now()
	f := race(t, d, p)
	t.Logf("the heat took %v", time.Since(before))
	if f.Outcome.Winner != "failover-one" || f.Outcome.Seats[0].Points != 100 {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	for _, s := range f.Outcome.Seats[1:] {
		if s.State != "incomplete" {
			t.Errorf("%+v", s)
		}
	}
	logVerdicts(t, f.rec)
	ended := map[string]uint64{} // when the seat's last action did
	err := f.rec.Events(0, f.rec.Len(), func(_ int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.AgentActionFinished:
			ended[b.Territory] = e.ElapsedMS
		case event.MilestonePassed:
			t.Logf("%6d %s passed %s, attempt %d, %d ms after an action ended", e.ElapsedMS, b.Territory, b.Milestone, b.Attempt, e.ElapsedMS-ended[b.Territory])
		case event.AttackFinished:
			t.Logf("%6d %s %q held %v, %d ms", e.ElapsedMS, b.Territory, b.Attack, b.Held, b.TookMS)
		case event.MilestoneFailed:
			if b.Source != "player" && !strings.Contains(b.Detail, "the heat is decided") {
				t.Errorf("charged to %s: %+v", b.Source, b)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRealAttacksBite(t *testing.T) { attacksBite(t, qemutest.Driver(t)) }

func TestRealRebootBlocked(t *testing.T) {
	d := qemutest.Driver(t)
	p := pkg(t, after(5*time.Second, bundledScript(t, "right")), bundledScript(t, "reboot-blocker"), idle)
	p.Manifest.Rules.TickMS = 1000
	f := race(t, d, p)
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	blocked := of(t, f.rec, func(b event.MilestoneFailed) bool {
		return b.Territory == "failover-two" && b.Milestone == "host-reboot"
	})
	if len(blocked) == 0 {
		t.Error("the blocker's reboot was not refused")
	}
	for _, b := range blocked {
		if b.Source != "player" || !strings.Contains(b.Detail, "reboot") {
			t.Errorf("%+v", b)
		}
	}
}

func logVerdicts(t testing.TB, r *recording.Recording) {
	if v := heattest.Verdicts(t, r); len(v) > 0 {
		t.Logf("verdicts after %d observed actions: p50 %d ms, p95 %d ms, most %d ms", len(v), v[len(v)/2], v[len(v)*95/100], v[len(v)-1])
	}
}

// BenchmarkRealVerdicts is design: section 7's "state changes in the guest →
// verdict in the log", after an observed action: the public port leads to the dead
// primary and to the replica by turns, while two other seats are watched. It also
// tells how long a fence's attacks take.
func BenchmarkRealVerdicts(b *testing.B) {
	d := qemutest.Driver(b)
	for b.Loop() {
		script := ""
		for i := range 20 {
			script += after(1500*time.Millisecond, fmt.Sprintf("printf '%d\\n' >/var/lib/failover/upstream\n---\n", 8081+(i+1)%2))
		}
		script += after(time.Second, right)
		p := pkg(b, script, idle, idle)
		p.Manifest.Rules.TickMS = 1000
		f := race(b, d, p)
		if f.Outcome.Winner != "failover-one" {
			b.Fatalf("%+v", f.Outcome)
		}
		v := heattest.Verdicts(b, f.rec)
		b.ReportMetric(float64(v[0]), "min-ms")
		b.ReportMetric(float64(v[len(v)/2]), "p50-ms")
		b.ReportMetric(float64(v[len(v)*95/100]), "p95-ms")
		b.ReportMetric(float64(v[len(v)-1]), "max-ms")
		attacks := uint64(0)
		for _, a := range of(b, f.rec, func(a event.AttackFinished) bool { return a.Territory == "failover-one" }) {
			attacks += a.TookMS
		}
		b.ReportMetric(float64(attacks), "attacks-ms")
	}
}
