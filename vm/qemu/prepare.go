package qemu

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
)

// Prepare implements vm.Driver. Two processes that want the same template make
// it once; one that dies over it leaves nothing that is taken for a template.
func (d *Driver) Prepare(ctx context.Context, spec vm.Spec, report vm.Report) (vm.Template, error) {
	h, err := d.facts(ctx, spec.Packages, report)
	if err != nil {
		return nil, err
	}
	if err := check(spec, h.image.DiskMiB); err != nil {
		return nil, err
	}
	files := make([]filesTar, len(spec.Machines))
	for i, m := range spec.Machines {
		if files[i], err = packFiles(m.Files); err != nil {
			return nil, fmt.Errorf("machine %q: %w", m.Name, err)
		}
	}
	t := &template{key: keyOf(spec, files, h), spec: spec, host: h, files: files}
	shelf := filepath.Join(d.cfg.CacheDir, "templates")
	if err := os.MkdirAll(shelf, 0o700); err != nil {
		return nil, fmt.Errorf("making the templates' place: %w", err)
	}
	home := filepath.Join(shelf, t.key)
	if t.found(home) {
		return t, nil
	}
	unlock, err := lock(ctx, home+".lock", func() {
		progress(report, "waiting for the same machine to be prepared once", -1)
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	if t.found(home) {
		return t, nil
	}
	// Left by a process that died: the lock is ours, so nobody works in them.
	stale, _ := filepath.Glob(home + ".tmp-*")
	for _, s := range stale {
		os.RemoveAll(s)
	}
	if err := errors.Join(prune(shelf, time.Now()), room(shelf, spec)); err != nil {
		return nil, err
	}
	if t.dir, err = os.MkdirTemp(shelf, t.key+".tmp-"); err != nil {
		return nil, fmt.Errorf("making the template's place: %w", err)
	}
	defer os.RemoveAll(t.dir) // gone when it was renamed
	if err := d.prepare(ctx, t, report); err != nil {
		return nil, fmt.Errorf("preparing the machines: %w", err)
	}
	if err := os.Rename(t.dir, home); err != nil {
		return nil, fmt.Errorf("keeping the template: %w", err)
	}
	t.dir = home
	return t, nil
}

// found takes the template at home if it is there, and notes that it is used.
func (t *template) found(home string) bool {
	now := time.Now()
	if os.Chtimes(filepath.Join(home, metaName), now, now) != nil {
		return false
	}
	t.dir = home
	return true
}

const metaName = "template.json"

// keepUnused is how long a template that nobody uses is kept. Each takes a few
// hundred MiB, and each change of an arena or of the image makes another.
const keepUnused = 14 * 24 * time.Hour

// prune removes templates that were not used for long, and halves of some. A
// cluster may still run from one only if it was started as long ago.
func prune(shelf string, now time.Time) error {
	metas, err := filepath.Glob(filepath.Join(shelf, "*", metaName))
	for _, meta := range metas {
		st, statErr := os.Stat(meta)
		if statErr == nil && now.Sub(st.ModTime()) > keepUnused {
			home := filepath.Dir(meta)
			err = errors.Join(err, os.RemoveAll(home), os.RemoveAll(home+".lock"))
		}
	}
	return errors.Join(err, pruneHalves(shelf))
}

// pruneHalves removes what was being prepared by processes that died. Who still
// prepares holds the template's lock.
func pruneHalves(shelf string) error {
	halves, err := filepath.Glob(filepath.Join(shelf, "*.tmp-*"))
	for _, dir := range halves {
		home, _, _ := strings.Cut(dir, ".tmp-")
		f, lockErr := os.OpenFile(home+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		if lockErr == nil && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		f.Close()
	}
	return err
}

// room refuses to prepare where the template does not fit: running out of space
// under a guest's memory would kill it without a word.
func room(shelf string, spec vm.Spec) error {
	var st unix.Statfs_t
	if err := unix.Statfs(shelf, &st); err != nil {
		return fmt.Errorf("looking for space at %s: %w", shelf, err)
	}
	need := 0
	for _, m := range spec.Machines {
		need += m.MemoryMiB + 256 // its memory, and what its set-up writes
	}
	if free := int(st.Bavail * uint64(st.Bsize) >> 20); free < need {
		return fmt.Errorf("%w in %s: preparing the machines takes up to %d MiB, and %d are free; free some, or set XDG_CACHE_HOME to a folder on a larger disk",
			unix.ENOSPC, shelf, need, free)
	}
	return nil
}

// lock takes the lock file at path across processes; waiting is called once if
// somebody has it.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the template: %w", err)
	}
	// The kernel tells nobody when a lock becomes free but those who block in
	// asking, which a context cannot end: so ask now and then.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		}
	}
}

