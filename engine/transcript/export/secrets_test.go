package export

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"refbox/engine/redact"
	"refbox/engine/transcript"
)

// marked are secrets of many kinds, each with a part that is looked for. They are
// put together here so that no scanner takes this file for a leak.
func marked() (list []struct{ text, mark string }) {
	fill := func(i, n int) string { return strings.Repeat(fmt.Sprintf("Zq%dXw", i), n)[:n] }
	for i, s := range []struct {
		before, after string
		n             int
	}{
		{"gh" + "p_", "", 36}, {"github" + "_pat_", "", 40}, {"gl" + "pat-", "", 24}, {"xo" + "xb-", "", 40}, {"sk" + "_live_", "", 30},
		{"sk-" + "ant-api03-", "", 60}, {"sk-" + "proj-", "", 48}, {"AI" + "za", "", 35}, {"h" + "f_", "", 34}, {"n" + "pm_", "", 36},
		{"dc" + "kr_pat_", "", 30}, {"hv" + "s.", "", 30}, {"Authorization: Bearer ", "", 30}, {"postgres://app:", "@db/x", 14},
		{"PGPASSWORD=", " psql", 16}, {"aws_secret_access_key = ", "", 40}, {"curl -u admin:", " http://x", 16}, {`{"api_key": "`, `"}`, 20},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.", "", 40}, {"123456789:" + "AA", "", 33},
	} {
		secret := fill(i, s.n)
		list = append(list, struct{ text, mark string }{s.before + secret + s.after, secret[4:12]})
	}
	return list
}

// Secrets of twenty kinds in every place that a transcript has: none is in any
// form; all are where redaction is switched off.
func TestNoSecretLeaves(t *testing.T) {
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for _, m := range marked() {
		for place, session := range map[string]string{
			"message": claude("user", "u1", quoted("use "+m.text+" please")),
			"command": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":`+quoted("X="+"1; "+m.text)+`}}]`),
			"description": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls","description":`+
				quoted(m.text)+`}}]`),
			"argument": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"mcp__x","input":{"deep":[{"er":`+quoted(m.text)+`}]}}]`),
			"new text": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"/a","content":`+quoted("a\n"+m.text+"\nb")+`}}]`),
			"output": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"env"}}]`) +
				claude("user", "u2", `[{"type":"tool_result","tool_use_id":"t1","content":`+quoted("line\n"+m.text+"\nline")+`}]`),
			"hidden by colours": claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"env"}}]`) +
				claude("user", "u2", `[{"type":"tool_result","tool_use_id":"t1","content":`+quoted("\x1b[1m"+m.text[:len(m.text)/2]+"\x1b[0m"+m.text[len(m.text)/2:])+`}]`),
		} {
			s := Source{T: open(t, save(t, "s.jsonl", claude("user", "u0", `"begin"`)+session)), Redact: &redact.Redactor{}}
			shown := false
			for form, out := range forms(t, s) {
				if strings.Contains(out, m.mark) {
					t.Errorf("%s in a %s: %q is in the %s", m.text, place, m.mark, form)
				}
			}
			s.Redact = nil
			for _, out := range forms(t, s) {
				shown = shown || strings.Contains(out, m.mark)
			}
			if !shown && place != "hidden by colours" {
				t.Errorf("%s in a %s: is in no form even without redaction: the test looks for nothing", m.text, place)
			}
		}
	}
}

func claude(role, id, content string) string {
	return `{"type":"` + role + `","uuid":"` + id + `","sessionId":"s","timestamp":"2026-01-02T10:00:00.000Z","message":{"id":"m` + id + `","role":"` + role +
		`","model":"m","content":` + content + "}}\n"
}

// A key that names a secret makes its value one, whatever it looks like; the count
// is in the trajectory.
func TestNamedSecretsAndTheCount(t *testing.T) {
	s := Source{T: open(t, save(t, "s.jsonl", claude("assistant", "a1", `[{"type":"tool_use","id":"t1","name":"connect","input":{"user":"u","password":"Zq9hunter2x"}}]`))), Redact: &redact.Redactor{}}
	out := forms(t, s)
	for form, text := range out {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the password is in the %s", form)
		}
	}
	if !strings.Contains(out["atif"], `"redacted_secrets":1`) || !strings.Contains(out["markdown"], "1 secret redacted: 1 password") {
		t.Errorf("the count is missing: %s", out["atif"])
	}
}

