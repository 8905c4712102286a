// Package arena reads arena manifests and the packages they lie in.
//
// It hides two syntaxes (TOML, JSON), defaults, every rule of the recordings
// reference, section 1, and what stands in for a package's missing parts.
// Callers get a Package that can be run, or one error that names every fault
// with file and line.
package arena

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"refbox/engine/text"
	"refbox/vm"
)

// Package is an arena that can be run: a manifest whose rules hold, and the
// files that it needs.
type Package struct {
	Manifest *Manifest
	File     string // the manifest's path as opened; "primary-failover/arena.toml" for a bundled one
	Origin   string // "bundled" or the package's folder
	SHA256   string // of the manifest's bytes, hex
	// FS holds guest/, verify/, players/, CONTRACT.md; missing parts come from
	// the bundled package of the same arena id, and a note says so.
	FS fs.FS
	// Notes are what a reader of the heat must know: substitutions, ignored
	// fields, warnings. Those of the seats' players come from Seats.
	Notes []Note

	guest     Guest
	trees     []string          // what lies on machines: guest, and folders outside it that machines name
	verifiers map[string]string // by milestone id: a path in FS
	contract  string            // a path in FS; "" for none
	standIn   *Package          // the bundled package, when it stands in for the guest
	bundle    *Package          // of the same arena id; nil for none
}

// Note is something odd about a package or one of its seats; never an error.
type Note struct {
	Territory string `json:"territory,omitempty"` // "" for the whole heat
	Text      string `json:"text"`
}

func (n Note) String() string {
	if n.Territory == "" {
		return n.Text
	}
	return n.Territory + ": " + n.Text
}

// Seat is a territory with who plays it.
type Seat struct {
	Territory Territory
	Class     Class
	Agent     Agent
	// Player is the adapter that plays: Agent.Adapter, or script when the
	// agent's adapter has no command.
	Player string
	// Script is the file of Package.FS that Player script plays; else "".
	Script string
	Spec   vm.Spec
}

// Guest is how the guest is set up: of the package whose guest tree is used.
func (p *Package) Guest() Guest { return p.guest }

// Verifier is the file of FS that decides a milestone; "" for an unknown one.
func (p *Package) Verifier(milestone string) string { return p.verifiers[milestone] }

// Spec is the territory's machines, as the vm package makes them.
func (p *Package) Spec(territory string) (vm.Spec, error) {
	t, ok := p.Manifest.Territory(territory)
	if !ok {
		return vm.Spec{}, fmt.Errorf("%s: no territory is called %q", p.File, territory)
	}
	machines, err := p.Manifest.machines(t)
	if err != nil {
		return vm.Spec{}, fmt.Errorf("%s: %w", p.File, err)
	}
	spec := vm.Spec{Packages: slices.Clone(p.guest.Packages)}
	var runner []byte
	if r := p.guest.Runner; r != "" {
		if runner, err = ReadFile(p.FS, path.Clean(r)); err != nil {
			return vm.Spec{}, fmt.Errorf("%s: guest.runner: %w", p.File, err)
		}
	}
	for i, m := range machines {
		var ports []uint16
		if i == 0 {
			ports = append(ports, t.Service.Port)
		}
		forwards := []int{}
		for _, port := range slices.Concat(ports, p.guest.Forwards, m.Forwards) {
			if n := int(port); n != 22 && n != 0 && !slices.Contains(forwards, n) {
				forwards = append(forwards, n)
			}
		}
		files, err := fs.Sub(p.FS, path.Clean(m.Guest))
		if err != nil {
			return vm.Spec{}, fmt.Errorf("%s: territory %s, machine %s: %w", p.File, territory, m.Name, err)
		}
		spec.Machines = append(spec.Machines, vm.MachineSpec{
			Name: m.Name, VCPUs: int(m.Resources.VCPUs), MemoryMiB: int(m.Resources.MemoryMiB), DiskMiB: int(m.Resources.DiskMiB),
			Files: files, Setup: slices.Clone(p.guest.Setup), Forwards: forwards, Runner: runner,
		})
	}
	subnet, err := p.subnets()
	if err != nil {
		return vm.Spec{}, err
	}
	if p.Manifest.linked(t.ID) {
		spec.Machines[0].Name = t.ID
	}
	for i, l := range t.Links {
		spec.Links = append(spec.Links, vm.LinkSpec{
			Name: l.Name, Ends: slices.Clone(l.Ends), Subnet: subnet(i),
		})
	}
	return spec, nil
}

