package memfs

import "maps"

// Sync puts everything on disk.
func (f *FS) Sync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live.root = settle(f.live.root, nil, true)
	f.disk = f.live
}

// settle is n as the disk has it: with the content of every file if all is set,
// else with the content that old, the same place on the disk before, had. What
// is the same as before is shared.
func settle(n, old *node, all bool) *node {
	if n == old || n.kids == nil && n.safe {
		return n
	}
	if !n.mode.IsDir() {
		c := *n
		if !all && n.mode.IsRegular() {
			c.data = nil
			if old != nil && old.ino == n.ino {
				c.data = old.data
			}
		}
		c.safe = true
		return &c
	}
	c := n
	for name, kid := range n.kids {
		var oldKid *node
		if old != nil {
			oldKid = old.kids[name]
		}
		k := settle(kid, oldKid, all)
		if k == kid {
			continue
		}
		if c == n {
			d := *n
			d.kids = maps.Clone(n.kids)
			c = &d
		}
		c.kids[name] = k
	}
	return c
}

// SyncFile puts one file on disk, or its absence, and all names (see New).
func (f *FS) SyncFile(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, n, err := f.walk("fsync", name, false)
	if err != nil {
		return err
	}
	if n != nil && !n.mode.IsDir() && !n.safe {
		c := *n
		c.safe = true
		f.live.root = setAt(f.live.root, split(real), &c)
	}
	disk := f.live // its sums bound those of what a crash leaves
	disk.root = settle(f.live.root, f.disk.root, false)
	f.disk = disk
	return nil
}
