// Package qemu makes machines with QEMU 7.2 or later. It implements vm.Driver.
//
// It hides the command line, the pty that QEMU runs under, QMP, the saved
// states and the disk layers under them. What it guarantees, beyond what
// package vm promises:
//
//   - A QEMU process is handed descriptors and no paths. It owns no socket with
//     a name, runs sandboxed, and, when refbox is root, as a user of its own that
//     may write one thing, its view of a template's memory: its disk is served to
//     it (package vm/disk).
//   - It dies with refbox, also when refbox is killed.
//   - A saved state is used only by the very machinery that saved it.
package qemu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"refbox/vm"
	"refbox/vm/accel"
	"refbox/vm/image"
)

const (
	emulator = "qemu-system-x86_64"
	imgTool  = "qemu-img"
)

// bootTimeout is how long a cold boot may take until its first hello. On two
// idle emulated cores one takes 4 s and three at once 8 s; a busy host may need
// ten times that. What takes longer will never come.
const bootTimeout = 3 * time.Minute

// Config says where a driver keeps what it makes.
type Config struct {
	// CacheDir holds images, templates and the acceleration verdict. It is made
	// when missing and shared by all processes of the user.
	CacheDir string
}

// Driver makes real machines. Make one with New.
type Driver struct {
	cfg     Config
	ports   func(n int) ([]int, error)
	timeout time.Duration // bootTimeout, but for tests

	mu     sync.Mutex
	host   *hostFacts             // without an image; nil until asked for the first time
	images map[string]image.Image // by image.Key
}

// hostFacts is what the host's machinery is.
type hostFacts struct {
	binary  string
	version string // "7.2.22"
	build   string // the whole version line, part of every key
	accel   accel.Accel
	image   image.Image
}

var _ vm.Driver = (*Driver)(nil)

// New returns a driver. Nothing on the host is looked at until it is used.
func New(cfg Config) *Driver {
	return &Driver{cfg: cfg, ports: freePorts, timeout: bootTimeout, images: map[string]image.Image{}}
}

// Needs lists the host tools that running machines needs and lacks; what
// building their image needs is image.Missing.
func Needs() []image.Need {
	var out []image.Need
	for _, n := range []image.Need{
		{Tool: emulator, Package: "qemu-system-x86"},
		{Tool: imgTool, Package: "qemu-utils"},
	} {
		if _, err := exec.LookPath(n.Tool); err != nil {
			out = append(out, n)
		}
	}
	return out
}

// Kind implements vm.Driver.
func (d *Driver) Kind() string { return "qemu" }

// Versions implements vm.Driver.
func (d *Driver) Versions(ctx context.Context, packages []string) (map[string]string, error) {
	h, err := d.facts(ctx, packages, nil)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"qemu":      h.version,
		"image":     h.image.Digest,
		"kernel":    h.image.KernelVersion,
		"accel":     h.accel.Name,
		"accel_why": h.accel.Why,
		"cpu":       h.accel.CPU,
	}, nil
}

// facts looks the host over once, and each set of packages' image: a failure is
// not remembered, so that a missing tool can be installed meanwhile.
func (d *Driver) facts(ctx context.Context, packages []string, report vm.Report) (*hostFacts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.host == nil {
		h, err := d.look(ctx, report)
		if err != nil {
			return nil, err
		}
		d.host = h
	}
	key, err := image.Key(packages)
	if err != nil {
		return nil, err
	}
	h := *d.host
	if img, ok := d.images[key]; ok {
		h.image = img
		return &h, nil
	}
	if h.image, err = image.Ensure(ctx, d.cfg.CacheDir, packages, report); err != nil {
		return nil, err
	}
	d.images[key] = h.image
	return &h, nil
}

// look finds out what the host has.
func (d *Driver) look(ctx context.Context, report vm.Report) (*hostFacts, error) {
	if needs := Needs(); len(needs) > 0 {
		var tools, packages []string
		for _, n := range needs {
			tools, packages = append(tools, n.Tool), append(packages, n.Package)
		}
		return nil, fmt.Errorf("%w: %s; install with: apt-get install %s",
			vm.ErrMissing, strings.Join(tools, ", "), strings.Join(packages, " "))
	}
	if err := os.MkdirAll(d.cfg.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	binary, err := exec.LookPath(emulator)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", vm.ErrMissing, emulator, err)
	}
	h := &hostFacts{binary: binary}
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", binary, err)
	}
	h.build, _, _ = strings.Cut(string(out), "\n")
	m := regexp.MustCompile(`version (\d+)\.(\d+)\.\d+`).FindStringSubmatch(h.build)
	if m == nil {
		return nil, fmt.Errorf("%s --version says %.80q, which names no version", binary, h.build)
	}
	h.version = strings.TrimPrefix(m[0], "version ")
	var major, minor int
	fmt.Sscan(m[1], &major)
	fmt.Sscan(m[2], &minor)
	if major < 7 || major == 7 && minor < 2 {
		return nil, fmt.Errorf("%w: QEMU 7.2 or later; %s is %s", vm.ErrMissing, binary, h.version)
	}
	progress(report, "choosing the acceleration", -1)
	if h.accel, err = accel.Choose(ctx, d.cfg.CacheDir, binary); err != nil {
		return nil, err
	}
	return h, nil
}

func progress(report vm.Report, step string, done float64) {
	if report != nil {
		report(step, done)
	}
}

// template is a prepared cluster on disk.
type template struct {
	key   string
	spec  vm.Spec
	dir   string
	host  *hostFacts
	files []filesTar // by machine
}

