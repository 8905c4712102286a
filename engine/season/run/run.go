// Package run runs a drawn week: heats in order, a checkpoint after each attempt,
// and exact resume. It hides the order of things on disk.
//
// Promises:
//
//   - After a kill at any moment Run goes on where it was: attempts that were
//     written down stay; one whose recording is finished counts; one that was
//     interrupted is kept as such (heat-HH.interrupted-n) and run again with the same
//     seats. The documents of a week that was killed are those of one that was not.
//   - What follows from the rules is the same whatever ran the heats and whatever
//     order they ended in. What a heat measures by the clock is the heat's:
//     durable_at_ms, and what is charged or said while time passes
//     (cost_microusd, detail).
//   - A week is run by one process. Arenas, verifiers and players that are not
//     the drawn ones are refused, with the difference.
//   - A heat that has started is not stopped because another one failed.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"refbox/engine/bounded"
	"refbox/engine/season"
)

// Order is one attempt at a heat.
type Order struct {
	Arena                season.Arena
	Round, Heat, Attempt int
	Seats                map[string]season.Entrant // by territory
	Rules                season.Rules
	Seed                 string // of the heat's secret values, 64 hex digits
	Dir                  string // does not exist yet
}

// Heats runs attempts. Engine is the one real implementation; it and the tests'
// table are held to one behaviour.
type Heats interface {
	// Key is an arena's compatibility key now, and what it rests on by name.
	Key(season.Arena, season.Rules) (key string, hashes map[string]string, err error)
	// Run runs an attempt to its end, or until ctx ends. What came of it is in the
	// folder. It may be called several times at once.
	Run(context.Context, Order) error
	// Result reads a finished attempt's folder. False: it is not there or was not
	// finished, whether by a kill or since the context ended.
	Result(dir string) (season.Attempt, bool, error)
}

// Config describes a run.
type Config struct {
	Dir   string // the week's folder, with its draw
	Heats Heats
	// Parallel is how many heats of a round run at the same time; less than 1 is 1.
	Parallel int
	// Players are what those who play are, by id, beside what the arenas' packages
	// hold: on resume they must be the same. Nil for nothing beside.
	Players map[string]string
	// Report hears what happens, one call at a time.
	Report func(Progress)
}

// Progress is a step of a week.
type Progress struct {
	Round, Heat, Attempt int
	Step                 string // "starts", "resumes", "adopted", "interrupted", "replay", "over", "round over", "complete"
	Dir                  string
	Winner               string // an entrant; "" for none
	Why                  string // of a replay
}

// Changed is the error of an arena that is not the drawn one.
type Changed struct {
	Arena, Want, Got, Differences string
}

func (e *Changed) Error() string {
	return fmt.Sprintf("arena %s is not the one that was drawn: its key is %s, the draw's is %s%s; put the drawn one back, or draw another week",
		e.Arena, e.Got, e.Want, e.Differences)
}

// ErrAborted is of a week that stopped at an aborted heat.
var ErrAborted = errors.New("the week stopped at an aborted heat")

// week is a run in progress.
type week struct {
	cfg    Config
	store  *store
	draw   *season.Draw
	digest string
	rules  season.RuleSet
	secret string
	fleet  map[string]season.Entrant

	mu  sync.Mutex // of what follows, and of week.json
	out season.Week
}

