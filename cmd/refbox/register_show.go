package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"refbox/assets"
	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui"
	registers "refbox/tui/register"
	"refbox/tui/view"
)

func registerShow(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a register: matrix, cells, recovery points, runbooks, findings; x explains, W asks what if",
		Long: `Show opens the register's screen, and follows the file while it is edited. Where
there is no terminal the matrix and the findings are printed. Without a file an
example is shown.`,
		Example: "  refbox register show register.toml\n  refbox register show",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s takes at most one register\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := f.settings()
			if err != nil {
				return err
			}
			src := f.source(args, set)
			if f.asJSON || !canShow(a) {
				return f.failed(f.print(src))
			}
			s, err := registers.New(src)
			if err != nil {
				return err
			}
			c, err := tui.Show(cmd.Context(), screenConfig(a), s, a.in, a.out)
			return leaveScreen(c, err)
		},
	}
	f.add(c)
	return c
}

// source is the register that is named, or the example.
func (f *registerFlags) source(args []string, set register.Settings) registers.Source {
	if len(args) == 0 {
		return registers.Source{Name: "example", Load: func() (*register.Explainer, error) {
			src, err := register.Parse("example.toml", assets.Register())
			if err == nil && f.estate != "" {
				err = src.LoadEstate(f.estate)
			}
			if err != nil {
				return nil, err
			}
			return src.Explainer(set)
		}}
	}
	out := registers.Source{Name: filepath.Base(args[0]), Files: []string{args[0]}, Load: func() (*register.Explainer, error) {
		src, err := f.load(args[0])
		if err != nil {
			return nil, err
		}
		return src.Explainer(set)
	}}
	if f.estate != "" {
		out.Files = append(out.Files, f.estate)
	}
	return out
}

func (f *registerFlags) print(src registers.Source) error {
	e, err := src.Load()
	if err != nil {
		return err
	}
	if f.asJSON {
		_, err = fmt.Fprintf(f.a.out, "%s\n", e.Document().Encode())
		return err
	}
	return printRegister(f.a.out, e)
}

// printRegister tells a register in lines: what becomes of each store in each
// scenario, today and as designed, then the findings.
func printRegister(w io.Writer, e *register.Explainer) error {
	l := &lines{w: w}
	doc := e.Document()
	wide := 0
	for i := range doc.Scenarios {
		wide = max(wide, text.Width(doc.Scenarios[i].ID))
	}
	for i := range doc.Stores {
		s := &doc.Stores[i]
		l.f("%s: %s", s.ID, s.Today)
		for k := range doc.Scenarios {
			today, design := doc.Cell(register.CurrentPosture, i, k), doc.Cell(register.TargetPosture, i, k)
			told := cellText(today)
			if d := cellText(design); d != told {
				told += "; as designed " + d
			}
			l.f("  %s  %s", text.Pad(doc.Scenarios[k].ID, wide), told)
		}
	}
	for i := range doc.Findings {
		printLine(l, "", &doc.Findings[i])
	}
	u := &doc.Summary
	l.f("%d gaps, %d accepted, %d notes, by the %s rules, as of %s", u.Gaps, u.Accepted, u.Notes, e.Profile(), e.On())
	return l.err
}

// registerEntries are the lobby's: the registers in a folder, then the example.
func registerEntries(dir string) []tui.Entry {
	f := &registerFlags{}
	entry := func(name, note string, args ...string) tui.Entry {
		return tui.Entry{Group: "Registers", Name: name, Note: note, Open: func() (view.Screen, error) {
			set, err := f.settings()
			if err != nil {
				return nil, err
			}
			s, err := registers.New(f.source(args, set))
			if err != nil { // a nil *Screen is no nil Screen
				return nil, err
			}
			return s, nil
		}}
	}
	var out []tui.Entry
	files, _ := os.ReadDir(dir) // nobody keeps one there yet
	for _, file := range files {
		switch strings.ToLower(filepath.Ext(file.Name())) {
		case ".toml", ".yaml", ".yml", ".json":
			out = append(out, entry(file.Name(), "a register of yours", filepath.Join(dir, file.Name())))
		}
	}
	return append(out, entry("example", "what a register shows, of a fictional estate"))
}
