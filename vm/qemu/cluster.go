package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"refbox/vm"
	"refbox/vm/guest"
	"refbox/vm/link"
)

// cluster is a started set of machines.
type cluster struct {
	host      *hostFacts
	name      string
	spec      vm.Spec
	dir       string
	freePorts func(int) ([]int, error)
	timeout   time.Duration
	machines  []*machine
	links     map[string]*link.Hub
	owner     *os.File // nil when the directory needs no owner

	life context.Context // ends when Close begins
	end  context.CancelFunc
	once sync.Once
	err  error
}

var _ vm.Cluster = (*cluster)(nil)

// newCluster makes a cluster of machines that are all off.
func (d *Driver) newCluster(h *hostFacts, spec vm.Spec, s vm.Start) *cluster {
	c := &cluster{host: h, name: s.Name, spec: spec, dir: s.Dir, freePorts: d.ports, timeout: d.timeout, links: map[string]*link.Hub{}}
	c.life, c.end = context.WithCancel(context.Background())
	for _, l := range spec.Links {
		c.links[l.Name] = link.New()
	}
	for i, ms := range spec.Machines {
		m := &machine{
			cluster: c, index: i, spec: ms,
			guest: guest.New(),
			op:    make(chan struct{}, 1),
			done:  make(chan struct{}),

			pulled: map[string]bool{},
		}
		m.console = newConsole(nil)
		if s.Console != nil {
			m.console = newConsole(s.Console(ms.Name))
		}
		c.machines = append(c.machines, m)
	}
	return c
}

// each runs do for every machine at once. The first error ends the others'
// context and is returned.
func (c *cluster) each(ctx context.Context, do func(context.Context, *machine) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for _, m := range c.machines {
		wg.Go(func() {
			if err := do(ctx, m); err != nil {
				mu.Lock()
				if first == nil {
					first = err
				}
				mu.Unlock()
				cancel(err)
			}
		})
	}
	wg.Wait()
	return first
}

// overlay is the file of a machine's own disk.
func (m *machine) overlay() string { return filepath.Join(m.cluster.dir, m.spec.Name+".qcow2") }

// Start implements vm.Driver.
func (d *Driver) Start(ctx context.Context, t vm.Template, s vm.Start) (vm.Cluster, error) {
	tpl, ok := t.(*template)
	if !ok {
		return nil, errForeignTemplate
	}
	if !nameForm.MatchString(s.Name) {
		return nil, fmt.Errorf("cluster name %.40q: want up to 32 lower-case letters, digits and dashes", s.Name)
	}
	owner, err := claim(s.Dir)
	if err != nil {
		return nil, err
	}
	c := d.newCluster(tpl.host, tpl.spec, s)
	c.owner = owner
	err = c.each(ctx, func(ctx context.Context, m *machine) error { return m.startFrom(ctx, tpl, s) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", s.Name, err), c.Close())
	}
	return c, nil
}

// startFrom brings one machine up and gives it its identity.
func (m *machine) startFrom(ctx context.Context, t *template, s vm.Start) error {
	blank, base := t.blank(m.index), t.disk(m.index)
	if s.Saved != "" {
		s.Cold = true
		blank, base = m.saved(s.Saved), m.base()
		if err := linkFile(base, m.savedBase(s.Saved)); err != nil {
			return fmt.Errorf("machine %q: its saved disk: %w", m.spec.Name, err)
		}
	}
	if err := copyFile(m.overlay(), blank); err != nil {
		return fmt.Errorf("machine %q: making its disk: %w", m.spec.Name, err)
	}
	p := plan{launch: launchOf(t.spec, m.index, t.host), overlay: m.overlay()}
	p.layers = []string{base, t.host.image.Disk}
	p.Layers, p.Served = len(p.layers), true
	m.again = p
	id, err := m.identity(s)
	if err != nil {
		return err
	}
	if s.Cold {
		if err := m.bootCold(ctx, p); err != nil {
			return fmt.Errorf("machine %q: %w", m.spec.Name, err)
		}
	} else {
		p.RAM, p.ram, p.Incoming, p.state = ramPrivate, t.ram(m.index), true, t.state(m.index)
		b, err := m.launch(ctx, p)
		if err != nil {
			return err
		}
		if err := b.loadState(ctx, p.state); err != nil {
			return fmt.Errorf("machine %q: resuming the prepared state: %w", m.spec.Name, err)
		}
		if err := b.qmp.run(ctx, "cont", nil, nil); err != nil {
			return fmt.Errorf("machine %q: resuming the prepared state: %w", m.spec.Name, err)
		}
	}
	if _, err := m.guest.Identify(ctx, id); err != nil {
		return fmt.Errorf("machine %q: giving it its identity: %w", m.spec.Name, err)
	}
	if s.Cold {
		return m.settled(ctx)
	}
	return nil
}

// identity makes m a new identity for s.
func (m *machine) identity(s vm.Start) (guest.Identity, error) {
	name := s.Name
	if len(m.cluster.spec.Machines) > 1 {
		name += "-" + m.spec.Name
	}
	if len(name) > 63 {
		return guest.Identity{}, fmt.Errorf("machine %q: hostname %q is longer than 63 characters", m.spec.Name, name)
	}
	id, hostKey, err := guest.NewIdentity(name, s.PasswordOf(m.spec.Name), s.AuthorizedKey)
	if err != nil {
		return id, fmt.Errorf("machine %q: %w", m.spec.Name, err)
	}
	m.hostKey = hostKey
	for _, e := range endsOf(m.cluster.spec, m.spec.Name) {
		id.Links = append(id.Links, guest.Link{MAC: e.mac(), CIDR: e.ip(e.position) + "/24"})
		for i, other := range e.link.Ends {
			if other != m.spec.Name {
				id.Hosts = append(id.Hosts, guest.Host{IP: e.ip(i), Name: other})
			}
		}
	}
	return id, nil
}

// settled waits until the guest's init has started all that it starts at boot,
// whether all of it succeeded or not.
func (m *machine) settled(ctx context.Context) error {
	if _, err := m.guest.Run(ctx, []string{"systemctl", "is-system-running", "--wait"}, nil); err != nil {
		return fmt.Errorf("machine %q: waiting for its boot to finish: %w", m.spec.Name, err)
	}
	return nil
}

// Machines implements vm.Cluster.
func (c *cluster) Machines() []vm.Machine {
	out := make([]vm.Machine, len(c.machines))
	for i, m := range c.machines {
		out[i] = m
	}
	return out
}

// Machine implements vm.Cluster.
func (c *cluster) Machine(name string) vm.Machine {
	for _, m := range c.machines {
		if m.spec.Name == name {
			return m
		}
	}
	return nil
}

// Close implements vm.Cluster.
func (c *cluster) Close() error {
	c.once.Do(func() {
		c.end()
		var problems []error
		for _, m := range c.machines {
			// What is under way ends with c.life; after it nothing begins.
			m.op <- struct{}{}
		}
		for _, m := range c.machines {
			problems = append(problems, m.close())
			for _, f := range []string{m.overlay(), m.base()} {
				if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
					problems = append(problems, err)
				}
			}
		}
		for _, h := range c.links {
			problems = append(problems, h.Close())
		}
		if c.owner != nil {
			problems = append(problems, os.Remove(c.owner.Name()), c.owner.Close())
		}
		c.err = errors.Join(problems...)
	})
	return c.err
}