// What is encrypted, redacted or private in a record is in no form, in any dialect
// that has such content.
func TestSealedContentIsNeverRendered(t *testing.T) {
	for name, record := range map[string]string{
		"claude thinking": claude("assistant", "a1", `[{"type":"thinking","thinking":"HIDDEN","signature":"HIDDEN"},{"type":"redacted_thinking","data":"HIDDEN"},{"type":"text","text":"shown"}]`),
		"codex reasoning": `{"timestamp":"2026-01-02T10:00:00.000Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n" +
			`{"timestamp":"2026-01-02T10:00:01.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"HIDDEN"}}` + "\n" +
			`{"timestamp":"2026-01-02T10:00:02.000Z","type":"response_item","payload":{"type":"compaction","encrypted_content":"HIDDEN"}}` + "\n" +
			`{"timestamp":"2026-01-02T10:00:03.000Z","type":"response_item","payload":{"type":"future","nested":{"encrypted_content":"HIDDEN"}}}` + "\n" +
			`{"timestamp":"2026-01-02T10:00:04.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"shown"}]}}` + "\n",
		"reference details": `{"schema_version":2,"model":"m","outcome":{"status":"completed"},"messages":[{"role":"assistant","content":[{"type":"reasoning","text":"HIDDEN","details":[{"type":"reasoning.encrypted","data":"HIDDEN"}]},{"type":"text","text":"shown"}]}],"tool_trace":[]}`,
		"openhands blocks":  `[{"id":0,"timestamp":"2026-01-02T10:00:00","source":"agent","message":"shown","action":"message","args":{"content":"shown","reasoning_content":"HIDDEN","thinking_blocks":[{"type":"redacted_thinking","data":"HIDDEN"}]}}]`,
		"atif reasoning":    `{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"agent","message":"shown","reasoning_content":"HIDDEN"}]}`,
		"inspect redacted":  `{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"input":"x","target":"","messages":[{"role":"assistant","content":[{"type":"reasoning","reasoning":"HIDDEN","redacted":true,"signature":"HIDDEN"},{"type":"text","text":"shown"}]}]}]}`,
		"opencode parts":    `{"info":{"id":"ses_1","time":{"created":1767348000000}},"messages":[{"info":{"id":"msg_1","role":"assistant","time":{"created":1767348000000}},"parts":[{"id":"prt_1","type":"reasoning","text":"HIDDEN","metadata":{"encrypted":"HIDDEN"}},{"id":"prt_2","type":"text","text":"shown"}]}]}`,
		"cast keys":         `{"version":2,"width":80,"height":24}` + "\n" + `[0.1,"o","shown"]` + "\n" + `[0.2,"i","HIDDEN\r"]` + "\n",
	} {
		s := Source{T: open(t, save(t, "record", record)), Redact: &redact.Redactor{}}
		for form, out := range forms(t, s) {
			if strings.Contains(out, "HIDDEN") {
				t.Errorf("%s: in the %s", name, form)
			}
			if !strings.Contains(out, "shown") {
				t.Errorf("%s: what may be shown is missing in the %s", name, form)
			}
		}
		// And titles, which every list shows.
		for i := range s.T.Len() {
			if st := s.T.Step(i); strings.Contains(st.Title, "HIDDEN") && st.Kind != transcript.Output {
				t.Errorf("%s: in the title of step %d", name, i)
			}
			f, err := s.T.Full(i)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range f.Parts {
				if p.Role != transcript.PartReasoning && !(p.Role == transcript.PartInput && p.Label == "keys") && strings.Contains(p.Text.Raw(), "HIDDEN") {
					t.Errorf("%s: step %d, %s", name, i, p.Role)
				}
			}
		}
	}
}
