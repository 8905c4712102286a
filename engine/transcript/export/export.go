// Package export writes a transcript, whatever harness recorded it, in forms that
// others read: an ATIF trajectory, Markdown, an asciicast.
//
// It hides the forms. It guarantees: the same transcript gives the same bytes;
// nothing private leaves (reasoning that was not written for a reader, encrypted
// content, what was typed at a recorded terminal) and the form says so; secrets
// are replaced unless the caller gives no Redactor; memory is bounded by the
// largest step and some words for each of the others, and a body by BodyLimit;
// nothing is written into the record.
package export

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/redact"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// BodyLimit is the bytes of each body that are written; what is more is counted.
const BodyLimit = 1 << 20

// Source is what is exported.
type Source struct {
	T *transcript.Transcript
	// Agents are the agents, by their number in T, whose steps are written; none:
	// everybody's.
	Agents []int
	// Session, Agent, Version, Model, Effort and Territory say whose transcript it
	// is, where the heat knows better than the record; "" leaves it to the record.
	Session, Agent, Version, Model, Effort, Territory string
	// Evaluation is what the referee says of the seat; nil outside a heat.
	Evaluation *Evaluation
	// Redact takes secrets out; nil leaves them in.
	Redact *redact.Redactor
}

func (s *Source) wants(agent int) bool { return len(s.Agents) == 0 || slices.Contains(s.Agents, agent) }

func (s *Source) wantsStep(h transcript.Head) bool { return s.wants(h.Agent) }

// each reads the transcript to its end, and calls yield for the wanted steps.
func (s *Source) each(ctx context.Context, want func(h transcript.Head) bool, yield func(f *transcript.Full) error) error {
	if err := s.T.Load(ctx); err != nil {
		return err
	}
	failing := map[int]string{} // what each agent's milestone last failed with
	for i := range s.T.Len() {
		h := s.T.Head(i)
		if !want(h) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := s.T.FullLimit(i, BodyLimit)
		if err != nil {
			return err
		}
		// A check that fails in the same way again and again is told once.
		if h.Kind == transcript.Marker && h.Outcome == transcript.Failed {
			words := s.words(f, transcript.PartDescription, transcript.PartMessage)
			if failing[h.Agent] == words {
				continue
			}
			failing[h.Agent] = words
		}
		if err := yield(f); err != nil {
			return err
		}
	}
	return nil
}

// words are the bodies with one of the roles, joined, raw but for secrets; media
// and sealed content are named.
func (s *Source) words(f *transcript.Full, roles ...transcript.Role) string {
	var parts []string
	for _, p := range f.Parts {
		switch {
		case p.Role == transcript.PartMedia && slices.Contains(roles, transcript.PartMedia):
			parts = append(parts, fmt.Sprintf("[%s, %d bytes, left out]", p.Label, p.Text.Size()))
		case slices.Contains(roles, p.Role):
			t := s.clean(p.Text.Raw())
			if p.Text.Cut() {
				t += fmt.Sprintf("\n[%d bytes more]", p.Text.Size()-int64(len(p.Text.Raw())))
			}
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
}

// clean is a body without secrets. One that control sequences hide, and whoever
// shows the body would uncover, is found as well: the body is sanitised then.
func (s *Source) clean(raw string) string {
	if s.Redact != nil && strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f }) {
		plain := text.Block(raw)
		if found := s.Redact.Text(plain); found != plain {
			return found
		}
	}
	return s.Redact.Text(raw)
}

// silent are steps that no form shows: the harness's bookkeeping, records of
// kinds that nobody knows, and reasoning.
func silent(h transcript.Head) bool {
	return h.Kind == transcript.State || h.Kind == transcript.Unknown || h.Kind == transcript.Thinking || h.Has(transcript.Duplicate)
}
