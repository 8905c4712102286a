package heat

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/agent/llm"
	"refbox/engine/agent/llm/llmtest"
	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/why"
	"refbox/engine/world"
	"refbox/vm"
)

// repair is what a model has to do, command by command.
var repair = []llmtest.Turn{
	{Reasoning: "Look first.", Text: "What runs?", Commands: []string{"systemctl --no-pager list-units 'failover-*' --all", "cat /var/lib/failover/upstream /var/lib/failover/replica.role"}, Cost: 0.001},
	{Text: "Fence it.", Commands: []string{"systemctl mask failover-primary.service"}, Cost: 0.002},
	{Commands: []string{`printf 'primary\n' >/var/lib/failover/replica.role`, `printf '8082\n' >/var/lib/failover/upstream; sync`}, Cost: 0.002},
	{Commands: []string{"curl -s http://127.0.0.1:8080/role"}, Cost: 0.001},
	{Text: "The replica is the primary, the old one is masked.", Cost: 0.001},
	{Text: "Done.", Cost: 0.001},
}

// fielded is the bundled arena with a player of the test's own at each seat.
func fielded(t testing.TB, players ...agent.Player) (*arena.Package, agent.Registry) {
	t.Helper()
	p, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	p.Manifest.Rules.TickMS = 100
	p.Manifest.Heat = &arena.Heat{DrainSeconds: 5}
	reg := agent.Registry{"own": func(id string) (agent.Player, error) {
		for i, a := range p.Manifest.Agents {
			if a.ID == id {
				return players[i], nil
			}
		}
		return nil, fmt.Errorf("no player %q", id)
	}}
	for i := range p.Manifest.Agents {
		a := &p.Manifest.Agents[i]
		a.Script, a.Adapter, a.Model = nil, "own:"+a.ID, "vendor/scripted"
	}
	return p, reg
}

func scripted(t testing.TB, text string) agent.Player {
	t.Helper()
	s, err := agent.ParseScript("own.sh", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return agent.ScriptPlayer(s)
}

// program is a player that is a shell script on this host.
func program(t testing.TB, env map[string]string, text string) agent.Player {
	t.Helper()
	file := filepath.Join(t.TempDir(), "player.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return agent.CommandPlayer(agent.Command{Argv: []string{file}, Env: env})
}

func raceBetween(t testing.TB, d vm.Driver, p *arena.Package, reg agent.Registry, budgets map[string]agent.Budget, during func(runtime string)) finished {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "heat")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	runtime := runtimeFolder(t)
	if during != nil {
		wg.Go(func() { during(runtime) })
	}
	res, err := Run(ctx, Config{Package: p, Driver: d, Dir: dir, Runtime: runtime, Players: reg, Budgets: budgets, Version: "test"})
	wg.Wait()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, logOf(dir))
	}
	return finished{res, open(t, dir)}
}

// A model wins through its tool; a program and a script race it. What each was
// given to get in is nowhere but where it belongs.
func TestMixedHeat(t *testing.T) {
	t.Parallel()
	const apiKey, programKey = "sk-marked-key-of-the-model", "marked-key-of-the-program"
	s := (&llmtest.Server{Plan: repair, Key: apiKey}).Start()
	defer s.Close()
	d := driver()
	p, reg := fielded(t,
		llm.Player(llm.Config{Endpoint: s.Endpoint(), Key: apiKey, Model: "scripted"}),
		program(t, map[string]string{"PROGRAM_KEY": programKey}, `. "$AOE_CREDENTIAL_FILE"
echo "logged in with $AOE_SSH_PASSWORD and $PROGRAM_KEY"
echo '{"schema_version":2,"model":"m","messages":[],"tool_trace":[],"password":"'$AOE_SSH_PASSWORD'"}' >transcript.live.json
sleep 300`),
		scripted(t, idle))
	var seen sync.Map // what processes of others had
	stop := make(chan struct{})
	f := raceBetween(t, d, p, reg, nil, func(runtime string) {
		for {
			lookAround(t, &seen, runtime, apiKey, programKey)
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if matches, _ := filepath.Glob(filepath.Join(runtime, "*")); len(matches) == 0 && hasAny(&seen) {
				return
			}
		}
	})
	close(stop)
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	w := f.rec.World(f.rec.Len())
	a := w.Agent(w.Seat("failover-one").Agent)
	if a.InputTokens == 0 || a.CostMicroUSD < 6000 {
		t.Errorf("usage of the model: %+v", a)
	}
	for _, name := range []string{"transcript.json", "result.json", "usage.json"} {
		if _, err := os.Stat(filepath.Join(f.Dir, "seats/failover-one", name)); err != nil {
			t.Error(err)
		}
	}
	terminals := of(t, f.rec, func(b event.AgentActionStarted) bool { return b.Channel == agent.ChannelTerminal })
	if len(terminals) != 1 || terminals[0].Territory != "failover-two" || terminals[0].Session == "" {
		t.Errorf("terminals %+v", terminals)
	}
	cast, err := os.ReadFile(filepath.Join(f.Dir, terminals[0].Session))
	if err != nil || !bytes.Contains(cast, []byte("logged in with [secret] and [secret]")) {
		t.Errorf("the program's terminal: %.300s, %v", cast, err)
	}
	secrets := []string{apiKey, programKey}
	seen.Range(func(k, v any) bool {
		if s, ok := strings.CutPrefix(k.(string), "password "); ok {
			secrets = append(secrets, s)
		} else {
			t.Errorf("%s: %v", k, v)
		}
		return true
	})
	if len(secrets) < 3 {
		t.Error("no seat's password was found: the search would find nothing")
	}
	holdsNone(t, f.Dir, secrets)
}

