package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/drill"
	"refbox/engine/recording"
	"refbox/engine/register"
	"refbox/engine/text"
)

// binding is the store of a register that a heat is bound to.
type binding struct {
	flags *registerFlags
	file  string
	store string // "": the one that the arena names
}

// parseBinding reads REGISTER:STORE or REGISTER. Names of files and stores may both
// have colons: the longest part that is a file is one.
func parseBinding(a *app, s string) (*binding, error) {
	b := &binding{flags: &registerFlags{a: a}, file: s}
	for at := len(s); at > 0; at = strings.LastIndexByte(s[:at], ':') {
		if st, err := os.Stat(s[:at]); err == nil && !st.IsDir() {
			b.file = s[:at]
			b.store = strings.TrimPrefix(s[at:], ":")
			return b, nil
		}
	}
	file, _, _ := strings.Cut(s, ":")
	return nil, usageError("--drill takes REGISTER:STORE, or a register of which the arena names a store: %s is no file", text.Line(file))
}

// bind reads what a heat is bound to, before anything is started for it; nil for
// nothing.
func bind(a *app, pkg *arena.Package, o runOptions) (*binding, error) {
	b := o.bound
	if b == nil {
		if o.drill == "" {
			return nil, nil
		}
		var err error
		if b, err = parseBinding(a, o.drill); err != nil {
			return nil, err
		}
	}
	return b, b.ready(pkg.Manifest)
}

// kept is what a heat has for a register, and what the register would be with it.
type kept struct {
	drill.Offer
	File    string            `json:"register"`
	Changes *register.Changes `json:"changes"`
	Diff    string            `json:"diff"`

	edit  *register.Edit
	file  *register.Document // as it lies on the disk
	after *register.Document
}

// keep makes the change.
func (k *kept) keep() error {
	if err := k.edit.Write(); err != nil {
		return err
	}
	k.file = k.after
	return nil
}

func (b *binding) offer(m drill.Measure) (*kept, error) {
	set, err := b.flags.settings()
	if err != nil {
		return nil, err
	}
	src, err := b.flags.load(b.file)
	if err != nil {
		return nil, err
	}
	before, err := src.Derive(set)
	if err != nil {
		return nil, err
	}
	k := &kept{File: b.file, file: before}
	if k.Offer, err = m.For(before, b.store); err != nil {
		return nil, err
	}
	if k.edit, err = src.Add(k.Additions); err != nil {
		return nil, err
	}
	if k.after, err = k.edit.After.Derive(set); err != nil {
		return nil, err
	}
	k.Changes, k.Diff = register.Diff(before, k.after), k.edit.Diff()
	return k, nil
}

// ready makes sure, before a heat is raced for it, that the binding can be judged.
func (b *binding) ready(m *arena.Manifest) error {
	if m.Procedure == nil {
		return usageError("arena %s drills nothing: its manifest has no procedure and no clock", m.Arena.ID)
	}
	none := drill.Measure{Arena: m.Arena.ID, Procedure: register.Procedure(*m.Procedure)}
	if m.Store != nil {
		none.Store = *m.Store
	}
	_, err := b.offer(none)
	return err
}

// summary tells an offer in lines: the times, what they are held against, what it
// opens and closes.
func (k *kept) summary() []string {
	what := "drill of"
	if !k.Drill() {
		what = "rehearsal for"
	}
	out := []string{fmt.Sprintf("%s %s: %s, from %s to %s", what, k.Store, k.Kind, k.Measure.From, k.Measure.To)}
	for _, s := range k.Measure.Seats {
		out = append(out, fmt.Sprintf("%s by %s: %s", s.Territory, s.Agent, s.Words()))
	}
	for _, v := range k.Verdicts {
		out = append(out, v.Territory+": "+v.String())
	}
	for _, why := range k.Because {
		out = append(out, "no drill, since "+why)
	}
	if k.Nothing != "" {
		return append(out, "nothing to keep: "+k.Nothing)
	}
	switch {
	case k.Diff == "":
		return append(out, "the register has it already")
	case len(k.Changes.Closed)+len(k.Changes.Opened)+len(k.Changes.Turned) == 0:
		out = append(out, "closes no finding, opens none")
	}
	return append(out, k.findings()...)
}

// brief tells an offer in a few short lines, for a screen.
func (k *kept) brief() []string {
	what := "drill of"
	if !k.Drill() {
		what = "rehearsal for"
	}
	first := fmt.Sprintf("%s %s: %s", what, k.Store, k.Kind)
	for _, s := range k.Measure.Seats {
		if s.Outcome == drill.Censored {
			continue
		}
		first += fmt.Sprintf("; %s %s", s.Territory, s.Words())
		for _, v := range k.Verdicts {
			if v.Territory == s.Territory {
				first += ", " + v.Short()
			}
		}
	}
	out := []string{first}
	switch {
	case k.Nothing != "":
		return append(out, "nothing to keep: "+k.Nothing)
	case !k.Drill():
		why := "closes nothing, since " + k.Because[0]
		if n := len(k.Because) - 1; n > 0 {
			why += fmt.Sprintf(" (and %s)", text.Count(n, "other reason"))
		}
		out = append(out, why)
	}
	return append(append(out, k.findings()...), "keep it: "+k.command())
}

