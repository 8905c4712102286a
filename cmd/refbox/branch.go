package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/branch"
	"refbox/engine/fleet"
	"refbox/engine/heat"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
)

// offshoot is a heat that starts from a saved state of another.
type offshoot struct {
	point branch.Point
	pkg   *arena.Package // with the one seat
	fleet *fleet.Fleet   // of whoever takes it
}

func newBranch(a *app) *cobra.Command {
	o := runOptions{}
	var (
		at, player   string
		list, asJSON bool
	)
	c := &cobra.Command{
		Use:   "branch DIR [SEAT]",
		Short: "Race on from the middle of a recorded heat",
		Long: `Starts a seat's machines anew, from the state in which a heat that refbox run or play
recorded here left them when a milestone had passed: the last one, or the last at or
before --at. Its disks are as they were; the machines boot from them. What had passed
is inherited and earns nothing; the rest is judged as in the parent heat, with its
secret values. The heat is recorded as a child of the other and is no evidence for
seasons, series, registers or ledgers.

--player says who takes the seat: human (needs the screen), a script of the arena's by
its name, a script file with a slash in its path, or a fleet file (*.toml), of which the
player of that territory sits down, else the first.

States lie in the cache folder, at most ` + fmt.Sprint(branch.MaxStates) + ` of them and ` + fmt.Sprint(branch.MaxBytes>>30) + ` GiB together; the oldest are
thrown away. --list says which there are.`,
		Example: "  refbox branch primary-failover-20260102-150405\n  refbox branch ./heat failover-two --at 45s --player ./mine.sh --headless\n  refbox branch ./heat --list",
		Args:    recordingAndSeat,
		RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := loadRecording(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			if list {
				return listStates(a, rec, asJSON)
			}
			if asJSON {
				return usageError("--json prints the list of states: it needs --list")
			}
			ms, err := playback.Parse(at, playback.Head{MS: rec.Head()})
			if err != nil {
				return usageError("--at: %w", err)
			}
			n := rec.IndexAt(ms)
			if at == "100%" {
				n = rec.Len()
			}
			seat := append(args[1:], "")[0]
			if w := rec.World(rec.Len()); seat == "" && w.Winner != nil {
				seat = *w.Winner
			}
			p, err := pointOf(rec, seat, n)
			if err != nil {
				return brokenError(err)
			}
			if player == "" && !o.headless && canShow(a) {
				player = fleet.Human
			}
			return branchHeat(cmd.Context(), a, p, player, o)
		},
	}
	f := c.Flags()
	f.StringVar(&at, "at", "100%", "the place on the heat's clock: 50%, 1m30s, 12:30")
	f.StringVar(&player, "player", "", "who takes the seat (default: human, on the screen)")
	f.BoolVar(&list, "list", false, "list the saved states of the heat, and which are still here")
	f.BoolVar(&asJSON, "json", false, "with --list: print JSON")
	f.StringVar(&o.output, "output", "", "the folder to record into (default: a new one under the data folder)")
	f.BoolVar(&o.headless, "headless", false, "print a line per event instead of the screen")
	machineFlags(c, &o)
	return c
}

// pointOf is where a heat may be branched from, if its arena is still as it was.
func pointOf(rec *recording.Recording, seat string, n int) (branch.Point, error) {
	p, err := statesHere().At(rec, seat, n)
	if err != nil {
		return p, err
	}
	pkg, err := packageOf(p)
	if err != nil {
		return p, err
	}
	parts, err := heat.Parts(pkg)
	if err != nil {
		return p, err
	}
	return p, p.Fits(pkg.SHA256, parts)
}

func packageOf(p branch.Point) (*arena.Package, error) {
	if p.State.Package == "bundled" {
		return arena.Load(p.State.Arena)
	}
	return arena.Load(p.State.Package)
}

// branchHeat runs a heat from a state, on the machinery that it was saved on.
func branchHeat(ctx context.Context, a *app, p branch.Point, player string, o runOptions) error {
	f, err := sitter(player, p.Origin.Territory)
	if err != nil {
		return err
	}
	pkg, err := packageOf(p)
	if err == nil {
		pkg, err = pkg.Only(p.Origin.Territory)
	}
	if err != nil {
		return err
	}
	o.machines = p.State.Driver
	o.branch = &offshoot{point: p, pkg: pkg, fleet: f}
	fmt.Fprintf(a.err, "branching from %s at %s (%s into it); inherited: %s\n", p.Origin.Heat, p.Origin.Milestone, playback.Format(p.Origin.AtMS), strings.Join(p.Passed, ", "))
	return runHeat(ctx, a, pkg.Manifest.Arena.ID, o)
}

// sitter is the fleet of who takes the only seat.
func sitter(player, territory string) (*fleet.Fleet, error) {
	switch {
	case player == "":
		return nil, usageError("--player says who takes the seat: a script of the arena's, a script file, or a fleet file")
	case player == fleet.Human:
		return fleet.OfPerson(author(), territory), nil
	case strings.HasSuffix(player, ".toml"):
		f, err := loadFleet(player)
		if err != nil {
			return nil, err
		}
		who := f.Players[0]
		for _, p := range f.Players {
			if p.Territory == territory {
				who = p
			}
		}
		return f.Part(map[string]string{territory: who.ID})
	case strings.Contains(player, "/"):
		abs, err := filepath.Abs(player)
		if err != nil {
			return nil, err
		}
		player = abs
	}
	return fleet.OfScript(strings.TrimSuffix(path.Base(player), path.Ext(player)), player, territory), nil
}

// stateLine is a saved state in a list.
type stateLine struct {
	Territory string `json:"territory"`
	Milestone string `json:"milestone"`
	AtMS      uint64 `json:"at_ms"`
	Event     uint64 `json:"event"`
	State     string `json:"state"`
	Here      bool   `json:"here"`
}

func listStates(a *app, rec *recording.Recording, asJSON bool) error {
	lines := []stateLine{}
	for _, s := range rec.World(rec.Len()).Seats() {
		for _, x := range s.States.All() {
			_, _, err := statesHere().Find(x.State)
			lines = append(lines, stateLine{s.ID, x.Milestone, x.MS, x.Sequence, x.State, err == nil})
		}
	}
	if asJSON {
		return writeJSON(a.out, lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintln(a.out, "no state was saved in "+rec.Name())
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		here := "here"
		if !l.Here {
			here = "gone"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", text.Line(l.Territory), playback.Format(l.AtMS), text.Line(l.Milestone), here)
	}
	return w.Flush()
}

// branched runs the heat that a replay's screen asked for.
func branched(ctx context.Context, a *app, c *tui.Branch) error {
	return branchHeat(ctx, a, c.Point, c.Player, runOptions{})
}
