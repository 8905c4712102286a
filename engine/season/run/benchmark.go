package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/internal/plainjson"
	"refbox/engine/season"
	"refbox/engine/season/series"
)

// BenchmarkConfig describes a benchmark: a suite of series.
type BenchmarkConfig struct {
	Dir    string
	Suite  *series.Suite
	Base   string // the suite's folder, which its paths are relative to
	Engine *Engine
	Report func(arena string, round int, step string)
}

const benchmarkFile = "benchmark.json"

// ErrUnlike is of a suite whose arenas cannot be summed up together.
var ErrUnlike = errors.New("the suite's arenas cannot be compared")

// Benchmark runs a suite, or goes on with one: a series in each arena, in order.
// The whole plan must be the one that it was begun with. The first arena that is not
// complete, or was aborted, stops the suite. The document is rewritten after each
// arena; within an arena its series goes on where it was.
func Benchmark(ctx context.Context, cfg BenchmarkConfig) (*series.Benchmark, error) {
	arenas, err := plan(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	s, err := openStore(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	planned := make([]series.Planned, len(arenas))
	for i, a := range arenas {
		planned[i] = a.Planned
	}
	if f := cfg.Engine.Fleet; f != nil {
		playing, err := f.Hashes()
		if err == nil {
			err = s.players(playing)
		}
		if err != nil {
			return nil, err
		}
	} else if err := s.players(nil); err != nil {
		return nil, err
	}
	was, err := kept(s.path(benchmarkFile), decoded[series.Benchmark])
	if err != nil {
		return nil, err
	}
	if was != nil {
		if err := was.Resumable(cfg.Suite.ID, planned); err != nil {
			return was, fmt.Errorf("%s: %w", s.path(benchmarkFile), err)
		}
	}
	put := func() (series.Benchmark, error) {
		out := series.Bench(cfg.Suite.ID, arenas)
		data, err := plainjson.Indented(out)
		if err != nil {
			return out, err
		}
		return out, s.put(benchmarkFile, data)
	}
	if was == nil { // so that a plan that changes before the first arena is over is seen
		if _, err := put(); err != nil {
			return nil, err
		}
	}
	for i := range arenas {
		a := &arenas[i]
		done, serr := Series(ctx, SeriesConfig{Dir: s.path(a.Planned.Output), Arena: a.Planned.Manifest, Rounds: a.Planned.Rounds, Engine: cfg.Engine,
			Report: func(round int, step string) { cfg.Report(a.Planned.ArenaID, round, step) }})
		a.Aborted = errors.Is(serr, ErrRoundAborted)
		if done != nil {
			for _, r := range done.Rounds {
				run, err := series.ReadRun(context.WithoutCancel(ctx), filepath.Join(s.path(a.Planned.Output), r.Output))
				if err != nil {
					return nil, errors.Join(serr, err)
				}
				a.Runs = append(a.Runs, run)
			}
		}
		// What was written of this arena and of later ones is never taken back: they
		// are only read again.
		if done == nil || was != nil && len(was.Arenas) > i && serr == nil && was.Arenas[i].RoundsCompleted == a.Planned.Rounds {
			err = nil
		} else {
			_, err = put()
		}
		if err := errors.Join(serr, err); err != nil {
			out := series.Bench(cfg.Suite.ID, arenas)
			return &out, fmt.Errorf("arena %s: %w", a.Planned.ArenaID, err)
		}
	}
	out := series.Bench(cfg.Suite.ID, arenas)
	return &out, nil
}

// plan loads a suite's arenas and holds them against each other: build races only,
// each once, and the same players in all (seasons reference, section 2.2).
func plan(cfg BenchmarkConfig) ([]series.ArenaRuns, error) {
	var out []series.ArenaRuns
	var errs []error
	var field []string
	for i, x := range cfg.Suite.Arenas {
		name := x.Manifest
		if !slices.Contains(arena.Bundled(), name) && !filepath.IsAbs(name) {
			name = filepath.Join(cfg.Base, name)
		}
		pkg, err := arena.Load(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m := pkg.Manifest
		if cfg.Engine.Fleet != nil {
			seated, err := cfg.Engine.Fleet.Seat(pkg)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			m = seated.Package.Manifest
		}
		fault := func(format string, a ...any) {
			errs = append(errs, fmt.Errorf("%w: arenas[%d] %s: %s", ErrUnlike, i, m.Arena.ID, fmt.Sprintf(format, a...)))
		}
		if m.Arena.Mode != arena.BuildRace {
			fault("it is no build race")
		}
		if slices.ContainsFunc(out, func(o series.ArenaRuns) bool { return o.Planned.ArenaID == m.Arena.ID }) {
			fault("another arena of the suite has this id")
		}
		var players []string
		for _, a := range m.Agents {
			players = append(players, strings.Join([]string{a.Model, strings.TrimSuffix(a.Adapter, ":"+a.ID), a.ReasoningEffort}, " "))
		}
		slices.Sort(players)
		if field == nil {
			field = players
		} else if !slices.Equal(field, players) {
			fault("its players are %s, those of the first %s", strings.Join(players, ", "), strings.Join(field, ", "))
		}
		key, _, err := Key(season.Arena{Manifest: name, Hashes: map[string]string{}}, season.Rules{})
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, series.ArenaRuns{Category: m.Arena.Category, Planned: series.Planned{ArenaID: m.Arena.ID, Manifest: name, CompatibilityKey: key,
			Rounds: x.Rounds, Output: fmt.Sprintf("%02d-%s", i+1, m.Arena.ID)}})
	}
	return out, errors.Join(errs...)
}
