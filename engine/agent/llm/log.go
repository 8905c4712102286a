package llm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"refbox/engine/agent"
)

// log is the transcript, in the Agent Trajectory Interchange Format.
type log struct {
	began   time.Time
	dir     string
	room    func(bytes int) bool // nil: there always is
	taken   int                  // bytes of it
	kept    string               // the file that was written last; "" for none
	secrets agent.Secrets
	doc     document
}

type document struct {
	SchemaVersion string    `json:"schema_version"`
	SessionID     string    `json:"session_id"`
	Agent         atifAgent `json:"agent"`
	Steps         []step    `json:"steps"`
	Final         metrics   `json:"final_metrics"`
}

type atifAgent struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Model   string         `json:"model_name"`
	Extra   map[string]any `json:"extra,omitempty"`
}

type step struct {
	ID          int          `json:"step_id"`
	Timestamp   string       `json:"timestamp"`
	Source      string       `json:"source"` // system, user, agent
	Model       string       `json:"model_name,omitempty"`
	Message     string       `json:"message"`
	Reasoning   string       `json:"reasoning_content,omitempty"`
	Calls       []toolCall   `json:"tool_calls,omitempty"`
	Observation *observation `json:"observation,omitempty"`
	Metrics     *usage       `json:"metrics,omitempty"`
	Extra       *timing      `json:"extra,omitempty"`
}

type toolCall struct {
	ID        string          `json:"tool_call_id"`
	Function  string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"`
}

type observation struct {
	Results []result `json:"results"`
}

type result struct {
	Call    string `json:"source_call_id"`
	Content string `json:"content"`
	Extra   struct {
		IsError bool `json:"is_error"`
	} `json:"extra"`
}

type usage struct {
	Prompt     *uint64  `json:"prompt_tokens,omitempty"`
	Completion *uint64  `json:"completion_tokens,omitempty"`
	Cached     *uint64  `json:"cached_tokens,omitempty"`
	Cost       *float64 `json:"cost_usd,omitempty"`
}

type timing struct {
	Started  int64 `json:"started_after_ms"`
	Duration int64 `json:"duration_ms"`
}

type metrics struct {
	Prompt     *uint64  `json:"total_prompt_tokens,omitempty"`
	Completion *uint64  `json:"total_completion_tokens,omitempty"`
	Cached     *uint64  `json:"total_cached_tokens,omitempty"`
	Cost       *float64 `json:"total_cost_usd,omitempty"`
	Steps      int      `json:"total_steps"`
}

func newLog(seat agent.Seat, cfg Config, secrets agent.Secrets) *log {
	return &log{began: time.Now(), dir: seat.Dir, room: seat.Room, secrets: secrets, doc: document{
		SchemaVersion: "ATIF-v1.7", SessionID: seat.Territory + "/" + seat.Agent,
		Agent: atifAgent{Name: "refbox-llm", Version: cfg.Version, Model: cfg.Model},
	}}
}

func (l *log) add(s step) int {
	s.ID = len(l.doc.Steps) + 1
	s.Message = l.secrets.HideText(s.Message)
	if s.Extra == nil {
		s.Extra = &timing{Started: time.Since(l.began).Milliseconds()}
	}
	if s.Timestamp == "" {
		s.Timestamp = stamp(time.Now())
	}
	l.doc.Steps = append(l.doc.Steps, s)
	return len(l.doc.Steps) - 1
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// answer adds the model's, and returns its place.
func (l *log) answer(a *answer) int {
	s := step{Source: "agent", Model: a.model, Message: a.content, Reasoning: l.secrets.HideText(a.reasoning), Timestamp: stamp(a.began),
		Metrics: &usage{a.spent.in, a.spent.out, a.spent.cached, dollars(a.spent.cost)},
		Extra:   &timing{a.began.Sub(l.began).Milliseconds(), a.took.Milliseconds()}}
	if a.refusal != "" {
		s.Message = strings.TrimSpace(s.Message + "\n" + a.refusal)
	}
	for _, c := range a.calls {
		args := json.RawMessage(l.secrets.Hide([]byte(c.Function.Arguments)))
		if !json.Valid(args) {
			args, _ = json.Marshal(map[string]string{"malformed": string(args)}) // a map of strings has no error
		}
		s.Calls = append(s.Calls, toolCall{c.ID, c.Function.Name, args})
	}
	return l.add(s)
}

// result adds a call's to the step that made it. The step lasts until its last
// result: that is how long the tool's doing took beside the answer's.
func (l *log) result(at int, call, shown string, failed bool, began time.Time) {
	s := &l.doc.Steps[at]
	if s.Observation == nil {
		s.Observation = &observation{}
		s.Extra = &timing{began.Sub(l.began).Milliseconds(), 0}
	}
	r := result{Call: call, Content: shown}
	r.Extra.IsError = failed
	s.Observation.Results = append(s.Observation.Results, r)
	s.Extra.Duration = time.Since(l.began).Milliseconds() - s.Extra.Started
}

func dollars(micro *uint64) *float64 {
	if micro == nil {
		return nil
	}
	d := float64(*micro) / 1e6
	return &d
}

// names of the transcript, while the model plays and after.
const (
	finalName = "transcript.json"
	liveName  = "transcript.live.json"
)

// write replaces the file, whole, and returns its name; "" without a folder. A
// seat that has no room for it keeps the last that it had room for.
func (l *log) write(b bill, final bool) (string, error) {
	if l.dir == "" {
		return "", nil
	}
	u := b.usage()
	l.doc.Final = metrics{Prompt: u.InputTokens, Completion: u.OutputTokens, Cost: dollars(u.CostMicroUSD), Steps: len(l.doc.Steps)}
	if !b.tokensUnknown {
		l.doc.Final.Cached = &b.cached
	}
	data, err := json.MarshalIndent(l.doc, "", " ")
	if err != nil {
		return "", err
	}
	data = append(data, '\n')
	if grown := len(data) - l.taken; grown > 0 && l.room != nil {
		if !l.room(grown) {
			return l.kept, nil
		}
		l.taken = len(data)
	}
	name := liveName
	if final {
		name = finalName
	}
	tmp := filepath.Join(l.dir, "."+name+".new")
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, filepath.Join(l.dir, name)); err != nil {
		return "", err
	}
	l.kept = name
	if final {
		os.Remove(filepath.Join(l.dir, liveName)) // the same and less
	}
	return name, nil
}
