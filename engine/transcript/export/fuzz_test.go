package export

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"refbox/engine/redact"
	"refbox/engine/transcript"
)

// Any session, and any stream of a terminal: every form is written, the trajectory
// holds its rules, and a cast only draws.
func FuzzForms(f *testing.F) {
	f.Add([]byte(claude("user", "u1", `"x"`) + claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]`) +
		claude("user", "u2", `[{"type":"tool_result","tool_use_id":"t1","content":"a\u001b]0;x\u0007b"}]`)))
	f.Add([]byte(`{"version":2,"width":80,"height":24}` + "\n" + `[0.1,"o","\u001b[2J"]` + "\n" + `[0.2,"m","x"]` + "\n"))
	f.Add([]byte(`{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"agent","message":"m","tool_calls":[{"tool_call_id":"c","function_name":"f","arguments":[]}]}]}`))
	f.Add([]byte(`[{"id":0,"source":"agent","action":"run","args":{"command":"ls"}},{"cause":0,"observation":"run","content":"x","extras":{"exit_code":1}}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			t.Skip("larger than what is tried")
		}
		file := save(t, "record", string(b))
		tr, err := transcript.Open(file)
		if err != nil {
			return
		}
		defer tr.Close()
		if tr.Load(context.Background()) != nil || tr.Len() > 300 {
			return
		}
		s := Source{T: tr, Redact: &redact.Redactor{}}
		var out bytes.Buffer
		steps, err := ATIF(context.Background(), &out, s)
		if err != nil {
			t.Fatal(err)
		}
		checkATIF(t, "trajectory", out.Bytes(), steps)
		if _, err := Markdown(context.Background(), &bytes.Buffer{}, s); err != nil {
			t.Fatal(err)
		}
		for _, v3 := range []bool{false, true} {
			out.Reset()
			if _, err := Cast(context.Background(), &out, s, v3); err != nil {
				t.Fatal(err)
			}
			for i, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
				var frame []any
				if i > 0 && (json.Unmarshal(line, &frame) != nil || len(frame) != 3 || replayable(frame[2].(string)) != frame[2]) {
					t.Errorf("frame %q", line)
				}
			}
		}
	})
}
