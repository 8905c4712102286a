package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"refbox/engine/control"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
)

func newWatch(a *app) *cobra.Command {
	var lines bool
	c := &cobra.Command{
		Use:     "watch DIR",
		Short:   "Watch a heat that another process runs",
		Example: "  refbox watch primary-failover-20260102-150405",
		Args:    exactArgs(1, "one heat's folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return watch(cmd.Context(), a, args[0], lines)
		},
	}
	c.Flags().BoolVar(&lines, "headless", false, "print a line per event instead of the screen")
	return c
}

// watch waits for a heat where its name may come to be, and shows it.
func watch(ctx context.Context, a *app, name string, lines bool) error {
	dir := locate(name)
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return brokenError(fmt.Errorf("%s is no folder: a heat is watched in its folder; refbox replay shows a single log", text.Line(dir)))
	}
	if err != nil {
		fmt.Fprintf(a.err, "waiting for %s …\n", text.Line(dir))
	}
	screen := !lines && canShow(a)
	loud := func() {}
	if screen {
		loud = hush(a.in)
	}
	rec, err := recording.Await(ctx, whereabouts(name)...)
	loud()
	if err != nil {
		return err
	}
	dir = rec.Path()
	if !begun(rec) {
		fmt.Fprintf(a.err, "waiting for a heat in %s …\n", text.Line(dir))
	}
	if !screen {
		defer rec.Close()
		printEvents(ctx, a, rec, nil)
		if ctx.Err() == nil {
			printSummary(a, rec)
		}
		return ctx.Err()
	}
	d := tui.Desk{Author: author()}
	if rec.Live() || !begun(rec) {
		d.Desk = distant(deskSocket(dir))
	}
	return sumUp(ctx, a, dir)(tui.Watch(ctx, screenConfig(a), rec, d, a.in, a.out))
}

// distant is the desk of a heat that another process runs. It is reached for
// each call: a watcher may be there before the desk is.
type distant string

func (s distant) End(ctx context.Context, author, reason string) error {
	d, err := control.Dial(string(s))
	if err != nil {
		return err
	}
	return d.End(ctx, author, reason)
}

func (s distant) Note(ctx context.Context, author, text string) error {
	d, err := control.Dial(string(s))
	if err != nil {
		return err
	}
	return d.Note(ctx, author, text)
}

func (s distant) Rule(ctx context.Context, author string, r control.Ruling) error {
	d, err := control.Dial(string(s))
	if err != nil {
		return err
	}
	return d.Rule(ctx, author, r)
}

func (s distant) Attach(ctx context.Context, author, territory, machine string) (io.ReadWriteCloser, error) {
	d, err := control.Dial(string(s))
	if err != nil {
		return nil, err
	}
	return d.Attach(ctx, author, territory, machine)
}

func (s distant) Sit(ctx context.Context, author, territory, machine string, size control.Size) (control.Terminal, error) {
	d, err := control.Dial(string(s))
	if err != nil {
		return nil, err
	}
	return d.Sit(ctx, author, territory, machine, size)
}

// sumUp says, after a heat's screen was left, what it showed: who won, why, where the
// recording is, and how to see it again. It gives what leaveScreen gives.
func sumUp(ctx context.Context, a *app, path string) func(tui.Choice, error) error {
	return func(c tui.Choice, err error) error {
		if err == nil && c.Branch != nil {
			return branched(ctx, a, c.Branch)
		}
		if err = leaveScreen(c, err); err != nil {
			return err
		}
		rec, err := loadRecording(ctx, path)
		if err != nil {
			return err
		}
		defer rec.Close()
		printSummary(a, rec)
		return nil
	}
}

// leaveScreen turns how a screen was left into an exit code.
func leaveScreen(c tui.Choice, err error) error {
	if c.Interrupted || errors.Is(err, context.Canceled) {
		return exitError{code: exitInterrupted}
	}
	return err
}

func newReplay(a *app) *cobra.Command {
	var lines, asJSON bool
	var against string
	c := &cobra.Command{
		Use:   "replay DIR",
		Short: "Replay a recorded heat",
		Long: `Replays a recording: a folder, a single log, a match-report.json, or an archive.

With --against another recording runs behind it on the same clock: each seat has a
ghost lane, and each milestone its split. Without a terminal, or with --headless or
--json, the splits are printed.`,
		Example: "  refbox replay primary-failover-20260102-150405\n" +
			"  refbox replay ./round-002 --against ./round-001",
		Args: exactArgs(1, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case against != "":
				return replayAgainst(cmd.Context(), a, args[0], against, lines, asJSON)
			case asJSON:
				return usageError("--json prints the splits of a comparison: it needs --against")
			}
			rec, err := openRecording(args[0])
			if err != nil {
				return err
			}
			if lines || !canShow(a) {
				defer rec.Close()
				if err := rec.Load(cmd.Context()); err != nil {
					return err
				}
				ended := make(chan struct{})
				close(ended)
				printEvents(cmd.Context(), a, rec, ended)
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				printSummary(a, rec)
				return nil
			}
			return sumUp(cmd.Context(), a, args[0])(tui.Watch(cmd.Context(), screenConfig(a), rec, tui.Desk{}, a.in, a.out))
		},
	}
	c.Flags().BoolVar(&lines, "headless", false, "print a line per event instead of the screen")
	c.Flags().StringVar(&against, "against", "", "another recording to show behind it")
	c.Flags().BoolVar(&asJSON, "json", false, "with --against: print the splits as JSON")
	return c
}
