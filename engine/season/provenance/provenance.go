// Package provenance knows what a heat's compatibility key is made of: the three
// forms that the reference's versions had, none of which says which it is, and ours.
//
// The reference's forms depend on how the path of a package is spelled, hold who
// happens to play, and leave out the contract, the instructions, the guest, the
// image and the adapters (seasons reference, section 3.4). Ours (engine/heat)
// names files by their place in the package, leaves out who plays, and holds the
// guest, the recipe of its image, the contract, the instructions, the scripts of the
// package and the engine's rules; match.json says beside it whether the source had
// uncommitted changes, and which image the machines had. Heats are only compared
// under the same form.
package provenance

import (
	"bytes"
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

	"github.com/BurntSushi/toml"

	"refbox/assets"
	"refbox/engine/bounded"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// Form is how a key is made.
type Form string

// Forms of keys, oldest first.
const (
	Old     Form = "old"      // arena, manifest, verifiers
	Mid     Form = "mid"      // and the brief
	New     Form = "new"      // the manifest without its category
	First   Form = "refbox 1" // ours: by place in the package, without who plays
	Ours    Form = "refbox"   // and the instructions, the scripts, the image's recipe, the engine's rules
	Unknown Form = "unknown"  // none that fits what is here
)

// keyOf joins the lines of a key.
func keyOf(lines ...string) string { return digest([]byte(strings.Join(lines, "\n"))) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// FormOf says in which form a recording's key was made, as far as match.json
// tells alone. New is told from it only where the manifest has no category;
// Recognise needs the arena and finds the rest.
func FormOf(m *recording.Match) Form {
	if m.Ours() {
		if m.Hashes["engine"] == "" {
			return First
		}
		return Ours
	}
	brief := ""
	if m.PlayerBriefSHA256 != nil {
		brief = *m.PlayerBriefSHA256
	}
	switch m.CompatibilityKey {
	case keyOf("1", m.ArenaID, m.ManifestSHA256, m.VerifierSHA256):
		return Old
	case keyOf("1", m.ArenaID, m.ManifestSHA256, brief, m.VerifierSHA256):
		return Mid
	}
	return Unknown
}

// Parts are what the reference hashes of an arena.
type Parts struct {
	ArenaID    string
	Manifest   string // hash of the manifest's bytes
	Evaluation string // of the manifest without its category
	Brief      string // of the player brief; "" without fog of war
	Verifiers  string // of paths, as they are spelled, and contents
}

// Key is the parts' key in a form of the reference.
func (p Parts) Key(f Form) string {
	switch f {
	case Old:
		return keyOf("1", p.ArenaID, p.Manifest, p.Verifiers)
	case Mid:
		return keyOf("1", p.ArenaID, p.Manifest, p.Brief, p.Verifiers)
	}
	return keyOf("1", p.ArenaID, p.Evaluation, p.Brief, p.Verifiers)
}

const manifestFile = "arena.toml"

// maxPart bounds a file that is hashed.
const maxPart = 16 << 20

// Read hashes an arena in the reference's way. Spelled is the path of its manifest
// as the reference would have been given it: it is part of the verifiers' hash. It
// is where the manifest is, unless root says where that path begins. Without a root it
// may be a package's folder, or the id of a bundled arena; that is spelled as from the
// folder of all of them.
func Read(root, spelled string) (Parts, error) {
	read := func(name string) ([]byte, error) { return readPart(filepath.Join(root, filepath.FromSlash(name))) }
	if root == "" {
		if bundled := spelled + "/" + manifestFile; fs.ValidPath(bundled) && path.Dir(bundled) == path.Base(spelled) {
			if _, err := fs.Stat(assets.Arenas(), bundled); err == nil {
				spelled, read = bundled, func(name string) ([]byte, error) { return fs.ReadFile(assets.Arenas(), path.Clean(name)) }
			}
		}
		if info, err := os.Stat(spelled); err == nil && info.IsDir() {
			spelled = strings.TrimSuffix(spelled, "/") + "/" + manifestFile
		}
	}
	data, err := read(spelled)
	if err != nil {
		return Parts{}, err
	}
	var m struct {
		Arena struct {
			ID string `toml:"id"`
		} `toml:"arena"`
		Build struct {
			Milestones []struct {
				Verifier string `toml:"verifier"`
			} `toml:"milestones"`
		} `toml:"build"`
		Fog *struct {
			Brief string `toml:"player_brief"`
		} `toml:"fog_of_war"`
	}
	if _, err := toml.Decode(string(data), &m); err != nil {
		return Parts{}, fmt.Errorf("%s: %s", spelled, text.Line(err.Error()))
	}
	p := Parts{ArenaID: m.Arena.ID, Manifest: digest(data), Evaluation: digest(withoutCategory(data))}
	dir := spelled[:strings.LastIndex(spelled, "/")+1]
	if m.Fog != nil {
		brief, err := read(dir + m.Fog.Brief)
		if err != nil {
			return p, err
		}
		p.Brief = digest(brief)
	}
	var names []string
	for _, ms := range m.Build.Milestones {
		names = append(names, dir+ms.Verifier)
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
	sum := sha256.New()
	for _, name := range names { // one that is used twice counts twice
		content, err := read(name)
		if err != nil {
			return p, err
		}
		io.WriteString(sum, name+"\x00") //nolint:errcheck // a hash never fails
		sum.Write(content)
		sum.Write([]byte{0})
	}
	p.Verifiers = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

func readPart(path string) ([]byte, error) { return bounded.File(path, maxPart) }

// withoutCategory is a manifest without the category of its arena, line endings
// kept.
func withoutCategory(manifest []byte) []byte {
	var out bytes.Buffer
	in := false
	for line := range bytes.Lines(manifest) {
		s := string(bytes.TrimSpace(line))
		if strings.HasPrefix(s, "[") {
			in = s == "[arena]"
		}
		if name, _, ok := strings.Cut(s, "="); in && ok && strings.TrimSpace(name) == "category" {
			continue
		}
		out.Write(line)
	}
	return out.Bytes()
}

// ReferenceKey is the key that the reference's later versions would have for an
// arena, by its path as it is spelled, or by its id.
func ReferenceKey(manifest string) (string, error) {
	p, err := Read("", manifest)
	if err != nil {
		return "", fmt.Errorf("the reference's key needs the arena's files: %w", err)
	}
	return p.Key(New), nil
}

// Match is how an arena on disk fits a key.
type Match struct {
	Form     Form   `json:"form"`
	Spelling string `json:"spelling"` // of the manifest's path
}

// ErrOther is of an arena that no form of the key fits.
var ErrOther = errors.New("no form of the key, under any spelling of the path, is of this arena")

// Recognise finds the form and the spelling under which an arena on disk has a
// key. Root is the folder that the spellings are relative to; a version of a key
// names neither, so all are tried.
func Recognise(key, root string, spellings ...string) (Match, error) {
	var errs []error
	for _, s := range spellings {
		p, err := Read(root, s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range []Form{New, Mid, Old} {
			if p.Key(f) == key {
				return Match{f, s}, nil
			}
		}
	}
	return Match{Unknown, ""}, errors.Join(append([]error{ErrOther}, errs...)...)
}

// Spellings are how published runs named the manifest of an arena's folder: from
// the project's root, and from its suites.
func Spellings(manifest string) []string {
	return []string{manifest, "suites/../" + manifest}
}
