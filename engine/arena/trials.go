package arena

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Trial is a scripted player whose result is known, so that the arena itself can
// be tried: a right one that must become durable, a wrong one that must lose.
type Trial struct {
	Name   string `json:"name"`
	Script string `json:"script"` // a file of the package, e.g. players/right.sh
	// Result is Durable, or the milestone that the player must lose at: it gets
	// everything that this depends on, if only until a reboot shows that it does not
	// last, and never it, nor what depends on it.
	//
	// In a conquest it is Standing or Eliminated.
	Result string `json:"result"`
	// Territory is the one that it plays in a conquest, whose seats differ.
	Territory string `json:"territory,omitempty" default:""`
	// Refusal stands in the reason why it loses.
	Refusal string `json:"refusal,omitempty" default:""`
}

// Durable is the result of a right player.
const Durable = "durable"

// Results of a conquest's players: the right ones' territories stand at the end.
const (
	Standing   = "standing"
	Eliminated = "eliminated"
)

// Right says whether it must not lose.
func (t Trial) Right() bool { return t.Result == Durable || t.Result == Standing }

// Cheat is a scripted player that claims a milestone without having reached it.
type Cheat struct {
	Name   string `json:"name"`
	Script string `json:"script"` // a file of the package, e.g. cheats/marker-only.sh
	Class  string `json:"class" enum:"state-written,probe-answered,partial-service,durability-faked,tools-replaced,time-falsified,replayed,referee-obstructed"`
	// Milestone is the one that refuses it, and that the simple check of
	// ReferenceCheck grants it.
	Milestone string `json:"milestone"`
	// Refusal stands in the reason of the refusal: it names the probe or the
	// attack that found the cheat out.
	Refusal string `json:"refusal"`
}

// ReferenceCheck is where a package keeps the check that a milestone would have
// without attacks and witnesses: reference/<milestone>.star, or an executable of
// the verifiers' contract, reference/<milestone>.sh. "" when it has none.
func (p *Package) ReferenceCheck(milestone string) string {
	for _, ext := range []string{".star", ".sh"} {
		if name := "reference/" + milestone + ext; isFile(p.FS, name) {
			return name
		}
	}
	return ""
}

// Cast is the package with these scripts seated, one territory each, in a heat
// that goes on until nothing changes any more. Checked by, instead of the
// package's verifiers, its reference checks where it has them, if reference is
// set. Territories and agents are called as the players, whose names differ.
func (p *Package) Cast(players []Trial, reference bool) (*Package, error) {
	if p.Manifest.Build == nil {
		return p.castConquest(players)
	}
	m, c := *p.Manifest, *p
	build := *m.Build
	build.StopOnFirstDurable = false
	m.Build, m.Territories, m.Agents, m.Players, m.Cheats = &build, nil, nil, nil, nil
	m.Rules.MinimumTerritories = min(m.Rules.MinimumTerritories, uint64(len(players)))
	for _, t := range players {
		if slices.ContainsFunc(m.Territories, func(o Territory) bool { return o.ID == t.Name }) {
			return nil, fmt.Errorf("%s: two players are called %s", p.File, t.Name)
		}
		script := path.Clean(t.Script)
		if _, err := fs.Stat(p.FS, script); err != nil {
			return nil, fmt.Errorf("%s: player %s: the package has no file %s", p.File, t.Name, t.Script)
		}
		// Every seat of a build race has the same task.
		place := p.Manifest.Territories[0]
		place.ID = t.Name
		m.Territories = append(m.Territories, place)
		m.Agents = append(m.Agents, Agent{ID: t.Name, Territory: t.Name, Adapter: AdapterScript, Model: "scripted",
			ReasoningEffort: "default", Budget: Budget{ResourceUnits: 1_000_000}, Script: &script})
	}
	c.Manifest = &m
	if reference {
		c.verifiers = map[string]string{}
		for id, file := range p.verifiers {
			c.verifiers[id] = file
			if name := p.ReferenceCheck(id); name != "" {
				c.verifiers[id] = name
			}
		}
	}
	return &c, nil
}

