package archive

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
)

// ManifestFile is the manifest of hashes of a bundle, beside events.jsonl.
const ManifestFile = "bundle.json"

// Manifest names every file of a bundle with its hash. It is what Open checks an
// archive against; it proves that nothing was damaged on the way, not who made it.
type Manifest struct {
	SchemaVersion int    `json:"schema_version"` // 1
	Name          string `json:"name"`           // of the recording
	Files         []File `json:"files"`          // sorted by path
}

// File is one file of a bundle.
type File struct {
	Path   string `json:"path"` // slash-separated, within the recording
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
}

const maxManifest = 64 << 20

// checkBundle compares the tree with its manifest, when there is one.
func (t *Tree) checkBundle() {
	n := t.nodes[ManifestFile]
	if n == nil || n.dir {
		return
	}
	var m Manifest
	err := fmt.Errorf("%d bytes", n.span.size)
	if n.span.size <= maxManifest {
		var raw []byte
		if raw, err = io.ReadAll(io.NewSectionReader(t.file, n.span.off, n.span.size)); err == nil {
			err = json.Unmarshal(raw, &m)
		}
	}
	if err != nil || m.SchemaVersion != 1 {
		t.problems.add(true, "bundle_unreadable", ManifestFile, "the manifest of hashes cannot be read: %v", err)
		return
	}
	named := map[string]bool{}
	for _, f := range m.Files {
		named[f.Path] = true
		switch n := t.nodes[f.Path]; {
		case n == nil || n.dir:
			t.problems.add(true, "bundle_missing", f.Path, "is named by the manifest of hashes and is not there")
		case n.span.sha != f.SHA256 || n.span.size != f.Size:
			t.problems.add(true, "bundle_altered", f.Path, "is not what the manifest gives the hash of")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if !t.nodes[name].dir && !named[name] && name != ManifestFile {
			t.problems.add(false, "bundle_extra", name, "is not in the manifest of hashes")
		}
	}
}

var _ fs.FS = (*Tree)(nil)
