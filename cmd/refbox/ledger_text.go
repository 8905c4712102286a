package main

import (
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
		l.f("%s, %s checked again, head %s", count(r.Entries, "line"), count(r.Heats, "heat"), r.Head)
	}
	breaks := 0
	for _, f := range r.Findings {
		if f.Severity == ledger.Break {
			breaks++
		}
	}
	if r.Holds {
		l.f("%s holds: %s", r.File, count(len(r.Findings), "note"))
	} else {
		l.f("%s does not hold: %s", r.File, count(breaks, "break"))
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
	return fmt.Sprintf("observed %d of %d injectable; %d accepted, %d owned elsewhere", p.Observed, p.Injectable, p.Accepted, p.Owned)
}

func rowText(r *ledger.Row) string {
	s := fmt.Sprintf("%-18s  %s", r.State, r.Scenario)
	var shown []string
	for _, c := range r.Cells {
		if len(c.Evidence) > 0 {
			shown = append(shown, fmt.Sprintf("%s %s (%d)", c.Arena, c.State, len(c.Evidence)))
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
	list("proves", c.Proves)
	if len(c.Proves) == 0 {
		l.f("proves nothing")
	}
	list("does not prove", c.DoesNot)
	if len(c.Prohibited) > 0 {
		l.f("would need a prohibited inference")
	}
	for _, p := range c.Prohibited {
		l.f("  %q needs %q (%s)", p.Conclusion, p.Needs, prohibitor(p))
	}
	list("prohibited everywhere, and for ever", c.Always)
	if says != "" {
		if verdict == nil {
			l.f("it may be said: %s", says)
		} else {
			l.f("it may not be said: %s", verdict)
		}
	}
	return l.err
}

func prohibitor(t ledger.Temptation) string {
	if t.OfModel {
		return "the model prohibits it"
	}
	return "the policy prohibits it"
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

// printOffers shows what a heat has to offer, and what of it is new.
func printOffers(w io.Writer, j ledger.Judged, news []ledger.Entry) error {
	l := &lines{w: w}
	for i := range j.Offers {
		o := &j.Offers[i]
		known := ""
		if !slices.ContainsFunc(news, func(e ledger.Entry) bool { return e.Kept.ID == o.Evidence.ID }) {
			known = "; the ledger holds it already"
		}
		l.f("%s at %s: %s%s", o.Evidence.Scenario, o.Evidence.Territory, o.Verdict.Outcome, known)
		for _, g := range o.Verdict.Gates {
			sign := "passed "
			if !g.Pass {
				sign = "REFUSED"
			}
			l.f("  %s  %-15s  %s", sign, g.Code, g.Text)
		}
		for _, why := range o.Verdict.Why {
			l.f("  no more, since %s", why)
		}
		l.f("  %s", o.Kept().Sentence())
	}
	for _, n := range j.Notes {
		l.f("note: %s", n)
	}
	return l.err
}

// offerText counts a heat's offers by what they are worth.
func offerText(j ledger.Judged) string {
	var parts []string
	for _, s := range ledger.States() {
		var of []string
		for i := range j.Offers {
			if o := &j.Offers[i]; o.Verdict.Outcome == s && !slices.Contains(of, o.Evidence.Scenario) {
				of = append(of, o.Evidence.Scenario)
			}
		}
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", s, strings.Join(of, ", ")))
		}
	}
	return count(len(j.Offers), "piece") + " of evidence, " + strings.Join(parts, "; ")
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
		fmt.Fprintf(a.out, "ledger    %s\n          refbox ledger add %s\n", s, text.Line(rec.Path()))
	}
}

// offerNotice waits for a heat's end, and says it on the screen; "" for nothing.
func offerNotice(ctx context.Context, dir string, ended <-chan struct{}) string {
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
	s := offered(ctx, rec)
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%s; keep it: refbox ledger add %s", s, text.Line(dir))
}