// subnets gives the links' subnets, by number.
func (p *Package) subnets() (func(i int) string, error) {
	var a, b, c int
	if _, err := fmt.Sscanf(slash24(p.Manifest.Network.CIDR), "%d.%d.%d", &a, &b, &c); err != nil {
		return nil, fmt.Errorf("%s: network.cidr %q has not the form A.B.C.0/24", p.File, p.Manifest.Network.CIDR)
	}
	return func(i int) string { return fmt.Sprintf("%d.%d.%d", a, b, (c+i)%256) }, nil
}

// Field is the machines that lie on links between territories, each called as its
// territory, with those links; without any machine where there are none.
func (p *Package) Field() (vm.Spec, error) {
	field := vm.Spec{Packages: slices.Clone(p.guest.Packages)}
	subnet, err := p.subnets()
	if err != nil {
		return field, err
	}
	for _, t := range p.Manifest.Territories {
		if !p.Manifest.linked(t.ID) {
			continue
		}
		own, err := p.Spec(t.ID)
		if err != nil {
			return field, err
		}
		field.Machines = append(field.Machines, own.Machines...)
	}
	for i, l := range p.Manifest.Network.Links {
		field.Links = append(field.Links, vm.LinkSpec{Name: l.Name, Ends: slices.Clone(l.Territories), Subnet: subnet(i)})
	}
	return field, nil
}

// Seats are the territories, in the manifest's order, with who plays them.
// HasCommand says whether an adapter can be run here; nil: none can but script.
// A seat whose adapter cannot is played by a script of the bundled package, or
// of the package itself; the notes name each such seat.
func (p *Package) Seats(hasCommand func(adapter string) bool) ([]Seat, []Note, error) {
	var (
		seats []Seat
		notes []Note
	)
	scripts := p.scripts()
	for i, t := range p.Manifest.Territories {
		agent, _ := p.Manifest.AgentOf(t.ID)
		class, _ := p.Manifest.Class(t.Class)
		spec, err := p.Spec(t.ID)
		if err != nil {
			return nil, nil, err
		}
		s := Seat{Territory: t, Class: class, Agent: agent, Player: agent.Adapter, Spec: spec}
		switch {
		case agent.Script != nil:
			s.Script = path.Clean(*agent.Script)
		case hasCommand != nil && hasCommand(agent.Adapter):
		case len(scripts.byTerritory) == 0:
			return nil, nil, fmt.Errorf("%s: agent %s (territory %s): adapter %q has no command here and the package has no script to play instead; configure the adapter, or set adapter = \"script\"",
				p.File, agent.ID, t.ID, agent.Adapter)
		default:
			s.Player, s.Script = AdapterScript, scripts.of(t.ID, i)
			notes = append(notes, Note{t.ID, fmt.Sprintf("agent %s: adapter %s has no command here; the %s script %s plays the seat",
				agent.ID, agent.Adapter, scripts.whose, s.Script)})
		}
		seats = append(seats, s)
	}
	return seats, notes, nil
}

// scripts are what plays in place of an adapter that has no command.
type scripts struct {
	whose       string
	byTerritory []Agent // with a script
}

func (p *Package) scripts() scripts {
	from := scripts{whose: "package's"}
	m := p.Manifest
	if p.bundle != nil {
		from.whose, m = "bundled", p.bundle.Manifest
	}
	for _, t := range m.Territories {
		if a, ok := m.AgentOf(t.ID); ok && a.Script != nil {
			if _, err := fs.Stat(p.FS, path.Clean(*a.Script)); err == nil {
				from.byTerritory = append(from.byTerritory, a)
			}
		}
	}
	return from
}

func (s scripts) of(territory string, position int) string {
	for _, a := range s.byTerritory {
		if a.Territory == territory {
			return path.Clean(*a.Script)
		}
	}
	return path.Clean(*s.byTerritory[position%len(s.byTerritory)].Script)
}

