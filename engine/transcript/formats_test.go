package transcript

import (
	"archive/zip"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"refbox/engine/internal/shared"
)

func kinds(tr *Transcript) string {
	var s []string
	for i := range tr.Len() {
		h := tr.Head(i)
		word := h.Kind.String()
		if h.Kind == ToolCall {
			word = h.Tool + "/" + h.Class.String() + "/" + h.Outcome.String()
		}
		s = append(s, word)
	}
	return strings.Join(s, " ")
}

func wantKinds(t *testing.T, tr *Transcript, want string) {
	t.Helper()
	if got := kinds(tr); got != want {
		t.Errorf("steps are\n%s\nwant\n%s", got, want)
	}
}

func full(t testing.TB, tr *Transcript, i int) *Full {
	t.Helper()
	f, err := tr.Full(i)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestClaudeSamples(t *testing.T) {
	tr := opened(t, shared.Shared(t, "transcripts", "claude-code", "representative_messages.jsonl"))
	wantKinds(t, tr, "message message message Edit/edit/ok message message Bash/shell/ok message message state")
	f := full(t, tr, 6)
	if f.Command() != "python /tmp/decorator_example.py" || f.Output() != "Hello, Alice!\nHello, Alice!\nHello, Alice!" || f.DurationMS != 1000 {
		t.Errorf("%+v", f)
	}
	if tr.Step(6).Title != "Run the decorator example to show output" {
		t.Errorf("%q", tr.Step(6).Title)
	}
}

// What `claude -p … --output-format stream-json --verbose` prints, as README's recipe
// keeps it: a session_id in place of a sessionId, no times, a sub-agent by the call that
// started it, and the cost in the result.
func TestClaudeStream(t *testing.T) {
	id := `"session_id":"5f8a2c1e-0001","uuid":"u`
	tr := opened(t, put(t, t.TempDir(), "transcript.json", `{"type":"system","subtype":"init","cwd":"/w","session_id":"5f8a2c1e-0001","tools":["Bash","Task"],"model":"claude-sonnet-4-5","permissionMode":"default","claude_code_version":"2.0.1","uuid":"u0"}
{"type":"assistant","message":{"model":"claude-sonnet-4-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"I look around."}],"usage":{"input_tokens":10,"output_tokens":1}},"parent_tool_use_id":null,`+id+`1"}
{"type":"assistant","message":{"model":"claude-sonnet-4-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ssh -F c seat 'systemctl --failed'"}}],"usage":{"input_tokens":10,"output_tokens":20}},"parent_tool_use_id":null,`+id+`2"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"failover-primary.service","is_error":false}]},"parent_tool_use_id":null,`+id+`3","tool_use_result":{"stdout":"failover-primary.service","stderr":"","interrupted":false}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"},`+id+`4"}
{"type":"assistant","message":{"id":"msg_2","role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"Task","input":{"prompt":"look"}}],"usage":{"input_tokens":30,"output_tokens":5}},"parent_tool_use_id":null,`+id+`5"}
{"type":"assistant","message":{"id":"msg_3","role":"assistant","content":[{"type":"text","text":"I am the other."}],"usage":{"input_tokens":3,"output_tokens":2}},"parent_tool_use_id":"toolu_2",`+id+`6"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_2","type":"tool_result","content":"nothing","is_error":true}]},"parent_tool_use_id":null,`+id+`7"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":5000,"num_turns":3,"result":"Done.","session_id":"5f8a2c1e-0001","total_cost_usd":0.0123,"usage":{"input_tokens":999,"output_tokens":999},"uuid":"u8"}
`))
	wantKinds(t, tr, "state message Bash/shell/ok state Task/delegate/failed message lifecycle")
	if i := tr.Info(); i.Format != "claude-code" || i.Session != "5f8a2c1e-0001" || i.Model != "claude-sonnet-4-5" || i.WorkDir != "/w" || i.Version != "2.0.1" {
		t.Errorf("%+v", i)
	}
	if f := full(t, tr, 2); f.Command() != "ssh -F c seat 'systemctl --failed'" || f.Output() != "failover-primary.service" {
		t.Errorf("%+v", f)
	}
	tot := tr.Totals()
	if tot.Input == nil || *tot.Input != 43 || tot.Output == nil || *tot.Output != 27 || tot.CostMicroUSD == nil || *tot.CostMicroUSD != 12300 {
		t.Errorf("%+v", tot)
	}
	if a := tr.Agents(); len(a) != 2 || a[1].Step != 4 {
		t.Errorf("%+v", a)
	}
	for _, f := range tr.Integrity().Findings {
		t.Errorf("%+v", f)
	}
}

// I04: misspelled keys, lines that are no records, the same uuid twice.
func TestClaudeEdgeCases(t *testing.T) {
	tr := opened(t, shared.Shared(t, "transcripts", "claude-code", "edge_cases.jsonl"))
	r := tr.Integrity()
	if r.Records != 19 {
		t.Errorf("%d records", r.Records)
	}
	lines := map[int]string{}
	for _, f := range r.Findings {
		lines[f.Line] += f.Code + " "
	}
	for line, want := range map[int]string{10: "no-content", 11: "odd-message", 12: "same-uuid", 13: "unknown-record", 14: "unknown-record",
		15: "unknown-record", 16: "unknown-record", 17: "parent-missing", 18: "unknown-block"} {
		if !strings.Contains(lines[line], want) {
			t.Errorf("line %d: %q, want %s", line, lines[line], want)
		}
	}
	if !slices.ContainsFunc(ofKind(tr, Message), func(s Step) bool { return s.Has(Duplicate) }) {
		t.Error("no duplicate is marked")
	}
	if f := tr.Step(3); f.Outcome != Failed || f.Tool != "FailingTool" {
		t.Errorf("%+v", f)
	}
}

const claudeLine = `{"type":"%s","uuid":"%s","parentUuid":%s,"sessionId":"s","timestamp":"2026-01-02T10:00:%sZ","message":%s}`

func cc(kind, id, parent, sec, message string) string {
	if parent == "" {
		parent = "null"
	} else {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(claudeLine, kind, id, parent, sec, message) + "\n"
}

// I07: one message on several lines: blocks in order, the line with the highest
// output counts whole.
func TestClaudeUsage(t *testing.T) {
	m := func(block, use string) string {
		return `{"id":"msg_1","role":"assistant","model":"claude-x","content":[` + block + `],"usage":` + use + `}`
	}
	tr := written(t, cc("user", "a", "", "00", `{"role":"user","content":"go"}`)+
		cc("assistant", "b", "a", "01", m(`{"type":"thinking","thinking":"","signature":"S3CR3T"}`, `{"input_tokens":5,"output_tokens":8,"cache_read_input_tokens":100,"cache_creation_input_tokens":7}`))+
		cc("assistant", "c", "b", "02", m(`{"type":"text","text":"hello"}`, `{"input_tokens":5,"output_tokens":143,"cache_read_input_tokens":100,"cache_creation_input_tokens":7}`))+
		cc("assistant", "d", "c", "03", m(`{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}`, `{"input_tokens":5,"output_tokens":8,"cache_read_input_tokens":100,"cache_creation_input_tokens":7}`))+
		cc("user", "e", "d", "04", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`))
	wantKinds(t, tr, "message thinking message Bash/shell/ok")
	tot := tr.Totals()
	if n(tot.Input) != 112 || n(tot.Output) != 143 || tot.Charges != 1 || tot.Method != "largest line per message id" || tot.CostMicroUSD != nil {
		t.Errorf("%+v", tot)
	}
	if s := tr.Step(1); !s.Has(Private|Encrypted) || strings.Contains(s.Title, "S3CR3T") {
		t.Errorf("%+v", s)
	}
	if u := tr.Usage(1); u == nil || n(u.Output) != 143 {
		t.Errorf("usage of the message's first step: %+v", u)
	}
}

// I08: the file's order is not that of time, and a parent may come late.
func TestClaudeOrder(t *testing.T) {
	tr := written(t, cc("user", "a", "", "05", `{"role":"user","content":"one"}`)+
		cc("assistant", "c", "b", "07", `{"role":"assistant","content":"three"}`)+
		cc("assistant", "b", "a", "06", `{"role":"assistant","content":"two"}`)+
		cc("user", "d", "c", "04", `{"role":"user","content":"four"}`)+
		cc("user", "e", "nowhere", "09", `{"role":"user","content":"five"}`)+
		cc("user", "f", "g", "10", `{"role":"user","content":"six"}`)+
		cc("user", "g", "f", "11", `{"role":"user","content":"seven"}`))
	if got := titles(ofKind(tr, Message)); !slices.Equal(got, []string{"one", "two", "three", "four", "five", "seven", "six"}) &&
		!slices.Equal(got, []string{"one", "two", "three", "four", "five", "six", "seven"}) {
		t.Errorf("%q", got)
	}
	finding(t, tr, "before-parent")
	finding(t, tr, "time-backwards")
	finding(t, tr, "parent-circle")
	if f := finding(t, tr, "parent-missing"); f.Line != 5 {
		t.Errorf("%+v", f)
	}
	if h := tr.Head(3); h.Time.Second() != 4 || h.AtMS < tr.Head(2).AtMS {
		t.Errorf("raw time %v, at %d", h.Time, h.AtMS)
	}
}

func TestClaudeSubAgents(t *testing.T) {
	dir := t.TempDir()
	side := strings.Replace(cc("user", "x", "", "02", `{"role":"user","content":"inline"}`), `"sessionId"`, `"isSidechain":true,"agentId":"inl","sessionId"`, 1)
	main := put(t, dir, "s.jsonl", cc("assistant", "a", "", "00", `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"description":"look","prompt":"p"}}]}`)+
		side+strings.Replace(cc("user", "b", "a", "09", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}`), `"sessionId"`, `"toolUseResult":{"agentId":"abc","status":"completed"},"sessionId"`, 1))
	put(t, dir, "s/subagents/agent-abc.jsonl", strings.Replace(cc("user", "k", "", "03", `{"role":"user","content":"inner"}`), `"sessionId"`, `"isSidechain":true,"agentId":"abc","sessionId"`, 1))
	put(t, dir, "agent-other.jsonl", strings.Replace(cc("user", "k", "", "03", `{"role":"user","content":"of another"}`), `"sessionId":"s"`, `"sessionId":"other"`, 1))
	tr := opened(t, main)
	agents := tr.Agents()
	if len(agents) != 3 {
		t.Fatalf("%+v", agents)
	}
	if agents[1].ID != "abc" || agents[1].Step != 0 || agents[1].File == "" || agents[2].ID != "inl" {
		t.Errorf("%+v", agents)
	}
	sub, err := tr.OpenAgent(1)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.Step(0).Title != "inner" {
		t.Errorf("%q", sub.Step(0).Title)
	}
	if h := tr.Head(1); h.Agent != 2 || !h.Has(Sidechain) {
		t.Errorf("%+v", h)
	}
	if tr.Head(0).Outcome != Succeeded || tr.Head(0).Class != Delegate {
		t.Errorf("%+v", tr.Head(0))
	}
}

