package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"refbox/engine/internal/plainjson"
)

// Match is match.json: where a heat comes from. The reference's keys come first.
type Match struct {
	SchemaVersion     int               `json:"schema_version"`
	ControllerVersion string            `json:"controller_version"`
	SourceRevision    *string           `json:"source_revision"`
	ArenaID           string            `json:"arena_id"`
	ArenaMode         string            `json:"arena_mode"` // buildrace or conquest
	ManifestSHA256    string            `json:"manifest_sha256"`
	PlayerBriefSHA256 *string           `json:"player_brief_sha256,omitempty"`
	VerifierSHA256    string            `json:"verifier_sha256"`
	AdapterSHA256     map[string]string `json:"adapter_sha256"`
	CompatibilityKey  string            `json:"compatibility_key"`

	// Ours.
	Engine      string            `json:"engine,omitempty"` // "refbox"; empty in the reference's
	StartedAt   *time.Time        `json:"started_at,omitempty"`
	SourceDirty *bool             `json:"source_dirty,omitempty"`
	ArenaSHA256 string            `json:"arena_json_sha256,omitempty"` // of arena.json
	Machines    map[string]string `json:"machines,omitempty"`          // vm.Driver.Versions
	Hashes      map[string]string `json:"hashes,omitempty"`            // of the arena's package, by name
	Seats       []MatchSeat       `json:"seats,omitempty"`
	SeedSHA256  string            `json:"seed_sha256,omitempty"` // hex digest of the secret seed's bytes
	Branched    *MatchBranch      `json:"branched_from,omitempty"`
	End         *MatchEnd         `json:"end,omitempty"` // nil until the heat was closed properly
}

// MatchSeat says who really plays a seat.
type MatchSeat struct {
	Territory string `json:"territory"`
	Agent     string `json:"agent"`
	Adapter   string `json:"adapter"` // the one that runs
	Note      string `json:"note,omitempty"`
}

// MatchBranch is the saved state of another heat that this one's machines started from.
type MatchBranch struct {
	Heat      string `json:"heat"`      // the recording's name
	LogHead   string `json:"log_head"`  // of its log, hex
	Territory string `json:"territory"` // here and there
	Milestone string `json:"milestone"` // that had passed last
	Event     uint64 `json:"event"`     // the sequence of its state_saved
	AtMS      uint64 `json:"at_ms"`     // on the parent's clock
	State     string `json:"state"`     // its name in the cache
}

// MatchEnd is added when the heat is closed. The part of match.json without it is
// the start part: its hash is what the log's first line carries.
type MatchEnd struct {
	FinishedAt time.Time `json:"finished_at"`
	State      string    `json:"state"`
	Seed       string    `json:"seed"` // hex
	Events     uint64    `json:"events"`
	LogHead    string    `json:"log_head"` // hash of the last line
}

const engineName = "refbox"

// Ours says that refbox recorded the heat.
func (m *Match) Ours() bool { return m != nil && m.Engine == engineName }

func (m *Match) text() ([]byte, error) { return plainjson.Indented(m) }

// startHash is the hash of match.json's start part: of its text without white
// space and without the member "end". Keys that this version does not know count.
func startHash(text []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') {
		return "", fmt.Errorf("match.json is not a JSON object")
	}
	out := []byte{'{'}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", fmt.Errorf("match.json: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", fmt.Errorf("match.json: %w", err)
		}
		if key == "end" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return "", err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return "", err
		}
		out = append(append(append(out, name...), ':'), compact.Bytes()...)
	}
	return digest(append(out, '}')), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
