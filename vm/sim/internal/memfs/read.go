package memfs

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Info describes a file. Its Sys is a *syscall.Stat_t owned by root, because
// shells ask for one.
type Info struct {
	name string
	n    *node
}

func (i Info) Name() string               { return i.name }
func (i Info) Size() int64                { return int64(len(i.n.data)+len(i.n.link)) + i.n.pad }
func (i Info) Mode() fs.FileMode          { return i.n.mode }
func (i Info) ModTime() time.Time         { return i.n.mod }
func (i Info) IsDir() bool                { return i.n.mode.IsDir() }
func (i Info) Sys() any                   { return &syscall.Stat_t{} }
func (i Info) Type() fs.FileMode          { return i.n.mode.Type() }
func (i Info) Info() (fs.FileInfo, error) { return i, nil }

// Target is where a symbolic link points.
func (i Info) Target() string { return i.n.link }

// Special is the key of a file that Special made, otherwise "".
func (i Info) Special() string { return i.n.gen }

// Inode is the file's number, kept over renames and writes.
func (i Info) Inode() uint64 { return i.n.ino }

// Stat describes a file, following symbolic links.
func (f *FS) Stat(name string) (Info, error) { return f.stat("stat", name, true) }

// Lstat describes a file, or the symbolic link itself.
func (f *FS) Lstat(name string) (Info, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, n, err := f.walk(op, name, follow)
	if err != nil {
		return Info{}, err
	}
	// A trailing slash asks for a directory.
	if n != nil && strings.HasSuffix(name, "/") && !n.mode.IsDir() && n.mode&fs.ModeSymlink == 0 {
		return Info{}, pathErr(op, name, syscall.ENOTDIR)
	}
	if n == nil {
		return Info{}, pathErr(op, name, syscall.ENOENT)
	}
	return Info{name: path.Base(name), n: n}, nil
}

// Real is the path without symbolic links; its last part need not exist.
func (f *FS) Real(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, _, err := f.walk("realpath", name, true)
	return real, err
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]Info, error) {
	f.mu.Lock()
	_, n, err := f.walk("open", name, true)
	f.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, pathErr("open", name, syscall.ENOENT)
	case !n.mode.IsDir():
		return nil, pathErr("readdir", name, syscall.ENOTDIR)
	}
	infos := make([]Info, 0, len(n.kids))
	for base, kid := range n.kids {
		infos = append(infos, Info{name: base, n: kid})
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.name, b.name) })
	return infos, nil
}

// Used is the number of bytes and of files held.
func (f *FS) Used() (bytes int64, nodes int, limit int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live.bytes, f.live.nodes, f.limit
}

// File is an open file. A write is seen by others at once; after the file was
// removed or replaced it goes nowhere.
type File struct {
	f    *FS
	name string
	ino  uint64
	in   io.Reader
	out  bool
	off  int // of the next write; -1 appends
	// tail is what this file wrote last, with room to grow: as long as the
	// content still is that slice, the bytes behind it belong to this file alone.
	tail []byte
}

// OpenFile opens a file as os.OpenFile does, with the flags O_RDONLY, O_WRONLY,
// O_RDWR, O_CREATE, O_EXCL, O_TRUNC and O_APPEND.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	st, err := f.Stat(name)
	switch {
	case err != nil && (flag&os.O_CREATE == 0 || errno(err) != syscall.ENOENT):
		return nil, err
	case err == nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, pathErr("open", name, syscall.EEXIST)
	case err == nil && st.IsDir() && flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0:
		return nil, pathErr("open", name, syscall.EISDIR)
	}
	if err != nil || flag&os.O_TRUNC != 0 {
		if err := f.write(name, perm, true, true, 0, func([]byte) []byte { return nil }); err != nil {
			return nil, err
		}
	}
	if st, err = f.Stat(name); err != nil {
		return nil, err
	}
	file := &File{f: f, name: name, ino: st.Inode(), out: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	if flag&os.O_APPEND != 0 {
		file.off = -1
	}
	if flag&os.O_WRONLY == 0 {
		data, err := f.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file.in = bytes.NewReader(data)
	}
	return file, nil
}

func (o *File) Read(p []byte) (int, error) {
	if o.in == nil {
		return 0, pathErr("read", o.name, syscall.EBADF)
	}
	return o.in.Read(p)
}

func (o *File) Write(p []byte) (int, error) {
	if !o.out {
		return 0, pathErr("write", o.name, syscall.EBADF)
	}
	err := o.f.write(o.name, 0, false, true, o.ino, func(old []byte) []byte {
		off := o.off
		if off < 0 || off == len(old) {
			if len(old) == 0 || len(o.tail) != len(old) || &o.tail[0] != &old[0] {
				old = slices.Clip(old)
			}
			o.tail = append(old, p...)
			return o.tail
		}
		data := make([]byte, max(len(old), off+len(p)))
		copy(data, old)
		copy(data[off:], p)
		return data
	})
	switch {
	case errno(err) == syscall.ESTALE || errno(err) == syscall.ENOENT:
		return len(p), nil // the file is unlinked: its last bytes go nowhere
	case err != nil:
		return 0, err
	}
	if o.off >= 0 {
		o.off += len(p)
	}
	return len(p), nil
}

// Close does nothing that a later Write would notice.
func (o *File) Close() error { return nil }