// I05 and I06, and words that are there twice.
func TestCodex(t *testing.T) {
	line := func(kind, payload string) string {
		return `{"timestamp":"2026-01-02T10:00:00.000Z","type":"` + kind + `","payload":` + payload + "}\n"
	}
	count := func(in, cached, out int) string {
		return line("event_msg", fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":3}}}`, in, cached, out))
	}
	tr := written(t, line("session_meta", `{"id":"s","cwd":"/w","cli_version":"0.1"}`)+
		line("turn_context", `{"model":"gpt-x","cwd":"/w"}`)+
		line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}`)+
		line("event_msg", `{"type":"user_message","message":"do it"}`)+
		line("event_msg", `{"type":"token_count","info":null}`)+
		line("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"SYNTHETIC_ENCRYPTED_CONTENT_MUST_NOT_RENDER"}`)+
		line("response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls -l\"]}","call_id":"c1"}`)+
		line("response_item", `{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"no\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":1.5}}"}`)+
		line("response_item", `{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** End Patch","call_id":"c2"}`)+
		line("event_msg", `{"type":"exec_command_end","call_id":"c2","exit_code":0,"duration":{"secs":2,"nanos":500000000}}`)+
		line("response_item", `{"type":"custom_tool_call_output","call_id":"c2","output":"ok"}`)+
		count(1000, 200, 100)+count(1000, 200, 100)+count(3000, 900, 300)+
		line("event_msg", `{"type":"agent_message","message":"done"}`)+
		line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`)+
		line("event_msg", `{"type":"agent_message","message":"done"}`)+
		line("future_synthetic_record", `{"type":"x","encrypted_content":"SYNTHETIC_ENCRYPTED_CONTENT_MUST_NOT_RENDER"}`)+
		`{"timestamp":"2026-01-02T10:00:00Z","type":"response_`)
	wantKinds(t, tr, "state state message thinking shell/shell/failed apply_patch/edit/ok message message unknown")
	tot := tr.Totals()
	if n(tot.Input)+n(tot.Output) != 3300 || n(tot.CacheRead) != 900 || tot.Method != "cumulative deltas" {
		t.Errorf("%+v", tot)
	}
	finding(t, tr, "unknown-record")
	if f := finding(t, tr, "torn-tail"); f.Line != 19 {
		t.Errorf("%+v", f)
	}
	f := full(t, tr, 4)
	if f.Command() != "ls -l" || f.Exit == nil || *f.Exit != 2 || f.DurationMS != 1500 {
		t.Errorf("%+v", f)
	}
	if tr.Head(5).DurationMS != 2500 {
		t.Errorf("an event's duration is overruled: %d", tr.Head(5).DurationMS)
	}
	if p, ok := full(t, tr, 5).Part(PartPatch); !ok || !strings.HasPrefix(p.Raw(), "*** Begin") {
		t.Errorf("%+v", full(t, tr, 5))
	}
	noSecret(t, tr, "MUST_NOT_RENDER")
}

