package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"refbox/engine/bounded"
	"refbox/engine/season"
	seasonrun "refbox/engine/season/run"
	"refbox/engine/text"
)

func newSeason(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "season",
		Short: "Seasons: draw, run, show and audit a week's bracket",
		Long: `A season's manifest names entrants and arenas. A week of it is drawn once, before
anything is run, by public rules from a public seed; then it is run heat by heat,
and everything that was written can be audited.

Rules of the draw: --rules refbox, the default, writes the rule set into the draw
and takes its luck from nonces that several people committed to, so that nobody
chooses it alone; --rules reference draws byte for byte as the reference does.`,
		Example: `  refbox season nonce cup.toml --week 2026-W49 --name ann --output ann.json >> commitments.json
  refbox season draw cup.toml --week 2026-W49 --commitments commitments.json --nonce ann.json --nonce bob.json
  refbox season run DIR --parallel 2
  refbox season show DIR
  refbox season audit DIR`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("season takes a command: nonce, draw, run, show, list or audit\ntry: refbox season --help")
		},
	}
	c.AddCommand(seasonNonce(a), seasonDraw(a), seasonRun(a), seasonShow(a), seasonList(a), seasonAudit(a))
	return c
}

// seasonsDir is where weeks are drawn unless --output says otherwise.
func seasonsDir(id, week string) (string, error) {
	recordings, err := recordingsDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(recordings), "seasons", id, week), nil
}

func seasonNonce(a *app) *cobra.Command {
	var week, name, output string
	c := &cobra.Command{
		Use:   "nonce MANIFEST",
		Short: "Make a nonce for a draw, and the commitment to it",
		Long: `Makes a contributor's nonce for the draw of a week, writes it to a file that only
its owner can read, and prints the commitment to it. Publish the commitment; show
the nonce only when the commitments of all contributors are public. The commitments of
all, one after the other in one file, are what draw takes as --commitments.`,
		Example: "  refbox season nonce cup.toml --week 2026-W49 --name ann --output ann.json >> commitments.json",
		Args:    exactArgs(1, "one season manifest"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := season.ReadManifest(args[0])
			if err != nil {
				return brokenError(err)
			}
			if !season.Safe(week) || !season.Safe(name) || output == "" {
				return usageError("nonce needs --week, --name (A-Z a-z 0-9 . _ -) and --output")
			}
			nonce := season.NewSecret()
			mine := season.Contribution{Contributor: name, Commitment: season.Commit(m.ID, week, name, nonce), Nonce: nonce}
			data, err := json.MarshalIndent(mine, "", "  ")
			if err != nil {
				return err
			}
			f, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("the nonce's file: %w", err)
			}
			if _, err := f.Write(append(data, '\n')); err != nil {
				return errors.Join(err, f.Close())
			}
			if err := f.Close(); err != nil {
				return err
			}
			return writeJSON(a.out, map[string]string{"contributor": mine.Contributor, "commitment": mine.Commitment})
		},
	}
	c.Flags().StringVar(&week, "week", "", "the week's label")
	c.Flags().StringVar(&name, "name", "", "the contributor")
	c.Flags().StringVar(&output, "output", "", "the file that takes the nonce")
	return c
}

type drawOptions struct {
	week, salt, output, rules, commitments string
	entrants                               int
	nonces                                 []string
}

func seasonDraw(a *app) *cobra.Command {
	var o drawOptions
	c := &cobra.Command{
		Use:   "draw MANIFEST",
		Short: "Draw a week",
		Long: `Draws a week's entrants, arenas, bracket and seats into a folder of its own, with
the secret that its heats' values come from (readable by its owner alone, revealed
when the week is complete). A week is drawn once: nothing is overwritten.`,
		Example: "  refbox season draw cup.toml --week 2026-W49\n" +
			"  refbox season draw cup.toml --week 2026-W49 --commitments all.json --nonce ann.json --nonce bob.json",
		Args: exactArgs(1, "one season manifest"),
		RunE: func(_ *cobra.Command, args []string) error { return drawWeek(a, args[0], o) },
	}
	f := c.Flags()
	f.StringVar(&o.week, "week", "", "the week's label, such as 2026-W49")
	f.IntVar(&o.entrants, "entrants", 0, "draw this many entrants from the fleet or pool (default: all enter)")
	f.StringVar(&o.salt, "salt", "", "a text of the organiser's that goes into the draw seed")
	f.StringVar(&o.output, "output", "", "the week's folder (default: one under the data folder)")
	f.StringVar(&o.rules, "rules", "refbox", "refbox, or reference for a draw as the reference makes it")
	f.StringVar(&o.commitments, "commitments", "", "the published commitments: a file with what refbox season nonce printed to each contributor")
	f.StringArrayVar(&o.nonces, "nonce", nil, "a file with a contributor's nonce; one for every commitment")
	return c
}

