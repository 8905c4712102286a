package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ReaderAt is an open file that is read at offsets.
type ReaderAt interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Open opens a plain file of a tree. Where the tree's files cannot be read at offsets,
// as in an archive, the file is kept in memory if it is of at most so many bytes.
func Open(tree fs.FS, name string, most int64) (ReaderAt, error) {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a plain file")}
	}
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	if r, ok := f.(ReaderAt); ok {
		return r, nil
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("%s: larger than %s in a tree that cannot be read at an offset", name, size(most))
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, err
	}
	return InMemory(data, info), nil
}

// InMemory is a file whose bytes are there already.
func InMemory(data []byte, info fs.FileInfo) ReaderAt { return memory{bytes.NewReader(data), info} }

type memory struct {
	*bytes.Reader
	info fs.FileInfo
}

func (m memory) Stat() (fs.FileInfo, error) { return m.info, nil }
func (m memory) Close() error               { return nil }