// noSecret looks for a text in everything that is handed out to be shown.
func noSecret(t *testing.T, tr *Transcript, secret string) {
	t.Helper()
	for i := range tr.Len() {
		f := full(t, tr, i)
		if strings.Contains(f.Title, secret) {
			t.Errorf("step %d: its title tells", i)
		}
		for _, p := range f.Parts {
			if strings.Contains(p.Text.Raw(), secret) || strings.Contains(p.Label, secret) {
				t.Errorf("step %d: part %s tells", i, p.Role)
			}
		}
	}
	for _, f := range tr.Integrity().Findings {
		if strings.Contains(f.Text, secret) {
			t.Errorf("finding %s tells", f.Code)
		}
	}
}

func TestCodexOtherForms(t *testing.T) {
	old := written(t, `{"id":"s","timestamp":"2025-05-01T10:00:00Z","instructions":null}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\",\"a b\"]}","call_id":"c"}
{"type":"function_call_output","call_id":"c","output":"x"}
`)
	wantKinds(t, old, "state message shell/shell/done")
	if c := full(t, old, 2).Command(); c != "ls 'a b'" {
		t.Errorf("%q", c)
	}
	exec := written(t, `{"type":"thread.started","thread_id":"t"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":1,"status":"failed"}}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"bye"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}
`)
	wantKinds(t, exec, "lifecycle command_execution/shell/failed message lifecycle")
	if tot := exec.Totals(); n(tot.Input) != 10 || tot.Method != "usage of each turn" {
		t.Errorf("%+v", tot)
	}
	for _, tr := range []*Transcript{
		opened(t, shared.Shared(t, "transcripts", "codex", "standard_session.jsonl")),
		opened(t, shared.Shared(t, "transcripts", "codex", "fc_args_1.jsonl")),
	} {
		if tr.Info().Format != "codex" || tr.Len() != 3 {
			t.Errorf("%+v, %d steps", tr.Info(), tr.Len())
		}
	}
}

// I25: state as a string, no trajectory, zero totals, CRLF, escape sequences.
func TestSWEAgent(t *testing.T) {
	dir := shared.Shared(t, "transcripts", "swe-agent")
	baby := opened(t, filepath.Join(dir, "BabyTimeCapsule.traj"))
	if f := full(t, baby, 1); f.Tool != "open" || !strings.HasPrefix(f.WorkDir, "/__Users__") || f.Output() == "" {
		t.Errorf("%+v", f)
	}
	finding(t, baby, "no-usage")
	if baby.Totals().Input != nil {
		t.Error("a replay's zeros are taken for totals")
	}
	pydicom := opened(t, filepath.Join(dir, "pydicom__pydicom-1458.traj"))
	if tot := pydicom.Totals(); n(tot.CostMicroUSD) != 1267190 || n(tot.Input) != 122612 || tot.CostMethod != "totals of the run" {
		t.Errorf("%+v", tot)
	}
	simple := opened(t, filepath.Join(dir, "function_calling_simple.traj"))
	wantKinds(t, simple, "state message message find_file/search/done message open/read/done message edit/edit/done message bash/shell/done message submit/finish/done")

	tr := written(t, `{"environment":"e","trajectory":[
		{"action":"ls\n","observation":"a\r\nb\u001b]52;c;x\u0007","response":"r","thought":"t","state":{"working_dir":"/w"},"execution_time":0.5,"messages":[{"role":"user"}]},
		{"action":"str_replace_editor view /x","observation":"","thought":"","execution_time":1.25,"query":[]}],
		"history":[{"role":"system","content":"s","is_demo":true}],"info":{"exit_status":"submitted","model_stats":{"tokens_sent":10,"tokens_received":2,"instance_cost":0.01}}}`)
	wantKinds(t, tr, "message bash/shell/done str_replace_editor/read/done")
	if clock, _ := tr.Clock(); clock != Synthetic || tr.Head(2).AtMS != 500 || tr.Head(2).DurationMS != 1250 {
		t.Errorf("%s %+v", clock, tr.Head(2))
	}
	out, _ := full(t, tr, 1).Part(PartOutput)
	if out.String() != "a\nb" || !strings.Contains(out.Raw(), "\r\n") {
		t.Errorf("%q", out.String())
	}
}

