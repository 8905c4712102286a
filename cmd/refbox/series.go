package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"refbox/engine/bounded"
	"refbox/engine/recording"
	"refbox/engine/season"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/season/series"
	"refbox/engine/season/telling"
	"refbox/engine/text"
	"refbox/tui"
	seasons "refbox/tui/season"
)

func newSeries(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "series",
		Short:   "Series: an arena's agents rotate through its seats",
		Example: "  refbox series run primary-failover --output DIR\n  refbox series show DIR",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("series takes a command: run, show, check or figures\ntry: refbox series --help")
		},
	}
	c.AddCommand(seriesRun(a), seriesShow(a), seriesCheck(a), figures(a))
	return c
}

func seriesRun(a *app) *cobra.Command {
	var o runOptions
	var rounds int
	c := &cobra.Command{
		Use:   "run ARENA",
		Short: "Run a series, or go on with it",
		Long: `Runs an arena several times; in each round every agent sits one seat further.
Goes on with a series that was stopped or killed. Another arena, number of rounds or
compatibility key is refused.`,
		Example: "  refbox series run primary-failover --output DIR",
		Args:    exactArgs(1, "one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rounds < 0 || cmd.Flags().Changed("rounds") && rounds == 0 {
				return usageError("--rounds is at least 1")
			}
			if o.output == "" {
				return usageError("series run needs --output, the series' folder")
			}
			engine, err := equippedWith(cmd.Context(), a, o)
			if err != nil {
				return err
			}
			s, err := seasonrun.Series(cmd.Context(), seasonrun.SeriesConfig{Dir: o.output, Arena: args[0], Rounds: rounds, Engine: engine,
				Report: func(round int, step string) { fmt.Fprintf(a.out, "round %d %s\n", round, step) }})
			if err != nil {
				return err
			}
			return printSeries(a, s)
		},
	}
	f := c.Flags()
	f.StringVar(&o.output, "output", "", "the series' folder")
	f.IntVar(&rounds, "rounds", 0, "rounds (default: one for each seat)")
	f.StringVar(&o.fleet, "players", "", "a fleet file that says who plays (default: the arena's own players)")
	machineFlags(c, &o)
	return c
}

func printSeries(a *app, s *series.Series) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %s\n", text.Line(s.ArenaID), s.RoundsCompleted, text.Count(s.RoundsRequested, "round"))
	for _, st := range s.Standings {
		median, cost := "none durable", "cost unknown"
		if st.MedianDurableMS != nil {
			median = fmt.Sprintf("median %d.%03d s", *st.MedianDurableMS/1000, *st.MedianDurableMS%1000)
		}
		if st.CostMicroUSD != nil {
			yes := true
			cost = season.Money{MicroUSD: *st.CostMicroUSD, Complete: &yes}.String()
		}
		fmt.Fprintf(&b, "  %s  %d of %d won, %d durable, %s, %s\n", text.Pad(text.Line(st.Agent), 24), st.Wins, st.Appearances, st.DurableDeployments, median, cost)
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}

// equippedWith is an engine with its machines, and with a fleet when one is named.
func equippedWith(ctx context.Context, a *app, o runOptions) (*seasonrun.Engine, error) {
	engine := &seasonrun.Engine{Version: version}
	if o.fleet != "" {
		f, err := loadFleet(o.fleet)
		if err != nil {
			return nil, brokenError(err)
		}
		engine.Fleet = f
	}
	return engine, equip(ctx, a, engine, o)
}

