package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/arena/trial"
	"refbox/engine/text"
	"refbox/vm"
)

func newArenaTest(a *app) *cobra.Command {
	var (
		o      runOptions
		only   []string
		cheats bool
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "test ARENA",
		Short: "Run an arena's right and wrong players and check each verdict",
		Long: `Seats the players that the arena's manifest names under [[players]] in one heat
(in several when this host has not the memory, or there are more than ` + strconv.Itoa(trial.MostSeats) + `), which
goes on past the first durable seat until every player has ended and every open
milestone has failed five times since. Every right player must be durable; every
wrong one must lose at the milestone that the manifest names, and get no further.

With --cheats it is the turn of what stands under [[cheats]]: each is first shown
to pass the package's reference check of its milestone (reference/<milestone>.star
or .sh), then must be refused there, in the words that the manifest expects.

Exits with 1 when a verdict is not as it must be.`,
		Example: "  refbox arena test hello-service\n  refbox arena test ./my-arena --machines sim --json\n  refbox arena test ./my-arena --cheats --only marker-only",
		Args:    exactArgs(1, "one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return testArena(cmd.Context(), a, args[0], o, only, cheats, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&o.output, "output", "", "the folder for the heats' recordings (default: a new one under the data folder)")
	f.BoolVar(&o.cold, "cold", false, "boot the machines instead of resuming their prepared state")
	f.StringSliceVar(&only, "only", nil, "try only the players, or cheats, of these names")
	f.BoolVar(&cheats, "cheats", false, "try the cheats instead of the players")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	machineFlags(c, &o)
	return c
}

func testArena(ctx context.Context, a *app, name string, o runOptions, only []string, cheats, asJSON bool) error {
	pkg, err := arena.Load(name)
	if err != nil {
		return err
	}
	cfg, err := trialOf(ctx, a, pkg, o, "test")
	if err != nil {
		return err
	}
	progress := newProgress(a)
	tell := newHeatTeller(ctx, a, progress)
	cfg.Only, cfg.Cheats, cfg.Progress = only, cheats, progress.ofHeat()
	cfg.Begun = func(h trial.Heat) {
		tell.end()
		with := ""
		if h.Reference {
			with = ", with the reference checks"
		}
		fmt.Fprintf(a.err, "heat %s: %s%s\n", filepath.Base(h.Dir), strings.Join(h.Players, ", "), with)
		tell.begin(h.Dir)
	}
	report, err := trial.Run(ctx, cfg)
	tell.end()
	if errors.Is(err, trial.ErrNobody) {
		return usageError("%w", err)
	}
	if asJSON {
		if jerr := writeJSON(a.out, report); jerr != nil {
			return jerr
		}
	} else {
		printTrial(a, report, err == nil)
	}
	if err != nil {
		return err
	}
	if !report.Held {
		return exitError{code: exitBroken}
	}
	return nil
}

// heatTeller tells heats, one after the other, as refbox run does without a screen: their
// set-up, then a line per event. Reports are for standard output: it tells on the other.
type heatTeller struct {
	ctx      context.Context
	a        app
	progress *progress
	ended    chan struct{} // of the heat that is told; nil for none
	told     sync.WaitGroup
}

func newHeatTeller(ctx context.Context, a *app, p *progress) *heatTeller {
	t := &heatTeller{ctx: ctx, a: *a, progress: p}
	t.a.out = a.err
	return t
}

func (t *heatTeller) begin(dir string) {
	ended := make(chan struct{})
	t.ended = ended
	t.told.Go(func() {
		rec, err := awaitHeat(t.ctx, dir, ended)
		if err != nil || rec == nil {
			return // the trial's own error says it
		}
		defer rec.Close()
		t.progress.done()
		printEvents(t.ctx, &t.a, rec, ended)
	})
}

// end says that the heat that was begun last is over, and returns when all was told.
func (t *heatTeller) end() {
	if t.ended != nil {
		close(t.ended)
		t.ended = nil
	}
	t.told.Wait()
	t.progress.done()
}

// trialOf is a trial of the package on this host's machines, in a folder that is new
// or empty.
func trialOf(ctx context.Context, a *app, pkg *arena.Package, o runOptions, what string) (trial.Config, error) {
	dir, err := outputDir(o, pkg.Manifest.Arena.ID+"-"+what)
	if err != nil {
		return trial.Config{}, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return trial.Config{}, brokenError(fmt.Errorf("%s is not empty; choose another folder", dir))
	}
	runtime, disks, err := prepareRuntime()
	if err != nil {
		return trial.Config{}, err
	}
	drv, err := machines(ctx, a, o, pkg.Guest().Packages)
	if err != nil {
		return trial.Config{}, err
	}
	return trial.Config{Package: pkg, Driver: drv, Dir: dir, Runtime: runtime, Disks: disks, Version: version, Seats: seatsHere(pkg, drv), Cold: o.cold}, nil
}

// seatsHere is how many seats this host has the memory for at once.
func seatsHere(pkg *arena.Package, drv vm.Driver) int {
	if drv.Kind() == "sim" {
		return trial.MostSeats
	}
	spec, err := pkg.Spec(pkg.Manifest.Territories[0].ID)
	free, ok := freeMemoryMiB()
	if err != nil || !ok {
		return trial.MostSeats
	}
	need := 0
	for _, m := range spec.Machines {
		need += m.MemoryMiB + 128 // of the process around it
	}
	return min(max(1, free*9/10/need), trial.MostSeats)
}

func freeMemoryMiB() (int, bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			kib, err := strconv.Atoi(f[1])
			return kib >> 10, err == nil
		}
	}
	return 0, false
}

func printTrial(a *app, r trial.Report, whole bool) {
	for _, p := range r.Players {
		mark, want := "ok  ", p.Want
		switch p.Want {
		case arena.Durable, arena.Standing, arena.Eliminated:
		default:
			want = "loses at " + p.Want
		}
		if !p.Held {
			mark = "FAIL"
		}
		class := ""
		if p.Class != "" {
			class = " (" + p.Class + ")"
		}
		fmt.Fprintf(a.out, "%s  %s%s: %s\n", mark, text.Line(p.Name), class, want)
		if p.Why != "" {
			fmt.Fprintf(a.out, "      %s\n", text.Line(p.Why))
		} else if p.Refused != nil {
			fmt.Fprintf(a.out, "      %s, %s: %s\n", text.Line(p.Refused.Category), text.Count(p.Refused.Times, "time"), text.Line(p.Refused.Detail))
		}
	}
	for _, h := range r.Heats {
		fmt.Fprintf(a.out, "heat  %s  %.0fs  %s\n", h.Dir, h.Seconds, text.Line(h.Reason))
	}
	if whole {
		held := 0
		for _, p := range r.Players {
			if p.Held {
				held++
			}
		}
		fmt.Fprintf(a.out, "%d of %d verdicts are as they must be; timeouts ×%s\n", held, len(r.Players), r.TimeoutFactor)
	}
}
