package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/archive"
	"refbox/engine/playback"
	"refbox/engine/recording"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/text"
)

func newLs(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [DIR...]",
		Short: "List recordings: arena, winner, times, seats, integrity",
		Long: `Lists the recordings in each DIR, newest first: folders, at most two levels down,
and archives beside them; and the weeks of seasons there. Without a DIR it lists those in the data folder, where heats
are recorded unless --output says otherwise.

The last column is what replay, why, step and the others open the recording by: a path,
or without a DIR a name in the data folder. A path that is there wins over such a name.`,
		Example: "  refbox ls\n  refbox ls ./season --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := listRecordings(args)
			if err != nil {
				return err
			}
			weeks := listWeeks(args)
			all := make([]any, 0, len(list)+len(weeks))
			for _, s := range list {
				all = append(all, s)
			}
			for _, w := range weeks {
				all = append(all, w)
			}
			switch {
			case asJSON && isTerminal(a.out):
				return writeJSON(terminalJSON{a.out}, all) // paths are as they are on the disk
			case asJSON:
				return writeJSON(a.out, all)
			}
			return printRecordings(a, list, weeks, len(args) == 0)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// listWeeks are the weeks of seasons in folders, or without any in the data folder.
func listWeeks(paths []string) []seasonrun.Summary {
	if len(paths) == 0 {
		dir, err := recordingsDir()
		if err != nil {
			return nil // listRecordings says why
		}
		paths = []string{filepath.Join(filepath.Dir(dir), "seasons")}
	}
	var out []seasonrun.Summary
	for _, p := range paths {
		out = append(out, seasonrun.List(p)...)
	}
	return out
}

func listRecordings(paths []string) ([]recording.Summary, error) {
	list := []recording.Summary{}
	if len(paths) == 0 {
		dir, err := recordingsDir()
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return list, nil // nothing has been recorded yet
		}
		paths = []string{dir}
	}
	for _, p := range paths {
		if archive.Is(p) {
			s, err := summariseArchive(p)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
			continue
		}
		found, err := recording.List(p)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
		for _, name := range archivesIn(p) {
			// What is no recording is not meant.
			if s, err := summariseArchive(name); err == nil {
				list = append(list, s)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y recording.Summary) int {
		return cmp.Or(y.StartedAt.Compare(x.StartedAt), cmp.Compare(x.Name, y.Name))
	})
	recording.MarkSame(list)
	return list, nil
}

func summariseArchive(path string) (recording.Summary, error) {
	rec, err := openRecording(path)
	if err != nil {
		return recording.Summary{}, err
	}
	defer rec.Close()
	s := rec.Summary()
	if s.StartedAt.Year() <= 1 { // an archive's files have no times; its own is better than none
		if info, err := os.Stat(path); err == nil {
			s.StartedAt = info.ModTime()
		}
	}
	return s, nil
}

// archivesIn are the archives beside the recordings of a folder.
func archivesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() && archive.Is(e.Name()) && len(out) < 1000 {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// Widths of a list's columns: what only describes a recording is cut; what opens it
// is not, and stands last.
const (
	maxArenaShown = 20
	maxSeatShown  = 18
)

// printRecordings prints a list; named, of the recordings in the data folder, by their
// names there.
func printRecordings(a *app, list []recording.Summary, weeks []seasonrun.Summary, named bool) error {
	base := ""
	if named {
		var err error
		if base, err = recordingsDir(); err != nil {
			return err
		}
		defer fmt.Fprintf(a.err, "in %s; those recorded elsewhere, with --output: refbox ls FOLDER\n", text.Line(base))
	}
	rows := [][]string{{"STARTED", "ARENA", "WINNER", "LENGTH", "SEATS", "MACHINES", "INTEGRITY", "RECORDING"}}
	for _, s := range list {
		started := "unknown"
		if s.StartedAt.Year() > 1 {
			started = s.StartedAt.Local().Format("2006-01-02 15:04")
			if !s.Exact {
				started = "~" + started
			}
		}
		row := []string{
			started, fit(s.Arena, maxArenaShown), fit(winner(s), maxSeatShown),
			playback.Format(s.DurationMS), fmt.Sprint(len(s.Seats)), s.Machines, integrity(s), text.Line(openedBy(s, base)),
		}
		if from := s.Integrity.Branched; from != "" {
			row = append(row, text.Line(from))
		}
		rows = append(rows, row)
	}
	if len(list) == 0 && len(weeks) == 0 {
		_, err := fmt.Fprintln(a.out, "no recordings; refbox run makes one")
		return err
	}
	if len(list) > 0 {
		if err := printRows(a.out, rows); err != nil || len(weeks) == 0 {
			return err
		}
		fmt.Fprintln(a.out)
	}
	rows = [][]string{{"SEASON", "WEEK", "WHAT CAME OF IT", "FOLDER, FOR REFBOX SEASON SHOW"}}
	for _, w := range weeks {
		rows = append(rows, []string{fit(w.Season, maxArenaShown), fit(w.Week, maxSeatShown), weekWords(w), text.Line(w.Dir)})
	}
	return printRows(a.out, rows)
}

// openedBy is what opens a recording: its path, or its name below base.
func openedBy(s recording.Summary, base string) string {
	if base != "" {
		if name, err := filepath.Rel(base, s.Path); err == nil {
			return name
		}
	}
	return s.Path
}

// printRows prints rows of cells in columns.
func printRows(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, s := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.Width(s))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, s := range row {
			b.WriteString(text.Pad(s, widths[i]))
			b.WriteString("  ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func fit(s string, w int) string { return text.Truncate(text.Line(s), w, text.Ellipsis) }

// winner is who won, or why nobody did.
func winner(s recording.Summary) string {
	switch {
	case s.Winner != "":
		return s.Winner
	case len(s.DeadHeat) > 0:
		return "dead heat"
	case s.Live:
		return "(live)"
	case s.State == "finished":
		return "nobody"
	}
	return "(" + s.State + ")"
}

func integrity(s recording.Summary) string {
	switch n, breaks := len(s.Integrity.Findings), s.Integrity.Breaks(); {
	case breaks > 0:
		return fmt.Sprintf("%s: %s, %s", s.Badge, text.Count(breaks, "break"), text.Count(n-breaks, "note"))
	case n > 0:
		return fmt.Sprintf("%s: %d", s.Badge, n)
	}
	return s.Badge
}
