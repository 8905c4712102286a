package heat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/vm/sim"
	"refbox/vm/sim/hello"
)

// TestFogOfWar: a guest that holds what players must not read is found out before
// the start, and charged to the arena; else players are told the brief alone.
func TestFogOfWar(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	dir := filepath.Join(t.TempDir(), "foggy")
	if _, err := arena.Init(dir); err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(dir, "arena.toml")
	data, err := os.ReadFile(toml)
	if err != nil {
		t.Fatal(err)
	}
	write(t, toml, strings.Replace(string(data), "tick_ms = 2000", "tick_ms = 50", 1)+`
[fog_of_war]
player_brief = "BRIEF.md"

[fog_of_war.guest_leak_audit]
scan_paths = ["/opt/arena", "/etc/arena"]
forbidden_strings = ["service-restart", "the answer is"]
`)
	write(t, filepath.Join(dir, "BRIEF.md"), "Something here does not work.\n")
	run := func() (Result, error) {
		t.Helper()
		p, err := arena.Load(dir)
		if err == nil {
			p, err = p.Cast(p.Manifest.Players[:2], false)
		}
		if err != nil {
			t.Fatal(err)
		}
		runtime, err := os.MkdirTemp("", "foggy") // sockets live in it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(runtime) })
		return Run(t.Context(), Config{Package: p, Driver: sim.New(sim.Config{Programs: hello.Programs()}), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtime})
	}
	res, err := run()
	if err != nil || res.Aborted {
		t.Fatalf("nothing leaks: %+v, %v", res, err)
	}
	brief, err := os.ReadFile(filepath.Join(res.Dir, "seats/right/brief.md"))
	if err != nil || !strings.HasPrefix(string(brief), "Something here does not work.") || strings.Contains(string(brief), "arena-app.service") {
		t.Errorf("the brief: %s, %v", brief, err)
	}
	write(t, filepath.Join(dir, "guest/etc/arena/notes"), "the answer is 8080\n")
	res, err = run()
	if err == nil || !res.Aborted || !strings.Contains(err.Error(), `"the answer is" stands in /etc/arena/notes`) {
		t.Errorf("a leak: %+v, %v", res, err)
	}
}
