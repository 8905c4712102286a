package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"refbox/vm"
)

const watchVerifier = `
def verify(seat):
    w = seat.watch({"/version": ["v1", "v2"]}, writes = "/records/{id}", every = 0.02)
    require(w.failures == 0, "failed: " + w.first, final = True)
    return {"samples": w.samples, "version": w.seen.get("/version", "")}
`

// watched is a service that can be told how to fail.
type watched struct {
	mu      sync.Mutex
	records map[string]string
	down    atomic.Bool
	version atomic.Value
}

func (s *watched) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if s.down.Load() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.URL.Path == "/version":
		fmt.Fprint(w, s.version.Load())
	case q.Method == http.MethodPut:
		b, _ := io.ReadAll(q.Body)
		s.records[q.URL.Path] = string(b)
		w.WriteHeader(http.StatusNoContent)
	case s.records[q.URL.Path] == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprint(w, s.records[q.URL.Path])
	}
}

// TestWatch: the watch goes on between the looks at it; one failure is remembered
// for good, and one that the referee causes is not charged.
func TestWatch(t *testing.T) {
	s := &watched{records: map[string]string{}}
	s.version.Store("v1")
	r := newRig(t, s.ServeHTTP)
	v := load(t, watchVerifier)
	look := func() (samples int, version string, err error) {
		t.Helper()
		a := r.Attempt("m", 1, nil)
		raw, err := v.Verify(t.Context(), a)
		var e struct {
			Samples int
			Version string
		}
		if err == nil {
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
		}
		if recs, _ := a.Records(); len(recs) != 1 || recs[0].Call != "watched" || !recs[0].Outside {
			t.Errorf("records %+v", recs)
		}
		return e.Samples, e.Version, err
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	until("it does not go on", func() bool { n, _, err := look(); return err == nil && n > 20 })
	s.version.Store("v2")
	until("v2 is not seen", func() bool { _, version, _ := look(); return version == "v2" })

	// The referee's own doing, until the service serves again.
	end := r.disturb(settleTime)
	s.down.Store(true)
	until("the outage is not seen", func() bool { r.watching.mu.Lock(); defer r.watching.mu.Unlock(); return r.watching.disturbed == 1 })
	time.Sleep(100 * time.Millisecond) // some samples fail: that is what is excused
	end()
	time.Sleep(100 * time.Millisecond)
	s.down.Store(false)
	until("it does not settle", func() bool { r.watching.mu.Lock(); defer r.watching.mu.Unlock(); return !r.watching.settling })
	if _, _, err := look(); err != nil {
		t.Errorf("the referee's own outage is charged: %v", err)
	}

	// While it is held nothing is asked, and nothing counts.
	r.Hold()
	s.down.Store(true)
	time.Sleep(100 * time.Millisecond)
	s.down.Store(false)
	r.Release()
	until("it does not settle after a pause", func() bool { r.watching.mu.Lock(); defer r.watching.mu.Unlock(); return !r.watching.settling })
	if _, _, err := look(); err != nil {
		t.Errorf("a pause is charged: %v", err)
	}

	// One wrong answer of the service's own, and all is over.
	s.version.Store("v3")
	var f *Failure
	until("a wrong answer is not seen", func() bool { _, _, err := look(); return errors.As(err, &f) })
	if !f.Final || f.Source != "player" || f.Reason != "failed: GET /version: 200 v3" {
		t.Errorf("%+v", f)
	}
	s.version.Store("v2")
	time.Sleep(100 * time.Millisecond)
	if _, _, err := look(); err == nil {
		t.Error("what was lost came back")
	}
}

// TestWatchLosesNoWrite: a record that was acknowledged and is gone is a failure.
func TestWatchLosesNoWrite(t *testing.T) {
	s := &watched{records: map[string]string{}}
	s.version.Store("v1")
	r := newRig(t, s.ServeHTTP)
	v := load(t, watchVerifier)
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := v.Verify(t.Context(), r.Attempt("m", 1, nil))
		if err != nil {
			if !strings.Contains(err.Error(), "GET /records/") || !strings.Contains(err.Error(), "404") {
				t.Error(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("lost writes are not seen")
		}
		s.mu.Lock()
		if len(s.records) > 3 {
			s.records = map[string]string{}
		}
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// TestReplayedWatch: what a watch had seen is read from its record.
func TestReplayedWatch(t *testing.T) {
	p := NewReplay(ReplayConfig{Territory: "one", ServicePort: 8080, Records: []Record{{Call: "watched", Machine: "host",
		Request: map[string]any{"paths": "/version"}, Response: map[string]any{"samples": 7.0, "failures": 0.0, "seen /version": "v2"}}}})
	raw, err := load(t, watchVerifier).Verify(t.Context(), p.Attempt("m", 1, nil))
	if err != nil || string(raw) != `{"samples":7,"version":"v2"}` {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestRequestsOfAnyKindAtOnce: requests of any kind go out together, each after its wait.
func TestRequestsOfAnyKindAtOnce(t *testing.T) {
	var order sync.Mutex
	var seen []string
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		order.Lock()
		seen = append(seen, q.Method+" "+q.URL.Path+" "+string(b))
		order.Unlock()
		w.WriteHeader(http.StatusAccepted)
	})
	ev, _, err := r.verify(t, t.Context(), `
rs = seat.http_all([{"method": "PUT", "path": "/late", "body": "v", "after": 0.2}, {"path": "/now"}])
return {"status": [r.status for r in rs], "quick": rs[0].took < 2 and rs[0].took >= 0}`)
	if err != nil || ev != `{"quick":true,"status":[202,202]}` {
		t.Errorf("%s, %v", ev, err)
	}
	if len(seen) != 2 || seen[1] != "PUT /late v" {
		t.Errorf("%q", seen)
	}
	for body, want := range map[string]string{
		`return {"x": seat.http_all([1])}`:                              "requests[0] is a int",
		`return {"x": seat.http_all([{"path": "/", "colour": "red"}])}`: "there are method",
		`return {"x": seat.http_all([{"path": "/", "after": -1}])}`:     "after",
	} {
		if _, _, err := r.verify(t, t.Context(), body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// cuttable is a machine whose power a test cuts, and whose clock it sets.
type cuttable struct {
	*fakeMachine
	did []string
}

func (m *cuttable) PowerCut(context.Context) error { m.did = append(m.did, "cut"); return nil }
func (m *cuttable) PowerOnAgain(context.Context) error {
	m.did = append(m.did, "on")
	return nil
}
func (m *cuttable) SetClock(_ context.Context, ahead time.Duration) error {
	m.did = append(m.did, ahead.String())
	return nil
}

func TestPowerCutAndClock(t *testing.T) {
	r := newRig(t, nil)
	m := &cuttable{fakeMachine: r.m}
	r.c.Machines = []vm.Machine{m}
	boot := load(t, `
def verify(seat):
    seat.set_clock(3600)
    seat.set_clock(0)
    return {}
def nothing(seat):
    pass
boot = boot_attack("power is cut", [], nothing, nothing, cut = True)
`)
	a := r.Attempt("m", 1, nil)
	back, err := a.Reboot(t.Context(), boot.Boot())
	if !back || err != nil {
		t.Fatal(back, err)
	}
	if _, err := boot.Verify(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.did, " "); got != "cut on 1h0m0s 0s" {
		t.Error(got)
	}
	recs, _ := a.Records()
	if len(recs) != 3 || recs[0].Request["cut"] != true || recs[0].Forgeable != cutForgeable || recs[1].Call != "set_clock" {
		t.Errorf("%+v", recs)
	}
	// The same from the records.
	p := NewReplay(ReplayConfig{Territory: "one", Records: recs})
	b := p.Attempt("m", 1, nil)
	if back, err := b.Reboot(t.Context(), boot.Boot()); !back || err != nil {
		t.Error(back, err)
	}
	if _, err := boot.Verify(t.Context(), b); err != nil {
		t.Error(err)
	}
}
