package why

import (
	"fmt"

	"refbox/engine/text"
	"refbox/engine/world"
)

// headlineOfConquest is the outcome of a conquest's territory in one sentence.
func headlineOfConquest(w *world.World, s *world.Seat, o world.Outcome) string {
	held := fmt.Sprintf("healthy at %s, %s", text.Count(s.UptimeTicks, "tick"), text.Count(s.Resources, "resource"))
	if s.DegradedMS > 0 {
		held += fmt.Sprintf(", degraded for %.1f s", float64(s.DegradedMS)/1000)
	}
	switch o {
	case world.OutcomeWon:
		return fmt.Sprintf("%s won: %s.", s.ID, held)
	case world.OutcomeEliminated:
		why := ""
		if s.EliminationDetail != nil && s.EliminationSource != nil {
			why = fmt.Sprintf(", charged to %s: %s", *s.EliminationSource, brief(*s.EliminationDetail))
		}
		return fmt.Sprintf("%s was eliminated%s; %s.", s.ID, why, held)
	case world.OutcomeStanding:
		if w.Winner == nil {
			return fmt.Sprintf("%s stood at the end, and nobody stood better alone: %s.", s.ID, held)
		}
		return fmt.Sprintf("%s stood at the end, %s stood better: %s.", s.ID, *w.Winner, held)
	case world.OutcomeVoided:
		return fmt.Sprintf("The heat was voided by %s, so it counts for nobody: %s; %s was %s.", w.Voided.Author, w.Voided.Reason, s.ID, s.State)
	case world.OutcomeAborted:
		return fmt.Sprintf("The heat was aborted with %s %s: %s.", s.ID, s.State, held)
	}
	return fmt.Sprintf("So far %s is %s: %s.", s.ID, s.State, held)
}

// steps are how a conquest's territory came to stand as it does.
func (e *Explanation) steps(s *world.Seat) {
	for _, x := range s.Steps.All() {
		k := Failed
		if x.State == "healthy" || x.State == "recovering" {
			k = Passed
		}
		if x.State == "eliminated" {
			k = Lost
		}
		e.add(x.MS, x.Index, k, "", "%s: %s", x.State, x.Reason)
	}
}
