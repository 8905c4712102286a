// Command refbox is the referee's box for infrastructure races: it runs heats
// on real machines, shows them live, records them and replays them. This
// package only parses, wires and exits; every decision lives in the engine.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	_ "early.refbox/quiet" // before Bubble Tea begins

	"github.com/spf13/cobra"

	"refbox/engine/text"
	"refbox/tui/settings"
)

// app is what every command gets: where it reads and writes, and how the user likes it.
type app struct {
	in       *os.File
	out, err io.Writer
	settings settings.Settings // what the user likes
}

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit, so that scripts in tests can call it.
func run(args []string) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	openLog()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	if e, ok := err.(exitError); err != nil && !(ok && e.err == nil) && code != exitInterrupted {
		fmt.Fprintln(a.err, "refbox: "+text.Block(err.Error()))
	}
	return code
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "refbox",
		Short: "The referee's box for infrastructure races",
		Long: `refbox is the referee's box for infrastructure races. Scripts, agents or people
each get the same broken machine and race to repair it; refbox referees them
from outside, shows the heat live, records it, and replays it.

Without a command it opens the lobby.`,
		Example:           "  refbox                       open the lobby\n  refbox run primary-failover  run a heat",
		Args:              noArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return lobby(cmd.Context(), a) },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w\ntry: %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		newRun(a), newPlay(a), newBranch(a), newWatch(a), newReplay(a), newWhy(a), newDesk(a), newVerify(a), newReview(a), newRunbook(a), newServe(a),
		newLs(a), newStep(a), newAnalyze(a), newExport(a), newDoctor(a), newImage(a), newArena(a), newRegister(a), newLedger(a),
		newSeason(a), newSeries(a), newBenchmark(a), newFleet(a), newConfig(a), newMan(a), newVersion(a),
	)
	complete(root)
	return root
}

// noArgs and oneArg are cobra's checks with exit code 2 and a remedy.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unknown command %q\ntry: %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError("%s takes %s\ntry: %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func maxArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usageError("%s takes %s\ntry: %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}
