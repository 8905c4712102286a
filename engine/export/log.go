// Package export writes a recording in the forms that others read: its log, the
// log as the reference system writes it, a page, and a bundle that can be sent.
//
// Guarantees: the same recording gives the same bytes, always; nothing is shown
// that is not a fold of the log or a file of the folder; every string on the page
// is text and never markup; memory is bounded whatever the recording holds.
package export

import (
	"fmt"
	"io"

	"refbox/engine/event"
)

// Log is what the exports of a log read: a recording.Recording, read to its end.
type Log interface {
	Len() int
	// Raw is the line of event i, from 0, without its newline.
	Raw(i int) ([]byte, error)
}

// Lines writes a log's events as they are in the file, a line in each Write.
// Lines that are no events are left out.
func Lines(w io.Writer, log Log) error {
	for i := range log.Len() {
		line, err := log.Raw(i)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Reference writes a log as the reference system writes its own, a line in each
// Write, and returns how many events it wrote and how many it left out.
//
// Of our logs it takes the reference's kinds alone, with the reference's keys in
// its order; sequence numbers are given anew, elapsed_ms is doubled where the
// reference doubles it, and every failure's category is the only one that the
// reference knows. Folded by the reference's rules the result is the reference's
// part of our world, but for that category, last_sequence, and elapsed_ms when
// the last event is of our kinds. A log of the reference comes out as it is
// (recordings reference, sections 2 and 3).
func Reference(w io.Writer, log Log) (written, leftOut int, err error) {
	d := event.Decoder{Raw: true}
	for i := range log.Len() {
		line, err := log.Raw(i)
		if err != nil {
			return written, leftOut, fmt.Errorf("read the log: %w", err)
		}
		e, err := d.Decode(line)
		if err != nil {
			return written, leftOut, fmt.Errorf("read the log: event %d: %w", i, err)
		}
		e, ok := asReference(e, uint64(written))
		if !ok {
			leftOut++
			continue
		}
		if _, err := w.Write(append(event.Encode(e), '\n')); err != nil {
			return written, leftOut, err
		}
		written++
	}
	return written, leftOut, nil
}

// asReference is an event as the reference has it; false for a kind of ours.
func asReference(e event.Event, sequence uint64) (event.Event, bool) {
	// Every line of ours carries the hash of the one before, none of the
	// reference's does. What a reference's line has more comes from a newer one
	// and is kept; what one of ours has more is not the reference's.
	ours := e.Prev != ""
	was := e.Sequence
	e.Sequence, e.Prev = sequence, ""
	if ours {
		e.Extra = nil
	}
	switch b := e.Body.(type) {
	case event.MatchStateChanged, event.TerritoryRegistered, event.AgentStarted, event.CompetitorStateChanged,
		event.UsageCharged, event.PostMatchDrainStarted, event.PostMatchDrainFinished,
		event.AgentFinished, event.AgentInterrupted, event.AgentTerminated, event.AgentOutraced,
		event.HealthObserved, event.TerritoryStateChanged, event.ResourcesChanged, event.TerritoryEliminated,
		event.InfrastructureFailure:
	case event.MilestoneEvaluationStarted:
		e.Body = event.MilestoneEvaluationStarted{Territory: b.Territory, Milestone: b.Milestone}
	case event.MilestonePassed:
		e.Body = event.MilestonePassed{Territory: b.Territory, Milestone: b.Milestone, Points: b.Points, Evidence: b.Evidence}
	case event.MilestoneFailed:
		category := b.Category
		if ours {
			category = "verification_failed"
		}
		e.Body = event.MilestoneFailed{Territory: b.Territory, Milestone: b.Milestone, Category: category, Detail: b.Detail, Retryable: b.Retryable}
	case event.MilestoneRevoked:
		e.Body = event.MilestoneRevoked{Territory: b.Territory, Milestone: b.Milestone, Reason: b.Reason}
	case event.DurableDeploymentCompleted:
		repeated := b.Repeated
		if repeated == nil {
			repeated = &e.ElapsedMS
		}
		e.Body = event.DurableDeploymentCompleted{Territory: b.Territory, Repeated: repeated}
	case event.MatchFinished:
		e.Body = event.MatchFinished{Winner: b.Winner, Reason: b.Reason}
	case event.Unknown:
		// A newer reference's kind is written as it was read, number included.
		return e, !ours && was == sequence
	default:
		return e, false
	}
	return e, true
}