// findings are those that the offer closes, opens and turns.
func (k *kept) findings() (out []string) {
	for i := range k.Changes.Closed {
		out = append(out, "closes "+brief(&k.Changes.Closed[i]))
	}
	for i := range k.Changes.Opened {
		out = append(out, "opens "+brief(&k.Changes.Opened[i])+": "+k.Changes.Opened[i].Detail)
	}
	for i := range k.Changes.Turned {
		out = append(out, "turns "+brief(&k.Changes.Turned[i].Before)+" into "+brief(&k.Changes.Turned[i].After))
	}
	return out
}

// statement is the store's recovery time by the last restore or promotion that passed,
// as the register has it; "" for what has no time there.
func (k *kept) statement() string {
	if k.Kind != register.Restoring && k.Kind != register.Promoting {
		return ""
	}
	i := slices.IndexFunc(k.file.Stores, func(s register.Store) bool { return s.ID == k.Store })
	s := &k.file.Stores[i]
	var d *register.Drill
	switch {
	case k.Kind == register.Restoring && s.Restore != nil:
		d = s.Restore.LastPassed()
	case k.Kind == register.Promoting && s.Promotion != nil:
		d = s.Promotion.LastPassed()
	}
	switch {
	case s.Objectives == nil:
		return s.ID + " declares no recovery time"
	case d == nil:
		return fmt.Sprintf("%s: no %s of it has passed yet; its objective (RTO) is %s", s.ID, k.Kind, register.Span(&s.Objectives.RTOMinutes))
	case *d.MeasuredMinutes > s.Objectives.RTOMinutes:
		return fmt.Sprintf("%s: its last %s that passed took %s, OVER its objective (RTO) of %s", s.ID, k.Kind, register.Span(d.MeasuredMinutes), register.Span(&s.Objectives.RTOMinutes))
	}
	return fmt.Sprintf("%s: its last %s that passed took %s, within its objective (RTO) of %s", s.ID, k.Kind, register.Span(d.MeasuredMinutes), register.Span(&s.Objectives.RTOMinutes))
}

// command keeps the offer.
func (k *kept) command() string {
	file := text.Line(k.File)
	if k.Measure.Store != k.Store {
		file += ":" + k.Store
	}
	return "refbox register drill " + text.Shell(file) + " " + text.Shell(k.Measure.Heat)
}

// offeredDrills are what a heat that has ended has for the register that it is bound
// to, or else for those of the data folder that have the store that its arena names.
// What could not be judged is told, each with its register.
func offeredDrills(ctx context.Context, a *app, rec *recording.Recording, bound *binding) (out []*kept, trouble []error) {
	to := []*binding{bound}
	if bound == nil {
		m := rec.Manifest()
		if m == nil || m.Store == nil || m.Procedure == nil {
			return nil, nil
		}
		dir, err := registersDir()
		if err != nil {
			return nil, nil // the heat was recorded, so that is no news
		}
		to = nil
		for _, file := range registersIn(dir) {
			to = append(to, &binding{flags: &registerFlags{a: a}, file: file})
		}
	}
	if len(to) == 0 {
		return nil, nil
	}
	m, err := drill.Of(ctx, rec)
	if err != nil && bound == nil {
		return nil, nil // nobody asked, and the heat's own end says how it ended
	} else if err != nil {
		return nil, []error{fmt.Errorf("for %s: %w", bound.file, err)}
	}
	for _, b := range to {
		k, err := b.offer(m)
		switch {
		case err == nil:
			out = append(out, k)
		case bound != nil || !errors.Is(err, drill.ErrNoStore):
			trouble = append(trouble, fmt.Errorf("for %s: %w", b.file, err))
		}
	}
	return out, trouble
}

// printDrills tells them at a heat's end, with the command that keeps each.
func printDrills(ctx context.Context, a *app, rec *recording.Recording, bound *binding) {
	list, trouble := offeredDrills(ctx, a, rec, bound)
	for _, err := range trouble {
		fmt.Fprintf(a.out, "drill     none %s\n", text.Line(err.Error()))
	}
	for _, k := range list {
		head := "drill    "
		for _, l := range k.summary() {
			fmt.Fprintf(a.out, "%s %s\n", head, text.Line(l))
			head = "         "
		}
		if k.Diff != "" {
			fmt.Fprintf(a.out, "%s %s\n", head, k.command())
		}
	}
}

// registersDir is where a user's registers are.
func registersDir() (string, error) {
	dir, err := recordingsDir()
	return filepath.Join(filepath.Dir(dir), "registers"), err
}

// registersIn are the registers in a folder.
func registersIn(dir string) []string {
	var out []string
	files, _ := os.ReadDir(dir) // nobody keeps one there yet
	for _, f := range files {
		switch strings.ToLower(filepath.Ext(f.Name())) {
		case ".toml", ".yaml", ".yml", ".json":
			out = append(out, filepath.Join(dir, f.Name()))
		}
	}
	return out
}

