package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/arena/lint"
	"refbox/engine/text"
)

func newArenaInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init FOLDER",
		Short: "Make an arena package to start from",
		Long: `Makes a small arena that can be raced, in a folder that is empty or not there. It
passes refbox arena validate and refbox arena test as it is.`,
		Example: "  refbox arena init ./my-arena",
		Args:    exactArgs(1, "one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := arena.Init(args[0])
			if err != nil {
				return err
			}
			dir := text.Shell(args[0])
			fmt.Fprintf(a.out, "%s is an arena now, called %s.\n  refbox arena validate %s\n  refbox arena test %s --machines sim\n  refbox run %s\n", text.Line(args[0]), id, dir, dir, dir)
			return nil
		},
	}
}

func newArenaValidate(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate ARENA",
		Short: "Say everything that is wrong with an arena package",
		Long: `Looks at a package's manifest (arena.toml or arena.json), its verifiers, scripts and
briefs, and says everything that is wrong, each with file and line. Exits with 1
when any of it keeps the arena from being raced; warnings do not.`,
		Example: "  refbox arena validate ./my-arena\n  refbox arena validate ./my-arena/arena.toml --json",
		Args:    exactArgs(1, "one arena"),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := lint.Validate(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				if err := writeJSON(a.out, r); err != nil {
					return err
				}
			} else {
				printLint(a, r)
			}
			if !r.Valid {
				return exitError{code: exitBroken}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printLint(a *app, r lint.Report) {
	for _, p := range r.Errors {
		fmt.Fprintln(a.out, "error: "+text.Line(p.String()))
	}
	for _, p := range r.Warnings {
		fmt.Fprintln(a.out, "warning: "+text.Line(p.String()))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(a.out, "note: "+text.Line(n))
	}
	if r.Valid {
		fmt.Fprintf(a.out, "%s: valid (%s), %s\n", text.Line(r.Manifest), text.Line(r.Arena), text.Count(len(r.Warnings), "warning"))
	} else {
		fmt.Fprintf(a.out, "%s: %s, %s\n", text.Line(r.Manifest), text.Count(len(r.Errors), "error"), text.Count(len(r.Warnings), "warning"))
	}
}
