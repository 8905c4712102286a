// Package fleet reads a fleet file: who sits where in a heat, with which adapter,
// model and limits. It hides how players are configured, and where keys come from.
//
// Guarantees:
//
//   - A file that is read has been checked as far as the host is not needed;
//     errors name the file and the key.
//   - A key is named, never written, in a fleet file. Players takes keys out of
//     this process's environment, so that nothing that it starts inherits one that
//     is not meant for it.
package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"refbox/engine/agent"
	"refbox/engine/agent/llm"
	"refbox/engine/arena"
	"refbox/engine/bounded"
	"refbox/engine/text"
)

// Fleet is a fleet file.
type Fleet struct {
	File    string
	Players []Player
	Version string // of refbox, for transcripts

	opening sync.Mutex
	secrets map[string]map[string]string // by player, once they have been read
}

// Adapters that a fleet file may name.
const (
	Script  = "script"
	Command = "command" // any program
	AOE     = "aoe"     // a program that keeps the reference's contract
	LLM     = "llm"
	Human   = "human" // whoever sits at the screen
)

// Player is one player, and where it sits.
type Player struct {
	ID              string   `toml:"id"`
	Territory       string   `toml:"territory"` // "" for the next free seat
	Adapter         string   `toml:"adapter"`
	Model           string   `toml:"model"`
	ReasoningEffort string   `toml:"reasoning_effort"`
	Script          string   `toml:"script"`   // script: a player of the arena's, or a file
	Command         []string `toml:"command"`  // command, aoe: the program and its arguments
	Env             []string `toml:"env"`      // command, aoe: variables that it needs, such as its API key
	Endpoint        string   `toml:"endpoint"` // llm: the API's base
	KeyEnv          string   `toml:"key_env"`  // llm: the variable that holds the key
	KeyFile         string   `toml:"key_file"` // llm: or the file, mode 0600
	MaxTokens       int      `toml:"max_tokens"`
	Prices          *Prices  `toml:"prices"` // llm: where the endpoint does not tell costs
	Limits          Limits   `toml:"limits"`
}

// Prices are micro-dollars for a million tokens.
type Prices struct {
	Input  uint64  `toml:"input"`
	Output uint64  `toml:"output"`
	Cached *uint64 `toml:"cached"`
}

// Limits end a player; 0 and nil for none, or for the arena's.
type Limits struct {
	Turns         uint64  `toml:"turns"`
	Tokens        uint64  `toml:"tokens"`
	CostMicroUSD  *uint64 `toml:"cost_microusd"`
	ResourceUnits uint64  `toml:"resource_units"`
	Time          string  `toml:"time"`
}

const maxFile = 1 << 20

