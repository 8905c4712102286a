package arena

import (
	"errors"
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
			return f, nil
		}
		if err = openErr; !errors.Is(openErr, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
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
