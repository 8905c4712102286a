package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"refbox/engine/season/series"
	"refbox/engine/text"
)

func newBenchmark(a *app) *cobra.Command {
	var asJSON bool
	var recordings string
	check := &cobra.Command{
		Use:   "check DIR|benchmark.json",
		Short: "Recompute a benchmark from itself and from its heats' recordings",
		Args:  exactArgs(1, "one benchmark"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b series.Benchmark
			dir, err := document(args[0], "benchmark.json", &b)
			if err != nil {
				return err
			}
			var arenas []series.ArenaRuns
			var all []series.Run
			complete := len(b.Arenas) > 0
			for i, x := range b.Arenas {
				if i >= len(b.Plan) {
					break
				}
				ar := series.ArenaRuns{Planned: b.Plan[i], Category: x.Category, Aborted: x.Aborted}
				for n := 1; n <= min(x.RoundsCompleted, 10_000); n++ {
					r, err := found(cmd, places(filepath.Join(dir, filepath.Base(x.Output)), recordings, fmt.Sprintf("%s-%s/round-%03d", b.SuiteID, x.ArenaID, n)))
					if err != nil {
						complete = false
						continue
					}
					ar.Runs = append(ar.Runs, r)
				}
				all = append(all, ar.Runs...)
				arenas = append(arenas, ar)
			}
			if !complete {
				arenas = nil // a part cannot make the sums of the whole
			}
			return checked(a, asJSON, text.Line(b.SuiteID), b.Check(arenas), all)
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	check.Flags().StringVar(&recordings, "recordings", "", "a folder with recordings called SUITE-ARENA-round-NNN")
	c := &cobra.Command{
		Use:   "benchmark",
		Short: "Benchmarks: a suite of series over several arenas",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("benchmark takes a command: check\ntry: refbox benchmark --help")
		},
	}
	c.AddCommand(check)
	return c
}

func found(cmd *cobra.Command, places []string) (r series.Run, err error) {
	for _, p := range places {
		if r, err = series.ReadRun(cmd.Context(), p); err == nil {
			return r, nil
		}
	}
	return r, err
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
