// Package analysis says what an agent's actions did: whether each was
// discovery, mutation, lifecycle or validation, which effects show that, and
// where in the command each effect is written.
//
// It hides how a command is understood: shell, SQL and Python are parsed and
// followed (variables, functions, loops, here-documents, scripts written
// earlier), commands are looked up in tables of what they do, and words alone
// (file names, patterns, echoed text) count for nothing.
//
// It promises: nothing is executed or opened; the same input gives the same
// result; cut, broken or hostile text is read as far as it can be, in bounded
// work; every span lies inside the text of its action. Rules and their measured
// quality: reference/seasons-and-analysis.md section 4.
package analysis

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"

	"refbox/engine/transcript"
)

// Kind is what an action was, by its strongest effect.
type Kind string

// The kinds, in the words of the reference.
const (
	// Discovery changed nothing that lasts. Scratch files, and what an action
	// itself takes back, are no change.
	Discovery Kind = "discovery"
	// Mutation changed files, data, packages or accounts.
	Mutation Kind = "mutation"
	// Lifecycle changed only what runs: units, processes, the host.
	Lifecycle Kind = "lifecycle"
	// Validation checked something after the agent's first change.
	Validation Kind = "validation"
)

// Action is one thing that an agent did, whoever recorded it.
type Action struct {
	Index int    // place in the recorded trace
	ID    string // the harness's id of the tool call; may be empty
	// Tool is the name that the harness gave, or the channel of an observed
	// action (exec, shell, announced, sftp). Empty: told from the command.
	Tool string
	// Class is what the tool does, where the record's reader knows; NoClass: told
	// from the tool's name and the command.
	Class transcript.Class
	// Command is the text as recorded. When empty it is taken from Input.
	Command       string
	Input         json.RawMessage // the tool's arguments, a JSON object; may be empty
	Description   string
	Success       bool
	StartedMS     int64 // on the clock of whoever recorded it
	DurationMS    int64
	Output        string // may be an excerpt
	ReferenceKind Kind   // what the reference said, if it did
}

// Span is a range of bytes, end excluded, of an action's Text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Effect is one thing that an action did or looked at.
type Effect struct {
	Sort   Sort   `json:"effect"`
	Target string `json:"target,omitempty"` // path, unit, package, address; unknown parts read "…"
	By     string `json:"by"`               // the command, call or statement
	Span   Span   `json:"span"`             // where the action's text shows it
	Shows  string `json:"shows"`            // that text, at most 160 bytes
	// Scratch effects touch only temporary things; Undone ones are taken back
	// by the same action. Neither makes an action a change.
	Scratch bool `json:"scratch,omitempty"`
	Undone  bool `json:"undone,omitempty"`
	// Via is the script, written by the agent before, that has this effect; the
	// span then shows the call of the script.
	Via string `json:"via,omitempty"`

	target string // with unknown parts as they are inside
}

// Judgement is what one action was, and why.
type Judgement struct {
	Kind    Kind
	Also    []Kind   // what weaker effects would have made it
	Effects []Effect // in the order of the text, at most 200
	// Changed tells whether something was changed that lasts. A single write
	// that was refused is a mutation but has changed nothing.
	Changed bool
	// Degraded tells that the text was cut or broken and was read in part.
	Degraded bool
}

// Classify judges one action on its own. changedBefore tells whether the agent
// had changed something earlier: a check is validation only then.
func Classify(a Action, changedBefore bool) Judgement {
	return new(memory).classify(a, changedBefore)
}

// Text is the text of an action that spans refer to: its command, else what its
// input says, in the reference's order.
func (a Action) Text() string {
	if strings.EqualFold(a.Tool, "sftp") {
		// The channel has no command; its output lists what was asked for.
		return a.Output
	}
	if a.Command != "" {
		return a.Command
	}
	in := a.fields()
	for _, key := range []string{"command", "cmd", "script"} {
		switch v := in[key].(type) {
		case string:
			if v != "" {
				return v
			}
		case []any: // an argument list; a shell given as such shows its script
			if words := texts(v); len(words) > 0 {
				if len(words) == 3 && strings.HasSuffix(words[0], "sh") && strings.HasPrefix(words[1], "-") {
					return words[2]
				}
				return quoteWords(words)
			}
		}
	}
	if p := a.path(); p != "" {
		return a.Tool + " " + p
	}
	if len(a.Input) == 0 || string(a.Input) == "null" {
		return a.Tool
	}
	var flat bytes.Buffer
	if v := in; v != nil {
		if b, err := json.Marshal(v); err == nil { // keys sorted
			return a.Tool + " " + string(b)
		}
	}
	if json.Compact(&flat, a.Input) != nil {
		return a.Tool + " " + string(a.Input)
	}
	return a.Tool + " " + flat.String()
}

