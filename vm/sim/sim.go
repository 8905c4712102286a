// Package sim is the in-process twin of the QEMU driver: machines without a
// hypervisor, for seasons, scale and referee tests. A machine is an in-memory
// disk, a small model of systemd, a shell whose commands are Go functions, a
// serial console, an SSH server, and programs: Go functions registered for the
// guest files that units and shells execute.
//
// Beside what package vm promises:
//
//   - No path, command or signal from a guest reaches the host's files or
//     processes; no address but the cluster's own can be dialled.
//   - A started machine shares with its template every file that it has not
//     written.
//   - Every goroutine ends before Cluster.Close returns, provided that programs
//     return when their context ends.
//
// It is a model for tests, not a sandbox for strangers: a guest script can
// still exhaust this process's stack or processor.
//
// What differs from a real machine: there is one user, root; ownership and
// permissions other than the execute bits mean nothing; an unwritten /proc file
// is not there; memory_mib limits nothing; a saved state keeps files, running
// units and their listening ports, but not a program's memory, so programs
// restart from their files on Start.
package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/vm"
	"refbox/vm/sim/internal/memfs"
)

// version is part of every template's key.
const version = "sim-1"

// Config says what simulated machines are made of.
type Config struct {
	// Programs are what guest files do when they are executed, by absolute
	// path. The file must exist in the guest and be executable, or be given to
	// python3; a file whose first line names a shell, or that is a symbolic
	// link to something else, runs as what it is, so a player who replaces the
	// file replaces the program.
	Programs map[string]Program
	// Boot is the time from power to systemd; zero means 5 ms.
	Boot time.Duration
	// Resume is the time that a prepared start takes; zero means 1 ms.
	Resume time.Duration
	// LoseUnsynced makes PowerCut and Reset lose what was not synced.
	LoseUnsynced bool
}

// Driver makes simulated clusters. It implements vm.Driver.
type Driver struct {
	cfg    Config
	mu     sync.Mutex
	made   map[string]*preparing
	faults map[[2]string]*Faults
}

type preparing struct {
	done chan struct{}
	t    *template
	err  error
}

// New makes a driver.
func New(cfg Config) *Driver {
	cfg.Programs = maps.Clone(cfg.Programs)
	cfg.Boot = cmp.Or(cfg.Boot, 5*time.Millisecond)
	cfg.Resume = cmp.Or(cfg.Resume, time.Millisecond)
	return &Driver{cfg: cfg, made: map[string]*preparing{}, faults: map[[2]string]*Faults{}}
}

var _ vm.Driver = (*Driver)(nil)

// Kind is "sim".
func (d *Driver) Kind() string { return "sim" }

// Versions names the model.
func (d *Driver) Versions(context.Context, []string) (map[string]string, error) {
	return map[string]string{"sim": version, "go": runtime.Version()}, nil
}

// template is a prepared cluster: one image per machine.
type template struct {
	key    string
	spec   vm.Spec
	images []image
}

// image is one machine's saved state.
type image struct {
	disk   memfs.Snapshot
	active []string // units that ran, in the order in which they were started
	ports  []int    // that they listened on
}

func (t *template) Key() string   { return t.key }
func (t *template) Spec() vm.Spec { return t.spec }

// Prepare boots the cluster once, lays the files, runs the set-up and keeps
// what is then on the disks and running. Concurrent calls for one spec share
// the work; a failure is not kept.
func (d *Driver) Prepare(ctx context.Context, spec vm.Spec, report vm.Report) (vm.Template, error) {
	if report == nil {
		report = func(string, float64) {}
	}
	if err := check(spec); err != nil {
		return nil, err
	}
	key, err := d.key(spec)
	if err != nil {
		return nil, err
	}
	for {
		d.mu.Lock()
		p := d.made[key]
		if p == nil {
			break
		}
		d.mu.Unlock()
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("prepare simulated cluster: %w", ctx.Err())
		}
		if p.err == nil {
			return p.t, nil
		}
		if !errors.Is(p.err, context.Canceled) && !errors.Is(p.err, context.DeadlineExceeded) {
			return nil, p.err
		}
	}
	p := &preparing{done: make(chan struct{})}
	d.made[key] = p
	d.mu.Unlock()
	p.t, p.err = d.prepare(ctx, key, spec, report)
	if p.err != nil {
		d.mu.Lock()
		delete(d.made, key)
		d.mu.Unlock()
	}
	close(p.done)
	if p.err != nil {
		return nil, p.err
	}
	return p.t, nil
}