var (
	idShape  = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	notID    = regexp.MustCompile(`[^a-z0-9-]+`)
	envShape = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Load reads a fleet file. Paths in it are relative to its folder.
func Load(file string) (*Fleet, error) {
	data, err := bounded.File(file, maxFile)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// Parse is Load for what has been read.
func Parse(file string, data []byte) (*Fleet, error) {
	var f struct {
		SchemaVersion int      `toml:"schema_version"`
		Players       []Player `toml:"players"`
	}
	meta, err := toml.Decode(string(data), &f)
	if err != nil {
		var bad toml.ParseError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%s:%d: %s", file, bad.Position.Line, text.Line(bad.Message))
		}
		return nil, fmt.Errorf("%s: %s", file, text.Line(err.Error()))
	}
	var all []error
	fail := func(format string, a ...any) {
		all = append(all, fmt.Errorf("%s: "+format, append([]any{file}, a...)...))
	}
	for _, k := range meta.Undecoded() {
		fail("the key %s is not known", text.Line(k.String()))
	}
	if f.SchemaVersion != 1 {
		fail("schema_version must be 1")
	}
	if len(f.Players) == 0 {
		fail("it names no players; add a [[players]] table")
	}
	ids, seats := map[string]bool{}, map[string]bool{}
	for i := range f.Players {
		p := &f.Players[i]
		at := fmt.Sprintf("players[%d]", i)
		if idShape.MatchString(p.ID) {
			at = fmt.Sprintf("player %s", p.ID)
		} else {
			fail("%s: id must be of a-z, 0-9 and -, not %q", at, text.Line(p.ID))
		}
		if ids[p.ID] {
			fail("%s: another player has this id", at)
		}
		if p.Territory != "" && seats[p.Territory] {
			fail("%s: another player sits at %s", at, text.Line(p.Territory))
		}
		ids[p.ID], seats[p.Territory] = true, true
		for _, why := range p.check() {
			fail("%s: %s", at, why)
		}
		p.rooted(filepath.Dir(file))
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	return &Fleet{File: file, Players: f.Players}, nil
}

// check says what is wrong with a player by itself.
func (p *Player) check() (all []string) {
	fail := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	only := func(key string, set bool, adapters ...string) {
		if set && !slices.Contains(adapters, p.Adapter) {
			fail("%s is only for adapter %s", key, strings.Join(adapters, " and "))
		}
	}
	only("script", p.Script != "", Script)
	only("command", len(p.Command) > 0, Command, AOE)
	only("env", len(p.Env) > 0, Command, AOE)
	only("endpoint", p.Endpoint != "", LLM)
	only("key_env", p.KeyEnv != "", LLM)
	only("key_file", p.KeyFile != "", LLM)
	only("prices", p.Prices != nil, LLM)
	only("max_tokens", p.MaxTokens != 0, LLM)
	switch p.Adapter {
	case Script:
		if p.Script == "" {
			fail("script: name a player of the arena's, or a file with a slash in its path")
		}
	case Command, AOE:
		if len(p.Command) == 0 || p.Command[0] == "" {
			fail(`command: name the program and its arguments, such as ["claude", "-p"]`)
		}
		for _, e := range p.Env {
			if !envShape.MatchString(e) {
				fail("env: names of variables are listed, without values")
			}
		}
	case LLM:
		if err := (llm.Config{Endpoint: p.Endpoint, Model: p.Model}).Check(); err != nil {
			fail("%v", err)
		}
		if p.KeyEnv != "" && p.KeyFile != "" {
			fail("key_env and key_file are both set; one is enough")
		}
		if p.KeyEnv != "" && !envShape.MatchString(p.KeyEnv) {
			fail("key_env: it names the variable that holds the key; the key itself does not belong here")
		}
		if p.MaxTokens < 0 {
			fail("max_tokens is less than 0")
		}
	case Human:
		if p.Limits.Turns > 0 || p.Limits.Tokens > 0 || p.Limits.CostMicroUSD != nil || p.Limits.ResourceUnits > 0 {
			fail("limits: of a person only the time can be limited")
		}
	default:
		fail("adapter must be script, command, aoe, llm or human, not %q", text.Line(p.Adapter))
	}
	if _, err := p.Limits.time(); err != nil {
		fail("limits.time: %v", err)
	}
	return all
}

func (l Limits) time() (time.Duration, error) {
	if l.Time == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(l.Time)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a time such as 10m", text.Line(l.Time))
	}
	return d, nil
}

// rooted makes the paths of a player independent of where refbox runs.
func (p *Player) rooted(dir string) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		abs, err := filepath.Abs(filepath.Join(dir, path))
		if err != nil {
			return path
		}
		return abs
	}
	if strings.Contains(p.Script, "/") {
		p.Script = at(p.Script)
	}
	if p.KeyFile != "" {
		p.KeyFile = at(p.KeyFile)
	}
	if len(p.Command) > 0 && strings.Contains(p.Command[0], "/") {
		p.Command[0] = at(p.Command[0])
	}
	// A player's program runs in a folder of its own, where a relative path means nothing.
	for i, arg := range p.Command[min(1, len(p.Command)):] {
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
			if _, err := os.Stat(at(arg)); err == nil {
				p.Command[i+1] = at(arg)
			}
		}
	}
}

