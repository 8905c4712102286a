package step

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"go.uber.org/goleak"

	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
	"refbox/tui/viewtest"
)

// The clock of the library that colours: it ends by itself soon after.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// stage shows a screen without a program: its host, its terminal, its user.
type stage struct {
	t      testing.TB
	s      view.Screen
	step   *Screen
	w, h   int
	out    canvas.Output
	keys   keymap.Map
	said   string
	copied string
	asked  func(h view.Host, value string) tea.Cmd
	failed error
}

var plainOut = canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark()}

func stageOf(t testing.TB, s view.Screen, w, h int) *stage {
	t.Helper()
	x := &stage{t: t, s: s, w: w, h: h, out: plainOut, keys: keymap.Default()}
	switch s := s.(type) {
	case *Screen:
		x.step = s
	case *seatScreen:
		x.step = s.Screen
	}
	t.Cleanup(s.Close)
	x.run(s.Start(x))
	x.settle()
	return x
}

// opened shows a file.
func opened(t testing.TB, path string, w, h int) *stage {
	t.Helper()
	s, err := Open(path, "", -1)
	if err != nil {
		t.Fatal(err)
	}
	return stageOf(t, s, w, h)
}

func (x *stage) Now() time.Time                                                     { return time.Time{} }
func (x *stage) Size() (int, int)                                                   { return x.w, x.h }
func (x *stage) Say(s string)                                                       { x.said = s }
func (x *stage) Copy(s string) tea.Cmd                                              { x.copied = s; return nil }
func (x *stage) Push(view.Screen) tea.Cmd                                           { return nil }
func (x *stage) Pop()                                                               {}
func (x *stage) Ask(_ string, _ func(string), done func(view.Host, string) tea.Cmd) { x.asked = done }
func (x *stage) Beside(work func(context.Context) (func(view.Host) tea.Cmd, error)) tea.Cmd {
	return func() tea.Msg {
		then, err := work(context.Background())
		if err != nil {
			x.failed = err
		}
		if then != nil {
			return x.runMsg(then(x))
		}
		return nil
	}
}

func (x *stage) runMsg(cmd tea.Cmd) tea.Msg { x.run(cmd); return nil }

func (x *stage) run(cmd tea.Cmd) {
	if cmd != nil {
		cmd()
	}
}

// press sends keys, and waits after each until nothing moves.
func (x *stage) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.said = ""
		if a := x.keys.Action(k); a == keymap.Back {
			x.s.Back()
		} else {
			x.run(x.s.Key(x, a, viewtest.Key(k)))
		}
		x.settle()
	}
}

// answer types what was asked for.
func (x *stage) answer(value string) {
	x.t.Helper()
	x.run(x.asked(x, value))
	x.settle()
}

// idle says that nothing is read or made beside the screen any more.
func (x *stage) idle() bool {
	if x.step.search != nil || x.step.hunt != nil || x.step.seekUp {
		return false
	}
	for _, d := range x.step.sides {
		t := d.top()
		if _, all := t.passed(); !all || !t.tr.Complete() || t.build() || t.asked.paged || len(t.asked.titles) > 0 {
			return false
		}
	}
	return true
}

func (x *stage) settle() {
	x.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		x.s.Advance(time.Time{})
		x.draw()
		if x.idle() {
			return
		}
		select {
		case <-x.s.Feed():
		case <-time.After(20 * time.Millisecond): // judging goes on without telling
		case <-late.C:
			x.t.Fatalf("the screen does not come to rest:\n%s", x.text())
		}
	}
}

func (x *stage) draw() canvas.Canvas {
	c := canvas.New(x.w, x.h)
	head, body := c.Bounds().CutTop(1)
	x.s.Status(c.Sub(head))
	x.s.Draw(c.Sub(body))
	return c
}

func (x *stage) text() string { return x.draw().Flatten(x.out) }

func (x *stage) shows(words ...string) {
	x.t.Helper()
	for _, w := range words {
		if text := x.text(); !strings.Contains(text, w) {
			x.t.Fatalf("the frame lacks %q:\n%s", w, text)
		}
	}
}

func (x *stage) lacks(words ...string) {
	x.t.Helper()
	for _, w := range words {
		if text := x.text(); strings.Contains(text, w) {
			x.t.Fatalf("the frame has %q:\n%s", w, text)
		}
	}
}

// at is the chosen step.
func (x *stage) at(want int) {
	x.t.Helper()
	if got := int(x.step.track().value()); got != want {
		x.t.Fatalf("the chosen step is %d, want %d:\n%s", got, want, x.text())
	}
}

func (x *stage) golden(name string) {
	x.t.Helper()
	viewtest.Looks(x.t, name, x.w, x.h, x.draw().Flatten)
}

// session writes a Claude Code session, and its sub-agent's.
type session struct {
	t      testing.TB
	path   string
	second int
	n      int
	b      strings.Builder
}

