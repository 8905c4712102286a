// Package memfs is the file system of a simulated machine: a tree of immutable
// nodes behind one pointer. It hides path walking, symbolic links and space
// accounting.
//
// It promises:
//
//   - A Snapshot costs one pointer and never changes; thousands of file systems
//     that grew from one snapshot share everything that they did not write.
//   - No path reaches the host: the package opens no file.
//   - Errors are *fs.PathError around a syscall.Errno, so errors.Is works with
//     fs.ErrNotExist and fs.ErrExist.
//   - Methods may be called from any goroutine.
package memfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxLinks = 40      // symbolic links followed in one walk, as on Linux
	maxNodes = 200_000 // files of one file system
	maxPath  = 4096
	maxName  = 255
	nodeCost = 64 // bytes charged per node, so that empty files are not free
)

// node is immutable once it is reachable from a root.
type node struct {
	ino  uint64
	mode fs.FileMode
	mod  time.Time
	data []byte
	pad  int64            // bytes that are allocated behind data, and were never written
	link string           // target of a symbolic link
	gen  string           // key of generated content (/proc, /dev)
	safe bool             // the content is on disk
	kids map[string]*node // of a directory
}

func (n *node) cost() int64 { return nodeCost + int64(len(n.data)) + n.pad + int64(len(n.link)) }

// Snapshot is a whole file system at one instant.
type Snapshot struct {
	root  *node
	ino   uint64
	bytes int64
	nodes int
}

// FS is a file system that can be written.
type FS struct {
	// Generate makes the content of files that Special made; nil makes nothing.
	Generate func(key string) []byte
	// Disk is asked before anything is put on disk; nil puts it there. It may wait.
	// After an error of its the file system takes no more changes, as ext4 does
	// whose journal could not be written.
	Disk func() error

	limit int64
	mu    sync.Mutex
	live  Snapshot
	disk  Snapshot // what Sync has put beyond the reach of a crash
	dead  bool     // Disk has failed
}

// New makes a file system that continues from s (the zero Snapshot is an empty
// root) and holds at most limit bytes. What s holds is on disk.
//
// The disk behaves as ext4's does: syncing one file also commits every name,
// link and removal before it, but not the content of other files. A file whose
// content never was synced is empty after a crash, a changed one is as before.
func New(s Snapshot, limit int64) *FS {
	if s.root == nil {
		s.root = &node{ino: 1, mode: fs.ModeDir | 0o755, mod: time.Now(), kids: map[string]*node{}}
		s.ino, s.nodes = 1, 1
	}
	f := &FS{limit: limit, live: s}
	f.Sync()
	return f
}

// Snapshot is the file system as programs see it now.
func (f *FS) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live
}

// Synced is the file system as a crash would leave it now.
func (f *FS) Synced() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk
}

func pathErr(op, name string, e syscall.Errno) error {
	return &fs.PathError{Op: op, Path: name, Err: e}
}

func split(abs string) []string {
	abs = strings.Trim(path.Clean("/"+abs), "/")
	if abs == "" {
		return nil
	}
	return strings.Split(abs, "/")
}

// setAt is root with n at the path, nil n removing what is there. The path's
// directories exist.
func setAt(root *node, parts []string, n *node) *node {
	if len(parts) == 0 {
		return n
	}
	kid := root.kids[parts[0]]
	if len(parts) == 1 {
		kid = n
	} else {
		kid = setAt(kid, parts[1:], n)
	}
	if kid == root.kids[parts[0]] {
		return root
	}
	c := *root
	c.kids = maps.Clone(root.kids)
	if kid == nil {
		delete(c.kids, parts[0])
	} else {
		c.kids[parts[0]] = kid
	}
	return &c
}

