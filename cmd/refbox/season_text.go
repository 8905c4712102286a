package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/season"
	"refbox/engine/text"
)

func seasonAudit(a *app) *cobra.Command {
	var asJSON bool
	var manifest string
	c := &cobra.Command{
		Use:   "audit DIR|week.json|draw.json",
		Short: "Recompute what can be recomputed of a week, and say what cannot",
		Long: `Recomputes a week from what is there: seed, entrants, bracket, seats, digest,
commitment, wildcards, winners, replays, sums and champion; against journals and
recordings where they are there too. Every check says that it holds, that something
is odd but within the rules (note), that it is broken, with both values, or that
it cannot be made since something is missing. Only what is broken exits 1.`,
		Example: "  refbox season audit DIR\n  refbox season audit week.json --json",
		Args:    exactArgs(1, "one week: its folder, draw.json or week.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := openWeek(cmd, args[0])
			if err != nil {
				return err
			}
			if manifest != "" {
				if f.Sources.Manifest, err = season.ReadManifest(manifest); err != nil {
					return brokenError(err)
				}
			}
			rep := f.Check(f.Sources)
			if asJSON {
				err = writeJSON(a.out, rep)
			} else {
				err = printAudit(a, rep)
			}
			if err == nil && rep.Count(season.Broken) > 0 {
				return exitError{code: exitBroken}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&manifest, "manifest", "", "hold the draw against this season manifest too")
	return c
}

func printAudit(a *app, rep *season.Audit) error {
	var b strings.Builder
	fmt.Fprintf(&b, "season %s, week %s: %s; rules: %s\n", text.Line(rep.SeasonID), text.Line(rep.Week), strings.Join(rep.Documents, ", "), rep.RuleSet)
	printChecks(&b, rep.Checks)
	fmt.Fprintf(&b, "%s: %s, %s, %d not checkable\n", map[bool]string{true: "broken", false: "holds"}[rep.Count(season.Broken) > 0],
		text.Count(rep.Count(season.Broken), "break"), text.Count(rep.Count(season.Note), "note"), rep.Count(season.Unchecked))
	_, err := a.out.Write([]byte(b.String()))
	return err
}

func printChecks(b *strings.Builder, checks []season.Check) {
	checks = slices.Clone(checks)
	// What is broken must not drown in what is only odd.
	slices.SortStableFunc(checks, func(x, y season.Check) int { return cmp.Compare(broken(y), broken(x)) })
	for _, c := range checks {
		word := string(c.Verdict)
		if c.Verdict == season.Unchecked {
			word = "-"
		}
		where := ""
		if c.Where != "" {
			where = c.Where + ": "
		}
		fmt.Fprintf(b, "%-6s %-2s  %s\n", word, c.Code, text.Line(where+c.Text))
		if c.Verdict == season.Broken {
			fmt.Fprintf(b, "             should be %s\n             is        %s\n", cmp.Or(text.Line(c.Want), `""`), cmp.Or(text.Line(c.Got), `""`))
		}
		if c.Missing != "" {
			fmt.Fprintf(b, "             not checkable, missing: %s\n", text.Line(c.Missing))
		}
		if len(c.Fields) > 0 {
			for _, line := range text.Wrap(strings.Join(c.Fields, ", "), 100) {
				fmt.Fprintf(b, "               %s\n", line)
			}
		}
	}
}

func broken(c season.Check) int {
	if c.Verdict == season.Broken {
		return 1
	}
	return 0
}

// printView prints a week in lines; rep may be nil.
func printView(a *app, v season.View, rep *season.Audit) error {
	var b strings.Builder
	fmt.Fprintf(&b, "season  %s, week %s (%s), rules: %s\n", text.Line(v.Season), text.Line(v.Week), v.State, v.RuleSet)
	if v.Champion != "" {
		fmt.Fprintf(&b, "champion %s\n", text.Line(v.Champion))
	}
	if rep != nil {
		fmt.Fprintf(&b, "audit   %s, %d not checkable; season audit names each\n", rep.Badge(), rep.Count(season.Unchecked))
	}
	if v.State != "drawn" {
		fmt.Fprintf(&b, "spend   %s\n", v.Spend)
	}
	for _, r := range v.Rounds {
		fmt.Fprintf(&b, "\nround %d  %s\n", r.Round, cmp.Or(text.Line(r.Arena), "arena not known here"))
		printHeats(&b, r)
		if len(r.Byes) > 0 {
			fmt.Fprintf(&b, "  byes       %s\n", text.Line(strings.Join(r.Byes, ", ")))
		}
		for _, w := range r.Wildcards {
			fmt.Fprintf(&b, "  wildcard   %s, %s\n", text.Line(w.Entrant), text.Line(w.Why))
		}
		if len(r.Wildcards) == 0 && r.Places > 0 {
			fmt.Fprintf(&b, "  %s, not drawn yet\n", text.Count(r.Places, "wildcard"))
		}
	}
	if v.State != "drawn" {
		b.WriteString("\nstandings\n")
		for i, s := range v.Standings {
			fmt.Fprintf(&b, "  %2d  %s  %-9s  %s won, %d durable, %4d points, %d forfeited, %s\n", i+1, text.Pad(text.Line(s.FleetID), widest(v)),
				s.Reached(v.Champion), text.Count(s.Wins, "heat"), s.DurableDeployments, s.MilestonePoints, s.Forfeits,
				season.Money{MicroUSD: s.CostMicroUSD, Complete: s.CostComplete})
		}
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}

func printHeats(b *strings.Builder, r season.RoundView) {
	unseated := 0
	for _, h := range r.Heats {
		if len(h.Seats) == 0 && h.State == "waiting" {
			unseated++
			continue
		}
		head := h.State
		if h.Winner != "" {
			head = text.Line(h.Winner) + " won"
		}
		if h.Attempts > 1 {
			head += fmt.Sprintf(", %s", text.Count(h.Attempts, "attempt"))
		}
		fmt.Fprintf(b, "  heat %-4d  %s\n", h.Heat, head)
		for _, s := range h.Seats {
			line := fmt.Sprintf("    %s  %s  %s", text.Pad(text.Line(s.Entrant), 14), text.Pad(text.Line(s.Territory), 16), s.Result)
			if s.Result != "waiting" {
				line += fmt.Sprintf(", %s", text.Count(s.Points, "point"))
				if s.DurableAtMS != nil {
					line += fmt.Sprintf(", durable at %d.%03d s", *s.DurableAtMS/1000, *s.DurableAtMS%1000)
				}
				line += ", " + s.Cost.String()
			}
			fmt.Fprintln(b, line)
		}
		if h.Note != "" {
			fmt.Fprintf(b, "    note: %s\n", text.Line(h.Note))
		}
	}
	if unseated > 0 {
		fmt.Fprintf(b, "  %s, not seated yet\n", text.Count(unseated, "heat"))
	}
}

func widest(v season.View) int {
	n := 8
	for _, s := range v.Standings {
		n = max(n, min(24, text.Width(text.Line(s.FleetID))))
	}
	return n
}