func registerDrill(a *app) *cobra.Command {
	f := &registerFlags{a: a}
	var yes bool
	c := &cobra.Command{
		Use:   "drill REGISTER[:STORE] HEAT...",
		Short: "Say what heats are to a store: drills or rehearsals, their times against its objectives; add them",
		Long: `Drill measures recorded heats by the clock that their arena declares, holds the times
against what the store promises, and shows which findings that would close and open,
and the change to the file. In a terminal it asks before it makes the change; else
--yes makes it. Comments, order and every other byte of the file stay.

A heat is a drill of a store when its arena names the store and the copy of it that its
machines were made from, and it ran on real machines; else it is a rehearsal, which is
kept beside the drills and closes nothing. A seat whose heat ended because another was
there first is censored, never failed. Without STORE the one that the arena names is
meant.`,
		Example: "  refbox register drill mine.toml ./heat\n  refbox register drill mine.toml:app-db ./heat --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError("%s takes a register and one heat or more\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := parseBinding(a, args[0])
			if err != nil {
				return err
			}
			b.flags = f
			return f.failed(keepDrills(cmd.Context(), a, b, args[1:], yes))
		},
	}
	f.add(c)
	c.Flags().BoolVar(&yes, "yes", false, "make the change without asking")
	return c
}

// keepDrills judges heats one after the other, each against the register with those
// before it.
func keepDrills(ctx context.Context, a *app, b *binding, heats []string, yes bool) error {
	var list []drill.Measure
	told := []*kept{}
	added := 0
	for _, name := range heats {
		m, err := measured(ctx, name)
		if err != nil {
			return err
		}
		list = append(list, m)
		k, err := b.offer(m)
		if err != nil {
			return brokenError(err)
		}
		told = append(told, k)
		if !b.flags.asJSON {
			printKept(a, k)
		}
		if k.Diff == "" {
			continue
		}
		if !yes && (b.flags.asJSON || !isTerminal(a.in) || !isTerminal(a.err)) {
			if !b.flags.asJSON {
				fmt.Fprintln(a.err, "nothing is changed; --yes makes the change")
			}
			continue
		}
		if !yes {
			fmt.Fprintf(a.err, "Add this to %s? [Y/n] ", text.Line(b.file))
			if ok, err := confirm(ctx, a); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if err := k.keep(); err != nil {
			return brokenError(err)
		}
		added += len(k.Additions)
	}
	sums := drill.Sum(list)
	if b.flags.asJSON {
		return writeJSON(a.out, struct {
			Heats []*kept         `json:"heats"`
			Added int             `json:"added"`
			Arena []drill.Figures `json:"arenas"`
		}{told, added, sums})
	}
	l := &lines{w: a.out}
	for _, f := range sums {
		l.f("%s", f)
	}
	if s := told[len(told)-1].statement(); s != "" {
		l.f("%s", s)
	}
	l.f("%d added to %s", added, b.file)
	return l.err
}

func measured(ctx context.Context, name string) (drill.Measure, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return drill.Measure{}, err
	}
	rec, err := openRecording(path)
	if err != nil {
		return drill.Measure{}, err
	}
	defer rec.Close()
	m, err := drill.Of(ctx, rec)
	if err != nil && ctx.Err() == nil {
		err = brokenError(fmt.Errorf("%s: %w", text.Line(name), err))
	}
	return m, err
}

// printKept shows an offer and the change that it would make.
func printKept(a *app, k *kept) {
	for _, l := range k.summary() {
		fmt.Fprintln(a.out, text.Line(l))
	}
	if k.Diff != "" {
		fmt.Fprintf(a.out, "\n%s\n", strings.TrimRight(k.Diff, "\n"))
	}
}

// arenasFor are the arenas that a register's drills could be raced in: the bundled
// ones, those of the data folder, and those beside the register. What cannot be read
// is told.
func arenasFor(file string) (out []drill.Arena, trouble []string) {
	// The most particular come first: they are proposed first.
	var dirs []string
	if file != "" {
		dirs = append(dirs, filepath.Join(filepath.Dir(file), "arenas"))
	}
	if dir, err := recordingsDir(); err == nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(dir), "arenas"))
	}
	add := func(name string) {
		p, err := arena.Load(name)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			trouble = append(trouble, text.Line(first))
			return
		}
		out = append(out, drill.Arena{Name: name, Manifest: p.Manifest})
	}
	for _, dir := range dirs {
		files, _ := os.ReadDir(dir) // nobody has any there
		for _, f := range files {
			name := filepath.Join(dir, f.Name())
			if _, err := os.Stat(filepath.Join(name, "arena.toml")); err == nil {
				add(name)
			} else if _, err := os.Stat(filepath.Join(name, "arena.json")); err == nil {
				add(name)
			}
		}
	}
	for _, id := range arena.Bundled() {
		add(id)
	}
	return out, trouble
}
