// Package arena reads arena manifests and the packages they lie in.
//
// It hides two syntaxes (TOML, JSON), defaults, every rule of the recordings
// reference, section 1, and what stands in for a package's missing parts.
// Callers get a Package that can be run, or one error that names every fault
// with file and line.
package arena

import (
	"bytes"
	"encoding/json"
	"io/fs"

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
	// fields, warnings. In the order of the manifest.
	Notes []Note

	guest     *Guest
	verifiers map[string]string
	bundled   bool
}

// Note is something odd about a package or one of its seats; never an error.
type Note struct {
	Territory string `json:"territory,omitempty"` // "" for the whole heat
	Text      string `json:"text"`
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

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
