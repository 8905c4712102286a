package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// labTime is how long the laboratory's schedule may take on two cores, and setupTime
// what its image and its prepared state may take on top.
const (
	labTime   = 40 * time.Minute
	setupTime = 20 * time.Minute
)

// TestRealLab runs the laboratory's whole schedule unattended, as often as REFBOX_LAB
// says: each scenario that its arena exercises is judged, by a ledger of the failure
// model that they are of, and what was measured is told.
func TestRealLab(t *testing.T) {
	n := times(t, "REFBOX_LAB", 0)
	if n == 0 {
		t.Skip("runs for some ten minutes: task lab does, or REFBOX_LAB=1")
	}
	model := labModel(t)
	b := realBox(t)
	for i := range n {
		dir, books := b.path(fmt.Sprintf("lab-%d", i)), b.path(fmt.Sprintf("ledger-%d", i))
		p := b.run(labTime+setupTime, "run", "failover-lab", "--headless", "--yes", "--output", dir)
		if p.code != 0 {
			t.Fatalf("run %d exits with %d\n%s%s", i, p.code, p.output, p.errors)
		}
		took := p.took
		b.nothingLeft()
		b.readable(dir, false)
		if p := b.run(time.Minute, "ledger", "init", books, "--model", model); p.code != 0 {
			t.Fatalf("%s%s", p.output, p.errors)
		}
		p = b.run(time.Minute, "ledger", "add", dir, "--ledger", books, "--yes", "--json")
		var said struct {
			Appended int `json:"appended"`
			Offers   []struct {
				Evidence struct {
					Scenario string `json:"scenario"`
					Clock    struct {
						Injected uint64  `json:"injected_ms"`
						End      uint64  `json:"end_ms"`
						Restored *uint64 `json:"restored_ms"`
					} `json:"clock"`
					Probe struct {
						Lost   uint64  `json:"lost"`
						Acked  uint64  `json:"acknowledged"`
						Unread uint64  `json:"unread"`
						Gap    *uint64 `json:"gap_ms"`
					} `json:"probe"`
					Told    json.RawMessage `json:"told"`
					Watched json.RawMessage `json:"watched"`
				} `json:"evidence"`
				Verdict struct {
					Outcome string   `json:"outcome"`
					Why     []string `json:"why"`
					Gates   []struct {
						Code string `json:"code"`
						Pass bool   `json:"pass"`
						Text string `json:"text"`
					} `json:"gates"`
				} `json:"verdict"`
			} `json:"offers"`
		}
		if err := json.Unmarshal([]byte(p.output.String()), &said); err != nil || p.code != 0 {
			t.Fatalf("ledger add exits with %d, %v\n%s%s", p.code, err, p.output, p.errors)
		}
		shown := map[string]bool{}
		for _, o := range said.Offers {
			e, v := o.Evidence, o.Verdict
			shown[e.Scenario] = true
			gap := "no end"
			if e.Probe.Gap != nil {
				gap = fmt.Sprintf("%.1f s", float64(*e.Probe.Gap)/1000)
			}
			why := strings.Join(v.Why, "; ")
			for _, g := range v.Gates {
				if !g.Pass {
					why += " " + g.Code + ": " + g.Text
				}
			}
			t.Logf("run %d: %s: %s; write gap %s, lost %d of %d; told %s; watched %s %s", i, e.Scenario, v.Outcome, gap, e.Probe.Lost, e.Probe.Acked, e.Told, e.Watched, why)
			switch v.Outcome {
			case "observed", "contradicted", "inconclusive":
			default:
				t.Errorf("%s ends %s: %s", e.Scenario, v.Outcome, why)
			}
		}
		for _, s := range []string{"planned-primary-maintenance", "postgres-process-crash", "host-loss", "storage-loss-or-stall", "network-partition",
			"dcs-loss", "logical-corruption-or-operator-error", "client-session-loss"} {
			if !shown[s] {
				t.Errorf("nothing was shown of %s", s)
			}
		}
		t.Logf("run %d took %v", i, took.Round(time.Second))
		if keep := os.Getenv("REFBOX_LAB_KEEP"); keep != "" {
			if err := os.CopyFS(filepath.Join(keep, filepath.Base(dir)), os.DirFS(dir)); err != nil {
				t.Error(err)
			}
		}
	}
}

// labModel is the failure model whose scenarios the laboratory exercises.
func labModel(t *testing.T) string {
	t.Helper()
	data := os.Getenv("REFBOX_DATA")
	if data == "" {
		data = "../../../shared"
	}
	file, err := filepath.Abs(filepath.Join(data, "seeds/failure-model.json"))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Skipf("no failure model: %v; set REFBOX_DATA", err)
	}
	return file
}
