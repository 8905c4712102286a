// Package why explains an outcome: the events and the evidence behind it, in
// order. It is a pure function of a world and its manifest, so the explanation
// of a recording is always the same, and every line of it can be looked up.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"refbox/engine/arena"
	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Explanation is why a seat ended as it did.
type Explanation struct {
	Territory string        `json:"territory"`
	Agent     string        `json:"agent"`
	Outcome   world.Outcome `json:"outcome"`
	Ending    Ending        `json:"ending"` // of its player
	Headline  string        `json:"headline"`
	// Simulated says that none of it happened on real machines.
	Simulated bool   `json:"simulated,omitempty"`
	Lines     []Line `json:"lines"`
}

// Line is one reason.
type Line struct {
	MS    uint64 `json:"elapsed_ms"`
	Event *int   `json:"event,omitempty"` // its number in the log, from 0; null for what several events say together
	Kind  Kind   `json:"kind"`
	// Milestone is the one that the line is about, "" for none.
	Milestone string `json:"milestone,omitempty"`
	Text      string `json:"text"`
	// Record is the evidence file, relative to the heat's folder.
	Record string `json:"record,omitempty"`
}

// Kind says what a line is about.
type Kind string

// Kinds of lines.
const (
	Passed  Kind = "passed"
	Failed  Kind = "failed" // a run of equal failures
	Attack  Kind = "attack"
	Revoked Kind = "revoked"
	Durable Kind = "durable"
	Agent   Kind = "agent"
	Touched Kind = "touched" // a person was at the console
	Lost    Kind = "unavailable"
	Limit   Kind = "limit"
	Fault   Kind = "fault"
	Ruling  Kind = "ruling"
	Note    Kind = "note"     // of an operator, on the heat as a whole
	Canary  Kind = "canary"   // what the referee's client measured
	Branch  Kind = "branched" // from another heat
	End     Kind = "end"
)

