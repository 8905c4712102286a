package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"refbox/vm"
	"refbox/vm/sim/internal/memfs"
)

func savedDisk(dir, machine string) string { return filepath.Join(dir, machine+".disk") }

// Save implements vm.Cluster.
func (c *cluster) Save(ctx context.Context, dir string, most int64) (err error) {
	fail := func(err error) error { return fmt.Errorf("save simulated cluster: %w", err) }
	for _, m := range c.machines {
		release, err := m.take(ctx, "save", vm.PowerOn, vm.PowerPaused, vm.PowerOff)
		if err != nil {
			return err
		}
		defer release()
	}
	for _, m := range c.machines {
		if p, _ := m.Power(ctx); p != vm.PowerOn {
			continue
		}
		if err := m.Guest().Sync(ctx); err != nil {
			return fail(err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fail(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fail(err), os.RemoveAll(dir))
		}
	}()
	var disks []memfs.Snapshot
	for _, m := range c.machines {
		s := m.atRest()
		if most -= s.Bytes(); most < 0 {
			return vm.ErrTooLarge
		}
		disks = append(disks, s)
	}
	for i, m := range c.machines {
		f, err := os.Create(savedDisk(dir, m.spec.Name))
		if err != nil {
			return err
		}
		if err := errors.Join(disks[i].Save(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// atRest is the disk as a power cut would leave it now.
func (m *machine) atRest() memfs.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.boot == nil:
		return m.disk
	case m.cl.d.cfg.LoseUnsynced:
		return m.boot.fs.Synced()
	}
	return m.boot.fs.Snapshot()
}

// saved is the template with the disks that Save kept.
func (t *template) saved(dir string) (*template, error) {
	own := *t
	own.images = slices.Clone(t.images)
	for i, m := range t.spec.Machines {
		f, err := os.Open(savedDisk(dir, m.Name))
		if err != nil {
			return nil, err
		}
		own.images[i].disk, err = memfs.Load(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("the saved disk of machine %s: %w", m.Name, err)
		}
	}
	return &own, nil
}
