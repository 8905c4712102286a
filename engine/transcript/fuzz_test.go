package transcript

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"refbox/engine/internal/shared"
)

// fuzzed opens bytes as a format that detection may not have taken them for, and
// holds what comes out to the package's promises.
func fuzzed(t *testing.T, st *store, format, name string) {
	// A hang must fail the input that it is about.
	defer time.AfterFunc(20*time.Second, func() { panic("hangs") }).Stop()
	x, imp, err := openAs(format, st, name)
	if err != nil {
		return
	}
	defer imp.close()
	tr := &Transcript{path: name, name: name, st: st, x: x, imp: imp}
	for range 1000 {
		if tr.advance() {
			break
		}
	}
	if !tr.done {
		t.Error("the reading does not come to an end")
	}
	if tr.Len() > 400 {
		for i := range 400 {
			tr.Step(i)
			tr.Full(i)
		}
	} else {
		check(t, tr)
	}
}

func fuzzFile(f *testing.F, format string, samples []string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	if dir := os.Getenv("REFBOX_DATA"); dir != "" || len(samples) > 0 && testing.Verbose() {
		for _, name := range samples {
			if b, err := os.ReadFile(shared.Shared(f, filepath.FromSlash(name))); err == nil && len(b) < 64<<10 {
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<18 {
			t.Skip("larger than what is tried")
		}
		fuzzed(t, &store{fsys: fstest.MapFS{"record": {Data: b}}}, format, "record")
	})
}

func FuzzClaude(f *testing.F) {
	fuzzFile(f, "claude-code", []string{"transcripts/claude-code/edge_cases.jsonl"},
		said("a", "x")+cc("assistant", "b", "c", "01", `{"id":"m","model":"x","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":1,"output_tokens":2}}`)+
			cc("user", "c", "b", "02", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"}],"is_error":true}]}`),
		"\x00\x00\x00\n{\"a\":\"xx"+said("z", "y"))
}

func FuzzCodex(f *testing.F) {
	fuzzFile(f, "codex", []string{"transcripts/codex/fc_args_1.jsonl"},
		`{"timestamp":"2026-01-02T10:00:00Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}}
{"timestamp":"2026-01-02T10:00:01Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"Exit code: 1\nWall time: 2.5 seconds"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"output_tokens":1}}}}
`)
}

func FuzzCodexExec(f *testing.F) {
	fuzzFile(f, "codex-exec", nil, `{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"ls","exit_code":1}}
{"type":"turn.completed","usage":{"input_tokens":1}}
`)
}

func FuzzReference(f *testing.F) {
	fuzzFile(f, "reference", nil, `{"schema_version":2,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"reasoning","text":"r","details":[]},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"o"}]}],
"tool_trace":[{"id":"a","name":"Bash","input":{},"output":"o","is_error":false,"started_after_ms":5,"duration_ms":1}],"usage":{"input_tokens":5},"timing":{"model_rounds":[{"started_after_ms":1,"duration_ms":2,"usage":{"input_tokens":5}}]}}`)
}

func FuzzAnalysis(f *testing.F) {
	fuzzFile(f, "analysis", []string{"seeds/analysis.json"}, `{"analyzer":"a","actions":[{"index":1,"kind":"mutation","started_after_ms":5,"duration_ms":6,"command":"Write /x","success":true,"output_excerpt":"…"}]}`)
}

func FuzzSWEAgent(f *testing.F) {
	fuzzFile(f, "swe-agent", []string{"transcripts/swe-agent/function_calling_simple.traj"},
		`{"trajectory":[{"action":"ls","observation":"x","state":"{\"working_dir\":\"/\"}","execution_time":1.5}],"info":{"model_stats":{"instance_cost":0.5}}}`,
		`{"history":[{"role":"assistant","content":"t","tool_calls":[{"id":"c","function":{"name":"edit","arguments":"{}"}}]},{"role":"tool","tool_call_ids":["c"],"content":"o"}],"info":{}}`)
}

func FuzzATIF(f *testing.F) {
	fuzzFile(f, "atif", nil, `{"schema_version":"ATIF-v1.7","agent":{"name":"a"},"steps":[{"step_id":1,"source":"agent","message":"m","reasoning_content":"r","tool_calls":[{"tool_call_id":"c","function_name":"f","arguments":{}}],"observation":{"results":[{"source_call_id":"c","content":"x"}]},"metrics":{"prompt_tokens":5}}],"subagent_trajectories":[{"steps":[]}]}`)
}

func FuzzInspectJSON(f *testing.F) {
	fuzzFile(f, "inspect-json", []string{"transcripts/inspect/log_tool_call_error.json"},
		`{"version":2,"status":"success","eval":{},"samples":[{"id":1,"epoch":1,"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"a","function":"f","arguments":{}}]},{"role":"tool","tool_call_id":"a","content":"attachment://h"}],"events":[{"event":"tool","function":"bash","arguments":{"cmd":"x"},"result":"attachment://h","timestamp":"2026-01-02T10:00:00+00:00"}],"attachments":{"h":"t"}}]}`)
}

func FuzzInspectEval(f *testing.F) {
	fuzzFile(f, "inspect-eval", nil, string(evalFile(f)))
}

func FuzzCast(f *testing.F) {
	fuzzFile(f, "asciicast", nil, "{\"version\":2,\"width\":80,\"height\":24}\n[0.5,\"o\",\"x\"]\n[-1,\"i\",\"\\r\"]\n[1e300,\"m\",\"k\"]\n",
		"{\"version\":3,\"term\":{\"cols\":80}}\n#c\n[1,\"o\",\"x\"]\n[1,\"x\",\"0\"]\n")
}

func FuzzCastV1(f *testing.F) {
	fuzzFile(f, "asciicast-v1", nil, `{"version":1,"width":80,"stdout":[[0.5,"a"],[9,"b"],[-1,"c"]]}`)
}

func FuzzOpenHands(f *testing.F) {
	fuzzFile(f, "openhands", nil, `[{"id":1,"timestamp":"2026-01-02T10:00:00","source":"agent","action":"run","args":{"command":"ls"}},{"observation":"run","content":"x","cause":1,"extras":{"metadata":{"exit_code":0}}}]`,
		`{"instance_id":"a","history":[[{"action":"run","args":{}},{"observation":"run"}]]}`+"\n"+`{"instance_id":"b","history":[]}`)
}

func FuzzOpenHandsV1(f *testing.F) {
	f.Add([]byte(`{"id":"a","kind":"ActionEvent","action":{"kind":"TerminalAction","command":"ls"},"tool_name":"terminal","tool_call_id":"c"}`), []byte(`{"kind":"ObservationEvent","action_id":"a","observation":{"content":[{"type":"text","text":"x"}],"exit_code":1}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fuzzed(t, &store{fsys: fstest.MapFS{"base_state.json": {Data: a}, "events/1.json": {Data: a}, "events/2.json": {Data: b}}}, "openhands-v1", ".")
	})
}

func FuzzOpenCode(f *testing.F) {
	fuzzFile(f, "opencode", nil, `{"info":{"id":"ses_1"},"messages":[{"info":{"role":"assistant","cost":0.5,"tokens":{"input":1}},"parts":[`+openCodePartTool+`,{"type":"text","text":"x"}]}]}`,
		`{"session":{"id":"s"},"messages":[{"data":{"role":"user"},"parts":[{"data":{"type":"text","text":"x"}}]}]}`)
}

func FuzzOpenCodeStream(f *testing.F) {
	fuzzFile(f, "opencode-stream", nil, `{"type":"tool_use","timestamp":1,"sessionID":"s","part":`+openCodePartTool+"}\n")
}

func FuzzOpenCodeTree(f *testing.F) {
	f.Add([]byte(`{"id":"s","parentID":"t"}`), []byte(`{"role":"assistant","tokens":{"input":1}}`), []byte(openCodePartTool))
	f.Fuzz(func(t *testing.T, session, message, part []byte) {
		fuzzed(t, &store{fsys: fstest.MapFS{"session/p/s.json": {Data: session}, "message/s/m.json": {Data: message}, "part/m/1.json": {Data: part}, "part/m/2.json": {Data: message}}}, "opencode-tree", ".")
	})
}

// The database's file is left whole, but for what the driver cannot be trusted
// with: its rows are what is hostile.
func FuzzOpenCodeRows(f *testing.F) {
	f.Add([]byte(`{"role":"user"}`), []byte(openCodePartTool))
	f.Fuzz(func(t *testing.T, message, part []byte) {
		x := newIndex("opencode-sqlite", "x")
		log := newOpenCode(x)
		m := log.message(reader(bytes.NewReader(message), 0, int64(len(message))))
		e := step(Unknown, NoActor, 1, int64(len(part)))
		log.part(reader(bytes.NewReader(part), 0, int64(len(part))), e, m)
		if got, ok := x.at(0); ok {
			openCodeBody(reader(bytes.NewReader(part), 0, int64(len(part))), got, 1000)
		}
	})
}

func FuzzHarbor(f *testing.F) {
	f.Add([]byte(`{"trial_name":"t","agent_result":{"cost_usd":1},"verifier_result":{"rewards":{"reward":1}},"exception_info":"x","started_at":"2026-01-02T10:00:00"}`), []byte(`{"schema_version":"ATIF-v1.7","steps":[{"step_id":1}]}`))
	f.Fuzz(func(t *testing.T, result, trajectory []byte) {
		fuzzed(t, &store{fsys: fstest.MapFS{"result.json": {Data: result}, "agent/trajectory.json": {Data: trajectory}, "verifier/reward.txt": {Data: result}}}, "harbor", "result.json")
	})
}

func FuzzTerminalBench(f *testing.F) {
	f.Add([]byte(`{"task_id":"t","is_resolved":true,"parser_results":{"a":"passed"},"agent_started_at":"2026-01-02T10:00:00+00:00"}`), []byte("{\"version\":2,\"width\":80,\"timestamp\":5}\n[0.5,\"o\",\"x\"]\n"))
	f.Fuzz(func(t *testing.T, result, film []byte) {
		fuzzed(t, &store{fsys: fstest.MapFS{"results.json": {Data: result}, "sessions/agent.cast": {Data: film}}}, "terminal-bench", "results.json")
	})
}

func FuzzHeat(f *testing.F) {
	fuzzFile(f, "heat", nil, `{"sequence":1,"elapsed_ms":5,"kind":"agent_action_started","territory":"a","action":1,"command":"ls"}
{"sequence":2,"elapsed_ms":9,"kind":"agent_action_finished","territory":"a","action":1,"exit":0,"took_ms":4,"output":"x"}
`)
}

// Detection must not fail on anything either.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"{}", "[[{\"action\":1}]]", "PK\x03\x04", "{\"info\":{\"id\":\"ses_\"},\"messages\":[]}", `{"history":[{"observation":1}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := OpenFS(fstest.MapFS{"x": {Data: b}}, "x")
		if err != nil {
			return
		}
		defer tr.Close()
		if tr.Len() < 400 {
			check(t, tr)
		}
	})
}
