//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"refbox/engine/heat/heattest"
	"refbox/engine/recording"
)

// crowd is what a heat's verdicts are taken among.
type crowd struct {
	name  string
	other string // what another seat's player does
	eyes  int    // how many look on through refbox serve
}

// crowds are by pairs: the first of each is what the second is held against.
var crowds = [][2]crowd{
	{{"alone", "sleep 300\n", 0}, {"watched", "sleep 300\n", 50}},
	{{"busy", "while :; do :; done\n", 0}, {"endless", "yes >/dev/console & exec yes\n", 0}},
}

// BenchmarkVerdicts is how long verdicts of real machines take after observed
// actions: while refbox serve shows the heat to nobody and to 50, and while another
// seat's machine computes and prints without end, by turns. The spectators' clients
// run on this host, so they cost more here than they would.
func BenchmarkVerdicts(b *testing.B) {
	for _, pair := range crowds {
		b.Run(pair[1].name, func(b *testing.B) {
			r := realBox(b)
			var took [2][]uint64
			for i := 0; b.Loop(); i++ {
				for j, c := range pair {
					took[j] = append(took[j], verdictsAmong(b, r, fmt.Sprintf("%s-%d", c.name, i), c)...)
				}
			}
			at := func(j, percent int) float64 {
				slices.Sort(took[j])
				return float64(took[j][len(took[j])*percent/100])
			}
			for j, c := range pair {
				b.ReportMetric(at(j, 50), c.name+"-p50-ms")
				b.ReportMetric(at(j, 95), c.name+"-p95-ms")
			}
			b.ReportMetric(at(1, 95)/at(0, 95), "p95-ratio")
		})
	}
}

// verdictsAmong runs a heat, and gives how long its verdicts took.
func verdictsAmong(b *testing.B, r *box, name string, c crowd) []uint64 {
	b.Helper()
	at := r.path("arena-" + name)
	if err := os.CopyFS(at, os.DirFS("../../assets/arenas/primary-failover")); err != nil {
		b.Fatal(err)
	}
	// The public port leads to the dead primary and to the replica by turns.
	var right strings.Builder
	for i := range 20 {
		fmt.Fprintf(&right, "# pause 1.5s\nprintf '%d\\n' >/var/lib/failover/upstream\n---\n", 8081+(i+1)%2)
	}
	right.WriteString("# pause 1s\nsystemctl mask failover-primary.service\nprintf 'primary\\n' >/var/lib/failover/replica.role\nprintf '8082\\n' >/var/lib/failover/upstream\n")
	for player, script := range map[string]string{"right": right.String(), "careful": c.other, "hasty": "sleep 300\n"} {
		if err := os.WriteFile(filepath.Join(at, "players", player+".sh"), []byte(script), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	dir := r.path(name)
	heat := r.start("run", at, "--headless", "--output", dir)
	heat.until(heat.output, "heat running", raceTime)
	if c.eyes > 0 {
		server, addr, key := r.served(dir)
		defer server.signal(syscall.SIGINT, time.Minute)
		for i := range c.eyes {
			spectate(b, addr, key, fmt.Sprint("eyes-", i), nil, 120, 34)
		}
	}
	heat.wait(raceTime)
	heat.says(exitDone, "1. failover-one won")
	rec, err := recording.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	return heattest.Verdicts(b, rec)
}
