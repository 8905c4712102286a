package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/tui"
	"refbox/tui/step"
)

func newStep(a *app) *cobra.Command {
	var at int
	var beside string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "step FILE",
		Short: "Step through what an agent did, whatever harness recorded it",
		Long: `Step through a transcript: the steps of an agent on the left, the chosen one in
full on the right. FILE is a file or a folder of any known harness, or a heat's
archive; its format is found by what is in it. A file that grows is followed.

Without a terminal the steps are printed, one a line.`,
		Example: "  refbox step session.jsonl --at 17\n  refbox step one-transcript.json --beside two-transcript.json",
		Args:    exactArgs(1, "a transcript"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 0 {
				return usageError("--at takes a step's number, from 0; %d is none", at)
			}
			args[0], beside = locate(args[0]), locate(beside)
			if asJSON || !canShow(a) {
				if beside != "" {
					return usageError("--beside needs a terminal: two records are shown side by side")
				}
				return printSteps(cmd.Context(), a, args[0], at, asJSON)
			}
			// A long record keeps its index in memory, and reads much beside it: the
			// collector is to keep up rather than to let that double.
			debug.SetGCPercent(40)
			s, err := step.Open(args[0], beside, at)
			if err != nil {
				return unreadable(err)
			}
			return leaveScreen(tui.Show(cmd.Context(), screenConfig(a), s, a.in, a.out))
		},
	}
	cmd.Flags().IntVar(&at, "at", -1, "the step to begin with, by its number")
	cmd.Flags().StringVar(&beside, "beside", "", "another record, beside it on one clock")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the steps as JSON, one a line")
	return cmd
}

// unreadable says what opens, when a file did not.
func unreadable(err error) error {
	if errors.Is(err, transcript.ErrFormat) {
		return brokenError(fmt.Errorf("%w\nknown are Claude Code, Codex, OpenHands, SWE-agent, ATIF, Harbor, Inspect, Terminal-Bench, asciicast, opencode, the reference system, and a heat's folder", err))
	}
	return err
}

// stepLine is a step as JSON.
type stepLine struct {
	Step       int    `json:"step"`
	Kind       string `json:"kind"`
	Actor      string `json:"actor,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Agent      int    `json:"agent"`
	AtMS       *int64 `json:"at_ms"`
	DurationMS *int64 `json:"duration_ms"`
	Outcome    string `json:"outcome,omitempty"`
	Title      string `json:"title"`
	Offset     int64  `json:"offset"`
	Length     int64  `json:"length"`
}

// printSteps prints the steps from one on.
func printSteps(ctx context.Context, a *app, path string, at int, asJSON bool) error {
	tr, err := transcript.Open(path)
	if err != nil {
		return unreadable(err)
	}
	defer tr.Close()
	if err := tr.Load(ctx); err != nil {
		return err
	}
	if at >= tr.Len() {
		return fmt.Errorf("%s has no step %d: there are %d, from 0", text.Line(path), at, tr.Len())
	}
	out := json.NewEncoder(a.out)
	for i := max(0, at); i < tr.Len(); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := tr.Step(i)
		if asJSON {
			err = out.Encode(stepLine{i, s.Kind.String(), s.Actor.String(), s.Tool, s.Agent, knownMS(s.AtMS), knownMS(s.DurationMS),
				s.Outcome.String(), s.Title, s.Offset, s.Length})
		} else {
			_, err = fmt.Fprintln(a.out, strings.TrimRight(fmt.Sprintf("%5d  %9s  %-9s %-14s %-10s %s", i, when(s.AtMS), s.Kind,
				text.Truncate(s.Tool, 14, ""), s.Outcome, s.Title), " "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func knownMS(ms int64) *int64 {
	if ms < 0 {
		return nil
	}
	return &ms
}

func when(ms int64) string {
	if ms < 0 {
		return ""
	}
	return playback.Format(uint64(ms))
}
