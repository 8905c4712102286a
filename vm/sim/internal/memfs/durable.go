package memfs

import (
	"errors"
	"maps"
	"syscall"
	"time"
)

// Allocate makes a file of at least that size, of bytes that were never written
// and read as nothing.
func (f *FS) Allocate(name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	real, old, err := f.walk("fallocate", name, true)
	if err != nil {
		return err
	}
	n := &node{mode: 0o644, mod: time.Now()}
	if old != nil {
		if !old.mode.IsRegular() {
			return pathErr("fallocate", name, syscall.ENODEV)
		}
		c := *old
		n = &c
	}
	n.pad = max(n.pad, size-int64(len(n.data)))
	return f.put("fallocate", real, old, n)
}

// toDisk asks the disk.
func (f *FS) toDisk(name string) error {
	if f.Disk == nil {
		return nil
	}
	err := f.Disk()
	if err != nil {
		f.mu.Lock()
		f.dead = true
		f.mu.Unlock()
		var no syscall.Errno
		if !errors.As(err, &no) {
			no = syscall.EIO
		}
		return pathErr("fsync", name, no)
	}
	return nil
}

// Sync puts everything on disk, if the disk takes it.
func (f *FS) Sync() {
	if f.toDisk("/") != nil {
		return
	}
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
	if err := f.toDisk(name); err != nil {
		return err
	}
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

// Unsynced is how many bytes a crash would lose now: of files whose content is not on
// disk as it is.
func (f *FS) Unsynced() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return unsynced(f.live.root, f.disk.root)
}

func unsynced(n, disk *node) (lost int64) {
	if n == disk {
		return 0
	}
	if n.mode.IsRegular() && !n.safe {
		return int64(len(n.data))
	}
	for name, kid := range n.kids {
		var on *node
		if disk != nil {
			on = disk.kids[name]
		}
		lost += unsynced(kid, on)
	}
	return lost
}
