package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
	"refbox/vm/guest"
)

// machine is one machine of a running cluster.
type machine struct {
	cluster *cluster
	index   int
	spec    vm.MachineSpec
	console *console
	guest   *guest.Client
	hostKey ssh.PublicKey
	again   plan // how PowerOnAgain starts it

	// op is held by whatever changes the power, one at a time.
	op   chan struct{}
	done chan struct{}  // closed once, by fail or close
	all  sync.WaitGroup // the goroutines of its processes

	mu     sync.Mutex
	boot   *boot // nil when off
	closed bool
	ports  []forward // 22 first; fixed once the machine has started
	held   []*os.File

	pulled map[string]bool // links whose cable is pulled
	lost   int64           // by the latest power cut
	err    error           // how the host failed it
}

var _ vm.Machine = (*machine)(nil)

// errGone is in the errors of a machine that has ended for good.
var (
	errGone   = fmt.Errorf("%w: it is gone", vm.ErrPower)
	errClosed = fmt.Errorf("%w: the cluster is closed", errGone)
)

func (m *machine) Name() string           { return m.spec.Name }
func (m *machine) Guest() vm.Guest        { return m.guest }
func (m *machine) Console() vm.Console    { return m.console }
func (m *machine) HostKey() ssh.PublicKey { return m.hostKey }
func (m *machine) Done() <-chan struct{}  { return m.done }

func (m *machine) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// fail ends the machine for good by the host's fault, unless it has ended already.
func (m *machine) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && m.err == nil {
		m.err = err
		close(m.done)
	}
}

func (m *machine) Addr(guestPort int) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.ports {
		if f.Guest == guestPort {
			return fmt.Sprintf("127.0.0.1:%d", f.Host), nil
		}
	}
	return "", fmt.Errorf("port %d of machine %q is not forwarded: name it in its forwards", guestPort, m.spec.Name)
}

// begin takes the machine for a change of its power. The context it returns
// also ends when the cluster is closed.
func (m *machine) begin(ctx context.Context, what string) (context.Context, func(), error) {
	life := m.cluster.life
	select {
	case m.op <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("%s of machine %q: %w", what, m.spec.Name, context.Cause(ctx))
	case <-life.Done():
		return nil, nil, fmt.Errorf("%s of machine %q: %w", what, m.spec.Name, errClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil); <-m.op }, nil
}

// current is the machine's process, or ErrPower.
func (m *machine) current() (*boot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, errClosed
	case m.err != nil:
		return nil, fmt.Errorf("%w: %w", errGone, m.err)
	case m.boot == nil:
		return nil, fmt.Errorf("%w: it is off", vm.ErrPower)
	}
	return m.boot, nil
}

// running is the machine's process if the machine runs.
func (m *machine) running(ctx context.Context) (*boot, error) {
	b, err := m.current()
	if err != nil {
		return nil, err
	}
	p, err := b.power(ctx)
	if err != nil {
		return nil, err
	}
	if p != vm.PowerOn {
		return nil, fmt.Errorf("%w: it is %s", vm.ErrPower, p)
	}
	return b, nil
}

func (m *machine) Power(ctx context.Context) (vm.Power, error) {
	b, err := m.current()
	switch {
	case errors.Is(err, errGone):
		return vm.PowerGone, nil
	case err != nil:
		return vm.PowerOff, nil
	}
	p, err := b.power(ctx)
	if err != nil && b.life.Err() != nil {
		return vm.PowerOff, nil
	}
	return p, err
}

