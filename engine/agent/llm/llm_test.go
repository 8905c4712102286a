package llm

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"refbox/engine/agent"
	"refbox/engine/agent/llm/llmtest"
	"refbox/engine/transcript"
	"refbox/vm"
	"refbox/vm/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eyes are what a gateway reports.
type eyes struct {
	mu   sync.Mutex
	seen []agent.Action
}

func (e *eyes) ActionStarted(a agent.Action) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, a)
}
func (*eyes) ActionEnded(uint64, string)              {}
func (*eyes) ActionFinished(agent.Finish)             {}
func (*eyes) SessionStarted(agent.Session) agent.Cast { return nil }

func (e *eyes) commands() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.seen {
		all = append(all, a.Command)
	}
	return all
}

// told is what a player reports.
type told struct {
	mu    sync.Mutex
	usage []agent.Usage
	notes []string
}

func (r *told) Usage(u agent.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage = append(r.usage, u)
}

func (r *told) Note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, s)
}

const password = "marked-seat-password"

// newSeat is a seat of simulated machines behind a gateway.
func newSeat(t *testing.T, machines ...string) (agent.Seat, *eyes) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	var specs []vm.MachineSpec
	for _, m := range machines {
		specs = append(specs, vm.MachineSpec{Name: m, VCPUs: 1, MemoryMiB: 256, DiskMiB: 1024})
	}
	d := sim.New(sim.Config{})
	tpl, err := d.Prepare(t.Context(), vm.Spec{Machines: specs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(t.Context(), tpl, vm.Start{Name: "seat", Password: "root-password", AuthorizedKey: key.PublicKey(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	e := &eyes{}
	gw, err := agent.Open(agent.Config{Machines: machines, Dial: agent.DialCluster(c, key), Observer: e, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gw.Close() })
	dir := t.TempDir()
	file := filepath.Join(dir, "brief.md")
	if err := os.WriteFile(file, []byte("Repair the machine."), 0o644); err != nil {
		t.Fatal(err)
	}
	return agent.Seat{Territory: "one", Agent: "glm", Model: "vendor/scripted", Login: gw.Login(), Brief: file, Dir: dir}, e
}

func serve(t *testing.T, s *llmtest.Server) *llmtest.Server {
	t.Helper()
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func config(s *llmtest.Server) Config {
	return Config{Endpoint: s.Endpoint(), Key: s.Key, Model: "scripted", backoff: time.Millisecond, idle: 300 * time.Millisecond}
}

func raw(s string) *string { return &s }

func do(commands ...string) llmtest.Turn { return llmtest.Turn{Commands: commands} }

var done = llmtest.Turn{Text: "It is repaired."}

// Every way in which an endpoint or a model fails is tried again or charged to
// whom it is due.
func TestFailures(t *testing.T) {
	plan := []llmtest.Turn{do("echo one"), do("echo two"), done, done}
	const overflow = `{"error":{"message":"This model's maximum context length is 9 tokens","code":"context_length_exceeded"}}`
	for _, tt := range []struct {
		name     string
		plan     []llmtest.Turn
		faults   map[int]llmtest.Fault
		always   *llmtest.Fault
		key      string // that the player has, "" for the right one
		status   agent.Status
		source   string
		summary  string
		requests int // 0: any
		commands int
		unknown  bool // tokens are
	}{
		{name: "nothing", status: agent.Completed, source: "player", summary: "It is repaired.", requests: 4, commands: 2},
		{name: "429 once", faults: map[int]llmtest.Fault{1: {Status: 429, Body: `{"error":{"message":"slow down"}}`, RetryAfter: "0.05"}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2},
		{name: "429 for ever", always: &llmtest.Fault{Status: 429, Body: `{"error":{"message":"slow down"}}`},
			status: agent.Unavailable, source: "provider", summary: "429 Too Many Requests: slow down (7 attempts)", requests: attempts},
		{name: "quota", always: &llmtest.Fault{Status: 429, Body: `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`},
			status: agent.Unavailable, source: "provider", summary: "quota", requests: 1},
		{name: "500 twice", faults: map[int]llmtest.Fault{0: {Status: 500, Body: "oops"}, 1: {Status: 503, Body: `{"error":"busy"}`}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 6, commands: 2},
		{name: "500 for ever", always: &llmtest.Fault{Status: 502, Body: "<html>bad gateway</html>"},
			status: agent.Unavailable, source: "provider", summary: "502 Bad Gateway", requests: attempts},
		{name: "cut once", faults: map[int]llmtest.Fault{1: {Cut: true}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2, unknown: true},
		{name: "cut for ever", always: &llmtest.Fault{Cut: true},
			status: agent.Unavailable, source: "provider", summary: "the stream was cut", requests: attempts, unknown: true},
		{name: "connection reset", faults: map[int]llmtest.Fault{0: {Reset: true}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2},
		{name: "garbage", faults: map[int]llmtest.Fault{0: {Garbage: true}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2, unknown: true},
		{name: "error in the stream", faults: map[int]llmtest.Fault{0: {InStream: `{"message":"upstream overloaded","code":502}`}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2, unknown: true},
		{name: "slow", faults: map[int]llmtest.Fault{0: {Slow: 150 * time.Millisecond}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 4, commands: 2},
		{name: "stalls once", faults: map[int]llmtest.Fault{2: {Stall: true}},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 5, commands: 2, unknown: true},
		{name: "unauthorized", key: "sk-marked-wrong-key", status: agent.Unavailable, source: "provider", summary: "401 Unauthorized: Incorrect API key provided: [secret]"},
		{name: "no credit", always: &llmtest.Fault{Status: 402, Body: `{"error":{"message":"no credit"}}`},
			status: agent.Unavailable, source: "provider", summary: "402 Payment Required: no credit", requests: 1},
		{name: "no such model", always: &llmtest.Fault{Status: 404, Body: `{"error":{"message":"no model scripted"}}`},
			status: agent.Unavailable, source: "provider", summary: "404 Not Found: no model scripted", requests: 1},
		{name: "redirect", always: &llmtest.Fault{Status: 307, Body: ``},
			status: agent.Unavailable, source: "provider", summary: "307", requests: 1},
		{name: "bad request", always: &llmtest.Fault{Status: 400, Body: `{"error":{"message":"unknown parameter tools"}}`},
			status: agent.HarnessError, source: "harness", summary: "400 Bad Request: unknown parameter tools", requests: 1},
		{name: "context overflow", always: &llmtest.Fault{Status: 400, Body: overflow},
			status: agent.Failed, source: "player", summary: "maximum context length", requests: 1},
		{name: "policy", always: &llmtest.Fault{Status: 400, Body: `{"error":{"message":"blocked","code":"content_policy_violation"}}`},
			status: agent.Failed, source: "player", summary: "blocked", requests: 1},
		{name: "refusal", plan: []llmtest.Turn{{Refusal: "I must not help with that."}},
			status: agent.Failed, source: "player", summary: "the model refused: I must not help with that.", requests: 1},
		{name: "content filter", plan: []llmtest.Turn{{Text: "Well", Finish: "content_filter"}},
			status: agent.Failed, source: "player", summary: "content filter", requests: 1},
		{name: "malformed call", plan: []llmtest.Turn{{Raw: raw(`{"command": "echo`)}, do("echo one"), done, done},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 4, commands: 1},
		{name: "malformed for ever", plan: []llmtest.Turn{{Raw: raw(`nonsense`)}, {Raw: raw(`[]`)}, {Raw: raw(`{"command":""}`)}, {Raw: raw(`{}`)}, {Raw: raw(`{"command":3}`)}},
			status: agent.Failed, source: "player", summary: "5 answers in a row called the tool", requests: 5},
		{name: "another tool", plan: []llmtest.Turn{{Raw: raw(`{"command":"id"}`), Tool: "python"}, done, done},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 3},
		{name: "too long", plan: []llmtest.Turn{{Text: "a", Finish: "length"}, {Text: "b", Finish: "length"}, {Text: "c", Finish: "length"}},
			status: agent.Failed, source: "player", summary: "longer than the endpoint allows", requests: 3},
		{name: "thinks aloud once", plan: []llmtest.Turn{{Text: "Let me see.", Reasoning: "hm"}, do("echo one"), done, done},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 4, commands: 1},
		{name: "no usage", plan: []llmtest.Turn{{Commands: []string{"echo one"}, NoUsage: true}, done, done},
			status: agent.Completed, source: "player", summary: "It is repaired.", requests: 3, commands: 1, unknown: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seat, e := newSeat(t, "app")
			s := &llmtest.Server{Plan: plan, Faults: tt.faults, Always: tt.always, Key: "sk-marked-right-key"}
			if tt.plan != nil {
				s.Plan = tt.plan
			}
			serve(t, s)
			cfg := config(s)
			if tt.key != "" {
				cfg.Key = tt.key
			}
			r, err := agent.Run(t.Context(), Player(cfg), seat, &told{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.status || r.Status.Source() != tt.source || !strings.Contains(r.Summary, tt.summary) {
				t.Errorf("%s charged to %s: %q; want %s, %s: %q", r.Status, r.Status.Source(), r.Summary, tt.status, tt.source, tt.summary)
			}
			if n := len(s.Requests()); tt.requests != 0 && n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			if got := e.commands(); len(got) != tt.commands {
				t.Errorf("the gateway saw %q", got)
			}
			if (r.Usage.InputTokens == nil) != tt.unknown {
				t.Errorf("input tokens %v, unknown %v", r.Usage.InputTokens, tt.unknown)
			}
			if r.Usage.CostMicroUSD != nil && *r.Usage.Rounds > 0 {
				t.Errorf("a cost that nobody told: %d", *r.Usage.CostMicroUSD)
			}
			for _, name := range []string{"transcript.json", "result.json"} {
				b, err := os.ReadFile(filepath.Join(seat.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				for _, secret := range []string{password, "sk-marked-right-key", "sk-marked-wrong-key"} {
					if strings.Contains(string(b), secret) {
						t.Errorf("%s holds %s", name, secret)
					}
				}
			}
		})
	}
}

// A full context loses its oldest output first, and the model goes on.
func TestOverflowIsShortened(t *testing.T) {
	seat, e := newSeat(t, "app")
	big := "seq 1 900"
	s := serve(t, &llmtest.Server{Context: 9000, Plan: []llmtest.Turn{do(big), do(big), do(big), do("echo end"), done, done}})
	r, err := agent.Run(t.Context(), Player(config(s)), seat, &told{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != agent.Completed || len(e.commands()) != 4 {
		t.Errorf("%+v after %q", r, e.commands())
	}
}

// The transcript opens as what it is, with calls, results, times and totals.
func TestTranscript(t *testing.T) {
	seat, _ := newSeat(t, "app")
	s := serve(t, &llmtest.Server{Plan: []llmtest.Turn{
		{Reasoning: "look first", Text: "Looking.", Commands: []string{"echo hello", "exit 3"}, Cost: 0.0012},
		{Text: "It is repaired.", Cost: 0.0001}, {Text: "Yes.", Cost: 0.0001}}})
	rep := &told{}
	r, err := agent.Run(t.Context(), Player(config(s)), seat, rep)
	if err != nil || r.Status != agent.Completed || r.Transcript != "transcript.json" {
		t.Fatalf("%+v, %v", r, err)
	}
	if *r.Usage.CostMicroUSD != 1400 || *r.Usage.Rounds != 3 || *r.Usage.ToolCalls != 2 || *r.Usage.OutputTokens != 40 {
		t.Errorf("usage %+v", r.Usage)
	}
	if len(rep.usage) != 3 || *rep.usage[0].CostMicroUSD != 1200 {
		t.Errorf("streamed usage %+v", rep.usage)
	}
	tr, err := transcript.Open(filepath.Join(seat.Dir, r.Transcript))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	info := tr.Info()
	if info.Format != "atif" || info.Harness != "refbox-llm" || info.Model != "scripted" {
		t.Errorf("%+v", info)
	}
	var kinds []string
	for i := range tr.Len() {
		st := tr.Step(i)
		kinds = append(kinds, fmt.Sprintf("%v/%v", st.Kind, st.Outcome))
	}
	t.Log(kinds)
	all := strings.Join(kinds, " ")
	if !strings.Contains(all, fmt.Sprintf("%v/%v", transcript.ToolCall, transcript.Succeeded)) ||
		!strings.Contains(all, fmt.Sprintf("%v/%v", transcript.ToolCall, transcript.Failed)) {
		t.Errorf("steps %s", all)
	}
	if f := tr.Integrity().Findings; len(f) > 0 {
		t.Errorf("findings %+v", f)
	}
}

// What there is no room for is not kept: the transcript stays as it was, and the
// model plays on.
func TestTranscriptNeedsRoom(t *testing.T) {
	for _, tc := range []struct {
		room int
		want string
	}{{64 << 10, "transcript.json"}, {8 << 10, "transcript.live.json"}, {100, ""}} {
		seat, seen := newSeat(t, "app")
		left := tc.room
		seat.Room = func(n int) bool {
			left -= n
			return left >= 0
		}
		s := serve(t, &llmtest.Server{Plan: []llmtest.Turn{do("echo on"), do("head -c 9000 /dev/zero | tr '\\0' x"), do("echo still on"),
			{Text: "Done."}, {Text: "Yes."}}})
		r, err := agent.Run(t.Context(), Player(config(s)), seat, &told{})
		if err != nil || r.Status != agent.Completed || r.Transcript != tc.want {
			t.Errorf("room for %d: %+v, %v", tc.room, r, err)
		}
		if n := len(seen.commands()); n != 3 {
			t.Errorf("room for %d: %d commands were run", tc.room, n)
		}
		files, _ := filepath.Glob(filepath.Join(seat.Dir, "transcript*"))
		if got := strings.Join(files, " "); tc.want == "" && got != "" || tc.want != "" && got != filepath.Join(seat.Dir, tc.want) {
			t.Errorf("room for %d: kept %s", tc.room, got)
		}
		if tc.want != "" {
			if info, err := os.Stat(filepath.Join(seat.Dir, tc.want)); err != nil || info.Size() > int64(tc.room) {
				t.Errorf("room for %d: %v, %v", tc.room, info, err)
			}
		}
	}
}

// Limits end a player while it plays, and say which one it was.
func TestLimits(t *testing.T) {
	most := uint64(2000)
	endless := make([]llmtest.Turn, 100)
	for i := range endless {
		endless[i] = llmtest.Turn{Commands: []string{"true"}, Cost: 0.0009}
	}
	for _, tt := range []struct {
		limit  string
		budget agent.Budget
		status agent.Status
	}{
		{"turns", agent.Budget{Turns: 3}, agent.BudgetExceeded},
		{"tokens", agent.Budget{Tokens: 1000}, agent.BudgetExceeded},
		{"cost", agent.Budget{MaxCostMicroUSD: &most}, agent.BudgetExceeded},
		{"resource_units", agent.Budget{ResourceUnits: 2}, agent.BudgetExceeded},
		{"time", agent.Budget{Time: 300 * time.Millisecond}, agent.TimedOut},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			seat, e := newSeat(t, "app")
			seat.Budget = tt.budget
			s := &llmtest.Server{Plan: endless}
			if tt.limit == "time" {
				s.Faults = map[int]llmtest.Fault{2: {Slow: time.Minute}}
			}
			serve(t, s)
			cfg := config(s)
			cfg.idle = time.Minute
			r, err := agent.Run(t.Context(), Player(cfg), seat, &told{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.status || r.Limit == nil || r.Limit.Limit != tt.limit || r.Status.Source() != "player" {
				t.Errorf("%+v", r)
			}
			if n := len(e.commands()); n == 0 || n > 10 {
				t.Errorf("%d commands were run", n)
			}
		})
	}
}

// A cut player returns at once, and keeps what it has.
func TestInterrupted(t *testing.T) {
	seat, e := newSeat(t, "app")
	s := serve(t, &llmtest.Server{Plan: []llmtest.Turn{do("echo one"), do("sleep 1000")}})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for len(e.commands()) < 2 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(agent.ErrFrozen)
	}()
	r, err := agent.Run(ctx, Player(config(s)), seat, &told{})
	if err != nil || r.Status != agent.Interrupted || r.Transcript == "" || *r.Usage.Rounds != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Several machines are told apart; a machine that is not there is the model's
// mistake.
func TestMachines(t *testing.T) {
	seat, e := newSeat(t, "app", "db")
	s := serve(t, &llmtest.Server{Plan: []llmtest.Turn{{Raw: raw(`{"command":"hostname","machine":"db"}`)}, {Raw: raw(`{"command":"hostname","machine":"moon"}`)}, done, done}})
	r, err := agent.Run(t.Context(), Player(config(s)), seat, &told{})
	if err != nil || r.Status != agent.Completed {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(e.seen) != 1 || e.seen[0].Machine != "db" {
		t.Errorf("%+v", e.seen)
	}
	last := s.Requests()[2]
	if got := string(last.Messages[len(last.Messages)-1].Content); !strings.Contains(got, "there is no machine") {
		t.Errorf("the model was told %s", got)
	}
}

func TestPrices(t *testing.T) {
	cached := uint64(100_000)
	p := Prices{Input: 600_000, Output: 2_200_000, Cached: &cached}
	n := func(v uint64) *uint64 { return &v }
	for _, tt := range []struct {
		tell   string
		prices *Prices
		want   *uint64
	}{
		{`{"prompt_tokens":1000,"completion_tokens":100}`, &p, n(820)},
		{`{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":500}}`, &p, n(570)},
		{`{"prompt_tokens":1,"completion_tokens":0}`, &p, n(1)},
		{`{"prompt_tokens":1000,"completion_tokens":100,"cost":0.5}`, &p, n(500_000)},
		{`{"prompt_tokens":1000,"completion_tokens":100}`, nil, nil},
		{`{"prompt_tokens":1000}`, &p, nil},
		{`{"cost":0}`, nil, n(0)},
		{`null`, &p, nil},
	} {
		var v *tell
		if err := json.Unmarshal([]byte(tt.tell), &v); err != nil {
			t.Fatal(err)
		}
		got := v.spent(tt.prices).cost
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %v, want %v", tt.tell, deref(got), deref(tt.want))
		}
	}
}

func deref(p *uint64) any {
	if p == nil {
		return nil
	}
	return *p
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "1e99": 0,
		"Thu, 01 Jan 2026 00:00:30 GMT": 30 * time.Second, "Wed, 31 Dec 2025 00:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}

// The wait that the endpoint asks for is kept.
func TestRetryAfterIsKept(t *testing.T) {
	seat, _ := newSeat(t, "app")
	s := serve(t, &llmtest.Server{Plan: []llmtest.Turn{done, done}, Faults: map[int]llmtest.Fault{0: {Status: 429, Body: `{"error":{"message":"wait"}}`, RetryAfter: "0.4"}}})
	if r, err := agent.Run(t.Context(), Player(config(s)), seat, &told{}); err != nil || r.Status != agent.Completed {
		t.Fatalf("%+v, %v", r, err)
	}
	if d := s.Requests()[1].At.Sub(s.Requests()[0].At); d < 400*time.Millisecond {
		t.Errorf("asked again after %v", d)
	}
}

func TestCheckConfig(t *testing.T) {
	for _, tt := range []struct{ endpoint, model, want string }{
		{"https://openrouter.ai/api/v1", "m", ""},
		{"http://127.0.0.1:11434/v1", "m", ""},
		{"openrouter.ai", "m", "no address"},
		{"ftp://x/", "m", "no address"},
		{"https://user:marked@x/v1", "m", "key_env"},
		{"https://x/v1", "", "name the model"},
	} {
		err := Config{Endpoint: tt.endpoint, Model: tt.model}.Check()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "marked")) {
			t.Errorf("%s: %v", tt.endpoint, err)
		}
	}
	if r, _ := agent.Run(t.Context(), Player(Config{Endpoint: "x", Model: "m"}), agent.Seat{}, nil); r.Status != agent.HarnessError {
		t.Errorf("%+v", r)
	}
}
