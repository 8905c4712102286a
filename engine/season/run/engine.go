package run

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/fleet"
	"refbox/engine/heat"
	"refbox/engine/probe"
	"refbox/engine/season"
	"refbox/engine/season/provenance"
	"refbox/vm"
)

// Engine runs attempts as whole heats on machines.
type Engine struct {
	Driver  vm.Driver
	Runtime string // as heat.Config.Runtime
	Disks   string // as heat.Config.Disks
	Players agent.Registry
	// Fleet says how entrants are played that are no scripts of the arenas, by their
	// ids; nil for none.
	Fleet   *fleet.Fleet
	Version string
	// Progress hears of set-ups, by the attempt's folder; may be nil.
	Progress func(dir string, p heat.Progress)
}

var _ Heats = (*Engine)(nil)

// Arenas loads the arenas of a season's manifest as they are drawn. An arena is
// a path, as in the reference, or else the id of a bundled one. With the rules of
// the reference the keys are in its form.
func Arenas(m *season.Manifest, reference bool) ([]season.Arena, error) {
	var out []season.Arena
	var errs []error
	for i, name := range m.Arenas {
		if slices.Contains(arena.Bundled(), m.ArenaNames[i]) {
			name = m.ArenaNames[i]
		}
		x := season.Arena{Manifest: name}
		pkg, err := prepared(x, m.Rules)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		x.ID = pkg.Manifest.Arena.ID
		for _, t := range pkg.Manifest.Territories {
			x.Territories = append(x.Territories, t.ID)
		}
		if reference {
			x.CompatibilityKey, err = provenance.ReferenceKey(name)
		} else if x.CompatibilityKey, err = heat.Key(pkg); err == nil {
			x.Hashes, err = heat.Parts(pkg)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("arena %s: %w", name, err))
			continue
		}
		out = append(out, x)
	}
	return out, errors.Join(errs...)
}

// prepared loads an arena and raises its machines to the season's memory.
func prepared(x season.Arena, rules season.Rules) (*arena.Package, error) {
	pkg, err := arena.Load(x.Manifest)
	if err != nil {
		return nil, err
	}
	p, m := *pkg, *pkg.Manifest
	p.Manifest = &m
	if rules.MemoryMiB == nil {
		return &p, nil
	}
	least := uint64(*rules.MemoryMiB)
	m.Classes = slices.Clone(m.Classes)
	for i := range m.Classes {
		m.Classes[i].Resources.MemoryMiB = max(m.Classes[i].Resources.MemoryMiB, least)
	}
	m.Territories = slices.Clone(m.Territories)
	for i := range m.Territories {
		t := &m.Territories[i]
		t.Machines = slices.Clone(t.Machines)
		for j := range t.Machines {
			if r := t.Machines[j].Resources; r != nil {
				raised := *r
				raised.MemoryMiB = max(raised.MemoryMiB, least)
				t.Machines[j].Resources = &raised
			}
		}
	}
	return &p, nil
}

// Key is what the arena's key and parts are now, in the draw's form.
func (e *Engine) Key(x season.Arena, rules season.Rules) (string, map[string]string, error) {
	return Key(x, rules)
}

// Key recomputes a drawn arena's key, in the form that it was drawn in.
func Key(x season.Arena, rules season.Rules) (string, map[string]string, error) {
	if x.Hashes == nil {
		if _, err := provenance.Recognise(x.CompatibilityKey, "", provenance.Spellings(x.Manifest)...); err == nil {
			return x.CompatibilityKey, nil, nil // in whichever form it was made
		}
		key, err := provenance.ReferenceKey(x.Manifest)
		return key, nil, err
	}
	pkg, err := prepared(x, rules)
	if err != nil {
		return "", nil, err
	}
	if len(x.Hashes) > 0 && x.Hashes["engine"] == "" { // drawn under an earlier form
		hashes, err := pkg.Hashes()
		if err != nil {
			return "", nil, err
		}
		key, err := heat.KeyBefore(pkg)
		return key, hashes, err
	}
	hashes, err := heat.Parts(pkg)
	if err != nil {
		return "", nil, err
	}
	key, err := heat.Key(pkg)
	return key, hashes, err
}

// Run runs the attempt as a heat. An entrant whose adapter cannot be run here is
// an error: a season never seats a stand-in.
func (e *Engine) Run(ctx context.Context, o Order) error {
	pkg, err := prepared(o.Arena, o.Rules)
	if err != nil {
		return err
	}
	if err := e.enter(pkg, o.Seats); err != nil {
		return err
	}
	players := maps.Clone(e.Players)
	var budgets map[string]agent.Budget
	if part, err := e.part(o.Seats); err != nil {
		return err
	} else if part != nil {
		seated, err := part.Seat(pkg)
		if err != nil {
			return err
		}
		pkg, budgets = seated.Package, seated.Budgets
		if players == nil {
			players = agent.Registry{}
		}
		maps.Copy(players, seated.Players)
	}
	var secret probe.Secret
	if n, err := hex.Decode(secret[:], []byte(o.Seed)); err != nil || n != len(secret) {
		return fmt.Errorf("the heat's seed is not 64 hex digits")
	}
	cfg := heat.Config{Package: pkg, Driver: e.Driver, Dir: o.Dir, Runtime: e.Runtime, Disks: e.Disks, Players: players, Budgets: budgets,
		Version: e.Version, Secret: &secret}
	if e.Progress != nil {
		cfg.Progress = func(p heat.Progress) { e.Progress(o.Dir, p) }
	}
	_, err = heat.New(cfg).Run(ctx)
	return err
}