// I26: what is whole before the cut is shown.
func TestTruncatedDocument(t *testing.T) {
	whole := `{"environment":"e","trajectory":[{"action":"one","observation":"1"},{"action":"two","observation":"2"},{"action":"thr`
	tr := written(t, whole)
	wantKinds(t, tr, "bash/shell/done bash/shell/done")
	if f := finding(t, tr, "truncated"); f.Severity != Break || f.Offset != int64(len(whole)) || !strings.Contains(f.Text, fmt.Sprintf("truncated at byte %d", len(whole))) {
		t.Errorf("%+v", f)
	}
}

func TestATIF(t *testing.T) {
	tr := written(t, `{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"a","version":"1","model_name":"m"},"steps":[
	{"step_id":1,"timestamp":"2026-01-02T10:00:00Z","source":"user","message":[{"type":"text","text":"go"},{"type":"image","source":{"media_type":"image/png","path":"x.png"}}]},
	{"step_id":2,"source":"agent","message":"old","is_copied_context":true,"metrics":{"prompt_tokens":999}},
	{"step_id":4,"timestamp":"2026-01-02T10:00:05Z","source":"agent","message":"","reasoning_content":"why","tool_calls":[{"tool_call_id":"c1","function_name":"bash","arguments":{"command":"ls"}},{"tool_call_id":"c2","function_name":"write_file","arguments":{"path":"/a","content":"b"}}],
	 "observation":{"results":[{"source_call_id":"c2","content":"wrote","extra":{"is_error":false}},{"source_call_id":"c1","content":[{"type":"text","text":"list"}],"extra":{"is_error":true}},{"source_call_id":"zz","content":"lost"}]},
	 "metrics":{"prompt_tokens":10,"completion_tokens":NaN,"cached_tokens":4,"cost_usd":0.5},"extra":{"duration_ms":7,"started_after_ms":3}}],
	"final_metrics":{"total_prompt_tokens":10,"total_completion_tokens":5,"total_cost_usd":0.5,"extra":{"infrastructure_evaluation":{"schema_version":1,"outcome":{"durable":true,"durable_at_ms":61000}}}},
	"subagent_trajectories":[{"schema_version":"ATIF-v1.7","trajectory_id":"t2","agent":{"name":"b","version":"1"},"steps":[{"step_id":1,"source":"agent","message":"sub"}]}]}`)
	wantKinds(t, tr, "message message thinking bash/shell/failed write_file/write/ok output message")
	finding(t, tr, "step-id")
	finding(t, tr, "result-without-call")
	if tot := tr.Totals(); n(tot.Input) != 10 || n(tot.CostMicroUSD) != 500_000 || tot.Method != "final metrics of the trajectory" {
		t.Errorf("%+v", tot)
	}
	if spent := tr.Spent(tr.Len()); n(spent.Input) != 10 {
		t.Errorf("copied context is charged: %d", n(spent.Input))
	}
	if !slices.Contains(tr.Info().Extra, Fact{"outcome.durable_at_ms", "61000"}) {
		t.Errorf("%+v", tr.Info().Extra)
	}
	if f := full(t, tr, 3); f.Output() != "list" || f.DurationMS != 7 {
		t.Errorf("%+v", f)
	}
	if a := tr.Agents(); len(a) != 2 || a[1].ID != "t2" || tr.Head(6).Agent != 1 {
		t.Errorf("%+v", a)
	}
}

// I29: an exception and a reward of 0, no end, an empty trajectory.
func TestHarborTrial(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "result.json", `{"id":"i","task_name":"task","trial_name":"t","agent_info":{"name":"claude-code","version":"1","model_info":{"name":"m"}},
		"agent_result":{"n_input_tokens":7,"n_cache_tokens":2,"n_output_tokens":3,"cost_usd":0.25},"verifier_result":{"rewards":{"reward":0}},
		"exception_info":{"exception_type":"EnvError","exception_message":"no docker"},"started_at":"2026-01-02T10:00:00","finished_at":null,"agent_execution":{"started_at":"2026-01-02T10:00:02","finished_at":"2026-01-02T10:00:09"}}`)
	put(t, dir, "agent/trajectory.json", "")
	tr := opened(t, dir)
	if i := tr.Info(); i.Format != "harbor" || i.Outcome != "exception" || i.Model != "m" || !slices.Contains(i.Extra, Fact{"reward.reward", "0"}) {
		t.Errorf("%+v", i)
	}
	finding(t, tr, "exception")
	finding(t, tr, "unfinished")
	finding(t, tr, "unreadable-trajectory")
	if tot := tr.Totals(); n(tot.CostMicroUSD) != 250_000 {
		t.Errorf("%+v", tot)
	}
	dir = t.TempDir()
	put(t, dir, "result.json", `{"trial_name":"t","task_name":"k","agent_info":{"name":"a"},"agent_result":null,"verifier_result":null,"exception_info":null}`)
	put(t, dir, "agent/trajectory.json", `{"schema_version":"ATIF-v1.4","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":"go"}]}`)
	tr = opened(t, dir)
	finding(t, tr, "no-evidence")
	wantKinds(t, tr, "message")
	if h := tr.Head(0); h.File != "agent/trajectory.json" {
		t.Errorf("%+v", h)
	}
	record, _, err := tr.Raw(0)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	if b, _ := io.ReadAll(record); !strings.HasPrefix(string(b), `{"step_id":1`) {
		t.Errorf("raw is %q", b)
	}
	// A job's aggregate is no trial.
	if _, err := Open(put(t, t.TempDir(), "result.json", `{"id":"j","stats":{},"n_total_trials":3}`)); !errors.Is(err, ErrFormat) {
		t.Errorf("an aggregate: %v", err)
	}
}

