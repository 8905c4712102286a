package arena

import (
	"io/fs"
	"slices"
	"testing"
)

// The laboratory's schedule exercises each scenario of its failure model that one host
// can inject, one after the other, and each fault is declared to show one.
func TestLaboratory(t *testing.T) {
	p, err := Load("failover-lab")
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest
	if !m.Arena.Laboratory || len(m.Territories) != 1 || len(m.Territories[0].Machines) != 3 || m.Canary == nil {
		t.Errorf("%+v", m.Arena)
	}
	want := []string{"client-session-loss", "dcs-loss", "host-loss", "logical-corruption-or-operator-error", "network-partition",
		"planned-primary-maintenance", "postgres-process-crash", "storage-loss-or-stall"}
	var got []string
	spec, err := p.Spec("lab")
	if err != nil {
		t.Fatal(err)
	}
	var machines []string
	for _, mc := range spec.Machines {
		machines = append(machines, mc.Name)
	}
	for _, e := range m.Exercises {
		got = append(got, e.Scenario)
		at := slices.IndexFunc(m.Faults, func(f Fault) bool {
			return f.Kind == e.Fault && e.Target != nil && f.Spec(machines).Target() == *e.Target
		})
		if at < 0 {
			t.Errorf("%s: no fault of the schedule is %s on %v", e.Scenario, e.Fault, e.Target)
			continue
		}
		f := m.Faults[at]
		if f.After == nil || *f.After != *e.From || !slices.Contains(f.Proves, *e.To) || e.SingleWriter != nil && !slices.Contains(f.Proves, *e.SingleWriter) {
			t.Errorf("%s: its milestones are not those of the fault %s", e.Scenario, f.ID)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(m.Faults) != len(want) {
		t.Errorf("exercises %v by %d faults", got, len(m.Faults))
	}
	// One program, laid over both kinds of machines.
	a, err1 := fs.ReadFile(p.FS, "guest/coordinator/opt/lab/sql.py")
	b, err2 := fs.ReadFile(p.FS, "guest/database/opt/lab/sql.py")
	if err1 != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("the two sql.py differ: %v, %v", err1, err2)
	}
}
