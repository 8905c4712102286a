package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"refbox/engine/internal/pause"
)

// A seat may be watched: from the first seat.watch on, until the seat ends, a
// client of the referee's asks its public service again and again, one request at
// a time, each on a connection of its own, and remembers every request that was
// not answered as it had to be. No verifier, and nothing in the guest, need run
// meanwhile.
//
//	w = seat.watch({"/version": ["v1", "v2"]}, writes = "/records/{id}")
//
// Paths maps each path to the bodies that are right there; with writes, records
// of the watch's own are written, which must give 2xx, and read back later. Later
// calls take the same arguments. Each gives what came of it so far:
//
//	struct(samples, failures, at, first, seen)
//
// at is the instant, ms on the heat's clock, of the first failure and first says
// what it was (0 and "" for none); seen maps each path to the body that came last.
//
// What the referee itself does to the seat is not charged: while a probe starts,
// stops or reboots something, and from then until the service has answered rightly
// for a while, failures do not count. Neither do they while the heat is paused.

// lapse is the first failure of a watch.
type lapse struct {
	at     uint64
	reason string
}

// watching is a seat's watch. The zero value watches nothing.
type watching struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
	held   bool

	plan      plan
	samples   int
	failures  int
	first     lapse
	seen      map[string]string
	disturbed int    // by the referee, at the moment
	until     uint64 // when what it did excuses nothing any more
	settling  bool   // after that
	streak    int    // right answers in a row
	kept      []int  // numbers of the writes that were acknowledged
}

// plan is what is asked.
type plan struct {
	paths  []string
	right  map[string][]string
	writes string // path of a record with {id}; "" for none
	every  time.Duration
}

const (
	// watchTimeout: what a client of a busy service would wait. An outage shows sooner.
	watchTimeout = 8 * time.Second
	maxWatched   = 16
	// writeEvery: so many rounds over the paths come with one write.
	writeEvery = 2
)

// settled is how many right answers in a row end what the referee's own doing
// excuses, and the time after which it excuses nothing any more, whatever the answers
// are: a seat cannot keep it open. A boot takes longer to have its services back.
func (p plan) settled() int { return 4 * (len(p.paths) + 1) }

const (
	settleTime     = 5 * time.Second
	settleBootTime = 20 * time.Second
)

// Disturb notes that a referee's fault is on the seat until the function it gives is
// called.
func (s *Seat) Disturb() func() { return s.disturb(settleBootTime) }

// disturb notes that the referee is at work in the seat until the function it
// gives is called, and for at most so long what comes of it.
func (s *Seat) disturb(settle time.Duration) func() {
	w := &s.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disturbed++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.disturbed--
		w.settle(s.c.Clock() + uint64(s.slow(settle).Milliseconds()))
	}
}

// Hold lets the seat's watch rest until Release: its machines are about to be
// frozen.
func (s *Seat) Hold() { s.hold(true) }

// Release undoes Hold.
func (s *Seat) Release() { s.hold(false) }

func (s *Seat) hold(on bool) {
	w := &s.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	// What is under way when the machines freeze, or thaw, tells nothing.
	w.held = on
	w.settle(s.c.Clock() + uint64(s.slow(settleTime).Milliseconds()))
}

// settle begins the time after a disturbance, which until ends at the latest.
func (w *watching) settle(until uint64) { w.settling, w.streak, w.until = true, 0, max(w.until, until) }

// excused tells whether a failure at an instant of the heat's clock is not the
// service's.
func (w *watching) excused(at uint64) bool {
	return w.held || w.disturbed > 0 || w.settling && at < w.until
}

