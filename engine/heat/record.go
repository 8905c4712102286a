package heat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"refbox/engine/arena"
	"refbox/engine/recording"
)

// match is where the heat comes from.
func (h *Heat) match(versions map[string]string) (recording.Match, error) {
	p := h.cfg.Package
	hashes, err := p.Hashes()
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
	hashes, err := p.Hashes()
	if err != nil {
		return "", err
	}
	return compatibility(p.Manifest, hashes)
}

// compatibility is the same for heats that may be compared: the same task, rules,
// guest and verifiers, whoever played, and wherever the package lay.
func compatibility(m *arena.Manifest, hashes map[string]string) (string, error) {
	task := *m
	task.Agents, task.Arena.Category, task.Players, task.Cheats = nil, nil, nil, nil
	task.Exercises = nil
	data, err := task.JSON()
	if err != nil {
		return "", err
	}
	lines := []string{"refbox 1", digest(data), hashes["guest"], hashes["verifiers"], hashes["CONTRACT.md"]}
	return digest([]byte(strings.Join(lines, "\n"))), nil
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