// Budget is what the player may use up, where the arena gives base.
func (p Player) Budget(base arena.Budget) agent.Budget {
	t, _ := p.Limits.time() // it was checked when it was read
	b := agent.Budget{ResourceUnits: base.ResourceUnits, MaxCostMicroUSD: base.MaxCostMicroUSD, Turns: p.Limits.Turns, Tokens: p.Limits.Tokens, Time: t}
	if p.Limits.ResourceUnits > 0 {
		b.ResourceUnits = p.Limits.ResourceUnits
	}
	if p.Limits.CostMicroUSD != nil {
		b.MaxCostMicroUSD = p.Limits.CostMicroUSD
	}
	return b
}

// spec is the player as a heat's registry knows it.
func (p Player) spec() string { return p.Adapter + ":" + p.ID }

// Seated is a fleet at an arena's seats.
type Seated struct {
	Package *arena.Package          // with the fleet's players for agents
	Players agent.Registry          // what plays them
	Budgets map[string]agent.Budget // by agent
	Secrets agent.Secrets           // every key of the fleet's
	Persons []string                // territories that persons play, in the fleet's order
}

// OfPerson is the fleet of a person who takes a seat, "" for the first; the arena's
// players keep the others.
func OfPerson(name, territory string) *Fleet {
	id := strings.Trim(notID.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if id = id[:min(len(id), 64)]; id == "" {
		id = "person"
	}
	return &Fleet{File: "the person's seat", Players: []Player{{ID: id, Territory: territory, Adapter: Human}}}
}

// OfScript is the fleet of a script at a seat: a player of the arena's, or a file with a
// slash in its path.
func OfScript(name, script, territory string) *Fleet {
	f := OfPerson(name, territory)
	f.File = "the script " + name
	f.Players[0].Adapter, f.Players[0].Script = Script, script
	return f
}

// Persons are the players that are people, by id.
func (f *Fleet) Persons() (ids []string) {
	for _, p := range f.Players {
		if p.Adapter == Human {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Seat puts the players on an arena's seats: those that name a territory there,
// the others in order on what is left; seats that are left then keep the arena's
// players. The first call reads the keys and takes them out of the environment; as
// many heats as there are may be seated.
func (f *Fleet) Seat(pkg *arena.Package) (*Seated, error) {
	p, m := *pkg, *pkg.Manifest
	m.Agents = slices.Clone(m.Agents)
	p.Manifest = &m
	at, err := f.places(&m)
	if err != nil {
		return nil, err
	}
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	out := &Seated{Package: &p, Players: agent.Registry{}, Budgets: map[string]agent.Budget{}}
	made := map[string]agent.Player{}
	var words []string
	for i, pl := range f.Players {
		a := &m.Agents[at[i]]
		budget := pl.Budget(a.Budget)
		a.Budget.ResourceUnits, a.Budget.MaxCostMicroUSD = budget.ResourceUnits, budget.MaxCostMicroUSD
		a.ID, a.Adapter, a.Model, a.Script = pl.ID, pl.spec(), pl.model(), nil
		a.ReasoningEffort = "default"
		if pl.ReasoningEffort != "" {
			a.ReasoningEffort = pl.ReasoningEffort
		}
		out.Budgets[pl.ID] = budget
		player, err := pl.player(&p, keys[pl.ID], f.Version)
		if err != nil {
			return nil, fmt.Errorf("%s: player %s: %w", f.File, pl.ID, err)
		}
		made[pl.spec()] = player
		if pl.Adapter == Human {
			out.Persons = append(out.Persons, a.Territory)
		}
		for _, v := range keys[pl.ID] {
			words = append(words, v)
		}
		name := pl.Adapter
		out.Players[name] = func(id string) (agent.Player, error) {
			if player, ok := made[name+":"+id]; ok {
				return player, nil
			}
			return nil, fmt.Errorf("the fleet has no player %q", id)
		}
	}
	out.Secrets = agent.NewSecrets(words...)
	return out, nil
}

// places is the index of each player's agent in the manifest.
func (f *Fleet) places(m *arena.Manifest) ([]int, error) {
	at := make([]int, len(f.Players))
	taken := map[int]bool{}
	for i, p := range f.Players {
		at[i] = -1
		if p.Territory == "" {
			continue
		}
		n := slices.IndexFunc(m.Agents, func(a arena.Agent) bool { return a.Territory == p.Territory })
		if n < 0 {
			var known []string
			for _, t := range m.Territories {
				known = append(known, t.ID)
			}
			return nil, fmt.Errorf("%s: player %s: arena %s has no territory %q; it has %s", f.File, p.ID, m.Arena.ID, text.Line(p.Territory), strings.Join(known, ", "))
		}
		at[i], taken[n] = n, true
	}
	for i, p := range f.Players {
		if at[i] >= 0 {
			continue
		}
		for _, t := range m.Territories {
			n := slices.IndexFunc(m.Agents, func(a arena.Agent) bool { return a.Territory == t.ID })
			if n >= 0 && !taken[n] {
				at[i], taken[n] = n, true
				break
			}
		}
		if at[i] < 0 {
			return nil, fmt.Errorf("%s: player %s: arena %s has %s, which are taken", f.File, p.ID, m.Arena.ID, text.Count(len(m.Territories), "seat"))
		}
	}
	for n, a := range m.Agents {
		if !taken[n] && slices.ContainsFunc(f.Players, func(p Player) bool { return p.ID == a.ID }) {
			return nil, fmt.Errorf("%s: player %s: the arena's own player at %s has this id; choose another", f.File, a.ID, a.Territory)
		}
	}
	return at, nil
}

// model is what the log calls the player's model.
func (p Player) model() string {
	switch {
	case p.Model != "":
		return p.Model
	case p.Adapter == Script, p.Adapter == Human:
		return p.Adapter
	}
	return filepath.Base(p.Command[0])
}

// player makes what plays.
func (p Player) player(pkg *arena.Package, keys map[string]string, version string) (agent.Player, error) {
	switch p.Adapter {
	case Script:
		s, err := p.script(pkg)
		if err != nil {
			return nil, err
		}
		return agent.ScriptPlayer(s), nil
	case LLM:
		return llm.Player(p.llm(keys, version)), nil
	case Human:
		return agent.HumanPlayer(), nil
	}
	c := agent.Command{Argv: p.Command, Env: keys, Strict: p.Adapter == AOE}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return agent.CommandPlayer(c), nil
}

func (p Player) llm(keys map[string]string, version string) llm.Config {
	c := llm.Config{Endpoint: p.Endpoint, Model: p.Model, Effort: p.ReasoningEffort, MaxTokens: p.MaxTokens, Version: version}
	for _, k := range keys {
		c.Key = k
	}
	if p.Prices != nil {
		c.Prices = &llm.Prices{Input: p.Prices.Input, Output: p.Prices.Output, Cached: p.Prices.Cached}
	}
	return c
}

func (p Player) script(pkg *arena.Package) (*agent.Script, error) {
	if strings.Contains(p.Script, "/") {
		data, err := bounded.File(p.Script, maxFile)
		if err != nil {
			return nil, err
		}
		return agent.ParseScript(p.Script, data)
	}
	file := "players/" + p.Script + ".sh"
	data, err := fs.ReadFile(pkg.FS, file)
	if err != nil {
		return nil, fmt.Errorf("arena %s has no player %q; a script of your own has a slash in its path", pkg.Manifest.Arena.ID, text.Line(p.Script))
	}
	return agent.ParseScript(file, data)
}