// walk resolves name to the path without links and the node there, nil when its
// directory exists and it does not. The caller holds mu.
func (f *FS) walk(op, name string, follow bool) (string, *node, error) {
	if name == "" {
		return "", nil, pathErr(op, name, syscall.ENOENT)
	}
	if len(name) > maxPath {
		return "", nil, pathErr(op, name, syscall.ENAMETOOLONG)
	}
	if strings.IndexByte(name, 0) >= 0 {
		return "", nil, pathErr(op, name, syscall.EINVAL)
	}
	todo := split2(name)
	var real []string
	stack := []*node{f.live.root}
	links := 0
	for i := 0; i < len(todo); i++ {
		part := todo[i]
		at := stack[len(stack)-1]
		if part == ".." {
			if len(real) > 0 {
				real, stack = real[:len(real)-1], stack[:len(stack)-1]
			}
			continue
		}
		if len(part) > maxName {
			return "", nil, pathErr(op, name, syscall.ENAMETOOLONG)
		}
		if !at.mode.IsDir() {
			return "", nil, pathErr(op, name, syscall.ENOTDIR)
		}
		last := i == len(todo)-1
		kid := at.kids[part]
		if kid == nil {
			if !last {
				return "", nil, pathErr(op, name, syscall.ENOENT)
			}
			return "/" + strings.Join(append(real, part), "/"), nil, nil
		}
		if kid.mode&fs.ModeSymlink != 0 && (!last || follow) {
			if links++; links > maxLinks {
				return "", nil, pathErr(op, name, syscall.ELOOP)
			}
			rest := todo[i+1:]
			todo = append(split2(kid.link), rest...)
			if strings.HasPrefix(kid.link, "/") {
				real, stack = nil, stack[:1]
			}
			i = -1
			continue
		}
		real, stack = append(real, part), append(stack, kid)
	}
	return "/" + strings.Join(real, "/"), stack[len(stack)-1], nil
}

// split2 splits without resolving "..", which must follow symbolic links.
func split2(name string) []string {
	var parts []string
	for p := range strings.SplitSeq(name, "/") {
		if p != "" && p != "." {
			parts = append(parts, p)
		}
	}
	return parts
}

// put places n at the real path, keeping the sums. The caller holds mu.
func (f *FS) put(op, real string, old, n *node) error {
	if f.dead {
		return pathErr(op, real, syscall.EROFS)
	}
	s := f.live
	if old != nil {
		s.bytes -= old.cost()
		s.nodes--
	}
	if n != nil {
		s.bytes += n.cost()
		s.nodes++
		grows := old == nil || n.cost() > old.cost()
		if grows && (s.bytes > f.limit || s.nodes > maxNodes) {
			return pathErr(op, real, syscall.ENOSPC)
		}
		if n.ino == 0 {
			s.ino++
			n.ino = s.ino
		}
	}
	s.root = setAt(s.root, split(real), n)
	f.live = s
	return nil
}

// ReadFile returns the whole file; the caller must not change it.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	_, n, err := f.walk("open", name, true)
	f.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, pathErr("open", name, syscall.ENOENT)
	case n.mode.IsDir():
		return nil, pathErr("read", name, syscall.EISDIR)
	case n.gen != "" && f.Generate != nil:
		return f.Generate(n.gen), nil
	}
	return n.data, nil
}

// WriteFile replaces the file's content, following symbolic links, or makes the
// file with perm.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	return f.write(name, perm, true, true, 0, func([]byte) []byte { return slices.Clone(data) })
}

// Append adds to the end of the file, making it with perm when it is missing.
func (f *FS) Append(name string, data []byte, perm fs.FileMode) error {
	return f.write(name, perm, true, true, 0, func(old []byte) []byte {
		// Clipped, so that nobody else's slice grows into the new bytes.
		return append(slices.Clip(old), data...)
	})
}

// write changes one file's content. A non-zero ino refuses, with ESTALE, a path
// that meanwhile names another file.
func (f *FS) write(name string, perm fs.FileMode, create, touch bool, ino uint64, change func([]byte) []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, old, err := f.walk("open", name, true)
	if err != nil {
		return err
	}
	var n node
	switch {
	case ino != 0 && (old == nil || old.ino != ino):
		return pathErr("write", name, syscall.ESTALE)
	case old == nil && !create:
		return pathErr("open", name, syscall.ENOENT)
	case old == nil:
		n = node{mode: perm.Perm()}
	case old.mode.IsDir():
		return pathErr("open", name, syscall.EISDIR)
	case old.gen != "":
		return nil
	default:
		n = *old
	}
	n.data, n.safe = change(n.data), false
	if touch {
		n.mod = time.Now()
	}
	return f.put("write", real, old, &n)
}

// Mkdir makes one directory.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.make("mkdir", name, &node{mode: fs.ModeDir | perm.Perm(), mod: time.Now(), kids: map[string]*node{}})
}

