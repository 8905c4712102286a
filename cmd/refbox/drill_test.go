package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"refbox/assets"
	"refbox/engine/drill"
	"refbox/engine/register"
)

// ownArena writes a copy of primary-failover that is of the starter's app-db and of
// one of its copies, as its user makes it.
func ownArena(dir string) error {
	tree, err := fs.Sub(assets.Arenas(), "primary-failover")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, tree); err != nil {
		return err
	}
	// The embedded tree has no modes; cp -r of the sources has them.
	for _, pattern := range []string{"guest/opt/*/*", "players/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.Chmod(f, 0o755); err != nil {
				return err
			}
		}
	}
	file := filepath.Join(dir, "arena.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.Replace(string(data), "procedure = \"promotion\"\n", "procedure = \"restore\"\nstore = \"app-db\"\ncopy = \"app-db-dump\"\n", 1)
	return os.WriteFile(file, []byte(text), 0o644)
}

// Drills, as a user runs and keeps them: each script says what it holds. "package DIR"
// writes an arena of the user's own.
func TestDrillScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/drill",
		Setup: ofItsOwn,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "package": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != 1 {
				ts.Fatalf("usage: package DIR")
			}
			ts.Check(ownArena(ts.MkAbs(args[0])))
		}},
	})
}

// The whole way on real machines: a heat on the store's own copy is a drill, which
// closes what it is of, and the register's file keeps all that it had.
func TestRealDrill(t *testing.T) {
	b := realBox(t)
	file, own, heat := b.path("mine.toml"), b.path("arenas/app-db"), b.path("heat")
	if p := b.run(time.Minute, "register", "init", file); p.code != 0 {
		t.Fatal(p.errors)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := ownArena(own); err != nil {
		t.Fatal(err)
	}
	p := b.run(raceTime, "run", own, "--headless", "--drill", file, "--output", heat)
	if p.code != 0 {
		t.Fatalf("exits with %d\n%s%s", p.code, p.output, p.errors)
	}
	for _, want := range []string{"drill     drill of app-db: restore", "is within the objective (RTO), 1h", "closes restore-never-drilled"} {
		if !strings.Contains(p.output.String(), want) {
			t.Errorf("no %q at its end:\n%s", want, p.output)
		}
	}
	if strings.Contains(p.output.String(), "no drill") {
		t.Errorf("it is no drill:\n%s", p.output)
	}
	if p = b.run(time.Minute, "register", "drill", file, heat, "--yes"); p.code != 0 || !strings.Contains(p.output.String(), "its last restore that passed took") {
		t.Fatalf("exits with %d\n%s%s", p.code, p.output, p.errors)
	}
	t.Logf("%s", p.output)
	old := b.path("before.toml")
	if err := os.WriteFile(old, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if p = b.run(time.Minute, "register", "diff", old, file); !strings.Contains(p.output.String(), "closed    gap       restore-never-drilled  app-db") || !strings.Contains(p.output.String(), "count     drilled: 0 → 1") {
		t.Errorf("%s", p.output)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(before), "\n") {
		if !strings.Contains(string(after), line) {
			t.Errorf("the register lost %q", line)
		}
	}
}

// From the register's screen to a heat and back: d proposes, enter races, what came of
// it is shown where it was asked for, and enter, asked again, adds it to the file.
func TestRegisterScreenDrills(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.path("mine.toml")
	if p := b.run(time.Minute, "register", "init", file); p.code != 0 {
		t.Fatal(p.errors)
	}
	if err := ownArena(b.path("arenas/app-db")); err != nil {
		t.Fatal(err)
	}
	s := b.show(120, 34, "register", "show", file, "--machines", "sim")
	s.shows("matrix: today")
	s.press("\t\t\t/")
	s.shows("findings (words")
	s.press("never\r")
	s.shows("1 of 8")
	s.press("d")
	s.shows("✓ a drill of its restore")
	s.shows("enter races it")
	s.shows("whatever comes of it is a rehearsal")
	s.press("\r")
	s.shows("starts 3 simulated machines for 3 seats")
	s.press("\r")
	s.shows("● LIVE")
	s.shows("winner failover-one")
	s.shows("closes nothing, since its machines were not real ones")
	s.press("q")
	s.shows("the heat for app-db")
	s.shows("enter shows the change")
	before, _ := os.ReadFile(file)
	s.press("\r")
	s.shows("enter makes the change")
	if now, _ := os.ReadFile(file); string(now) != string(before) {
		t.Error("it was changed before anybody said so")
	}
	s.press("\r")
	s.shows("the change, made")
	now, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(now), "[[stores.rehearsals]]") {
		t.Errorf("%v\n%s", err, now)
	}
	s.shows("rehearsed")
	s.press("\x1b")
	s.shows("8 of 8") // the findings, which the pane stood over; the next key is none of escape's
	s.press("\x03")
	s.leaves(0, 10*time.Second)
}

// The time that is told at the end is the file's, before and after a drill is kept, and
// none is told of what a register keeps no time of.
func TestDrillStatement(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.toml")
	a := &app{out: io.Discard, err: io.Discard}
	root := newRoot(a)
	root.SetArgs([]string{"register", "init", file})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &binding{flags: &registerFlags{a: a}, file: file}
	k, err := b.offer(drill.Measure{Heat: "heat", ID: "heat@1", Arena: "lab", Day: "2026-07-01", Procedure: register.Restoring, From: "a", To: "b", Store: "app-db", Copy: "app-db-dump",
		Seats: []drill.Seat{{Territory: "one", Agent: "x", Outcome: drill.Passed, MS: 60_000}}})
	if err != nil || !k.Drill() || len(k.Additions) != 1 {
		t.Fatalf("%v %+v", err, k)
	}
	if s := k.statement(); !strings.Contains(s, "no restore of it has passed yet") {
		t.Errorf("before it is kept: %s", s)
	}
	if err := k.keep(); err != nil {
		t.Fatal(err)
	}
	if s := k.statement(); !strings.Contains(s, "took 1m, within") {
		t.Errorf("once it is kept: %s", s)
	}
	for _, p := range []register.Procedure{register.Draining, register.RollingBack} {
		k, err := b.offer(drill.Measure{Heat: "heat", ID: "heat@1", Arena: "lab", Procedure: p, Store: "app-db"})
		if err != nil {
			t.Fatal(err)
		}
		if s := k.statement(); s != "" {
			t.Errorf("%s: %s", p, s)
		}
	}
}
