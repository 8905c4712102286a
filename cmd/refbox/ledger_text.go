package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"refbox/engine/ledger"
	"refbox/engine/recording"
	"refbox/engine/text"
)

func tellReport(a *app, r ledger.Report, asJSON bool) error {
	if asJSON {
		return writeJSON(a.out, r)
	}
	l := &lines{w: a.out}
	printFindings(l, r.Findings)
	for i := range r.Rows {
		l.f("%s", rowText(&r.Rows[i]))
	}
	if len(r.Rows) > 0 {
		l.f("%s", headline(r.Picture))
	}
	if r.Kind == "ledger" {
		l.f("%s, %s checked again, head %s", text.Count(r.Entries, "line"), text.Count(r.Heats, "heat"), r.Head)
	}
	breaks := 0
	for _, f := range r.Findings {
		if f.Severity == ledger.Break {
			breaks++
		}
	}
	if r.Holds {
		l.f("%s holds: %s", r.File, text.Count(len(r.Findings), "note"))
	} else {
		l.f("%s does not hold: %s", r.File, text.Count(breaks, "break"))
	}
	return l.err
}

func printFindings(l *lines, list []ledger.Finding) {
	for _, s := range []ledger.Severity{ledger.Break, ledger.Note} {
		for _, f := range list {
			if f.Severity == s {
				what := f.String()
				if f.Scenario != "" {
					what = f.Scenario + ": " + what
				}
				l.f("%-5s  %s", s, what)
			}
		}
	}
}

// headline counts, as the screen's header does.
func headline(p *ledger.Picture) string {
	return fmt.Sprintf("observed %d of %d injectable; of all %s %d accepted, %d owned elsewhere",
		p.Observed, p.Injectable, text.Count(len(p.Rows), "scenario"), p.Accepted, p.Owned)
}

func rowText(r *ledger.Row) string {
	s := fmt.Sprintf("%-18s  %s", r.State, r.Scenario)
	var shown []string
	for _, c := range r.Cells {
		if len(c.Evidence) > 0 {
			shown = append(shown, fmt.Sprintf("%s %s (%s)", c.Arena, c.State, ledger.Tally(c.Evidence)))
		} else if len(c.Declares) > 0 {
			shown = append(shown, c.Arena+" declares "+strings.Join(c.Declares, ", "))
		}
	}
	if len(shown) > 0 {
		s += ": " + strings.Join(shown, "; ")
	}
	return s
}

func printClaim(w io.Writer, c ledger.Claim, says string, verdict error) error {
	l := &lines{w: w}
	about := c.About
	if c.State != "" {
		about += ": " + string(c.State)
	}
	l.f("%s", about)
	list := func(head string, items []string) {
		if len(items) > 0 {
			l.f("%s", head)
		}
		for _, s := range items {
			l.f("  %s", s)
		}
	}
	proves := c.Proves
	if len(proves) == 0 {
		proves = []string{"nothing"}
	}
	list("proves", proves)
	list("does not prove", c.DoesNot)
	if len(c.Prohibited) > 0 {
		l.f("must not be concluded")
	}
	for _, p := range c.Prohibited {
		l.f("  %q: %s that %q", p.Conclusion, prohibitor(p), p.Needs)
	}
	list("prohibited whatever is observed", c.Always)
	if says == "" {
		return l.err
	}
	var r *ledger.Refusal
	switch {
	case verdict == nil:
		l.f("may be said: %s", text.Line(says))
	case errors.As(verdict, &r):
		l.f("may not be said: %s (%s)", r.Text, r.Code)
	default:
		l.f("may not be said: %s", verdict)
	}
	return l.err
}

func prohibitor(t ledger.Temptation) string {
	if t.OfModel {
		return "the model prohibits to infer"
	}
	return "the policy prohibits to infer"
}

// claimJSON is a claim, and what is said of a sentence.
func claimJSON(c ledger.Claim, says string, verdict error) any {
	out := struct {
		ledger.Claim
		Says    string      `json:"says,omitempty"`
		Allowed *bool       `json:"allowed,omitempty"`
		Code    ledger.Code `json:"code,omitempty"`
		Why     string      `json:"why,omitempty"`
	}{Claim: c, Says: says}
	if says != "" {
		allowed := verdict == nil
		out.Allowed = &allowed
	}
	var r *ledger.Refusal
	if errors.As(verdict, &r) {
		out.Code, out.Why = r.Code, r.Text
	}
	return out
}