func (a Action) fields() map[string]any {
	var in map[string]any
	if len(a.Input) > 0 && json.Unmarshal(a.Input, &in) != nil {
		return nil
	}
	return in
}

// path is the file that the action's input names: harnesses differ in the key.
func (a Action) path() string {
	in := a.fields()
	for _, key := range []string{"file_path", "filePath", "notebook_path", "path", "filename", "file", "target_file"} {
		if s, ok := in[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// Step is one action with its judgement.
type Step struct {
	Action
	Judgement
	ChangedBefore bool
}

// Analysis is a seat's actions, judged in the order in which they started.
type Analysis struct {
	SourceSHA256 string // of the transcript; filled in by the caller, like the next four
	Agent        string
	Territory    string
	Model        string
	Outcome      *string

	Metrics      Metrics
	Architecture Architecture
	Steps        []Step // in the order given
}

// Metrics count an analysis. Times are on the actions' clock; nil is unknown.
type Metrics struct {
	ToolCalls        int    `json:"tool_calls"`
	ToolErrors       int    `json:"tool_errors"`
	Discoveries      int    `json:"discoveries"`
	Mutations        int    `json:"mutations"`
	LifecycleActions int    `json:"lifecycle_actions"`
	Validations      int    `json:"validations"`
	FirstMutationMS  *int64 `json:"first_mutation_after_ms,omitempty"` // start of the first action that changed something
	LastObservedMS   *int64 `json:"last_observed_after_ms,omitempty"`
}

// Analyse judges the actions of one seat. Planning tools do nothing to a
// machine and are left out, so Index may have gaps.
func Analyse(actions []Action) Analysis {
	var out Analysis
	order := make([]int, 0, len(actions))
	for _, a := range actions {
		if !planning(a.Tool) {
			order = append(order, len(out.Steps))
			out.Steps = append(out.Steps, Step{Action: a})
		}
	}
	// Parallel calls may be recorded out of order; what counts is what had
	// been started before.
	sort.SliceStable(order, func(i, j int) bool {
		return out.Steps[order[i]].StartedMS < out.Steps[order[j]].StartedMS
	})
	mem := new(memory)
	changed := false
	for _, i := range order {
		s := &out.Steps[i]
		s.ChangedBefore = changed
		s.Judgement = mem.classify(s.Action, changed)
		if s.Changed && !changed {
			changed = true
			out.Metrics.FirstMutationMS = ptr(s.StartedMS)
		}
		out.Metrics.count(s)
	}
	out.Architecture = architecture(out.Steps, order)
	return out
}

func (m *Metrics) count(s *Step) {
	m.ToolCalls++
	if !s.Success {
		m.ToolErrors++
	}
	switch s.Kind {
	case Mutation:
		m.Mutations++
	case Lifecycle:
		m.LifecycleActions++
	case Validation:
		m.Validations++
	default:
		m.Discoveries++
	}
	if end := s.StartedMS + s.DurationMS; m.LastObservedMS == nil || end > *m.LastObservedMS {
		m.LastObservedMS = ptr(end)
	}
}

func ptr[T any](v T) *T { return &v }

func texts(list []any) []string {
	var out []string
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// quoteWords writes an argument list as shell text that means the same.
func quoteWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
			return !(r == '-' || r == '_' || r == '.' || r == '/' || r == ':' || r == '=' || r == ',' || r == '@' || r == '+' ||
				r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}) < 0
		if plain {
			b.WriteString(w)
		} else {
			b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
		}
	}
	return b.String()
}
