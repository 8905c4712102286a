package provenance

import (
	"maps"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/heat"
	"refbox/engine/recording"
	"refbox/recordings"
)

// The embedded heats, which were recorded under several forms, are told apart, and
// today's key rests on all that it should.
func TestOurForms(t *testing.T) {
	for _, name := range recordings.Names() {
		rec, err := recording.OpenFS(recordings.Heats(), name)
		if err != nil {
			t.Fatal(err)
		}
		m := rec.Match()
		rec.Close()
		if m == nil {
			continue // no heat: a folder of several
		}
		want := First
		if m.Hashes["engine"] != "" {
			want = Ours
		}
		if f := FormOf(m); f != want {
			t.Errorf("%s: %s, want %s", name, f, want)
		}
	}
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := heat.Parts(pkg)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"manifest", "guest", "verifiers", "CONTRACT.md", "instructions", "players", "image", "engine"} {
		if parts[name] == "" {
			t.Errorf("no %s among %v", name, maps.Keys(parts))
		}
	}
	now, err := heat.Key(pkg)
	if err != nil {
		t.Fatal(err)
	}
	before, err := heat.KeyBefore(pkg)
	if err != nil || before == now {
		t.Errorf("%v: %s and %s", err, before, now)
	}
}
