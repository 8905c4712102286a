package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
)

// field is the machines that lie on links between territories: one cluster, of which
// each seat gets its own machine.
type field struct {
	spec    vm.Spec
	dir     string // for its disks
	key     ssh.Signer
	begun   chan struct{} // closed: it has started, or err says why not
	cluster vm.Cluster
	err     error
}

// newField is nil where no territories are linked.
func (h *Heat) newField(disks string) (*field, error) {
	spec, err := h.cfg.Package.Field()
	if err != nil || len(spec.Machines) == 0 {
		return nil, err
	}
	f := &field{spec: spec, dir: filepath.Join(disks, "field"), begun: make(chan struct{})}
	f.key, err = newKey()
	return f, err
}

func (f *field) has(territory string) bool {
	return f != nil && slices.ContainsFunc(f.spec.Machines, func(m vm.MachineSpec) bool { return m.Name == territory })
}

// start prepares and starts the machines; begun is closed when it returns.
func (f *field) start(ctx context.Context, h *Heat) {
	defer close(f.begun)
	f.err = f.tryStart(ctx, h)
}

func (f *field) tryStart(ctx context.Context, h *Heat) error {
	t, err := h.cfg.Driver.Prepare(ctx, f.spec, func(step string, done float64) { h.cfg.Progress(Progress{Step: step, Done: done}) })
	if err != nil {
		return fmt.Errorf("prepare the machines: %w", err)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return err
	}
	// Who is root on one machine must not know how to become it on another.
	start := vm.Start{Name: "field", Passwords: map[string]string{}, AuthorizedKey: f.key.PublicKey(), Cold: h.cfg.Cold, Dir: f.dir,
		Console: func(machine string) io.Writer { return h.seat(machine).console(machine) }}
	for _, s := range h.seats {
		start.Passwords[s.id()] = s.password
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(startTime)*h.slow))
	defer cancel()
	f.cluster, err = h.cfg.Driver.Start(ctx, t, start)
	return err
}

// part is the machine of a territory, once the field has started.
func (f *field) part(ctx context.Context, territory string) (vm.Cluster, error) {
	select {
	case <-f.begun:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if f.err != nil {
		return nil, f.err
	}
	return part{f.cluster.Machine(territory)}, nil
}

// close ends all the machines.
func (f *field) close() {
	if f != nil && f.cluster != nil {
		f.cluster.Close()
	}
}

// part is one machine of a field as a cluster. Its links are the field's.
type part struct{ m vm.Machine }

func (p part) Machines() []vm.Machine { return []vm.Machine{p.m} }
func (p part) Links() []vm.Link       { return nil }

func (p part) Machine(name string) vm.Machine {
	if p.m.Name() != name {
		return nil
	}
	return p.m
}

// Save keeps nothing: a machine of a field is no seat's to start again alone.
func (p part) Save(context.Context, string, int64) error {
	return errors.New("a machine on a link between seats is not saved alone")
}

// Close switches the machine off: its process ends with the field.
func (p part) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), switchOff)
	defer cancel()
	err := p.m.PowerCut(ctx)
	if errors.Is(err, vm.ErrPower) { // it is off
		return nil
	}
	return err
}

// switchOff bounds switching one machine off.
const switchOff = 10 * time.Second
