package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/recording"
	"refbox/engine/season"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/text"
	"refbox/tui"
	seasons "refbox/tui/season"
	"refbox/tui/view"
)

func seasonShow(a *app) *cobra.Command {
	var asJSON, lines bool
	c := &cobra.Command{
		Use:   "show DIR|week.json|draw.json",
		Short: "Show a week: bracket, heats, wildcards, standings, costs, champion",
		Long: `Opens the week's screen, and follows the week while it runs: enter opens a heat,
i lists the audit's checks. Where there is no terminal, and with --plain, it is told
in lines.`,
		Example: "  refbox season show DIR\n  refbox season show week.json --plain",
		Args:    exactArgs(1, "one week: its folder, draw.json or week.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON || lines || !canShow(a) {
				return tellWeek(cmd, a, args[0], asJSON)
			}
			if _, err := openWeek(cmd, args[0]); err != nil {
				return err
			}
			s, err := seasons.New(weekSource(cmd.Context(), args[0]))
			if err != nil {
				return brokenError(err)
			}
			choice, err := tui.Show(cmd.Context(), screenConfig(a), s, a.in, a.out)
			return leaveScreen(choice, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lines, "plain", false, "print lines instead of the screen")
	return c
}

// tellWeek is show without a screen.
func tellWeek(cmd *cobra.Command, a *app, path string, asJSON bool) error {
	f, err := openWeek(cmd, path)
	if err != nil {
		return err
	}
	w := shownWeek(f)
	w.Audit = f.Check(f.Sources) // with the recordings, as season audit does
	if asJSON {
		return writeJSON(a.out, struct {
			season.View
			Audit string `json:"audit"`
		}{w.View, w.Audit.Badge()})
	}
	return printView(a, w.View, w.Audit)
}

// shownWeek is a week as it is shown. Recordings are not read for it: the audit
// does that.
func shownWeek(f *seasonrun.Found) seasons.Week {
	here := seasonrun.Here(f.Dir)
	src := f.Sources
	src.Attempt = nil
	return seasons.Week{View: f.View(func(output string) bool { return here[output] }), Audit: f.Check(src), Here: here}
}

// weekSource is a week's folder, or a document of one.
func weekSource(ctx context.Context, path string) seasons.Source {
	dir := filepath.Dir(path)
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		dir = path
	}
	return seasons.Source{
		Name: filepath.Base(path),
		Watch: func() []string {
			rounds, _ := filepath.Glob(filepath.Join(dir, "round-*")) // the pattern is ours
			return append([]string{dir}, rounds...)
		},
		Load: func() (seasons.Week, error) {
			f, err := seasonrun.Open(ctx, path)
			if err != nil {
				return seasons.Week{}, err
			}
			return shownWeek(f), nil
		},
		Recordings: func(ctx context.Context) (*season.Audit, error) {
			f, err := seasonrun.Open(ctx, path)
			if err != nil {
				return nil, err
			}
			return f.Check(f.Sources), nil
		},
		Heat: func(attempt string) (*recording.Recording, error) {
			folder := filepath.Join(dir, filepath.FromSlash(attempt))
			if _, err := os.Lstat(folder); err != nil {
				return nil, err
			}
			return recording.Open(folder)
		},
	}
}

func seasonList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list [DIR]",
		Short:   "List the weeks that were drawn",
		Long:    "Lists the weeks below a folder, as SEASON/WEEK; without one those of the data folder.",
		Example: "  refbox season list",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s takes at most one folder\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := seasonsDir("", "")
			if err != nil {
				return err
			}
			if len(args) == 1 {
				dir = args[0]
			}
			list := seasonrun.List(dir)
			if asJSON {
				if list == nil {
					list = []seasonrun.Summary{}
				}
				return writeJSON(a.out, list)
			}
			var b strings.Builder
			for _, s := range list {
				fmt.Fprintf(&b, "%s  %s  %s\n", text.Pad(text.Line(s.Season+" "+s.Week), 32), text.Pad(weekWords(s), 44), text.Line(s.Dir))
			}
			_, err = a.out.Write([]byte(b.String()))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// weekWords is a week's state in a few words.
func weekWords(s seasonrun.Summary) string {
	words := fmt.Sprintf("%s, %s, %d of %s", s.State, text.Count(s.Entrants, "entrant"), s.Heats, text.Count(s.Of, "heat"))
	if s.Champion != "" {
		words = "★ " + text.Line(s.Champion) + ", " + words
	}
	return words
}

// seasonEntries are the lobby's: the weeks in a folder.
func seasonEntries(ctx context.Context, dir string) []tui.Entry {
	var out []tui.Entry
	for _, s := range seasonrun.List(dir) {
		out = append(out, tui.Entry{Group: "Seasons", Name: s.Season + " " + s.Week, Note: weekWords(s), Open: func() (view.Screen, error) {
			screen, err := seasons.New(weekSource(ctx, s.Dir))
			if err != nil { // a nil *Screen is no nil Screen
				return nil, err
			}
			return screen, nil
		}})
	}
	return out
}
