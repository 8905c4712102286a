package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"refbox/vm"
)

// cluster is a started set of machines and their private links.
type cluster struct {
	d        *Driver
	spec     vm.Spec
	machines []*machine
	ips      map[string]*machine // addresses on the links
	linkOf   map[string]int      // address to the position of its link
	hurt     *hurt
	once     sync.Once
}

func (d *Driver) start(ctx context.Context, t *template, s vm.Start, resume bool) (*cluster, error) {
	c := &cluster{d: d, spec: t.spec, ips: map[string]*machine{}, linkOf: map[string]int{}, hurt: newHurt()}
	for i, ms := range t.spec.Machines {
		m, err := c.newMachine(ms, t.images[i], s)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.machines = append(c.machines, m)
	}
	for li, l := range t.spec.Links {
		for i, end := range l.Ends {
			ip := fmt.Sprintf("%s.%d", l.Subnet, 10+i)
			c.ips[ip] = c.machine(end)
			c.linkOf[ip] = li
		}
	}
	// The machines come up together: a service may wait for its neighbour.
	errs := make(chan error, len(c.machines))
	for i, m := range c.machines {
		go func() { errs <- m.first(ctx, t.images[i], s, resume) }()
	}
	var err error
	for range c.machines {
		if e := <-errs; e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) machine(name string) *machine {
	i := slices.IndexFunc(c.machines, func(m *machine) bool { return m.spec.Name == name })
	if i < 0 {
		return nil
	}
	return c.machines[i]
}

// linked reports whether from reaches the address of to, which is on the link
// that the address belongs to only for that link's ends.
func (c *cluster) linked(from, to *machine, ip string) bool {
	i, ok := c.linkOf[ip]
	if !ok {
		return false
	}
	ends := c.spec.Links[i].Ends
	return slices.Contains(ends, from.spec.Name) && slices.Contains(ends, to.spec.Name)
}

// hosts is a machine's /etc/hosts.
func (c *cluster) hosts(m *machine, hostname string) string {
	text := "127.0.0.1\tlocalhost\n127.0.1.1\t" + hostname + "\n"
	for _, l := range c.spec.Links {
		if !slices.Contains(l.Ends, m.spec.Name) {
			continue
		}
		for i, end := range l.Ends {
			text += fmt.Sprintf("%s.%d\t%s\n", l.Subnet, 10+i, end)
		}
	}
	return text
}

func (c *cluster) Machines() []vm.Machine {
	list := make([]vm.Machine, len(c.machines))
	for i, m := range c.machines {
		list[i] = m
	}
	return list
}

func (c *cluster) Machine(name string) vm.Machine {
	if m := c.machine(name); m != nil {
		return m
	}
	return nil
}

// Close ends every machine and waits for all that runs in it.
func (c *cluster) Close() error {
	c.once.Do(func() {
		var wg sync.WaitGroup
		for _, m := range c.machines {
			wg.Go(m.close)
		}
		wg.Wait()
	})
	return nil
}

// sleep waits for a simulated time.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
