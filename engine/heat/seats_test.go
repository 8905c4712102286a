package heat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"refbox/engine/arena"
)

// BenchmarkSeats races ever more simulated seats in one process, whose players only
// wait, for a quarter of a minute: events a second, and memory, are to grow with the
// seats and no faster.
func BenchmarkSeats(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p := pkg(b, idle, idle, idle)
				m := *p.Manifest
				m.Rules.TickMS, m.Rules.DurationSeconds = 1000, 15
				m.Heat = &arena.Heat{DrainSeconds: 1}
				seat, agent := m.Territories[0], m.Agents[0]
				m.Territories, m.Agents = nil, nil
				for i := range n {
					seat.ID = fmt.Sprintf("seat-%04d", i)
					agent.ID, agent.Territory = fmt.Sprintf("waiter-%04d", i), seat.ID
					m.Territories, m.Agents = append(m.Territories, seat), append(m.Agents, agent)
				}
				p.Manifest = &m
				dir := filepath.Join(b.TempDir(), "heat")
				rt := runtimeFolder(b)
				before := memory()
				var peak uint64
				ctx, stop := context.WithCancel(context.Background())
				var looking sync.WaitGroup
				looking.Go(func() {
					beat := time.NewTicker(time.Second)
					defer beat.Stop()
					for {
						select {
						case <-beat.C:
							var s runtime.MemStats
							runtime.ReadMemStats(&s)
							peak = max(peak, s.HeapInuse+s.StackInuse)
						case <-ctx.Done():
							return
						}
					}
				})
				began := time.Now()
				_, err := New(Config{Package: p, Driver: driver(), Dir: dir, Runtime: rt, Disks: rt, Version: "test"}).Run(context.Background())
				stop()
				looking.Wait()
				if err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(filepath.Join(dir, "events.jsonl"))
				if err != nil {
					b.Fatal(err)
				}
				rec := open(b, dir)
				b.ReportMetric(float64(rec.Len())/15, "events/s")
				b.ReportMetric(float64(peak-min(peak, before))/float64(n)/1024, "KiB/seat")
				b.ReportMetric(time.Since(began).Seconds()-15, "s-besides")
				b.ReportMetric(float64(info.Size())/1024/float64(n), "KiB-log/seat")
			}
		})
	}
}

// memory is what is in use once everything else was collected.
func memory() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapInuse + s.StackInuse
}
