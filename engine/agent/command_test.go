package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// record of what a player reports.
type heard struct {
	mu    sync.Mutex
	usage []Usage
	more  chan struct{}
}

func (h *heard) Usage(u Usage) {
	h.mu.Lock()
	h.usage = append(h.usage, u)
	h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
}
func (*heard) Note(string) {}

const marked = "marked-api-key-93127"

// commandSeat is a seat with a door and a brief.
func commandSeat(t *testing.T) (Seat, *watcher) {
	t.Helper()
	gw, w := open(t, newGuest(t), "app", "db")
	dir, private := t.TempDir(), t.TempDir()
	brief := filepath.Join(dir, "brief.md")
	if err := os.WriteFile(brief, []byte("Repair it.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return Seat{Territory: "one", Agent: "claux", Model: "vendor/model", ReasoningEffort: "high", Login: gw.Login(), Brief: brief,
		Dir: dir, Private: private, Drain: 5 * time.Second, Terminal: gw.Terminal}, w
}

// program writes an executable.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adapter.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// report writes a result.json of the contract.
const resultJSON = `cat >"$AOE_RESULT_FILE" <<EOF
{"schema_version":1,"agent":"$AOE_AGENT_ID","territory":"$AOE_TERRITORY_ID","status":"%s","summary":"said so","usage":{"input_tokens":10,"output_tokens":2,"cost_microusd":7,"resource_units":1},"transcript":null}
EOF
`

func result(status string) string { return fmt.Sprintf(resultJSON, status) }

func TestCommandContract(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		strict     bool
		status     Status
		summary    string
	}{
		{"completed", result("completed"), true, Completed, "said so"},
		{"failed beside its exit", result("failed") + "exit 4", true, Failed, "said so"},
		{"unavailable", result("unavailable"), true, Unavailable, "said so"},
		{"interrupted", result("interrupted"), true, Interrupted, "said so"},
		{"no result", "true", true, HarnessError, "exited with status 0 without a result"},
		{"no result, failed", "exit 3", true, HarnessError, "exited with status 3 without a result"},
		{"no contract", "true", false, Completed, "exited with status 0"},
		{"no contract, failed", "exit 3", false, Failed, "exited with status 3"},
		{"no contract, not found", "exec /nonexistent/program", false, HarnessError, "exited with status 12"},
		{"killed", "kill -KILL $$", false, HarnessError, "was killed by signal 9"},
		{"another's result", strings.ReplaceAll(result("completed"), "$AOE_AGENT_ID", "other"), true, HarnessError, `it is of agent "other"`},
		{"unknown status", result("splendid"), true, HarnessError, `the status "splendid" is not known`},
		{"unknown key", `echo '{"schema_version":1,"surprise":1}' >"$AOE_RESULT_FILE"`, true, HarnessError, "surprise"},
		{"torn", `printf '{"schema_' >"$AOE_RESULT_FILE"`, false, HarnessError, "cannot be used"},
		{"a link", `ln -s /etc/passwd "$AOE_RESULT_FILE"`, false, HarnessError, "cannot be used"},
		{"a pipe", `mkfifo "$AOE_RESULT_FILE"`, false, HarnessError, "cannot be used"},
		{"no stdin", "cat; " + result("completed"), true, Completed, "said so"},
		{"no controlling terminal", "if (: </dev/tty) 2>/dev/null; then exit 9; fi; test -t 1 && test -t 2 || exit 8", false, Completed, "status 0"},
		{"the environment", `set -u
test "$AOE_AGENT_ID$AOE_TERRITORY_ID" = clauxone && test "$AOE_TERRITORY_HOST" = 127.0.0.1 && test "$AOE_MODEL" = vendor/model || exit 1
test "$AOE_REASONING_EFFORT" = high && test "$(cat "$AOE_INSTRUCTION_FILE")" = "Repair it." || exit 2
test -f "$AOE_STDOUT_FILE" && test -f "$AOE_STDERR_FILE" && test "$AOE_PLAYER_ARTIFACTS_JSON" = "[]" || exit 3
case $(stat -c %a "$AOE_CREDENTIAL_FILE") in 600) ;; *) exit 4;; esac
. "$AOE_CREDENTIAL_FILE"
test "$AOE_SSH_PASSWORD" = '` + password + `' && test "$API_KEY" = ` + marked + ` || exit 5
test -z "${REFBOX_TEST_SECRET:-}" || exit 6
test "$REFBOX_MACHINES" = "app db" && test "$AOE_SSH_PORT" = "$REFBOX_SSH_PORT" && test -f "$REFBOX_SSH_KNOWN_HOSTS" || exit 7
test "$(pwd)" = "$REFBOX_DIR" || exit 8
` + result("completed"), true, Completed, "said so"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("REFBOX_TEST_SECRET", "not for the player")
			seat, w := commandSeat(t)
			c := Command{Argv: []string{script(t, tt.text)}, Strict: tt.strict, Env: map[string]string{"API_KEY": marked}}
			r, err := Run(t.Context(), CommandPlayer(c), seat, &heard{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.status || !strings.Contains(r.Summary, tt.summary) {
				t.Errorf("%s: %q; want %s: %q", r.Status, r.Summary, tt.status, tt.summary)
			}
			if strings.Contains(tt.text, `"usage"`) && r.Summary == "said so" && (r.Usage.CostMicroUSD == nil || *r.Usage.CostMicroUSD != 7) {
				t.Errorf("usage %+v", r.Usage)
			}
			a := w.action(1)
			if a.Channel != ChannelTerminal || !a.SelfReported || a.Session == 0 {
				t.Errorf("the terminal's action: %+v", a)
			}
			w.finish(t, 1)
		})
	}
}

// What a program shows is recorded, both streams, without the secrets it was
// given, torn or not; its transcript and usage are taken over while it runs.
func TestCommandIsRecorded(t *testing.T) {
	seat, w := commandSeat(t)
	text := `printf 'to be shown\n'; printf 'an error\n' >&2
k=$API_KEY; printf '%s' "${k%???}"; sleep 0.2; printf '%s\n' "${k#"${k%???}"}"
echo "the password is ` + password + `"
echo '{"schema_version":2,"model":"m","key":"'$API_KEY'","messages":[]}' >transcript.live.json
echo '{"schema_version":1,"agent":"claux","territory":"one","usage":{"input_tokens":5,"resource_units":1}}' >usage.tmp; mv usage.tmp "$AOE_USAGE_FILE"
while ! test -f go; do sleep 0.05; done
cp transcript.live.json transcript.json
echo '{"schema_version":1,"agent":"claux","territory":"one","usage":{"input_tokens":3,"output_tokens":9,"resource_units":1}}' >usage.tmp; mv usage.tmp "$AOE_USAGE_FILE"
` + strings.ReplaceAll(result("completed"), "said so", "the key is $API_KEY")
	rep := &heard{more: make(chan struct{}, 1)}
	done := make(chan Result)
	go func() {
		r, _ := Run(t.Context(), CommandPlayer(Command{Argv: []string{script(t, text)}, Env: map[string]string{"API_KEY": marked}}), seat, rep)
		done <- r
	}()
	select {
	case <-rep.more:
	case <-time.After(20 * time.Second):
		t.Fatal("the usage was not streamed")
	}
	appears(t, filepath.Join(seat.Dir, "transcript.live.json"))
	if err := os.WriteFile(filepath.Join(seat.Private, "player", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.Status != Completed || r.Transcript != "transcript.json" || *r.Usage.InputTokens != 10 || *r.Usage.OutputTokens != 9 {
		t.Errorf("%+v", r)
	}
	f := w.finish(t, 1)
	if f.Exit == nil || *f.Exit != 0 || !strings.Contains(f.Output, "to be shown") {
		t.Errorf("%+v", f)
	}
	cast := w.casts[1]
	var shown strings.Builder
	for _, e := range cast.events {
		if e.code == CastOutput {
			shown.WriteString(e.data)
		}
	}
	if s := shown.String(); !strings.Contains(s, "an error\r\n") || strings.Count(s, "[secret]") != 2 {
		t.Errorf("the terminal showed %q", s)
	}
	if cast.closed != 1 || cast.s.Width != termCols {
		t.Errorf("%+v", cast.s)
	}
	nothingIn(t, seat.Dir, marked, password)
	nothingIn(t, seat.Private, marked)
	if s := shown.String() + f.Output + r.Summary; strings.Contains(s, marked) || strings.Contains(s, password) {
		t.Errorf("a secret was recorded: %q", s)
	}
}

// nothingIn fails when a file under dir holds a word.
func nothingIn(t *testing.T, dir string, words ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, w := range words {
			if strings.Contains(string(b), w) && !strings.HasSuffix(path, "/player/transcript.live.json") && !strings.HasSuffix(path, "/player/transcript.json") &&
				!strings.HasSuffix(path, "/player/result.json") && !strings.HasSuffix(path, "/player/stdout.log") {
				t.Errorf("%s holds %s", path, w)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A program that is told to end goes with everything it started, also what left
// its group.
func TestCommandEndsAll(t *testing.T) {
	seat, _ := commandSeat(t)
	text := `trap '' TERM
sleep 1001 & echo $! >pids
setsid sh -c 'trap "" TERM; echo $$ >>pids; while :; do sleep 1; done' &
(setsid sh -c 'echo $$ >>pids; exec sleep 1002' &)
while test "$(wc -l <pids)" -lt 3; do sleep 0.05; done; touch ready
while :; do sleep 1; done
`
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Result)
	go func() {
		r, _ := Run(ctx, CommandPlayer(Command{Argv: []string{script(t, text)}}), seat, &heard{})
		done <- r
	}()
	appears(t, filepath.Join(seat.Private, "player", "ready"))
	cancel()
	select {
	case r := <-done:
		if r.Status != Interrupted {
			t.Errorf("%+v", r)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it did not end")
	}
	b, err := os.ReadFile(filepath.Join(seat.Private, "player", "pids"))
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(b))
	if len(pids) != 3 {
		t.Fatalf("pids %q", pids)
	}
	for _, p := range pids {
		pid, _ := strconv.Atoi(p)
		if alive(pid) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("process %d lives", pid)
		}
	}
}

// appears waits until a file is there.
func appears(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // whoever writes it may not have come so far
		t.Fatal(err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	late := time.After(20 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-w.Events:
		case <-late:
			t.Fatalf("%s did not appear", path)
		}
	}
}

// alive waits a moment for a killed process to be gone, or a zombie: nobody tells
// of the end of another's child.
func alive(pid int) bool {
	for range 100 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		if _, rest, ok := strings.Cut(string(b), ") "); ok && strings.HasPrefix(rest, "Z") {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// At the freeze a program has the drain's time to leave its result.
func TestCommandLeavesLateResult(t *testing.T) {
	seat, _ := commandSeat(t)
	text := `trap 'echo late >transcript.jsonl; ` + "\n" + result("completed") + `exit 0' TERM
touch ready
while :; do sleep 0.05; done
`
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan Result)
	go func() {
		r, _ := Run(ctx, CommandPlayer(Command{Argv: []string{script(t, text)}}), seat, &heard{})
		done <- r
	}()
	appears(t, filepath.Join(seat.Private, "player", "ready"))
	cancel(ErrFrozen)
	if r := <-done; r.Status != Completed || r.Transcript != "transcript.json" {
		t.Errorf("%+v", r)
	}
}

// A limit that the streamed usage passes ends the program.
func TestCommandLimit(t *testing.T) {
	seat, _ := commandSeat(t)
	seat.Budget.Tokens = 100
	text := `echo '{"schema_version":1,"agent":"claux","territory":"one","usage":{"input_tokens":101,"resource_units":1}}' >u; mv u "$AOE_USAGE_FILE"; sleep 1000`
	r, err := Run(t.Context(), CommandPlayer(Command{Argv: []string{script(t, text)}}), seat, &heard{})
	if err != nil || r.Status != BudgetExceeded || r.Limit == nil || r.Limit.Limit != "tokens" {
		t.Errorf("%+v, %v", r, err)
	}
	seat, _ = commandSeat(t)
	seat.Budget.Time = 200 * time.Millisecond
	r, err = Run(t.Context(), CommandPlayer(Command{Argv: []string{script(t, "sleep 1000")}}), seat, &heard{})
	if err != nil || r.Status != TimedOut || r.Limit == nil || r.Limit.Limit != "time" {
		t.Errorf("%+v, %v", r, err)
	}
}

// The ssh configuration is all that an OpenSSH client needs, and pins the host key.
func TestCommandReachesItsMachines(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("no ssh on this host")
	}
	g := newGuest(t)
	w := newWatcher()
	key, pem, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	gw, err := Open(Config{Machines: []string{"app", "db"}, Dial: g.dial, Observer: w, Password: password, Key: key.PublicKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	seat, _ := commandSeat(t)
	seat.Login, seat.Terminal = gw.Login(), gw.Terminal
	seat.Login.KeyFile = filepath.Join(seat.Private, "id")
	if err := os.WriteFile(seat.Login.KeyFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	text := `set -e
test "$(ssh -F "$REFBOX_SSH_CONFIG" seat 'echo by config')" = "by config"
test "$(ssh -F "$REFBOX_SSH_CONFIG" db 'echo by name')" = "by name"
test "$(ssh -F none -i "$REFBOX_SSH_KEY" -p "$REFBOX_SSH_PORT" -o UserKnownHostsFile="$REFBOX_SSH_KNOWN_HOSTS" -o StrictHostKeyChecking=yes "$REFBOX_SSH_USER@$REFBOX_SSH_HOST" 'echo by hand')" = "by hand"
test "$(stat -c %a "$REFBOX_SSH_KEY")" = 600
`
	r, err := Run(t.Context(), CommandPlayer(Command{Argv: []string{script(t, text)}}), seat, &heard{})
	if err != nil || r.Status != Completed {
		t.Errorf("%+v, %v\n%+v", r, err, w.done)
	}
	var seen []string
	for _, a := range w.started {
		seen = append(seen, a.Machine+": "+a.Command)
	}
	if all := strings.Join(seen, "\n"); !strings.Contains(all, "db: echo by name") || !strings.Contains(all, "app: echo by hand") {
		t.Errorf("observed %q", seen)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	s := NewSecrets("hunter2hunter2", `quo"te-secret`, "short", "")
	if got := s.HideText(`a hunter2hunter2 b quo"te-secret c quo\"te-secret short`); got != `a [secret] b [secret] c [secret] short` {
		t.Errorf("%q", got)
	}
	text := "xxhunter2hunter2yyhunter2huntr"
	for cut := range len(text) {
		h := hider{secrets: s}
		got := string(h.next([]byte(text[:cut]))) + string(h.next([]byte(text[cut:]))) + string(h.rest())
		if got != "xx[secret]yyhunter2huntr" {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
}

func TestMostKeepsNumbers(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	got := Usage{InputTokens: n(5), CostMicroUSD: n(9), ResourceUnits: 2}.Most(Usage{InputTokens: n(3), OutputTokens: n(1), ResourceUnits: 3})
	b, _ := json.Marshal(got)
	if string(b) != `{"input_tokens":5,"output_tokens":1,"cost_microusd":9,"resource_units":3}` {
		t.Errorf("%s", b)
	}
}