// castConquest seats a player in each territory of a conquest, whose terms stay as they
// are.
func (p *Package) castConquest(players []Trial) (*Package, error) {
	m, c := *p.Manifest, *p
	m.Agents, m.Players = nil, nil
	for _, t := range p.Manifest.Territories {
		i := slices.IndexFunc(players, func(x Trial) bool { return x.Territory == t.ID })
		if i < 0 {
			return nil, fmt.Errorf("%s: nobody plays territory %s", p.File, t.ID)
		}
		script := path.Clean(players[i].Script)
		if _, err := fs.Stat(p.FS, script); err != nil {
			return nil, fmt.Errorf("%s: player %s: the package has no file %s", p.File, players[i].Name, players[i].Script)
		}
		own, _ := p.Manifest.AgentOf(t.ID)
		m.Agents = append(m.Agents, Agent{ID: players[i].Name, Territory: t.ID, Adapter: AdapterScript, Model: "scripted",
			ReasoningEffort: "default", Budget: own.Budget, Script: &script})
	}
	c.Manifest = &m
	return &c, nil
}

// trials checks the players and cheats of the manifest.
func (c *checker) trials() {
	names := map[string]bool{}
	c.failIf(len(c.m.Players) > maxItems, "players", "must be at most %d", maxItems)
	for i, t := range c.m.Players {
		at := fmt.Sprintf("players[%d]", i)
		c.id(at+".name", t.Name, names)
		c.failIf(!local(t.Script), at+".script", "%s must be a file inside the package", quote(t.Script))
		if c.m.Build == nil {
			_, ok := c.m.Territory(t.Territory)
			c.failIf(!ok, at+".territory", "no territory is called %s: in a conquest a player has its own", quote(t.Territory))
			c.failIf(t.Result != Standing && t.Result != Eliminated, at+".result", "%s is neither \"standing\" nor \"eliminated\"", quote(t.Result))
			c.failIf(t.Result == Eliminated && blank(t.Refusal), at+".refusal", notBlank+": it says what it is eliminated for")
			continue
		}
		c.failIf(t.Territory != "", at+".territory", "is for a conquest: in a build race every seat has the same task")
		_, ok := c.m.Milestone(t.Result)
		c.failIf(t.Result != Durable && !ok, at+".result", "%s is neither \"durable\" nor a milestone to lose at", quote(t.Result))
	}
	c.failIf(len(c.m.Cheats) > maxItems, "cheats", "must be at most %d", maxItems)
	c.failIf(len(c.m.Cheats) > 0 && c.m.Build == nil, "cheats", "are for a build race: a conquest has no milestone to claim")
	for i, t := range c.m.Cheats {
		at := fmt.Sprintf("cheats[%d]", i)
		c.id(at+".name", t.Name, names)
		c.failIf(!local(t.Script), at+".script", "%s must be a file inside the package", quote(t.Script))
		_, ok := c.m.Milestone(t.Milestone)
		c.failIf(!ok, at+".milestone", "no milestone is called %s", quote(t.Milestone))
		c.failIf(blank(t.Refusal), at+".refusal", notBlank+": it says what of the refusal names the probe or the attack")
	}
}

// trials sees that the scripts of players and cheats are there, and the runner.
func (r *resolver) trials() {
	if name := r.p.guest.Runner; name != "" && r.p.standIn == nil {
		data, err := ReadFile(r.p.FS, path.Clean(name))
		switch {
		case err != nil:
			r.fail("guest.runner", "the package has no file %s", quote(name))
		case !strings.HasPrefix(string(data), "#!"):
			r.fail("guest.runner", "%s must begin with #!, e.g. #!/bin/sh", quote(name))
		}
	}
	for i, t := range r.p.Manifest.Players {
		if !isFile(r.p.FS, path.Clean(t.Script)) {
			r.fail(fmt.Sprintf("players[%d].script", i), "the package has no file %s", quote(t.Script))
		}
	}
	for i, t := range r.p.Manifest.Cheats {
		if !isFile(r.p.FS, path.Clean(t.Script)) {
			r.fail(fmt.Sprintf("cheats[%d].script", i), "the package has no file %s", quote(t.Script))
		}
	}
}