// I19: a Terminal-Bench trial with keys and terminal sequences.
func TestTerminalBench(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "results.json", `{"id":"i","trial_name":"t","task_id":"k","instruction":"build","is_resolved":false,"failure_mode":"agent_timeout","parser_results":{"test_a":"passed","test_b":"failed"},
		"recording_path":"x","total_input_tokens":5,"total_output_tokens":6,"agent_started_at":"2026-01-02T10:00:00+00:00","agent_ended_at":"2026-01-02T10:05:00+00:00"}`)
	put(t, dir, "sessions/agent.cast", `{"version":2,"width":160,"height":40,"timestamp":1767348000}
[0.5,"o","$ "]
[1.0,"i","l"]
[1.1,"o","l"]
[1.2,"i","\r"]
[1.3,"o","\r\n\u001b[3Jfile\u001b[?2004h"]
[9.0,"o","late"]
`)
	tr := opened(t, dir)
	wantKinds(t, tr, "lifecycle lifecycle output output")
	if i := tr.Info(); i.Format != "terminal-bench" || i.Outcome != "not resolved" || !slices.Contains(i.Extra, Fact{"test test_b", "failed"}) {
		t.Errorf("%+v", i)
	}
	f := full(t, tr, 2)
	keys, _ := f.Part(PartInput)
	out, _ := f.Part(PartOutput)
	if keys.Raw() != "l\r" || out.String() != "$ l\nfile" || !strings.Contains(out.Raw(), "\x1b[3J") {
		t.Errorf("%+v", f)
	}
	if f.Time.Unix() != 1767348000 || tr.Head(3).Time.Sub(f.Time).Seconds() != 8.5 {
		t.Errorf("%v", f.Time)
	}
}

// I17 and I18: sizes, markers, clocks that fall, comments, a trailing part line.
func TestCasts(t *testing.T) {
	tr := written(t, `{"version":2,"width":80,"height":24}
[-1.0,"o","a"]
[5.0,"r","100x30"]
[4.0,"o","b"]
[6.0,"m","mile"]
[6.5,"z","?"]
[7.0,"o`)
	wantKinds(t, tr, "output state output marker unknown")
	for i, want := range []int64{0, 5000, 5000, 6000} {
		if h := tr.Head(i); h.AtMS != want {
			t.Errorf("step %d at %d", i, h.AtMS)
		}
	}
	finding(t, tr, "time-backwards")
	finding(t, tr, "torn-tail")
	if tr.Step(3).Title != "mile" || tr.Step(1).Title != "100x30" {
		t.Errorf("%q %q", tr.Step(3).Title, tr.Step(1).Title)
	}
	v3 := written(t, `{"version":3,"term":{"cols":80,"rows":24},"timestamp":1767348000}
# a comment
[1.0,"o","a"]
[1.5,"o","b"]
[4.0,"x","1"]
`)
	wantKinds(t, v3, "output lifecycle")
	if h := v3.Head(1); h.Outcome != Failed || h.AtMS != 5500 {
		t.Errorf("%+v", h)
	}
	v1 := written(t, `{"version":1,"width":80,"height":24,"duration":9.5,"stdout":[[0.5,"x"],[0.5,"y"],[8.0,"z"],[-3,"w"]]}`)
	wantKinds(t, v1, "output output")
	if out := full(t, v1, 0).Output(); out != "xy" {
		t.Errorf("%q", out)
	}
	if v1.Head(1).AtMS != 9000 {
		t.Errorf("%+v", v1.Head(1))
	}
}

// I11: wall time is the axis.
func TestInspectSamples(t *testing.T) {
	tr := opened(t, shared.Shared(t, "transcripts", "inspect", "2025-05-12T20-28-26-04-00_security-guide.json"))
	finding(t, tr, "working-clock")
	if a := tr.Agents(); len(a) != 4 || a[1].Name != "sample 1, epoch 1" {
		t.Errorf("%+v", a)
	}
	if clock, _ := tr.Clock(); clock != Absolute {
		t.Error(clock)
	}
	if tot := tr.Totals(); n(tot.Input) != 959 || n(tot.Output) != 1033 {
		t.Errorf("%+v", tot)
	}
	browser := opened(t, shared.Shared(t, "transcripts", "inspect", "2025-05-12T20-27-36-04-00_browser.json"))
	if tot := browser.Totals(); n(tot.Input) != 15235+9088 {
		t.Errorf("%+v", tot)
	}
	last := ofKind(browser, Message)
	if words := last[len(last)-1].Title; !strings.HasPrefix(words, "The AI Security Institute") {
		t.Errorf("an attachment is not resolved: %q", words)
	}
	errs := opened(t, shared.Shared(t, "transcripts", "inspect", "log_tool_call_error.json"))
	if calls := ofKind(errs, ToolCall); len(calls) != 11 || calls[0].Outcome == Succeeded {
		t.Errorf("%d calls", len(calls))
	} else if calls[1].Outcome != TimedOut || calls[2].Outcome != Failed || errs.Step(calls[10].Index).Title == "" {
		t.Errorf("%s, %s, %q", calls[1].Outcome, calls[2].Outcome, errs.Step(calls[10].Index).Title)
	}
	for _, name := range []string{"log_streaming.eval", "log_message_deduplication.eval"} {
		if tr := opened(t, shared.Shared(t, "transcripts", "inspect", name)); tr.Len() < 40 || tr.Integrity().Breaks() {
			t.Errorf("%s: %d steps, %q", name, tr.Len(), codes(tr))
		}
	}
}

type zipped struct {
	name, text string
	method     uint16
}

