package sim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"
)

// supervise is a service's life from one start to its stop or failure. It sends
// the outcome of the first start to up.
func (s *systemd) supervise(ctx context.Context, u *unit, up chan<- error) {
	var once sync.Once
	started := func(err error) { once.Do(func() { up <- err }) }
	defer started(errStartJob)
	for {
		s.mu.Lock()
		f := u.file
		s.mu.Unlock()
		result := s.cycle(ctx, u, f, started)
		if result == "stay" { // RemainAfterExit: nothing to watch
			<-ctx.Done()
			result = "success"
		}
		if ctx.Err() != nil {
			s.stopped(u, f)
			return
		}
		s.execAll(s.b.ctx, u, f, "ExecStopPost")
		if !wantsRestart(f, result) {
			if result == "success" {
				s.mu.Lock()
				u.main = nil
				s.mu.Unlock()
				s.set(u, "inactive", "dead")
				started(nil)
			} else {
				s.fail(u, result)
			}
			return
		}
		s.mu.Lock()
		u.result, u.main = result, nil
		s.mu.Unlock()
		s.set(u, "activating", "auto-restart")
		started(errStartJob)
		if sleep(ctx, f.duration("RestartSec", 100*time.Millisecond)) != nil {
			s.stopped(u, f)
			return
		}
		s.mu.Lock()
		now := time.Now()
		recent := u.starts[:0:0]
		for _, t := range u.starts {
			if now.Sub(t) <= burstTime {
				recent = append(recent, t)
			}
		}
		u.starts = append(recent, now)
		limited := len(recent) >= startBurst && f.get("Unit", "StartLimitIntervalSec") != "0"
		u.restarts++
		u.began = now
		s.mu.Unlock()
		if limited {
			s.write(u, "systemd[1]: "+u.name+": Start request repeated too quickly.")
			s.fail(u, "start-limit-hit")
			return
		}
		if why := s.b.unmet(f); why != "" {
			s.mu.Lock()
			u.cond = "no"
			s.mu.Unlock()
			s.set(u, "inactive", "dead")
			return
		}
	}
}

func wantsRestart(f *unitFile, result string) bool {
	switch f.get("Service", "Restart") {
	case "always":
		return true
	case "on-failure":
		return result != "success"
	case "on-abnormal":
		return result == "signal" || result == "timeout"
	case "on-success":
		return result == "success"
	}
	return false
}

// cycle runs a service once and returns its result.
func (s *systemd) cycle(ctx context.Context, u *unit, f *unitFile, started func(error)) string {
	if r := s.execAll(ctx, u, f, "ExecStartPre"); r != "success" {
		return r
	}
	kind := f.serviceType()
	lines := f.list("Service", "ExecStart")
	if kind == "oneshot" || kind == "forking" {
		if r := s.execAll(ctx, u, f, "ExecStart"); r != "success" {
			return r
		}
		if r := s.execAll(ctx, u, f, "ExecStartPost"); r != "success" {
			return r
		}
		if kind == "forking" || f.get("Service", "RemainAfterExit") == "yes" || f.get("Service", "RemainAfterExit") == "true" {
			s.set(u, "active", "exited")
			started(nil)
			return "stay"
		}
		return "success"
	}
	if len(lines) == 0 {
		return "resources"
	}
	words, mayFail := splitCommand(lines[0])
	p, err := s.spawn(u, f, words)
	if err != nil {
		s.write(u, "systemd[1]: "+u.name+": Failed to spawn: "+err.Error())
		return "resources"
	}
	s.mu.Lock()
	u.main = p
	s.mu.Unlock()
	if kind == "notify" {
		wait := time.NewTimer(f.duration("TimeoutStartSec", stopWait))
		defer wait.Stop()
		select {
		case <-p.ready:
		case <-p.ended:
		case <-ctx.Done():
		case <-wait.C:
			killMain(p, f.duration("TimeoutStopSec", stopWait))
			return "timeout"
		}
	}
	select {
	case <-p.ended:
	default:
		if ctx.Err() == nil {
			s.set(u, "active", "running")
			s.execAll(ctx, u, f, "ExecStartPost")
			started(nil)
		}
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		s.set(u, "deactivating", "stop")
		if s.b.ctx.Err() == nil {
			s.execAll(s.b.ctx, u, f, "ExecStop")
		}
		killMain(p, f.duration("TimeoutStopSec", stopWait))
	}
	return s.result(u, p, mayFail, kind, started)
}

// result says how a service's main process ended.
func (s *systemd) result(u *unit, p *Process, mayFail bool, kind string, started func(error)) string {
	s.mu.Lock()
	u.status, u.main = p.exit, nil
	s.mu.Unlock()
	if kind == "simple" && p.exit != 203 {
		started(nil) // it was started; how it fared later is another matter
	}
	// A service that ends on SIGTERM ends cleanly.
	clean := p.exit == 0 || p.exit == 128+int(syscall.SIGTERM) || p.exit == 128+int(syscall.SIGINT) || p.exit == 128+int(syscall.SIGHUP)
	switch {
	case clean || mayFail:
		return "success"
	case p.exit > 128 && p.ctx.Err() != nil && p.exit == p.signalled():
		s.write(u, fmt.Sprintf("systemd[1]: %s: Main process exited, code=killed, status=%d", u.name, p.exit-128))
		return "signal"
	}
	s.write(u, fmt.Sprintf("systemd[1]: %s: Main process exited, code=exited, status=%d/FAILURE", u.name, p.exit))
	return "exit-code"
}

