package heat

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"refbox/engine/arena"
	"refbox/engine/canary"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/why"
	"refbox/engine/world"
)

// forgetful promotes the replica, and later lays an older copy over what it took since.
const forgetful = "cp /var/lib/failover/replica.sqlite3 /root/older\n" + marker +
	"---\n# pause 1500ms\ncp /root/older /var/lib/failover/replica.sqlite3\n"

func withCanary(p *arena.Package) *arena.Package {
	p.Manifest.Canary.IntervalMS = 100
	return p
}

func TestCanary(t *testing.T) {
	t.Parallel()
	res := race(t, driver(), withCanary(pkg(t, after(time.Second, right), idle, forgetful)))
	w := res.rec.World(res.rec.Len())
	if w.Winner == nil || *w.Winner != "failover-one" {
		t.Fatalf("winner: %v", w.Winner)
	}
	for _, s := range w.Seats() {
		r := s.CanaryResult
		if r == nil {
			t.Fatalf("%s has no result", s.ID)
		}
		t.Logf("%s: %s", s.ID, r.Words())
		if r.Unread != 0 || r.Writes < 10 || s.CanarySpans.Len() > 60 || r.OutageFromMS == nil {
			t.Errorf("%s: %+v, %d spans", s.ID, r.CanaryResult, s.CanarySpans.Len())
		}
		first, lost := r.FirstAckMS, r.Lost
		switch s.ID {
		case "failover-one":
			if first == nil || *first < 1000 || r.FirstReadMS == nil || lost != 0 {
				t.Errorf("%s: %+v", s.ID, r.CanaryResult)
			}
		case "failover-two":
			if first != nil || r.FirstReadMS != nil || r.Acknowledged != 0 || r.Outages != 1 {
				t.Errorf("%s: %+v", s.ID, r.CanaryResult)
			}
		default:
			if first == nil || lost == 0 || r.LossMS == 0 {
				t.Errorf("%s: %+v", s.ID, r.CanaryResult)
			}
		}
		e, _ := why.Explain(w, res.rec.Manifest(), s.ID)
		i := slices.IndexFunc(e.Lines, func(l why.Line) bool { return l.Kind == why.Canary })
		if i < 0 || !strings.Contains(e.Lines[i].Text, r.LossWords()) || *e.Lines[i].Event != r.Index {
			t.Errorf("%s: why says nothing of it: %+v", s.ID, e.Lines)
		}
	}
	samples := map[string]int{}
	res.rec.Events(0, res.rec.Len(), func(_ int, e event.Event) bool { //nolint:errcheck // it was verified
		if b, ok := e.Body.(event.CanarySample); ok {
			samples[b.Territory]++
		}
		return true
	})
	if len(samples) != 3 || samples["failover-two"] > 5 {
		t.Errorf("samples: %v", samples)
	}
}

// A verifier reads what the client has measured up to then: a loss is the seat's.
func TestCanaryDecides(t *testing.T) {
	p := withCanary(pkg(t, after(time.Second, right), idle, forgetful))
	over := p.FS.(overlay).over
	over["verify/old-primary-fenced.star"] = &fstest.MapFile{Data: []byte(`
def verify(seat):
    c = seat.canary()
    require(c.lost == 0, "%d of %d acknowledged writes are lost" % (c.lost, c.acknowledged), final = True)
    require(c.acknowledged > 20 and not c.down and c.unread == 0, "not yet")
    return {"acknowledged": c.acknowledged, "outage_ms": c.outage_ms}
`)}
	res := race(t, driver(), p)
	passed := of(t, res.rec, func(b event.MilestonePassed) bool { return b.Milestone == "old-primary-fenced" })
	if len(passed) != 1 || passed[0].Territory != "failover-one" || !strings.Contains(string(passed[0].Evidence), "outage_ms") {
		t.Fatalf("passed: %+v", passed)
	}
	refused := of(t, res.rec, func(b event.MilestoneFailed) bool {
		return b.Territory == "failover-three" && strings.Contains(b.Detail, "acknowledged writes are lost")
	})
	if len(refused) != 1 || refused[0].Source != "player" || refused[0].Retryable {
		t.Errorf("refused: %+v", refused)
	}
}

// An arena that declares none has none.
func TestNoCanary(t *testing.T) {
	t.Parallel()
	p := pkg(t, right, idle, idle)
	p.Manifest.Canary = nil
	res := race(t, driver(), p)
	if log := logOf(res.Dir); strings.Contains(log, "canary") {
		t.Error("a canary wrote")
	}
}

// A pause is no outage: what is under way ends before machines are frozen.
func TestCanaryInAPause(t *testing.T) {
	t.Parallel()
	p := withCanary(pkg(t, right, idle, idle))
	p.Manifest.Build.StopOnFirstDurable = false
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer h.End(t.Context(), "ann", "seen enough")    //nolint:errcheck // it may have ended
		for !h.begun.Load() && t.Context().Err() == nil { // only then is there a world
			time.Sleep(time.Millisecond)
		}
		if err := awaitWorld(t, h, func(w *world.World) bool {
			s := w.Seat("failover-one")
			return s != nil && s.DurableAtMS != nil && s.CanarySpans.Len() > 0
		}); err != nil {
			t.Error(err)
			return
		}
		for _, r := range []control.Ruling{{Action: control.Pause, Reason: "x"}, {Action: control.Resume, Reason: "x"}} {
			if err := h.Rule(t.Context(), "ann", r); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(canaryWait + 500*time.Millisecond) // a client that goes on would be told nothing by then
		}
	})
	res, err := h.Run(t.Context())
	wg.Wait()
	if err == nil {
		t.Fatal("it was not ended")
	}
	rec := open(t, res.Dir)
	w := rec.World(rec.Len())
	last, ok := w.Seat("failover-one").CanarySpans.Last()
	if pause := w.Pauses.At(0); !ok || last.Outcome != "acknowledged" || last.FromMS > pause.SinceMS || last.UptoMS < pause.SinceMS+1000 {
		t.Errorf("paused at %d; the last span is %+v", pause.SinceMS, last)
	}
}

// On emulated machines a look in the heat waits as much longer as the last one does: it
// decides too.
func TestCanaryLooksAtTheMachinesPace(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	wrote := make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusNoContent)
			wrote <- struct{}{}
			return
		}
		<-silent
	}))
	defer srv.Close()
	defer close(silent)
	began := time.Now()
	h := &Heat{slow: 0.02} // the other way round: a test does not wait for long
	s := &seat{heat: h, canary: canary.New(canary.Config{Addr: srv.Listener.Addr().String(), Path: "/records/{id}", Every: 20 * time.Millisecond, Wait: time.Second,
		Clock:  func() uint64 { return uint64(time.Since(began).Milliseconds()) },
		Record: func(n uint64) canary.Record { return canary.Record{ID: strconv.FormatUint(n, 10), Value: "v"} },
		Say:    func(...canary.Sample) {}})}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.canary.Run(ctx) })
	<-wrote
	<-wrote
	cancel()
	wg.Wait()
	asked := time.Now()
	c, err := s.canaryNow(t.Context())
	if took := time.Since(asked); err != nil || c.Unread == 0 || took > readWait/2 {
		t.Errorf("%+v %v after %v", c, err, took)
	}
}
