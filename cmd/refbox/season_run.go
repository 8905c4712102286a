package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"refbox/engine/season"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/text"
)

func seasonRun(a *app) *cobra.Command {
	var o runOptions
	var parallel int
	c := &cobra.Command{
		Use:   "run DIR",
		Short: "Run a drawn week, or go on with it",
		Long: `Runs the heats of a week in order, and goes on where an earlier run was stopped
or killed. A heat that was interrupted is kept under a name that says so and run
again with the same seats. An arena, verifier or player that is not the drawn one is
refused, with the difference.`,
		Example: "  refbox season run DIR\n  refbox season run DIR --machines sim --parallel 4",
		Args:    exactArgs(1, "one week's folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if parallel < 1 {
				return usageError("--parallel is a number of heats, not %d", parallel)
			}
			return runWeek(cmd.Context(), a, args[0], o, parallel)
		},
	}
	f := c.Flags()
	f.IntVar(&parallel, "parallel", 1, "run this many heats of a round side by side; their results are only comparable when the host has room for all")
	f.BoolVar(&o.yes, "yes", false, "don't ask before installing what is missing")
	f.StringVar(&o.machines, "machines", "qemu", "qemu for real machines, sim for simulated ones")
	return c
}

func runWeek(ctx context.Context, a *app, dir string, o runOptions, parallel int) error {
	docs, err := season.ReadDir(dir)
	switch {
	case err != nil:
		return brokenError(err)
	case docs.Draw == nil:
		return brokenError(fmt.Errorf("%s has no draw.json; draw the week first: refbox season draw", dir))
	}
	engine := &seasonrun.Engine{Version: version}
	if err := engine.Check(docs.Draw); err != nil {
		return environmentError(err)
	}
	if engine.Runtime, engine.Disks, err = prepareRuntime(); err != nil {
		return err
	}
	if engine.Driver, err = machines(ctx, a, o); err != nil {
		return err
	}
	_, err = seasonrun.Run(ctx, seasonrun.Config{Dir: dir, Heats: engine, Parallel: parallel, Report: func(p seasonrun.Progress) { printProgress(a, p) }})
	switch {
	case errors.Is(err, seasonrun.ErrAborted):
		return brokenError(err)
	case err != nil:
		return err
	}
	docs, err = season.ReadDir(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return printView(a, docs.View(nil), nil)
}

func printProgress(a *app, p seasonrun.Progress) {
	where := fmt.Sprintf("round %d, heat %d", p.Round, p.Heat)
	if p.Attempt > 1 {
		where += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	switch p.Step {
	case "starts":
		fmt.Fprintf(a.out, "%s: starts in %s\n", where, filepath.Base(p.Dir))
	case "adopted":
		fmt.Fprintf(a.out, "%s: was finished when the run before was stopped, and counts\n", where)
	case "interrupted":
		fmt.Fprintf(a.out, "%s: was interrupted; what there is of it is kept, and it is run again\n", where)
	case "replay":
		fmt.Fprintf(a.out, "%s: replay, since %s\n", where, text.Line(p.Why))
	case "over":
		if p.Winner == "" {
			fmt.Fprintf(a.out, "%s: nobody won\n", where)
		} else {
			fmt.Fprintf(a.out, "%s: %s won\n", where, text.Line(p.Winner))
		}
	case "round over":
		fmt.Fprintf(a.out, "round %d is over\n", p.Round)
	case "complete":
		if p.Winner == "" {
			fmt.Fprintln(a.out, "the week is complete, without a champion")
		} else {
			fmt.Fprintf(a.out, "the week is complete: %s is its champion\n", text.Line(p.Winner))
		}
	}
}