func newSession(t testing.TB) *session {
	t.Helper()
	return &session{t: t, path: filepath.Join(t.TempDir(), "session.jsonl")}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (s *session) line(kind, message, more string) {
	s.second++
	s.n++
	parent := "null"
	if s.n > 1 {
		parent = fmt.Sprintf(`"u%d"`, s.n-1)
	}
	fmt.Fprintf(&s.b, `{"type":%q,"uuid":"u%d","parentUuid":%s,"sessionId":"s","version":"2.0","cwd":"/srv","timestamp":"2026-01-02T10:%02d:%02d.500Z","message":%s%s}`+"\n",
		kind, s.n, parent, s.second/60, s.second%60, message, more)
}

func (s *session) user(words string) {
	s.line("user", `{"role":"user","content":`+quoted(words)+`}`, "")
}

func (s *session) says(words string) { s.block(`{"type":"text","text":` + quoted(words) + `}`) }

func (s *session) block(block string) {
	s.line("assistant", fmt.Sprintf(`{"id":"m%d","role":"assistant","model":"claude-x","content":[%s],"usage":{"input_tokens":10,"cache_read_input_tokens":900,"output_tokens":25}}`, s.n, block), "")
}

// call is a call of a tool with its result.
func (s *session) call(tool, input, output string, failed bool, more string) {
	id := fmt.Sprintf("t%d", s.n)
	s.block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input))
	s.line("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s,"is_error":%v}]}`, id, quoted(output), failed), more)
}

func (s *session) bash(command, output string) {
	s.call("Bash", `{"command":`+quoted(command)+`,"description":"`+strings.Fields(command)[0]+` something"}`, output, false, "")
}

func (s *session) write() string {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(s.b.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.path
}

// The steps of demo, by what they are.
const (
	demoTask = iota
	demoPrivate
	demoWords
	demoLook
	demoMask
	demoCheck
	demoColors
	demoEdit
	demoWrite
	demoRestart
	demoFailed
	demoJSON
	demoGiant
	demoDelegate
	demoSealed
	demoEnd
)

// demo has a step of every kind that is shown in a way of its own.
func demo(t testing.TB) string {
	t.Helper()
	s := newSession(t)
	s.user("Recover the **stateful** service.")
	s.block(`{"type":"thinking","thinking":"PRIVATE thought about the replica","signature":"S3CR3T"}`)
	s.says("# Plan\n\n1. Fence the *old* primary\n2. Promote the replica, see `replica.role`\n\n> never both\n\n```bash\nsystemctl mask old.service\n```\n\n| unit | state |\n|---|---|\n| proxy | up |\n| old | **dead** |\n\nSee [the contract](https://example.org/c).")
	s.bash("systemctl cat failover-proxy.service 2>/dev/null", "[Unit]\nDescription=Proxy\n")
	s.bash("systemctl mask --now failover-primary.service && echo fenced | tee /etc/failover/fence", "Created symlink.\nfenced\n")
	s.bash("for i in 1 2; do curl -s http://127.0.0.1:8080/health; done", "ok\nok\n")
	s.bash("ls --color=always /srv", "\x1b[1;34mdata\x1b[0m  \x1b[31mbroken\x1b[0m\n 10%\r 60%\r100% done\n\x1b]0;evil title\x07after\n")
	s.call("Edit", `{"file_path":"/etc/failover/proxy.py","old_string":"port = 8081\nhost = \"a\"","new_string":"port = 8082\nhost = \"a\""}`, "edited", false, "")
	s.call("Write", `{"file_path":"/opt/check.py","content":"import sys\n\n# a check\ndef main():\n    return \"ok\" if len(sys.argv) > 1 else None\n"}`, "written", false, "")
	s.bash("systemctl restart failover-proxy.service", "")
	s.call("Bash", `{"command":"curl -sf http://127.0.0.1:9/"}`, "curl: (7) Failed to connect", true, "")
	s.bash("curl -s http://127.0.0.1:8080/stats", `{"state":{"role":"primary","lag":0.5,"peers":[{"id":1},{"id":2}],"none":null}}`)
	var giant strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&giant, "record %d of the journal, with words behind it\n", i)
	}
	giant.WriteString("needle in the giant\n")
	s.bash("journalctl --no-pager", giant.String())
	s.call("Task", `{"description":"look at the unit","prompt":"p"}`, "looked", false, `,"toolUseResult":{"agentId":"abc","status":"completed"}`)
	s.block(`{"type":"redacted_thinking","data":"S3CR3T"}`)
	s.says("Done: the replica is primary.")
	path := s.write()
	inner := &session{t: t, path: filepath.Join(filepath.Dir(path), "session", "subagents", "agent-abc.jsonl"), second: 40}
	inner.user("look at the unit")
	inner.bash("systemctl status failover-proxy.service", "active (running)")
	inner.says("It runs.")
	if err := os.MkdirAll(filepath.Dir(inner.path), 0o755); err != nil {
		t.Fatal(err)
	}
	side := strings.ReplaceAll(inner.b.String(), `"sessionId"`, `"isSidechain":true,"agentId":"abc","sessionId"`)
	if err := os.WriteFile(inner.path, []byte(side), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