func zipFile(t testing.TB, members []zipped) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	z.RegisterCompressor(methodZstd, zstd.ZipCompressor())
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: m.method})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, m.text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func evalFile(t testing.TB) []byte {
	sample := func(id, words string) string {
		return `{"id":"` + id + `","epoch":1,"messages":[],"events":[{"event":"model","timestamp":"2026-01-02T10:00:00+00:00","completed":"2026-01-02T10:00:03+00:00","working_start":NaN,"model":"m","output":{"choices":[{"message":{"role":"assistant","content":"` + words + `"}}],"usage":{"input_tokens":5,"input_tokens_cache_read":10,"output_tokens":2,"total_cost":Infinity}}}],"attachments":{"h":"long text"}}`
	}
	return zipFile(t, []zipped{
		{"_journal/start.json", `{"version":2,"eval":{"task":"k","model":"m"}}`, zip.Deflate},
		{"samples/1_epoch_1.json", sample("1", "superseded"), zip.Deflate},
		{"samples/1_epoch_1.json", sample("1", "attachment://h"), methodZstd},
		{"samples/c_epoch_1/sample.json", `{"id":"c","epoch":1,"events":[]}`, methodZstd},
		{"samples/c_epoch_1/attachments/0.json", `["zero","one"]`, methodZstd},
		{"samples/c_epoch_1/events/0.json", `[{"event":"info","timestamp":"2026-01-02T10:00:00+00:00","data":"a"}]`, methodZstd},
		{"samples/c_epoch_1/events/1.json", `[{"event":"tool","id":"t","function":"bash","arguments":{"cmd":"ls"},"result":"attachment://1","timestamp":"2026-01-02T10:00:01+00:00","failed":true,"error":{"type":"timeout","message":"slow"}}]`, methodZstd},
		{"samples/c_epoch_1/events/stats.json", `{}`, methodZstd},
	})
}

// I10: zstandard, the last of equal names, samples in stretches; no header.
func TestInspectArchive(t *testing.T) {
	tr := written(t, string(evalFile(t)))
	wantKinds(t, tr, "message state bash/shell/timeout")
	if tr.Step(0).Title != "long text" {
		t.Errorf("%q", tr.Step(0).Title)
	}
	if f := full(t, tr, 2); f.Output() != "one\nslow" || f.Command() != "ls" {
		t.Errorf("%q %q", f.Output(), f.Command())
	}
	finding(t, tr, "same-member")
	finding(t, tr, "no-header")
	if tot := tr.Totals(); n(tot.Input) != 15 || n(tot.Output) != 2 || tot.CostMicroUSD != nil {
		t.Errorf("%+v", tot)
	}
	if !strings.HasSuffix(tr.Head(0).File, "▸ samples/1_epoch_1.json") {
		t.Errorf("%q", tr.Head(0).File)
	}
}

// I09: an archive whose directory is cut is walked over.
func TestInspectArchiveCut(t *testing.T) {
	b := evalFile(t)
	at := bytes.Index(b, []byte("PK\x01\x02"))
	tr := written(t, string(b[:at+10]))
	if f := finding(t, tr, "no-directory"); f.Severity != Break {
		t.Errorf("%+v", f)
	}
	wantKinds(t, tr, "message state bash/shell/timeout")
	// Cut inside of a member: what is before it is there.
	if tr := written(t, string(b[:at-400])); tr.Len() == 0 {
		t.Error("nothing was saved")
	}
	if _, err := Open(put(t, t.TempDir(), "x", "PK\x03\x04 nothing")); err == nil {
		t.Error("an archive of nothing opens")
	}
}

// I12: an index of logs is no log.
func TestInspectIndex(t *testing.T) {
	_, err := Open(put(t, t.TempDir(), "logs.json", `{"a.eval":{"version":2,"status":"success","eval":{"task":"k"}}}`))
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "index") {
		t.Errorf("%v", err)
	}
}

// I27: null ids and times, odd items, causes that point nowhere, exit statuses.
func TestOpenHands(t *testing.T) {
	tr := written(t, `[
	{"id":0,"timestamp":"2026-01-02T10:00:00.5","source":"agent","action":"initialize","args":{}},
	{"id":1,"timestamp":"2026-01-02T10:00:01","source":"user","message":"m","action":"message","args":{"content":"please"}},
	{"id":2,"timestamp":"2026-01-02T10:00:02","source":"agent","action":"run","args":{"command":"make","thought":"build it"},"llm_metrics":{"accumulated_cost":0.1,"accumulated_token_usage":{"prompt_tokens":100,"completion_tokens":10,"cache_read_tokens":5,"cache_write_tokens":0}}},
	{"id":3,"timestamp":"2026-01-02T10:00:05","source":"agent","observation":"run","content":"bad","cause":2,"extras":{"exit_code":0,"metadata":{"exit_code":2,"working_dir":"/w"}}},
	{"id":4,"timestamp":"2026-01-02T10:00:06","source":"agent","action":"run_ipython","args":{"code":"print(1)"},"llm_metrics":{"accumulated_cost":0.3,"accumulated_token_usage":{"prompt_tokens":250,"completion_tokens":30,"cache_read_tokens":5,"cache_write_tokens":0}}},
	{"id":null,"timestamp":null,"source":"environment","observation":"run_ipython","content":"1"},
	{"id":6,"timestamp":"2026-01-02T10:00:08","source":"environment","observation":"run","content":"x","cause":77,"extras":{"exit_code":-1}},
	{"id":7,"timestamp":"2026-01-02T10:00:09","source":"environment","observation":"null","content":""},
	{"id":8,"timestamp":"2026-01-02T10:00:10","source":"agent","action":"change_agent_state","extras":{"agent_state":"finished"}},
	{"id":9,"timestamp":"2026-01-02T10:00:11","source":"agent","action":"finish","args":{"final_thought":"done"}}]`)
	wantKinds(t, tr, "state message run/shell/failed run_ipython/code/done output state lifecycle finish/finish/done")
	f := full(t, tr, 2)
	if f.Command() != "make" || *f.Exit != 2 || f.WorkDir != "/w" || f.DurationMS != 3000 || f.Output() != "bad" {
		t.Errorf("%+v", f)
	}
	if tr.Head(4).Outcome != TimedOut {
		t.Errorf("%+v", tr.Head(4))
	}
	finding(t, tr, "result-without-call")
	finding(t, tr, "no-time")
	if tot := tr.Totals(); n(tot.Input) != 250 || n(tot.CostMicroUSD) != 300_000 || tot.Charges != 2 {
		t.Errorf("%+v", tot)
	}
	if clock, _ := tr.Clock(); clock != Naive {
		t.Error(clock)
	}
	lines := written(t, `{"instance_id":"a-1","instruction":"i","history":[[{"action":"run","args":{"command":"ls"}},{"observation":"run","content":"c","extras":{"exit_code":0}}]],"metrics":{}}
{"instance_id":"a-2","history":[{"id":1,"action":"message","source":"agent","args":{"content":"hi"}}]}
`)
	wantKinds(t, lines, "run/shell/ok message")
	if a := lines.Agents(); len(a) != 3 || a[2].ID != "a-2" || lines.Head(1).Agent != 2 {
		t.Errorf("%+v", a)
	}
}

