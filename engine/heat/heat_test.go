package heat

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/vm"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

// overlay lays files of the test over a package's.
type overlay struct {
	fs.FS
	over fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if _, ok := o.over[name]; ok {
		return o.over.Open(name)
	}
	return o.FS.Open(name)
}

// pkg is the bundled primary-failover with the given players, one per seat, by
// name or, with a line break, as the script itself. A script's pauses are left
// out unless it is the test's own.
func pkg(t *testing.T, players ...string) *arena.Package {
	t.Helper()
	p, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	over := fstest.MapFS{}
	m := p.Manifest
	m.Rules.TickMS = 100
	m.Heat = &arena.Heat{DrainSeconds: 5}
	for i := range m.Agents {
		name := players[i]
		text := name
		file := "players/" + name + ".sh"
		if len(name) > 20 {
			file = "players/own.sh"
		} else {
			b, err := fs.ReadFile(p.FS, file)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if len(name) > 20 {
			file = "players/own-" + m.Agents[i].ID + ".sh"
		}
		over[file] = &fstest.MapFile{Data: []byte(text)}
		m.Agents[i].Script = &file
	}
	p.FS = overlay{p.FS, over}
	return p
}

func driver() *sim.Driver { return sim.New(sim.Config{Programs: failover.Programs()}) }

type finished struct {
	Result
	rec *recording.Recording
}

// race runs a heat on simulated machines and opens what it recorded.
func race(t *testing.T, d vm.Driver, p *arena.Package) finished {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "heat")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := Run(ctx, Config{Package: p, Driver: d, Dir: dir, Runtime: t.TempDir(), Version: "test"})
	if err != nil {
		t.Fatalf("run: %v\n%s", err, logOf(dir))
	}
	return finished{res, open(t, dir)}
}

func open(t *testing.T, dir string) *recording.Recording {
	t.Helper()
	rep, err := recording.Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Breaks() > 0 {
		t.Errorf("the recording does not verify: %+v", rep)
	}
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func logOf(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	return string(b)
}

// of are the recorded events of one kind.
func of[T event.Body](t *testing.T, r *recording.Recording, keep func(T) bool) (out []T) {
	t.Helper()
	err := r.Events(0, r.Len(), func(_ int, e event.Event) bool {
		if b, ok := e.Body.(T); ok && keep(b) {
			out = append(out, b)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRightPlayerWins(t *testing.T) {
	f := race(t, driver(), pkg(t, "right", "careful", "hasty"))
	if f.Outcome.Winner != "failover-one" || f.Outcome.Seats[0].Points != 100 {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	t.Log(logOf(f.Dir))
}
