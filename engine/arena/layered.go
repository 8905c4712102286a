package arena

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// layered is a file system whose top-level names come from different ones. A
// file is that of the first layer that has it; a folder's entries are those of
// all layers, the first's winning.
type layered struct {
	route func(top string) []fs.FS
}

func (l layered) Open(name string) (fs.File, error) {
	layers, err := l.layers("open", name)
	if err != nil {
		return nil, err
	}
	for _, fsys := range layers {
		f, openErr := fsys.Open(name)
		if openErr == nil {
			if info, statErr := f.Stat(); statErr == nil && info.IsDir() {
				return &layeredDir{File: f, all: func() ([]fs.DirEntry, error) { return l.ReadDir(name) }}, nil
			}
			return f, nil
		}
		if err = openErr; !errors.Is(openErr, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

// layeredDir is an open folder of all layers, for whoever wraps the tree and does not
// know that it has ReadDir itself.
type layeredDir struct {
	fs.File // the uppermost layer's
	all     func() ([]fs.DirEntry, error)
	read    bool
	left    []fs.DirEntry
}

// ReadDir implements fs.ReadDirFile.
func (d *layeredDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		all, err := d.all()
		if err != nil {
			return nil, err
		}
		d.read, d.left = true, all
	}
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	out := d.left[:n:n]
	d.left = d.left[n:]
	return out, nil
}

// ReadDir implements fs.ReadDirFS.
func (l layered) ReadDir(name string) ([]fs.DirEntry, error) {
	layers, err := l.layers("readdir", name)
	if err != nil {
		return nil, err
	}
	var (
		out   []fs.DirEntry
		found bool
	)
	seen := map[string]bool{}
	for _, fsys := range layers {
		entries, readErr := fs.ReadDir(fsys, name)
		if readErr != nil {
			err = readErr
			continue
		}
		found = true
		for _, e := range entries {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				out = append(out, e)
			}
		}
	}
	if !found {
		return nil, err
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

func (l layered) layers(op, name string) ([]fs.FS, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	top, _, _ := strings.Cut(name, "/")
	layers := l.route(top)
	if len(layers) == 0 {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return layers, nil
}
