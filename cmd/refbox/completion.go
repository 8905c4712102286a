package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/control"
	"refbox/engine/text"
	"refbox/recordings"
)

// source lists what may stand at a place of a command line, each perhaps with a tab
// and a word about it; args are the arguments before it. The shell offers files
// where nothing is listed.
type source func(args []string) []string

// arguments are the sources of commands' arguments, in their order.
func arguments() map[string][]source {
	return map[string][]source{
		"run": {arenas}, "play": {arenas}, "series run": {arenas}, "arena validate": {arenas}, "arena test": {arenas},
		"watch": {heats}, "replay": {heats}, "serve": {heats}, "verify": {heats}, "review": {heats}, "export": {heats}, "analyze": {heats}, "step": {heats},
		"ledger add": {heats},
		"why":        {heats, seats},
		"runbook":    {heats, seats},
		"branch":     {heats, seats},
		"desk":       {heats, actions, actionNeeds, actionNeeds},
	}
}

// flags are the sources of flags' values, by the command; under "" those of every
// command that has the flag.
func flags() map[string]map[string]source {
	words := func(w ...string) source { return func([]string) []string { return w } }
	return map[string]map[string]source{
		"":              {"machines": words("qemu\treal machines", "sim\tsimulated ones")},
		"play":          {"seat": territories},
		"replay":        {"against": heats},
		"review":        {"arena": arenas},
		"season draw":   {"rules": words("refbox", "reference")},
		"register init": {"format": words("toml", "yaml")},
	}
}

// complete makes the shell's completion know what refbox knows.
func complete(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for path, sources := range arguments() {
		c, _, err := root.Find(strings.Fields(path))
		if err != nil {
			continue // a test reads the table
		}
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(sources) {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return candidates(sources[len(args)](args), start)
		}
	}
	every := flags()[""]
	for c := range commands(root) {
		path := strings.TrimPrefix(c.CommandPath(), "refbox ")
		for _, m := range []map[string]source{every, flags()[path]} {
			for name, s := range m {
				if c.Flags().Lookup(name) == nil {
					continue
				}
				//nolint:errcheck // only a flag that isn't there can fail
				c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
					return candidates(s(args), start)
				})
			}
		}
		if shell := c.Name(); c.HasParent() && c.Parent().Name() == "completion" {
			c.Example = completionExamples[shell]
		} else if shell == "completion" {
			c.Example = completionExamples["bash"]
		} else if shell == "help" {
			c.Example = "  refbox help run"
		}
	}
}

var completionExamples = map[string]string{
	"bash":       "  source <(refbox completion bash)",
	"zsh":        "  refbox completion zsh >\"${fpath[1]}/_refbox\"",
	"fish":       "  refbox completion fish >~/.config/fish/completions/refbox.fish",
	"powershell": "  refbox completion powershell | Out-String | Invoke-Expression",
}

// commands are root and all below it.
func commands(root *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		var walk func(c *cobra.Command) bool
		walk = func(c *cobra.Command) bool {
			if !yield(c) {
				return false
			}
			for _, sub := range c.Commands() {
				if !walk(sub) {
					return false
				}
			}
			return true
		}
		walk(root)
	}
}

// candidates are those of all that begin as what was typed does. A name that a shell
// would have to quote, or that would reach the terminal as more than text, is left
// out.
func candidates(all []string, start string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, s := range all {
		word, _, _ := strings.Cut(s, "\t")
		if strings.HasPrefix(word, start) && text.Line(word) == word && !strings.ContainsAny(word, " '\"\\$`;&|<>()*?[]{}!#~") {
			out = append(out, s)
		}
	}
	return out, cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveKeepOrder
}

func arenas([]string) []string {
	var out []string
	for _, id := range arena.Bundled() {
		if p, err := arena.Load(id); err == nil {
			id += "\t" + text.Line(p.Manifest.Arena.DisplayName)
		}
		out = append(out, id)
	}
	return out
}

// heats are the names of the recordings in the data folder, newest first, and then of
// those that the program brings along.
func heats([]string) []string {
	dir, err := recordingsDir()
	if err != nil {
		return recordings.Names()
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return recordings.Names()
	}
	type found struct {
		name string
		at   time.Time
	}
	var list []found
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name(), "events.jsonl")); err == nil {
			list = append(list, found{e.Name(), info.ModTime()})
		}
	}
	slices.SortStableFunc(list, func(x, y found) int { return y.at.Compare(x.at) })
	var out []string
	for _, f := range list {
		out = append(out, f.name)
	}
	return append(out, recordings.Names()...)
}

// seats are those of the heat that is the first argument.
func seats(args []string) []string {
	rec, err := openRecording(args[0])
	if err != nil {
		return nil
	}
	defer rec.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Second) // somebody waits at the prompt
	defer stop()
	rec.Load(ctx) //nolint:errcheck // what could be read is offered
	var out []string
	for _, s := range rec.World(rec.Len()).Seats() {
		out = append(out, s.ID+"\t"+text.Line(s.Agent))
	}
	return out
}

// territories are the seats of the arena that is the first argument.
func territories(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	p, err := arena.Load(args[0])
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range p.Manifest.Territories {
		out = append(out, t.ID)
	}
	return out
}

func actions([]string) []string {
	var out []string
	for _, d := range control.Actions() {
		out = append(out, string(d.Action)+"\t"+text.Line(d.Does))
	}
	return out
}

// actionNeeds are what an action of the desk takes next: a seat, or a kind of fault
// and then a seat.
func actionNeeds(args []string) []string {
	d, ok := control.Describe(control.Action(args[1]))
	switch {
	case !ok:
		return nil
	case d.Fault && len(args) == 2:
		var out []string
		for _, k := range control.FaultKinds() {
			out = append(out, string(k))
		}
		return out
	case d.Fault, d.Seat && len(args) == 2:
		return seats(args)
	}
	return nil
}