// document reads a series' or benchmark's file, or the one of that name in a folder.
func document(path, name string, into any) (dir string, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", usageError("%w; name the folder of a run, or its %s", err, name)
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Dir(path)
	if st.IsDir() {
		dir, path = path, filepath.Join(path, name)
	}
	data, err := bounded.File(path, 64<<20)
	if err != nil {
		return "", brokenError(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return "", brokenError(fmt.Errorf("%s: byte %d: %s", path, d.InputOffset(), text.Line(err.Error())))
	}
	return dir, nil
}

func seriesCheck(a *app) *cobra.Command {
	var asJSON bool
	var recordings string
	c := &cobra.Command{
		Use:     "check DIR|series.json",
		Short:   "Recompute a series from itself and from its rounds' recordings",
		Example: "  refbox series check DIR\n  refbox series check series.json --recordings DIR",
		Args:    exactArgs(1, "one series"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, _, err := openSeries(cmd.Context(), args[0], recordings)
			if err != nil {
				return err
			}
			return checked(a, asJSON, text.Line(t.Series.ArenaID), t)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&recordings, "recordings", "", "a folder with recordings called SERIES-round-NNN")
	return c
}

// openSeries reads a series with what there is of its rounds' recordings; where
// says where each of them is.
func openSeries(ctx context.Context, path, recordings string) (t seasons.Together, where map[string]string, err error) {
	var s series.Series
	dir, err := document(path, "series.json", &s)
	if err != nil {
		return t, nil, err
	}
	runs := map[int]series.Run{}
	var list []series.Run
	where = map[string]string{}
	for i, r := range s.Rounds {
		h := seasons.Heat{Name: r.Output}
		for _, d := range places(dir, recordings, r.Output) {
			if run, err := series.ReadRun(ctx, d); err == nil {
				runs[i+1] = run
				list = append(list, run)
				h.Run, where[h.Name] = &run, d
				break
			}
		}
		t.Heats = append(t.Heats, h)
	}
	t.Series, t.Checks = &s, s.Check(runs)
	t.Figures = computed(list)
	t.Checks = append(t.Checks, tellings(ctx, t.Heats, where)...)
	return t, where, nil
}

// tellings are what the agents of the heats tell is worth, what holds left out.
func tellings(ctx context.Context, heats []seasons.Heat, where map[string]string) []season.Check {
	var out season.Checks
	for _, h := range heats {
		dir := where[h.Name]
		if dir == "" {
			continue
		}
		rec, err := recording.Open(dir)
		if err != nil {
			continue // it was read a moment ago; what is wrong with it is refbox verify's
		}
		checks, err := telling.Check(ctx, rec)
		rec.Close()
		if err != nil {
			out.Add(season.Check{Code: "T1", Verdict: season.Unchecked, Where: h.Name, Text: "what its agents tell", Missing: "transcripts that can be read: " + text.Line(err.Error())})
		}
		for _, c := range checks {
			if c.Verdict != season.Holds {
				c.Where = h.Name + ", " + c.Where
				out.Add(c)
			}
		}
	}
	return out
}

// computed are our figures, nil of nothing.
func computed(runs []series.Run) *series.Figures {
	if len(runs) == 0 {
		return nil
	}
	f := series.Compute(runs)
	return &f
}

// places are where a round's recording may be: in the series' folder, or published
// under the series' name among others. Only the last part of what a document says
// is used.
func places(dir, recordings, output string) []string {
	round := filepath.Base(output)
	list := []string{filepath.Join(dir, round)}
	if recordings != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			list = append(list, filepath.Join(recordings, filepath.Base(abs)+"-"+round))
		}
		list = append(list, filepath.Join(recordings, filepath.Base(filepath.Dir(output))+"-"+round))
	}
	return list
}

// checked prints checks and our own figures, and turns breaks into an exit code.
func checked(a *app, asJSON bool, what string, t seasons.Together) error {
	rep := season.Audit{Checks: t.Checks}
	var err error
	if asJSON {
		err = writeJSON(a.out, struct {
			Holds   bool            `json:"holds"`
			Checks  []season.Check  `json:"checks"`
			Figures *series.Figures `json:"figures,omitempty"`
		}{rep.Count(season.Broken) == 0, t.Checks, t.Figures})
	} else {
		var b strings.Builder
		fmt.Fprintln(&b, what)
		printChecks(&b, t.Checks)
		if t.Figures != nil {
			b.WriteString("\nour figures\n")
			printFigures(&b, t.Figures)
		}
		_, err = a.out.Write([]byte(b.String()))
	}
	if err == nil && rep.Count(season.Broken) > 0 {
		return exitError{code: exitBroken}
	}
	return err
}

func seriesShow(a *app) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show DIR|series.json",
		Short: "Show a series: standings, rounds, our figures, checks",
		Long: `Opens the series' screen, and follows it while it runs; enter opens a round's
recording. Where there is no terminal, and with --plain, it is told in lines.`,
		Example: "  refbox series show DIR",
		Args:    exactArgs(1, "one series"),
		RunE: func(cmd *cobra.Command, args []string) error {
			load := func(ctx context.Context) (seasons.Together, map[string]string, error) {
				return openSeries(ctx, args[0], f.recordings)
			}
			return f.show(cmd, a, args[0], load, func(t seasons.Together) error {
				if f.asJSON {
					return writeJSON(a.out, t.Series)
				}
				return printSeries(a, t.Series)
			})
		},
	}
	f.add(c, "a folder with recordings called SERIES-round-NNN")
	return c
}

