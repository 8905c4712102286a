package heat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/agent/llm"
	"refbox/engine/agent/llm/llmtest"
	"refbox/engine/event"
	"refbox/engine/world"
	"refbox/vm/qemu/qemutest"
)

// A model wins on a real machine, through its tool, over an endpoint that fails now
// and then; what its key and the seats' passwords are is nowhere in the recording.
func TestRealModelWins(t *testing.T) {
	d := qemutest.Driver(t)
	const key = "sk-marked-key-of-the-model"
	s := (&llmtest.Server{Plan: repair, Key: key, Faults: map[int]llmtest.Fault{
		0: {Status: 429, Body: `{"error":{"message":"slow down"}}`, RetryAfter: "1"},
		2: {Cut: true}, 4: {Status: 500, Body: "oops"}}}).Start()
	defer s.Close()
	p, reg := fielded(t, llm.Player(llm.Config{Endpoint: s.Endpoint(), Key: key, Model: "scripted"}),
		program(t, nil, `ssh -F "$REFBOX_SSH_CONFIG" seat 'hostname; sleep 300'`), scripted(t, after(2*time.Minute, right)))
	p.Manifest.Rules.TickMS = 1000
	passwords := map[string]bool{}
	stop := make(chan struct{})
	f := raceBetween(t, d, p, reg, nil, func(runtime string) {
		for range 600 {
			files, _ := filepath.Glob(filepath.Join(runtime, "*/*/password"))
			for _, file := range files {
				if b, err := os.ReadFile(file); err == nil {
					passwords[strings.TrimSpace(string(b))] = true
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			if len(passwords) == 3 {
				return
			}
		}
	})
	close(stop)
	w := f.rec.World(f.rec.Len())
	if world.OutcomeOf(w, "failover-one") != world.OutcomeWon {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	if n := len(of(t, f.rec, func(b event.AgentActionStarted) bool {
		return b.Territory == "failover-one" && b.Channel == agent.ChannelExec
	})); n != 6 {
		t.Errorf("%d commands of the model were observed", n)
	}
	if len(s.Requests()) != 9 {
		t.Errorf("%d requests", len(s.Requests()))
	}
	words := []string{key}
	for p := range passwords {
		words = append(words, p)
	}
	if len(words) != 4 {
		t.Errorf("%d passwords were found: the search would find nothing", len(words)-1)
	}
	holdsNone(t, f.Dir, words)
}
