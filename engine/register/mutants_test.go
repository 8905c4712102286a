package register

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// change is a register that a mutant changes.
type change struct {
	*testing.T
	doc    *Document
	estate *Estate
	on     Date
}

func (c *change) store(id string) *Store {
	for i := range c.doc.Stores {
		if c.doc.Stores[i].ID == id {
			return &c.doc.Stores[i]
		}
	}
	c.Fatalf("no store %s", id)
	return nil
}

func (c *change) copy(id string) *Copy {
	for i := range c.doc.Stores {
		for j := range c.doc.Stores[i].Copies {
			if c.doc.Stores[i].Copies[j].ID == id {
				return &c.doc.Stores[i].Copies[j]
			}
		}
	}
	c.Fatalf("no copy %s", id)
	return nil
}

func (c *change) migration(id string) *Migration {
	for i := range c.doc.Migrations {
		if strings.HasPrefix(c.doc.Migrations[i].ID, id) {
			return &c.doc.Migrations[i]
		}
	}
	c.Fatalf("no migration %s", id)
	return nil
}

func ptr[T any](v T) *T { return &v }

// mutants are the 30 changes that the reference names.
var mutants = map[string]func(*change){
	"journal-s3-running":       func(c *change) { c.copy("journal-offsite-s3").Status = Running },
	"pg-offsite-vin-running":   func(c *change) { c.copy("pg-offsite-vin").Status = Running },
	"coolify-nas-running":      func(c *change) { c.copy("coolify-dump-nas").Status = Running },
	"supabase-offsite-running": func(c *change) { c.copy("supabase-dump-offsite").Status = Running },
	"coolify-all-running": func(c *change) {
		c.copy("coolify-dump-nas").Status = Running
		c.copy("coolify-dump-offsite").Status = Running
	},
	"replica-planned":            func(c *change) { c.copy("pg-replica-vin").Status = Planned },
	"replica-lag-20m":            func(c *change) { c.copy("pg-replica-vin").LagSec = ptr(1200.0) },
	"automatic-promotion":        func(c *change) { c.store("jarvisos-postgres").Promotion.Trigger = Automatic },
	"no-fencing":                 func(c *change) { c.store("jarvisos-postgres").Promotion.Fencing = "" },
	"promotion-40m":              func(c *change) { c.store("jarvisos-postgres").Promotion.Minutes = 40 },
	"drill-90-days":              func(c *change) { c.on = "2026-10-10" },
	"drill-91-days":              func(c *change) { c.on = "2026-10-11" },
	"drill-31m":                  func(c *change) { c.store("jarvisos-postgres").Restore.Drills[0].MeasuredMinutes = ptr(31.0) },
	"drill-failed":               func(c *change) { c.store("jarvisos-postgres").Restore.Drills[0].Outcome = Fail },
	"drain-proven":               func(c *change) { c.store("jarvisos-vin-journal").LocalFirst.DrainVerifiedOn = ptr(Date("2026-08-01")) },
	"drain-proven-long-ago":      func(c *change) { c.store("jarvisos-vin-journal").LocalFirst.DrainVerifiedOn = ptr(Date("2026-01-01")) },
	"acceptance-expired":         func(c *change) { c.on = "2027-02-02" },
	"supabase-dump-plain":        func(c *change) { c.copy("supabase-dump-nas").Encrypted = false },
	"gate-missing":               func(c *change) { c.migration("m-2026-09").BackupGate = nil },
	"gate-planned":               func(c *change) { c.copy("pg-base-nas").Status = Planned },
	"gate-stale":                 func(c *change) { c.estate.CopyAgeMinutes = Keyed[float64]{{"pg-base-nas", 400}} },
	"not-drained":                func(c *change) { c.migration("m-2026-09").DrainedFirst = false },
	"not-replica-safe":           func(c *change) { c.migration("m-2026-08").ReplicaSafe = false },
	"rollback-loses-60m":         func(c *change) { c.migration("m-2026-09").Rollback.MaxDataLossMinutes = 60 },
	"vendor-no-exit":             func(c *change) { c.store("supabase-edge").Vendor.ExitPlan = "" },
	"unmonitored-without-reason": func(c *change) { c.store("coolify-state").Unmonitored = nil },
	"worker-writes-directly": func(c *change) {
		w := &c.store("jarvisos-postgres").Writers[1]
		w.Mode, w.Via = Direct, nil
	},
	"wal-planned": func(c *change) { c.copy("pg-wal-nas").Status = Planned },
	"acceptance-unused": func(c *change) {
		c.copy("journal-offsite-s3").Status = Running
		c.estate.Acceptances[0].Code = "no-offsite-copy"
	},
	"tunnel-off-uplink": func(c *change) {
		for i := range c.estate.DependsOn {
			c.estate.DependsOn[i].Value = nil
		}
	},
}