func (m *machine) Reboot(ctx context.Context, wants ...string) error {
	return m.change(ctx, "reboot", func(ctx context.Context) error {
		if err := vm.CheckWants(wants); err != nil {
			return err
		}
		b, err := m.running(ctx)
		if err != nil {
			return err
		}
		old, err := m.guest.WaitHello(ctx, "")
		if err != nil {
			return err
		}
		if len(wants) > 0 {
			return m.rebootWanting(ctx, b, wants)
		}
		resets := b.witness.resetCount()
		if err := m.guest.Reboot(ctx); err != nil {
			return err
		}
		// The guest's word is not taken for it: QEMU tells when the machine was
		// reset.
		wait, cancel := b.with(ctx)
		defer cancel()
		err = b.witness.await(wait, func(w *witness) bool { return w.resets > resets })
		if err != nil {
			return wentDown(err)
		}
		return cameBack(m.awaitBoot(ctx, b, old.BootID))
	})
}

// wentDown is why a machine that was asked to reboot did not end its old boot.
func wentDown(err error) error {
	switch {
	case errors.Is(err, errEnded):
		return fmt.Errorf("%w: it went off instead", vm.ErrGuestRefused)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: it did not go down in time", vm.ErrGuestRefused)
	}
	return err
}

// cameBack is why its new boot did not say hello.
func cameBack(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errEnded) || errors.Is(err, vm.ErrGuestLost) {
		return fmt.Errorf("%w: it did not come back in time: %w", vm.ErrGuestRefused, err)
	}
	return err
}

func (m *machine) Reset(ctx context.Context) error {
	return m.change(ctx, "reset", func(ctx context.Context) error {
		b, err := m.running(ctx)
		if err != nil {
			return err
		}
		resets := b.witness.resetCount()
		if err := b.qmp.run(ctx, "system_reset", nil, nil); err != nil {
			return err
		}
		wait, cancel := b.with(ctx)
		defer cancel()
		if err := b.witness.await(wait, func(w *witness) bool { return w.resets > resets }); err != nil {
			return err
		}
		return m.awaitBoot(ctx, b, "")
	})
}

// awaitBoot returns when a boot has said hello that is neither notBoot nor the
// one that was speaking when the machine was just reset: an agent that lied
// about its boot before cannot pass for the new one. The clock is put right, as
// a guest reads it at boot by the second only.
func (m *machine) awaitBoot(ctx context.Context, b *boot, notBoot string) error {
	now, cancelNow := context.WithCancel(ctx)
	cancelNow()
	if h, err := m.guest.WaitHello(now, ""); err == nil {
		notBoot = h.BootID
	}
	ctx, cancel := b.with(ctx)
	defer cancel()
	if _, err := m.guest.WaitHello(ctx, notBoot); err != nil {
		if b.life.Err() != nil {
			return errEnded
		}
		return err
	}
	_, err := m.guest.SetClock(ctx, 0)
	return err
}

func (m *machine) PowerCut(ctx context.Context) error {
	return m.change(ctx, "power cut", func(context.Context) error {
		b, err := m.current()
		if err != nil {
			return err
		}
		m.cut(b)
		return nil
	})
}

func (m *machine) PowerOnAgain(ctx context.Context) error {
	return m.change(ctx, "powering on", func(ctx context.Context) error {
		if _, err := m.current(); err == nil {
			return fmt.Errorf("%w: it is on", vm.ErrPower)
		} else if errors.Is(err, errGone) {
			return err
		}
		return m.bootCold(ctx, m.again)
	})
}

func (m *machine) Pause(ctx context.Context) error {
	return m.change(ctx, "pause", func(ctx context.Context) error {
		b, err := m.running(ctx)
		if err != nil {
			return err
		}
		return m.stop(ctx, b)
	})
}

func (m *machine) Resume(ctx context.Context) error {
	return m.change(ctx, "resume", func(ctx context.Context) error {
		b, err := m.current()
		if err != nil {
			return err
		}
		p, err := b.power(ctx)
		if err != nil {
			return err
		}
		if p != vm.PowerPaused {
			return fmt.Errorf("%w: it is %s", vm.ErrPower, p)
		}
		if err := b.qmp.run(ctx, "cont", nil, nil); err != nil {
			return err
		}
		_, err = m.guest.SetClock(ctx, 0)
		return err
	})
}

