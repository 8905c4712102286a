package analysis

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SchemaVersion and Analyzer head every analysis.json. The schema is the
// reference's version 1 with keys added, never changed.
const (
	SchemaVersion = 1
	Analyzer      = "refbox-analysis/1"
)

// Cuts of the reference: a command and an output are stored with at most so
// many characters, and "…" when they were cut.
const (
	commandCut = 700
	outputCut  = 280
)

type fileJSON struct {
	SchemaVersion int          `json:"schema_version"`
	Analyzer      string       `json:"analyzer"`
	SourceSHA256  string       `json:"source_sha256"`
	Agent         string       `json:"agent"`
	Territory     string       `json:"territory"`
	Model         string       `json:"model"`
	Outcome       *string      `json:"outcome"`
	Metrics       Metrics      `json:"metrics"`
	Architecture  Architecture `json:"architecture"`
	Actions       []stepJSON   `json:"actions"`
}

type stepJSON struct {
	Index       int      `json:"index"`
	ToolID      string   `json:"tool_id,omitempty"`
	Kind        Kind     `json:"kind"`
	StartedMS   int64    `json:"started_after_ms"`
	DurationMS  int64    `json:"duration_ms"`
	Description *string  `json:"description"`
	Command     string   `json:"command"`
	Success     bool     `json:"success"`
	Output      *string  `json:"output_excerpt"`
	Reference   Kind     `json:"reference_kind,omitempty"`
	Tool        string   `json:"tool,omitempty"`
	Also        []Kind   `json:"also,omitempty"`
	Before      bool     `json:"changed_before"`
	Changed     bool     `json:"changed"`
	Degraded    bool     `json:"degraded,omitempty"`
	Effects     []Effect `json:"effects"`
}

// MarshalJSON writes analysis.json: the reference's keys, and ours per action:
// reference_kind, tool, also, changed_before, changed, degraded and effects,
// whose spans are bytes of the whole command, cut or not.
func (a Analysis) MarshalJSON() ([]byte, error) {
	out := fileJSON{SchemaVersion: SchemaVersion, Analyzer: Analyzer, SourceSHA256: a.SourceSHA256, Agent: a.Agent, Territory: a.Territory,
		Model: a.Model, Outcome: a.Outcome, Metrics: a.Metrics, Architecture: a.Architecture, Actions: []stepJSON{}}
	for _, s := range a.Steps {
		j := stepJSON{Index: s.Index, ToolID: s.ID, Kind: s.Kind, StartedMS: s.StartedMS, DurationMS: s.DurationMS,
			Command: cut(s.Text(), commandCut), Success: s.Success, Reference: s.ReferenceKind, Tool: s.Tool, Also: s.Also,
			Before: s.ChangedBefore, Changed: s.Changed, Degraded: s.Degraded, Effects: s.Effects}
		if s.Description != "" {
			j.Description = ptr(s.Description)
		}
		if o := strings.TrimSpace(s.Output); o != "" {
			j.Output = ptr(cut(o, outputCut))
		}
		if j.Effects == nil {
			j.Effects = []Effect{}
		}
		out.Actions = append(out.Actions, j)
	}
	return json.Marshal(out)
}

// cut keeps n characters and says when there were more.
func cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// Reference is an analysis.json that somebody else wrote: the reference's
// verdicts, and its actions ready to be judged by us.
type Reference struct {
	Analyzer     string
	SourceSHA256 string
	Agent        string
	Territory    string
	Model        string
	Outcome      *string
	Metrics      Metrics
	Architecture Architecture
	Actions      []Action // commands cut at 700 characters; ReferenceKind is set
}

// ReadReference reads an analysis.json of the reference's schema, or ours.
func ReadReference(b []byte) (Reference, error) {
	var in fileJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return Reference{}, fmt.Errorf("analysis.json: %w", err)
	}
	if in.SchemaVersion != SchemaVersion {
		return Reference{}, fmt.Errorf("analysis.json: schema_version is %d; this program reads %d", in.SchemaVersion, SchemaVersion)
	}
	out := Reference{Analyzer: in.Analyzer, SourceSHA256: in.SourceSHA256, Agent: in.Agent, Territory: in.Territory, Model: in.Model,
		Outcome: in.Outcome, Metrics: in.Metrics, Architecture: in.Architecture}
	for _, s := range in.Actions {
		a := Action{Index: s.Index, ID: s.ToolID, Tool: s.Tool, Command: s.Command, Success: s.Success, StartedMS: s.StartedMS,
			DurationMS: s.DurationMS, ReferenceKind: s.Kind}
		if s.Reference != "" {
			a.ReferenceKind = s.Reference
		} else if strings.HasPrefix(in.Analyzer, "refbox") {
			a.ReferenceKind = ""
		}
		if s.Description != nil {
			a.Description = *s.Description
		}
		if s.Output != nil {
			a.Output = *s.Output
		}
		out.Actions = append(out.Actions, a)
	}
	return out, nil
}
