// Package vm makes machines. A cluster is one or more machines with private
// links between them; a driver prepares a cluster once and starts it many
// times. Package vm/qemu makes real ones, vm/sim an in-process twin of them;
// vm/vmtest holds both to the same behaviour.
//
// The package knows nothing of heats, seats, or terminals. What it promises:
//
//   - Nothing in a guest reaches anything outside its cluster. The only ways in
//     are loopback forwards that the spec names.
//   - No machine outlives its owner: when the process that started a cluster
//     dies, however it dies, its machines die too.
//   - Two clusters started from one template share no identity: host keys,
//     machine id, password, hostname and random state are made anew, and the
//     clock is the host's.
//   - The console is always drained; a guest never blocks on it.
package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"time"

	"golang.org/x/crypto/ssh"
)

// Spec describes a cluster before it exists. Everything in it is part of the
// template's key: a changed spec is never started from an old template.
type Spec struct {
	Machines []MachineSpec
	Links    []LinkSpec
	// Packages are Debian packages that every machine has beside the image's own.
	// Their services are disabled until Setup enables them.
	Packages []string
}

// MachineSpec describes one machine. The sizes reach the hypervisor as they
// stand.
type MachineSpec struct {
	Name      string // unique in the cluster; "host" for a cluster of one
	VCPUs     int
	MemoryMiB int
	DiskMiB   int

	// Files is laid over the guest's root when the cluster is prepared; nil
	// lays nothing. Paths are relative to "/". Files under bin/ or sbin/, and
	// files whose content begins with "#!", become executable.
	Files fs.FS
	// Setup is one command, its argv: it runs in the guest, as root, after Files
	// are in place, when the cluster is prepared; empty runs nothing. Its failure
	// fails Prepare.
	Setup []string

	// Runner is a program, beginning with #!, that starts the machine's process in
	// the hypervisor's place; nil starts that itself. It must become it (exec), with
	// $QEMU_OPTS among its arguments, split at spaces, and with a virtio user NIC
	// that $QEMU_NET_OPTS are the options of. It may add devices, always the same.
	// Its environment says AOE_TERRITORY_ID (the cluster's name), AOE_MACHINE,
	// AOE_HOST, AOE_SSH_PORT and, with forwards, AOE_SERVICE_PORT, the first's.
	Runner []byte

	// Forwards are the guest's TCP ports that the host reaches through its
	// loopback, beside port 22, which always is.
	Forwards []int
}

// LinkSpec is a private Ethernet between machines of one cluster. Each end gets
// the address Subnet.(10+i), i being the machine's position in Ends, and
// resolves the other ends by machine name.
type LinkSpec struct {
	Name   string   // unique in the cluster
	Ends   []string // machine names, two or more
	Subnet string   // first three octets, e.g. "10.81.0"
}

// Start says what one started cluster is.
type Start struct {
	// Name is the hostname of a cluster of one; machines of a larger cluster
	// are called Name-Machine.
	Name     string
	Password string // root's password
	// Passwords are root's on the machines that it names, in Password's place.
	Passwords     map[string]string
	AuthorizedKey ssh.PublicKey
	// Cold boots every machine instead of resuming the prepared state.
	Cold bool
	// Saved is a folder that Cluster.Save filled for a cluster from a template of the
	// same key: every machine boots, as when Cold, from its disk there, which stays as
	// it is. "" is the template's disks.
	Saved string
	// Dir takes overlays, each up to its machine's disk, and what else the
	// cluster needs while it runs; the caller makes and removes it.
	Dir string
	// Console is called once per machine, before anything is printed, and
	// receives every byte of that machine's serial console, in order, until the
	// machine is closed. A slow writer delays only that machine's console
	// record, never the guest for longer than the write; an error is ignored.
	// Nil discards.
	Console func(machine string) io.Writer
}

// Driver makes clusters.
type Driver interface {
	// Kind names the machinery: "qemu" or "sim".
	Kind() string
	// Versions says what the machines are made of, for provenance: for example
	// {"qemu": "7.2.22", "image": "<sha256>", "kernel": "6.1.0-…", "accel": "tcg"}.
	// Packages are those of the spec: they make another image.
	Versions(ctx context.Context, packages []string) (map[string]string, error)
	// Prepare makes spec startable: boots it once, lays its files, runs its
	// set-up and saves its state. It is idempotent and cached: a second call
	// with the same spec, image and machinery returns at once. Progress is
	// reported to report, which may be nil.
	Prepare(ctx context.Context, spec Spec, report Report) (Template, error)
	// Start makes a running cluster from a template. It returns when every
	// machine has its identity, its clock agrees with the host's, and its
	// guest agent has answered. Ctx bounds the start alone; the cluster lives
	// until Close.
	Start(ctx context.Context, t Template, s Start) (Cluster, error)
}

