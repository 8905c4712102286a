package trial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/vm/sim"
	"refbox/vm/sim/hello"
)

// pack makes a package of the template, quick to try, with its manifest edited.
func pack(t *testing.T, oldNew ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tried")
	if _, err := arena.Init(dir); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "arena.toml"), append([]string{"tick_ms = 2000", "tick_ms = 50"}, oldNew...)...)
	return dir
}

func edit(t *testing.T, file string, oldNew ...string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := string(data)
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(s, oldNew[i]) {
			t.Fatalf("%s does not hold %q", file, oldNew[i])
		}
		s = strings.Replace(s, oldNew[i], oldNew[i+1], 1)
	}
	write(t, file, s)
}

func write(t *testing.T, file, s string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
}

func try(t *testing.T, dir string, change func(*Config)) Report {
	t.Helper()
	p, err := arena.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.MkdirTemp("", "trial") // sockets live in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	cfg := Config{Package: p, Driver: sim.New(sim.Config{Programs: hello.Programs()}), Dir: filepath.Join(t.TempDir(), "heats"), Runtime: run}
	if change != nil {
		change(&cfg)
	}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r Report) player(t *testing.T, name string) Player {
	t.Helper()
	i := slices.IndexFunc(r.Players, func(p Player) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no player %s in %+v", name, r.Players)
	}
	return r.Players[i]
}

// TestTemplate: what init makes passes test, all players together in one heat, in
// which what fails has failed at least five times since they ended.
func TestTemplate(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	r := try(t, pack(t), nil)
	if !r.Held || len(r.Heats) != 1 || len(r.Heats[0].Players) != 4 || r.TimeoutFactor != "1" {
		t.Errorf("%+v", r)
	}
	for name, times := range map[string]uint64{"wrong-port": 5, "by-hand": 5} {
		if p := r.player(t, name); p.Refused == nil || p.Refused.Times < times {
			t.Errorf("%s: %+v", name, p.Refused)
		}
	}
	if p := r.player(t, "not-enabled"); !strings.Contains(p.Refused.Detail, "after the reboot") {
		t.Errorf("%+v", p.Refused)
	}
}

// TestWrongVerdicts: every way in which a verdict is not as the package says.
func TestWrongVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats: skipped under -short")
	}
	script := func(name, result string) string {
		return "script = \"players/" + name + ".sh\"\nresult = \"" + result + "\""
	}
	dir := pack(t, script("right", "durable"), script("right", "host-reboot"), script("wrong-port", "service-up"), script("wrong-port", "service-restart"),
		script("by-hand", "service-restart"), script("by-hand", "service-up"), script("not-enabled", "host-reboot"), script("not-enabled", "durable"))
	write(t, filepath.Join(dir, "players/broken.sh"), "# must\nfalse\n")
	data, err := os.ReadFile(filepath.Join(dir, "arena.toml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "arena.toml"), string(data)+"\n[[players]]\nname = \"broken\"\nscript = \"players/broken.sh\"\nresult = \"service-up\"\n")
	r := try(t, dir, func(c *Config) { c.Seats = 3 })
	if r.Held || len(r.Heats) != 2 {
		t.Fatalf("held %v in %d heats", r.Held, len(r.Heats))
	}
	for name, why := range map[string]string{
		"right": "and became durable", "wrong-port": "lost at service-up before", "by-hand": "and passed it",
		"not-enabled": "must be durable, and is not: service-up", "broken": "its script did not run to its end",
	} {
		if p := r.player(t, name); p.Held || !strings.Contains(p.Why, why) {
			t.Errorf("%s: %q, want %q", name, p.Why, why)
		}
	}
}

// TestCheats: a cheat passes the reference check, is refused by ours, and in the
// words that the package expects; what does not is told.
func TestCheats(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats: skipped under -short")
	}
	dir := pack(t)
	write(t, filepath.Join(dir, "reference/service-restart.star"), `
def verify(seat):
    seat.guest.systemctl("restart", "arena-app.service")
    r = seat.http("GET", "/health")
    require(r.status == 200, "not there")
    return {}
`)
	data, err := os.ReadFile(filepath.Join(dir, "arena.toml"))
	if err != nil {
		t.Fatal(err)
	}
	cheat := func(name, script, refusal string) string {
		return "\n[[cheats]]\nname = \"" + name + "\"\nscript = \"players/" + script + ".sh\"\nclass = \"durability-faked\"\nmilestone = \"service-restart\"\nrefusal = \"" + refusal + "\"\n"
	}
	write(t, filepath.Join(dir, "arena.toml"), string(data)+cheat("beside-the-unit", "by-hand", "something else answers on port 8080")+
		cheat("other-words", "by-hand", "no such words")+cheat("no-cheat", "wrong-port", "something"))
	r := try(t, dir, func(c *Config) { c.Cheats = true })
	if len(r.Heats) != 2 || !r.Heats[0].Reference || r.Held {
		t.Errorf("%+v", r)
	}
	if p := r.player(t, "beside-the-unit"); !p.Held || p.Beat == nil || !*p.Beat || p.Class != "durability-faked" {
		t.Errorf("%+v", p)
	}
	if p := r.player(t, "other-words"); p.Held || !strings.Contains(p.Why, `does not say "no such words"`) {
		t.Errorf("%+v", p)
	}
	if p := r.player(t, "no-cheat"); p.Held || *p.Beat || !strings.Contains(p.Why, "no cheat") {
		t.Errorf("%+v", p)
	}
}

func TestGroups(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 4: {4}, 8: {8}, 9: {4, 5}, 17: {5, 6, 6}} {
		var got []int
		for _, g := range groups(make([]seated, n), 0) {
			got = append(got, len(g))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d players: %v, want %v", n, got, want)
		}
	}
}
