package arena_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/engine/arena"
	"refbox/engine/probe"
	"refbox/vm"
)

// front is the public port of a machine, and nothing else of it.
type front struct {
	vm.Machine
	addr string
	done chan struct{}
}

func (m *front) Name() string                            { return "alpha" }
func (m *front) Console() vm.Console                     { return quietConsole{} }
func (m *front) Guest() vm.Guest                         { return nil }
func (m *front) Done() <-chan struct{}                   { return m.done }
func (m *front) Err() error                              { return nil }
func (m *front) Power(context.Context) (vm.Power, error) { return vm.PowerOn, nil }
func (m *front) Addr(int) (string, error)                { return m.addr, nil }

// Nobody comes through the power cut who acknowledges nothing before it: that could lose
// nothing. And what it acknowledged last counts, not only what the client wrote.
func TestCommitsAreMadeUpToThePowerCut(t *testing.T) {
	t.Parallel()
	p, err := arena.Load("postgres-failover")
	if err != nil {
		t.Fatal(err)
	}
	v, err := probe.Load(p.FS, p.Verifier("commits-kept"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		grows, down   bool
		status        int // of a PUT
		loses         bool
		before, after string
	}{
		"right":                        {grows: true, status: 204},
		"acknowledges nothing":         {status: 503, down: true, before: "right before the power cut the client's writes are not acknowledged"},
		"acknowledged nothing new":     {status: 204, before: "right before the power cut the client's writes are not acknowledged"},
		"acknowledges no longer":       {grows: true, down: true, status: 503, before: "right before the power cut the client's writes are not acknowledged"},
		"stops once it was looked at":  {grows: true, status: 503, before: "right before the power cut a write is not acknowledged: 503"},
		"loses what it took last only": {grows: true, status: 204, loses: true, after: "acknowledged right before is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			records := map[string]string{}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Method == http.MethodPut {
					body, _ := io.ReadAll(r.Body)
					records[r.URL.Path] = string(body)
					w.WriteHeader(tc.status)
					return
				}
				value, ok := records[r.URL.Path]
				if !ok {
					w.WriteHeader(http.StatusNotFound)
				}
				io.WriteString(w, value) //nolint:errcheck // the client has left
			}))
			defer srv.Close()
			began := time.Now()
			seat, err := probe.NewSeat(probe.Config{Territory: "one", ServicePort: 8080, Secret: probe.NewSecret(),
				Machines: []vm.Machine{&front{addr: srv.Listener.Addr().String(), done: make(chan struct{})}},
				Clock:    func() uint64 { return uint64(time.Since(began).Milliseconds()) + 1 }})
			if err != nil {
				t.Fatal(err)
			}
			defer seat.Close()
			c := probe.Canary{Writes: 40, Acknowledged: 20, Failed: 20, Down: tc.down}
			seat.Measures(func(context.Context) (probe.Canary, error) {
				mu.Lock()
				defer mu.Unlock()
				if tc.grows {
					c.Acknowledged, c.Writes = c.Acknowledged+1, c.Writes+1
				}
				return c, nil
			})
			a := seat.Attempt("commits-kept", 1, nil)
			refused(t, "before", v.Before(t.Context(), a), tc.before)
			if tc.before != "" {
				return
			}
			if tc.loses {
				mu.Lock()
				clear(records)
				mu.Unlock()
			}
			_, err = v.Verify(t.Context(), a)
			refused(t, "after", err, tc.after)
		})
	}
}

// refused checks that a milestone was refused with those words; "" is that it was not.
func refused(t *testing.T, when string, err error, words string) {
	t.Helper()
	if words == "" {
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
		return
	}
	var f *probe.Failure
	if !errors.As(err, &f) || f.Category != probe.Contract || !strings.Contains(f.Reason, words) {
		t.Errorf("%s: %v, want %q", when, err, words)
	}
}