func TestOpenHandsV1(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "base_state.json", `{"id":"conv","agent":{"llm":{"model":"m"}},"execution_status":"finished"}`)
	put(t, dir, "events/event-00002-b.json", `{"id":"e2","kind":"ActionEvent","timestamp":"2026-01-02T10:00:02","source":"agent","thought":[{"type":"text","text":"th"}],"reasoning_content":"why","action":{"kind":"TerminalAction","command":"ls"},"tool_name":"terminal","tool_call_id":"c1","llm_response_id":"r1"}`)
	put(t, dir, "events/event-00010-c.json", `{"id":"e3","kind":"ObservationEvent","timestamp":"2026-01-02T10:00:03","source":"environment","action_id":"e2","tool_name":"terminal","tool_call_id":"c1","observation":{"kind":"TerminalObservation","content":[{"type":"text","text":"\u001b[?2004hout"}],"is_error":false,"exit_code":null,"timeout":true}}`)
	put(t, dir, "events/event-00001-a.json", `{"id":"e1","kind":"MessageEvent","timestamp":"2026-01-02T10:00:01","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"go"}]}}`)
	put(t, dir, "events/event-00011-d.json", `{"id":"e4","kind":"MessageEvent","timest`)
	tr := opened(t, dir)
	wantKinds(t, tr, "message thinking terminal/shell/timeout unknown")
	f := full(t, tr, 2)
	if f.Command() != "ls" || f.DurationMS != 1000 || !strings.Contains(f.Output(), "out") {
		t.Errorf("%+v", f)
	}
	finding(t, tr, "damaged-record")
	put(t, dir, "events/event-00012-e.json", `{"id":"e5","kind":"MessageEvent","timestamp":"2026-01-02T10:00:05","source":"agent","llm_message":{"content":[{"type":"text","text":"more"}]}}`)
	if changed, err := tr.Refresh(); !changed || err != nil || tr.Step(tr.Len()-1).Title != "more" {
		t.Errorf("%v %v, %d steps", changed, err, tr.Len())
	}
}

const openCodePartTool = `{"id":"prt_2","type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls","description":"list"},"output":"a","title":"list","metadata":{"exit":1},"time":{"start":1767348001000,"end":1767348002500,"compacted":1767348009000}}}`