func (t *template) Key() string   { return t.key }
func (t *template) Spec() vm.Spec { return t.spec }

// Files of a template, by the machine's position.
func (t *template) ram(i int) string   { return filepath.Join(t.dir, fmt.Sprintf("ram-%d", i)) }
func (t *template) state(i int) string { return filepath.Join(t.dir, fmt.Sprintf("state-%d", i)) }
func (t *template) disk(i int) string  { return filepath.Join(t.dir, fmt.Sprintf("disk-%d.qcow2", i)) }
func (t *template) blank(i int) string { return filepath.Join(t.dir, fmt.Sprintf("blank-%d.qcow2", i)) }

// keyOf is a digest of everything that a saved state of spec depends on.
func keyOf(spec vm.Spec, files []filesTar, h *hostFacts) string {
	type machineKey struct {
		Files string
		Args  []string
		Disk  int
		Setup []string
		Ports []int

		Runner string `json:",omitempty"`
	}
	key := struct {
		Version  int
		QEMU     string
		Image    string
		Accel    accel.Accel
		Links    []vm.LinkSpec
		Machines []machineKey
	}{Version: recipeVersion, QEMU: h.build, Image: h.image.Digest, Accel: h.accel, Links: spec.Links}
	key.Accel.Why = "" // prose
	for i, m := range spec.Machines {
		l := launchOf(spec, i, h)
		l.RAM, l.Layers = ramShared, 1
		key.Machines = append(key.Machines, machineKey{
			Files: files[i].digest, Args: commandLine(l), Disk: m.DiskMiB, Setup: m.Setup, Ports: m.Forwards, Runner: string(m.Runner),
		})
	}
	b, _ := json.Marshal(key) // plain data always encodes
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// launchOf is what all launches of machine i have in common.
func launchOf(spec vm.Spec, i int, h *hostFacts) launch {
	l := launch{Spec: spec.Machines[i], Accel: h.accel.Name, CPU: h.accel.CPU, KernelArg: image.Cmdline}
	for _, e := range endsOf(spec, spec.Machines[i].Name) {
		l.Links = append(l.Links, linkEnd{Link: e.link.Name, MAC: e.mac()})
	}
	return l
}

// end is one machine's place on one link.
type end struct {
	link     vm.LinkSpec
	linkPos  int // of the link in the spec
	position int // of the machine in the link
}

func (e end) mac() string     { return fmt.Sprintf("52:54:00:01:%02x:%02x", e.linkPos, e.position) }
func (e end) ip(i int) string { return fmt.Sprintf("%s.%d", e.link.Subnet, 10+i) }

func endsOf(spec vm.Spec, machine string) []end {
	var out []end
	for i, l := range spec.Links {
		for j, name := range l.Ends {
			if name == machine {
				out = append(out, end{link: l, linkPos: i, position: j})
			}
		}
	}
	return out
}

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	subnetForm = regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,3})$`)
)

// check refuses what cannot be built, naming the field.
func check(spec vm.Spec, leastDisk int) error {
	if n := len(spec.Machines); n < 1 || n > 32 {
		return fmt.Errorf("a cluster has 1 to 32 machines, not %d", n)
	}
	seen := map[string]bool{}
	for _, m := range spec.Machines {
		switch {
		case !nameForm.MatchString(m.Name):
			return fmt.Errorf("machine name %.40q: want up to 32 lower-case letters, digits and dashes", m.Name)
		case seen[m.Name]:
			return fmt.Errorf("machine name %q occurs twice", m.Name)
		case m.VCPUs < 1 || m.VCPUs > 64:
			return fmt.Errorf("machine %q: vcpus %d: want 1 to 64", m.Name, m.VCPUs)
		case m.MemoryMiB < 256 || m.MemoryMiB > 64<<10:
			return fmt.Errorf("machine %q: memory_mib %d: want 256 to 65536", m.Name, m.MemoryMiB)
		case m.DiskMiB < leastDisk || m.DiskMiB > 1<<20:
			return fmt.Errorf("machine %q: disk_mib %d: want %d (the image's size) to 1048576", m.Name, m.DiskMiB, leastDisk)
		}
		seen[m.Name] = true
		for _, p := range m.Forwards {
			if p < 1 || p > 65535 {
				return fmt.Errorf("machine %q: forwarded port %d: want 1 to 65535", m.Name, p)
			}
		}
	}
	if len(spec.Links) > 16 {
		return fmt.Errorf("a cluster has at most 16 links, not %d", len(spec.Links))
	}
	links := map[string]bool{}
	for _, l := range spec.Links {
		ends := map[string]bool{}
		for _, e := range l.Ends {
			if !seen[e] {
				return fmt.Errorf("link %.40q ends at %.40q, which is no machine of the cluster", l.Name, e)
			}
			ends[e] = true
		}
		switch {
		case l.Name == "" || links[l.Name]:
			return fmt.Errorf("link name %.40q is empty or occurs twice", l.Name)
		case len(l.Ends) < 2 || len(ends) != len(l.Ends):
			return fmt.Errorf("link %.40q: want two or more different ends", l.Name)
		case !subnetForm.MatchString(l.Subnet):
			return fmt.Errorf(`link %.40q: subnet %.40q: want three octets, such as "10.81.0"`, l.Name, l.Subnet)
		case l.Subnet == "10.0.2":
			return fmt.Errorf("link %.40q: subnet 10.0.2 is the user network's", l.Name)
		}
		links[l.Name] = true
	}
	return nil
}

var errForeignTemplate = errors.New("the template was not made by this driver")
