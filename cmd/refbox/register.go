package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"refbox/engine/register"
	"refbox/engine/text"
)

// registerFlags are what every command that derives a register takes.
type registerFlags struct {
	a       *app
	estate  string
	on      string
	profile string
	asJSON  bool
}

func newRegister(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "register",
		Short: "Datastore registers: recovery points, matrix and findings of an estate",
		Long: `A datastore register declares where an estate's stores are written and where
their copies are; refbox derives recovery points, what becomes of each store in
each scenario, and what is wrong. Registers are JSON, TOML or YAML.`,
		Example: "  refbox register init register.toml\n  refbox register show register.toml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("register takes a command: show, init, check, derive, explain, plan, diff or drill\ntry: refbox register --help")
		},
	}
	c.AddCommand(registerCheck(a), registerDerive(a), registerExplain(a), registerPlan(a), registerDiff(a), registerInit(a), registerShow(a), registerDrill(a))
	return c
}

func (f *registerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.estate, "estate", "", "take the estate's facts (nodes, targets, acceptances …) from this file")
	c.Flags().StringVar(&f.on, "on", "", "evaluate as of this day, 2006-01-02 (default: the document's, else today)")
	c.Flags().StringVar(&f.profile, "profile", "", "rules of findings: full, or seed for the original's only (default: the document's, else full; seed for a rendered document without one)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

func (f *registerFlags) settings() (register.Settings, error) {
	set := register.Settings{Profile: register.Profile(f.profile), On: register.Date(f.on), Today: register.Date(time.Now().Format(time.DateOnly))}
	if p := set.Profile; p != "" && p != register.Seed && p != register.Full {
		return set, usageError("--profile is seed or full, not %q", f.profile)
	}
	if _, ok := register.ParseDate(f.on); f.on != "" && !ok {
		return set, usageError("--on %q is not a day that exists; write it as 2006-01-02", f.on)
	}
	return set, nil
}

func (f *registerFlags) load(file string) (*register.Source, error) {
	src, err := register.Load(file)
	if err == nil && f.estate != "" {
		err = src.LoadEstate(f.estate)
	}
	return src, err
}

// failed tells an unsound register as JSON where that is wanted. A file that
// is not there stays an ordinary error.
func (f *registerFlags) failed(err error) error {
	var bad *register.Invalid
	if !f.asJSON || !errors.As(err, &bad) {
		return err
	}
	if err := writeJSON(f.a.out, struct {
		Holds    bool               `json:"holds"`
		Problems []register.Problem `json:"problems"`
		More     int                `json:"more"`
	}{false, bad.Problems, bad.More}); err != nil {
		return err
	}
	return exitError{exitBroken, nil}
}

// on runs a command on one loaded register.
func (f *registerFlags) run(file string, do func(*register.Source, register.Settings) error) error {
	set, err := f.settings()
	if err != nil {
		return err
	}
	src, err := f.load(file)
	if err == nil {
		err = do(src, set)
	}
	return f.failed(err)
}

func registerCheck(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a register: sound, and if it is rendered, what its declared part derives",
		Long: `Check reads a register and names what is wrong with it, by its place. Of a
rendered register every derived field is dropped, derived again and compared;
any difference exits 1. Findings are told, but they are not differences.`,
		Example: "  refbox register check register.toml\n  refbox register check register.json --json",
		Args:    exactArgs(1, "one register"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], func(src *register.Source, set register.Settings) error {
				r, err := src.Check(set)
				if err != nil {
					return err
				}
				if f.asJSON {
					err = writeJSON(a.out, r)
				} else {
					err = printCheck(a.out, r)
				}
				if err == nil && !r.Holds {
					return exitError{exitBroken, nil}
				}
				return err
			})
		},
	}
	f.add(c)
	return c
}

func registerDerive(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	var output string
	c := &cobra.Command{
		Use:   "derive FILE",
		Short: "Render a register: everything that is declared and derived, as JSON",
		Long: `Derive drops what a register says about derived fields, derives them, and prints
the whole as JSON. With --output the file is replaced at once or not at all.`,
		Example: "  refbox register derive register.toml --output register.json",
		Args:    exactArgs(1, "one register"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], func(src *register.Source, set register.Settings) error {
				doc, err := src.Derive(set)
				if err != nil {
					return err
				}
				if output == "" {
					_, err = a.out.Write(doc.Encode())
					return err
				}
				return replaceFile(output, doc.Encode())
			})
		},
	}
	f.add(c)
	c.Flags().Lookup("json").Usage = "print JSON (which derive always does)"
	c.Flags().StringVarP(&output, "output", "o", "", "write to this file")
	return c
}

func registerExplain(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	c := &cobra.Command{
		Use:   "explain FILE CODE|SCENARIO STORE",
		Short: "Explain a finding, or a cell of the matrix: the inputs and the rule that fired or did not",
		Example: `  refbox register explain register.toml no-offsite-copy app-db
  refbox register explain register.toml lose-server app-db`,
		Args: exactArgs(3, "a register, a finding's code or a scenario, and a store"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], func(src *register.Source, set register.Settings) error {
				e, err := src.Explainer(set)
				if err != nil {
					return err
				}
				return explainRegister(a, e, args[1], args[2], f.asJSON)
			})
		},
	}
	f.add(c)
	return c
}

