package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"refbox/engine/analysis"
	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// atifVersion is the version of the Agent Trajectory Interchange Format that is
// written (transcripts reference, section 5.5).
const atifVersion = "ATIF-v1.7"

// maxTrajectories bounds the agents of one transcript that are embedded.
const maxTrajectories = 200

type atifStep struct {
	ID          int              `json:"step_id"`
	Timestamp   string           `json:"timestamp,omitempty"`
	Source      string           `json:"source"`
	Model       string           `json:"model_name,omitempty"`
	Message     string           `json:"message"`
	Calls       []atifCall       `json:"tool_calls,omitempty"`
	Observation *atifObservation `json:"observation,omitempty"`
	Metrics     *atifMetrics     `json:"metrics,omitempty"`
	Copied      bool             `json:"is_copied_context,omitempty"`
	Extra       map[string]any   `json:"extra,omitempty"`
}

type atifCall struct {
	ID        string `json:"tool_call_id"`
	Function  string `json:"function_name"`
	Arguments any    `json:"arguments"`
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	Call    string         `json:"source_call_id,omitempty"`
	Content string         `json:"content"`
	Agents  []atifRef      `json:"subagent_trajectory_ref,omitempty"`
	Extra   map[string]any `json:"extra,omitempty"`
}

type atifRef struct {
	ID string `json:"trajectory_id"`
}

type atifMetrics struct {
	Prompt     *int64   `json:"prompt_tokens,omitempty"` // cached tokens included
	Completion *int64   `json:"completion_tokens,omitempty"`
	Cached     *int64   `json:"cached_tokens,omitempty"`
	Cost       *float64 `json:"cost_usd,omitempty"`
}

type atifFinal struct {
	Prompt     *int64         `json:"total_prompt_tokens,omitempty"`
	Completion *int64         `json:"total_completion_tokens,omitempty"`
	Cached     *int64         `json:"total_cached_tokens,omitempty"`
	Cost       *float64       `json:"total_cost_usd,omitempty"`
	Steps      int            `json:"total_steps"`
	Extra      map[string]any `json:"extra,omitempty"`
}

// ATIF writes an ATIF-v1.7 trajectory, with sub-agents embedded, and the
// reference's extension infrastructure_evaluation where there is one. A call and
// its result are one step, as the reference has them. It returns how many steps it
// wrote.
func ATIF(ctx context.Context, w io.Writer, s Source) (steps int, err error) {
	a := &atif{s: &s, w: w, ids: map[int]string{}}
	if err := s.T.Load(ctx); err != nil {
		return 0, err
	}
	agents := s.T.Agents()
	main := 0
	if len(s.Agents) > 0 {
		main = s.Agents[0]
	}
	embed := []int{}
	for i, x := range agents {
		if i == main || !s.wants(i) || x.Steps == 0 || len(embed) == maxTrajectories {
			continue
		}
		a.ids[i] = fmt.Sprintf("agent-%d", i)
		embed = append(embed, i)
		if x.Step >= 0 {
			if a.refs == nil {
				a.refs = map[int][]atifRef{}
			}
			a.refs[x.Step] = append(a.refs[x.Step], atifRef{a.ids[i]})
		}
	}
	if err := a.trajectory(ctx, main, true); err != nil {
		return a.total, err
	}
	for i, lane := range embed {
		a.raw(map[bool]string{true: `,"subagent_trajectories":[`, false: ","}[i == 0])
		if err := a.trajectory(ctx, lane, false); err != nil {
			return a.total, err
		}
		a.raw("}")
	}
	if len(embed) > 0 {
		a.raw("]")
	}
	a.raw("}\n")
	return a.total, a.err
}

type atif struct {
	s     *Source
	w     io.Writer
	err   error
	ids   map[int]string
	refs  map[int][]atifRef // by the step that started them
	total int
}

func (a *atif) raw(s string) {
	if a.err == nil {
		_, a.err = io.WriteString(a.w, s)
	}
}

func (a *atif) value(v any) {
	b, err := plainjson.Compact(v)
	if err != nil && a.err == nil {
		a.err = err
	}
	a.raw(string(b))
}