func (w *watching) stop() {
	w.mu.Lock()
	cancel, done := w.cancel, w.done
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// start begins the watch, unless it has begun.
func (s *Seat) startWatch(p plan) {
	w := &s.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.plan, w.cancel, w.done, w.seen = p, cancel, make(chan struct{}), map[string]string{}
	go func() {
		defer close(w.done)
		s.watchService(ctx, p)
	}()
}

// sample is one request of a watch.
type sample struct {
	method, path, body string
	right              func(Reply) bool // called with the watch's mu held
}

// round is one round over the plan; n counts them.
func (s *Seat) round(p plan, n int) []sample {
	var out []sample
	for _, path := range p.paths {
		out = append(out, sample{"GET", path, "", func(r Reply) bool {
			return r.Status == http.StatusOK && slices.Contains(p.right[path], string(r.Body))
		}})
	}
	if p.writes == "" || n%writeEvery != 0 {
		return out
	}
	record := func(n int) (string, string) {
		v := s.c.Secret.Derive("watch", s.c.Territory, strconv.Itoa(n))
		return strings.ReplaceAll(p.writes, "{id}", v.ID), v.Value
	}
	w := &s.watching
	w.mu.Lock()
	kept := w.kept
	w.mu.Unlock()
	if len(kept) > 0 {
		back := kept[len(kept)-1]
		if n%(2*writeEvery) == 0 { // an old one and the newest in turn
			back = kept[len(kept)/2]
		}
		path, value := record(back)
		out = append(out, sample{"GET", path, "", func(r Reply) bool { return r.Status == http.StatusOK && string(r.Body) == value }})
	}
	path, value := record(n)
	return append(out, sample{"PUT", path, value, func(r Reply) bool {
		if r.Status < 200 || r.Status > 299 {
			return false
		}
		w.kept = append(w.kept, n)
		return true
	}})
}

func (s *Seat) watchService(ctx context.Context, p plan) {
	w, m := &s.watching, s.c.Machines[0]
	addr, err := m.Addr(s.c.ServicePort)
	if err != nil {
		return
	}
	for n := 0; ; n++ {
		for _, q := range s.round(p, n) {
			w.mu.Lock()
			held, excused := w.held, w.excused(s.c.Clock())
			w.mu.Unlock()
			if !held {
				at := s.c.Clock()
				tctx, cancel := context.WithTimeout(ctx, s.slow(watchTimeout))
				rep, err := ask(tctx, addr, q.method, q.path, []byte(q.body))
				cancel()
				if ctx.Err() != nil {
					return
				}
				if err == nil || isOff(ctx, m) {
					s.sampled(q, rep, err, at, excused)
				}
			}
			if !pause.For(ctx, p.every) {
				return
			}
		}
	}
}

// sampled notes what came of a sample that was sent at an instant, excused or not.
func (s *Seat) sampled(q sample, rep Reply, err error, at uint64, excused bool) {
	w := &s.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	right := err == nil && rep.Error == "" && q.right(rep)
	excused = excused || w.excused(at)
	if _, watched := w.plan.right[q.path]; watched && right {
		w.seen[q.path] = string(rep.Body)
	}
	switch {
	case right:
		w.samples++
		if w.streak++; w.settling && w.disturbed == 0 && !w.held && w.streak >= w.plan.settled() {
			w.settling = false
		}
	case excused:
		w.streak = 0
	default:
		w.samples++
		w.failures++
		w.streak = 0
		if w.failures > 1 {
			return
		}
		what := fmt.Sprintf("%d %s", rep.Status, bounded(string(rep.Body), 60))
		if err != nil {
			what = "the machine is off"
		} else if rep.Error != "" {
			what = rep.Error
		}
		w.first = lapse{at, q.method + " " + q.path + ": " + strings.TrimSpace(what)}
	}
}

// watchMethod is seat.watch.
func watchMethod(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	var paths *starlark.Dict
	var writes string
	every := seconds(100 * time.Millisecond)
	if err := starlark.UnpackArgs("watch", args, kw, "paths", &paths, "writes?", &writes, "every?", &every); err != nil {
		return nil, err
	}
	p := plan{right: map[string][]string{}, writes: writes, every: max(time.Duration(every), 20*time.Millisecond)}
	if paths.Len() == 0 || paths.Len() > maxWatched || writes != "" && !strings.HasPrefix(writes, "/") {
		return nil, fmt.Errorf("watch: give 1 to %d paths, and writes as a path with {id}", maxWatched)
	}
	for _, kv := range paths.Items() {
		path, ok := starlark.AsString(kv[0])
		list, isList := kv[1].(*starlark.List)
		if !ok || !strings.HasPrefix(path, "/") || !isList {
			return nil, errors.New("watch: paths must map each path to the list of bodies that are right there")
		}
		for i := range list.Len() {
			body, _ := starlark.AsString(list.Index(i))
			p.right[path] = append(p.right[path], body)
		}
		p.paths = append(p.paths, path)
	}
	slices.Sort(p.paths)
	return r.a.watch(r.ctx, p)
}

// watch starts the seat's watch and says what it has seen.
func (a *Attempt) watch(ctx context.Context, p plan) (starlark.Value, error) {
	m := a.Seat.c.Machines[0]
	rec := Record{Call: "watched", Outside: true, Forgeable: outsideForgeable, Request: map[string]any{"paths": strings.Join(p.paths, " ")}}
	var res map[string]any
	err := a.call(ctx, rec, m, func(context.Context) (map[string]any, error) {
		if r := a.Seat.replay; r != nil {
			recorded, err := r.take("watched", m.Name(), rec.Request)
			res = recorded.Response
			return res, err
		}
		a.Seat.startWatch(p)
		w := &a.Seat.watching
		w.mu.Lock()
		defer w.mu.Unlock()
		res = map[string]any{"samples": w.samples, "failures": w.failures}
		if w.failures > 0 {
			res["at_ms"], res["first"] = int(w.first.at), w.first.reason
		}
		for path, body := range w.seen {
			res["seen "+path] = bounded(body, maxShown)
		}
		return res, nil
	})
	if err != nil {
		return nil, err
	}
	seen := starlark.NewDict(len(p.paths))
	got := Record{Response: res}
	for _, path := range p.paths {
		if body := said(got, "seen "+path); body != "" {
			if err := seen.SetKey(starlark.String(path), starlark.String(body)); err != nil {
				return nil, err
			}
		}
	}
	return object("watch", starlark.StringDict{"samples": starlark.MakeInt(number(got, "samples")), "failures": starlark.MakeInt(number(got, "failures")),
		"at": starlark.MakeInt(number(got, "at_ms")), "first": starlark.String(said(got, "first")), "seen": seen}), nil
}