// Explain explains one seat; false when there is no such seat.
func Explain(w *world.World, m *arena.Manifest, territory string) (Explanation, bool) {
	s := w.Seat(territory)
	if s == nil {
		return Explanation{}, false
	}
	e := Explanation{Territory: territory, Agent: s.Agent, Outcome: world.OutcomeOf(w, territory), Simulated: w.Simulated()}
	e.Headline = headline(w, m, s, e.Outcome)
	if from := w.BranchedFrom(); from != "" {
		e.addNo(0, Branch, "%s, %s into it", from, playback.Exact(w.Branched.AtMS))
	}
	for i := range s.Milestones {
		switch x := &s.Milestones[i]; {
		case x.Inherited:
			e.about(x.ID).add(x.PassedMS, x.PassedIndex, Passed, "", "%s inherited, for no points", x.ID)
		case x.Passed:
			e.about(x.ID).add(x.PassedMS, x.PassedIndex, Passed, x.Record, "%s passed for %s%s%s", x.ID, text.Count(x.Points, "point"), attempts(x.Attempts), bounds(x))
		}
	}
	for _, sp := range s.Spans.All() {
		e.about(sp.Milestone).add(sp.SinceMS, sp.First, Failed, "", "%s", failed(sp))
	}
	for _, a := range s.Attacks.All() {
		switch {
		case !a.Done:
			e.about(a.Milestone).add(a.StartMS, a.Start, Attack, "", "attack on %s began: %s", a.Milestone, a.Attack)
		case a.Held:
			e.about(a.Milestone).add(a.EndMS, a.End, Attack, a.Record, "%s withstood: %s%s", a.Milestone, a.Attack, undone(a))
		default:
			e.about(a.Milestone).add(a.EndMS, a.End, Attack, a.Record, "%s did not withstand: %s: %s%s", a.Milestone, a.Attack, a.Detail, undone(a))
		}
	}
	e.steps(s)
	for _, r := range s.Revocations.All() {
		e.about(r.Milestone).add(r.MS, r.Index, Revoked, r.Record, "%s was revoked, %s: %s", r.Milestone, text.Count(r.Points, "point"), r.Reason)
	}
	for _, t := range s.Touches.All() {
		e.addNo(t.FromMS, Touched, "%s attached to the console of %s and typed %s", t.Author, t.Machine, bytesOf(t.InputBytes))
	}
	for _, l := range s.Limits.All() {
		e.add(l.MS, l.Index, Limit, "", "limit reached: %s: %s", l.Limit, l.Detail)
	}
	for _, f := range s.Faults.All() {
		e.addNo(f.InjectedMS, Fault, "%s injected a fault, %s: %s on %s%s", f.Author, f.Reason, f.Fault, f.Target, lone(f))
		at := f.InjectedMS
		for _, ms := range []*uint64{f.ConfirmedMS, f.EndedMS} {
			if ms != nil {
				at = *ms
			}
		}
		e.add(at, f.Index, Fault, "", "the fault %s", f.Words())
	}
	if r := s.CanaryResult; r != nil {
		e.add(r.MS, r.Index, Canary, "", "%s", r.Words())
	} else if c := s.Canary; c != nil && w.Over() {
		e.addNo(c.MS, Canary, "the canary's writes: %d acknowledged, %d failed, %d indeterminate; they were not read back, so that the loss is unknown", c.Acknowledged, c.Failed, c.Indeterminate)
	}
	if u := s.Unavailable; u != nil {
		e.add(u.MS, u.Index, Lost, "", "the seat became unavailable, charged to %s: %s", u.Source, u.Detail)
	}
	if s.DurableAtMS != nil {
		e.addNo(*s.DurableAtMS, Durable, "%s", durable(s))
	}
	for _, r := range w.Rulings.All() {
		if r.Territory == "" || r.Territory == territory {
			e.about(r.Milestone).add(r.MS, r.Index, Ruling, "", "%s ruled %s: %s", r.Author, ruling(r), r.Reason)
		}
	}
	for _, p := range w.Pauses.All() {
		e.add(p.SinceMS, p.Index, Ruling, "", "%s paused the heat: %s", p.Author, p.Reason)
		if r := p.Resumed; r != nil {
			e.add(p.SinceMS, r.Index, Ruling, "", "%s resumed it after %.1f s that counted for nobody: %s", r.Author, float64(r.TookMS)/1000, r.Reason)
		}
	}
	for _, n := range w.Notes.All() {
		e.add(n.MS, n.Index, Note, "", "%s notes: %s", n.Author, n.Text)
	}
	if a := w.Agent(s.Agent); a != nil && a.EndedMS != nil && a.TerminalState != nil {
		note := ""
		if a.TerminalNote != nil {
			// A scripted player's note begins with its name, which is said already.
			note = ": " + strings.TrimPrefix(brief(*a.TerminalNote), a.ID+": ")
		}
		e.addNo(*a.EndedMS, Agent, "agent %s: %s%s", a.ID, *a.TerminalState, note)
	}
	e.Ending = e.endingOf(w, s)
	if w.FinishedMS != nil && w.FinishReason != nil {
		who := "nobody won"
		if w.Winner != nil {
			who = *w.Winner + " won"
		} else if len(w.DeadHeat) > 0 {
			who = "dead heat of " + strings.Join(w.DeadHeat, " and ")
		}
		e.addNo(*w.FinishedMS, End, "the heat ended: %s; %s", *w.FinishReason, who)
	}
	slices.SortStableFunc(e.Lines, func(a, b Line) int { return cmp.Compare(a.MS, b.MS) })
	return e, true
}

// topic adds lines about one milestone.
type topic struct {
	e         *Explanation
	milestone string
}

func (e *Explanation) about(milestone string) topic { return topic{e, milestone} }

func (e *Explanation) add(ms uint64, event int, k Kind, record, format string, a ...any) {
	e.about("").add(ms, event, k, record, format, a...)
}

func (t topic) add(ms uint64, event int, k Kind, record, format string, a ...any) {
	l := Line{MS: ms, Kind: k, Milestone: t.milestone, Text: fmt.Sprintf(format, a...), Record: record}
	if event >= 0 {
		l.Event = &event
	}
	t.e.Lines = append(t.e.Lines, l)
}

func (e *Explanation) addNo(ms uint64, k Kind, format string, a ...any) {
	e.add(ms, -1, k, "", format, a...)
}

