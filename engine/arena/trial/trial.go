// Package trial tries an arena itself: it seats the package's right and wrong
// players, and its cheats, in heats of their own, and holds what came of each to
// what the package says must.
//
// It hides how players become seats, how many of them a heat takes, and how a
// recording is judged. What is judged is read from the recording alone.
package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"refbox/engine/arena"
	"refbox/engine/heat"
	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/vm"
)

// MostSeats is how many players one heat takes: what heats are made for.
const MostSeats = 8

// Config says what is tried, and with what.
type Config struct {
	Package *arena.Package
	Driver  vm.Driver
	Dir     string // a folder for the heats' recordings, each in a folder of its own
	Runtime string // as a heat's
	Disks   string // as a heat's
	Version string
	Seats   int      // at once, at most; 0 is MostSeats
	Only    []string // names of players or cheats; none: all
	Cheats  bool     // try the cheats, not the players
	Cold    bool
	// Begun hears of each heat before it starts; nil hears nothing.
	Begun func(Heat)
	// Progress is a heat's; nil hears nothing.
	Progress func(heat.Progress)
}

// Report is what came of a trial.
type Report struct {
	Arena string `json:"arena"`
	Held  bool   `json:"held"` // every player ended as the package says
	// TimeoutFactor is by what timeouts were stretched, as match.json has it.
	TimeoutFactor string   `json:"timeout_factor,omitempty"`
	Heats         []Heat   `json:"heats"`
	Players       []Player `json:"players"`
}

// Heat is one heat of a trial.
type Heat struct {
	Dir       string   `json:"dir"`
	Players   []string `json:"players"`
	Reference bool     `json:"reference"` // with the package's reference checks
	Seconds   float64  `json:"seconds"`
	Reason    string   `json:"reason"` // why it ended
}

// Player is what came of one player or cheat.
type Player struct {
	Name   string `json:"name"`
	Script string `json:"script"`
	Class  string `json:"class,omitempty"` // of a cheat
	Want   string `json:"want"`            // "durable", or the milestone to lose at
	Got    string `json:"got"`             // "durable", "unavailable", or the open milestones
	Held   bool   `json:"held"`
	// Why is what is not as it should be; "" when Held.
	Why    string   `json:"why,omitempty"`
	Passed []string `json:"passed"`
	// Refused is the last failure of the milestone to lose at; of the first open one,
	// Lost, for a player that should have been durable.
	Refused *Refusal `json:"refused,omitempty"`
	Lost    string   `json:"lost,omitempty"`
	Ended   string   `json:"ended"` // how its script ended
	// Beat says that a cheat passed the reference check; nil where it was not tried.
	Beat *bool  `json:"beat,omitempty"`
	Dir  string `json:"dir"` // of the heat
}

// Refusal is why a milestone was refused.
type Refusal struct {
	Category string `json:"category"`
	Source   string `json:"source"`
	Detail   string `json:"detail"`
	Times    uint64 `json:"times"`
	Record   string `json:"record,omitempty"` // in the heat's folder
}

// Check says what keeps a package from being tried; nil for nothing.
func Check(p *arena.Package) error {
	right, wrong := 0, 0
	for _, t := range p.Manifest.Players {
		if t.Right() {
			right++
		} else {
			wrong++
		}
	}
	if right == 0 || wrong == 0 {
		return fmt.Errorf("%s: the package names %d right and %d wrong players: it takes one of each, e.g. [[players]] name = \"right\", script = \"players/right.sh\", result = \"durable\"", p.File, right, wrong)
	}
	if p.Manifest.Build != nil {
		return nil
	}
	for _, t := range p.Manifest.Territories {
		if !slices.ContainsFunc(p.Manifest.Players, func(x arena.Trial) bool { return x.Right() && x.Territory == t.ID }) {
			return fmt.Errorf("%s: the package names no right player of territory %s under [[players]]", p.File, t.ID)
		}
	}
	return nil
}

// ErrNobody is of a name in Config.Only that no player, or cheat, of the package has.
var ErrNobody = errors.New("the package names no such player")

// seated is one player of a heat, with what must come of it.
type seated struct {
	arena.Trial
	refusal, class string
}

// Run tries the package. The error is that of a heat that could not be run; what
// came of the players before it is in the report all the same.
func Run(ctx context.Context, cfg Config) (Report, error) {
	p := cfg.Package
	report := Report{Arena: p.Manifest.Arena.ID, Heats: []Heat{}, Players: []Player{}}
	all, err := cast(p, cfg)
	if err != nil {
		return report, err
	}
	beat := map[string]bool{}
	if cfg.Cheats {
		for _, group := range groups(all, cfg.Seats) {
			_, w, _, err := run(ctx, cfg, &report, next(cfg, &report, "-reference"), group, true)
			if err != nil {
				return report, err
			}
			for _, t := range group {
				beat[t.Name] = passed(w.Seat(t.Name), t.Result)
			}
		}
	}
	report.Held = true
	heats := groups(all, cfg.Seats)
	if p.Manifest.Build == nil {
		heats = fields(p.Manifest, all)
	}
	for _, group := range heats {
		h, w, m, err := run(ctx, cfg, &report, next(cfg, &report, ""), group, false)
		if err != nil {
			report.Held = false
			return report, err
		}
		for _, t := range group {
			got := judge(m, w, t)
			got.Dir = h.Dir
			if b, ok := beat[t.Name]; ok {
				got.Beat = &b
				if !b {
					got.Why = join(got.Why, "it does not pass the reference check of "+t.Result+" either, so it is no cheat")
				}
			}
			got.Held = got.Why == ""
			report.Held = report.Held && got.Held
			report.Players = append(report.Players, got)
		}
	}
	return report, nil
}

