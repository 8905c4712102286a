package main

import "github.com/spf13/cobra"

func newPlay(a *app) *cobra.Command {
	o := runOptions{play: true}
	c := &cobra.Command{
		Use:   "play ARENA",
		Short: "Take a seat in a heat and race it yourself",
		Long: `Runs a heat of an arena in which you play a seat: your brief, then a terminal in
your machine, recorded and refereed like anyone's. The arena's scripts play the other
seats, or with --fleet whoever the file names; the person in it is you.

Ctrl-] leaves the terminal for the heat's screen and goes back to it.`,
		Example: "  refbox play primary-failover\n  refbox play primary-failover --seat failover-two\n  refbox play primary-failover --fleet fleet.toml",
		Args:    exactArgs(1, "one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.fleet != "" && o.seat != "" {
				return usageError("--seat and --fleet: the fleet file says who sits where")
			}
			return runHeat(cmd.Context(), a, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.seat, "seat", "", "the territory to play (default: the first)")
	f.StringVar(&o.fleet, "fleet", "", "a file that says who plays at which seat (see refbox fleet)")
	f.StringVar(&o.output, "output", "", "the folder to record into (default: a new one under the data folder)")
	f.StringVar(&o.drill, "drill", "", "say at the end what the heat is to REGISTER:STORE, a drill or a rehearsal (see refbox register drill)")
	f.BoolVar(&o.cold, "cold", false, "boot the machines instead of resuming their prepared state")
	machineFlags(c, &o)
	return c
}
