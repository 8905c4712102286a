package register

import (
	"fmt"
	"testing"
)

// large is a register of many stores and scenarios: 12 nodes, 5 copies a store,
// 3 sides a scenario.
func large(stores, scenarios, copies int) (*Document, *Estate) {
	doc := &Document{Policy: Policy{3, 2, true, 90, 3, []string{"isp"}, []string{}}}
	estate := &Estate{DependsOn: Keyed[[]string]{{"tunnel", []string{"isp"}}}}
	const nodes = 12
	for i := range nodes {
		id, domain := fmt.Sprintf("n%d", i), fmt.Sprintf("d%d", i/3)
		estate.Nodes = append(estate.Nodes, Entry[Node]{id, Node{domain, i%3 == 0}})
		estate.Targets = append(estate.Targets, Entry[Target]{"t" + id, Target{domain, ptr(id)}})
	}
	estate.Targets = append(estate.Targets, Entry[Target]{"bucket", Target{"far", nil}})
	doc.Paths = []Path{{ID: "lan", Name: "lan"}, {ID: "mesh", Name: "mesh", Transits: []string{"tunnel"}}}
	kinds := []CopyKind{StreamingReplica, WALArchive, Snapshot, LogicalDump}
	for i := range stores {
		s := Store{ID: fmt.Sprintf("s%d", i), Name: fmt.Sprintf("Store %d", i), Durability: Durable, Criticality: FleetFatal, WriteModel: SingleWriter,
			Primary: Primary{Node: fmt.Sprintf("n%d", i%nodes)}, Objectives: &Objectives{15, 60, 30, nil}}
		for j := range copies {
			minutes := float64(j * 10)
			c := Copy{ID: fmt.Sprintf("c%d-%d", i, j), Kind: kinds[j%4], Node: fmt.Sprintf("n%d", (i+j+1)%nodes), Target: fmt.Sprintf("tn%d", (i+2*j+1)%nodes),
				Path: []string{"lan", "mesh"}[j%2], Mode: Periodic, IntervalMinutes: &minutes, Serves: ServesNothing, Encrypted: true, Status: []CopyStatus{Running, Running, Planned}[(i+j)%3]}
			if c.Kind == StreamingReplica {
				c.Serves = ServesReads
			}
			s.Copies = append(s.Copies, c)
		}
		doc.Stores = append(doc.Stores, s)
	}
	for k := range scenarios {
		s := Scenario{ID: fmt.Sprintf("x%d", k), Name: fmt.Sprintf("Break %d", k), Partitions: []Partition{{"a", nil, true, true}, {"b", nil, false, k%2 == 0}, {"c", nil, false, true}}}
		for i := range nodes {
			id := fmt.Sprintf("n%d", i)
			if at := (i*7 + k) % 4; at == 3 {
				s.LostNodes = append(s.LostNodes, id)
			} else {
				s.Partitions[at].Nodes = append(s.Partitions[at].Nodes, id)
			}
		}
		doc.Scenarios = append(doc.Scenarios, s)
	}
	return doc, estate
}

// The large register is a sound one, so the figures are of real work.
func TestLargeIsValid(t *testing.T) {
	doc, estate := large(50, 10, 5)
	if p := validate(doc, estate); len(p.list) > 0 {
		t.Fatal(p.list)
	}
	d := Derive(doc, estate, "2026-12-01", Full)
	if len(d.Matrix) != 2*50*10 || len(d.Findings) < 50 {
		t.Errorf("%d cells, %d findings", len(d.Matrix), len(d.Findings))
	}
}

// 5,000 stores × 50 scenarios derive in under a second; the other sizes show
// that the cost follows stores, scenarios and copies.
func BenchmarkDerive(b *testing.B) {
	for _, n := range []struct{ stores, scenarios, copies int }{{5000, 50, 5}, {2500, 50, 5}, {5000, 25, 5}, {5000, 50, 10}} {
		b.Run(fmt.Sprintf("%dx%dx%d", n.stores, n.scenarios, n.copies), func(b *testing.B) {
			doc, estate := large(n.stores, n.scenarios, n.copies)
			b.ReportAllocs()
			for b.Loop() {
				Derive(doc, estate, "2026-12-01", Full)
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	doc, estate := large(1000, 20, 5)
	for b.Loop() {
		MakePlan(doc, estate, "2026-12-01", Full)
	}
}
