package arena

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"refbox/assets"
)

// Bundled are the ids of the bundled arenas, sorted.
func Bundled() []string {
	entries, err := fs.ReadDir(assets.Arenas(), ".")
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// Load opens an arena: the id of a bundled one, a package's folder, an
// arena.toml or an arena.json. A bundled id wins over a folder of that name;
// ./name is the folder. The error is an *Invalid when the manifest or the
// package is at fault; then nothing is returned beside it.
func Load(name string) (*Package, error) {
	p, problems, err := Inspect(name)
	if err != nil {
		return nil, err
	}
	bad := slices.DeleteFunc(problems, func(pr Problem) bool { return pr.Warning })
	if len(bad) > 0 {
		return nil, &Invalid{File: bad[0].File, Problems: bad}
	}
	return p, nil
}

// Inspect is Load, with everything that there is to say about the manifest and the
// package, warnings included. Unless all of it are warnings, the package cannot be
// run, and holds only what could be made of it: nil for a syntax error. The error
// says that there is no such arena, or that it cannot be read.
func Inspect(name string) (*Package, []Problem, error) {
	if isID(name) && isDir(assets.Arenas(), name) {
		return inspectBundled(name)
	}
	info, err := os.Stat(name)
	if err != nil {
		reason := err
		if errors.Is(err, fs.ErrNotExist) {
			reason = fs.ErrNotExist
		}
		return nil, nil, fmt.Errorf("arena %q: %w: give a bundled arena (%s), a package's folder, an arena.toml or an arena.json", name, reason, strings.Join(Bundled(), ", "))
	}
	dir, file := filepath.Dir(name), filepath.Base(name)
	if info.IsDir() {
		dir, file = name, ""
		for _, f := range []string{"arena.toml", "arena.json"} {
			if _, err := os.Stat(filepath.Join(name, f)); err == nil {
				file = f
				break
			}
		}
		if file == "" {
			return nil, nil, fmt.Errorf("arena %q: the folder has neither arena.toml nor arena.json", name)
		}
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return nil, nil, fmt.Errorf("arena: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	f.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("arena: read %s: %w", f.Name(), err)
	}
	// A root, so that no path or symbolic link of a package leads out of it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("arena: %w", err)
	}
	return open(filepath.Join(dir, file), dir, data, root.FS())
}

func inspectBundled(id string) (*Package, []Problem, error) {
	fsys, err := fs.Sub(assets.Arenas(), id)
	if err != nil {
		return nil, nil, fmt.Errorf("bundled arena %s: %w", id, err)
	}
	data, err := fs.ReadFile(fsys, "arena.toml")
	if err != nil {
		return nil, nil, fmt.Errorf("bundled arena %s: %w", id, err)
	}
	return open(path.Join(id, "arena.toml"), "bundled", data, fsys)
}

// open makes a package of a manifest and the files beside it.
func open(file, origin string, data []byte, own fs.FS) (*Package, []Problem, error) {
	m, root, problems := read(file, data)
	if m == nil {
		return nil, problems, nil
	}
	sum := sha256.Sum256(data)
	p := &Package{Manifest: m, File: file, Origin: origin, SHA256: hex.EncodeToString(sum[:]), FS: own, verifiers: map[string]string{}}
	for _, pr := range problems {
		if pr.Warning {
			p.Notes = append(p.Notes, Note{Text: pr.String()})
		}
	}
	if m.Guest != nil {
		p.guest = *m.Guest
	}
	if origin != "bundled" && isID(m.Arena.ID) && isDir(assets.Arenas(), m.Arena.ID) {
		b, err := Load(m.Arena.ID)
		if err != nil {
			return nil, nil, err
		}
		p.bundle = b
	}
	r := &resolver{p: p, own: own}
	r.guest()
	r.contract()
	r.verifiers()
	r.players()
	r.trials()
	r.ignored()
	r.problems = consequences(problems, r.problems)
	for i := range r.problems {
		if pr := &r.problems[i]; pr.Path != "" {
			at := root.find(pr.Path)
			pr.Line, pr.Offset = at.line, at.offset
		}
	}
	return p, append(problems, r.problems...), nil
}

// resolver finds a package's parts, and what stands in for missing ones.
type resolver struct {
	p        *Package
	own      fs.FS
	problems []Problem
}

func (r *resolver) fail(where, format string, args ...any) {
	r.problems = append(r.problems, Problem{File: r.p.File, Path: where, Text: fmt.Sprintf(format, args...)})
}

func (r *resolver) note(territory, format string, args ...any) {
	r.p.Notes = append(r.p.Notes, Note{territory, fmt.Sprintf(format, args...)})
}

// guest takes the package's guest tree, or the bundled package's. With the
// bundled guest go its contract and its verifiers: they speak of that guest.
func (r *resolver) guest() {
	p := r.p
	missing := ""
	var trees []string
	for _, t := range p.Manifest.Territories {
		machines, err := p.Manifest.machines(t)
		if err != nil {
			r.fail("territories", "%v", err)
			return
		}
		for _, mc := range machines {
			if missing == "" && !isDir(r.own, path.Clean(mc.Guest)) {
				missing = mc.Guest
			}
			if tree := path.Clean(mc.Guest); !slices.Contains(trees, tree) {
				trees = append(trees, tree)
			}
		}
	}
	if missing == "" {
		p.trees = slices.DeleteFunc(slices.Clone(trees), func(tree string) bool { return strings.HasPrefix(tree+"/", "guest/") })
		if isDir(r.own, "guest") {
			p.trees = append([]string{"guest"}, p.trees...)
		}
		r.library(trees)
		return
	}
	if p.bundle == nil {
		r.fail("", "the package has no folder %s with the guest's files, and no bundled arena is called %q (bundled: %s)", missing, p.Manifest.Arena.ID, strings.Join(Bundled(), ", "))
		return
	}
	for _, t := range p.Manifest.Territories {
		if len(t.Machines) > 0 {
			r.fail("", "the package has no folder %s with the guest's files; the bundled arena's cannot stand in for it, since territory %s has machines of its own", missing, t.ID)
			return
		}
	}
	p.standIn, p.guest, p.trees = p.bundle, p.bundle.guest, p.bundle.trees
	for _, t := range p.Manifest.Territories {
		why := "the package has no guest of its own"
		if t.NixosConfig != nil {
			why = "nixos_config is not used here"
		}
		r.note(t.ID, "%s; the machine, contract and verifiers are those of the bundled arena %s", why, p.bundle.Manifest.Arena.ID)
	}
	p.FS = layered{route: func(top string) []fs.FS {
		switch top {
		case "guest", "verify", "CONTRACT.md":
			return []fs.FS{p.bundle.FS}
		case "players":
			return []fs.FS{r.own, p.bundle.FS}
		}
		return []fs.FS{r.own}
	}}
}

func (r *resolver) contract() {
	p := r.p
	if f := p.Manifest.FogOfWar; f != nil && p.standIn == nil {
		for i, name := range append([]string{f.PlayerBrief}, f.PlayerArtifacts...) {
			where := "fog_of_war.player_brief"
			if i > 0 {
				where = fmt.Sprintf("fog_of_war.player_artifacts[%d]", i-1)
			}
			if !local(name) || !isFile(r.own, path.Clean(name)) {
				r.fail(where, "the package has no file %s", quote(name))
			}
		}
		return
	}
	switch {
	case isFile(p.FS, "CONTRACT.md"):
		p.contract = "CONTRACT.md"
	case p.bundle != nil && p.Manifest.Build != nil:
		p.contract = "CONTRACT.md"
		r.note("", "the package has no CONTRACT.md; players get that of the bundled arena %s", p.bundle.Manifest.Arena.ID)
		own := p.FS
		p.FS = layered{route: func(top string) []fs.FS {
			if top == "CONTRACT.md" {
				return []fs.FS{p.bundle.FS}
			}
			return []fs.FS{own}
		}}
	case p.Manifest.Build != nil:
		r.fail("", "the package has no CONTRACT.md: players must be told what they race for")
	default:
		for _, t := range p.Manifest.Territories {
			if name := "instructions/" + t.ID + ".md"; !isFile(p.FS, name) {
				r.fail("", "the package has no %s: territory %s's player must be told its task", name, t.ID)
			}
		}
	}
}

func (r *resolver) verifiers() {
	p := r.p
	var borrowed, instead []string
	for i, s := range p.Manifest.Milestones() {
		name := path.Clean(s.Verifier)
		if p.standIn == nil && isFile(p.FS, name) {
			p.verifiers[s.ID] = name
			if info, err := fs.Stat(p.FS, name); err == nil && path.Ext(name) != ".star" && p.Origin != "bundled" && info.Mode()&0o111 == 0 {
				r.fail(fmt.Sprintf("build.milestones[%d].verifier", i), "%s is not executable: chmod +x it", name)
			}
			continue
		}
		from := ""
		if p.bundle != nil {
			from = p.bundle.verifierFor(s.ID)
		}
		if from == "" {
			r.fail(fmt.Sprintf("build.milestones[%d].verifier", i), "the package has no file %s, and no bundled verifier decides the milestone %s", quote(s.Verifier), s.ID)
			continue
		}
		p.verifiers[s.ID] = from
		if b, ok := p.bundle.Manifest.Milestone(s.ID); ok && b.Operation != s.Operation {
			r.note("", "milestone %s: the bundled verifier was made for operation %s, the manifest says %s", s.ID, b.Operation, s.Operation)
		}
		if p.standIn == nil {
			borrowed = append(borrowed, s.ID)
		} else if from != name {
			instead = append(instead, s.ID)
		}
	}
	if len(instead) > 0 {
		r.note("", "the bundled verifiers, matched by milestone id, decide in place of the manifest's: %s", strings.Join(instead, ", "))
	}
	if len(borrowed) > 0 {
		r.note("", "the package lacks the verifiers of %s; the bundled ones, matched by milestone id, decide", strings.Join(borrowed, ", "))
		own := p.FS
		p.FS = layered{route: func(top string) []fs.FS {
			if top == "verify" {
				return []fs.FS{own, p.bundle.FS}
			}
			return []fs.FS{own}
		}}
	}
}

// verifierFor is the bundled verifier of a milestone id, by name first.
func (p *Package) verifierFor(milestone string) string {
	if name := "verify/" + milestone + ".star"; isFile(p.FS, name) {
		return name
	}
	return p.verifiers[milestone]
}

func (r *resolver) players() {
	p := r.p
	if p.standIn == nil && p.bundle != nil {
		own := p.FS
		p.FS = layered{route: func(top string) []fs.FS {
			if top == "players" {
				return []fs.FS{own, p.bundle.FS}
			}
			return []fs.FS{own}
		}}
	}
	for i, a := range p.Manifest.Agents {
		if a.Script != nil && !isFile(p.FS, path.Clean(*a.Script)) {
			r.fail(fmt.Sprintf("agents[%d].script", i), "the package has no file %s", quote(*a.Script))
		}
	}
}

// ignored notes what a manifest says in vain. The bundled ones say it only
// because the format demands it.
func (r *resolver) ignored() {
	m := r.p.Manifest
	if r.p.Origin == "bundled" {
		return
	}
	if r.p.standIn == nil {
		for _, t := range m.Territories {
			if t.NixosConfig != nil {
				r.note(t.ID, "nixos_config is ignored: no machine is built with nix here; the package's guest tree makes it")
			}
		}
	}
	if m.Build != nil {
		// The format demands it: it says something only where it says otherwise.
		if slices.ContainsFunc(m.Territories, func(t Territory) bool { return t.Service.Health.PollIntervalMS != m.Rules.TickMS }) {
			r.note("", "service.health (poll_interval_ms, consecutive_failures, recovery_window_seconds) is ignored in a build race: the milestones decide, at least every %d ms (rules.tick_ms)", m.Rules.TickMS)
		}
		if m.Rules.HealthyResourcesPerTick > 0 {
			r.note("", "rules.healthy_resources_per_tick is ignored: it is a conquest's")
		}
		return
	}
	noted := map[uint64]bool{}
	for _, t := range m.Territories {
		if i := t.Service.Health.PollIntervalMS; i != m.Rules.TickMS && !noted[i] {
			noted[i] = true
			r.note("", "service.health.poll_interval_ms = %d is ignored: rules.tick_ms = %d is the interval", i, m.Rules.TickMS)
		}
	}
}
