package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/ledger/ledgertest"
)

// Ledgers, as a user keeps them: each script says what it holds. "story NAME" writes
// the recording of a heat that never ran: sound, sick, losing or empty.
func TestLedgerScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/ledger",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"} {
				e.Setenv(name, e.WorkDir+"/"+name)
			}
			return os.WriteFile(e.WorkDir+"/example.json", assets.LedgerModel(), 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "story": func(ts *testscript.TestScript, neg bool, args []string) {
			crash := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill", Coverage: arena.WholeDomain, Machinery: arena.RealMachinery}
			s := ledgertest.Story{Exercises: []arena.Exercise{crash}, Started: time.Now()}
			switch {
			case neg || len(args) != 1:
				ts.Fatalf("usage: story sound|sick|losing|empty")
			case args[0] == "sick":
				s.Sick = true
			case args[0] == "losing":
				s.Lost, s.LossMS = 40, 20_000
			case args[0] == "empty":
				s.Exercises, s.Fault = []arena.Exercise{}, "process-kill"
			}
			ledgertest.Heat(t, ts.MkAbs(args[0]), s)
		}},
	})
}

// The ledger's screen in a real terminal: it opens, follows the ledger, and leaves
// the terminal as it was; the lobby offers it.
func TestLedgerScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("data") + "/refbox/ledgers/main"
	refbox := func(args ...string) {
		t.Helper()
		if out, err := b.command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	heat := filepath.Join(t.TempDir(), "heat")
	ledgertest.Heat(t, heat, ledgertest.Story{Started: time.Now(), Exercises: []arena.Exercise{{Scenario: "postgres-process-crash", Fault: "process-kill"}}})

	s := b.show(120, 34, "ledger", "show")
	s.shows("refbox ▸ ledger ▸ main")
	s.shows("observed 0 of 7 injectable")
	s.press("q")
	s.leaves(0, 10*time.Second)

	refbox("ledger", "init")
	s = b.show(120, 34, "ledger", "show", dir)
	s.shows("scenarios × arenas")
	refbox("ledger", "add", heat)
	s.shows("◐ sampled 1")
	s.press("j\r")
	s.shows("evidence: all arenas")
	s.shows("the player was not told")
	s.press("\r")
	s.shows("heat")
	s.press("\x03")
	s.leaves(0, 10*time.Second)

	s = b.show(120, 40)
	s.shows("Ledgers")
	s.press("/a ledger of yours\r")
	s.press("\r")
	s.shows("ledger ▸ main")
	s.press("\x03")
	s.leaves(0, 10*time.Second)
}

// When a heat ends, what it has to offer is said, with the command that keeps it.
func TestHeatOffersEvidence(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	out := b.path("heat")
	text, err := b.command("run", "primary-failover", "--machines", "sim", "--headless", "--output", out).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{"ledger    3 pieces of evidence, refused: postgres-process-crash. Evidence of machines that start broken is always refused", "refbox ledger add " + out} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q at its end:\n%s", want, text)
		}
	}
}