// printOffers shows what a heat has to offer, and what of it is new. Evidence that was
// refused for the same reasons is told once.
func printOffers(w io.Writer, j ledger.Judged, news []ledger.Entry) error {
	l := &lines{w: w}
	var order []string
	where := map[string][]string{} // by what is told of it
	for i := range j.Offers {
		o := &j.Offers[i]
		told := offerLines(o, !slices.ContainsFunc(news, func(e ledger.Entry) bool { return e.Kept.ID == o.Evidence.ID }))
		if where[told] == nil {
			order = append(order, told)
		}
		where[told] = append(where[told], text.Line(o.Evidence.Territory))
	}
	for _, told := range order {
		scenario, rest, _ := strings.Cut(told, "\n")
		worth, why, _ := strings.Cut(rest, "\n")
		l.f("%s at %s: %s", scenario, strings.Join(where[told], ", "), worth)
		for line := range strings.Lines(why) {
			l.f("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	for _, n := range j.Notes {
		l.f("note: %s", n)
	}
	return l.err
}

// offerLines are the scenario, and on the lines after it what a piece of evidence is
// worth: which gates refused it, or what it shows.
func offerLines(o *ledger.Offer, known bool) string {
	gates, refused := len(o.Verdict.Gates), len(o.Verdict.Refused())
	lines := []string{o.Evidence.Scenario, fmt.Sprintf("%s, by all %s", o.Verdict.Outcome, text.Count(gates, "gate"))}
	if refused > 0 {
		lines[1] = fmt.Sprintf("%s, refused by %d of %s", o.Verdict.Outcome, refused, text.Count(gates, "gate"))
	}
	if known {
		lines[1] += "; the ledger holds it already"
	}
	for _, g := range o.Verdict.Gates {
		if !g.Pass {
			lines = append(lines, fmt.Sprintf("  %-15s  %s", g.Code, g.Text))
		}
	}
	for _, why := range o.Verdict.Why {
		lines = append(lines, "  no more, since "+why)
	}
	if refused == 0 {
		lines = append(lines, "  "+o.Kept().Sentence())
	}
	return strings.Join(lines, "\n")
}

// offerText counts a heat's offers by what they are worth.
func offerText(j ledger.Judged) string {
	var parts []string
	foregone := ""
	for _, s := range ledger.States() {
		var of []string
		for i := range j.Offers {
			o := &j.Offers[i]
			if o.Verdict.Outcome == s && !slices.Contains(of, o.Evidence.Scenario) {
				of = append(of, o.Evidence.Scenario)
			}
			foregone = cmp.Or(foregone, ledger.Foregone(o.Evidence.Fault.Kind))
		}
		if len(of) > 0 {
			word := string(s)
			if s == ledger.Inconclusive {
				word = "refused"
			}
			parts = append(parts, fmt.Sprintf("%s: %s", word, strings.Join(of, ", ")))
		}
	}
	told := text.Count(len(j.Offers), "piece") + " of evidence, " + strings.Join(parts, "; ")
	if foregone != "" {
		told += ". " + strings.TrimSuffix(foregone, ".")
	}
	return told
}

// offered says what a heat that has ended has to offer to the ledger at hand; "" when
// its arena declares nothing, or nothing of it happened.
func offered(ctx context.Context, rec *recording.Recording) string {
	l, err := openLedger("")
	if err != nil {
		return "cannot be read: " + text.Line(err.Error())
	}
	j, err := judgeHeat(ctx, l, rec, "")
	if err != nil || len(j.Offers) == 0 {
		return "" // the heat's own end says what is wrong with it
	}
	return offerText(j)
}

// printOffered is that as lines, with the command that keeps it.
func printOffered(ctx context.Context, a *app, rec *recording.Recording) {
	if s := offered(ctx, rec); s != "" {
		fmt.Fprintf(a.out, "ledger    %s\n          refbox ledger add %s\n", s, text.Shell(rec.Path()))
	}
}

// offerNotice waits for a heat's end, and says it on the screen, with what it is to
// the registers that it is bound to: a line each; "" for nothing.
func offerNotice(ctx context.Context, a *app, dir string, bound *binding, ended <-chan struct{}) string {
	select {
	case <-ended:
	case <-ctx.Done():
		return ""
	}
	rec, err := recording.Open(dir)
	if err != nil {
		return ""
	}
	defer rec.Close()
	var out []string
	drills, trouble := offeredDrills(ctx, a, rec, bound)
	for _, err := range trouble {
		out = append(out, "no drill "+text.Line(err.Error()))
	}
	for _, k := range drills {
		out = append(out, k.brief()...)
	}
	if s := offered(ctx, rec); s != "" {
		out = append(out, fmt.Sprintf("%s; keep it: refbox ledger add %s", s, text.Shell(dir)))
	}
	return strings.Join(out, "\n")
}
