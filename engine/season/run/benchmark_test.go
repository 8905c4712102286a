package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/season"
	"refbox/engine/season/series"
)

// second is the bundled arena under another id, in a folder.
func second(t *testing.T) string {
	t.Helper()
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "second")
	if err := os.CopyFS(dir, pkg.FS); err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(pkg.FS, "arena.toml")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(data), `id = "primary-failover"`, `id = "second"`, 1)
	if err := os.WriteFile(filepath.Join(dir, "arena.toml"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUnlikeArenasMakeNoBenchmark(t *testing.T) {
	for name, suite := range map[string][]series.SuiteArena{
		"other players":    {{Manifest: "primary-failover", Rounds: 1}, {Manifest: "hello-service", Rounds: 1}},
		"twice in a suite": {{Manifest: "primary-failover", Rounds: 1}, {Manifest: "primary-failover", Rounds: 1}},
	} {
		_, err := Benchmark(t.Context(), BenchmarkConfig{Dir: filepath.Join(t.TempDir(), "out"), Suite: &series.Suite{ID: "s", Arenas: suite}, Engine: simulated("")})
		if !errors.Is(err, ErrUnlike) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABenchmarkIsRunAndGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats on simulated machines: skipped under -short")
	}
	t.Parallel()
	other := second(t)
	suite := &series.Suite{ID: "core", Arenas: []series.SuiteArena{{Manifest: "primary-failover", Rounds: 1}, {Manifest: "second", Rounds: 1}}}
	dir := filepath.Join(t.TempDir(), "out")
	stop := errors.New("stopped")
	run := func(report func(string, int, string)) (b *series.Benchmark, err error) {
		defer func() {
			if r := recover(); r != nil && r != stop { //nolint:errorlint // it is the one that was thrown
				panic(r)
			} else if r != nil {
				err = stop
			}
		}()
		return Benchmark(t.Context(), BenchmarkConfig{Dir: dir, Suite: suite, Base: filepath.Dir(other), Engine: simulated(t.TempDir()), Report: report})
	}
	// The program goes away before the second arena.
	_, err := run(func(id string, _ int, _ string) {
		if id == "second" {
			panic(stop)
		}
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	read := func() *series.Benchmark {
		b, err := kept(filepath.Join(dir, benchmarkFile), decoded[series.Benchmark])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if b := read(); b.ArenasCompleted != 1 || len(b.Plan) != 2 {
		t.Fatalf("%+v", b)
	}

	// Another plan, or another arena under the same name, is refused, and what was
	// written stays.
	suite.Arenas[1].Rounds = 2
	if _, err := run(nil); !errors.Is(err, series.ErrOther) {
		t.Errorf("another plan: %v", err)
	}
	suite.Arenas[1].Rounds = 1
	contract := filepath.Join(other, "CONTRACT.md")
	was, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(contract, append(was, "\nmore\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(nil); !errors.Is(err, series.ErrOther) {
		t.Errorf("another contract: %v", err)
	}
	if err := os.WriteFile(contract, was, 0o600); err != nil {
		t.Fatal(err)
	}
	if b := read(); b.ArenasCompleted != 1 {
		t.Fatalf("%+v", b)
	}

	starts := 0
	b, err := run(func(_ string, _ int, step string) {
		if step == "starts" {
			starts++
		}
	})
	if err != nil || b.ArenasCompleted != 2 || starts != 1 {
		t.Fatalf("%+v %v, %d heats were begun", b, err, starts)
	}
	var arenas []series.ArenaRuns
	for i, a := range b.Arenas {
		r, err := series.ReadRun(t.Context(), filepath.Join(dir, a.Output, "round-001"))
		if err != nil {
			t.Fatal(err)
		}
		arenas = append(arenas, series.ArenaRuns{Planned: b.Plan[i], Category: a.Category, Runs: []series.Run{r}})
	}
	for _, c := range read().Check(arenas) {
		if c.Verdict == season.Broken {
			t.Errorf("%+v", c)
		}
	}
	if b.Standings[0].Wins != 2 || b.Standings[0].MilestonesAvailable == 0 {
		t.Errorf("%+v", b.Standings)
	}
}
