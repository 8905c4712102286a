package sim

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"refbox/vm/sim/internal/memfs"
)

const maxProcs = 512 // processes of one machine at once

type bootKind int

const (
	bootCold   bootKind = iota // from power on, with messages
	bootResume                 // from the prepared state, silently
)

// boot is a machine between power on and power off. It has its own view of the
// disk: what a program of a dead boot still writes goes nowhere.
type boot struct {
	m      *machine
	id     string
	began  time.Time
	fs     *memfs.FS
	sys    *systemd
	ctx    context.Context
	cancel context.CancelFunc
	tasks  tasks

	// Of the host's order for this boot. Altered is set before the agent is up.
	ordered []string
	altered string

	ahead   atomic.Int64 // of the wall clock against the host's, in nanoseconds
	agentUp atomic.Bool
	leaving atomic.Bool // a shutdown has begun

	mu      sync.Mutex
	host    string // set by hostname, "" means /etc/hostname
	procs   map[int]*Process
	lastPID int
	ports   []*port
	conns   map[*conn]struct{}
}

// makeBoot is called with m.mu held.
func (m *machine) makeBoot() *boot {
	id := randomHex(16)
	b := &boot{m: m, began: time.Now(), procs: map[int]*Process{}, lastPID: 200, conns: map[*conn]struct{}{},
		id: strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")}
	b.ordered, m.wants = m.wants, nil
	b.ctx, b.cancel = context.WithCancel(m.life)
	b.fs = memfs.New(m.disk, m.limit())
	b.fs.Generate = b.generate
	b.fs.Disk = func() error { return m.store.take(b.ctx) }
	b.sys = newSystemd(b)
	return b
}

// run takes the boot from power on to all its units started.
func (b *boot) run(how bootKind, im image) {
	if how == bootResume {
		if sleep(b.ctx, b.m.cl.d.cfg.Resume) != nil {
			return
		}
		b.setUp()
		b.sys.restore(b.ctx, im.active)
		return
	}
	for _, line := range []string{
		"Linux version 6.1.0-sim-amd64 (refbox) #1 SMP PREEMPT_DYNAMIC",
		fmt.Sprintf("Memory: %dK available", b.m.spec.MemoryMiB*1024),
		fmt.Sprintf("smp: Brought up 1 node, %d CPUs", max(b.m.spec.VCPUs, 1)),
		"EXT4-fs (vda): mounted filesystem with ordered data mode",
	} {
		b.printk(line)
	}
	if sleep(b.ctx, b.m.cl.d.cfg.Boot) != nil {
		return
	}
	b.setUp()
	b.print("systemd[1]: Hostname set to <" + b.hostname() + ">.\n")
	b.sys.boot(b.ctx)
}

// setUp does what the early boot does to the file systems.
func (b *boot) setUp() {
	for _, dir := range []string{"/run", "/tmp", "/dev/shm"} {
		_ = b.fs.RemoveAll(dir)
		_ = b.fs.Mkdir(dir, 0o755)
	}
	_ = b.fs.MkdirAll("/run/lock", 0o755)
	for i := range b.m.links() {
		dir := fmt.Sprintf("/sys/class/net/eth%d/statistics", i+1)
		_ = b.fs.MkdirAll(dir, 0o755)
		_ = b.fs.Special(dir+"/rx_packets", fmt.Sprint("rx", i), 0o444) // there since an earlier boot
	}
	b.obey()
	// A machine whose id was removed gets a new one, as systemd does.
	if id, err := b.fs.ReadFile("/etc/machine-id"); err != nil || len(bytes.TrimSpace(id)) == 0 {
		_ = b.fs.WriteFile("/etc/machine-id", []byte(randomHex(16)+"\n"), 0o444)
	}
}

// obey does what the host ordered of this boot, before any unit starts: it
// compares the referee's agent with the image's, and links the wanted units.
func (b *boot) obey() {
	if len(b.ordered) == 0 {
		return
	}
	for _, name := range []string{agentPath, "/usr/lib/systemd/system/" + agentUnit} {
		want, wantErr := pristine(name)
		got, err := b.fs.ReadFile(name)
		if wantErr != nil || err != nil || !bytes.Equal(got, want) {
			b.altered = name
		}
	}
	dir := unitDirs[1] + "/multi-user.target.wants"
	_ = b.fs.MkdirAll(dir, 0o755)
	for _, w := range b.ordered {
		if b.fs.Symlink("/usr/lib/systemd/system/"+w, dir+"/"+w) == nil {
			b.print("refbox-boot: wants " + w + "\n")
		}
	}
}

// kill ends everything in the boot at once.
func (b *boot) kill() {
	b.agentUp.Store(false)
	for _, p := range b.processes() {
		p.dead.Store(true)
	}
	b.cancel()
	b.mu.Lock()
	conns := make([]*conn, 0, len(b.conns))
	for c := range b.conns {
		conns = append(conns, c)
	}
	ports := slices.Clone(b.ports)
	b.mu.Unlock()
	for _, l := range ports {
		l.Close()
	}
	for _, c := range conns {
		reset(c)
	}
}

// print writes to the serial console.
func (b *boot) print(text string) {
	if b.m.gate.wait(b.ctx) == nil {
		b.m.console.print([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	}
}

func (b *boot) printk(line string) {
	b.print(fmt.Sprintf("[%12.6f] %s\n", time.Since(b.began).Seconds(), line))
}

func (b *boot) hostname() string {
	b.mu.Lock()
	host := b.host
	b.mu.Unlock()
	if host != "" {
		return host
	}
	name, _ := b.fs.ReadFile("/etc/hostname")
	if s := strings.TrimSpace(string(name)); s != "" {
		return s
	}
	return "localhost"
}

// listening are the TCP ports that somebody listens on.
func (b *boot) listening() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var nums []int
	for _, l := range b.ports {
		nums = append(nums, l.num)
	}
	slices.Sort(nums)
	return slices.Compact(nums)
}

// unitPorts are the ports on which systemd's own processes listen.
func (b *boot) unitPorts() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var nums []int
	for _, l := range b.ports {
		if l.proc != nil && l.proc.unit != "" {
			nums = append(nums, l.num)
		}
	}
	slices.Sort(nums)
	return slices.Compact(nums)
}

// awaitResumed waits until the units that ran in the saved state run, and
// listen, again.
func (b *boot) awaitResumed(ctx context.Context, im image) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := b.m.await(ctx, func() bool {
		if b.ctx.Err() != nil {
			return true
		}
		have := b.listening()
		return b.sys.allActive(im.active) && !slices.ContainsFunc(im.ports, func(p int) bool { return !slices.Contains(have, p) })
	})
	if err != nil {
		return fmt.Errorf("units %v ran and ports %v were open in the prepared state, and are not once it is resumed (open: %v): %w", im.active, im.ports, b.listening(), err)
	}
	return nil
}

