package heat

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"refbox/engine/arena"
	"refbox/engine/probe"
	"refbox/engine/review"
	"refbox/engine/world"
	"refbox/vm/fault"
	"refbox/vm/qemu/qemutest"
)

// A schedule of three faults on real machines: one by time that a milestone rests on, one
// at a drawn moment, one after a milestone that hits one drawn seat. Each bites, is
// undone, and the player repairs its machine after all.
func TestRealScheduledFaults(t *testing.T) {
	d := qemutest.Driver(t)
	p := withFaults(t, 480,
		arena.Fault{ID: "ice", Kind: "freeze", AtMS: ptr[uint64](2000), ForMS: 1000, Proves: []string{"writes-restored"}},
		arena.Fault{ID: "stop", Kind: "service-stop", Unit: ptr("failover-proxy.service"), Port: 8080, WindowMS: []uint64{9000, 12_000}, ForMS: 2000},
		arena.Fault{ID: "cut", Kind: "power-cut", After: ptr(first), WaitMS: ptr[uint64](18_000), Seats: arena.OneSeat},
	)
	p.FS.(overlay).over[*p.Manifest.Agents[0].Script].Data = []byte(after(30*time.Second, bundledScript(t, "right")))
	secret := probe.NewSecret()
	for secret.Draw(0, 2, "fault", "cut", "seat") != 1 {
		secret = probe.NewSecret()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "heat")
	res, err := Run(ctx, Config{Package: p, Driver: d, Dir: dir, Runtime: runtimeFolder(t), Secret: &secret})
	if err != nil {
		t.Fatalf("%v\n%s", err, logOf(dir))
	}
	f := finished{res, open(t, dir)}
	w := f.rec.World(f.rec.Len())
	if res.Outcome.Winner != "failover-one" || res.Outcome.Seats[0].Points != 100 {
		t.Errorf("%+v\n%s", res.Outcome, logOf(dir))
	}
	for _, s := range w.Seats() {
		want := map[string]bool{"ice": true, "stop": true, "cut": s.ID == "failover-two"}
		for _, x := range s.Faults.All() {
			t.Logf("%s: planned %d, injected %d, confirmed %d, ended %d: %s", s.ID, *x.PlannedMS, x.InjectedMS, *x.ConfirmedMS, *x.EndedMS, x.Words())
			if x.State != world.FaultCleared || !x.Bit() || !want[x.Schedule] {
				t.Errorf("%s: %+v", s.ID, x)
			}
			want[x.Schedule] = false
			var r fault.Receipt
			if err := json.Unmarshal(x.Receipt, &r); err != nil || !r.Confirmed || r.Witness == "" || (r.LostBytes != nil) != (x.Fault == "power-cut") {
				t.Errorf("%s: receipt %s", s.ID, x.Receipt)
			}
		}
		for id, missing := range want {
			if missing {
				t.Errorf("%s never had the fault %s", s.ID, id)
			}
		}
	}
	r, err := review.Heat(t.Context(), f.rec, p, false, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Verdicts {
		if v.Kind == "fault" && v.Status != review.Follows || v.Status == review.Differs {
			t.Errorf("%+v", v)
		}
	}
}
