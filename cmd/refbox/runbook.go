package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/arena/trial"
	"refbox/engine/runbook"
)

func newRunbook(a *app) *cobra.Command {
	var (
		o       runOptions
		again   int
		arenaAt string
		asJSON  bool
	)
	c := &cobra.Command{
		Use:   "runbook DIR [SEAT]",
		Short: "Distil a won heat into the fewest commands that win it again",
		Long: `Takes what a durable seat's player did (the winner's, unless a seat is named), runs
it again without the player on machines with the fault fresh, and leaves statements
out until what is left wins and nothing more can be spared. Each choice is judged by
the referee in a heat that is recorded. Then the whole is run again a few times, and
the runbook says how often that won.

What comes out is runbook.md, in which each step names the action that it comes from
and the heat that was lost without it; runbook.sh, a script that takes a seat; and
runbook.json, beside the heats.`,
		Example: "  refbox runbook ./heat\n  refbox runbook ./heat failover-one --again 10 --output ./runbook",
		Args:    recordingAndSeat,
		RunE: func(cmd *cobra.Command, args []string) error {
			if again < 0 || again > 1000 {
				return usageError("--again is %d; it is between 0 and 1000", again)
			}
			return distil(cmd.Context(), a, args[0], append(args[1:], "")[0], o, again, arenaAt, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&o.output, "output", "", "the folder for the runbook and its heats (default: a new one under the data folder)")
	f.StringVar(&arenaAt, "arena", "", "the arena's package, when it is not a bundled one")
	f.IntVar(&again, "again", 5, "how often the whole runbook is run again")
	f.BoolVar(&o.cold, "cold", false, "boot the machines instead of resuming their prepared state")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	machineFlags(c, &o)
	return c
}

func distil(ctx context.Context, a *app, path, seat string, o runOptions, again int, arenaAt string, asJSON bool) error {
	rec, err := loadRecording(ctx, path)
	if err != nil {
		return err
	}
	defer rec.Close()
	src, err := runbook.Distil(rec, seat)
	if err != nil {
		return err
	}
	if arenaAt == "" {
		arenaAt = src.Arena
	}
	pkg, err := arena.Load(arenaAt)
	if err != nil {
		return fmt.Errorf("%w; --arena names the package that %s was raced in", err, src.Recording)
	}
	if pkg.Manifest.Arena.ID != src.Arena {
		return usageError("%s was raced in %s, not in %s", src.Recording, src.Arena, pkg.Manifest.Arena.ID)
	}
	if m := rec.Match(); m != nil && m.ManifestSHA256 != pkg.SHA256 {
		fmt.Fprintf(a.err, "the arena is not as it was in %s: its manifest has changed; the runbook is for the arena as it is here\n", src.Recording)
	}
	cfg, err := trialOf(ctx, a, pkg, o, "runbook")
	if err != nil {
		return err
	}
	dir, width := cfg.Dir, cfg.Seats
	if cfg.Driver.Kind() != "sim" {
		width = min(width, len(pkg.Manifest.Territories)) // what its timeouts are made for
	}
	progress := newProgress(a)
	heats := 0
	run := func(ctx context.Context, choices [][]runbook.Step, paced bool) ([]runbook.Try, error) {
		heats++
		cast, players := pkg, []arena.Trial(nil)
		for i, steps := range choices {
			name := fmt.Sprintf("choice-%d", i+1)
			script := src.Script(name, steps, paced)
			file := "players/" + name + ".sh"
			cast = cast.Adding(file, script)
			players = append(players, arena.Trial{Name: name, Script: file, Result: arena.Durable})
		}
		one := cfg
		one.Package, one.Dir, one.Progress = cast, filepath.Join(dir, "heats", fmt.Sprint(heats)), progress.ofHeat()
		got, _, err := trial.Race(ctx, one, players)
		progress.done()
		var out []runbook.Try
		for _, p := range got {
			out = append(out, tried(p, dir))
		}
		return out, err
	}
	rb, err := runbook.Minimise(ctx, src, width, again, run, func(stage string) {
		progress.done()
		fmt.Fprintf(a.err, "try %s\n", stage)
	})
	progress.done()
	rb.Machines = cfg.Driver.Kind()
	if len(rb.Steps) == 0 {
		return err
	}
	if err := errors.Join(err, writeRunbook(dir, rb)); err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.out, rb)
	}
	fmt.Fprint(a.out, rb.Markdown())
	fmt.Fprintf(a.err, "\nrunbook   %s\nscript    %s\n", filepath.Join(dir, "runbook.md"), filepath.Join(dir, "runbook.sh"))
	return nil
}

// tried is what a trial says of a choice; its heat by its place in the folder.
func tried(p trial.Player, dir string) runbook.Try {
	t := runbook.Try{Won: p.Got == arena.Durable, Why: p.Why, Seat: p.Name, Dir: p.Dir}
	if rel, err := filepath.Rel(dir, p.Dir); err == nil {
		t.Dir = rel
	}
	switch {
	case p.Got == "unavailable":
		t.Voided = p.Why
	case !t.Won && p.Lost == "":
		t.Lost, _, _ = strings.Cut(p.Got, ", ")
	case !t.Won:
		t.Lost, t.Why = p.Lost, p.Refused.Detail
		if p.Refused.Source != "player" {
			t.Voided = "the " + p.Refused.Source + " failed " + p.Lost + ": " + p.Refused.Detail
		}
	}
	return t
}

func writeRunbook(dir string, rb runbook.Runbook) error {
	var steps []runbook.Step
	for _, s := range rb.Steps {
		steps = append(steps, s.Step)
	}
	script := rb.Source.Script("runbook", steps, rb.Paced)
	var data strings.Builder
	if err := writeJSON(&data, rb); err != nil {
		return err
	}
	for name, text := range map[string]string{"runbook.md": rb.Markdown(), "runbook.sh": string(script), "runbook.json": data.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the runbook: %w", err)
		}
	}
	return nil
}