func explainRegister(a *app, e *register.Explainer, what, store string, asJSON bool) error {
	code := false
	for _, r := range register.Rules() {
		code = code || string(r.Code) == what
	}
	if code {
		x, err := e.Finding(register.Code(what), store)
		if err != nil {
			return usageError("%w", err)
		}
		if asJSON {
			return writeJSON(a.out, x)
		}
		return printFinding(a.out, &x)
	}
	scenario := false
	for i := range e.Document().Scenarios {
		scenario = scenario || e.Document().Scenarios[i].ID == what
	}
	if !scenario {
		return usageError("%q is neither a finding nor a scenario of this register\nfindings: %s\nscenarios: %s", what, codes(), scenarios(e.Document()))
	}
	var cells []register.CellExplanation
	for _, p := range []register.Posture{register.TargetPosture, register.CurrentPosture} {
		x, err := e.Cell(p, store, what)
		if err != nil {
			return usageError("%w", err)
		}
		cells = append(cells, x)
	}
	if asJSON {
		return writeJSON(a.out, cells)
	}
	return printCells(a.out, cells)
}

func codes() string {
	var list []string
	for _, r := range register.Rules() {
		list = append(list, string(r.Code))
	}
	return strings.Join(list, ", ")
}

func scenarios(doc *register.Document) string {
	var list []string
	for i := range doc.Scenarios {
		list = append(list, doc.Scenarios[i].ID)
	}
	return strings.Join(list, ", ")
}

func registerPlan(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	c := &cobra.Command{
		Use:     "plan FILE",
		Short:   "Say which planned copies close which gaps, and which new ones they open",
		Example: "  refbox register plan register.toml",
		Args:    exactArgs(1, "one register"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], func(src *register.Source, set register.Settings) error {
				p, err := src.Plan(set)
				if err != nil {
					return err
				}
				if f.asJSON {
					return writeJSON(a.out, p)
				}
				return printPlan(a.out, p)
			})
		},
	}
	f.add(c)
	return c
}

func registerDiff(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	c := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare two registers: findings opened and closed, cells changed",
		Long: `Diff derives both registers, by the same rules, and compares what follows.
Exit 0 whatever differs; --json has the numbers that a gate may want.`,
		Example: "  refbox register diff old.toml new.toml",
		Args:    exactArgs(2, "two registers"),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := f.settings()
			if err != nil {
				return err
			}
			changes, err := f.diff(args[0], args[1], set)
			if err != nil {
				return f.failed(err)
			}
			if f.asJSON {
				return writeJSON(a.out, changes)
			}
			return printChanges(a.out, changes)
		},
	}
	f.add(c)
	return c
}

// diff derives both by the same rules: where they ask for different ones, by
// all.
func (f *registerFlags) diff(before, after string, set register.Settings) (*register.Changes, error) {
	var srcs [2]*register.Source
	var own [2]register.Settings
	for i, file := range []string{before, after} {
		src, err := f.load(file)
		if err != nil {
			return nil, err
		}
		if own[i], err = src.Resolve(set); err != nil {
			return nil, err
		}
		srcs[i] = src
	}
	if own[0].Profile != own[1].Profile {
		own[0].Profile, own[1].Profile = register.Full, register.Full
	}
	var docs [2]*register.Document
	for i := range srcs {
		var err error
		if docs[i], err = srcs[i].Derive(own[i]); err != nil {
			return nil, err
		}
	}
	return register.Diff(docs[0], docs[1]), nil
}

func registerInit(a *app) *cobra.Command {
	var format string
	var asJSON bool
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented starter register",
		Long: `Init writes a register of a small estate, with a comment on everything, to begin
your own from: TOML or YAML, by the file's name or --format. Without a file it
goes to the output. A file that exists is left alone.`,
		Example: "  refbox register init register.toml\n  refbox register init --format yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s takes at most one file\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			return initRegister(a, file, format, asJSON)
		},
	}
	c.Flags().StringVar(&format, "format", "", "toml or yaml (default: by the file's name, else toml)")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON what was written where")
	return c
}

func initRegister(a *app, file, format string, asJSON bool) error {
	if format == "" {
		switch ext := strings.ToLower(filepath.Ext(file)); ext {
		case ".yaml", ".yml":
			format = "yaml"
		case ".toml", "":
			format = "toml"
		default:
			format = strings.TrimPrefix(ext, ".")
		}
	}
	data, err := register.Starter(format)
	if err != nil {
		return usageError("%w", err)
	}
	if file == "" {
		if asJSON {
			return writeJSON(a.out, map[string]string{"format": format, "text": string(data)})
		}
		_, err := a.out.Write(data)
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return brokenError(fmt.Errorf("%s exists and is left alone; name another file", file))
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err2 := out.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.out, map[string]string{"format": format, "file": file})
	}
	_, err = fmt.Fprintf(a.out, "wrote %s\nnext: refbox register check %s\n", text.Line(file), text.Shell(file))
	return err
}

// replaceFile writes a file whole or not at all.
func replaceFile(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".refbox-register-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when it was renamed
	defer f.Close()
	if _, err = f.Write(data); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
