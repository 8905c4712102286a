package memfs

import (
	"encoding/gob"
	"io"
	"io/fs"
	"time"
)

// saved is a node in a file of the host's.
type saved struct {
	Mode fs.FileMode
	Mod  time.Time
	Data []byte
	Pad  int64
	Link string
	Gen  string
	Kids map[string]*saved
}

// Bytes is how many bytes the files hold.
func (s Snapshot) Bytes() int64 { return s.bytes }

// Save writes the whole file system, as Load reads it.
func (s Snapshot) Save(w io.Writer) error {
	var of func(n *node) *saved
	of = func(n *node) *saved {
		out := &saved{Mode: n.mode, Mod: n.mod, Data: n.data, Pad: n.pad, Link: n.link, Gen: n.gen}
		for name, k := range n.kids {
			if out.Kids == nil {
				out.Kids = map[string]*saved{}
			}
			out.Kids[name] = of(k)
		}
		return out
	}
	return gob.NewEncoder(w).Encode(of(s.root))
}

// Load reads what Save wrote; all of it is on disk.
func Load(r io.Reader) (Snapshot, error) {
	var in saved
	if err := gob.NewDecoder(r).Decode(&in); err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	var of func(in *saved) *node
	of = func(in *saved) *node {
		s.ino++
		n := &node{ino: s.ino, mode: in.Mode, mod: in.Mod, data: in.Data, pad: in.Pad, link: in.Link, gen: in.Gen, safe: true}
		if in.Mode.IsDir() {
			n.kids = map[string]*node{}
		}
		for name, k := range in.Kids {
			n.kids[name] = of(k)
		}
		return n
	}
	s.root = of(&in)
	s.bytes, s.nodes = sum(s.root)
	return s, nil
}
