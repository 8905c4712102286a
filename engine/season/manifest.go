package season

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"refbox/engine/bounded"
	"refbox/engine/text"
)

// Manifest is a season's manifest, with its fleet: its own, or the model pool's
// selection (seasons reference, section 1.1).
type Manifest struct {
	File        string // as opened
	SHA256      string // of its bytes
	ID          string
	DisplayName string
	Rules       Rules
	Fleet       []Entrant
	Arenas      []string // manifests, joined to the season file's folder without normalising
	// ArenaNames are the arenas as they are written.
	ArenaNames []string
	Pool       *PoolSource // nil for a fleet of its own
}

// PoolSource says where a fleet was selected from.
type PoolSource struct {
	Registry string // path
	Provider string
	SHA256   string // of the registry's bytes
}

// maxDocument bounds what is read of a manifest, a registry or a draw.
const maxDocument = 64 << 20

var (
	safeID    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	safeModel = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,300}$`)
	efforts   = []string{"default", "none", "minimal", "low", "medium", "high", "xhigh", "max"}
)

// Safe says whether a text may be an id or a week's label: it becomes part of
// file names and of draw seeds.
func Safe(s string) bool { return safeID.MatchString(s) && strings.Trim(s, ".") != "" }

type manifestFile struct {
	SchemaVersion int `toml:"schema_version"`
	Season        struct {
		ID          string `toml:"id"`
		DisplayName string `toml:"display_name"`
	} `toml:"season"`
	Rules struct {
		UnavailableReplays *int `toml:"unavailable_replays"`
		DrawReplays        *int `toml:"draw_replays"`
		MemoryMiB          *int `toml:"memory_mib"`
	} `toml:"rules"`
	Fleet []struct {
		ID              string  `toml:"id"`
		Model           string  `toml:"model"`
		Adapter         string  `toml:"adapter"`
		ReasoningEffort *string `toml:"reasoning_effort"`
	} `toml:"fleet"`
	Pool *struct {
		Registry string `toml:"registry"`
		Provider string `toml:"provider"`
	} `toml:"pool"`
	Arenas []struct {
		Manifest string `toml:"manifest"`
	} `toml:"arenas"`
}

// ReadManifest reads a season's manifest and, when it names one, its model pool.
// The error names every fault.
func ReadManifest(file string) (*Manifest, error) {
	data, err := bounded.File(file, maxDocument)
	if err != nil {
		return nil, fmt.Errorf("season manifest: %w", err)
	}
	var f manifestFile
	meta, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&f)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%s:%d: %s", file, at.Position.Line, text.Line(at.Message))
		}
		return nil, fmt.Errorf("%s: %s", file, text.Line(err.Error()))
	}
	m := &Manifest{File: file, SHA256: hexSum(data), ID: f.Season.ID, DisplayName: text.Line(f.Season.DisplayName)}
	var faults []error
	fault := func(format string, a ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{file}, a...)...))
	}
	for _, k := range meta.Undecoded() {
		fault("unknown key %s", text.Line(k.String()))
	}
	if f.SchemaVersion != 1 {
		fault("schema_version is %d, must be 1", f.SchemaVersion)
	}
	if !Safe(m.ID) {
		fault("season.id %q may only have A-Z a-z 0-9 . _ -", text.Line(m.ID))
	}
	if m.DisplayName == "" {
		fault("season.display_name is missing")
	}
	number := func(name string, v *int, least, otherwise int) int {
		if v == nil {
			return otherwise
		}
		if *v < least || *v > 1<<20 {
			fault("rules.%s is %d, must be at least %d", name, *v, least)
		}
		return *v
	}
	draws := number("draw_replays", f.Rules.DrawReplays, 0, 1)
	m.Rules = Rules{UnavailableReplays: number("unavailable_replays", f.Rules.UnavailableReplays, 0, 1), DrawReplays: &draws}
	if f.Rules.MemoryMiB != nil {
		n := number("memory_mib", f.Rules.MemoryMiB, 128, 0)
		m.Rules.MemoryMiB = &n
	}
	for _, e := range f.Fleet {
		effort := "high"
		if e.ReasoningEffort != nil {
			effort = *e.ReasoningEffort
		}
		m.Fleet = append(m.Fleet, Entrant{ID: e.ID, Model: e.Model, Adapter: e.Adapter, ReasoningEffort: effort})
	}
	switch {
	case (f.Pool != nil) == (len(f.Fleet) > 0):
		fault("exactly one of fleet and pool must be there")
	case f.Pool != nil:
		m.Pool = &PoolSource{Registry: joinRaw(file, f.Pool.Registry), Provider: f.Pool.Provider}
		m.Fleet, m.Pool.SHA256, err = readPool(m.Pool.Registry, f.Pool.Provider)
		if err != nil {
			faults = append(faults, err)
		}
	}
	if err := checkFleet(m.Fleet); err != nil {
		fault("%w", err)
	}
	if len(f.Arenas) == 0 {
		fault("there is no [[arenas]]")
	}
	for i, a := range f.Arenas {
		if a.Manifest == "" {
			fault("arenas[%d].manifest is missing", i)
		}
		m.ArenaNames = append(m.ArenaNames, a.Manifest)
		m.Arenas = append(m.Arenas, joinRaw(file, a.Manifest))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return m, nil
}

func checkFleet(fleet []Entrant) error {
	if len(fleet) < 3 {
		return fmt.Errorf("a fleet has at least 3 entrants, this one %d", len(fleet))
	}
	if len(fleet) > maxEntrants {
		return fmt.Errorf("%d entrants are more than %d", len(fleet), maxEntrants)
	}
	seen := map[string]bool{}
	for i, e := range fleet {
		switch {
		case !Safe(e.ID):
			return fmt.Errorf("fleet[%d].id %q may only have A-Z a-z 0-9 . _ -", i, text.Line(e.ID))
		case seen[e.ID]:
			return fmt.Errorf("fleet[%d].id %q is there twice", i, e.ID)
		case e.Model == "" || e.Adapter == "":
			return fmt.Errorf("fleet[%d] (%s): model and adapter must be given", i, e.ID)
		case text.Line(e.Model) != e.Model || text.Line(e.Adapter) != e.Adapter || text.Line(e.ReasoningEffort) != e.ReasoningEffort:
			return fmt.Errorf("fleet[%d] (%s): model, adapter and effort may only have printable characters", i, e.ID)
		}
		seen[e.ID] = true
	}
	return nil
}

// joinRaw joins a path to a file's folder without normalising it, since the
// spelling is hashed (section 3.4).
func joinRaw(file, name string) string {
	dir, _ := filepath.Split(file)
	if filepath.IsAbs(name) {
		return name
	}
	return dir + name
}

// providers are the fixed ones of a model pool, with what they make of a model.
var providers = map[string]struct{ adapter, prefix string }{
	"openrouter":  {"claux", ""},
	"vercel":      {"claux", "vercel/"},
	"opencode-go": {"opencode", "opencode-go/"},
}

type poolFile struct {
	SchemaVersion int    `json:"schema_version"`
	CheckedAt     string `json:"checked_at"`
	Models        []struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Family string `json:"family"`
		Routes map[string]struct {
			Model           string          `json:"model"`
			ReasoningEffort string          `json:"reasoning_effort"`
			Status          string          `json:"status"`
			Listed          bool            `json:"listed"`
			Note            *string         `json:"note"`
			Pricing         json.RawMessage `json:"pricing"`
			Definition      *struct {
				ID string `json:"id"`
			} `json:"definition"`
		} `json:"routes"`
	} `json:"models"`
}

// readPool selects a provider's models from a registry: eligible and listed,
// sorted by the bytes of their ids.
func readPool(file, provider string) (fleet []Entrant, sha string, err error) {
	p, ok := providers[provider]
	if !ok {
		return nil, "", fmt.Errorf("pool.provider %q is not openrouter, vercel or opencode-go", text.Line(provider))
	}
	data, err := bounded.File(file, maxDocument)
	if err != nil {
		return nil, "", fmt.Errorf("model pool: %w", err)
	}
	sha = hexSum(data)
	var f poolFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, sha, fmt.Errorf("model pool %s: %s", file, text.Line(err.Error()))
	}
	if f.SchemaVersion != 1 {
		return nil, sha, fmt.Errorf("model pool %s: schema_version is %d, must be 1", file, f.SchemaVersion)
	}
	var faults []error
	for _, m := range f.Models {
		r, ok := m.Routes[provider]
		if !ok {
			continue
		}
		fault := func(what string, a ...any) {
			faults = append(faults, fmt.Errorf("model pool %s: %s: route %s: "+what, append([]any{file, text.Line(m.ID), provider}, a...)...))
		}
		if !slices.Contains([]string{"eligible", "disabled", "blocked"}, r.Status) {
			fault("status %q is not eligible, disabled or blocked", text.Line(r.Status))
		}
		if r.Status != "eligible" {
			continue
		}
		switch {
		case m.Family == "meta" || m.Family == "xai":
			fault("models of family %s may not be eligible", m.Family)
		case !safeModel.MatchString(r.Model):
			fault("model %q may only have A-Z a-z 0-9 . _ : / -", text.Line(r.Model))
		case !slices.Contains(efforts, r.ReasoningEffort):
			fault("reasoning_effort %q is none of %s", text.Line(r.ReasoningEffort), strings.Join(efforts, ", "))
		case provider == "opencode-go" && (r.Definition == nil || r.Definition.ID != r.Model):
			fault("an eligible route needs a definition whose id is %s", r.Model)
		case r.Listed:
			fleet = append(fleet, Entrant{ID: m.ID, Model: p.prefix + r.Model, Adapter: p.adapter, ReasoningEffort: r.ReasoningEffort})
		}
	}
	slices.SortFunc(fleet, func(a, b Entrant) int { return strings.Compare(a.ID, b.ID) })
	return fleet, sha, errors.Join(faults...)
}
