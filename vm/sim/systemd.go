package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// systemd is a small model of the service manager of one boot.
type systemd struct {
	b *boot

	mu    sync.Mutex
	units map[string]*unit
	order int // counts starts
}

// unit is a unit's state. Its fields are guarded by systemd.mu.
type unit struct {
	name     string
	file     *unitFile
	job      chan struct{} // one token: starts and stops take turns
	active   string        // active, inactive, failed, activating, deactivating
	sub      string
	result   string // success, exit-code, signal, start-limit-hit, …
	status   int    // exit status of the last main process
	main     *Process
	restarts int
	starts   []time.Time
	began    time.Time
	order    int
	stop     context.CancelFunc // ends the supervision of a running service
	over     chan struct{}      // closed when the supervision has ended
	cond     string             // "no" when a condition kept it from starting
	log      []string
}

const (
	logLines   = 100
	startBurst = 5
	burstTime  = 10 * time.Second
	stopWait   = 90 * time.Second
)

var (
	errMasked   = errors.New("masked")
	errNoUnit   = errors.New("not found")
	errStartJob = errors.New("job failed")
)

func newSystemd(b *boot) *systemd { return &systemd{b: b, units: map[string]*unit{}} }

// unit is the state of a unit, freshly loaded when nothing holds on to what was
// loaded before.
func (s *systemd) unit(name string) (*unit, *unitFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.units[name]
	if u == nil {
		u = &unit{name: name, job: make(chan struct{}, 1), active: "inactive", sub: "dead", result: "success"}
		s.units[name] = u
	}
	// systemd keeps a unit that runs, failed, or is wanted by something, as it
	// was when it was loaded; others it forgets.
	if u.file == nil || u.file.load != "loaded" || u.active == "inactive" && s.b.fileState(u.file) != "enabled" {
		u.file = s.b.loadUnit(name)
	}
	return u, u.file
}

// reload reads every unit anew.
func (s *systemd) reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, u := range s.units {
		u.file = s.b.loadUnit(name)
		if u.file.load == "not-found" && u.active == "inactive" {
			delete(s.units, name)
		}
	}
}

// set changes a unit's state and wakes who waits for it.
func (s *systemd) set(u *unit, active, sub string) {
	s.mu.Lock()
	u.active, u.sub = active, sub
	s.mu.Unlock()
	s.b.m.notify()
}

func (u *unit) isService() bool { return strings.HasSuffix(u.name, ".service") }

// write keeps the last lines of a unit's output for journalctl and status.
func (s *systemd) write(u *unit, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(line) > 2048 {
		line = line[:2048]
	}
	u.log = append(u.log, time.Now().Format("Jan 02 15:04:05 ")+s.b.hostname()+" "+line)
	if len(u.log) > logLines {
		u.log = slices.Clone(u.log[len(u.log)-logLines:])
	}
}

// journal is a unit's standard output.
type journal struct {
	s  *systemd
	u  *unit
	mu sync.Mutex
	in []byte
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.in = append(j.in, p...)
	for {
		line, rest, ok := strings.Cut(string(j.in), "\n")
		if !ok && len(j.in) < 2048 {
			return len(p), nil
		}
		j.s.write(j.u, strings.TrimSuffix(j.u.name, ".service")+": "+line)
		j.in = []byte(rest)
	}
}

// boot starts what default.target wants.
func (s *systemd) boot(ctx context.Context) {
	names := s.closure("multi-user.target", nil)
	s.startAll(ctx, names)
	target, _ := s.unit("multi-user.target")
	s.set(target, "active", "active")
	s.b.m.console.getty(s.b)
}

// restore starts what ran when the state was saved.
func (s *systemd) restore(ctx context.Context, active []string) {
	s.startAll(ctx, active)
	s.b.m.console.getty(s.b)
}

