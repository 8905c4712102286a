package export

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"refbox/engine/archive"
	"refbox/engine/internal/plainjson"
)

// Bundled says what Bundle did.
type Bundled struct {
	Files int
	Bytes int64
	// LeftOut are the folder's files that are no part of a recording, by path, raw.
	LeftOut []string
}

// Bundle writes a heat's folder as a .tar.gz below a folder called name: first
// the manifest of hashes that package archive checks, then the files by path,
// without owners, times or modes of this host. The same files give the same bytes.
//
// Only what a recording consists of goes in (design: section 3; recordings
// reference, section 6): keys, sockets or notes that lie beside it stay where they
// are. The heat's secret seed is in it only when the heat has ended, as match.json
// has it. A file that changes meanwhile is an error.
func Bundle(w io.Writer, tree fs.FS, name string) (Bundled, error) {
	var out Bundled
	m := archive.Manifest{SchemaVersion: 1, Name: plainName(name), Files: []archive.File{}}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular() || !partOfRecording(p):
			if p != archive.ManifestFile {
				out.LeftOut = append(out.LeftOut, p)
			}
			return nil
		}
		f, err := hashFile(tree, p)
		if err == nil {
			m.Files = append(m.Files, f)
			out.Bytes += f.Size
		}
		return err
	})
	if err != nil {
		return out, fmt.Errorf("bundle the recording: %w", err)
	}
	if len(m.Files) == 0 {
		return out, errors.New("bundle the recording: the folder holds no recording")
	}
	slices.SortFunc(m.Files, func(a, b archive.File) int { return strings.Compare(a.Path, b.Path) })
	out.Files = len(m.Files)
	if err := writeBundle(w, tree, m); err != nil {
		return out, fmt.Errorf("bundle the recording: %w", err)
	}
	return out, nil
}

func writeBundle(w io.Writer, tree fs.FS, m archive.Manifest) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	text, err := plainjson.Indented(m)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(header(m.Name, archive.ManifestFile, int64(len(text)))); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := t.WriteHeader(header(m.Name, f.Path, f.Size)); err != nil {
			return err
		}
		if err := copyFile(t, tree, f); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func header(dir, name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, name), Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
}

func hashFile(tree fs.FS, name string) (archive.File, error) {
	f, err := tree.Open(name)
	if err != nil {
		return archive.File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, archive.MaxFile+1))
	if err == nil && n > archive.MaxFile {
		err = fmt.Errorf("%s is larger than the %d bytes that an archive's file may have", name, int64(archive.MaxFile))
	}
	return archive.File{Path: name, Size: n, SHA256: sum(h)}, err
}

func copyFile(w io.Writer, tree fs.FS, want archive.File) error {
	f, err := tree.Open(want.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(f, want.Size))
	if err != nil {
		return err
	}
	if n != want.Size || sum(h) != want.SHA256 {
		return fmt.Errorf("%s changed while it was read; try again when nobody writes", want.Path)
	}
	return nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

var artifacts = []string{"result.json", "transcript.json", "transcript.live.json", "analysis.json", "usage.json"}

// partOfRecording says whether a file belongs to a heat, ours or the reference's.
func partOfRecording(p string) bool {
	parts := strings.Split(p, "/")
	last := parts[len(parts)-1]
	artifact := slices.Contains(artifacts, last)
	switch {
	case len(parts) == 1:
		return slices.Contains([]string{"events.jsonl", "match.json", "arena.json", "world.json", "match-report.json"}, last) ||
			slices.ContainsFunc(artifacts, func(a string) bool { return strings.HasSuffix(last, "-"+a) })
	case parts[0] == "agents":
		return len(parts) == 3 && artifact
	case parts[0] != "seats":
		return false
	case len(parts) == 3:
		return artifact || last == "brief.md" || strings.HasPrefix(last, "session-") && strings.HasSuffix(last, ".cast")
	case len(parts) == 4:
		return parts[2] == "evidence" && strings.HasSuffix(last, ".json")
	case len(parts) == 5:
		return parts[2] == "machines" && last == "console.cast"
	}
	return false
}

// plainName is a folder's name that every system takes.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if plain = strings.Trim(plain, ".-"); plain == "" {
		return "heat"
	}
	return plain[:min(len(plain), 100)]
}