// change runs one change of the machine's power and names it in its error.
func (m *machine) change(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, end, err := m.begin(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if err := do(ctx); err != nil {
		if m.cluster.life.Err() != nil && !errors.Is(err, vm.ErrPower) {
			err = errClosed
		}
		return fmt.Errorf("%s of machine %q: %w", what, m.spec.Name, err)
	}
	return nil
}

// BootError says that a machine was started and never spoke. It Is
// vm.ErrGuestLost.
type BootError struct {
	Machine string
	Accel   string
	Waited  time.Duration
	Console []byte // its console's end, raw; at most 4 KiB
}

func (e *BootError) Error() string {
	tail := e.Console[max(0, len(e.Console)-300):]
	return fmt.Sprintf("machine %q was started under %s and said nothing for %v; its console ends in %q",
		e.Machine, e.Accel, e.Waited.Round(time.Second), tail)
}

func (e *BootError) Unwrap() error { return vm.ErrGuestLost }

// bootCold starts a process by the plan and waits for its first hello.
func (m *machine) bootCold(ctx context.Context, p plan) error {
	b, err := m.launch(ctx, p)
	if err != nil {
		return err
	}
	return m.firstHello(ctx, b, p.Accel)
}

// firstHello waits until the first boot of a process has spoken.
func (m *machine) firstHello(ctx context.Context, b *boot, accel string) error {
	limit := m.cluster.timeout
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := m.awaitBoot(wait, b, "")
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("booting: %w", context.Cause(ctx))
	case wait.Err() != nil:
		return &BootError{Machine: m.spec.Name, Accel: accel, Waited: limit, Console: m.console.lastBytes()}
	default:
		return fmt.Errorf("booting: %w; its console ends in %q", err, m.console.lastBytes())
	}
}

// launch starts a process with the machine's ports, choosing others while they
// are still free to choose and found taken.
func (m *machine) launch(ctx context.Context, p plan) (*boot, error) {
	// What an earlier process's end still detaches and holds must not be the new
	// one's.
	m.all.Wait()
	const tries = 5
	for try := 1; ; try++ {
		forwards, err := m.takePorts()
		if err != nil {
			return nil, err
		}
		p.Forwards = forwards
		b, err := m.start(ctx, p)
		if err == nil {
			m.mu.Lock()
			m.ports = forwards
			m.mu.Unlock()
			return b, nil
		}
		if !errors.Is(err, errPortTaken) || try == tries {
			return nil, err
		}
	}
}

// takePorts returns the machine's forwards, chosen anew unless it has started
// before.
func (m *machine) takePorts() ([]forward, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.held {
		f.Close()
	}
	m.held = nil
	if m.ports != nil {
		return m.ports, nil
	}
	guestPorts := []int{22}
	for _, p := range m.spec.Forwards {
		if p != 22 {
			guestPorts = append(guestPorts, p)
		}
	}
	hostPorts, err := m.cluster.freePorts(len(guestPorts))
	if err != nil {
		return nil, err
	}
	var out []forward
	for i, p := range guestPorts {
		out = append(out, forward{Host: hostPorts[i], Guest: p})
	}
	return out, nil
}

// reservePorts keeps the ports of a machine that is off.
func (m *machine) reservePorts() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	for _, p := range m.ports {
		// One that cannot be held is taken by somebody already; starting again
		// will say so.
		if f, err := holdPort(p.Host); err == nil {
			m.held = append(m.held, f)
		}
	}
}

// close ends the machine for good. Changes of its power have ended before.
func (m *machine) close() error {
	m.mu.Lock()
	b := m.boot
	m.closed = true
	if m.err == nil {
		defer close(m.done)
	}
	held := m.held
	m.held = nil
	m.mu.Unlock()
	if b != nil {
		b.proc.kill()
	}
	m.all.Wait()
	for _, f := range held {
		f.Close()
	}
	return m.guest.Close()
}

// copyFile makes a fresh overlay.
func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
