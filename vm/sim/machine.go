package sim

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
	"refbox/vm/sim/internal/memfs"
)

var quiet = log.New(io.Discard, "", 0)

// machine is one simulated machine over all its boots.
type machine struct {
	cl       *cluster
	spec     vm.MachineSpec
	faults   *Faults
	gate     *gate
	console  *console
	forwards []*forward
	hostKey  ssh.PublicKey

	life  context.Context // until close
	end   context.CancelFunc
	tasks tasks         // forwards and shutdowns
	done  chan struct{} // closed once, by fail or close
	op    chan struct{} // holds one token: power operations take turns

	mu      sync.Mutex
	power   vm.Power
	boot    *boot          // nil while the machine is off
	disk    memfs.Snapshot // while it is off
	wants   []string       // of the next boot, by the host's order
	changed chan struct{}  // closed at the next change, see notify

	store store
	err   error // how the host failed it
}

func (c *cluster) newMachine(spec vm.MachineSpec, im image, s vm.Start) (*machine, error) {
	m := &machine{cl: c, spec: spec, gate: newGate(), power: vm.PowerOff, disk: im.disk,
		faults: c.d.Faults(s.Name, spec.Name),
		done:   make(chan struct{}), op: make(chan struct{}, 1), changed: make(chan struct{})}
	m.life, m.end = context.WithCancel(context.Background())
	m.faults.mu.Lock()
	m.faults.fail = m.fail
	m.faults.mu.Unlock()
	var record io.Writer
	if s.Console != nil {
		record = s.Console(spec.Name)
	}
	m.console = newConsole(m, record)
	ports := append([]int{22}, spec.Forwards...)
	slices.Sort(ports)
	for _, p := range slices.Compact(ports) {
		m.forwards = append(m.forwards, &forward{guest: p, addr: "127.0.0.1:0"})
	}
	if err := m.openForwards(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// first gives the machine its identity and starts its first boot.
func (m *machine) first(ctx context.Context, im image, s vm.Start, resume bool) error {
	fail := func(err error) error {
		return fmt.Errorf("start machine %s of cluster %s: %w", m.spec.Name, s.Name, err)
	}
	hostname := s.Name
	if len(m.cl.spec.Machines) > 1 {
		hostname += "-" + m.spec.Name
	}
	if err := m.identify(hostname, s); err != nil {
		return fail(err)
	}
	how := bootCold
	if resume {
		how = bootResume
	}
	b := m.newBoot(how, im)
	if b == nil {
		return fail(vm.ErrPower)
	}
	if err := m.awaitBoot(ctx, ""); err != nil {
		return fail(err)
	}
	if resume {
		// A resumed machine's services run and listen at once.
		if err := b.awaitResumed(ctx, im); err != nil {
			return fail(err)
		}
	}
	return nil
}

// identify writes what must differ between machines from one image.
func (m *machine) identify(hostname string, s vm.Start) error {
	fsys := memfs.New(m.disk, m.limit())
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		return err
	}
	if m.hostKey, err = ssh.NewPublicKey(pub); err != nil {
		return err
	}
	shadow, err := shadowLine(s.PasswordOf(m.spec.Name))
	if err != nil {
		return err
	}
	authorized := ""
	if s.AuthorizedKey != nil {
		authorized = string(ssh.MarshalAuthorizedKey(s.AuthorizedKey))
	}
	for _, f := range []struct {
		path, text string
		mode       uint32
	}{
		{"/etc/hostname", hostname + "\n", 0o644},
		{"/etc/hosts", m.cl.hosts(m, hostname), 0o644},
		{"/etc/machine-id", randomHex(16) + "\n", 0o444},
		{"/etc/ssh/ssh_host_ed25519_key", string(pem.EncodeToMemory(block)), 0o600},
		{"/etc/ssh/ssh_host_ed25519_key.pub", string(ssh.MarshalAuthorizedKey(m.hostKey)), 0o644},
		{"/etc/shadow", shadow, 0o640},
		{"/root/.ssh/authorized_keys", authorized, 0o600},
	} {
		if err := fsys.WriteFile(f.path, []byte(f.text), fileMode(f.mode)); err != nil {
			return err
		}
	}
	m.disk = fsys.Snapshot()
	return nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (m *machine) limit() int64 {
	if m.spec.DiskMiB <= 0 {
		return 2048 << 20
	}
	return int64(m.spec.DiskMiB) << 20
}

// notify wakes those who await a change of power, boot, unit or port.
func (m *machine) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// await returns when ok does; ok is called with mu held.
func (m *machine) await(ctx context.Context, ok func() bool) error {
	for {
		m.mu.Lock()
		if ok() {
			m.mu.Unlock()
			return nil
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.life.Done():
			return vm.ErrPower
		}
	}
}

// awaitBoot returns when a boot other than old has its agent up.
func (m *machine) awaitBoot(ctx context.Context, old string) error {
	return m.await(ctx, func() bool {
		return m.boot != nil && m.boot.id != old && m.boot.agentUp.Load()
	})
}

// current is the present boot, or nil.
func (m *machine) current() *boot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot
}

// newBoot starts a boot on the disk, or returns nil when the machine is not off.
func (m *machine) newBoot(how bootKind, im image) *boot {
	m.mu.Lock()
	if m.boot != nil || m.life.Err() != nil {
		m.mu.Unlock()
		return nil
	}
	b := m.makeBoot()
	m.boot, m.power = b, vm.PowerOn
	m.mu.Unlock()
	m.notify()
	b.tasks.run(func() { b.run(how, im) })
	return b
}

// endBoot takes the power from b, if it is still the present boot, keeps its
// disk, and waits for all that ran in it.
func (m *machine) endBoot(b *boot, crash bool) bool {
	m.mu.Lock()
	if b == nil || m.boot != b {
		m.mu.Unlock()
		return false
	}
	if crash && m.cl.d.cfg.LoseUnsynced {
		m.store.lost = b.fs.Unsynced()
		m.disk = b.fs.Synced()
	} else {
		m.disk = b.fs.Snapshot()
	}
	m.boot, m.power = nil, vm.PowerOff
	m.mu.Unlock()
	b.kill()
	m.gate.lift() // after the kill: a paused guest must not run again
	m.console.bootEnded()
	m.notify()
	b.tasks.wait()
	return true
}

// take makes the caller the one that changes the power, until release.
func (m *machine) take(ctx context.Context, what string, need ...vm.Power) (release func(), err error) {
	fail := func(err error) (func(), error) {
		return nil, fmt.Errorf("%s machine %s: %w", what, m.spec.Name, err)
	}
	if ctx.Err() != nil {
		return fail(ctx.Err())
	}
	select {
	case m.op <- struct{}{}:
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	m.mu.Lock()
	is := m.power
	m.mu.Unlock()
	if !slices.Contains(need, is) {
		<-m.op
		return fail(fmt.Errorf("%w: it is %s", vm.ErrPower, is))
	}
	return func() { <-m.op }, nil
}

func (m *machine) Name() string           { return m.spec.Name }
func (m *machine) Guest() vm.Guest        { return &guest{m} }
func (m *machine) Console() vm.Console    { return m.console }
func (m *machine) HostKey() ssh.PublicKey { return m.hostKey }
func (m *machine) Done() <-chan struct{}  { return m.done }

func (m *machine) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *machine) Addr(guestPort int) (string, error) {
	for _, f := range m.forwards {
		if f.guest == guestPort {
			return f.addr, nil
		}
	}
	return "", fmt.Errorf("machine %s: guest port %d is not forwarded; name it in MachineSpec.Forwards", m.spec.Name, guestPort)
}

func (m *machine) Power(ctx context.Context) (vm.Power, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.power, ctx.Err()
}

// complied turns the end of waiting for a boot into the interface's errors.
func (m *machine) complied(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no new boot said hello: %w", vm.ErrGuestRefused, err)
	}
	return fmt.Errorf("%s machine %s: %w", what, m.spec.Name, err)
}