// I28: the forms of opencode are told apart; unfinished and compacted are marked.
func TestOpenCode(t *testing.T) {
	user := `{"id":"msg_1","role":"user","time":{"created":1767348000000}}`
	agent := `{"id":"msg_2","role":"assistant","providerID":"p","modelID":"m","cost":0.5,"tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":100,"write":3}},"time":{"created":1767348001000}}`
	text := `{"id":"prt_1","type":"text","text":"hello"}`
	run := `{"id":"prt_3","type":"tool","callID":"d","tool":"task","state":{"status":"running","input":{"prompt":"x"},"metadata":{"sessionId":"ses_2"},"time":{"start":1767348003000}}}`
	end := `{"id":"prt_4","type":"step-finish","cost":0.5,"tokens":{"input":10,"output":5,"cache":{"read":100,"write":3}}}`
	verify := func(t *testing.T, tr *Transcript) {
		t.Helper()
		wantKinds(t, tr, "message bash/shell/failed task/delegate/unfinished")
		f := full(t, tr, 1)
		if f.Command() != "ls" || f.Output() != "a" || !f.Has(Compacted) || f.DurationMS != 1500 || f.Time.UnixMilli() != 1767348001000 || f.Title != "list" {
			t.Errorf("%+v", f)
		}
		if tot := tr.Totals(); n(tot.Input) != 113 || n(tot.CostMicroUSD) != 500_000 {
			t.Errorf("%+v", tot)
		}
		if a := tr.Agents(); len(a) != 2 || a[1].ID != "ses_2" || a[1].Step != 2 {
			t.Errorf("%+v", a)
		}
		finding(t, tr, "no-result")
	}
	t.Run("export", func(t *testing.T) {
		verify(t, written(t, `{"info":{"id":"ses_1","title":"T","directory":"/w"},"messages":[{"info":`+user+`,"parts":[`+text+`]},{"info":`+agent+`,"parts":[`+openCodePartTool+`,`+run+`,`+end+`]}]}`))
	})
	t.Run("dump", func(t *testing.T) {
		wrap := func(id, data string) string { return `{"id":"` + id + `","data":` + data }
		flat := `{"role":"assistant","provider_id":"p","model_id":"m","cost":0.5,"tokens_input":10,"tokens_output":5,"tokens_cache_read":100,"tokens_cache_write":3,"time_created":1767348001000}`
		verify(t, written(t, `{"session":{"id":"ses_1","title":"T"},"messages":[`+wrap("msg_1", user)+`,"parts":[`+wrap("prt_1", text)+`}]},`+
			wrap("msg_2", flat)+`,"parts":[`+wrap("prt_2", openCodePartTool)+`},`+wrap("prt_3", run)+`},`+wrap("prt_4", end)+`}]}]}`))
	})
	t.Run("tree", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "storage/session/proj/ses_1.json", `{"id":"ses_1","title":"T"}`)
		put(t, dir, "storage/session/proj/ses_2.json", `{"id":"ses_2","parentID":"ses_1","title":"child"}`)
		put(t, dir, "storage/message/ses_1/msg_1.json", user)
		put(t, dir, "storage/message/ses_1/msg_2.json", agent)
		put(t, dir, "storage/part/msg_1/prt_1.json", text)
		put(t, dir, "storage/part/msg_2/prt_2.json", openCodePartTool)
		put(t, dir, "storage/part/msg_2/prt_3.json", run)
		put(t, dir, "storage/part/msg_2/prt_4.json", end)
		verify(t, opened(t, dir))
	})
	for _, wal := range []bool{false, true} {
		t.Run(fmt.Sprintf("database, log %v", wal), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "any name?#.db")
			db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23").Replace(path))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			mode := "delete"
			if wal {
				mode = "wal"
			}
			for _, q := range []string{"PRAGMA journal_mode=" + mode,
				`CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT, time_created INTEGER, time_updated INTEGER)`,
				`CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, data TEXT, time_created INTEGER)`,
				`CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT, time_created INTEGER)`,
				`INSERT INTO session VALUES('ses_2','p','ses_1','child',2,2),('ses_1','p',NULL,'T',1,1)`} {
				if _, err := db.Exec(q); err != nil {
					t.Fatal(err)
				}
			}
			for _, row := range [][2]string{{"msg_1", user}, {"msg_2", agent}} {
				db.Exec(`INSERT INTO message VALUES(?,'ses_1',?,1767348000000)`, row[0], row[1])
			}
			for i, row := range [][2]string{{"msg_1", text}, {"msg_2", openCodePartTool}, {"msg_2", run}, {"msg_2", end}} {
				db.Exec(`INSERT INTO part VALUES(?,?,'ses_1',?,1)`, fmt.Sprint("prt_", i), row[0], row[1])
			}
			before := listing(t, dir)
			tr := opened(t, path)
			verify(t, tr)
			record, _, err := tr.Raw(0)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(record); string(b) != text {
				t.Errorf("raw is %q", b)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("opening wrote: before %s, after %s", before, after)
			}
		})
	}
	t.Run("stream", func(t *testing.T) {
		tr := written(t, `{"type":"step_start","timestamp":1767348000000,"sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"tool_use","timestamp":1767348001000,"sessionID":"ses_1","part":`+openCodePartTool+`}
{"type":"step_finish","timestamp":1767348002000,"sessionID":"ses_1","part":`+end+`}
`)
		wantKinds(t, tr, "bash/shell/failed")
		if tot := tr.Totals(); n(tot.Input) != 113 || tot.Method != "usage of each finished step, cached input added" {
			t.Errorf("%+v", tot)
		}
	})
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s string
	for _, e := range entries {
		info, _ := e.Info()
		s += fmt.Sprint(e.Name(), " ", info.Size(), " ", info.ModTime(), "; ")
	}
	return s
}

func TestHeat(t *testing.T) {
	tr := written(t, `{"schema_version":1,"sequence":0,"elapsed_ms":0,"kind":"agent_started","agent":"a","territory":"one","model":"m"}
{"schema_version":1,"sequence":1,"elapsed_ms":5,"kind":"milestone_evaluation_started","territory":"one","milestone":"x"}
{"schema_version":1,"sequence":2,"elapsed_ms":1000,"kind":"agent_action_started","territory":"one","agent":"a","action":1,"channel":"exec","machine":"host","command":"systemctl stop x"}
{"schema_version":1,"sequence":3,"elapsed_ms":1500,"kind":"agent_action_finished","territory":"one","agent":"a","action":1,"exit":1,"took_ms":500,"output":"no","bytes":2}
{"schema_version":1,"sequence":4,"elapsed_ms":2000,"kind":"milestone_passed","territory":"one","milestone":"x","points":5,"evidence":{}}
{"schema_version":1,"sequence":5,"elapsed_ms":2500,"kind":"durable_deployment_completed","territory":"one","elapsed_ms":2400}
{"schema_version":1,"sequence":6,"elapsed_ms":2600,"kind":"usage_charged","agent":"a","resource_units":1,"input_tokens":7,"output_tokens":null,"cost_microusd":12}
{"schema_version":9,"sequence":9,"elapsed_ms":2700,"kind":"from_the_future"}
`)
	wantKinds(t, tr, "lifecycle exec/shell/failed marker marker state state")
	f := full(t, tr, 1)
	if f.Command() != "systemctl stop x" || f.Output() != "no" || *f.Exit != 1 || f.Pos != 0 || f.AtMS != 1000 || f.DurationMS != 500 || f.Agent != 1 {
		t.Errorf("%+v", f)
	}
	if tr.Head(3).AtMS != 2500 {
		t.Errorf("the second elapsed_ms is taken: %d", tr.Head(3).AtMS)
	}
	finding(t, tr, "sequence-gap")
	finding(t, tr, "newer-schema")
	if tot := tr.Totals(); n(tot.Input) != 7 || n(tot.CostMicroUSD) != 12 || tot.Output != nil {
		t.Errorf("%+v", tot)
	}
	if !slices.Contains(tr.Info().Extra, Fact{"left out", "1 routine events are left out"}) {
		t.Errorf("%+v", tr.Info().Extra)
	}
}

// A sample without events has messages alone, with their words.
func TestInspectMessagesHaveTheirWords(t *testing.T) {
	tr := written(t, `{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"input":"x","messages":[
		{"role":"user","content":"plain"},{"role":"assistant","content":[{"type":"text","text":"first"},{"type":"text","text":"second"}]}]}]}`)
	for i, want := range []string{"plain", "first second"} {
		f, err := tr.Full(i)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, p := range f.All(PartMessage) {
			words = append(words, p.Text.Raw())
		}
		if strings.Join(words, " ") != want || !strings.HasPrefix(tr.Step(i).Title, strings.Fields(want)[0]) {
			t.Errorf("message %d says %q under %q", i, words, tr.Step(i).Title)
		}
	}
}
