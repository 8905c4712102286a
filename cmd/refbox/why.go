package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/why"
)

// recordingAndSeat are a command's arguments: DIR [SEAT].
func recordingAndSeat(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usageError("%s takes a recording and perhaps a seat\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

func newWhy(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "why DIR [SEAT]",
		Short:   "Explain an outcome: the events and the evidence behind it",
		Example: "  refbox why ./heat\n  refbox why ./heat failover-two",
		Args:    recordingAndSeat,
		RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := loadRecording(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			rep, err := rec.Verify(cmd.Context())
			if err != nil {
				return err
			}
			if n := rep.Breaks(); n > 0 {
				fmt.Fprintf(a.err, "This recording has %s: what it says need not be what happened. refbox verify names each.\n", text.Count(n, "break"))
			}
			return explain(a, rec, args[1:], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// simulatedWords stand before what a heat of simulated machines says.
const simulatedWords = "The machines were simulated: none of this happened on real ones."

func explain(a *app, rec *recording.Recording, seats []string, asJSON bool) error {
	w := rec.World(rec.Len())
	if len(seats) == 0 {
		for _, s := range w.Seats() {
			seats = append(seats, s.ID)
		}
	}
	all := []why.Explanation{}
	for _, id := range seats {
		e, ok := why.Explain(w, rec.Manifest(), id)
		if !ok {
			var known []string
			for _, s := range w.Seats() {
				known = append(known, s.ID)
			}
			return usageError("this heat has no seat %q; its seats are %s", id, text.Line(strings.Join(known, ", ")))
		}
		all = append(all, e)
	}
	if asJSON {
		return writeJSON(a.out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.out, "no seat has an outcome: none was ready when the heat was "+matchState(w))
		return err
	}
	if at := rec.Integrity().Stopped; at != "" {
		fmt.Fprint(a.out, "This recording is cut off: "+at+".\n\n")
	}
	if w.Simulated() {
		fmt.Fprint(a.out, simulatedWords+"\n\n")
	}
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out, e.Headline)
		for _, l := range e.Lines {
			fmt.Fprintf(a.out, "  %s  %-11s  %s", playback.Format(l.MS), l.Kind, l.Text)
			if l.Event != nil {
				line, _ := rec.Line(*l.Event)
				fmt.Fprintf(a.out, "  [events.jsonl:%d]", line)
			}
			if l.Record != "" {
				fmt.Fprintf(a.out, "  [%s]", l.Record)
			}
			fmt.Fprintln(a.out)
		}
	}
	return nil
}