// prepare boots t's machines once and saves their state in t.dir.
func (d *Driver) prepare(ctx context.Context, t *template, report vm.Report) error {
	c := d.newCluster(t.host, t.spec, vm.Start{Name: "prepared", Dir: t.dir})
	err := c.prepare(ctx, t, report)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	for i := range t.spec.Machines {
		for _, f := range []string{t.ram(i), t.disk(i)} {
			if err := syncFile(f); err != nil {
				return err
			}
		}
		if err := os.Chmod(t.disk(i), 0o400); err != nil {
			return err
		}
	}
	meta, err := json.MarshalIndent(map[string]any{
		"key": t.key, "qemu": t.host.build, "accel": t.host.accel, "image": t.host.image.Digest,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, metaName), append(meta, '\n'), 0o600)
}

func (c *cluster) prepare(ctx context.Context, t *template, report vm.Report) error {
	progress(report, "booting", 0)
	err := c.each(ctx, func(ctx context.Context, m *machine) error {
		if err := m.bootForTemplate(ctx, t); err != nil {
			return fmt.Errorf("machine %q: %w", m.spec.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	progress(report, "laying files", 0.5)
	err = c.each(ctx, func(ctx context.Context, m *machine) error {
		if err := m.guest.Untar(ctx, "/", bytes.NewReader(t.files[m.index].data)); err != nil {
			return fmt.Errorf("machine %q: laying its files: %w", m.spec.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range c.machines { // in order: a later machine may need an earlier one
		if len(m.spec.Setup) == 0 {
			continue
		}
		progress(report, "setting up "+m.spec.Name, 0.6+0.2*float64(i)/float64(len(c.machines)))
		r, err := m.guest.Run(ctx, m.spec.Setup, nil)
		if err != nil {
			return fmt.Errorf("machine %q: its set-up: %w", m.spec.Name, err)
		}
		if r.Exit != 0 {
			return fmt.Errorf("machine %q: its set-up %q exits with %d: %q", m.spec.Name, m.spec.Setup, r.Exit, clip(r.Stderr))
		}
	}
	progress(report, "saving", 0.8)
	if err := c.each(ctx, func(ctx context.Context, m *machine) error {
		if err := m.settled(ctx); err != nil {
			return err
		}
		if err := m.quiet(ctx); err != nil {
			return err
		}
		if err := m.guest.Settle(ctx); err != nil {
			return err
		}
		return m.warm(ctx)
	}); err != nil {
		return err
	}
	// All are stopped before any is saved, so that none misses another.
	if err := c.each(ctx, func(ctx context.Context, m *machine) error {
		b, err := m.current()
		if err != nil {
			return err
		}
		return b.qmp.run(ctx, "stop", nil, nil)
	}); err != nil {
		return err
	}
	if err := c.each(ctx, func(ctx context.Context, m *machine) error { return m.save(ctx, t) }); err != nil {
		return err
	}
	progress(report, "saving", 1)
	return nil
}

// warmUp reads the programs that a player's first commands need, with their
// libraries, so that they are in the memory that every resumed machine has.
const warmUp = `for name in sshd sh bash cat grep head ls ps sed ss curl journalctl login python3 sqlite3 systemctl; do
	file=$(command -v "$name") && { cat "$file"; ldd "$file" | grep -o '/[^ ]*' | xargs -r cat; }
done >/dev/null 2>&1; sync`

func (m *machine) warm(ctx context.Context) error {
	if _, err := m.guest.Run(ctx, []string{"/bin/sh", "-c", warmUp}, nil); err != nil {
		return fmt.Errorf("machine %q: warming it up: %w", m.spec.Name, err)
	}
	return nil
}

// quiet waits until the guest's processors are idle: services that have been
// started may still be on their way to be of use, and what is saved is what
// every resumed machine begins with. A guest that never rests is saved busy.
func (m *machine) quiet(ctx context.Context) error {
	const patience, step, calm = 60, 250 * time.Millisecond, 3
	tick := time.NewTicker(step)
	defer tick.Stop()
	var busy, all uint64
	idle := 0
	for range patience {
		stat, err := m.guest.ReadFile(ctx, "/proc/stat", 4<<10)
		if err != nil {
			return fmt.Errorf("machine %q: waiting for it to rest: %w", m.spec.Name, err)
		}
		b, a := cpuTime(string(stat))
		if idle++; a == all || (b-busy)*10 > a-all {
			idle = 0
		}
		if idle == calm {
			return nil
		}
		busy, all = b, a
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// cpuTime is how long the processors have worked and how long they have been,
// from the first line of /proc/stat: user nice system idle iowait ….
func cpuTime(stat string) (busy, all uint64) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseUint(f, 10, 62)
		if err != nil {
			continue // the line's name
		}
		all += n
		if i != 4 {
			busy += n
		}
	}
	return busy, all
}

// bootForTemplate boots m with its memory in the template's file.
func (m *machine) bootForTemplate(ctx context.Context, t *template) error {
	i := m.index
	out, err := exec.CommandContext(ctx, imgTool, "create", "-q", "-f", "qcow2", t.blank(i),
		strconv.Itoa(m.spec.DiskMiB)+"M").CombinedOutput()
	if err != nil {
		return fmt.Errorf("making its disk: %w: %q", err, clip(out))
	}
	if err := copyFile(t.disk(i), t.blank(i)); err != nil {
		return fmt.Errorf("making its disk: %w", err)
	}
	ram, err := os.OpenFile(t.ram(i), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making its memory: %w", err)
	}
	err = errors.Join(ram.Truncate(int64(m.spec.MemoryMiB)<<20), ram.Close(), giveAway(t.ram(i)))
	if err != nil {
		return fmt.Errorf("making its memory: %w", err)
	}
	p := plan{launch: launchOf(t.spec, i, t.host), overlay: t.disk(i), layers: []string{t.host.image.Disk}, ram: t.ram(i)}
	p.Layers, p.RAM = 1, ramShared
	if err := m.bootCold(ctx, p); err != nil {
		return err
	}
	if m.spec.DiskMiB > t.host.image.DiskMiB {
		if err := m.guest.Grow(ctx); err != nil {
			return err
		}
	}
	// A throwaway identity, for what the set-up may need of it: names and
	// addresses.
	id, err := m.identity(vm.Start{Name: "prepared", Password: rand.Text()})
	if err != nil {
		return err
	}
	if _, err := m.guest.Identify(ctx, id); err != nil {
		return err
	}
	return m.settled(ctx)
}

// save writes m's state and ends its process, which leaves its memory and its
// disk as they are at that instant.
func (m *machine) save(ctx context.Context, t *template) error {
	b, err := m.current()
	if err != nil {
		return err
	}
	if err := b.saveState(ctx, t.state(m.index)); err != nil {
		return fmt.Errorf("machine %q: saving its state: %w", m.spec.Name, err)
	}
	if err := b.qmp.run(ctx, "quit", nil, nil); err != nil && !errors.Is(err, vm.ErrTransport) {
		return fmt.Errorf("machine %q: %w", m.spec.Name, err)
	}
	select {
	case <-b.life.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// clip bounds what a guest or a tool said in an error.
func clip(b []byte) []byte { return b[max(0, len(b)-500):] }
