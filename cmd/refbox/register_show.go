package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/drill"
	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui"
	registers "refbox/tui/register"
	"refbox/tui/view"
)

func registerShow(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	var o runOptions
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a register: matrix, cells, recovery points, runbooks, findings; x explains, W asks what if, d drills",
		Long: `Show opens the register's screen, and follows the file while it is edited. Where
there is no terminal the matrix and the findings are printed. Without a file an
example is shown.

d proposes the heat that would close a finding, in an arena of the folder arenas beside
the register, of the data folder, or a bundled one; enter races it, and comes back with
what it is to the store.`,
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
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			return leaveScreen(f.screen(cmd.Context(), file, set, o, nil))
		},
	}
	f.add(c)
	machineFlags(c, &o)
	return c
}

// screen shows a register until it is left, each time that a heat is asked for after
// that heat. With race the heat comes first.
func (f *registerFlags) screen(ctx context.Context, file string, set register.Settings, o runOptions, race *view.Race) (tui.Choice, error) {
	var args []string
	if file != "" {
		args = []string{file}
	}
	for {
		src := f.source(args, set)
		src.Drills = f.drills(file, o)
		if race != nil {
			r, err := f.race(ctx, o, *race)
			if err != nil {
				return tui.Choice{}, err
			}
			src.Drills.Result = r
		}
		s, err := registers.New(src)
		if err != nil {
			return tui.Choice{}, err
		}
		c, err := tui.Show(ctx, screenConfig(f.a), s, f.a.in, f.a.out)
		if err != nil || c.Race == nil {
			return c, err
		}
		race = c.Race
	}
}

// drills are what the screen of a register needs to propose heats.
func (f *registerFlags) drills(file string, o runOptions) *registers.Drills {
	machines := "real machines"
	if o.machines == "sim" {
		machines = "simulated machines"
	}
	return &registers.Drills{File: file, Machines: machines, Arenas: func() ([]drill.Arena, []string) { return arenasFor(file) }}
}

// race runs the heat that a register's screen asked for, and says what came of it. The
// error is one that ends the program.
func (f *registerFlags) race(ctx context.Context, o runOptions, r view.Race) (*registers.Result, error) {
	out := &registers.Result{Store: r.Store, Scenario: r.Scenario}
	pkg, err := arena.Load(r.Arena)
	if err == nil {
		o.output, err = outputDir(runOptions{}, pkg.Manifest.Arena.ID)
	}
	b := &binding{flags: &registerFlags{a: f.a, estate: f.estate, on: f.on, profile: f.profile}, file: r.Register, store: r.Store}
	if err == nil {
		o.bound = b
		err = runHeat(ctx, f.a, r.Arena, o)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.Canceled): // Ctrl-C on the heat's screen
		return nil, err
	}
	var told exitError
	if err != nil && !(errors.As(err, &told) && told.err == nil) {
		out.Lines = append(out.Lines, "no heat: "+text.Line(err.Error()))
		return out, nil
	}
	m, err := measured(ctx, o.output)
	var k *kept
	if err == nil {
		k, err = b.offer(m)
	}
	if err != nil {
		out.Lines = append(out.Lines, "no drill: "+text.Line(err.Error()))
		return out, nil
	}
	out.Lines, out.Diff, out.Keep = append(k.summary(), "recorded in "+text.Line(o.output)), k.Diff, k.edit.Write
	return out, nil
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
	l.f("%s, %d accepted, %s, by the %s rules, as of %s", text.Count(u.Gaps, "gap"), u.Accepted, text.Count(u.Notes, "note"), e.Profile(), e.On())
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
			src := f.source(args, set)
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			src.Drills = f.drills(file, runOptions{machines: "qemu"})
			s, err := registers.New(src)
			if err != nil { // a nil *Screen is no nil Screen
				return nil, err
			}
			return s, nil
		}}
	}
	var out []tui.Entry
	for _, file := range registersIn(dir) {
		out = append(out, entry(filepath.Base(file), "a register of yours", file))
	}
	return append(out, entry("example", "what a register shows, of a fictional estate"))
}
