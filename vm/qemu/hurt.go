package qemu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"refbox/vm"
	"refbox/vm/link"
)

// overlaySize is the size of the disk that a machine's overlay is written on: all
// of the guest's disk and the format's own tables, which take 1/6554 of it.
func overlaySize(s vm.MachineSpec) int64 { return int64(s.DiskMiB)<<20/1024*1025 + 64<<20 }

// machineDisk is a machine's disk over all its processes.
type machineDisk struct{ m *machine }

var _ vm.Disk = machineDisk{}

// Disk implements vm.Machine.
func (m *machine) Disk() vm.Disk { return machineDisk{m} }

func (d machineDisk) Stall(_ context.Context, on bool) error {
	b, err := d.m.current()
	if err != nil {
		return fmt.Errorf("stalling the disk of machine %q: %w", d.m.spec.Name, err)
	}
	b.store.Stall(on)
	return nil
}

func (d machineDisk) FailWrites(_ context.Context, on bool) error {
	b, err := d.m.current()
	if err != nil {
		return fmt.Errorf("breaking the disk of machine %q: %w", d.m.spec.Name, err)
	}
	b.store.FailWrites(on)
	return nil
}

func (d machineDisk) Lost() int64 {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.lost
}

// cut ends a process as a power cut does: what the guest has not flushed is gone.
func (m *machine) cut(b *boot) {
	b.store.Cut()
	b.proc.kill()
	m.mu.Lock()
	m.lost = b.store.Lost()
	m.mu.Unlock()
	<-b.life.Done()
}

// stop freezes the guest. QEMU first waits for what its disk has under way, so a
// stalled one is let go on for that long.
func (m *machine) stop(ctx context.Context, b *boot) error {
	if b.store.Stalled() {
		b.store.Stall(false)
		defer b.store.Stall(true)
	}
	return b.qmp.run(ctx, "stop", nil, nil)
}

// SetClock implements vm.Machine.
func (m *machine) SetClock(ctx context.Context, ahead time.Duration) error {
	if _, err := m.guest.SetClock(ctx, ahead); err != nil {
		return fmt.Errorf("setting the clock of machine %q: %w", m.spec.Name, err)
	}
	return nil
}

// clusterLink is a private link of a cluster.
type clusterLink struct {
	spec vm.LinkSpec
	hub  *link.Hub
	c    *cluster
}

var _ vm.Link = clusterLink{}

// Links implements vm.Cluster.
func (c *cluster) Links() []vm.Link {
	var out []vm.Link
	for _, l := range c.spec.Links {
		out = append(out, clusterLink{l, c.links[l.Name], c})
	}
	return out
}

func (l clusterLink) Spec() vm.LinkSpec { return l.spec }

func (l clusterLink) Impair(from, to string, i vm.Impairment) error {
	for _, m := range []string{from, to} {
		if _, err := l.spec.Addr(m); err != nil {
			return err
		}
	}
	l.hub.Impair(from, to, i)
	return nil
}

func (l clusterLink) Plug(ctx context.Context, name string, in bool) error {
	if _, err := l.spec.Addr(name); err != nil {
		return err
	}
	m := l.c.Machine(name).(*machine)
	m.mu.Lock()
	b := m.boot
	if in {
		delete(m.pulled, l.spec.Name)
	} else {
		m.pulled[l.spec.Name] = true
	}
	m.mu.Unlock()
	if b == nil {
		return nil // its next process finds the cable so
	}
	return m.setLink(ctx, b, l.spec.Name, in)
}

// setLink sets the carrier of one NIC of a process.
func (m *machine) setLink(ctx context.Context, b *boot, name string, up bool) error {
	i := slices.IndexFunc(endsOf(m.cluster.spec, m.spec.Name), func(e end) bool { return e.link.Name == name })
	if err := b.qmp.run(ctx, "set_link", map[string]any{"name": fmt.Sprintf("n%d", i+1), "up": up}, nil); err != nil {
		return fmt.Errorf("the cable of machine %q on link %q: %w", m.spec.Name, name, err)
	}
	return nil
}

// unplug pulls from a new process the cables that are pulled from its machine.
func (m *machine) unplug(ctx context.Context, b *boot) error {
	for _, l := range m.cluster.spec.Links {
		m.mu.Lock()
		pulled := m.pulled[l.Name]
		m.mu.Unlock()
		if pulled {
			if err := m.setLink(ctx, b, l.Name, false); err != nil {
				return err
			}
		}
	}
	return nil
}
