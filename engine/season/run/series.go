package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"refbox/engine/heat"
	"refbox/engine/internal/plainjson"
	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/season/series"
)

// SeriesConfig describes a series: the arena's own agents, or the engine's fleet,
// who rotate through its seats.
type SeriesConfig struct {
	Dir    string
	Arena  string // as arena.Load takes it
	Rounds int    // 0: as many as there are territories
	Engine *Engine
	Report func(round int, step string)
}

const seriesFile = "series.json"

// ErrRoundAborted is of a series that stopped at an aborted heat.
var ErrRoundAborted = errors.New("it was aborted: the series stops here")

// Series runs a series, or goes on with one: finished rounds stay, an interrupted
// one is set aside and run again. Another arena, number of rounds or key is
// refused. The document is rewritten after each round.
func Series(ctx context.Context, cfg SeriesConfig) (*series.Series, error) {
	x := season.Arena{Manifest: cfg.Arena}
	pkg, err := prepared(x, season.Rules{})
	if err != nil {
		return nil, err
	}
	m := pkg.Manifest
	var playing map[string]string
	if f := cfg.Engine.Fleet; f != nil {
		seated, err := f.Seat(pkg)
		if err != nil {
			return nil, err
		}
		if len(seated.Persons) > 0 {
			return nil, fmt.Errorf("%s: a person plays %s: that takes the screen, and a series has none", f.File, seated.Persons[0])
		}
		m = seated.Package.Manifest
		if playing, err = f.Hashes(); err != nil {
			return nil, err
		}
	}
	if x.Hashes, err = heat.Parts(pkg); err != nil {
		return nil, err
	}
	key, _, err := Key(x, season.Rules{})
	if err != nil {
		return nil, err
	}
	var territories, agents []string
	entrants := map[string]season.Entrant{}
	for _, t := range m.Territories {
		a, ok := m.AgentOf(t.ID)
		if !ok {
			return nil, fmt.Errorf("arena %s: nobody plays %s", m.Arena.ID, t.ID)
		}
		territories, agents = append(territories, t.ID), append(agents, a.ID)
		e := season.Entrant{ID: a.ID, Model: a.Model, Adapter: a.Adapter, ReasoningEffort: a.ReasoningEffort}
		if a.Script != nil {
			e.Script = *a.Script
		}
		entrants[a.ID] = e
	}
	rounds := cfg.Rounds
	if rounds == 0 {
		rounds = len(territories)
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	s, err := openStore(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.players(playing); err != nil {
		return nil, err
	}
	was, err := kept(s.path(seriesFile), decoded[series.Series])
	if err != nil {
		return nil, err
	}
	if was != nil {
		before, err := heat.KeyBefore(pkg)
		if err != nil {
			return was, err
		}
		keyOf := func(output string) (string, error) {
			k, err := recordedKey(s.path(filepath.Base(output)))
			if k == before { // the same task, in the form of an earlier refbox
				k = key
			}
			return k, err
		}
		if err := was.Resumable(m.Arena.ID, rounds, key, keyOf); err != nil {
			return was, fmt.Errorf("%s: %w", s.path(seriesFile), err)
		}
	}
	var runs []series.Run
	var outputs []string
	out := series.Aggregate(m.Arena.ID, rounds, nil, nil)
	for r := range rounds {
		name := fmt.Sprintf("round-%03d", r+1)
		_, finished, err := Recorded(ctx, s.path(name))
		if err != nil || !finished {
			if _, err := os.Lstat(s.path(name)); err == nil {
				if err := s.setAside(name); err != nil {
					return &out, err
				}
			}
			cfg.Report(r+1, "starts")
			o := Order{Arena: x, Round: r + 1, Heat: 1, Attempt: 1, Seats: map[string]season.Entrant{}, Seed: season.NewSecret(), Dir: s.path(name)}
			for a, t := range series.Rotate(territories, agents, r) {
				o.Seats[t] = entrants[a]
			}
			rerr := cfg.Engine.Run(ctx, o)
			if _, finished, err = Recorded(context.WithoutCancel(ctx), o.Dir); err != nil || !finished {
				return &out, errors.Join(rerr, err, unfinished(finished))
			}
		}
		run, err := series.ReadRun(context.WithoutCancel(ctx), s.path(name))
		if err != nil {
			return &out, err
		}
		runs, outputs = append(runs, run), append(outputs, name)
		out = series.Aggregate(m.Arena.ID, rounds, outputs, runs)
		data, err := plainjson.Indented(out)
		if err != nil {
			return &out, err
		}
		if err := s.put(seriesFile, data); err != nil {
			return &out, err
		}
		cfg.Report(r+1, "is over")
		if !run.Finished {
			return &out, fmt.Errorf("round %d: %w", r+1, ErrRoundAborted)
		}
	}
	return &out, nil
}

func recordedKey(dir string) (string, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return "", err
	}
	defer rec.Close()
	m := rec.Match()
	if m == nil {
		return "", fmt.Errorf("%s has no match.json", dir)
	}
	return m.CompatibilityKey, nil
}
