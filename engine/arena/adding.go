package arena

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// Adding is the package with a file more, or another in a file's place, for who lets
// it be played by what is not in it (Cast). Folders list what the package has.
func (p *Package) Adding(name string, data []byte) *Package {
	c := *p
	c.FS = added{FS: p.FS, name: path.Clean(name), data: data}
	return &c
}

type added struct {
	fs.FS
	name string
	data []byte
}

func (a added) Open(name string) (fs.File, error) {
	if name != a.name {
		return a.FS.Open(name)
	}
	return &addedFile{Reader: bytes.NewReader(a.data), name: path.Base(name), size: int64(len(a.data))}, nil
}

// addedFile is an open file and its own description.
type addedFile struct {
	*bytes.Reader
	name string
	size int64
}

func (f *addedFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *addedFile) Close() error               { return nil }
func (f *addedFile) Name() string               { return f.name }
func (f *addedFile) Size() int64                { return f.size }
func (f *addedFile) Mode() fs.FileMode          { return 0o444 }
func (f *addedFile) ModTime() time.Time         { return time.Time{} }
func (f *addedFile) IsDir() bool                { return false }
func (f *addedFile) Sys() any                   { return nil }