// MkdirAll makes a directory and those above it.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	at := ""
	for _, part := range split(name) {
		at += "/" + part
		if err := f.Mkdir(at, perm); err != nil {
			if st, serr := f.Stat(at); serr != nil || !st.IsDir() {
				return err
			}
		}
	}
	return nil
}

// Symlink makes name a symbolic link to target.
func (f *FS) Symlink(target, name string) error {
	return f.make("symlink", name, &node{mode: fs.ModeSymlink | 0o777, mod: time.Now(), link: target})
}

// Special makes a file whose content Generate makes from key each time that it
// is read, and that swallows what is written.
func (f *FS) Special(name, key string, mode fs.FileMode) error {
	return f.make("mknod", name, &node{mode: mode, mod: time.Now(), gen: key})
}

func (f *FS) make(op, name string, n *node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, old, err := f.walk(op, name, false)
	if err != nil {
		return err
	}
	if old != nil {
		return pathErr(op, name, syscall.EEXIST)
	}
	return f.put(op, real, nil, n)
}

// Remove removes a file, a symbolic link or an empty directory.
func (f *FS) Remove(name string) error { return f.remove(name, false) }

// RemoveAll removes name and everything below it; a name that is not there is
// no error.
func (f *FS) RemoveAll(name string) error { return f.remove(name, true) }

func (f *FS) remove(name string, all bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, old, err := f.walk("remove", name, false)
	if err != nil {
		if all && errno(err) == syscall.ENOENT {
			return nil
		}
		return err
	}
	switch {
	case old == nil && all:
		return nil
	case old == nil:
		return pathErr("remove", name, syscall.ENOENT)
	case real == "/":
		return pathErr("remove", name, syscall.EBUSY)
	case len(old.kids) > 0 && !all:
		return pathErr("remove", name, syscall.ENOTEMPTY)
	}
	bytes, nodes := sum(old)
	s := f.live
	s.bytes, s.nodes = s.bytes-bytes, s.nodes-nodes
	s.root = setAt(s.root, split(real), nil)
	f.live = s
	return nil
}

func sum(n *node) (bytes int64, nodes int) {
	bytes, nodes = n.cost(), 1
	for _, kid := range n.kids {
		b, c := sum(kid)
		bytes, nodes = bytes+b, nodes+c
	}
	return bytes, nodes
}

func errno(err error) syscall.Errno {
	if pe, ok := err.(*fs.PathError); ok {
		if e, ok := pe.Err.(syscall.Errno); ok {
			return e
		}
	}
	return 0
}

// Rename moves a file or directory, replacing a file that is in the way.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	src, n, err := f.walk("rename", from, false)
	if err != nil {
		return err
	}
	if n == nil || src == "/" {
		return pathErr("rename", from, syscall.ENOENT)
	}
	dst, old, err := f.walk("rename", to, false)
	if err != nil {
		return err
	}
	switch {
	case src == dst:
		return nil
	case n.mode.IsDir() && strings.HasPrefix(dst+"/", src+"/"):
		return pathErr("rename", to, syscall.EINVAL)
	case old != nil && old.mode.IsDir() && !n.mode.IsDir():
		return pathErr("rename", to, syscall.EISDIR)
	case old != nil && !old.mode.IsDir() && n.mode.IsDir():
		return pathErr("rename", to, syscall.ENOTDIR)
	case old != nil && len(old.kids) > 0:
		return pathErr("rename", to, syscall.ENOTEMPTY)
	}
	s := f.live
	if old != nil {
		s.bytes, s.nodes = s.bytes-old.cost(), s.nodes-1
	}
	s.root = setAt(s.root, split(src), nil)
	s.root = setAt(s.root, split(dst), n)
	f.live = s
	return nil
}

// Chmod sets the permission bits.
func (f *FS) Chmod(name string, perm fs.FileMode) error {
	return f.alter("chmod", name, func(n *node) { n.mode = n.mode&^fs.ModePerm | perm.Perm() })
}

// Touch sets the time of the last change.
func (f *FS) Touch(name string, t time.Time) error {
	return f.alter("touch", name, func(n *node) { n.mod = t })
}

func (f *FS) alter(op, name string, change func(*node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, old, err := f.walk(op, name, true)
	if err != nil {
		return err
	}
	if old == nil {
		return pathErr(op, name, syscall.ENOENT)
	}
	n := *old
	change(&n)
	return f.put(op, real, old, &n)
}
