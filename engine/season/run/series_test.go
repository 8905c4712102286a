package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"refbox/engine/season"
	"refbox/engine/season/series"
)

func TestASeriesIsRunAndGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats on simulated machines: skipped under -short")
	}
	t.Parallel()
	dir := t.TempDir()
	engine := simulated(t.TempDir())
	run := func(ctx context.Context, rounds int, report func(int, string)) (*series.Series, error) {
		return Series(ctx, SeriesConfig{Dir: dir, Arena: "primary-failover", Rounds: rounds, Engine: engine, Report: report})
	}
	// The second round is stopped.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := run(ctx, 2, func(round int, step string) {
		if round == 2 && step == "starts" {
			cancel()
		}
	})
	if err == nil || s.RoundsCompleted != 1 {
		t.Fatalf("%+v %v", s, err)
	}
	if _, err := run(t.Context(), 3, func(int, string) {}); !errors.Is(err, series.ErrOther) {
		t.Errorf("another number of rounds: %v", err)
	}
	var steps []string
	s, err = run(t.Context(), 2, func(_ int, step string) { steps = append(steps, step) })
	if err != nil || s.RoundsCompleted != 2 || len(steps) != 3 {
		t.Fatalf("%+v %v %v", s, err, steps)
	}
	if s.Rounds[0].Seats["right"] != "failover-one" || s.Rounds[1].Seats["right"] != "failover-two" || s.Standings[0].Agent != "right" || s.Standings[0].Wins != 2 {
		t.Errorf("%+v", s)
	}
	runs := map[int]series.Run{}
	for i, r := range s.Rounds {
		got, err := series.ReadRun(t.Context(), filepath.Join(dir, r.Output))
		if err != nil {
			t.Fatal(err)
		}
		if got.Host.PreparedMS < 0 || got.SeedSHA256 == "" {
			t.Errorf("round %d says nothing of its host or seed: %+v", i+1, got)
		}
		runs[i+1] = got
	}
	for _, c := range s.Check(runs) {
		if c.Verdict == season.Broken {
			t.Errorf("%+v", c)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "round-002.interrupted-1")); err != nil {
		t.Logf("the stopped round had not begun to record: %v", err)
	}
}