func drawWeek(a *app, manifest string, o drawOptions) error {
	if !season.Safe(o.week) {
		return usageError("draw needs --week with a label of A-Z a-z 0-9 . _ -")
	}
	if o.entrants < 0 {
		return usageError("--entrants is a number of entrants, not %d", o.entrants)
	}
	order := season.Order{Week: o.week, Salt: o.salt, Entrants: o.entrants, Secret: season.NewSecret()}
	m, err := season.ReadManifest(manifest)
	if err != nil {
		return brokenError(err)
	}
	switch o.rules {
	case "reference":
		if o.commitments != "" || len(o.nonces) > 0 {
			return usageError("--rules reference knows no nonces")
		}
	case "refbox":
		rules := season.Refbox
		rules.Program, rules.ManifestSHA256 = "refbox "+version, m.SHA256
		order.RuleSet = &rules
		if order.Nonces, err = contributions(o); err != nil {
			return err
		}
	default:
		return usageError("--rules is refbox or reference, not %q", o.rules)
	}
	arenas, err := seasonrun.Arenas(m, o.rules == "reference")
	if err != nil {
		return brokenError(err)
	}
	d, err := season.NewDraw(m, arenas, order)
	if err != nil {
		return brokenError(err)
	}
	dir := o.output
	if dir == "" {
		if dir, err = seasonsDir(m.ID, o.week); err != nil {
			return err
		}
	}
	if err := seasonrun.Create(dir, d, order.Secret); err != nil {
		return brokenError(err)
	}
	docs, err := season.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := printView(a, docs.View(nil), nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\nseed    %s\ndigest  %s\nfolder  %s\nrun     refbox season run %s\n", d.DrawSeed, docs.Digest, text.Line(dir), text.Shell(dir))
	return err
}

// commitments reads what season nonce printed to each contributor, one after the other,
// or a list of it.
func commitments(name string) (list []season.Contribution, err error) {
	data, err := bounded.File(name, 1<<20)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var next json.RawMessage
		if err := d.Decode(&next); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %s", name, text.Line(err.Error()))
		}
		if next[0] != '[' {
			next = slices.Concat([]byte("["), next, []byte("]"))
		}
		var some []season.Contribution
		if err := json.Unmarshal(next, &some); err != nil {
			return nil, fmt.Errorf("%s: %s", name, text.Line(err.Error()))
		}
		list = append(list, some...)
	}
}

// contributions joins commitments and nonces.
func contributions(o drawOptions) ([]season.Contribution, error) {
	if o.commitments == "" {
		return nil, usageError(`a draw by refbox's rules needs nonces that nobody chooses alone:
  refbox season nonce MANIFEST --week %s --name NAME --output FILE >> commitments.json   by each contributor, two or more
  publish commitments.json, then draw with --commitments commitments.json and a --nonce FILE each
or draw by the reference's rules, with the label as the only entropy: --rules reference`, text.Shell(o.week))
	}
	list, err := commitments(o.commitments)
	if err != nil {
		return nil, brokenError(err)
	}
	for _, name := range o.nonces {
		var c season.Contribution
		if err := readJSON(name, &c); err != nil {
			return nil, brokenError(err)
		}
		at := slices.IndexFunc(list, func(x season.Contribution) bool { return x.Contributor == c.Contributor })
		if at < 0 {
			return nil, brokenError(fmt.Errorf("%s: %s is not among the commitments: a nonce that was not committed to before is worth nothing", name, text.Line(c.Contributor)))
		}
		list[at].Nonce = c.Nonce
	}
	return list, nil
}

func readJSON(name string, into any) error {
	data, err := bounded.File(name, 1<<20)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %s", name, text.Line(err.Error()))
	}
	return nil
}

// openWeek finds a week for reading.
func openWeek(cmd *cobra.Command, path string) (*seasonrun.Found, error) {
	f, err := seasonrun.Open(cmd.Context(), path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usageError("%w; name a week's folder, its draw.json or its week.json", err)
	case err != nil:
		return nil, brokenError(err)
	}
	return f, nil
}