// Run runs a week to its end. What has been reached is returned beside an error
// too. A week that is complete, or that stopped at an aborted heat, is returned at
// once, the latter with ErrAborted.
func Run(ctx context.Context, cfg Config) (*season.Week, error) {
	if cfg.Report == nil {
		cfg.Report = func(Progress) {}
	}
	s, err := openStore(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	w := &week{cfg: cfg, store: s, fleet: map[string]season.Entrant{}}
	done, err := w.load()
	if err != nil || done {
		return &w.out, err
	}
	for _, x := range w.draw.Arenas {
		if err := w.unchanged(x); err != nil {
			return &w.out, err
		}
	}
	if err := s.players(cfg.Players); err != nil {
		return &w.out, err
	}
	return &w.out, w.play(ctx)
}

// load reads the folder. Done: there is nothing to run.
func (w *week) load() (done bool, err error) {
	data, err := bounded.File(w.store.path(drawFile), maxKept)
	if err != nil {
		return false, fmt.Errorf("%w; draw the week first: refbox season draw", err)
	}
	if w.draw, w.digest, _, err = season.ReadDraw(data); err != nil {
		return false, fmt.Errorf("%s: %w", w.store.path(drawFile), err)
	}
	d := w.draw
	if w.rules, err = d.InForce(); err != nil {
		return false, err
	}
	docs := season.Documents{Path: w.cfg.Dir, Draw: d, Digest: w.digest}
	for _, c := range docs.Check(season.Sources{}).Checks {
		if c.Verdict == season.Broken {
			return false, fmt.Errorf("%s is broken: %s: it should be %s and is %s", w.store.path(drawFile), c.Text, c.Want, c.Got)
		}
	}
	for _, e := range d.Fleet {
		w.fleet[e.ID] = e
	}
	was, err := w.store.week()
	if err != nil {
		return false, err
	}
	if was != nil {
		if was.DrawDigest == nil || *was.DrawDigest != w.digest {
			return false, fmt.Errorf("%s is of another draw: its digest is %v, the draw's is %s", w.store.path(weekFile), deref(was.DrawDigest), w.digest)
		}
		w.out = *was
		if was.Completed {
			return true, nil
		}
		for _, r := range was.Rounds {
			for _, h := range r.Heats {
				if h.Aborted {
					return true, fmt.Errorf("%w: round %d, heat %d", ErrAborted, r.Round, h.Heat)
				}
			}
		}
	}
	if w.secret, err = w.store.secret(d); err != nil {
		return false, err
	}
	if was == nil {
		w.out = season.Week{SchemaVersion: season.Schema, DrawDigest: &w.digest, SeasonID: d.SeasonID, Week: d.Week, DrawSeed: d.DrawSeed,
			Commitment: d.Commitment, Rounds: []season.Round{}, Standings: season.Tally(nil, d.Fleet)}
	}
	return false, nil
}

func deref(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// unchanged holds an arena against the draw.
func (w *week) unchanged(x season.Arena) error {
	key, hashes, err := w.cfg.Heats.Key(x, w.draw.Rules)
	if err != nil {
		return fmt.Errorf("arena %s: %w", x.ID, err)
	}
	diff := season.Differences(x.Hashes, hashes)
	if key != x.CompatibilityKey || diff != "" {
		return &Changed{x.ID, x.CompatibilityKey, key, diff}
	}
	return nil
}

// play plays the rounds.
func (w *week) play(ctx context.Context) error {
	d := w.draw
	seater := season.NewSeater(d.DrawSeed)
	for i, stage := range d.Shape {
		x := d.Arenas[d.RoundArenas[i]]
		seating := d.FirstRound
		if i > 0 {
			field := w.out.Rounds[i-1].Field()
			if len(field) != stage.Field {
				return w.short(i, stage, field)
			}
			seating = seater.Seat(stage.Round, field, x.Territories)
		}
		if err := w.begin(i, x, seating); err != nil {
			return err
		}
		if err := w.round(ctx, i, x, seating); err != nil {
			return err
		}
		err := w.save(func() {
			r := &w.out.Rounds[i]
			r.Wildcards = w.rules.Pick(d.DrawSeed, stage, r)
		})
		if err != nil {
			return err
		}
		w.report(Progress{Round: stage.Round, Step: "round over"})
	}
	return w.complete()
}

// begin puts a round into the week, or holds the one that is there against what
// follows from the draw.
func (w *week) begin(i int, x season.Arena, seating season.Seating) error {
	if i >= len(w.out.Rounds) {
		return w.save(func() {
			w.out.Rounds = append(w.out.Rounds, season.Round{Round: i + 1, ArenaID: x.ID, Heats: []season.Heat{}, Byes: seating.Byes, Wildcards: []string{}})
		})
	}
	r := w.out.Rounds[i]
	if r.ArenaID != x.ID || !slices.Equal(r.Byes, seating.Byes) {
		return fmt.Errorf("%s: round %d is of another draw: arena %s and byes %v, not %s and %v", w.store.path(weekFile), i+1, r.ArenaID, r.Byes, x.ID, seating.Byes)
	}
	return nil
}

// round plays the heats of a round that are not over, several at a time.
func (w *week) round(ctx context.Context, i int, x season.Arena, seating season.Seating) error {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	failed := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(errs) > 0 || ctx.Err() != nil
	}
	slots := make(chan struct{}, max(1, w.cfg.Parallel))
	for _, p := range seating.Heats {
		slots <- struct{}{}
		if stopped() {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			if err := w.heat(ctx, i, x, p); err != nil {
				failed(fmt.Errorf("round %d, heat %d: %w", i+1, p.Heat, err))
			}
		})
	}
	group.Wait()
	if len(errs) == 0 && ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// heat plays one heat to its end, its replays included.
func (w *week) heat(ctx context.Context, i int, x season.Arena, p season.Pairing) error {
	done, err := w.recall(i, p)
	if err != nil {
		return err
	}
	h := done
	for {
		if h != nil {
			again, why := w.rules.Replay(w.draw.Rules, append(slices.Clone(h.PriorAttempts), h.Standings))
			if h.Aborted || !again {
				break
			}
			w.report(Progress{Round: i + 1, Heat: p.Heat, Attempt: h.Attempts + 1, Step: "replay", Why: why, Winner: deref(h.Winner)})
		}
		next, err := w.attempt(ctx, i, x, p, h)
		if err != nil {
			return err
		}
		if err := w.store.putJournal(i+1, next); err != nil {
			return err
		}
		h = next
	}
	if err := w.save(func() { w.enter(i, *h) }); err != nil {
		return err
	}
	winner := ""
	if h.Winner != nil {
		winner = *h.Winner
	}
	w.report(Progress{Round: i + 1, Heat: p.Heat, Attempt: h.Attempts, Step: "over", Dir: w.store.path(h.Output), Winner: winner})
	if h.Aborted {
		return ErrAborted
	}
	return nil
}

// recall finds what has been written down of a heat: its journal, or the week of
// a folder whose journals are gone. Both must be of these seats and agree.
func (w *week) recall(i int, p season.Pairing) (*season.Heat, error) {
	h, err := w.store.journal(i+1, p.Heat)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, was := range w.out.Rounds[i].Heats {
		if was.Heat != p.Heat {
			continue
		}
		if h != nil && !same(h, &was) {
			return nil, fmt.Errorf("%s and %s do not agree; keep the true one and remove the other", w.store.path(journalFile(i+1, p.Heat)), weekFile)
		}
		h = &was
	}
	if h != nil && !mapsEqual(h.Seats, p.Seats) {
		return nil, fmt.Errorf("%s seats %v, the draw %v", w.store.path(journalFile(i+1, p.Heat)), h.Seats, p.Seats)
	}
	return h, nil
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// attempt runs the attempt after h, which is nil before the first.
func (w *week) attempt(ctx context.Context, i int, x season.Arena, p season.Pairing, h *season.Heat) (*season.Heat, error) {
	next := &season.Heat{Heat: p.Heat, Attempts: 1, Seats: p.Seats, PriorAttempts: [][]season.Seat{}}
	if h != nil {
		next.Attempts = h.Attempts + 1
		next.PriorAttempts = append(slices.Clone(h.PriorAttempts), h.Standings)
	}
	next.Output = season.Folder(i+1, p.Heat, next.Attempts)
	o := Order{Arena: x, Round: i + 1, Heat: p.Heat, Attempt: next.Attempts, Rules: w.draw.Rules, Dir: w.store.path(next.Output),
		Seats: map[string]season.Entrant{}}
	for t, id := range p.Seats {
		o.Seats[t] = w.fleet[id]
	}
	step := Progress{Round: i + 1, Heat: p.Heat, Attempt: next.Attempts, Dir: o.Dir}
	say := func(s string) { step.Step = s; w.report(step) }

	res, finished, err := w.left(o.Dir)
	if err != nil {
		return nil, err
	}
	if finished {
		say("adopted")
	} else {
		if err := w.unchanged(x); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(o.Dir); err == nil {
			if err := w.store.setAside(next.Output); err != nil {
				return nil, err
			}
			say("interrupted")
		}
		if err := os.MkdirAll(w.store.path(fmt.Sprintf("round-%02d", i+1)), 0o755); err != nil {
			return nil, err
		}
		o.Seed = season.HeatSeed(w.secret, w.digest, i+1, p.Heat, next.Attempts, w.store.interrupted(next.Output))
		say("starts")
		rerr := w.cfg.Heats.Run(ctx, o)
		if res, finished, err = w.cfg.Heats.Result(o.Dir); err != nil || !finished {
			return nil, errors.Join(rerr, err, unfinished(finished))
		}
	}
	if len(res.Ends) != len(p.Seats) {
		return nil, fmt.Errorf("%s is the recording of %d seats, not of %d", o.Dir, len(res.Ends), len(p.Seats))
	}
	for _, e := range res.Ends {
		if _, ok := p.Seats[e.Territory]; !ok {
			return nil, fmt.Errorf("%s is the recording of another heat: it has the territory %s", o.Dir, e.Territory)
		}
	}
	next.Standings = w.rules.Standings(p.Seats, res.Ends)
	next.Aborted = res.Aborted
	if !res.Aborted {
		next.Winner = season.Winner(next.Standings, res.Winner, i == len(w.draw.Shape)-1)
	}
	return next, nil
}

// left is what an earlier run left of an attempt.
func (w *week) left(dir string) (season.Attempt, bool, error) {
	if _, err := os.Lstat(dir); err != nil {
		return season.Attempt{}, false, nil
	}
	res, finished, err := w.cfg.Heats.Result(dir)
	if err != nil {
		return res, false, nil // what cannot be read is set aside, not lost
	}
	return res, finished, nil
}

func unfinished(finished bool) error {
	if finished {
		return nil
	}
	return errors.New("the heat did not finish; run the week again to go on")
}

// enter puts a heat's result into its round, in order. Call it inside save.
func (w *week) enter(i int, h season.Heat) {
	r := &w.out.Rounds[i]
	at, found := slices.BinarySearchFunc(r.Heats, h.Heat, func(x season.Heat, n int) int { return x.Heat - n })
	if !found {
		r.Heats = slices.Insert(r.Heats, at, h)
	}
}

// save changes the week and checkpoints it.
func (w *week) save(change func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.out.Standings = season.Tally(w.out.Rounds, w.draw.Fleet)
	data, err := w.out.JSON()
	if err != nil {
		return err
	}
	return w.store.put(weekFile, data)
}

// short ends a week whose field is not what the bracket asks for (seasons
// reference, section 1.6).
func (w *week) short(i int, stage season.Stage, field []string) error {
	if slices.ContainsFunc(w.out.Rounds[i-1].Heats, func(h season.Heat) bool { return h.Drawn() }) {
		return w.complete()
	}
	return fmt.Errorf("round %d cannot be seated: %d go on and the bracket asks for %d, since too many forfeited", stage.Round, len(field), stage.Field)
}

func (w *week) complete() error {
	err := w.save(func() {
		w.out.Completed = true
		w.out.VariationSeed = &w.secret
		w.out.Champion = season.ChampionOf(w.draw.Shape, w.out.Rounds)
	})
	if err == nil {
		p := Progress{Step: "complete"}
		if w.out.Champion != nil {
			p.Winner = *w.out.Champion
		}
		w.report(p)
	}
	return err
}

func (w *week) report(p Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cfg.Report(p)
}