func cast(p *arena.Package, cfg Config) ([]seated, error) {
	var all []seated
	if cfg.Cheats {
		for _, c := range p.Manifest.Cheats {
			if p.ReferenceCheck(c.Milestone) == "" {
				return nil, fmt.Errorf("%s: cheat %s: there is no reference/%s.star or .sh, the check that it must beat", p.File, c.Name, c.Milestone)
			}
			all = append(all, seated{arena.Trial{Name: c.Name, Script: c.Script, Result: c.Milestone}, c.Refusal, c.Class})
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: the package names no cheats", p.File)
		}
	} else {
		if err := Check(p); err != nil {
			return nil, err
		}
		for _, t := range p.Manifest.Players {
			all = append(all, seated{Trial: t, refusal: t.Refusal})
		}
	}
	if len(cfg.Only) == 0 {
		return all, nil
	}
	var some []seated
	for _, name := range cfg.Only {
		i := slices.IndexFunc(all, func(t seated) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: %w: %q; there are %s", p.File, ErrNobody, name, strings.Join(names(all), ", "))
		}
		some = append(some, all[i])
	}
	return some, nil
}

// groups spreads players over as few heats as hold them, evenly.
func groups(all []seated, most int) [][]seated {
	if most <= 0 || most > MostSeats {
		most = MostSeats
	}
	n := (len(all) + most - 1) / most
	var out [][]seated
	for i := range n {
		out = append(out, all[i*len(all)/n:(i+1)*len(all)/n])
	}
	return out
}

// Race seats players of the package's, or scripts that the caller laid into its FS,
// in one heat recorded at cfg.Dir, and says what came of each. Only, Cheats and
// Seats are not heeded. The error is that of a heat that could not be run.
func Race(ctx context.Context, cfg Config, players []arena.Trial) ([]Player, Heat, error) {
	var group []seated
	for _, t := range players {
		group = append(group, seated{Trial: t})
	}
	var report Report
	h, w, m, err := run(ctx, cfg, &report, cfg.Dir, group, false)
	if err != nil {
		return nil, h, err
	}
	var out []Player
	for _, t := range group {
		got := judge(m, w, t)
		got.Dir, got.Held = h.Dir, got.Why == ""
		out = append(out, got)
	}
	return out, h, nil
}

// next is the folder of a trial's next heat.
func next(cfg Config, report *Report, suffix string) string {
	return filepath.Join(cfg.Dir, fmt.Sprintf("heat-%d%s", len(report.Heats)+1, suffix))
}

// run runs one heat and gives its last world.
func run(ctx context.Context, cfg Config, report *Report, dir string, group []seated, reference bool) (Heat, *world.World, *arena.Manifest, error) {
	h := Heat{Dir: dir, Reference: reference}
	var players []arena.Trial
	for _, t := range group {
		h.Players = append(h.Players, t.Name)
		players = append(players, t.Trial)
	}
	p, err := cfg.Package.Cast(players, reference)
	if err != nil {
		return h, nil, nil, err
	}
	if cfg.Begun != nil {
		cfg.Begun(h)
	}
	began := time.Now()
	_, err = heat.Run(ctx, heat.Config{Package: p, Driver: cfg.Driver, Dir: h.Dir, Runtime: cfg.Runtime, Disks: cfg.Disks,
		Version: cfg.Version, Cold: cfg.Cold, Thorough: true, Progress: cfg.Progress})
	h.Seconds = time.Since(began).Seconds()
	if err != nil {
		return h, nil, nil, fmt.Errorf("the heat of %s: %w", strings.Join(h.Players, ", "), err)
	}
	rec, err := recording.Open(h.Dir)
	if err == nil {
		defer rec.Close()
		err = rec.Load(ctx)
	}
	if err != nil {
		return h, nil, nil, fmt.Errorf("the heat of %s: %w", strings.Join(h.Players, ", "), err)
	}
	w := rec.World(rec.Len())
	if w.FinishReason != nil {
		h.Reason = *w.FinishReason
	}
	if m := rec.Match(); m != nil {
		report.TimeoutFactor = m.Machines["timeout_factor"]
	}
	report.Heats = append(report.Heats, h)
	if !w.Over() {
		return h, nil, nil, errors.New("the recording of the heat does not say how it ended: " + h.Dir)
	}
	return h, w, p.Manifest, nil
}

func names(all []seated) (out []string) {
	for _, t := range all {
		out = append(out, t.Name)
	}
	return out
}