func (m *machine) Reboot(ctx context.Context, wants ...string) error {
	if err := vm.CheckWants(wants); err != nil {
		return fmt.Errorf("reboot machine %s: %w", m.spec.Name, err)
	}
	release, err := m.take(ctx, "reboot", vm.PowerOn)
	if err != nil {
		return err
	}
	defer release()
	b := m.current()
	if b == nil {
		return fmt.Errorf("reboot machine %s: %w", m.spec.Name, vm.ErrPower)
	}
	if !b.agentUp.Load() {
		return fmt.Errorf("reboot machine %s: %w: %w", m.spec.Name, vm.ErrGuestRefused, vm.ErrGuestLost)
	}
	m.order(wants)
	defer m.order(nil) // a boot that did not come has not taken it
	var out tail
	code, err := b.command(ctx, []string{"systemctl", "reboot"}, nil, &out, &out)
	// A boot that ends while it answers has complied.
	if err == nil && code != 0 && b.ctx.Err() == nil {
		return fmt.Errorf("reboot machine %s: %w: systemctl reboot exited with %d: %s", m.spec.Name, vm.ErrGuestRefused, code, out.String())
	}
	if err := m.complied("reboot", m.awaitBoot(ctx, b.id)); err != nil {
		return err
	}
	if b := m.current(); b != nil && b.altered != "" {
		return fmt.Errorf("reboot machine %s: %w: the referee's helper was altered: %s is not what the image holds", m.spec.Name, vm.ErrGuestRefused, b.altered)
	}
	return nil
}

