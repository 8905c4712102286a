package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/bounded"
	"refbox/engine/season"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/season/series"
	"refbox/engine/text"
	seasons "refbox/tui/season"
)

func newBenchmark(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "benchmark",
		Short:   "Benchmarks: a suite of series over several arenas",
		Example: "  refbox benchmark run suite.toml --output DIR\n  refbox benchmark show DIR",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("benchmark takes a command: run, show or check\ntry: refbox benchmark --help")
		},
	}
	c.AddCommand(benchmarkRun(a), benchmarkShow(a), benchmarkCheck(a))
	return c
}

func benchmarkRun(a *app) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run SUITE.toml",
		Short: "Run a suite, or go on with it",
		Long: `Runs a series in each arena of a suite, in order, and goes on where an earlier run
was stopped or killed: the whole plan, with the arenas' compatibility keys, must be
the one that it was begun with. The first arena that is aborted stops the suite.

The same players play every arena: the arenas' own where they agree in model, adapter
and effort, or those of --players.

  schema_version = 1
  [suite]
  id = "core"
  rounds = 3
  [[arenas]]
  manifest = "primary-failover"     # a bundled one, or a path`,
		Example: "  refbox benchmark run suite.toml --output DIR --players fleet.toml",
		Args:    exactArgs(1, "one suite"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output == "" {
				return usageError("benchmark run needs --output, the benchmark's folder")
			}
			data, err := bounded.File(args[0], 1<<20)
			if errors.Is(err, fs.ErrNotExist) {
				return usageError("%w", err)
			}
			if err != nil {
				return brokenError(err)
			}
			suite, err := series.ReadSuite(data)
			if err != nil {
				return brokenError(fmt.Errorf("%s: %w", args[0], err))
			}
			engine, err := equippedWith(cmd.Context(), a, o)
			if err != nil {
				return err
			}
			b, err := seasonrun.Benchmark(cmd.Context(), seasonrun.BenchmarkConfig{Dir: o.output, Suite: suite, Base: filepath.Dir(args[0]), Engine: engine,
				Report: func(arena string, round int, step string) {
					fmt.Fprintf(a.out, "%s, round %d %s\n", text.Line(arena), round, step)
				}})
			if errors.Is(err, seasonrun.ErrRoundAborted) || errors.Is(err, seasonrun.ErrUnlike) || errors.Is(err, series.ErrOther) {
				return brokenError(err)
			}
			if err != nil {
				return err
			}
			return printBenchmark(a, b)
		},
	}
	c.Flags().StringVar(&o.output, "output", "", "the benchmark's folder")
	c.Flags().StringVar(&o.fleet, "players", "", "a fleet file that says who plays (default: the arenas' own players)")
	machineFlags(c, &o)
	return c
}

func printBenchmark(a *app, b *series.Benchmark) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d of %s\n", text.Line(b.SuiteID), b.ArenasCompleted, text.Count(b.ArenasRequested, "arena"))
	for _, m := range b.Standings {
		median, cost := "none durable", "cost unknown"
		if m.MedianDurableMS != nil {
			median = fmt.Sprintf("median %d.%03d s", *m.MedianDurableMS/1000, *m.MedianDurableMS%1000)
		}
		if m.CostMicroUSD != nil {
			yes := true
			cost = season.Money{MicroUSD: *m.CostMicroUSD, Complete: &yes}.String()
		}
		fmt.Fprintf(&out, "  %s  %d of %d won, %d durable, %s, %d of %d milestones, %s\n", text.Pad(text.Line(m.Model+" "+m.Adapter), 32), m.Wins, m.Appearances, m.DurableDeployments, median,
			m.MilestonePasses, m.MilestonesAvailable, cost)
	}
	_, err := a.out.Write([]byte(out.String()))
	return err
}

func benchmarkShow(a *app) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show DIR|benchmark.json",
		Short: "Show a benchmark: models, arenas, heats, our figures, checks",
		Long: `Opens the benchmark's screen; enter opens a heat's recording. Where there is no
terminal, and with --plain, it is told in lines.`,
		Example: "  refbox benchmark show DIR",
		Args:    exactArgs(1, "one benchmark"),
		RunE: func(cmd *cobra.Command, args []string) error {
			load := func(ctx context.Context) (seasons.Together, map[string]string, error) {
				return openBenchmark(ctx, args[0], f.recordings)
			}
			return f.show(cmd, a, args[0], load, func(t seasons.Together) error {
				if f.asJSON {
					return writeJSON(a.out, t.Benchmark)
				}
				return printBenchmark(a, t.Benchmark)
			})
		},
	}
	f.add(c, "a folder with recordings called SUITE-ARENA-round-NNN")
	return c
}

func benchmarkCheck(a *app) *cobra.Command {
	var asJSON bool
	var recordings string
	c := &cobra.Command{
		Use:     "check DIR|benchmark.json",
		Short:   "Recompute a benchmark from itself and from its heats' recordings",
		Example: "  refbox benchmark check DIR",
		Args:    exactArgs(1, "one benchmark"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, _, err := openBenchmark(cmd.Context(), args[0], recordings)
			if err != nil {
				return err
			}
			return checked(a, asJSON, text.Line(t.Benchmark.SuiteID), t)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&recordings, "recordings", "", "a folder with recordings called SUITE-ARENA-round-NNN")
	return c
}

// openBenchmark reads a benchmark with what there is of its heats' recordings;
// where says where each of them is.
func openBenchmark(ctx context.Context, path, recordings string) (t seasons.Together, where map[string]string, err error) {
	var b series.Benchmark
	dir, err := document(path, "benchmark.json", &b)
	if err != nil {
		return t, nil, err
	}
	var arenas []series.ArenaRuns
	var all []series.Run
	where = map[string]string{}
	complete := len(b.Arenas) > 0
	for i, p := range b.Plan {
		ar := series.ArenaRuns{Planned: p}
		rounds := 0
		if i < len(b.Arenas) {
			x := b.Arenas[i]
			ar.Category, ar.Aborted, rounds = x.Category, x.Aborted, min(x.RoundsCompleted, 10_000)
		}
		for n := 1; n <= rounds; n++ {
			h := seasons.Heat{Name: fmt.Sprintf("%s/round-%03d", filepath.Base(p.Output), n)}
			for _, d := range places(filepath.Join(dir, filepath.Base(p.Output)), recordings, fmt.Sprintf("%s-%s/round-%03d", b.SuiteID, p.ArenaID, n)) {
				if r, err := series.ReadRun(ctx, d); err == nil {
					h.Run, where[h.Name] = &r, d
					ar.Runs = append(ar.Runs, r)
					break
				}
			}
			complete = complete && h.Run != nil
			t.Heats = append(t.Heats, h)
		}
		all = append(all, ar.Runs...)
		arenas = append(arenas, ar)
	}
	if !complete {
		arenas = nil // a part cannot make the sums of the whole
	}
	t.Benchmark, t.Checks, t.Figures = &b, b.Check(arenas), computed(all)
	t.Checks = append(t.Checks, tellings(ctx, t.Heats, where)...)
	return t, where, nil
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