func (a *atif) key(name string, v any) {
	a.raw(`,"` + name + `":`)
	a.value(v)
}

// trajectory writes one agent's, but for the closing brace.
func (a *atif) trajectory(ctx context.Context, lane int, main bool) error {
	s := a.s
	info := s.T.Info()
	a.raw(`{"schema_version":"` + atifVersion + `"`)
	a.key("session_id", s.Redact.Text(cmp.Or(s.Session, info.Session, "unknown")))
	if !main {
		a.key("trajectory_id", a.ids[lane])
	}
	agent := map[string]any{"name": s.Redact.Text(cmp.Or(s.Agent, info.Harness, info.Format)), "version": s.Redact.Text(cmp.Or(s.Version, info.Version, "unknown"))}
	if model := cmp.Or(s.Model, info.Model); model != "" {
		agent["model_name"] = s.Redact.Text(model)
	}
	extra := map[string]any{}
	for k, v := range map[string]string{"reasoning_effort": s.Effort, "territory": cmp.Or(s.Territory, info.Territory), "format": info.Format} {
		if v != "" {
			extra[k] = s.Redact.Text(v)
		}
	}
	agent["extra"] = extra
	a.key("agent", agent)
	a.raw(`,"steps":[`)
	steps, left, calls := 0, 0, map[string]bool{}
	put := func(x atifStep) {
		if steps > 0 {
			a.raw(",\n")
		}
		steps++
		x.ID = steps
		a.value(x)
	}
	err := s.each(ctx, func(h transcript.Head) bool {
		if h.Agent != lane {
			return false
		}
		if silent(h) {
			left++
			return false
		}
		return true
	}, func(f *transcript.Full) error {
		put(a.step(f, calls))
		return a.err
	})
	if err != nil {
		return err
	}
	if main && info.Outcome != "" {
		message := info.Result
		if message == "" {
			message = "The record ends: " + info.Outcome + "."
		}
		put(atifStep{Source: "agent", Message: s.Redact.Text(message), Extra: map[string]any{"outcome": s.Redact.Text(info.Outcome)}})
	}
	if steps == 0 {
		put(atifStep{Source: "system", Message: "This agent has no steps of its own."})
	}
	a.total += steps
	a.raw("]")
	a.key("notes", a.notes(left))
	if main {
		final, err := a.final(steps)
		if err != nil {
			return err
		}
		a.key("final_metrics", final)
	}
	return a.err
}

func (a *atif) notes(left int) string {
	n := "Private reasoning and encrypted content are left out"
	if left > 0 {
		n += fmt.Sprintf("; %s of reasoning, settings and unknown kinds", text.Count(left, "record"))
	}
	if a.s.Redact != nil {
		return n + ". Secrets are replaced by marks such as [redacted jwt]."
	}
	return n + ". Secrets are not redacted."
}

func (a *atif) final(steps int) (atifFinal, error) {
	s := a.s
	t := s.T.Totals()
	if len(s.Agents) > 0 && s.Evaluation != nil && s.T.Info().Format == "heat" {
		t = transcript.Totals{Method: "none recorded", CostMethod: "none recorded"} // of all seats together
	}
	final := atifFinal{Prompt: t.Input, Completion: t.Output, Steps: steps, Extra: map[string]any{"token_method": t.Method, "cost_method": t.CostMethod}}
	if t.CacheRead != nil && t.CacheWrite != nil {
		sum := *t.CacheRead + *t.CacheWrite
		final.Cached = &sum
	} else {
		final.Cached = t.CacheRead
	}
	final.Cost = usd(t.CostMicroUSD)
	for k, v := range map[string]*int64{"cache_read_tokens": t.CacheRead, "cache_creation_tokens": t.CacheWrite, "reasoning_tokens": t.Reasoning} {
		if v != nil {
			final.Extra[k] = *v
		}
	}
	e, err := s.evaluation()
	if err != nil {
		return final, err
	}
	if e != nil {
		final.Extra["infrastructure_evaluation"] = e
	}
	if s.Redact != nil {
		final.Extra["redacted_secrets"] = s.Redact.Count()
	}
	return final, nil
}

