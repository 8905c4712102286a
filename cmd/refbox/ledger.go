package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/bounded"
	"refbox/engine/ledger"
	"refbox/engine/recording"
	"refbox/engine/text"
)

func newLedger(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Failure models: what has been shown of them, by which evidence, and what may be claimed",
		Long: `A failure model declares the ways in which a system fails; a ledger beside it keeps
evidence of heats, and decisions. What is known of each scenario follows from both:
evidence counts when it passed every gate, and is never stronger than what it covers.

A ledger is a folder with model.json, policy.toml and ledger.jsonl. Without --ledger
the one in the data folder is meant, which refbox ledger init makes.`,
		Example: "  refbox ledger init\n  refbox ledger show\n  refbox ledger add ./heat",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("ledger takes a command: show, check, claim, add, decide or init\ntry: refbox ledger --help")
		},
	}
	c.AddCommand(ledgerShow(a), ledgerCheck(a), ledgerClaim(a), ledgerAdd(a), ledgerDecide(a), ledgerInit(a))
	return c
}

// mainLedger is the folder of the ledger that is meant when none is named.
func mainLedger() (string, error) {
	dir, err := ledgersDir()
	return filepath.Join(dir, "main"), err
}

func ledgersDir() (string, error) {
	dir, err := recordingsDir()
	return filepath.Join(filepath.Dir(dir), "ledgers"), err
}

// basePolicy is what counts as evidence unless a ledger says otherwise.
func basePolicy() (*ledger.Policy, error) {
	return ledger.ParsePolicy("policy.toml", assets.LedgerPolicy())
}

// openLedger opens the ledger that is named; without a name the main one, or where
// there is none the example.
func openLedger(name string) (*ledger.Ledger, error) {
	base, err := basePolicy()
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = mainLedger(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(name, ledger.LogName)); errors.Is(err, fs.ErrNotExist) {
			return ledger.Parse("the example model", assets.LedgerModel(), base)
		}
	}
	return ledger.Open(name, base)
}

// ledgerSettings are today's: the bundled arenas are those in use.
func ledgerSettings() (ledger.Settings, error) {
	set := ledger.Settings{Today: time.Now().UTC().Format(time.DateOnly)}
	for _, id := range arena.Bundled() {
		p, err := arena.Load(id)
		if err != nil {
			return set, err
		}
		set.Arenas = append(set.Arenas, ledger.Use{ID: id, SHA256: p.SHA256, Exercises: p.Manifest.Exercises})
	}
	return set, nil
}

// judgeHeat holds a heat's evidence to a ledger's model and policy, and to the
// arenas in use.
func judgeHeat(ctx context.Context, l *ledger.Ledger, rec *recording.Recording, fix string) (ledger.Judged, error) {
	set, err := ledgerSettings()
	if err != nil {
		return ledger.Judged{}, err
	}
	terms := ledger.Terms{Model: l.Model, Policy: l.Policy, Arenas: map[string]string{}}
	for _, u := range set.Arenas {
		terms.Arenas[u.ID] = u.SHA256
	}
	return terms.JudgeHeat(ctx, rec, ledger.Review{By: author() + " with refbox " + version, Fix: fix})
}

