package recording

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/world"
)

// The figures of design, section 7, for a log of 1,000,000 events.

func BenchmarkFirstFrame1M(b *testing.B) {
	path := longLog(b, 1_000_000)
	for b.Loop() {
		r, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		r.World(r.Len())
		r.Head()
		r.Close()
	}
}

func BenchmarkSeek1M(b *testing.B) {
	path := longLog(b, 1_000_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	r, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if err := r.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	indexed := time.Since(begun)
	runtime.GC()
	runtime.ReadMemStats(&after)
	var took []time.Duration
	n := uint64(1)
	for b.Loop() {
		n = n*6364136223846793005 + 1442695040888963407
		t := time.Now()
		r.World(int(n>>33) % r.Len())
		took = append(took, time.Since(t))
	}
	slices.Sort(took)
	b.ReportMetric(float64(indexed.Milliseconds()), "ms-to-index")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-heap")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}

// BenchmarkIndex shows that the cost of an event does not grow with the log: open,
// fold and verify, per event.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := longLog(b, n)
			var index, verify time.Duration
			for b.Loop() {
				begun := time.Now()
				r, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
				index += time.Since(begun)
				begun = time.Now()
				if _, err := r.Verify(b.Context()); err != nil {
					b.Fatal(err)
				}
				verify += time.Since(begun)
				r.Close()
			}
			b.ReportMetric(float64(index.Nanoseconds())/float64(b.N)/float64(n), "ns-index/event")
			b.ReportMetric(float64(verify.Nanoseconds())/float64(b.N)/float64(n), "ns-verify/event")
		})
	}
}

// BenchmarkFold compares reading and folding a log with what plain encoding/json
// takes to read the same lines into the same structs.
func BenchmarkFold(b *testing.B) {
	path := longLog(b, 100_000)
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		b.Fatal(err)
	}
	lines := splitLines(data)
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			w := world.New()
			d := &event.Decoder{}
			for _, line := range lines {
				e, err := d.Decode(line)
				if err != nil {
					b.Fatal(err)
				}
				world.Apply(w, e)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			w := world.New()
			for _, line := range lines {
				world.Apply(w, plainDecode(b, line))
			}
		}
	})
}

func splitLines(data []byte) [][]byte {
	var lines [][]byte
	for len(data) > 0 {
		line := firstLine(data)
		lines = append(lines, line)
		data = data[len(line):]
	}
	return lines
}

type envelope struct {
	Sequence  uint64 `json:"sequence"`
	ElapsedMS uint64 `json:"elapsed_ms"`
	Kind      string `json:"kind"`
}

func plainDecode(b *testing.B, line []byte) event.Event {
	var env envelope
	if err := json.Unmarshal(line, &env); err != nil {
		b.Fatal(err)
	}
	e := event.Event{Sequence: env.Sequence, ElapsedMS: env.ElapsedMS}
	switch env.Kind {
	case "milestone_evaluation_started":
		e.Body = plain[event.MilestoneEvaluationStarted](b, line)
	case "milestone_failed":
		e.Body = plain[event.MilestoneFailed](b, line)
	case "milestone_passed":
		e.Body = plain[event.MilestonePassed](b, line)
	case "milestone_revoked":
		e.Body = plain[event.MilestoneRevoked](b, line)
	case "agent_action_started":
		e.Body = plain[event.AgentActionStarted](b, line)
	case "agent_action_finished":
		e.Body = plain[event.AgentActionFinished](b, line)
	case "usage_charged":
		e.Body = plain[event.UsageCharged](b, line)
	case "canary_sample":
		e.Body = plain[event.CanarySample](b, line)
	case "match_state_changed":
		e.Body = plain[event.MatchStateChanged](b, line)
	case "territory_registered":
		e.Body = plain[event.TerritoryRegistered](b, line)
	case "agent_started":
		e.Body = plain[event.AgentStarted](b, line)
	default:
		b.Fatalf("the comparison does not know %s", env.Kind)
	}
	return e
}

func plain[T event.Body](b *testing.B, line []byte) event.Body {
	var body T
	if err := json.Unmarshal(line, &body); err != nil {
		b.Fatal(err)
	}
	return body
}