// generate makes the content of special files.
func (b *boot) generate(key string) []byte {
	if nic, ok := strings.CutPrefix(key, "rx"); ok {
		i, _ := strconv.Atoi(nic)
		return fmt.Appendf(nil, "%d\n", b.m.cl.hurt.count(b.m.links()[i].Name, b.m.spec.Name))
	}
	switch key {
	case "boot_id":
		return []byte(b.id + "\n")
	case "uuid":
		id := randomHex(16)
		return []byte(strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-") + "\n")
	case "hostname":
		return []byte(b.hostname() + "\n")
	case "uptime":
		return fmt.Appendf(nil, "%.2f %.2f\n", b.uptime().Seconds(), b.uptime().Seconds())
	case "loadavg":
		return fmt.Appendf(nil, "0.00 0.00 0.00 1/%d %d\n", len(b.processes())+1, b.lastPIDNow())
	case "meminfo":
		kb := b.m.spec.MemoryMiB * 1024
		taken := 0
		b.walk("/dev/shm", 0, func(_ string, st memfs.Info) { taken += int(st.Size() / 1024) })
		return fmt.Appendf(nil, "MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n", kb, max(kb/2-taken, 0), max(kb*3/4-taken, 0))
	case "cpuinfo":
		var s strings.Builder
		for i := range max(b.m.spec.VCPUs, 1) {
			fmt.Fprintf(&s, "processor\t: %d\nmodel name\t: refbox simulated processor\n\n", i)
		}
		return []byte(s.String())
	case "version":
		return []byte("Linux version 6.1.0-sim-amd64 (refbox)\n")
	case "cmdline":
		return []byte("root=/dev/vda rw console=ttyS0\n")
	case "mounts":
		return []byte("/dev/vda / ext4 rw,relatime 0 0\n")
	}
	return nil
}

func (b *boot) lastPIDNow() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lastPID
}

func fileMode(m uint32) fs.FileMode { return fs.FileMode(m) }
