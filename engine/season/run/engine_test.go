package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"refbox/engine/season"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

func simulated(runtime string) *Engine {
	return &Engine{Driver: sim.New(sim.Config{Programs: failover.Programs()}), Runtime: runtime, Version: "test"}
}

// drawScripted draws a week of scripted players of the bundled arena, all of the
// same skill, so that every heat ends within seconds and any of them may win.
func drawScripted(dir string, n int) error {
	m := &season.Manifest{File: "cup.toml", ID: "cup", Arenas: []string{"primary-failover"}, ArenaNames: []string{"primary-failover"},
		Rules: season.Rules{UnavailableReplays: 1}}
	for i := range n {
		m.Fleet = append(m.Fleet, season.Entrant{ID: fmt.Sprintf("e%02d", i), Adapter: "script", Model: "right", ReasoningEffort: "high"})
	}
	arenas, err := Arenas(m, false)
	if err != nil {
		return err
	}
	rules := season.Refbox
	var nonces []season.Contribution
	for _, who := range []string{"ann", "bob"} {
		nonce := season.NewSecret()
		nonces = append(nonces, season.Contribution{Contributor: who, Commitment: season.Commit("cup", "2026-W49", who, nonce), Nonce: nonce})
	}
	secret := season.NewSecret()
	d, err := season.NewDraw(m, arenas, season.Order{Week: "2026-W49", Secret: secret, RuleSet: &rules, Nonces: nonces})
	if err != nil {
		return err
	}
	return Create(dir, d, secret)
}

// recorded plays a week again from the recordings of another folder: heats that
// come out exactly as they did there.
type recorded struct {
	Heats
	from, to string
}

func (r recorded) Run(_ context.Context, o Order) error { return os.Mkdir(o.Dir, 0o755) }

func (r recorded) Result(dir string) (season.Attempt, bool, error) {
	rel, err := filepath.Rel(r.to, dir)
	if err != nil {
		return season.Attempt{}, false, err
	}
	return Recorded(context.Background(), filepath.Join(r.from, rel))
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is no number", name, s)
	}
	return n
}

// TestAWeekOnSimulatedMachinesIsKilled runs a week through the engine and kills it
// at random points. Who wins a race between equals is the race's: two runs of it
// need not agree. What must be equal is what follows from the heats: a week that
// was never killed and whose heats come out as recorded here writes the same files,
// clock and all.
func TestAWeekOnSimulatedMachinesIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats on simulated machines: skipped under -short")
	}
	t.Parallel()
	entrants, kills := number(t, "REFBOX_ENTRANTS", 5), number(t, "REFBOX_KILLS", 2)
	dir := t.TempDir()
	if err := drawScripted(dir, entrants); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	start := func() *exec.Cmd {
		c := child(t, dir, 0, 0, 8)
		c.Env = append(c.Env, "REFBOX_TEST_RUNTIME="+t.TempDir())
		return c
	}
	for n := range kills {
		c := start()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		dead := make(chan error, 1)
		go func() { dead <- c.Wait() }()
		after := time.Duration(500+r.IntN(14_000)) * time.Millisecond
		select {
		case err := <-dead:
			t.Logf("the week was over after %d kills: %v", n, err)
		case <-time.After(after):
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			err := <-dead
			if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("kill %d: %v", n, err)
			}
			t.Logf("kill %d after %v", n+1, after)
		}
	}
	last := start()
	patience := time.AfterFunc(time.Duration(2+entrants/8)*time.Minute, func() { last.Process.Signal(syscall.SIGQUIT) }) //nolint:errcheck // it may have ended
	out, err := last.CombinedOutput()
	patience.Stop()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a := audited(t, dir, simulated(""))
	if _, err := os.Stat(filepath.Join(dir, weekFile)); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"W8", "R", "J", "P1"} {
		holds := false
		for _, c := range a.Checks {
			holds = holds || c.Code == code && c.Verdict == season.Holds
		}
		if !holds {
			t.Errorf("%s was not found to hold: %+v", code, a.Checks)
		}
	}
	again := t.TempDir()
	for _, name := range []string{drawFile, secretFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(again, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Run(t.Context(), Config{Dir: again, Heats: recorded{simulated(""), dir, again}}); err != nil {
		t.Fatal(err)
	}
	documents := func(dir string) map[string]string {
		out := map[string]string{}
		for name, data := range files(t, dir) {
			if strings.HasSuffix(name, ".json") && strings.Count(name, "/") < 2 {
				out[name] = data
			}
		}
		return out
	}
	if diff := cmp.Diff(documents(again), documents(dir)); diff != "" {
		t.Errorf("(-undisturbed +killed)\n%s", diff)
	}
	aside, err := filepath.Glob(filepath.Join(dir, "round-*", "*.interrupted-*"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entrants, %d interrupted attempts kept", entrants, len(aside))
}