// mutated derives the seed's declared part, changed, by all rules.
func mutated(t *testing.T, mutate func(*change)) *Document {
	t.Helper()
	s := declared(t)
	c := &change{t, &s.Declared, &s.estate.facts, "2026-08-15"}
	mutate(c)
	doc, err := s.Derive(Settings{On: c.on, Profile: Full})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func tell(f Finding) string {
	id := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	return fmt.Sprintf("%s %s %s %s %s: %s", f.Code, f.Severity, f.StoreID, id(f.ScenarioID), id(f.MigrationID), f.Detail)
}

func told(findings []Finding) []string {
	out := make([]string, len(findings))
	for i, f := range findings {
		out[i] = tell(f)
	}
	sort.Strings(out)
	return out
}

func without(a, b []string) []string {
	out := []string{}
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

func TestMutants(t *testing.T) {
	var list []struct {
		Mutant         string
		Added, Removed [][6]*string
		Cells          [][8]json.RawMessage
		Summary        map[string][2]int
		Stores         map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(read(t, "register", "mutants.json"), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 30 || len(mutants) != 30 {
		t.Fatalf("%d mutants in the reference, %d here", len(list), len(mutants))
	}
	base := mutated(t, func(*change) {})
	for _, want := range list {
		t.Run(want.Mutant, func(t *testing.T) {
			mutate := mutants[want.Mutant]
			if mutate == nil {
				t.Fatal("not known here")
			}
			doc := mutated(t, mutate)
			findings := func(list [][6]*string) []string {
				out := []string{}
				for _, f := range list {
					out = append(out, tell(Finding{Code: Code(*f[0]), Severity: Severity(*f[1]), StoreID: *f[2], ScenarioID: f[3], MigrationID: f[4], Detail: *f[5]}))
				}
				sort.Strings(out)
				return out
			}
			before, after := told(base.Findings), told(doc.Findings)
			if d := cmp.Diff(findings(want.Added), without(after, before)); d != "" {
				t.Errorf("added (-want +got)\n%s", d)
			}
			if d := cmp.Diff(findings(want.Removed), without(before, after)); d != "" {
				t.Errorf("removed (-want +got)\n%s", d)
			}
			if d := cmp.Diff(rows(t, want.Cells), cells(t, base, doc)); d != "" {
				t.Errorf("cells (-want +got)\n%s", d)
			}
			if d := cmp.Diff(want.Summary, summaries(t, base, doc)); d != "" && (len(want.Summary) > 0 || len(summaries(t, base, doc)) > 0) {
				t.Errorf("summary (-want +got)\n%s", d)
			}
			for id, fields := range want.Stores {
				c := change{T: t, doc: doc}
				raw, err := json.Marshal(c.store(id))
				if err != nil {
					t.Fatal(err)
				}
				var got map[string]json.RawMessage
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Fatal(err)
				}
				for k, w := range fields {
					if d := cmp.Diff(value(t, w), value(t, got[k])); d != "" {
						t.Errorf("%s.%s (-want +got)\n%s", id, k, d)
					}
				}
			}
		})
	}
}

func value(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func rows(t *testing.T, list [][8]json.RawMessage) []string {
	out := []string{}
	for _, r := range list {
		var cols []string
		for _, c := range r {
			cols = append(cols, fmt.Sprint(value(t, c)))
		}
		out = append(out, strings.Join(cols, " "))
	}
	sort.Strings(out)
	return out
}

// cells are those that changed: posture, store, scenario, outcome before and
// after, minutes, writers, sides.
func cells(t *testing.T, a, b *Document) []string {
	out := []string{}
	for i := range b.Matrix {
		x, y := a.Matrix[i], b.Matrix[i]
		if cmp.Equal(x, y) {
			continue
		}
		var sides []any
		for _, p := range y.Partitions {
			sides = append(sides, p.Outcome)
		}
		var minutes any
		if y.Minutes != nil {
			minutes = *y.Minutes
		}
		out = append(out, fmt.Sprintf("%v %v %v %v %v %v %v %v", y.Posture, y.StoreID, y.ScenarioID, x.Outcome, y.Outcome, minutes, y.ConcurrentWriters, sides))
	}
	sort.Strings(out)
	return out
}

func summaries(t *testing.T, a, b *Document) map[string][2]int {
	fields := func(s Summary) map[string]int {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]int
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	x, y := fields(a.Summary), fields(b.Summary)
	out := map[string][2]int{}
	for k := range x {
		if x[k] != y[k] {
			out[k] = [2]int{x[k], y[k]}
		}
	}
	return out
}
