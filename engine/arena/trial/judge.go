package trial

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/text"
	"refbox/engine/world"
)

// judge holds what came of a player to what must.
func judge(m *arena.Manifest, w *world.World, t seated) Player {
	got := Player{Name: t.Name, Script: t.Script, Class: t.class, Want: t.Result, Passed: []string{}, Ended: "unknown"}
	if m.Build == nil {
		return judgeConquest(w, t, got)
	}
	s := w.Seat(t.Name)
	if s == nil {
		got.Got, got.Why = "unavailable", "the recording has no such seat"
		return got
	}
	if a := w.Agent(t.Name); a != nil && a.TerminalState != nil {
		got.Ended = *a.TerminalState
		if a.TerminalNote != nil && got.Ended != "completed" {
			got.Ended += ": " + *a.TerminalNote
		}
	}
	var open []string
	for _, ms := range m.Milestones() {
		if passed(s, ms.ID) {
			got.Passed = append(got.Passed, ms.ID)
		} else {
			open = append(open, ms.ID)
		}
	}
	got.Got = strings.Join(open, ", ")
	switch {
	case s.Unavailable != nil:
		got.Got, got.Why = "unavailable", s.Unavailable.Source+": "+s.Unavailable.Detail
		return got
	case s.CompetitorState == "durable":
		got.Got = arena.Durable
	}
	if t.Result == arena.Durable {
		if got.Got != arena.Durable {
			got.Why = fmt.Sprintf("it must be durable, and is not: %s", openWhy(s, open))
			got.Lost, got.Refused = lostAt(s, open)
		}
		return got
	}
	got.Refused = refusal(s, t.Result)
	got.Why = lost(m, s, t, got)
	return got
}

// lostAt is the first open milestone that was refused, and how: one that was never
// passed before one that a look after a reboot took back.
func lostAt(s *world.Seat, open []string) (string, *Refusal) {
	never := slices.DeleteFunc(slices.Clone(open), func(id string) bool { return everPassed(s, id) })
	for _, id := range append(never, open...) {
		if r := refusal(s, id); r != nil {
			return id, r
		}
	}
	return "", nil
}

// lost says what is wrong with how a wrong player lost; "" for nothing.
func lost(m *arena.Manifest, s *world.Seat, t seated, got Player) string {
	if got.Got == arena.Durable {
		return fmt.Sprintf("it must lose at %s, and became durable", t.Result)
	}
	for _, ms := range m.Milestones() {
		// What a look after a reboot took back was passed all the same.
		has := everPassed(s, ms.ID)
		switch {
		case ms.ID == t.Result && has:
			return fmt.Sprintf("it must lose at %s, and passed it", t.Result)
		case m.DependsOn(t.Result)[ms.ID] && !has:
			return fmt.Sprintf("it must lose at %s, and lost at %s before: %s", t.Result, ms.ID, openWhy(s, []string{ms.ID}))
		case m.DependsOn(ms.ID)[t.Result] && has:
			return fmt.Sprintf("it must get no further than %s, and passed %s", t.Result, ms.ID)
		}
	}
	r := got.Refused
	switch {
	case r == nil:
		return fmt.Sprintf("%s was never refused", t.Result)
	case r.Source != "player":
		return fmt.Sprintf("%s was not refused for what the player did, but failed by the %s: %s", t.Result, r.Source, r.Detail)
	case t.refusal != "" && !refusedWith(s, t.Result, t.refusal):
		return fmt.Sprintf("the refusal does not say %q: %s", t.refusal, r.Detail)
	case !strings.HasPrefix(got.Ended, "completed"):
		return "its script did not run to its end, so it shows nothing: " + got.Ended
	}
	return ""
}

func everPassed(s *world.Seat, milestone string) bool {
	ms := s.Milestone(milestone)
	return ms != nil && (ms.Passed || ms.Revoked > 0)
}

func passed(s *world.Seat, milestone string) bool {
	if s == nil {
		return false
	}
	ms := s.Milestone(milestone)
	return ms != nil && ms.Passed
}

// refusal is the last failure of a milestone that is charged to the player, else
// the last of all; nil where it never failed.
func refusal(s *world.Seat, milestone string) *Refusal {
	ms := s.Milestone(milestone)
	if ms == nil || ms.Failures == 0 {
		return nil
	}
	r := &Refusal{Category: ms.Failure.Category, Source: ms.Failure.Source, Detail: ms.Failure.Detail, Times: ms.Failures, Record: ms.Failure.Record}
	for i := range s.Spans.Len() {
		if f := s.Spans.At(i); ms.Failure.Source != "player" && f.Milestone == milestone && f.Source == "player" {
			r.Category, r.Source, r.Detail = f.Category, f.Source, f.Detail
		}
	}
	return r
}

// refusedWith tells whether a refusal of the milestone said so.
func refusedWith(s *world.Seat, milestone, words string) bool {
	for i := range s.Spans.Len() {
		if f := s.Spans.At(i); f.Milestone == milestone && f.Source == "player" && strings.Contains(f.Detail, words) {
			return true
		}
	}
	return false
}

func openWhy(s *world.Seat, open []string) string {
	for _, id := range open {
		if r := refusal(s, id); r != nil {
			return fmt.Sprintf("%s: %s (%s, %s)", id, r.Detail, r.Source, text.Count(r.Times, "time"))
		}
	}
	return strings.Join(open, ", ") + " was never evaluated"
}

func join(a, b string) string { return strings.TrimPrefix(a+"; "+b, "; ") }