// stopped ends a supervision that was told to stop.
func (s *systemd) stopped(u *unit, f *unitFile) {
	s.mu.Lock()
	sub := u.sub
	s.mu.Unlock()
	if sub == "exited" && s.b.ctx.Err() == nil {
		s.set(u, "deactivating", "stop")
		s.execAll(s.b.ctx, u, f, "ExecStop")
	}
	if s.b.ctx.Err() == nil {
		s.execAll(s.b.ctx, u, f, "ExecStopPost")
	}
	s.mu.Lock()
	u.main = nil
	s.mu.Unlock()
	s.set(u, "inactive", "dead")
}

// execAll runs the commands of a setting one after the other.
func (s *systemd) execAll(ctx context.Context, u *unit, f *unitFile, key string) string {
	for _, line := range f.list("Service", key) {
		words, mayFail := splitCommand(line)
		p, err := s.spawn(u, f, words)
		if err != nil {
			return "resources"
		}
		select {
		case <-p.ended:
		case <-ctx.Done():
			killMain(p, f.duration("TimeoutStopSec", stopWait))
		}
		if p.exit != 0 && !mayFail {
			s.mu.Lock()
			u.status = p.exit
			s.mu.Unlock()
			s.write(u, fmt.Sprintf("systemd[1]: %s: %s exited with status %d", u.name, words[0], p.exit))
			return "exit-code"
		}
	}
	return "success"
}

// spawn starts one of a service's commands.
func (s *systemd) spawn(u *unit, f *unitFile, words []string) (*Process, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("%s: empty command", u.name)
	}
	instance := ""
	if _, rest, ok := strings.Cut(u.name, "@"); ok {
		instance = rest[:strings.LastIndexByte(rest, '.')]
	}
	env := s.b.environment()
	for _, line := range f.list("Service", "EnvironmentFile") {
		data, _ := s.b.fs.ReadFile(strings.TrimPrefix(line, "-"))
		for l := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(l), "="); ok && !strings.HasPrefix(k, "#") {
				env[k] = strings.Trim(v, `"'`)
			}
		}
	}
	for _, line := range f.list("Service", "Environment") {
		pairs, _ := splitCommand(line)
		for _, pair := range pairs {
			if k, v, ok := strings.Cut(pair, "="); ok {
				env[k] = v
			}
		}
	}
	args := make([]string, len(words))
	for i, w := range words {
		w = strings.NewReplacer("%i", instance, "%n", u.name, "%H", s.b.hostname()).Replace(w)
		args[i] = expandVariables(w, env)
	}
	j := &journal{s: s, u: u}
	p, err := s.b.newProcess(s.b.ctx, processSpec{args: args, dir: f.get("Service", "WorkingDirectory"), env: env, out: j, err: j, unit: u.name})
	if err != nil {
		return nil, err
	}
	go func() { p.finish(p.b.execute(p)) }() // counted by newProcess
	return p, nil
}

// expandVariables replaces ${NAME}, and $NAME where it is the whole word; "$$"
// is a dollar.
func expandVariables(word string, env map[string]string) string {
	if name, ok := strings.CutPrefix(word, "$"); ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" {
		return env[name]
	}
	var s strings.Builder
	for i := 0; i < len(word); i++ {
		rest := word[i:]
		switch end := strings.IndexByte(rest, '}'); {
		case strings.HasPrefix(rest, "$$"):
			s.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "${") && end > 0:
			s.WriteString(env[rest[2:end]])
			i += end
		default:
			s.WriteByte(word[i])
		}
	}
	return s.String()
}

// stop stops a unit and waits for its processes.
func (s *systemd) stop(ctx context.Context, name string) error {
	s.mu.Lock()
	u := s.units[name]
	s.mu.Unlock()
	if u == nil {
		return nil
	}
	// A start that is under way is told first: it holds the token.
	s.halt(u)
	if err := u.lock(ctx); err != nil {
		return err
	}
	defer func() { <-u.job }()
	over := s.halt(u)
	if over != nil {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	s.mu.Lock()
	is := u.active
	s.mu.Unlock()
	if is == "active" {
		s.set(u, "inactive", "dead")
	}
	return nil
}

// halt tells a unit's supervision to end.
func (s *systemd) halt(u *unit) (over chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.stop == nil {
		return nil
	}
	select {
	case <-u.over:
		return nil
	default:
	}
	u.stop()
	return u.over
}

// stopAll stops every unit, the last started first; the agent goes last.
func (s *systemd) stopAll(ctx context.Context) {
	names := s.running()
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == agentUnit {
			continue
		}
		_ = s.stop(ctx, names[i])
	}
	s.mu.Lock()
	var rest []string
	for n, u := range s.units {
		if u.isService() && u.active == "activating" && n != agentUnit {
			rest = append(rest, n)
		}
	}
	s.mu.Unlock()
	for _, n := range rest {
		_ = s.stop(ctx, n)
	}
}
