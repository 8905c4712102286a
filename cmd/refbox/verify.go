package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"refbox/engine/recording"
	"refbox/engine/text"
)

func newVerify(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check a recording: fold, chain, digests, seal",
		Long: `Folds the log anew and compares world.json, follows the chain of hashes to the
sealed head, and checks the seed and the digests of the evidence.

Findings are notes (odd, foreign, torn, missing) or breaks (the fold differs, the
chain is broken, a digest is wrong). Only breaks exit 1.`,
		Example: "  refbox verify ./heat\n  refbox verify ./heat --json",
		Args:    exactArgs(1, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), a, args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func verify(ctx context.Context, a *app, dir string, asJSON bool) error {
	rec, err := openRecording(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	rep, err := rec.Verify(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.out, rep)
	} else {
		err = printReport(a, dir, rep)
	}
	if err == nil && rep.Breaks() > 0 {
		return exitError{code: exitBroken}
	}
	return err
}

func printReport(a *app, dir string, rep recording.Report) error {
	// What is broken must not drown in what is only odd.
	findings := slices.Clone(rep.Findings)
	slices.SortStableFunc(findings, func(a, b recording.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	for _, f := range findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d (byte %d)", where, f.Line, f.Offset)
		}
		if where != "" {
			where += ": "
		}
		fmt.Fprintf(a.out, "%-5s  %s  %s%s\n", f.Severity, f.Code, text.Line(where), f.Text)
	}
	if rep.Branched != "" {
		fmt.Fprintln(a.out, text.Line(rep.Branched))
	}
	if rep.Stopped != "" {
		fmt.Fprintln(a.out, "stopped: "+text.Line(rep.Stopped))
	}
	seal := "not chained"
	switch {
	case rep.Sealed:
		seal = "chained and sealed"
	case rep.Chained:
		seal = "chained, not sealed"
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, %s, %s, %s\n", text.Line(dir), text.Count(rep.Events, "event"), seal,
		text.Count(rep.Breaks(), "break"), text.Count(len(rep.Findings)-rep.Breaks(), "note"))
	return err
}

func rank(f recording.Finding) int {
	if f.Severity == recording.Break {
		return 0
	}
	return 1
}
