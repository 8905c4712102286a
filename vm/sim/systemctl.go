package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"refbox/vm"
)

// status is what the referee and systemctl show of a unit.
func (s *systemd) status(name string) (vm.Unit, *unit) {
	u, _ := s.unit(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := vm.Unit{LoadState: u.file.load, ActiveState: u.active, SubState: u.sub,
		UnitFileState: s.b.fileState(u.file), Restarts: u.restarts}
	if u.main != nil {
		st.MainPID = u.main.pid
	}
	return st, u
}

// powerOff begins a shutdown. It fails when the target is masked.
func (s *systemd) powerOff(target string, force bool) error {
	if _, f := s.unit(target); !force && f.load == "masked" {
		return fmt.Errorf("unit %s is %w", target, errMasked)
	}
	if s.b.leaving.CompareAndSwap(false, true) || force {
		s.b.m.shutdown(s.b, target == "reboot.target", force)
	}
	return nil
}

func toolSystemctl(t *run) int {
	s := t.b.sys
	opts, rest := t.flags("pntos--property --lines --type --output --signal --state --kill-who ")
	verb := "list-units"
	if len(rest) > 0 {
		verb, rest = rest[0], rest[1:]
	}
	units := make([]string, len(rest))
	for i, r := range rest {
		units[i] = unitName(r)
	}
	quietly := has(opts, "q", "quiet")
	each := func(f func(name string) error) int {
		if len(units) == 0 {
			return t.fail(1, "Too few arguments.")
		}
		code := 0
		for _, n := range units {
			if err := f(n); err != nil {
				code = max(code, t.complain(verb, n, err))
			}
		}
		return code
	}
	// --no-block would have to outlive the command; waiting is close enough.
	switch verb {
	case "start":
		return each(func(n string) error { return s.start(t.ctx, n, nil) })
	case "stop":
		return each(func(n string) error {
			if _, f := s.unit(n); f.load == "not-found" {
				return fmt.Errorf("unit %s %w", n, errNoUnit)
			}
			return s.stop(t.ctx, n)
		})
	case "restart", "reload-or-restart", "try-restart":
		return each(func(n string) error {
			st, _ := s.status(n)
			if verb == "try-restart" && st.ActiveState != "active" {
				return nil
			}
			if st.LoadState == "masked" {
				return fmt.Errorf("unit %s is %w", n, errMasked)
			}
			if err := s.stop(t.ctx, n); err != nil {
				return err
			}
			return s.start(t.ctx, n, nil)
		})
	case "reload":
		return each(func(n string) error {
			return s.reloadUnit(n)
		})
	case "reset-failed":
		for _, n := range units {
			s.resetFailed(n)
		}
		if len(units) == 0 {
			for _, n := range s.known() {
				s.resetFailed(n)
			}
		}
		return 0
	case "kill":
		sig := cmpOr(opts["s"], opts["signal"], "TERM")
		return each(func(n string) error {
			return s.signal(n, signalNumber(sig))
		})
	case "daemon-reload", "daemon-reexec":
		s.reload()
		return 0
	case "enable", "disable", "reenable", "mask", "unmask":
		code := each(func(n string) error { return t.install(verb, n, opts) })
		s.reload()
		if has(opts, "now") && code == 0 {
			for _, n := range units {
				switch verb {
				case "enable", "reenable":
					if err := s.start(t.ctx, n, nil); err != nil {
						code = t.complain("start", n, err)
					}
				case "disable", "mask":
					_ = s.stop(t.ctx, n)
				}
			}
		}
		return code
	case "is-active", "is-failed", "is-enabled":
		code := 3
		if verb == "is-enabled" {
			code = 1
		}
		for _, n := range units {
			st, _ := s.status(n)
			word := st.ActiveState
			good := word == "active" || word == "reloading"
			switch verb {
			case "is-failed":
				good = word == "failed"
				code = min(code, 1)
			case "is-enabled":
				word = s.b.fileState(s.b.loadUnit(n))
				if word == "" {
					t.fail(0, "Failed to get unit file state for %s: No such file or directory", n)
					continue
				}
				good = slices.Contains([]string{"enabled", "enabled-runtime", "static"}, word)
			}
			if good {
				code = 0
			}
			if !quietly {
				t.printf("%s\n", word)
			}
		}
		return code
	case "status":
		code := 0
		for _, n := range units {
			code = max(code, t.showStatus(n))
		}
		return code
	case "show":
		return t.show(units, opts)
	case "cat":
		code := 0
		for _, n := range units {
			f := s.b.loadUnit(n)
			if f.load == "not-found" {
				code = t.fail(1, "No files found for %s.", n)
				continue
			}
			if f.load == "masked" {
				t.printf("# Unit %s is masked.\n", n)
			}
			t.printf("%s", f.text)
		}
		return code
	case "list-units", "list-unit-files":
		t.list(verb, opts, rest)
		return 0
	case "list-dependencies":
		for _, n := range s.closure(append(units, "multi-user.target")[0], nil) {
			t.printf("%s\n", n)
		}
		return 0
	case "is-system-running":
		t.printf("running\n")
		return 0
	case "get-default":
		t.printf("multi-user.target\n")
		return 0
	case "reboot", "poweroff", "halt":
		force := has(opts, "f", "force")
		if verb == "halt" {
			verb = "poweroff"
		}
		if err := s.powerOff(verb+".target", force); err != nil {
			return t.complain(verb, verb+".target", err)
		}
		return 0
	}
	return t.fail(1, "Unknown command verb '%s'.", verb)
}

func cmpOr(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// complain prints what systemctl says of an error and returns its status.
func (t *run) complain(verb, name string, err error) int {
	switch {
	case errors.Is(err, errMasked):
		return t.say(1, "Failed to %s %s: Unit %s is masked.", verb, name, name)
	case errors.Is(err, errNoUnit):
		return t.say(5, "Failed to %s %s: Unit %s not found.", verb, name, name)
	case errors.Is(err, errStartJob):
		return t.say(1, "Job for %s failed because the control process exited with error code.\nSee \"systemctl status %s\" and \"journalctl -xeu %s\" for details.", name, name, name)
	}
	return t.say(1, "Failed to %s %s: %s", verb, name, errText(err))
}

func (t *run) say(code int, format string, args ...any) int {
	fmt.Fprintf(t.errw, format+"\n", args...)
	return code
}

// reloadUnit runs a unit's ExecReload.
func (s *systemd) reloadUnit(name string) error {
	u, f := s.unit(name)
	if len(f.list("Service", "ExecReload")) == 0 {
		return fmt.Errorf("job type reload is not applicable for unit %s", name)
	}
	if r := s.execAll(s.b.ctx, u, f, "ExecReload"); r != "success" {
		return errStartJob
	}
	return nil
}

// signal sends a unit's main process a signal.
func (s *systemd) signal(name string, sig syscall.Signal) error {
	_, u := s.status(name)
	s.mu.Lock()
	p := u.main
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("unit %s %w", name, errNoUnit)
	}
	p.signal(sig)
	return nil
}

func (s *systemd) resetFailed(name string) {
	u, _ := s.unit(name)
	s.mu.Lock()
	if u.active == "failed" {
		u.active, u.sub, u.result = "inactive", "dead", "success"
	}
	u.starts, u.restarts = nil, 0
	s.mu.Unlock()
	s.b.m.notify()
}

// install makes and removes the links of enable, disable, mask and unmask.
func (t *run) install(verb, name string, opts map[string]string) error {
	b := t.b
	dir := unitDirs[0]
	if has(opts, "runtime") {
		dir = unitDirs[1]
	}
	at := path.Join(dir, name)
	f := b.loadUnit(name)
	switch verb {
	case "mask":
		st, err := b.fs.Lstat(at)
		if err == nil && st.Mode()&fs.ModeSymlink == 0 {
			return fmt.Errorf("file %s already exists", at)
		}
		_ = b.fs.Remove(at)
		if err := b.fs.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := b.fs.Symlink("/dev/null", at); err != nil {
			return err
		}
		t.say(0, "Created symlink %s → /dev/null.", at)
		return nil
	case "unmask":
		for _, d := range unitDirs[:2] {
			l := path.Join(d, name)
			if st, err := b.fs.Lstat(l); err == nil && st.Target() == "/dev/null" {
				_ = b.fs.Remove(l)
				t.say(0, "Removed %q.", l)
			}
		}
		return nil
	}
	if f.load == "not-found" {
		return fmt.Errorf("unit file %s %w", name, errNoUnit)
	}
	if verb != "enable" {
		for _, d := range unitDirs[:2] {
			list, _ := b.fs.ReadDir(d)
			for _, e := range list {
				l := path.Join(d, e.Name(), name)
				if strings.HasSuffix(e.Name(), ".wants") || strings.HasSuffix(e.Name(), ".requires") {
					if b.fs.Remove(l) == nil {
						t.say(0, "Removed %q.", l)
					}
				}
			}
		}
	}
	if verb == "disable" {
		return nil
	}
	if f.load == "masked" {
		return fmt.Errorf("unit %s is %w", name, errMasked)
	}
	for key, suffix := range map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires"} {
		for _, target := range f.words("Install", key) {
			if target == "default.target" {
				target = "multi-user.target"
			}
			l := path.Join(dir, target+suffix, name)
			if err := b.fs.MkdirAll(path.Dir(l), 0o755); err != nil {
				return err
			}
			if err := b.fs.Symlink(f.path, l); err == nil {
				t.say(0, "Created symlink %s → %s.", l, f.path)
			}
		}
	}
	if len(f.sections["Install"]) == 0 {
		t.say(0, "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\nAlias= settings in the [Install] section).")
	}
	return nil
}

// toolPower is reboot, poweroff, halt and shutdown.
func toolPower(t *run) int {
	opts, rest := t.flags("")
	target := "poweroff.target"
	if t.name() == "reboot" || t.name() == "shutdown" && has(opts, "r") {
		target = "reboot.target"
	}
	if t.name() == "shutdown" && has(opts, "c") {
		return 0
	}
	if t.name() == "shutdown" && len(rest) > 0 && rest[0] != "now" && rest[0] != "+0" {
		return t.fail(1, "only 'now' is supported on a simulated machine")
	}
	if err := t.b.sys.powerOff(target, has(opts, "f", "force")); err != nil {
		return t.complain(strings.TrimSuffix(target, ".target"), target, err)
	}
	return 0
}
