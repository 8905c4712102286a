package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/analysis"
	"refbox/engine/archive"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

func newAnalyze(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "analyze FILE|DIR",
		Short: "Say what each action of an agent was: discovery, mutation, lifecycle, validation",
		Long: `Judges the actions of a transcript, whatever harness recorded it, or of every seat of
a recorded heat, by what they did and not by their words; of a heat it also says how
its seats fought. Nothing is written.

With --json a transcript gives an analysis.json, a heat one per seat and the
comparison.`,
		Example: "  refbox analyze session.jsonl\n  refbox analyze ./heat --json",
		Args:    exactArgs(1, "one transcript or recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			args[0] = locate(args[0])
			rec, tr, err := openEither(args[0])
			if err != nil {
				return err
			}
			if rec != nil {
				defer rec.Close()
				h, err := analysis.OfHeat(cmd.Context(), rec)
				switch {
				case err != nil:
					return err
				case asJSON:
					return writeAnalysis(a, heatJSON(h))
				}
				return printHeat(a.out, h)
			}
			defer tr.Close()
			one, err := analysis.Of(cmd.Context(), tr)
			if err != nil {
				return err
			}
			if !asJSON {
				return printTranscript(a.out, tr, one)
			}
			if one.SourceSHA256 == "" {
				if one.SourceSHA256, err = fileSHA256(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			return writeAnalysis(a, one)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// openEither opens a recorded heat, or else a transcript. A heat's log is both: it
// is a heat.
func openEither(path string) (*recording.Recording, *transcript.Transcript, error) {
	if archive.Is(path) {
		rec, err := openRecording(path)
		return rec, nil, err
	}
	tr, err := transcript.Open(path)
	switch {
	case err == nil && tr.Info().Format != "heat":
		return nil, tr, nil
	case err == nil:
		tr.Close() //nolint:errcheck // only read
	case !errors.Is(err, transcript.ErrFormat):
		return nil, nil, err
	}
	rec, other := openRecording(path)
	if other != nil {
		return nil, nil, brokenError(cmp.Or(err, other))
	}
	return rec, nil, nil
}

// fileSHA256 is a file's digest, "" for a folder.
func fileSHA256(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return "", err
	}
	sum := sha256.New()
	for ctx.Err() == nil {
		if _, err := io.CopyN(sum, f, 16<<20); err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}

// writeAnalysis writes JSON. Commands and outputs are as they were recorded, so a
// terminal gets them escaped.
func writeAnalysis(a *app, v any) error {
	if isTerminal(a.out) {
		return writeJSON(terminalJSON{a.out}, v)
	}
	return writeJSON(a.out, v)
}

type seatJSON struct {
	Territory   string `json:"territory"`
	Agent       string `json:"agent"`
	Source      string `json:"source,omitempty"` // the file that the actions are taken from
	Observed    bool   `json:"observed"`
	Trouble     string `json:"trouble,omitempty"`
	OffsetMS    *int64 `json:"offset_ms"` // the heat's clock when the actions' is 0
	PlusMinusMS int64  `json:"offset_plus_minus_ms"`
}

// heatJSON has the analyses by agent's seat, as the reference has them by agent.
func heatJSON(h analysis.Heat) any {
	out := struct {
		Seats    []seatJSON                   `json:"seats"`
		Analyses map[string]analysis.Analysis `json:"analyses"`
		Fought   []analysis.Fought            `json:"how_they_fought"`
	}{[]seatJSON{}, map[string]analysis.Analysis{}, h.Fought}
	for _, s := range h.Seats {
		out.Seats = append(out.Seats, seatJSON{s.Territory, s.Agent, s.File, s.Observed, s.Trouble, s.OffsetMS, s.PlusMinusMS})
		out.Analyses[s.Territory] = s.Analysis
	}
	return out
}

func printTranscript(w io.Writer, tr *transcript.Transcript, one analysis.Analysis) error {
	info := tr.Info()
	fmt.Fprintf(w, "%s  %s\n", text.Line(tr.Path()), strings.Join(nonEmpty(info.Format, info.Harness, info.Model, info.Outcome), " · "))
	if r := tr.Integrity(); len(r.Findings) > 0 {
		fmt.Fprintf(w, "%s in the record, such as %s\n", text.Count(len(r.Findings), "finding"), r.Findings[0].Text)
	}
	return printAnalysis(w, one)
}

func nonEmpty(list ...string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// printAnalysis prints a seat's actions, and what follows from them.
func printAnalysis(w io.Writer, one analysis.Analysis) error {
	m := one.Metrics
	fmt.Fprintf(w, "%s: %d discovery, %d mutation, %d lifecycle, %d validation; %d failed\n",
		text.Count(m.ToolCalls, "action"), m.Discoveries, m.Mutations, m.LifecycleActions, m.Validations, m.ToolErrors)
	if m.ToolCalls == 0 {
		return nil
	}
	timed := m.LastObservedMS != nil
	first := "none"
	for _, s := range one.Steps {
		if s.Changed && first == "none" {
			first = fmt.Sprintf("action %d; the record has no times", s.Index+1)
		}
	}
	if m.FirstMutationMS != nil {
		first = clock(m.FirstMutationMS, false)
	}
	fmt.Fprintf(w, "first change  %s\n", first)
	for _, l := range []struct {
		name string
		list []string
	}{{"technologies", one.Architecture.Technologies}, {"units", one.Architecture.ServiceUnits}, {"left behind", one.Architecture.PersistentPaths}} {
		if len(l.list) > 0 {
			fmt.Fprintf(w, "%-12s  %s\n", l.name, text.Line(strings.Join(l.list, "  ")))
		}
	}
	fmt.Fprintln(w)
	refers := false
	for _, s := range one.Steps {
		refers = refers || s.ReferenceKind != ""
	}
	head := []string{"#", "AT", "KIND", "", "WHAT", "SHOWN BY"}
	if refers {
		head = append(head[:3:3], append([]string{"REFERENCE"}, head[3:]...)...)
	}
	rows := [][]string{head}
	for i := range one.Steps {
		s := &one.Steps[i]
		sign := ""
		if !s.Success {
			sign = "failed"
		}
		what := s.Description
		if what == "" {
			what = s.Text()
		}
		at := "-"
		if timed {
			at = clock(&s.StartedMS, false)
		}
		row := []string{fmt.Sprint(s.Index + 1), at, string(s.Kind)}
		if refers {
			ref := string(s.ReferenceKind)
			if s.ReferenceKind == s.Kind {
				ref = "="
			}
			row = append(row, ref)
		}
		rows = append(rows, append(row, sign, fit(what, 56), fit(shownBy(s), 60)))
	}
	return printRows(w, rows)
}

// shownBy is the effect that made an action what it is.
func shownBy(s *analysis.Step) string {
	for _, e := range s.Effects {
		if e.Sort.Kind() != s.Kind || s.Kind == analysis.Discovery || s.Kind != analysis.Validation && !e.Changes() {
			continue
		}
		out := strings.ReplaceAll(string(e.Sort), "_", " ")
		if e.Target != "" {
			out += " " + e.Target
		}
		return out
	}
	return ""
}

func printHeat(w io.Writer, h analysis.Heat) error {
	if len(h.Seats) == 0 {
		_, err := fmt.Fprintln(w, "the heat has no seats")
		return err
	}
	for _, s := range h.Seats {
		fmt.Fprintln(w, strings.Join(nonEmpty(s.Territory, s.Agent, s.Model, s.File), " · "))
		if s.Trouble != "" {
			fmt.Fprintln(w, s.Trouble)
		}
		if len(s.Analysis.Steps) > 0 || s.Trouble == "" {
			if err := printAnalysis(w, s.Analysis); err != nil {
				return err
			}
		}
		fmt.Fprintln(w)
	}
	if err := printRows(w, fought(h)); err != nil {
		return err
	}
	for _, s := range h.Seats {
		if s.PlusMinusMS > 0 {
			fmt.Fprintf(w, "~ %s: its agent's clock began at %s of the heat, give or take %.1f s\n", s.Territory, clock(s.OffsetMS, false), float64(s.PlusMinusMS)/1000)
		}
	}
	return nil
}

// fought lays the comparison out: a column per seat, a row per fact.
func fought(h analysis.Heat) [][]string {
	row := func(name string, of func(i int, f *analysis.Fought) string) []string {
		out := []string{name}
		for i := range h.Fought {
			out = append(out, of(i, &h.Fought[i]))
		}
		return out
	}
	number := func(name string, of func(f *analysis.Fought) int) []string {
		return row(name, func(i int, f *analysis.Fought) string {
			if f.Actions == 0 {
				return "-"
			}
			return fmt.Sprint(of(f))
		})
	}
	at := func(name string, of func(f *analysis.Fought) *int64) []string {
		return row(name, func(i int, f *analysis.Fought) string { return clock(of(f), h.Seats[i].PlusMinusMS > 0) })
	}
	rows := [][]string{
		row("HOW THEY FOUGHT", func(_ int, f *analysis.Fought) string { return f.Seat }),
		at("first action", func(f *analysis.Fought) *int64 { return f.FirstActionMS }),
		at("first change", func(f *analysis.Fought) *int64 { return f.FirstChangeMS }),
		at("last change", func(f *analysis.Fought) *int64 { return f.LastChangeMS }),
		number("actions", func(f *analysis.Fought) int { return f.Actions }),
		number("looked before it changed", func(f *analysis.Fought) int { return f.DiscoveriesBeforeChange }),
		number("changes", func(f *analysis.Fought) int { return f.Changes }),
		number("failed actions", func(f *analysis.Fought) int { return f.Errors }),
		number("checks after the last", func(f *analysis.Fought) int { return f.ValidationsAfterLastChange }),
		row("points", func(_ int, f *analysis.Fought) string { return fmt.Sprint(f.Points) }),
		row("cost", func(_ int, f *analysis.Fought) string { return dollars(f.TotalMicroUSD) }),
		row("cost per milestone", func(_ int, f *analysis.Fought) string { return dollars(f.MicroUSDPerMilestone) }),
	}
	// Each seat has the ladder's milestones, in its order.
	longest := 0
	for i := range h.Fought {
		if len(h.Fought[i].Milestones) > len(h.Fought[longest].Milestones) {
			longest = i
		}
	}
	for k, m := range h.Fought[longest].Milestones {
		rows = append(rows, row("  "+m.ID, func(_ int, f *analysis.Fought) string {
			if k >= len(f.Milestones) || f.Milestones[k].PassedMS == nil {
				return "-"
			}
			o := f.Milestones[k]
			out := clock(o.PassedMS, false)
			if o.First && len(h.Fought) > 1 {
				out += " first"
			}
			if o.StepMicroUSD != nil {
				out += " " + dollars(o.StepMicroUSD)
			}
			return out
		}))
	}
	for _, r := range rows {
		for i := range r {
			r[i] = fit(r[i], 40)
		}
	}
	return rows
}

// clock is a time of the heat's or a transcript's clock; about says that it is
// estimated.
func clock(ms *int64, about bool) string {
	if ms == nil {
		return "-"
	}
	sign := ""
	if about {
		sign = "~"
	}
	if *ms < 0 {
		return sign + "-" + playback.Format(uint64(-*ms))
	}
	return sign + playback.Format(uint64(*ms))
}

func dollars(micro *int64) string {
	if micro == nil {
		return "-"
	}
	return fmt.Sprintf("$%.4f", float64(*micro)/1e6)
}
