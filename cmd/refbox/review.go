package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/review"
	"refbox/engine/text"
)

func newReview(a *app) *cobra.Command {
	var pkg string
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "review DIR",
		Short: "Re-referee a recorded heat from its probe records",
		Long: `Derives each verdict of a recorded heat anew: runs the verifier that ruled over the
probe records behind the verdict, and compares what follows with what was ruled. With
--arena the verifiers of another package, for instance newer ones, are run over the
old records, and it is said where those don't suffice.

A verdict follows, differs, or is not settled by its records (insufficient); what a
referee ruled is listed as that. Exits 1 when a verdict does not follow.`,
		Example: "  refbox review ./heat\n  refbox review ./heat --arena ./my-arena --json",
		Args:    exactArgs(1, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reReferee(cmd.Context(), a, args[0], pkg, all, asJSON)
		},
	}
	c.Flags().StringVar(&pkg, "arena", "", "the package whose verifiers are run (default: the bundled arena of the heat)")
	c.Flags().BoolVar(&all, "all", false, "list the verdicts that follow too")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func reReferee(ctx context.Context, a *app, dir, name string, all, asJSON bool) error {
	rec, err := loadRecording(ctx, dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	pkg, missing, err := verifiersOf(rec, name)
	if err != nil {
		return err
	}
	rep, err := review.Heat(ctx, rec, pkg, name != "", missing)
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.out, rep)
	} else {
		err = printReview(a, dir, rep, all)
	}
	if err == nil && !rep.Holds() {
		return exitError{code: exitBroken}
	}
	return err
}

// verifiersOf is the package whose verifiers are run; without one, why.
func verifiersOf(rec *recording.Recording, name string) (*arena.Package, string, error) {
	if name != "" {
		pkg, err := arena.Load(name)
		return pkg, "", err
	}
	m := rec.Manifest()
	if m == nil {
		return nil, "the recording has no manifest, so its verifiers are not known", nil
	}
	pkg, err := arena.Load(m.Arena.ID)
	if err != nil {
		return nil, fmt.Sprintf("no bundled arena is called %q: give its package with --arena", m.Arena.ID), nil
	}
	return pkg, "", nil
}

func printReview(a *app, dir string, rep review.Report, all bool) error {
	for _, v := range rep.Verdicts {
		if (v.Status == review.Follows || v.Status == review.Insufficient) && !all {
			continue
		}
		about := strings.TrimSpace(strings.Join([]string{v.Territory, v.Milestone, v.Attack}, " "))
		times := ""
		if v.Repeats > 0 {
			times = fmt.Sprintf(", and %d more times", v.Repeats)
		}
		fmt.Fprintf(a.out, "%-12s %s  %-10s %s%s\n", v.Status, playback.Format(v.MS), v.Kind, text.Line(about), times)
		fmt.Fprintf(a.out, "             ruled:   %s\n", findingWords(v.Ruled))
		if v.Derived != nil && v.Status != review.Follows {
			fmt.Fprintf(a.out, "             follows: %s\n", findingWords(*v.Derived))
		}
		if v.Why != "" {
			fmt.Fprintf(a.out, "             %s\n", text.Line(v.Why))
		}
		if v.Record != "" {
			fmt.Fprintf(a.out, "             [%s]\n", text.Line(v.Record))
		}
	}
	printUnsettled(a, rep)
	_, err := fmt.Fprintf(a.out, "%s: %s by the verifiers of %s: %d follow, %d differ, %d not settled by their records, %d ruled by a person\n",
		text.Line(dir), text.Count(len(rep.Verdicts), "verdict"), text.Line(rep.Verifiers), rep.Follow, rep.Differ, rep.Insufficient, rep.Ruled)
	return err
}

// printUnsettled says why verdicts are not settled: each reason once, with the verdicts
// below it.
func printUnsettled(a *app, rep review.Report) {
	var reasons []string
	about := map[string][]review.Verdict{}
	for _, v := range rep.Verdicts {
		if v.Status != review.Insufficient {
			continue
		}
		why := cmp.Or(v.Lack, v.Why)
		if about[why] == nil {
			reasons = append(reasons, why)
		}
		about[why] = append(about[why], v)
	}
	for _, why := range reasons {
		fmt.Fprintf(a.out, "%s not settled, since %s:\n", text.Count(len(about[why]), "verdict"), text.Line(why))
		for _, v := range about[why] {
			line := strings.TrimSpace(strings.Join([]string{v.Territory, v.Milestone, v.Attack}, " "))
			if v.Why != why {
				line += ": " + v.Why
			}
			fmt.Fprintf(a.out, "  %s  %-10s %-9s  %s\n", playback.Format(v.MS), v.Kind, v.Ruled.Verdict, text.Line(line))
		}
	}
}

// findingWords is a verdict in a line.
func findingWords(f review.Finding) string {
	s := f.Verdict
	if f.Category != "" {
		s += " (" + f.Category + ")"
	}
	if f.Reason != "" && f.Reason != f.Verdict {
		s += ": " + f.Reason
	}
	if len(f.Evidence) > 0 {
		s += " " + string(f.Evidence)
	}
	return text.Line(s)
}
