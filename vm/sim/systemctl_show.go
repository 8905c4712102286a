package sim

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// known are the units that are loaded or have a file.
func (s *systemd) known() []string {
	seen := map[string]bool{}
	s.mu.Lock()
	for n := range s.units {
		seen[n] = true
	}
	s.mu.Unlock()
	for _, dir := range unitDirs {
		list, _ := s.b.fs.ReadDir(dir)
		for _, e := range list {
			if !e.IsDir() && unitName(e.Name()) == e.Name() {
				seen[e.Name()] = true
			}
		}
	}
	return sortedKeys(seen)
}

func (t *run) showStatus(name string) int {
	s := t.b.sys
	st, u := s.status(name)
	if st.LoadState == "not-found" {
		t.say(0, "Unit %s could not be found.", name)
		return 4
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dot := map[string]string{"active": "●", "failed": "×"}[u.active]
	t.printf("%s %s - %s\n", cmpOr(dot, "○"), name, cmpOr(u.file.get("Unit", "Description"), name))
	t.printf("     Loaded: %s (%s; %s)\n", st.LoadState, u.file.path, st.UnitFileState)
	if len(u.file.dropIns) > 0 {
		t.printf("    Drop-In: %s\n", strings.Join(u.file.dropIns, "\n             "))
	}
	t.printf("     Active: %s (%s)\n", st.ActiveState, st.SubState)
	if u.cond == "no" {
		t.printf("  Condition: start condition failed\n")
	}
	if u.main != nil {
		t.printf("   Main PID: %d (%s)\n", u.main.pid, u.main.name())
	} else if u.status != 0 {
		t.printf("    Process: exited, status=%d\n", u.status)
	}
	if len(u.log) > 0 {
		t.printf("\n%s\n", strings.Join(u.log[max(0, len(u.log)-10):], "\n"))
	}
	if st.ActiveState != "active" && st.ActiveState != "activating" {
		return 3
	}
	return 0
}

func (t *run) show(units []string, opts map[string]string) int {
	props := cmpOr(opts["p"], opts["property"])
	for i, n := range units {
		st, u := t.b.sys.status(n)
		t.b.sys.mu.Lock()
		all := map[string]string{
			"Id": n, "Names": n, "LoadState": st.LoadState, "ActiveState": st.ActiveState, "SubState": st.SubState,
			"UnitFileState": st.UnitFileState, "MainPID": strconv.Itoa(st.MainPID), "NRestarts": strconv.Itoa(st.Restarts),
			"Result": u.result, "ExecMainStatus": strconv.Itoa(u.status), "FragmentPath": u.file.path,
			"DropInPaths": strings.Join(u.file.dropIns, " "), "Description": cmpOr(u.file.get("Unit", "Description"), n),
			"Type": u.file.serviceType(), "Restart": cmpOr(u.file.get("Service", "Restart"), "no"),
			"ConditionResult": cmpOr(u.cond, "no"), "ExecStart": strings.Join(u.file.list("Service", "ExecStart"), " ; "),
			"Environment": strings.Join(u.file.list("Service", "Environment"), " "),
		}
		t.b.sys.mu.Unlock()
		names := slices.Sorted(maps.Keys(all))
		if props != "" {
			names = strings.Split(props, ",")
		}
		if i > 0 {
			t.printf("\n")
		}
		for _, k := range names {
			v, ok := all[k]
			switch {
			case has(opts, "value"):
				t.printf("%s\n", v)
			case ok:
				t.printf("%s=%s\n", k, v)
			}
		}
	}
	return 0
}

func (t *run) list(verb string, opts map[string]string, patterns []string) {
	s := t.b.sys
	kind := cmpOr(opts["type"], opts["t"])
	state := opts["state"]
	if has(opts, "failed") {
		state = "failed"
	}
	for _, n := range s.known() {
		if kind != "" && !strings.HasSuffix(n, "."+kind) {
			continue
		}
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, n); return ok || p == n || p+".service" == n }) {
			continue
		}
		st, _ := s.status(n)
		if verb == "list-unit-files" {
			if state == "" || state == st.UnitFileState {
				t.printf("%-40s %s\n", n, st.UnitFileState)
			}
			continue
		}
		if state != "" && state != st.ActiveState || state == "" && !has(opts, "all", "a") && st.ActiveState == "inactive" {
			continue
		}
		t.printf("%-40s %s %s %s %s\n", n, st.LoadState, st.ActiveState, st.SubState, cmpOr(s.description(n), n))
	}
}

func (s *systemd) description(name string) string {
	_, f := s.unit(name)
	return f.get("Unit", "Description")
}

func toolJournalctl(t *run) int {
	opts, rest := t.flags("unopS--unit --lines --since --until ")
	lines := 1 << 20
	if n, ok := opts["n"]; ok {
		lines, _ = strconv.Atoi(n)
	}
	names := t.b.sys.known()
	if u := cmpOr(append([]string{opts["u"], opts["unit"]}, rest...)...); u != "" {
		names = []string{unitName(u)}
	}
	var all []string
	t.b.sys.mu.Lock()
	for _, n := range names {
		if u := t.b.sys.units[n]; u != nil {
			all = append(all, u.log...)
		}
	}
	t.b.sys.mu.Unlock()
	if len(all) == 0 {
		t.printf("-- No entries --\n")
		return 0
	}
	for _, l := range all[max(0, len(all)-lines):] {
		t.printf("%s\n", l)
	}
	return 0
}
