package main

import (
	"context"
	"fmt"

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
	for _, f := range rep.Findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d (byte %d)", where, f.Line, f.Offset)
		}
		if where != "" {
			where += ": "
		}
		fmt.Fprintf(a.out, "%-5s  %s  %s%s\n", f.Severity, f.Code, text.Line(where), f.Text)
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
	_, err := fmt.Fprintf(a.out, "%s: %d events, %s, %d breaks, %d notes\n", text.Line(dir), rep.Events, seal, rep.Breaks(), len(rep.Findings)-rep.Breaks())
	return err
}