// Template is a prepared cluster. It stays valid while its files do.
type Template interface {
	// Key is everything that the saved state depends on, as one hex digest.
	Key() string
	Spec() Spec
}

// PasswordOf is root's password on a machine.
func (s Start) PasswordOf(machine string) string {
	if p, ok := s.Passwords[machine]; ok {
		return p
	}
	return s.Password
}

// Report receives the progress of something slow. Done is a fraction in [0,1],
// or negative when unknown.
type Report func(step string, done float64)

// Cluster is a started set of machines.
type Cluster interface {
	// Machines are in the spec's order.
	Machines() []Machine
	// Machine returns the machine of that name, or nil.
	Machine(name string) Machine
	// Links are in the spec's order.
	Links() []Link
	// Save keeps all machines' disks in dir, which it makes, as they are at one
	// instant; Start.Saved starts others from them. What a running guest had written
	// before the call is there; what is only in memory is not. No guest is paused: its
	// disk alone waits while it is copied. On error dir is not there, and the machines
	// are as they were. More than most bytes together are not kept.
	//
	// A machine that changes its power is waited for, as long as ctx goes on; a running
	// guest that does not sync its disk fails the call.
	Save(ctx context.Context, dir string, most int64) error
	// Close ends every machine at once, without a shutdown, waits for their
	// processes and removes what they left in Start.Dir. It is idempotent.
	Close() error
}

// Power is whether a machine runs.
type Power string

const (
	PowerOn     Power = "on"
	PowerPaused Power = "paused"
	PowerOff    Power = "off" // stopped by its guest or cut by PowerCut; PowerOnAgain starts it
	PowerGone   Power = "gone"
)

// Machine is one running machine. Methods may be called from any goroutine.
// While it is PowerOff its guest's verbs and its console's Write fail with
// ErrTransport, and its forwards refuse connections.
type Machine interface {
	Name() string
	// Guest is the referee's channel into the machine. Root in the guest can
	// kill or replace its far end; that shows as ErrGuestLost.
	Guest() Guest
	// Console is the serial console.
	Console() Console
	// Addr is the host's "127.0.0.1:port" that reaches the guest's port: 22 or
	// one of MachineSpec.Forwards. It stays the same over reboots and power
	// cuts.
	Addr(guestPort int) (string, error)
	// HostKey is the guest's SSH host key, as installed at start.
	HostKey() ssh.PublicKey

	// Power is read from outside the guest.
	Power(ctx context.Context) (Power, error)
	// Reboot asks the guest to reboot cleanly and returns when it has: the old
	// boot has been seen to end, outside the guest, and a new one has said
	// hello. An error that Is ErrGuestRefused means that the guest did not go
	// down or did not come back within the context's time; one that Is ErrGuestLost
	// that nobody in the guest took the request.
	//
	// With wants, names of units, the host has a hand in the new boot: before
	// anything of the disk runs, it links the units to multi-user.target for this
	// boot, as if they had been enabled (one that is masked or gone does not
	// start by that), and compares the referee's helper, with what that runs on,
	// with what the image holds. An altered one is an error that Is
	// ErrGuestRefused and names the file; the machine is then up nevertheless.
	// Nothing in the guest is asked for either. A nil error also says that both
	// were confirmed before the disk was handed over to.
	Reboot(ctx context.Context, wants ...string) error
	// Reset is the reset button: nothing is synced, the disk keeps what it had.
	// Returns when the new boot has said hello.
	Reset(ctx context.Context) error
	// PowerCut ends the machine at once, as a power cut does: of what the guest
	// wrote to its disk and did not flush, nothing is left (see Disk.Lost).
	PowerCut(ctx context.Context) error
	// PowerOnAgain starts a machine that is PowerOff, on the disk it left, and
	// returns when its new boot has said hello.
	PowerOnAgain(ctx context.Context) error
	// Pause freezes the machine, Resume thaws it and puts its clock right.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error

	// SetClock sets the guest's wall clock ahead of the host's, or behind. A new
	// boot and Resume put it right.
	SetClock(ctx context.Context, ahead time.Duration) error
	// Disk is the host's end of the machine's disk.
	Disk() Disk

	// Done is closed when the machine has ended for good: it was closed, or the host
	// failed it. Err is nil before that and when it was closed; else it says how the
	// host failed the machine: its process died, or what the guest wrote could not be
	// kept. Its guest's doing ends no machine.
	Done() <-chan struct{}
	Err() error
}

// CheckWants refuses names that Machine.Reboot's wants cannot be: at most 8 units,
// each up to 64 of systemd's characters and a type.
func CheckWants(wants []string) error {
	if len(wants) > 8 {
		return fmt.Errorf("a boot wants at most 8 units, not %d", len(wants))
	}
	for _, w := range wants {
		if len(w) > 64 || !unitForm.MatchString(w) {
			return fmt.Errorf("a boot cannot want %.80q: not the name of a unit", w)
		}
	}
	return nil
}

