package arena_test

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/probe"
)

// recorded is what the reference's manifest of an arena says: per milestone its id,
// points and timeout, each resting on the one before (recordings reference, section
// 5.7).
func recorded(t *testing.T, id string, want ...string) *arena.Package {
	t.Helper()
	p, err := arena.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest
	var got []string
	before := []string{}
	for _, s := range m.Build.Milestones {
		got = append(got, fmt.Sprintf("%s %d,%d", s.ID, s.Points, s.TimeoutSeconds))
		if !slices.Equal(s.DependsOn, before) {
			t.Errorf("%s depends on %v, not on %v", s.ID, s.DependsOn, before)
		}
		before = []string{s.ID}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the ladder is %v, recorded is %v", got, want)
	}
	if last := before[0]; m.Build.CompletionMilestone != last || m.Build.Milestones[len(got)-1].Operation != arena.HostReboot {
		t.Errorf("it is complete with %s, and %s is no reboot", m.Build.CompletionMilestone, last)
	}
	for _, s := range m.Build.Milestones {
		for _, file := range []string{p.Verifier(s.ID), p.ReferenceCheck(s.ID)} {
			if _, err := probe.Load(p.FS, file); err != nil {
				t.Errorf("%s: %v", s.ID, err)
			}
		}
	}
	if v, err := probe.Load(p.FS, p.Verifier("host-reboot")); err == nil && (v.Boot() == nil || !v.Boot().Cut) {
		t.Error("the last milestone cuts no power")
	}
	return p
}

// tried checks who is there to try a stateful arena: a right player, three wrong ones
// at least, and twelve cheats at least, of every class that the arena has a name for.
func tried(t *testing.T, p *arena.Package, classes ...string) {
	t.Helper()
	m := p.Manifest
	wrong := 0
	for _, x := range m.Players {
		if x.Result != arena.Durable {
			wrong++
		}
		parses(t, p, x.Script, x.Name)
	}
	if wrong < 3 || wrong == len(m.Players) {
		t.Errorf("%d of %d players are wrong ones", wrong, len(m.Players))
	}
	have := map[string]bool{}
	for _, x := range m.Cheats {
		have[x.Class] = true
		parses(t, p, x.Script, x.Name)
		if p.ReferenceCheck(x.Milestone) == "" {
			t.Errorf("cheat %s: there is no reference check of %s", x.Name, x.Milestone)
		}
		if path.Dir(path.Clean(x.Script)) != "players/cheats" {
			t.Errorf("cheat %s is %s", x.Name, x.Script)
		}
	}
	if len(m.Cheats) < 12 {
		t.Errorf("there are %d cheats", len(m.Cheats))
	}
	for _, c := range classes {
		if !have[c] {
			t.Errorf("no cheat is of class %s", c)
		}
	}
	files, err := fs.Glob(p.FS, "players/cheats/*.sh")
	if err != nil || len(files) != len(m.Cheats) {
		t.Errorf("%d scripts of %d cheats, %v", len(files), len(m.Cheats), err)
	}
}

func parses(t *testing.T, p *arena.Package, file, name string) {
	t.Helper()
	data, err := fs.ReadFile(p.FS, path.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	s, err := agent.ParseScript(file, data)
	if err != nil {
		t.Fatal(err)
	}
	if s.Player != name || s.Skill == "" {
		t.Errorf("%s calls itself %q, skill %q", file, s.Player, s.Skill)
	}
}

// hidden checks that neither the brief nor the guest of an arena in fog says what its
// audit forbids.
func hidden(t *testing.T, p *arena.Package) {
	t.Helper()
	f := p.Manifest.FogOfWar
	if f == nil || f.GuestLeakAudit == nil {
		t.Fatal("there is no fog of war, or no audit of it")
	}
	err := fs.WalkDir(p.FS, "guest", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(p.FS, name)
		for _, word := range f.GuestLeakAudit.ForbiddenStrings {
			if strings.Contains(string(data), word) {
				t.Errorf("%s says %q", name, word)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// everyClass are the classes of cheats.
var everyClass = []string{"state-written", "probe-answered", "partial-service", "durability-faked", "tools-replaced", "time-falsified", "replayed", "referee-obstructed"}
