package register

import (
	"fmt"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/register"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

func ptr[T any](v T) *T { return &v }

// large is a register of many stores and scenarios: 12 nodes, 5 copies a store,
// 3 sides a scenario.
func large(stores, scenarios int) (*register.Document, *register.Estate) {
	doc := &register.Document{Policy: register.Policy{CopiesRequired: 3, DomainsRequired: 2, OffsiteRequired: true, DrillMaxAgeDays: 90, QuorumMinDomains: 3, UplinkEntities: []string{"isp"}}}
	estate := &register.Estate{DependsOn: register.Keyed[[]string]{{ID: "tunnel", Value: []string{"isp"}}}}
	const nodes = 12
	for i := range nodes {
		id, domain := fmt.Sprintf("n%d", i), fmt.Sprintf("d%d", i/3)
		estate.Nodes = append(estate.Nodes, register.Entry[register.Node]{ID: id, Value: register.Node{Domain: domain, Compute: i%3 == 0}})
		estate.Targets = append(estate.Targets, register.Entry[register.Target]{ID: "t" + id, Value: register.Target{Domain: domain, Node: ptr(id)}})
	}
	doc.Paths = []register.Path{{ID: "lan", Name: "lan"}, {ID: "mesh", Name: "mesh", Transits: []string{"tunnel"}}}
	kinds := []register.CopyKind{register.StreamingReplica, register.WALArchive, register.Snapshot, register.LogicalDump}
	for i := range stores {
		s := register.Store{ID: fmt.Sprintf("store-%d", i), Name: fmt.Sprintf("Store %d", i), Durability: register.Durable, Criticality: register.FleetFatal, WriteModel: register.SingleWriter,
			Primary: register.Primary{Node: fmt.Sprintf("n%d", i%nodes)}, Objectives: &register.Objectives{RPOMinutes: 15, SiteRPOMinutes: 60, RTOMinutes: 30}}
		for j := range 5 {
			minutes := float64(j * 10)
			c := register.Copy{ID: fmt.Sprintf("c%d-%d", i, j), Kind: kinds[j%4], Node: fmt.Sprintf("n%d", (i+j+1)%nodes), Target: fmt.Sprintf("tn%d", (i+2*j+1)%nodes),
				Path: []string{"lan", "mesh"}[j%2], Mode: register.Periodic, IntervalMinutes: &minutes, Serves: register.ServesNothing, Encrypted: true,
				Status: []register.CopyStatus{register.Running, register.Running, register.Planned}[(i+j)%3]}
			if c.Kind == register.StreamingReplica {
				c.Serves = register.ServesReads
			}
			s.Copies = append(s.Copies, c)
		}
		doc.Stores = append(doc.Stores, s)
	}
	for k := range scenarios {
		s := register.Scenario{ID: fmt.Sprintf("break-%d", k), Name: fmt.Sprintf("Break %d", k), Partitions: []register.Partition{{ID: "a", Operator: true, VendorReachable: true}, {ID: "b", VendorReachable: k%2 == 0}, {ID: "c", VendorReachable: true}}}
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

func largeSource(stores, scenarios int) Source {
	return Source{Name: "large", Load: func() (*register.Explainer, error) {
		doc, estate := large(stores, scenarios)
		return register.NewExplainer(doc, estate, "2026-12-01", register.Full), nil
	}}
}

// The last of many stores and scenarios is reached, and shown.
func TestLarge(t *testing.T) {
	d := drive(t, largeSource(400, 50), 120, 34)
	d.press("G", "tab", "tab", "tab", "G", "tab")
	for range 60 {
		d.press("l")
	}
	d.shows("store 400 of 400, scenario 50 of 50", "▸store-399", "break-49")
}

// A frame of 5,000 stores × 50 scenarios, after a key: update, draw, flatten.
// Moving in the matrix with only one store's findings is the most that a key asks
// for, save a filter's letter and a what-if, which have lines of their own.
func BenchmarkFrame(b *testing.B) {
	d := drive(b, largeSource(5000, 50), 200, 60)
	o := canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}
	run := func(name string, keys ...keymap.Action) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.s.Key(d, keys[i%len(keys)], tea.KeyMsg{})
				d.draw()
				d.frame(o)
				i++
			}
		})
	}
	run("matrix", keymap.Down, keymap.Right, keymap.Down, keymap.Left)
	run("posture", keymap.Posture)
	run("of-store", keymap.OfStore, keymap.Down)
	d.s.findings.filter = filter{}
	run("severity", keymap.Severity)
	d.s.findings.filter = filter{}
	d.s.focus = findings
	run("findings", keymap.Down, keymap.PageDown)
	d.s.focus = matrix
	run("explain", keymap.Explain, keymap.Down)
	run("drill", keymap.Drill, keymap.Down, keymap.Drill)
	b.Run("filter", func(b *testing.B) {
		i := 0
		for b.Loop() {
			d.s.findings.filter.words = []string{"copies", "store-499 code:uplink"}[i%2]
			d.s.matrix.filter = []string{"49", "store"}[i%2]
			d.draw()
			d.frame(o)
			i++
		}
	})
}

// What an assumption costs beside the screen, at that size.
func BenchmarkWhatIf(b *testing.B) {
	d := drive(b, largeSource(5000, 50), 200, 60)
	base := d.s.r.base
	f := newFollower(Source{})
	f.want = register.WhatIf{Lost: []string{"n3"}}
	for b.Loop() {
		f.suppose(base, "")
	}
}
