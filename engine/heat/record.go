package heat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/event"
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

// compatibility is the same for heats that may be compared: the same task, rules,
// guest and verifiers, whoever played, and wherever the package lay.
func compatibility(m *arena.Manifest, hashes map[string]string) (string, error) {
	task := *m
	task.Agents, task.Arena.Category = nil, nil
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

// console opens the record of a machine's console.
func (s *seat) console(machine string) io.Writer {
	c, err := s.heat.rec.Console(s.id(), machine)
	if err != nil {
		slog.Warn("a console is not recorded", "territory", s.id(), "machine", machine, "error", err)
		return io.Discard
	}
	return c
}

func (s *seat) recordDir() string { return filepath.Join(s.heat.rec.Dir(), "seats", s.id()) }

// observer tells the log what a gateway sees.
type observer struct {
	s  *seat
	mu sync.Mutex
	// casts of sessions that were announced with their action and have not
	// begun yet.
	casts map[uint64]*recording.CastWriter
}

func (o *observer) ActionStarted(a agent.Action) {
	e := event.AgentActionStarted{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: a.Number, Channel: a.Channel, Machine: a.Machine,
		Command: a.Command, SelfReported: a.SelfReported}
	if a.Session > 0 {
		cast, path, err := o.s.heat.rec.Session(o.s.id(), 80, 24)
		if err != nil {
			slog.Warn("a session is not recorded", "territory", o.s.id(), "error", err)
		} else {
			e.Session = path
			o.mu.Lock()
			o.casts[a.Session] = cast
			o.mu.Unlock()
		}
	}
	o.s.heat.say(e)
}

func (o *observer) ActionEnded(uint64, string) {
	if r := o.s.heat.race.Load(); r != nil {
		r.Nudge(o.s.id())
	}
}

func (o *observer) ActionFinished(f agent.Finish) {
	o.s.heat.say(event.AgentActionFinished{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: f.Number, Exit: f.Exit,
		TookMS: uint64(max(0, f.Took.Milliseconds())), Output: f.Output, Bytes: f.Bytes, Detail: f.Detail})
}

func (o *observer) SessionStarted(s agent.Session) agent.Cast {
	o.mu.Lock()
	cast := o.casts[s.Number]
	delete(o.casts, s.Number)
	o.mu.Unlock()
	if cast == nil {
		return nil
	}
	cast.Resize(s.Width, s.Height)
	return session{cast}
}

// session is a cast as a gateway writes it. Only what a terminal shows is kept:
// what a player typed may be a password.
type session struct{ cast *recording.CastWriter }

func (c session) Event(code byte, data []byte) {
	switch code {
	case agent.CastOutput:
		c.cast.Write(data)
	case agent.CastResize:
		var w, h int
		if n, err := fmt.Sscanf(string(data), "%dx%d", &w, &h); n == 2 && err == nil {
			c.cast.Resize(w, h)
		}
	}
}

func (c session) Close() error { return c.cast.Close() }

func sortedByID(seats []*seat) []*seat {
	out := slices.Clone(seats)
	slices.SortFunc(out, func(a, b *seat) int { return strings.Compare(a.id(), b.id()) })
	return out
}
