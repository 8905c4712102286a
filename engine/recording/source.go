package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"refbox/engine/bounded"
)

// source is where a recording's files are: a folder on disk, or a tree that the
// program carries. Names are slash-separated and stay inside; a symbolic link
// that leaves the folder is an error, and so is anything that is not a plain
// file (a pipe would block whoever opens it).
type source struct {
	fsys fs.FS
	root *os.Root // nil for a tree in memory
	dir  string   // of the root, as it was opened
}

type blob = bounded.ReaderAt

func openDir(dir string) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &source{fsys: root.FS(), root: root, dir: dir}, nil
}

func (s *source) close() error {
	if s.root == nil {
		return closeTree(s.fsys)
	}
	return s.root.Close()
}

func (s *source) open(name string) (blob, error) {
	if _, err := s.stat(name); err != nil {
		return nil, err
	}
	return bounded.Open(s.fsys, name, 1<<30)
}

func (s *source) stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, &fs.PathError{Op: "open", Path: fmt.Sprintf("%q", name), Err: errors.New("leaves the heat's folder")}
	}
	info, err := fs.Stat(s.fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a plain file")}
	}
	return info, nil
}

// read returns a file of at most limit bytes.
func (s *source) read(name string, limit int64) ([]byte, error) {
	info, err := s.stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %d bytes, more than the %d that are read", name, info.Size(), limit)
	}
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, 0, limit))
}

// list is the names in a folder of the tree, sorted; nil when there is none. At
// most 10,000 are looked at.
func (s *source) list(dir string) []fs.DirEntry {
	f, err := s.fsys.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(10000)
	return entries
}

// moved says that the path of the folder now leads somewhere else than to the
// folder that is open.
func (s *source) moved() bool {
	if s.root == nil {
		return false
	}
	now, err := os.Stat(s.dir)
	if err != nil {
		return false // renamed or gone: what is open is still what it was
	}
	open, err := s.root.Stat(".")
	return err == nil && !os.SameFile(now, open)
}

// same says that two looks at an open log and at its name are the same file.
func (s *source) same(open, named fs.FileInfo) bool {
	return s.root == nil || os.SameFile(open, named)
}

// held says that a writer holds the lock of an open log.
func held(b blob) bool {
	f, ok := b.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	fd := int(f.Fd())
	err := syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(fd, syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// dateIn finds YYYYMMDD-HHMMSS in a recording's name, as the reference names its
// folders.
func dateIn(name string) (time.Time, bool) {
	const form = "20060102-150405"
	for i := 0; i+len(form) <= len(name); i++ {
		if t, err := time.ParseInLocation(form, name[i:i+len(form)], time.Local); err == nil && t.Year() >= 2000 {
			return t, true
		}
	}
	return time.Time{}, false
}

func baseName(p string) string {
	return path.Base(strings.TrimRight(filepath.ToSlash(p), "/"))
}