// Brief is what a territory's player is told: the fog's brief, or the
// territory's instructions and the contract; then what holds in every heat. The
// time limit is the rules', so it cannot contradict them.
func (p *Package) Brief(territory string) (string, error) {
	var b strings.Builder
	for _, name := range p.briefs(territory) {
		data, err := fs.ReadFile(p.FS, name)
		if err != nil {
			return "", fmt.Errorf("brief of %s: %w", territory, err)
		}
		b.Write(bytes.TrimSpace(data))
		b.WriteString("\n\n")
	}
	agent, _ := p.Manifest.AgentOf(territory)
	fmt.Fprintf(&b, "## This heat\n\nYour territory is %s. ", territory)
	within := humanDuration(p.Manifest.Duration())
	switch {
	case p.Manifest.Build == nil:
		fmt.Fprintf(&b, "The heat ends %s after its start, and sooner when only one territory is left. ", within)
	case p.Manifest.Build.StopOnFirstDurable:
		fmt.Fprintf(&b, "The heat ends when the first seat is durable, at the latest %s after its start, and sooner when every player has ended and nothing changes any more. ", within)
	default:
		fmt.Fprintf(&b, "The heat ends at the latest %s after its start, and sooner when every player has ended and nothing changes any more. ", within)
	}
	fmt.Fprintf(&b, "Your budget is %d resource units", agent.Budget.ResourceUnits)
	if c := agent.Budget.MaxCostMicroUSD; c != nil {
		fmt.Fprintf(&b, " and %d micro-dollars", *c)
	}
	b.WriteString(". Work only inside your own territory, over SSH. Everything you do there is recorded.\n")
	if p.Manifest.linked(territory) {
		b.WriteString("What other territories let your machine do to them over the link between you is part of the contest.\n")
	}
	return b.String(), nil
}

func (p *Package) briefs(territory string) []string {
	if f := p.Manifest.FogOfWar; f != nil && p.standIn == nil {
		return []string{path.Clean(f.PlayerBrief)}
	}
	var names []string
	if name := "instructions/" + territory + ".md"; p.standIn == nil && isFile(p.FS, name) {
		names = append(names, name)
	}
	if p.contract != "" {
		names = append(names, p.contract)
	}
	return names
}

func humanDuration(d time.Duration) string {
	if d%time.Minute == 0 {
		return text.Count(d/time.Minute, "minute")
	}
	return d.String()
}

// Hashes identify what a heat rests on, for its provenance: the manifest, and
// each part of the package by the names and contents of its files, so that the
// place of the package does not matter. A part that is not there is left out.
func (p *Package) Hashes() (map[string]string, error) {
	out := map[string]string{"manifest": p.SHA256}
	for part, roots := range map[string][]string{"guest": p.trees, "players": {"players"}, "CONTRACT.md": {"CONTRACT.md"}} {
		sum, err := hashTree(p.FS, roots...)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: hash %s: %w", p.File, part, err)
		}
		out[part] = sum
	}
	if r := p.guest.Runner; r != "" {
		sum, err := hashTree(p.FS, path.Clean(r))
		if err != nil {
			return nil, fmt.Errorf("%s: hash %s: %w", p.File, r, err)
		}
		out["runner"] = sum
	}
	h := sha256.New()
	for _, s := range p.Manifest.Milestones() {
		data, err := ReadFile(p.FS, p.verifiers[s.ID])
		if err != nil {
			return nil, fmt.Errorf("%s: hash the verifier of %s: %w", p.File, s.ID, err)
		}
		sum := sha256.Sum256(data)
		fmt.Fprintf(h, "%s %s %x\n", s.ID, p.verifiers[s.ID], sum)
		if path.Ext(p.verifiers[s.ID]) != ".star" { // it may use what lies beside it
			beside, err := hashTree(p.FS, path.Dir(p.verifiers[s.ID]))
			if err != nil {
				return nil, fmt.Errorf("%s: hash what lies beside the verifier of %s: %w", p.File, s.ID, err)
			}
			fmt.Fprintf(h, "%s\n", beside)
		}
	}
	if len(p.verifiers) > 0 {
		out["verifiers"] = hex.EncodeToString(h.Sum(nil))
	}
	return out, nil
}

func hashTree(fsys fs.FS, roots ...string) (string, error) {
	h := sha256.New()
	for _, root := range roots {
		err := fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := ReadFile(fsys, name)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			fmt.Fprintf(h, "%q %x\n", name, sum)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// maxFileBytes bounds any one file of a package.
const maxFileBytes = 64 << 20

// ReadFile reads a file of a package: a regular one, of at most 64 MiB.
func ReadFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, maxFileBytes)
	}
	return fs.ReadFile(fsys, name)
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}

func isDir(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}
