package archive

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Tree is an archive's files. Methods may be called from any goroutine.
type Tree struct {
	file     *os.File
	name     string // of the root within the archive; "" for the archive itself
	nodes    map[string]*node
	problems problems
}

type node struct {
	name     string // last element of the path
	dir      bool
	span     span
	children []*node // of a folder, by name
}

// roots are the files that tell a heat's folder.
var roots = []string{"events.jsonl", "match-report.json"}

// tree makes the tree of what was taken, below its root.
func (s *spool) tree() *Tree {
	t := &Tree{file: s.file, problems: s.problems}
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	t.name = rootOf(names)
	t.nodes = map[string]*node{".": {name: ".", dir: true}}
	for _, name := range names {
		inside := name
		if t.name != "" {
			var ok bool
			if inside, ok = strings.CutPrefix(name, t.name+"/"); !ok {
				t.problems.add(false, "archive_entry", name, "lies outside the heat's folder and is left out")
				continue
			}
		}
		t.add(inside, s.files[name])
	}
	return t
}

// rootOf is the folder nearest to the top that holds a heat; of several the first
// by name.
func rootOf(names []string) string {
	best, found := "", false
	for _, root := range roots {
		for _, name := range names {
			if path.Base(name) != root {
				continue
			}
			dir := path.Dir(name)
			if dir == "." {
				return ""
			}
			if !found || strings.Count(dir, "/") < strings.Count(best, "/") {
				best, found = dir, true
			}
		}
		if found {
			return best
		}
	}
	top := ""
	for _, name := range names {
		first, _, below := strings.Cut(name, "/")
		if !below || top != "" && first != top {
			return ""
		}
		top = first
	}
	return top
}

func (t *Tree) add(name string, s span) {
	parent := t.nodes["."]
	parts := strings.Split(name, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		n := t.nodes[at]
		last := i == len(parts)-1
		switch {
		case n == nil:
			n = &node{name: parts[i], dir: !last, span: s}
			t.nodes[at] = n
			parent.children = append(parent.children, n)
		case !n.dir || last:
			t.problems.add(false, "archive_duplicate", name, "is a file and a folder; the first is taken")
			return
		}
		parent = n
	}
}

// Name is the heat's folder within the archive, as it is there; "" when the heat
// lies at the archive's top.
func (t *Tree) Name() string { return path.Base(t.name) }

// Problems is what a reader should know of the archive.
func (t *Tree) Problems() []Problem {
	out := slices.Clone(t.problems.list)
	if n := t.problems.dropped; n > 0 {
		more := problems{}
		more.add(false, "archive_entry", "", "%d more of these", n)
		out = append(out, more.list...)
	}
	return out
}

// Heat says whether the tree holds a heat's log or report.
func (t *Tree) Heat() bool {
	return slices.ContainsFunc(roots, func(name string) bool { return t.nodes[name] != nil })
}

// Close gives the files back. Open files of the tree cannot be read after it.
func (t *Tree) Close() error { return t.file.Close() }

// Open opens a file or folder of the tree. Files can be read at any offset.
func (t *Tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	n := t.nodes[name]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if n.dir {
		return &folder{node: n}, nil
	}
	return &file{SectionReader: io.NewSectionReader(t.file, n.span.off, n.span.size), node: n}, nil
}

type file struct {
	*io.SectionReader
	node *node
}

func (f *file) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *file) Close() error               { return nil }

type folder struct {
	node *node
	next int
}

func (d *folder) Stat() (fs.FileInfo, error) { return d.node, nil }
func (d *folder) Close() error               { return nil }
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.node.name, Err: fs.ErrInvalid}
}

func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.node.children[d.next:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.next += len(rest)
	out := make([]fs.DirEntry, len(rest))
	for i, c := range rest {
		out[i] = fs.FileInfoToDirEntry(c)
	}
	return out, nil
}

// A node is its own fs.FileInfo. Times of an archive say nothing.
func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return n.span.size }
func (n *node) IsDir() bool        { return n.dir }
func (n *node) ModTime() time.Time { return time.Time{} }
func (n *node) Sys() any           { return nil }
func (n *node) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