// showFlags are those of a screen of a series or a benchmark.
type showFlags struct {
	asJSON, lines bool
	recordings    string
}

func (f *showFlags) add(c *cobra.Command, recordings string) {
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&f.lines, "plain", false, "print lines instead of the screen")
	c.Flags().StringVar(&f.recordings, "recordings", "", recordings)
}

// show opens the screen of a document, or tells it.
func (f *showFlags) show(cmd *cobra.Command, a *app, path string, load func(context.Context) (seasons.Together, map[string]string, error), tell func(seasons.Together) error) error {
	ctx := cmd.Context()
	t, where, err := load(ctx)
	if err != nil {
		return err
	}
	if f.asJSON || f.lines || !canShow(a) {
		return tell(t)
	}
	var mu sync.Mutex // of where: the heats are opened beside the screen
	folder := path
	if st, err := os.Stat(path); err == nil && !st.IsDir() {
		folder = filepath.Dir(path)
	}
	s, err := seasons.NewSheet(seasons.TogetherSource{
		Name:  filepath.Base(folder),
		Watch: func() []string { return []string{folder} },
		Load: func() (seasons.Together, error) {
			t, found, err := load(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				where = found
			}
			return t, err
		},
		Heat: func(name string) (*recording.Recording, error) {
			mu.Lock()
			dir := where[name]
			mu.Unlock()
			if dir == "" {
				return nil, fs.ErrNotExist
			}
			return recording.Open(dir)
		},
	})
	if err != nil {
		return brokenError(err)
	}
	choice, err := tui.Show(ctx, screenConfig(a), s, a.in, a.out)
	return leaveScreen(choice, err)
}

func figures(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "figures RECORDING...",
		Short:   "Our figures over any heats: in pairs, with intervals, what is unknown left unknown",
		Example: "  refbox series figures ./round-001 ./round-002 --json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("figures takes recordings\ntry: refbox series figures --help")
			}
			var runs []series.Run
			for _, dir := range args {
				r, err := series.ReadRun(cmd.Context(), locate(dir))
				if err != nil {
					return brokenError(err)
				}
				runs = append(runs, r)
			}
			f := series.Compute(runs)
			if asJSON {
				return writeJSON(a.out, f)
			}
			var b strings.Builder
			printFigures(&b, &f)
			_, err := a.out.Write([]byte(b.String()))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printFigures(b *strings.Builder, f *series.Figures) {
	share := func(i series.Interval) string {
		return fmt.Sprintf("%.0f %% [%.0f, %.0f]", 100*i.Estimate, 100*i.Low, 100*i.High)
	}
	for _, p := range f.Players {
		name := text.Line(strings.Trim(p.Model+" "+p.Adapter+" "+p.Effort, " "))
		fmt.Fprintf(b, "  %s: %s, won %s, durable %s, outraced %d\n", name, text.Count(p.Heats, "heat"), share(p.Won), share(p.Durable), p.Outraced)
		if d := p.DurableMS; d != nil {
			fmt.Fprintf(b, "    durable after %.1f s [%.1f, %.1f] (%s)\n", d.Estimate/1000, d.Low/1000, d.High/1000, d.How)
		}
		if c := p.CostMicroUSD; c != nil {
			fmt.Fprintf(b, "    cost a heat $%.4f [%.4f, %.4f] (%s)", c.Estimate/1e6, c.Low/1e6, c.High/1e6, c.How)
		} else {
			b.WriteString("    cost unknown")
		}
		if p.CostUnknown > 0 {
			fmt.Fprintf(b, ", unknown in %s", text.Count(p.CostUnknown, "heat"))
		}
		b.WriteString("\n")
		for _, source := range sortedKeys(p.Failures) {
			fmt.Fprintf(b, "    failed by %s: %d\n", text.Line(source), p.Failures[source])
		}
	}
	for _, p := range f.Pairs {
		fmt.Fprintf(b, "  %s against %s: ahead %d, behind %d, even %d of %s; share %s\n", text.Line(p.A), text.Line(p.B), p.Ahead, p.Back, p.Even, text.Count(p.Heats, "common heat"), share(p.Share))
	}
	for _, x := range f.Apart {
		fmt.Fprintf(b, "  apart: %s: %s\n", text.Line(x.Heat), text.Line(x.Why))
	}
}