// headline is the outcome in one sentence.
func headline(w *world.World, m *arena.Manifest, s *world.Seat, o world.Outcome) string {
	points := text.Count(s.Points, "point")
	if m != nil {
		points = fmt.Sprintf("%d of %s", s.Points, text.Count(m.Points(), "point"))
	}
	if s.Conquest() {
		return headlineOfConquest(w, s, o)
	}
	switch o {
	case world.OutcomeWon:
		if s.DurableAtMS == nil {
			return fmt.Sprintf("%s won with %s.", s.ID, points)
		}
		return fmt.Sprintf("%s won with %s: %s.", s.ID, points, durable(s))
	case world.OutcomeDeadHeat:
		return fmt.Sprintf("%s shares a dead heat with %s: their instants overlap, so nobody can say who was first; %s.", s.ID, others(w.DeadHeat, s.ID), durable(s))
	case world.OutcomeDurable:
		return fmt.Sprintf("%s was durable with %s, but not first: %s.", s.ID, points, durable(s))
	case world.OutcomeOutraced:
		return fmt.Sprintf("%s was outraced with %s, which is no failure: %s.", s.ID, points, blocked(w, m, s))
	case world.OutcomeIncomplete:
		return fmt.Sprintf("%s did not become durable in time, with %s: %s.", s.ID, points, blocked(w, m, s))
	case world.OutcomeUnavailable:
		return fmt.Sprintf("%s could not go on, with %s: %s, charged to %s.", s.ID, points, brief(s.Unavailable.Detail), s.Unavailable.Source)
	case world.OutcomeVoided:
		return fmt.Sprintf("The heat was voided by %s, so it counts for nobody: %s; %s had %s.", w.Voided.Author, w.Voided.Reason, s.ID, points)
	case world.OutcomeAborted:
		reason := ""
		if w.FinishReason != nil {
			reason = ": " + *w.FinishReason
		}
		return fmt.Sprintf("The heat was aborted with %s at %s%s.", s.ID, points, reason)
	}
	return fmt.Sprintf("So far %s has %s: %s.", s.ID, points, blocked(w, m, s))
}

// ruling is what was ruled, in words.
func ruling(r world.Ruling) string {
	words := strings.TrimSpace(r.Ruling + " " + r.Milestone)
	if r.ExtendMS > 0 {
		words += fmt.Sprintf(" by %v", time.Duration(r.ExtendMS)*time.Millisecond)
	}
	return words
}

// blocked says what kept the seat.
func blocked(w *world.World, m *arena.Manifest, s *world.Seat) string {
	if b, ok := world.BlockerOf(w, m, s.ID); ok {
		return failed(b.Span)
	}
	if s.DurableAtMS != nil {
		return durable(s)
	}
	for _, r := range world.Ladder(w, m, s.ID) {
		switch r.State {
		case world.RungVerifying:
			return r.ID + " was being verified"
		case world.RungPending:
			return r.ID + " was next"
		}
	}
	return "nothing was evaluated"
}

func failed(sp world.Span) string {
	what := fmt.Sprintf("%s failed (%s): %s", sp.Milestone, sp.Category, brief(sp.Detail))
	if sp.Count > 1 {
		what += fmt.Sprintf(", %s from %s to %s", text.Count(sp.Count, "time"), playback.Exact(sp.SinceMS), playback.Exact(sp.LastMS))
	}
	if sp.Source != "" {
		what += ", charged to " + sp.Source
	}
	return what
}

func durable(s *world.Seat) string {
	t := "durable at " + playback.Exact(*s.DurableAtMS)
	if d := s.Durable; d != nil {
		if d.NotBefore != nil {
			t = fmt.Sprintf("durable between %s and %s", playback.Exact(*d.NotBefore), playback.Exact(d.At))
		} else {
			t = "durable at " + playback.Exact(d.At)
		}
		if d.At != *s.DurableAtMS {
			t += fmt.Sprintf(" (verdict at %s)", playback.Exact(*s.DurableAtMS))
		}
	}
	switch own := s.AttackMS - min(s.AttackMS, s.FaultMS); {
	case s.FaultMS > 0 && own > 0:
		t += fmt.Sprintf(", %.2f s of waiting for the referee's attacks and reboots and %.2f s of a fault that no other seat had not charged", float64(own)/1000, float64(s.FaultMS)/1000)
	case s.FaultMS > 0:
		t += fmt.Sprintf(", %.2f s of a fault that no other seat had not charged", float64(s.FaultMS)/1000)
	case own > 0:
		t += fmt.Sprintf(", %.2f s of waiting for the referee's attacks and reboots not charged", float64(own)/1000)
	}
	return t
}

// lone says that a fault's time is not charged.
func lone(f world.Fault) string {
	if f.Alone {
		return "; no other seat has it, so its time is not charged"
	}
	return ""
}

func attempts(n uint64) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" at attempt %d", n)
}

func bounds(m *world.Milestone) string {
	switch {
	case m.HeldAt == nil:
		return ""
	case m.NotBefore == nil, *m.NotBefore == *m.HeldAt:
		return ", seen to hold at " + playback.Exact(*m.HeldAt)
	}
	return fmt.Sprintf(", became true between %s and %s", playback.Exact(*m.NotBefore), playback.Exact(*m.HeldAt))
}

func undone(a world.Attack) string {
	if a.Undone {
		return "; undone"
	}
	return "; NOT undone"
}

func others(all []string, but string) string {
	var out []string
	for _, s := range all {
		if s != but {
			out = append(out, s)
		}
	}
	return cmp.Or(strings.Join(out, " and "), "another seat")
}

// brief is the first line of something long.
func bytesOf(n uint64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func brief(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		s += " …"
	}
	return s
}