// closure is name's wants and requires, and theirs.
func (s *systemd) closure(name string, seen []string) []string {
	_, f := s.unit(name)
	wants, requires := s.b.wants(f)
	for _, w := range append(wants, requires...) {
		if !slices.Contains(seen, w) {
			seen = s.closure(w, append(seen, w))
		}
	}
	return seen
}

// startAll starts units side by side, each after those of them that its After=
// and their Before= name.
func (s *systemd) startAll(ctx context.Context, names []string) {
	done := map[string]chan struct{}{}
	for _, n := range names {
		done[n] = make(chan struct{})
	}
	after := map[string][]string{}
	for _, n := range names {
		_, f := s.unit(n)
		after[n] = append(after[n], f.words("Unit", "After")...)
		for _, l := range f.words("Unit", "Before") {
			after[l] = append(after[l], n)
		}
	}
	after = acyclic(names, after)
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			defer close(done[n])
			for _, a := range after[n] {
				if c := done[a]; c != nil {
					select {
					case <-c:
					case <-ctx.Done():
						return
					}
				}
			}
			if err := s.start(ctx, n, nil); err != nil && ctx.Err() == nil && !errors.Is(err, errNoUnit) {
				s.b.print("[FAILED] Failed to start " + n + ".\n")
			} else if err == nil && strings.HasSuffix(n, ".service") {
				s.b.print("[  OK  ] Started " + n + ".\n")
			}
		})
	}
	wg.Wait()
}

// acyclic drops the orderings that close a cycle, as systemd drops jobs.
func acyclic(names []string, after map[string][]string) map[string][]string {
	kept := map[string][]string{}
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		if from == to {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(kept[from], func(n string) bool { return reaches(n, to, seen) })
	}
	for _, n := range names {
		for _, a := range after[n] {
			if !reaches(a, n, map[string]bool{}) {
				kept[n] = append(kept[n], a)
			}
		}
	}
	return kept
}

// running are the services that run, in the order of their starts.
func (s *systemd) running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*unit
	for _, u := range s.units {
		if u.active == "active" && u.isService() {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *unit) int { return a.order - b.order })
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.name
	}
	return names
}

// settle waits for the boot's units to have been started, and gives those that
// are going to listen a moment to do so.
func (s *systemd) settle(ctx context.Context) {
	_ = s.b.m.await(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		u := s.units["multi-user.target"]
		return u != nil && u.active == "active" || s.b.ctx.Err() != nil
	})
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_ = s.b.m.await(ctx, func() bool {
		ports := s.b.sortedPorts()
		for _, p := range s.b.processes() {
			if p.unit != "" && p.unit != agentUnit && !slices.ContainsFunc(ports, func(l *port) bool { return l.proc == p }) {
				return false
			}
		}
		return true
	})
}

// allActive reports whether the named units are.
func (s *systemd) allActive(names []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(names, func(n string) bool { u := s.units[n]; return u == nil || u.active != "active" })
}

