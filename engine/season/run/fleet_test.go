package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/fleet"
	"refbox/engine/recording"
	"refbox/engine/season"
)

// players is a fleet file whose players play a script of their own, by id.
func players(t *testing.T, ids ...string) *fleet.Fleet {
	t.Helper()
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	right, err := fs.ReadFile(pkg.FS, "players/right.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.sh"), right, 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("schema_version = 1\n")
	for _, id := range ids {
		fmt.Fprintf(&b, "[[players]]\nid = %q\nadapter = \"script\"\nscript = \"./mine.sh\"\n", id)
	}
	f, err := fleet.Parse(filepath.Join(dir, "fleet.toml"), []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAFleetPlaysAWeek(t *testing.T) {
	m := &season.Manifest{ID: "cup", Arenas: []string{"primary-failover"}, ArenaNames: []string{"primary-failover"}, Fleet: []season.Entrant{
		{ID: "a", Adapter: "claux", Model: "m", ReasoningEffort: "high"}, {ID: "b", Adapter: "script", Model: "careful"}, {ID: "c", Adapter: "script", Model: "hasty"}}}
	arenas, err := Arenas(m, false)
	if err != nil {
		t.Fatal(err)
	}
	d := &season.Draw{Arenas: arenas, Fleet: m.Fleet}
	engine := simulated(t.TempDir())
	if err := engine.Check(d); err == nil || !strings.Contains(err.Error(), "--players") {
		t.Errorf("nobody plays claux: %v", err)
	}
	for _, x := range []struct {
		name  string
		spoil func(*fleet.Player)
		want  string
	}{
		{"model", func(p *fleet.Player) { p.Model = "other" }, "the draw has the model m"},
		{"effort", func(p *fleet.Player) { p.ReasoningEffort = "low" }, "the draw has the effort high"},
		{"person", func(p *fleet.Player) { p.Adapter = fleet.Human }, "a person takes the screen"},
		{"nobody", func(p *fleet.Player) { p.ID = "z" }, "none of its players entered"},
	} {
		f := players(t, "a")
		x.spoil(&f.Players[0])
		if err := simulated("").Enlist(d, f); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if err := engine.Enlist(d, players(t, "a", "pool")); err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(d); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("runs a whole heat on simulated machines: skipped under -short")
	}
	o := Order{Arena: arenas[0], Round: 1, Heat: 1, Attempt: 1, Seats: map[string]season.Entrant{}, Seed: season.NewSecret(), Dir: filepath.Join(t.TempDir(), "heat-01")}
	for i, territory := range arenas[0].Territories {
		o.Seats[territory] = m.Fleet[i]
	}
	if err := engine.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	a, over, err := engine.Result(o.Dir)
	if err != nil || !over || a.Winner != arenas[0].Territories[0] || a.Key != arenas[0].CompatibilityKey {
		t.Errorf("%+v %v %v", a, over, err)
	}
	rec, err := recording.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, s := range rec.Match().Seats {
		if want := map[bool]string{true: "script:a", false: "script"}[s.Agent == "a"]; !strings.HasPrefix(s.Adapter, want) || s.Note != "" {
			t.Errorf("%+v", s)
		}
	}
}

// What plays must be the same when a run goes on.
func TestOtherPlayersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := drawWeek(dir, 3, "2026-W45"); err != nil {
		t.Fatal(err)
	}
	f := players(t, "e000")
	one, err := f.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Players[0].Script, []byte("# player other\n# skill 1\ntrue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := f.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	stopped := &table{keys: nil}
	run := func(players map[string]string) error {
		_, err := Run(t.Context(), Config{Dir: dir, Heats: stopped, Players: players})
		return err
	}
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.players(one); err != nil { // as a run that was stopped left it
		t.Fatal(err)
	}
	s.close()
	if err := run(other); err == nil || !strings.Contains(err.Error(), "e000") || stopped.ran > 0 {
		t.Errorf("%v", err)
	}
	if err := run(nil); err == nil || !strings.Contains(err.Error(), "--players") {
		t.Errorf("%v", err)
	}
	if err := run(one); err != nil {
		t.Error(err)
	}
}