var nameOK = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$`)

func check(spec vm.Spec) error {
	if len(spec.Machines) == 0 {
		return errors.New("prepare simulated cluster: the spec has no machine")
	}
	if len(spec.Packages) > 0 {
		return fmt.Errorf("prepare simulated cluster: it has none of Debian's packages (%s): only real machines do; run it with --machines qemu", strings.Join(spec.Packages, ", "))
	}
	seen := map[string]bool{}
	for _, m := range spec.Machines {
		if !nameOK.MatchString(m.Name) || seen[m.Name] {
			return fmt.Errorf("prepare simulated cluster: machine name %q is taken or no hostname", m.Name)
		}
		seen[m.Name] = true
		if m.Runner != nil {
			return fmt.Errorf("prepare simulated cluster: machine %s has a runner: that starts real machines only", m.Name)
		}
		for _, p := range m.Forwards {
			if p < 1 || p > 65535 {
				return fmt.Errorf("prepare simulated cluster: machine %s: forward %d is no port", m.Name, p)
			}
		}
	}
	links := map[string]bool{}
	for _, l := range spec.Links {
		if links[l.Name] {
			return fmt.Errorf("prepare simulated cluster: two links are called %q", l.Name)
		}
		links[l.Name] = true
		if len(l.Ends) < 2 || len(l.Ends) > 200 {
			return fmt.Errorf("prepare simulated cluster: link %s has %d ends, not 2 to 200", l.Name, len(l.Ends))
		}
		if !subnetOK.MatchString(l.Subnet) {
			return fmt.Errorf("prepare simulated cluster: link %s: %q is not the first three octets of an address", l.Name, l.Subnet)
		}
		for _, e := range l.Ends {
			if !seen[e] {
				return fmt.Errorf("prepare simulated cluster: link %s ends at %q, which is no machine", l.Name, e)
			}
		}
	}
	return nil
}

var subnetOK = regexp.MustCompile(`^(\d{1,3}\.){2}\d{1,3}$`)

// key digests everything that an image depends on.
func (d *Driver) key(spec vm.Spec) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode([]any{version, slices.Sorted(maps.Keys(d.cfg.Programs)), spec.Links})
	for _, m := range spec.Machines {
		files := m.Files
		m.Files = nil
		_ = enc.Encode(m)
		if files == nil {
			continue
		}
		err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			return enc.Encode([]any{name, data})
		})
		if err != nil {
			return "", fmt.Errorf("prepare simulated cluster: files of machine %s: %w", m.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (d *Driver) prepare(ctx context.Context, key string, spec vm.Spec, report vm.Report) (*template, error) {
	t := &template{key: key, spec: spec}
	for _, m := range spec.Machines {
		disk, err := baseImage(m)
		if err != nil {
			return nil, fmt.Errorf("prepare machine %s: %w", m.Name, err)
		}
		t.images = append(t.images, image{disk: disk})
	}
	report("boot", 0)
	c, err := d.start(ctx, t, vm.Start{Name: "prepare", Cold: true}, false)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i, m := range c.machines {
		report("set up "+m.spec.Name, float64(i)/float64(len(c.machines)))
		if err := m.setup(ctx); err != nil {
			return nil, fmt.Errorf("prepare machine %s: %w", m.spec.Name, err)
		}
	}
	for i, m := range c.machines {
		b := m.current()
		if b == nil {
			return nil, fmt.Errorf("prepare machine %s: its set-up switched it off", m.spec.Name)
		}
		b.sys.settle(ctx)
		b.fs.Sync()
		t.images[i] = image{disk: b.fs.Snapshot(), active: b.sys.running(), ports: b.unitPorts()}
	}
	report("ready", 1)
	return t, nil
}

// setup runs the spec's set-up command in the guest.
func (m *machine) setup(ctx context.Context) error {
	b := m.current()
	if len(m.spec.Setup) == 0 || b == nil {
		return nil
	}
	var out tail
	code, err := b.command(ctx, m.spec.Setup, nil, &out, &out)
	switch {
	case err != nil:
		return fmt.Errorf("its set-up %q: %w", m.spec.Setup, err)
	case ctx.Err() != nil:
		return fmt.Errorf("its set-up %q: %w", m.spec.Setup, ctx.Err())
	case code != 0:
		return fmt.Errorf("its set-up %q exits with %d: %q", m.spec.Setup, code, out.String())
	}
	return nil
}

// Start makes a running cluster from a template of this driver.
func (d *Driver) Start(ctx context.Context, t vm.Template, s vm.Start) (vm.Cluster, error) {
	own, ok := t.(*template)
	if !ok {
		return nil, fmt.Errorf("start simulated cluster %s: the template comes from another driver; prepare it with this one", s.Name)
	}
	if s.Saved != "" {
		var err error
		if own, err = own.saved(s.Saved); err != nil {
			return nil, fmt.Errorf("start simulated cluster %s: %w", s.Name, err)
		}
		s.Cold = true
	}
	c, err := d.start(ctx, own, s, !s.Cold)
	if err != nil {
		return nil, err
	}
	return c, nil
}