func ledgerCheck(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a failure model or a ledger: form, chain, and every piece of evidence by its heat",
		Long: `Check names what is wrong with a failure model, by its place, and derives what is
known of each scenario. Of a ledger it follows the chain, holds the model to those that
were adopted, and makes the evidence again of each heat that is still there.

An observation that the model declares and no evidence here carries is a note, and a
heat that is gone, too; what differs is a break, and exits 1.`,
		Example: "  refbox ledger check model.json\n  refbox ledger check ~/.local/share/refbox/ledgers/main --json",
		Args:    exactArgs(1, "one model or ledger"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := ledgerSettings()
			if err != nil {
				return err
			}
			base, err := basePolicy()
			if err != nil {
				return err
			}
			l, err := ledger.Open(args[0], base)
			var bad *ledger.Invalid
			if errors.As(err, &bad) {
				r := ledger.Report{File: bad.File, Kind: "model", Picture: &ledger.Picture{Rows: []ledger.Row{}, Arenas: []string{}, Findings: bad.Findings}}
				if err := tellReport(a, r, asJSON); err != nil {
					return err
				}
				return exitError{code: exitBroken}
			}
			if err != nil {
				return err
			}
			r, err := l.Check(cmd.Context(), set, openKept)
			if err != nil {
				return err
			}
			if err := tellReport(a, r, asJSON); err != nil {
				return err
			}
			if !r.Holds {
				return exitError{code: exitBroken}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// openKept opens the heat of kept evidence; an error that Is fs.ErrNotExist when it is
// gone.
func openKept(path string) (*recording.Recording, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openRecording(path)
}

func ledgerClaim(a *app) *cobra.Command {
	var asJSON bool
	var name, says string
	c := &cobra.Command{
		Use:   "claim SCENARIO|HEAT",
		Short: "Say what is proved of a scenario or by a heat, what is not, and what nobody may conclude",
		Long: `Claim says what the evidence carries, what it does not, and which prohibited
inference each tempting conclusion would need. Prohibited inferences never expire.

With --says a sentence is held to it: a prohibited one, or one that nothing carries,
exits 1. A state is a sentence, too: --says observed.

A scenario's id wins over a folder of that name; ./name is the folder.`,
		Example: "  refbox ledger claim host-loss\n  refbox ledger claim host-loss --says observed\n  refbox ledger claim ./heat",
		Args:    exactArgs(1, "one scenario or heat"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := openLedger(name)
			if err != nil {
				return err
			}
			claim, err := claimOf(cmd.Context(), l, args[0])
			if err != nil {
				return err
			}
			verdict := error(nil)
			if says != "" {
				verdict = l.Guard(claim, says)
			}
			if asJSON {
				err = writeJSON(a.out, claimJSON(claim, says, verdict))
			} else {
				err = printClaim(a.out, claim, says, verdict)
			}
			if err == nil && verdict != nil {
				return exitError{code: exitBroken}
			}
			return err
		},
	}
	c.Flags().StringVar(&name, "ledger", "", "the ledger, its folder or log, or a model (default: the main one)")
	c.Flags().StringVar(&says, "says", "", "a sentence, or a state, that is to be claimed")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func claimOf(ctx context.Context, l *ledger.Ledger, about string) (ledger.Claim, error) {
	if l.Model.Scenario(about) == nil {
		path := locate(about)
		if _, err := os.Stat(path); err == nil {
			rec, err := openRecording(path)
			if err != nil {
				return ledger.Claim{}, err
			}
			defer rec.Close()
			j, err := judgeHeat(ctx, l, rec, "")
			if err != nil {
				return ledger.Claim{}, err
			}
			return l.ClaimHeat(j), nil
		}
	}
	set, err := ledgerSettings()
	if err != nil {
		return ledger.Claim{}, err
	}
	c, err := l.Claim(l.Derive(set), about)
	if err != nil {
		return c, usageError("%w; nor is there a heat called so", err)
	}
	return c, nil
}

func ledgerAdd(a *app) *cobra.Command {
	var asJSON, yes bool
	var name, fix string
	c := &cobra.Command{
		Use:   "add DIR",
		Short: "Judge a heat's evidence, and append it to the ledger",
		Long: `Add makes evidence of a recorded heat for each scenario that its arena declares to
exercise, holds it to every gate, shows what it is worth, or what refused it, and appends it:
refused evidence, too. What the ledger holds already is not appended twice. In a
terminal it asks first. What each gate saw says refbox ledger show, or --json.`,
		Example: "  refbox ledger add ./heat\n  refbox ledger add ./heat --fix \"replication is synchronous now\"",
		Args:    exactArgs(1, "one heat"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := openLedger(name)
			if err != nil {
				return err
			}
			if l.Log() == "" {
				return environmentError(errors.New("there is no ledger to append to yet; run: refbox ledger init"))
			}
			// A whole path is kept, so that the evidence is found from anywhere; a bundled
			// heat has none.
			path := locate(args[0])
			if whole, err := filepath.Abs(path); err == nil && there(whole) {
				path = whole
			}
			rec, err := openRecording(path)
			if err != nil {
				return err
			}
			defer rec.Close()
			j, err := judgeHeat(cmd.Context(), l, rec, fix)
			if err != nil {
				return err
			}
			news := l.News(j)
			if !asJSON {
				if err := printOffers(a.out, j, news); err != nil {
					return err
				}
			}
			if len(news) > 0 && !yes && isTerminal(a.in) && isTerminal(a.err) {
				fmt.Fprintf(a.err, "Append this to %s? [Y/n] ", text.Line(l.File))
				if ok, err := confirm(cmd.Context(), a); err != nil || !ok {
					return err
				}
			}
			if len(news) > 0 {
				if l, err = l.Append(time.Now(), news...); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(a.out, struct {
					ledger.Judged
					Appended int    `json:"appended"`
					Ledger   string `json:"ledger"`
					Head     string `json:"head"`
				}{j, len(news), l.File, l.Head})
			}
			_, err = fmt.Fprintf(a.out, "%s appended to %s, whose head is %s\n", text.Count(len(news), "line"), text.Line(l.File), l.Head)
			return err
		},
	}
	c.Flags().StringVar(&name, "ledger", "", "the ledger, its folder or log (default: the main one)")
	c.Flags().StringVar(&fix, "fix", "", "what was mended since the scenario was contradicted")
	c.Flags().BoolVar(&yes, "yes", false, "don't ask before appending")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func ledgerDecide(a *app) *cobra.Command {
	var asJSON bool
	var name string
	var d ledger.Decision
	c := &cobra.Command{
		Use:   "decide SCENARIO accept|own|reopen",
		Short: "Decide about a scenario: an accepted exception, owned elsewhere, or open again",
		Long: `Decide appends a decision with its owner, reason and the day to look at it again.
All three are needed. Only what is not injected is accepted; only what is not accepted
is owned; reopen ends both, because it has expired or the topology changed.`,
		Example: "  refbox ledger decide tower-loss accept --owner \"the keeper\" --reason \"one rack\" --review-on 2027-06-01",
		Args:    exactArgs(2, "a scenario and accept, own or reopen"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := openLedger(name)
			if err != nil {
				return err
			}
			d.Scenario, d.Kind = args[0], ledger.DecisionKind(args[1])
			d.Owner, d.Reason = text.Line(d.Owner), text.Line(d.Reason)
			set, err := ledgerSettings()
			if err != nil {
				return err
			}
			if d.Owner == "" || d.Reason == "" || d.ReviewOn == "" {
				return usageError("a decision needs who answers for it, why, and when it is looked at again:\n  refbox ledger decide %s %s --owner NAME --reason TEXT --review-on %s",
					text.Shell(args[0]), text.Shell(args[1]), time.Now().UTC().AddDate(0, 6, 0).Format(time.DateOnly))
			}
			if err := l.Permits(set, &d); err != nil {
				return brokenError(err)
			}
			next, err := l.Append(time.Now(), ledger.Entry{Decision: &d})
			if err != nil {
				return err
			}
			row := next.Derive(set).Row(d.Scenario)
			if asJSON {
				return writeJSON(a.out, row)
			}
			_, err = fmt.Fprintf(a.out, "%s is %s now; look at it again on %s\n", row.Scenario, row.State, d.ReviewOn)
			return err
		},
	}
	c.Flags().StringVar(&name, "ledger", "", "the ledger, its folder or log (default: the main one)")
	c.Flags().StringVar(&d.Owner, "owner", "", "who answers for it")
	c.Flags().StringVar(&d.Reason, "reason", "", "why")
	c.Flags().StringVar(&d.ReviewOn, "review-on", "", "when to look at it again, 2006-01-02")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func ledgerInit(a *app) *cobra.Command {
	var asJSON bool
	var model string
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a ledger: a failure model, what counts as evidence, and an empty log",
		Long: `Init makes a folder with model.json, policy.toml and ledger.jsonl: of the example, or
of your own model with --model, or the bundled one of the failover laboratory with
--model failover-lab. Without a folder it makes the main ledger, in the data
folder. Files that exist are left alone.`,
		Example: "  refbox ledger init\n  refbox ledger init ./ledger --model failure-model.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s takes at most one folder\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := mainLedger()
			if len(args) == 1 {
				dir, err = args[0], nil
			}
			if err != nil {
				return err
			}
			data := assets.LedgerModel()
			if model != "" {
				data, err = bounded.File(model, ledger.MaxModel)
				if bundled := assets.LedgerModelOf(model); errors.Is(err, fs.ErrNotExist) && bundled != nil {
					data, err = bundled, nil
				}
				if err != nil {
					return err
				}
			}
			l, err := ledger.Init(dir, data, assets.LedgerPolicy(), time.Now())
			if err != nil {
				return brokenError(err)
			}
			if asJSON {
				return writeJSON(a.out, map[string]any{"ledger": l.File, "files": l.Files(), "head": l.Head})
			}
			for _, f := range l.Files() {
				fmt.Fprintln(a.out, "wrote "+text.Line(f))
			}
			_, err = fmt.Fprintf(a.out, "next: refbox ledger show %s\n", text.Shell(dir))
			return err
		},
	}
	c.Flags().StringVar(&model, "model", "", "a failure model of your own, JSON, or failover-lab")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON what was written where")
	return c
}
