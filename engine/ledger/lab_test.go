package ledger_test

import (
	"path/filepath"
	"testing"

	"refbox/assets"
	"refbox/engine/ledger"
	"refbox/engine/recording"
	"refbox/recordings"
)

// The laboratory's recorded heat shows each scenario of the seed, and of the bundled
// model, that one host can inject; what its own declaration calls a stand-in is no more
// than a sample.
func TestLaboratoryHeat(t *testing.T) {
	t.Run("seed", func(t *testing.T) { laboratory(t, seed(t)) })
	t.Run("bundled", func(t *testing.T) { laboratory(t, assets.LedgerModelOf("failover-lab")) })
}

func laboratory(t *testing.T, model []byte) {
	l, err := ledger.Init(filepath.Join(t.TempDir(), "ledger"), model, assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.OpenFS(recordings.Heats(), "failover-lab")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	terms := ledger.Terms{Model: l.Model, Policy: l.Policy}
	j, err := terms.JudgeHeat(t.Context(), rec, ledger.Review{By: "the referee's desk"})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, o := range j.Offers {
		e := o.Evidence
		shown[e.Scenario] = true
		if o.Verdict.Outcome != ledger.Observed {
			t.Errorf("%s: %s, %v, refused by %v", e.Scenario, o.Verdict.Outcome, o.Verdict.Why, o.Verdict.Refused())
		}
		if ledger.ToldWords(e.Told) == "" || e.Probe.GapMS == nil || e.Probe.Lost != 0 || e.Probe.Unread != 0 {
			t.Errorf("%s: what was measured is not there: %+v, told %s", e.Scenario, e.Probe, e.Told)
		}
		if e.Fault.Forgeable != "" {
			e.Fault.Untouched = false // as if somebody had been in the machines
			if v := terms.TermsOf(t.Context(), rec).Judge(&e); v.Outcome != ledger.Sampled {
				t.Errorf("%s: %s with somebody in the machines", e.Scenario, v.Outcome)
			}
		}
		e.CoversWholeDomain = false
		if v := terms.TermsOf(t.Context(), rec).Judge(&e); v.Outcome != ledger.Sampled {
			t.Errorf("%s: %s of other machinery", e.Scenario, v.Outcome)
		}
	}
	for _, s := range l.Model.Scenarios {
		if shown[s.ID] != (s.ID != "shared-hypervisor-loss") {
			t.Errorf("%s: shown is %t", s.ID, shown[s.ID])
		}
	}
}
