package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"refbox/engine/fleet"
	"refbox/engine/heat"
)

func newFleet(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Players: who sits where, with which adapter, model and limits",
		Long: `A fleet file names the players of a heat; refbox run ARENA --fleet FILE seats
them. The README's section "Players" says what it holds.`,
		Example: "  refbox fleet check fleet.toml\n  refbox run primary-failover --fleet fleet.toml",
	}
	var asJSON bool
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Try each player without a heat, and say what that cost",
		Long: `Looks for each player's program and keys, and asks each model one short question.
Says what that cost; a cost that the endpoint does not tell is unknown.`,
		Example: "  refbox fleet check fleet.toml\n  refbox fleet check fleet.toml --json",
		Args:    exactArgs(1, "one fleet file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadFleet(args[0])
			if err != nil {
				return err
			}
			found := f.Check(cmd.Context())
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			return reportFleet(a, found, asJSON)
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(check)
	return c
}

func loadFleet(file string) (*fleet.Fleet, error) {
	f, err := fleet.Load(file)
	if err != nil {
		return nil, err
	}
	f.Version = version
	return f, nil
}

func reportFleet(a *app, found []fleet.Finding, asJSON bool) error {
	ok := true
	for _, f := range found {
		ok = ok && f.OK
	}
	if asJSON {
		if err := writeJSON(a.out, struct {
			OK      bool            `json:"ok"`
			Players []fleet.Finding `json:"players"`
		}{ok, found}); err != nil {
			return err
		}
	} else {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		for _, f := range found {
			mark := "ok"
			if !f.OK {
				mark = "fails"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\tcost of trying %s\n", f.Player, f.Adapter, mark, f.Detail, microUSD(f.CostMicroUSD))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if !ok {
		return exitError{code: exitBroken}
	}
	return nil
}

// microUSD is money in words.
func microUSD(n *uint64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprintf("$%.6f", float64(*n)/1e6)
}

// seatFleet puts the players of a fleet file, and the person who plays, into a
// heat's configuration. It returns the territories that persons play.
func seatFleet(cfg *heat.Config, o runOptions) ([]string, error) {
	var f *fleet.Fleet
	switch {
	case o.branch != nil:
		f = o.branch.fleet
	case o.fleet != "":
		var err error
		if f, err = loadFleet(o.fleet); err != nil {
			return nil, err
		}
		if o.play && len(f.Persons()) == 0 {
			return nil, usageError("nobody in %s is a person; give one of its players adapter = \"human\"", o.fleet)
		}
	case o.play:
		f = fleet.OfPerson(author(), o.seat)
	default:
		return nil, nil
	}
	s, err := f.Seat(cfg.Package)
	if err != nil {
		return nil, err
	}
	cfg.Package, cfg.Players, cfg.Budgets = s.Package, s.Players, s.Budgets
	return s.Persons, nil
}