// lock takes a unit's job token.
func (u *unit) lock(ctx context.Context) error {
	select {
	case u.job <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts a unit with what it requires. It returns when a simple service's
// process runs, a notifying one's is ready, a one-shot one's is done.
func (s *systemd) start(ctx context.Context, name string, seen []string) error {
	u, f := s.unit(name)
	switch f.load {
	case "masked":
		return fmt.Errorf("unit %s is %w", name, errMasked)
	case "not-found":
		return fmt.Errorf("unit %s %w", name, errNoUnit)
	}
	if slices.Contains(seen, name) {
		return nil
	}
	seen = append(seen, name)
	wants, requires := s.b.wants(f)
	for _, r := range requires {
		if err := s.start(ctx, r, seen); err != nil {
			return fmt.Errorf("dependency of %s: %w", name, err)
		}
	}
	for _, w := range wants {
		_ = s.start(ctx, w, seen)
	}
	for _, c := range f.words("Unit", "Conflicts") {
		if c != "shutdown.target" {
			_ = s.stop(ctx, c)
		}
	}
	if err := u.lock(ctx); err != nil {
		return err
	}
	defer func() { <-u.job }()
	s.mu.Lock()
	is := u.active
	s.mu.Unlock()
	if is == "active" || is == "activating" {
		return nil
	}
	if why := s.b.unmet(f); why != "" {
		s.mu.Lock()
		u.cond = "no"
		s.mu.Unlock()
		s.write(u, "systemd[1]: "+name+" was skipped because of an unmet condition check ("+why+").")
		if strings.HasPrefix(why, "Assert") {
			s.set(u, "failed", "failed")
			return errStartJob
		}
		return nil
	}
	s.mu.Lock()
	u.cond = "yes"
	u.restarts = 0
	s.order++
	u.order = s.order
	s.mu.Unlock()
	if !u.isService() {
		s.set(u, "active", map[bool]string{true: "active", false: "listening"}[strings.HasSuffix(name, ".target")])
		return nil
	}
	return s.startService(ctx, u)
}

// unmet is the first condition or assertion that does not hold, or "".
func (b *boot) unmet(f *unitFile) string {
	for _, kind := range []string{"Condition", "Assert"} {
		for key, holds := range map[string]func(string) bool{
			"PathExists":      func(p string) bool { _, err := b.fs.Stat(p); return err == nil },
			"PathIsDirectory": func(p string) bool { st, err := b.fs.Stat(p); return err == nil && st.IsDir() },
			"PathIsSymbolicLink": func(p string) bool {
				st, err := b.fs.Lstat(p)
				return err == nil && st.Mode()&fs.ModeSymlink != 0
			},
			"FileNotEmpty": func(p string) bool {
				st, err := b.fs.Stat(p)
				return err == nil && st.Mode().IsRegular() && st.Size() > 0
			},
			"FileIsExecutable": func(p string) bool {
				st, err := b.fs.Stat(p)
				return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
			},
			"DirectoryNotEmpty": func(p string) bool { l, err := b.fs.ReadDir(p); return err == nil && len(l) > 0 },
		} {
			for _, v := range f.list("Unit", kind+key) {
				arg := strings.TrimPrefix(v, "|")
				arg, negated := strings.CutPrefix(arg, "!")
				if holds(strings.TrimSpace(arg)) == negated {
					return kind + key + "=" + v
				}
			}
		}
	}
	return ""
}

// startService runs a service's commands; the caller holds its job token.
func (s *systemd) startService(ctx context.Context, u *unit) error {
	s.mu.Lock()
	now := time.Now()
	u.starts = slices.DeleteFunc(u.starts, func(t time.Time) bool { return now.Sub(t) > burstTime })
	limited := len(u.starts) >= startBurst && u.file.get("Unit", "StartLimitIntervalSec") != "0"
	u.starts = append(u.starts, now)
	s.mu.Unlock()
	if limited {
		s.fail(u, "start-limit-hit")
		return errStartJob
	}
	super, stop := context.WithCancel(s.b.ctx)
	over := make(chan struct{})
	up := make(chan error, 1)
	s.mu.Lock()
	u.stop, u.over, u.began, u.result = stop, over, now, "success"
	s.mu.Unlock()
	s.set(u, "activating", "start")
	if !s.b.tasks.run(func() {
		defer close(over)
		defer stop()
		s.supervise(super, u, up)
	}) {
		close(over)
		stop()
		return errStartJob
	}
	select {
	case err := <-up:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *systemd) fail(u *unit, result string) {
	s.mu.Lock()
	u.result, u.main = result, nil
	s.mu.Unlock()
	s.write(u, "systemd[1]: "+u.name+": Failed with result '"+result+"'.")
	s.set(u, "failed", "failed")
}

// killMain asks a process to end, and after wait makes it.
func killMain(p *Process, wait time.Duration) {
	p.signal(syscall.SIGTERM)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
		p.signal(syscall.SIGKILL)
		<-p.ended
	case <-p.b.ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
}
