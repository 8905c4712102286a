package analysis

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"refbox/engine/transcript"
)

// keptOutput is what an action of a transcript keeps of its output: analysis.json
// shows less, and a long transcript has much.
const keptOutput = 2 << 10

// Acts tells, from a step's head alone, whether the step is an action: a call of a
// tool that is not about the agent's own plan. History that was copied from an
// earlier context, and the second record of one call, are none.
func Acts(h transcript.Head) bool {
	return h.Kind == transcript.ToolCall && h.Class != transcript.Plan && h.Class != transcript.Finish && !planning(h.Tool) &&
		h.Flags&(transcript.Copied|transcript.Duplicate) == 0
}

// FromStep is the action of a step of any transcript, a heat's log of observed
// actions among them; false for a step that is none. What a step does is told by
// its class, not by what its harness calls the tool.
func FromStep(f *transcript.Full) (Action, bool) {
	if !Acts(f.Head) {
		return Action{}, false
	}
	a := Action{Success: !f.Outcome.Bad(), Index: f.Pos, ID: f.CallID, Tool: f.Tool, Class: f.Class, StartedMS: max(f.AtMS, 0), DurationMS: max(f.DurationMS, 0),
		ReferenceKind: Kind(f.ReferenceKind)}
	if f.RecordedMS >= 0 {
		a.StartedMS = f.RecordedMS
	}
	if f.Pos < 0 {
		a.Index = f.Index
	}
	if t, ok := f.Part(transcript.PartDescription); ok {
		a.Description = t.String()
	}
	a.Output = f.Output()
	if len(a.Output) > keptOutput && !strings.EqualFold(f.Tool, "sftp") {
		a.Output = strings.Clone(strings.ToValidUTF8(a.Output[:keptOutput], ""))
	}
	if t, ok := f.Part(transcript.PartInput); ok && !t.Cut() && json.Valid([]byte(t.Raw())) {
		a.Input = json.RawMessage(t.Raw())
	}
	switch f.Class {
	case transcript.Code:
		a.Command = allOf(f, transcript.PartCode)
	case transcript.Write, transcript.Edit:
		if patch := allOf(f, transcript.PartPatch); patch != "" {
			a.Command = patch
		}
	}
	if a.Command == "" {
		a.Command = allOf(f, transcript.PartCommand)
	}
	if len(a.Input) == 0 {
		a.Input = inputOf(f)
	}
	if a.Tool == "shell" && a.Command == "" && len(a.Input) == 0 {
		return Action{}, false // a session that was observed: what was typed in it is announced, each for itself
	}
	return a, true
}

// allOf are all the parts of a role: a call may carry several commands.
func allOf(f *transcript.Full, role transcript.Role) string {
	var texts []string
	for _, p := range f.All(role) {
		s := p.Text.Raw()
		if p.Text.Cut() {
			s += "…"
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n")
}

// inputOf writes a call's arguments anew, where the record has them in another
// form, or more of them than is read.
func inputOf(f *transcript.Full) json.RawMessage {
	in := map[string]string{}
	for _, p := range f.Parts {
		key := map[transcript.Role]string{transcript.PartPath: "file_path", transcript.PartOld: "old_string", transcript.PartNew: "new_string",
			transcript.PartQuery: "query"}[p.Role]
		if p.Role == transcript.PartNew && f.Class == transcript.Write {
			key = "content"
		}
		if key != "" && in[key] == "" && !p.Text.Cut() {
			in[key] = p.Text.Raw()
		}
	}
	if len(in) == 0 {
		return nil
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil
	}
	return b
}

// Of analyses a transcript: it is read to its end, and all actions judged of the
// agents (indices of Agents) that are given, of every one when none is. Agents
// of one analysis worked on one machine. What the transcript says of itself is in
// the result; SourceSHA256 is left to the caller, but for an analysis.json, which
// names its source.
func Of(ctx context.Context, t *transcript.Transcript, agents ...int) (Analysis, error) {
	if err := t.Load(ctx); err != nil {
		return Analysis{}, err
	}
	var actions []Action
	for i := range t.Len() {
		h := t.Head(i)
		if !Acts(h) || len(agents) > 0 && !slices.Contains(agents, h.Agent) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Analysis{}, err
		}
		f, err := t.Full(i)
		if err != nil {
			return Analysis{}, err
		}
		if a, ok := FromStep(f); ok {
			actions = append(actions, a)
		}
	}
	a := Analyse(actions)
	if clock, _ := t.Clock(); clock == transcript.NoClock {
		a.Metrics.FirstMutationMS, a.Metrics.LastObservedMS = nil, nil // there is an order, and no time
	}
	info := t.Info()
	a.Agent, a.Territory, a.Model = info.Harness, info.Territory, info.Model
	if info.Format == "analysis" { // of a transcript that is not here
		a.Agent = info.Session
		for _, f := range info.Extra {
			if f.Name == "source_sha256" {
				a.SourceSHA256 = f.Value
			}
		}
	}
	if info.Outcome != "" {
		a.Outcome = ptr(info.Outcome)
	}
	return a, nil
}
