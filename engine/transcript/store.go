package transcript

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"refbox/engine/archive"
	"refbox/engine/bounded"
)

type blob = bounded.ReaderAt

// store is the folder that a transcript lies in. Names are slash-separated and
// stay inside; nothing but plain files is opened.
type store struct {
	fsys fs.FS
	root *os.Root // nil for a tree in memory
	dir  string   // of the root on disk
	also io.Closer
}

const (
	maxInMemory = 256 << 20 // of a file whose tree cannot read at an offset
	maxListed   = 200_000   // names of a folder
)

// openStore finds the folder of a path: its own when it is one, the one within
// when it is a heat's archive, else the one that holds it; in is "." or the
// file's name in it.
func openStore(name string) (s *store, in string, err error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, "", err
	}
	dir, in := real, "."
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, "", fmt.Errorf("%s is not a plain file: save it as one and open that", name)
		}
		packed, err := isArchive(real)
		if err != nil {
			return nil, "", err
		}
		if packed {
			tree, err := archive.Open(real)
			if err != nil {
				return nil, "", err
			}
			return &store{fsys: tree, also: tree}, ".", nil
		}
		dir, in = filepath.Dir(real), filepath.Base(real)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	return &store{fsys: root.FS(), root: root, dir: dir}, in, nil
}

// isArchive tells by content a heat's archive, which is compressed as a whole or
// is a zip that holds a heat, from an Inspect log, which is a zip as well.
func isArchive(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], 0)
	switch {
	case bytes.HasPrefix(magic[:n], []byte{0x1f, 0x8b}):
		return true, nil
	case bytes.HasPrefix(magic[:n], []byte("PK\x03\x04")):
		info, err := f.Stat()
		if err != nil {
			return false, err
		}
		z, err := zip.NewReader(f, info.Size())
		if err != nil {
			return false, nil // a cut Inspect log is salvaged
		}
		return slices.ContainsFunc(z.File, func(m *zip.File) bool { return path.Base(m.Name) == "events.jsonl" }), nil
	}
	return false, nil
}

func (s *store) close() error {
	var err error
	if s.also != nil {
		err = s.also.Close()
	}
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

func (s *store) stat(name string) (fs.FileInfo, error) {
	if s.fsys == nil || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: fmt.Sprintf("%q", name), Err: fs.ErrNotExist}
	}
	return fs.Stat(s.fsys, name)
}

func (s *store) open(name string) (blob, error) {
	if _, err := s.stat(name); err != nil {
		return nil, err
	}
	return bounded.Open(s.fsys, name, maxInMemory)
}

// read returns a file's bytes, at most limit of them.
func (s *store) read(name string, limit int64) ([]byte, error) {
	b, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return io.ReadAll(io.NewSectionReader(b, 0, limit))
}

// list is the names in a folder, sorted, folders with a slash at the end.
func (s *store) list(dir string) []string {
	if s.fsys == nil {
		return nil
	}
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, min(len(entries), maxListed))
	for _, e := range entries[:min(len(entries), maxListed)] {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func (s *store) isFile(name string) bool {
	info, err := s.stat(name)
	return err == nil && info.Mode().IsRegular()
}

func (s *store) isDir(name string) bool {
	info, err := s.stat(name)
	return err == nil && info.IsDir()
}

// stem is a file's name without its folder and its last extension.
func stem(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

func sizeOf(b blob) int64 {
	info, err := b.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
