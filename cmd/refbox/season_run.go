package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
refused, with the difference.

Entrants whose adapter is script are played by the arenas' scripts of their model's
name. How others are played says --players, a fleet file (see refbox fleet) whose
players have the entrants' ids.`,
		Example: "  refbox season run DIR\n  refbox season run DIR --players fleet.toml\n  refbox season run DIR --machines sim --parallel 4",
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
	f.StringVar(&o.fleet, "players", "", "a fleet file that says how entrants are played")
	machineFlags(c, &o)
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
	var players map[string]string
	if o.fleet != "" {
		fl, err := loadFleet(o.fleet)
		if err != nil {
			return brokenError(err)
		}
		if err := engine.Enlist(docs.Draw, fl); err != nil {
			return brokenError(err)
		}
		if players, err = fl.Hashes(); err != nil {
			return environmentError(err)
		}
	}
	if err := engine.Check(docs.Draw); err != nil {
		return environmentError(err)
	}
	if err := room(docs.Draw, o.machines, parallel); err != nil {
		return err
	}
	if err := equip(ctx, a, engine, o); err != nil {
		return err
	}
	_, err = seasonrun.Run(ctx, seasonrun.Config{Dir: dir, Heats: engine, Parallel: parallel, Players: players, Report: func(p seasonrun.Progress) { printProgress(a, p) }})
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

// equip gives an engine its folders and its machines.
func equip(ctx context.Context, a *app, engine *seasonrun.Engine, o runOptions) (err error) {
	if engine.Runtime, engine.Disks, err = prepareRuntime(); err != nil {
		return err
	}
	engine.Driver, err = machines(ctx, a, o, nil)
	return err
}

// room refuses more heats side by side than the host has memory for: they would
// be slowed down by each other, or killed.
func room(d *season.Draw, machines string, parallel int) error {
	if machines != "qemu" || parallel == 1 {
		return nil
	}
	heat, err := seasonrun.Memory(d)
	if err != nil {
		return err
	}
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil // nothing tells; a heat that does not fit says so itself
	}
	for line := range strings.Lines(string(data)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 && heat > 0 && heat*uint64(parallel) > kib/1024 {
			return environmentError(fmt.Errorf("%d heats side by side need %d MiB of memory and %d MiB are available: --parallel %d",
				parallel, heat*uint64(parallel), kib/1024, max(1, kib/1024/heat)))
		}
	}
	return nil
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
