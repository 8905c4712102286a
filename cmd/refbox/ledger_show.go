package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"refbox/assets"
	"refbox/engine/ledger"
	"refbox/engine/text"
	"refbox/tui"
	ledgers "refbox/tui/ledger"
	"refbox/tui/view"
)

func ledgerShow(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a ledger: scenarios × arenas, the evidence and gates behind a cell, what may not be concluded",
		Long: `Show opens the ledger's screen, and follows its files. Where there is no terminal
the states and findings are printed. Without a file the main ledger is shown, and where
there is none the example model.`,
		Example: "  refbox ledger show\n  refbox ledger show failure-model.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s takes at most one ledger\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			src := ledgerSource(name)
			if asJSON || !canShow(a) {
				return tellLedger(a, src, asJSON)
			}
			s, err := ledgers.New(src)
			if err != nil {
				return err
			}
			choice, err := tui.Show(cmd.Context(), screenConfig(a), s, a.in, a.out)
			return leaveScreen(choice, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// ledgerSource is the ledger that is named, or the main one, or the example.
func ledgerSource(name string) ledgers.Source {
	shown := "main"
	if name != "" {
		shown = filepath.Base(name)
	}
	return ledgers.Source{Name: shown, Open: openRecording, Load: func() (*ledger.Ledger, ledger.Settings, error) {
		set, err := ledgerSettings()
		if err != nil {
			return nil, set, err
		}
		l, err := openLedger(name)
		return l, set, err
	}}
}

// tellLedger prints what the screen shows.
func tellLedger(a *app, src ledgers.Source, asJSON bool) error {
	l, set, err := src.Load()
	if err != nil {
		return err
	}
	p := l.Derive(set)
	if asJSON {
		return writeJSON(a.out, struct {
			File string `json:"file"`
			Head string `json:"head,omitempty"`
			*ledger.Picture
			Prohibited []string `json:"prohibited_inference"`
		}{l.File, l.Head, p, l.Model.Prohibited})
	}
	out := &lines{w: a.out}
	for i := range p.Rows {
		r := &p.Rows[i]
		out.f("%s", rowText(r))
		if !r.Injectable {
			out.f("    %s", r.NotInjectable)
		}
	}
	printFindings(out, p.Findings)
	for _, line := range l.Model.Prohibited {
		out.f("prohibited: %s", line)
	}
	out.f("%s", headline(p))
	return out.err
}

// ledgerEntries are the lobby's: the ledgers in a folder, then the example.
func ledgerEntries(dir string) []tui.Entry {
	entry := func(name, note string, src ledgers.Source) tui.Entry {
		return tui.Entry{Group: "Ledgers", Name: name, Note: note, Open: func() (view.Screen, error) {
			s, err := ledgers.New(src)
			if err != nil { // a nil *Screen is no nil Screen
				return nil, err
			}
			return s, nil
		}}
	}
	var out []tui.Entry
	files, _ := os.ReadDir(dir) // nobody keeps one there yet
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(dir, file.Name(), ledger.LogName)); err == nil {
			out = append(out, entry(text.Line(file.Name()), "a ledger of yours", ledgerSource(filepath.Join(dir, file.Name()))))
		}
	}
	example := ledgers.Source{Name: "example", Open: openRecording, Load: func() (*ledger.Ledger, ledger.Settings, error) {
		set, err := ledgerSettings()
		if err != nil {
			return nil, set, err
		}
		base, err := basePolicy()
		if err != nil {
			return nil, set, err
		}
		l, err := ledger.Parse("the example model", assets.LedgerModel(), base)
		return l, set, err
	}}
	return append(out, entry("example", "what a ledger shows: a failure model, and no evidence yet", example))
}
