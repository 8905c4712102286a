package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"refbox/vm"
	"refbox/vm/disk"
)

// Files of a saved state: a machine's own disk, and the template's under it, which is
// another one when the template is made anew.
func (m *machine) saved(dir string) string     { return filepath.Join(dir, m.spec.Name+".qcow2") }
func (m *machine) savedBase(dir string) string { return filepath.Join(dir, m.spec.Name+".base") }

// base is the template's disk of a machine that was started from a saved state: the
// state may be thrown away while it runs.
func (m *machine) base() string { return m.savedBase(m.cluster.dir) }

// Save implements vm.Cluster.
func (c *cluster) Save(ctx context.Context, dir string, most int64) (err error) {
	for _, m := range c.machines {
		var end func()
		if ctx, end, err = m.begin(ctx, "saving"); err != nil {
			return err
		}
		defer end()
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("saving %s: %w", c.name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("saving %s: %w", c.name, err), os.RemoveAll(dir))
		}
	}()
	for _, m := range c.machines {
		if err := linkFile(m.savedBase(dir), m.again.layers[0]); err != nil {
			return err
		}
	}
	stores, err := c.synced(ctx)
	if err != nil {
		return err
	}
	release := disk.Hold(stores...)
	defer release()
	for _, m := range c.machines {
		info, err := os.Stat(m.overlay())
		if err != nil {
			return err
		}
		if most -= info.Size(); most < 0 {
			return fmt.Errorf("its disks: %w", vm.ErrTooLarge)
		}
	}
	for _, m := range c.machines {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := copyFile(m.saved(dir), m.overlay()); err != nil {
			return err
		}
	}
	return nil
}

// synced has every running guest put on its disk what it has written, and gives the
// disks of the machines that are on.
func (c *cluster) synced(ctx context.Context) ([]*disk.Disk, error) {
	var mu sync.Mutex
	var stores []*disk.Disk
	err := c.each(ctx, func(ctx context.Context, m *machine) error {
		b, err := m.current()
		switch {
		case errors.Is(err, errGone):
			return err
		case err != nil:
			return nil // it is off, and its file at rest
		}
		mu.Lock()
		stores = append(stores, b.store)
		mu.Unlock()
		if p, err := b.power(ctx); err != nil || p != vm.PowerOn {
			return err
		}
		if err := m.guest.Sync(ctx); err != nil {
			return fmt.Errorf("machine %q: %w", m.spec.Name, err)
		}
		return nil
	})
	return stores, err
}

// linkFile gives a file that nobody writes another name, on another file system a copy.
func linkFile(to, from string) error {
	err := os.Link(from, to)
	if errors.Is(err, syscall.EXDEV) {
		return copyFile(to, from)
	}
	return err
}