func hasAny(m *sync.Map) (found bool) {
	m.Range(func(any, any) bool { found = true; return false })
	return found
}

// lookAround reads every other process's command line and environment, and learns
// the seats' passwords.
func lookAround(t testing.TB, seen *sync.Map, runtime string, keys ...string) {
	files, _ := filepath.Glob(filepath.Join(runtime, "*/*/password"))
	words := append([]string(nil), keys...)
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(bytes.TrimSpace(b)) > 10 {
			password := string(bytes.TrimSpace(b))
			seen.Store("password "+password, "")
			words = append(words, password)
		}
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		argv, _ := os.ReadFile(dir + "/cmdline")
		env, _ := os.ReadFile(dir + "/environ")
		own := bytes.Contains(env, []byte("\x00REFBOX_TOKEN=")) // the program that the key is for
		for _, word := range words {
			if bytes.Contains(argv, []byte(word)) {
				seen.Store(fmt.Sprintf("a secret in the command line of %q", argv), word)
			}
			if bytes.Contains(env, []byte(word)) && !(own && word == "marked-key-of-the-program") {
				seen.Store(fmt.Sprintf("a secret in the environment of %q", argv), word)
			}
		}
	}
}

// holdsNone fails when a file under dir holds one of the words.
func holdsNone(t testing.TB, dir string, words []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		for _, w := range words {
			if bytes.Contains(b, []byte(w)) {
				t.Errorf("%s holds %s", path, w)
			}
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d files were searched: %v", files, err)
	}
}

// Limits of a fleet end a player in a heat, as a typed event that why tells.
func TestLimitIsTold(t *testing.T) {
	t.Parallel()
	turns := make([]llmtest.Turn, 50)
	for i := range turns {
		turns[i] = llmtest.Turn{Commands: []string{"true"}, NoUsage: i == 1}
	}
	s := (&llmtest.Server{Plan: turns}).Start()
	defer s.Close()
	p, reg := fielded(t, llm.Player(llm.Config{Endpoint: s.Endpoint(), Model: "scripted"}), scripted(t, after(3*time.Second, right)), scripted(t, idle))
	id := p.Manifest.Agents[0].ID
	f := raceBetween(t, driver(), p, reg, map[string]agent.Budget{id: {Turns: 4}}, nil)
	limits := of(t, f.rec, func(event.LimitReached) bool { return true })
	if len(limits) != 1 || limits[0].Limit != "turns" || limits[0].Agent != id {
		t.Errorf("limits %+v", limits)
	}
	charged := of(t, f.rec, func(b event.UsageCharged) bool { return b.Agent == id })
	var unknown int
	for _, c := range charged {
		if c.InputTokens == nil {
			unknown++
		}
		if c.CostMicroUSD != nil {
			t.Errorf("a cost that nobody told: %+v", c)
		}
	}
	if len(charged) < 5 || unknown != 1 {
		t.Errorf("charged %+v", charged)
	}
	e, _ := why.Explain(f.rec.World(f.rec.Len()), p.Manifest, "failover-one")
	if !strings.Contains(fmt.Sprint(e.Lines), "limit reached: turns: used 5 of 4 turns") {
		t.Errorf("why: %+v", e.Lines)
	}
}

// An endpoint that fails is the provider's, in the log and in the explanation.
func TestProviderIsCharged(t *testing.T) {
	t.Parallel()
	s := (&llmtest.Server{Always: &llmtest.Fault{Status: 401, Body: `{"error":{"message":"no such key"}}`}}).Start()
	defer s.Close()
	p, reg := fielded(t, llm.Player(llm.Config{Endpoint: s.Endpoint(), Model: "scripted"}), scripted(t, right), scripted(t, idle))
	f := raceBetween(t, driver(), p, reg, nil, nil)
	w := f.rec.World(f.rec.Len())
	a := w.Agent(w.Seat("failover-one").Agent)
	if a.FailureSource == nil || *a.FailureSource != "provider" {
		t.Errorf("%+v", a)
	}
	if got := world.OutcomeOf(w, "failover-two"); got != world.OutcomeWon {
		t.Errorf("%s", got)
	}
}