// Result reads an attempt's recording.
func (e *Engine) Result(dir string) (season.Attempt, bool, error) {
	return Recorded(context.Background(), dir)
}

// part is the fleet's part of a heat; nil when none of it plays.
func (e *Engine) part(seats map[string]season.Entrant) (*fleet.Fleet, error) {
	at := map[string]string{}
	for t, en := range seats {
		if e.plays(en.ID) {
			at[t] = en.ID
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	return e.Fleet.Part(at)
}

func (e *Engine) plays(id string) bool { return e.Fleet != nil && e.Fleet.Has(id) }

// Enlist takes the fleet's players that entered a draw, and holds each against
// what was drawn: the model, the effort, and the adapter where the draw names one of
// a fleet's. Persons are refused: a season has no screen.
func (e *Engine) Enlist(d *season.Draw, f *fleet.Fleet) error {
	var errs []error
	f.Players = slices.DeleteFunc(f.Players, func(p fleet.Player) bool {
		i := slices.IndexFunc(d.Fleet, func(en season.Entrant) bool { return en.ID == p.ID })
		if i < 0 {
			return true // of the pool, and not drawn
		}
		en := d.Fleet[i]
		fail := func(what, drawn, is string) {
			errs = append(errs, fmt.Errorf("%s: player %s: the draw has the %s %s, the file %s", f.File, p.ID, what, drawn, is))
		}
		if p.Model != "" && p.Model != en.Model {
			fail("model", en.Model, p.Model)
		}
		if p.ReasoningEffort != "" && p.ReasoningEffort != en.ReasoningEffort {
			fail("effort", en.ReasoningEffort, p.ReasoningEffort)
		}
		if slices.Contains([]string{fleet.Script, fleet.Command, fleet.AOE, fleet.LLM}, en.Adapter) && p.Adapter != en.Adapter {
			fail("adapter", en.Adapter, p.Adapter)
		}
		if p.Adapter == fleet.Human {
			errs = append(errs, fmt.Errorf("%s: player %s: a person takes the screen, and a season has none", f.File, p.ID))
		}
		return false
	})
	if len(f.Players) == 0 {
		errs = append(errs, fmt.Errorf("%s: none of its players entered the week; players are matched with entrants by id", f.File))
	}
	e.Fleet = f
	return errors.Join(errs...)
}

// Memory is what the machines of the largest heat of a draw take, in MiB.
func Memory(d *season.Draw) (uint64, error) {
	var most uint64
	for _, x := range d.Arenas {
		pkg, err := prepared(x, d.Rules)
		if err != nil {
			return 0, err
		}
		var sum uint64
		for _, t := range pkg.Manifest.Territories {
			spec, err := pkg.Spec(t.ID)
			if err != nil {
				return 0, err
			}
			for _, m := range spec.Machines {
				sum += uint64(m.MemoryMiB)
			}
		}
		most = max(most, sum)
	}
	return most, nil
}

// Check says whether every entrant can be seated in every arena, before a week is
// begun.
func (e *Engine) Check(d *season.Draw) error {
	var errs []error
	for _, x := range d.Arenas {
		pkg, err := prepared(x, d.Rules)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(pkg.Manifest.Territories) == 0 {
			continue
		}
		for _, en := range d.Fleet {
			if _, err := e.seat(pkg, pkg.Manifest.Territories[0].ID, en); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// enter puts the entrants in the place of the arena's own agents, of whom only
// the budgets stay (seasons reference, section 1.1).
func (e *Engine) enter(pkg *arena.Package, seats map[string]season.Entrant) error {
	var agents []arena.Agent
	for _, t := range slices.Sorted(maps.Keys(seats)) {
		a, err := e.seat(pkg, t, seats[t])
		if err != nil {
			return err
		}
		agents = append(agents, a)
	}
	pkg.Manifest.Agents = agents
	return nil
}

func (e *Engine) seat(pkg *arena.Package, territory string, en season.Entrant) (arena.Agent, error) {
	a := arena.Agent{ID: en.ID, Territory: territory, Adapter: en.Adapter, Model: en.Model, ReasoningEffort: en.ReasoningEffort}
	template, ok := pkg.Manifest.AgentOf(territory)
	if !ok && len(pkg.Manifest.Agents) > 0 {
		template = pkg.Manifest.Agents[0]
	}
	a.Budget = template.Budget
	if e.plays(en.ID) {
		return a, nil
	}
	if en.Script != "" {
		a.Script = &en.Script
		return a, nil
	}
	if en.Adapter == arena.AdapterScript {
		script := path.Clean("players/" + strings.TrimSuffix(en.Model, ".sh") + ".sh")
		if !fs.ValidPath(script) || !strings.HasPrefix(script, "players/") {
			return a, fmt.Errorf("entrant %s: %q is not the name of a script", en.ID, en.Model)
		}
		if _, err := fs.Stat(pkg.FS, script); err != nil {
			return a, fmt.Errorf("entrant %s: arena %s has no %s for it to play", en.ID, pkg.Manifest.Arena.ID, script)
		}
		a.Script = &script
		return a, nil
	}
	name, _, _ := strings.Cut(en.Adapter, ":")
	if _, ok := e.Players[name]; !ok {
		return a, fmt.Errorf("entrant %s: the adapter %s has no command here; say how it is played: --players FILE", en.ID, en.Adapter)
	}
	return a, nil
}