var unitForm = regexp.MustCompile(`^[A-Za-z0-9@:_.-]+\.(service|socket|target|timer|path|mount)$`)

// MaxPackages bounds Spec.Packages.
const MaxPackages = 32

// CheckPackage refuses what cannot be the name of a Debian package (its policy
// manual, section 5.6.1).
func CheckPackage(name string) error {
	if !packageForm.MatchString(name) {
		return fmt.Errorf("%.80q is not the name of a Debian package: want 2 to 63 of a-z 0-9 + - . beginning with a letter or digit", name)
	}
	return nil
}

var packageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,62}$`)

// Console is a machine's serial console.
type Console interface {
	// Write types into the console.
	io.Writer
	// Attach calls sink with every further chunk printed, in order, until
	// detach is called. Sink must not block and must not keep the slice. After
	// detach returns sink is never called again.
	Attach(sink func(chunk []byte)) (detach func())
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrGuestLost: the guest's end of the referee's channel does not answer,
	// or answers what it never would: it was killed, altered, or the guest
	// hangs.
	ErrGuestLost = errors.New("the guest does not answer the referee")
	// ErrGuestRefused: the guest did not do what was asked of the machine.
	ErrGuestRefused = errors.New("the guest did not comply")
	// ErrTransport: the channel failed, not the guest: worth a retry.
	ErrTransport = errors.New("channel to the guest failed")
	// ErrPower: the operation needs a machine in another power state.
	ErrPower = errors.New("machine is in the wrong power state")
	// ErrTooLarge: what was to be kept is more than was allowed.
	ErrTooLarge = errors.New("more than is allowed")
	// ErrMissing: the host lacks something; the message says what and how to
	// get it.
	ErrMissing = errors.New("missing on this host")
)

// Guest is the referee's channel: verbs that a small agent in the guest
// answers. Everything it says could be forged by root in the guest.
// File errors satisfy errors.Is(err, fs.ErrNotExist) where they should.
type Guest interface {
	// Hello identifies the boot.
	Hello(ctx context.Context) (Hello, error)
	// Run runs argv, without a shell, as root. At most 1 MiB of each output is
	// kept. A non-zero exit is not an error.
	Run(ctx context.Context, argv []string, stdin []byte) (RunResult, error)
	// ReadFile reads at most limit bytes.
	ReadFile(ctx context.Context, path string, limit int) ([]byte, error)
	// WriteFile writes through a temporary file and a rename, and syncs.
	WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	// Remove removes a file; one that is not there is not an error.
	Remove(ctx context.Context, path string) error
	// Stat does not follow a final symbolic link.
	Stat(ctx context.Context, path string) (FileStat, error)
	// Listeners are the guest's listening TCP sockets.
	Listeners(ctx context.Context) ([]Listener, error)
	// Unit is the state of a systemd unit; one that does not exist has
	// LoadState "not-found".
	Unit(ctx context.Context, name string) (Unit, error)
	// HTTP makes a request from inside the guest, to one of its own addresses.
	// A refused or reset connection is an HTTPResult with Err, not an error.
	HTTP(ctx context.Context, r HTTPRequest) (HTTPResult, error)
	// Sync flushes the guest's file systems to its disk.
	Sync(ctx context.Context) error
}

// Hello is what the guest agent says of itself after each boot.
type Hello struct {
	BootID   string
	Hostname string
	Time     time.Time // the guest's wall clock
	Uptime   time.Duration
}

// RunResult is a finished command.
type RunResult struct {
	Exit           int // 128+n when killed by signal n
	Stdout, Stderr []byte
}

// FileStat describes a file in the guest.
type FileStat struct {
	Size   int64
	Mode   fs.FileMode
	Mod    time.Time
	Target string // of a symbolic link
}

// Listener is a listening TCP socket in the guest.
type Listener struct {
	IP      string
	Port    int
	Process string // name of the owning process, "" when unknown
	PID     int
}

// Unit is what systemd says of a unit.
type Unit struct {
	LoadState     string // loaded, masked, not-found, …
	ActiveState   string // active, inactive, failed, activating, …
	SubState      string
	UnitFileState string // enabled, disabled, masked, static, …
	MainPID       int
	Restarts      int
}

// HTTPRequest is made from inside the guest.
type HTTPRequest struct {
	Method  string
	URL     string
	Body    []byte
	Timeout time.Duration
}

// HTTPResult is a response, or the reason why there is none.
type HTTPResult struct {
	Status int
	Body   []byte // at most 1 MiB
	Err    string // "refused", "reset", "timeout", …; empty when Status is set
}