func (a *atif) step(f *transcript.Full, calls map[string]bool) atifStep {
	s := a.s
	x := atifStep{Source: "system", Copied: f.Has(transcript.Copied)}
	clock, _ := s.T.Clock()
	if !f.Time.IsZero() {
		x.Timestamp = f.Time.UTC().Format("2006-01-02T15:04:05.000")
		if clock == transcript.Absolute {
			x.Timestamp += "Z"
		}
	}
	switch f.Actor {
	case transcript.User:
		x.Source = "user"
	case transcript.Agent:
		x.Source = "agent"
		x.Model = s.Redact.Text(f.Model)
	}
	if x.Source == "agent" && f.Usage != nil && !x.Copied {
		x.Metrics = &atifMetrics{f.Usage.Input, f.Usage.Output, f.Usage.CacheRead, usd(f.Usage.CostMicroUSD)}
		if *x.Metrics == (atifMetrics{}) {
			x.Metrics = nil
		}
	}
	if f.Kind != transcript.ToolCall {
		x.Message = s.words(f, transcript.PartMessage, transcript.PartDescription, transcript.PartMedia, transcript.PartOutput, transcript.PartError)
		if x.Message == "" {
			x.Message = s.Redact.Text(f.Title)
		}
		return x
	}
	x.Source = "agent"
	id := s.Redact.Text(f.CallID)
	if id == "" || calls[id] {
		id = fmt.Sprintf("step-%d", f.Index)
	}
	calls[id] = true
	x.Calls = []atifCall{{ID: id, Function: cmp.Or(s.Redact.Text(f.Tool), "unknown"), Arguments: a.arguments(f)}}
	res := atifResult{Call: id, Content: s.words(f, transcript.PartOutput, transcript.PartError, transcript.PartMedia), Agents: a.refs[f.Index],
		Extra: map[string]any{"is_error": f.Outcome.Bad(), "outcome": f.Outcome.String()}}
	if f.Exit != nil {
		res.Extra["exit_code"] = *f.Exit
	}
	if f.Outcome != transcript.Unfinished || len(res.Agents) > 0 || res.Content != "" {
		x.Observation = &atifObservation{Results: []atifResult{res}}
	}
	x.Extra = map[string]any{"read_only": f.Has(transcript.ReadOnly)}
	if at := max(f.RecordedMS, f.AtMS); f.RecordedMS >= 0 {
		x.Extra["started_after_ms"] = f.RecordedMS
	} else if at >= 0 {
		x.Extra["started_after_ms"] = at
	}
	if f.DurationMS >= 0 {
		x.Extra["duration_ms"] = f.DurationMS
	}
	return x
}

// arguments are an object, whatever the record has.
func (a *atif) arguments(f *transcript.Full) any {
	act, ok := analysis.FromStep(f)
	if t, has := f.Part(transcript.PartInput); has && !t.Cut() {
		if v, err := a.s.decoded([]byte(t.Raw())); err == nil {
			if m, ok := v.(map[string]any); ok {
				return m
			}
		}
	}
	if ok && len(act.Input) > 0 {
		if v, err := a.s.decoded(act.Input); err == nil {
			if m, ok := v.(map[string]any); ok {
				return m
			}
		}
	}
	out := map[string]any{}
	for _, p := range []struct {
		key  string
		role transcript.Role
	}{{"command", transcript.PartCommand}, {"code", transcript.PartCode}, {"patch", transcript.PartPatch}, {"path", transcript.PartPath}, {"input", transcript.PartInput}} {
		if t := a.s.words(f, p.role); t != "" {
			out[p.key] = t
		}
	}
	return out
}

// decoded is a JSON value with its numbers as they stand, and without secrets.
func (s *Source) decoded(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return s.Redact.Value(v), nil
}

func usd(micro *int64) *float64 {
	if micro == nil {
		return nil
	}
	v := float64(*micro) / 1e6
	return &v
}
