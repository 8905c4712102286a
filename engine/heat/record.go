package heat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	guestassets "refbox/assets/guest"
	"refbox/engine/arena"
	"refbox/engine/recording"
)

// match is where the heat comes from.
func (h *Heat) match(versions map[string]string) (recording.Match, error) {
	p := h.cfg.Package
	hashes, err := Parts(p)
	if err != nil {
		return recording.Match{}, err
	}
	now := time.Now()
	m := recording.Match{SchemaVersion: 1, Engine: "refbox", ControllerVersion: cmp.Or(h.cfg.Version, "unknown"),
		ArenaID: p.Manifest.Arena.ID, ArenaMode: strings.ReplaceAll(p.Manifest.Arena.Mode, "_", ""), ManifestSHA256: p.SHA256,
		VerifierSHA256: hashes["verifiers"], AdapterSHA256: map[string]string{}, StartedAt: &now, Machines: versions, Hashes: hashes}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.SourceRevision = &s.Value
			case "vcs.modified":
				dirty := s.Value == "true"
				m.SourceDirty = &dirty
			}
		}
	}
	if b := h.cfg.Branch; b != nil {
		m.Branched = &b.Origin
	}
	briefs := sha256.New()
	for _, s := range h.seats {
		brief, err := p.Brief(s.id())
		if err != nil {
			return m, err
		}
		fmt.Fprintf(briefs, "%s\n%s\n", s.id(), brief)
		m.Seats = append(m.Seats, recording.MatchSeat{Territory: s.id(), Agent: s.arena.Agent.ID, Adapter: s.adapter, Note: s.note})
		if s.arena.Script != "" {
			data, err := fs.ReadFile(p.FS, s.arena.Script)
			if err != nil {
				return m, err
			}
			m.AdapterSHA256[s.adapter] = digest(data)
		}
	}
	brief := hex.EncodeToString(briefs.Sum(nil))
	m.PlayerBriefSHA256 = &brief
	if m.CompatibilityKey, err = compatibility(p.Manifest, hashes); err != nil {
		return m, err
	}
	m.Machines["timeout_factor"] = fmt.Sprint(h.slow)
	return m, nil
}

// Key is the compatibility key that a heat of this package would record.
func Key(p *arena.Package) (string, error) {
	parts, err := Parts(p)
	if err != nil {
		return "", err
	}
	return compatibility(p.Manifest, parts)
}

// KeyBefore is the key in the form that heats had until the image, the
// instructions, the scripts and the engine came into it; its parts are the
// package's hashes.
func KeyBefore(p *arena.Package) (string, error) {
	hashes, err := p.Hashes()
	if err != nil {
		return "", err
	}
	data, err := task(p.Manifest)
	if err != nil {
		return "", err
	}
	return digest([]byte(strings.Join([]string{"refbox 1", digest(data), hashes["guest"], hashes["verifiers"], hashes["CONTRACT.md"]}, "\n"))), nil
}

// engineRules is raised when refereeing changes so that a verdict, or an instant,
// may come out otherwise.
const engineRules = "1"

// Parts are what a key rests on, by name: the package's hashes; the instructions
// that players get; the recipe of the guest's image, which is the same on every host
// (the image itself is among match.json's machines); the engine's rules.
func Parts(p *arena.Package) (map[string]string, error) {
	out, err := p.Hashes()
	if err != nil {
		return nil, err
	}
	told := []string{"instructions"}
	if f := p.Manifest.FogOfWar; f != nil {
		told = append(told, path.Clean(f.PlayerBrief))
	}
	for name, of := range map[string]struct {
		tree  fs.FS
		roots []string
	}{"instructions": {p.FS, told}, "image": {guestassets.Recipe(), []string{"."}}} {
		h := sha256.New()
		for _, root := range of.roots {
			err := fs.WalkDir(of.tree, root, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := fs.ReadFile(of.tree, name)
				fmt.Fprintf(h, "%q %s\n", name, digest(data))
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%s: hash %s: %w", p.File, name, err)
			}
		}
		out[name] = hex.EncodeToString(h.Sum(nil))
	}
	out["engine"] = engineRules
	return out, nil
}

// compatibility is the same for heats that may be compared: the same task, rules,
// guest, verifiers and scripts, whoever played, and wherever the package lay.
func compatibility(m *arena.Manifest, parts map[string]string) (string, error) {
	data, err := task(m)
	if err != nil {
		return "", err
	}
	lines := []string{"refbox 2", digest(data)}
	for _, name := range []string{"guest", "verifiers", "CONTRACT.md", "instructions", "players", "image", "engine"} {
		lines = append(lines, name+" "+parts[name])
	}
	return digest([]byte(strings.Join(lines, "\n"))), nil
}

// task is the manifest without who plays, and without what only sorts it.
func task(m *arena.Manifest) ([]byte, error) {
	task := *m
	task.Agents, task.Arena.Category, task.Players, task.Cheats = nil, nil, nil, nil
	task.Exercises = nil
	if m.Guest != nil && m.Guest.Library != nil { // its files are in the guest's hash
		guest := *m.Guest
		guest.Library = nil
		task.Guest = &guest
	}
	task.Procedure, task.Clock, task.Store, task.Copy, task.Migration = nil, nil, nil, nil, nil
	return task.JSON()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sortedByID(seats []*seat) []*seat {
	out := slices.Clone(seats)
	slices.SortFunc(out, func(a, b *seat) int { return strings.Compare(a.id(), b.id()) })
	return out
}