// order says what the next boot is to want.
func (m *machine) order(wants []string) {
	m.mu.Lock()
	m.wants = wants
	m.mu.Unlock()
}

func (m *machine) Reset(ctx context.Context) error {
	release, err := m.take(ctx, "reset", vm.PowerOn, vm.PowerPaused)
	if err != nil {
		return err
	}
	defer release()
	b := m.current()
	if m.endBoot(b, true) {
		m.newBoot(bootCold, image{})
	}
	return m.complied("reset", m.awaitBoot(ctx, b.id))
}

func (m *machine) PowerCut(ctx context.Context) error {
	release, err := m.take(ctx, "cut the power of", vm.PowerOn, vm.PowerPaused)
	if err != nil {
		return err
	}
	defer release()
	m.closeForwards()
	for b := m.current(); b != nil; b = m.current() {
		m.endBoot(b, true)
	}
	m.store.mend()
	return nil
}

func (m *machine) PowerOnAgain(ctx context.Context) error {
	release, err := m.take(ctx, "power on", vm.PowerOff)
	if err != nil {
		return err
	}
	defer release()
	if err := m.openForwards(); err != nil {
		return fmt.Errorf("power on machine %s: %w", m.spec.Name, err)
	}
	if m.newBoot(bootCold, image{}) == nil {
		return fmt.Errorf("power on machine %s: %w", m.spec.Name, vm.ErrPower)
	}
	return m.complied("power on", m.awaitBoot(ctx, ""))
}

func (m *machine) Pause(ctx context.Context) error {
	release, err := m.take(ctx, "pause", vm.PowerOn)
	if err != nil {
		return err
	}
	defer release()
	m.gate.shut()
	m.setPower(vm.PowerPaused)
	return nil
}

func (m *machine) Resume(ctx context.Context) error {
	release, err := m.take(ctx, "resume", vm.PowerPaused)
	if err != nil {
		return err
	}
	defer release()
	if b := m.current(); b != nil {
		b.ahead.Store(0)
	}
	m.setPower(vm.PowerOn)
	m.gate.lift()
	m.console.thaw()
	return nil
}

func (m *machine) setPower(p vm.Power) {
	m.mu.Lock()
	m.power = p
	m.mu.Unlock()
	m.notify()
}

// fail ends the machine by the host's fault, unless it has ended already.
func (m *machine) fail(err error) {
	m.mu.Lock()
	if m.err != nil || m.life.Err() != nil {
		m.mu.Unlock()
		return
	}
	m.err = err
	close(m.done)
	m.end()
	m.mu.Unlock()
	m.halt()
}

// close ends the machine for good.
func (m *machine) close() {
	m.mu.Lock()
	if m.err == nil {
		defer close(m.done)
	}
	m.end()
	m.mu.Unlock()
	m.halt()
}

// halt switches a machine off that has ended.
func (m *machine) halt() {
	m.closeForwards()
	for b := m.current(); b != nil; b = m.current() {
		m.endBoot(b, true)
	}
	m.gate.lift()
	m.tasks.wait()
	m.mu.Lock()
	m.power = vm.PowerGone
	m.mu.Unlock()
	m.console.close()
	m.notify()
}

// shutdown ends b from inside, as systemd does, and starts the next boot if it
// is a reboot. It returns at once.
func (m *machine) shutdown(b *boot, reboot, force bool) {
	m.tasks.run(func() {
		if !force {
			b.sys.stopAll(b.ctx)
		}
		if b.ctx.Err() != nil {
			return
		}
		if !force {
			b.fs.Sync()
		}
		b.printk(map[bool]string{true: "reboot: Restarting system", false: "reboot: Power down"}[reboot])
		if !reboot && m.current() == b {
			m.closeForwards()
		}
		if m.endBoot(b, force) && reboot {
			m.newBoot(bootCold, image{})
		}
	})
}

// uptime is rounded as /proc/uptime is.
func (b *boot) uptime() time.Duration { return time.Since(b.began).Round(10 * time.Millisecond) }
