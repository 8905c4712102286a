package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"refbox/vm"
	"refbox/vm/disk"
)

// witness is what QEMU, outside the guest, has reported of one process's life.
type witness struct {
	mu        sync.Mutex
	resets    int
	shutdown  string // the last reason given for it
	migration string
	news      chan struct{} // closed and replaced at each change
}

func newWitness() *witness { return &witness{news: make(chan struct{})} }

func (w *witness) note(e qmpEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Name {
	case "RESET":
		w.resets++
	case "SHUTDOWN":
		var d struct{ Reason string }
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
		w.shutdown = d.Reason
	case "MIGRATION":
		var d struct{ Status string }
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
		w.migration = d.Status
	default:
		return
	}
	close(w.news)
	w.news = make(chan struct{})
}

// await waits until cond holds; cond runs under the witness's lock.
func (w *witness) await(ctx context.Context, cond func(*witness) bool) error {
	for {
		w.mu.Lock()
		ok, news := cond(w), w.news
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *witness) shutdownReason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shutdown
}

func (w *witness) resetCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resets
}

// boot is one QEMU process of a machine, from its start to its end.
type boot struct {
	proc    *process
	qmp     *qmpClient
	witness *witness
	store   *disk.Disk // nil when QEMU has the overlay's file itself
	// life ends when the process has ended and all that it printed has been
	// delivered.
	life context.Context
}

// errEnded is the cause with which a boot's life ends.
var errEnded = errors.New("the machine's process has ended")

// with returns a context that ends with ctx or with the boot, whichever is
// first.
func (b *boot) with(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.life, func() { cancel(errEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

// plan is how to start a process: its launch, and the files behind the
// launch's descriptors.
type plan struct {
	launch
	overlay string
	layers  []string // top first
	ram     string
	state   string // saved state to resume from, "" to boot
}

// errPortTaken means that somebody else took a port between its choice and its
// use.
var errPortTaken = errors.New("a forwarded port was taken")

// start runs one QEMU process by the plan and connects its channels. On error
// nothing of it is left.
func (m *machine) start(ctx context.Context, p plan) (*boot, error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	open := func(path string, flag int) error {
		f, err := os.OpenFile(path, flag, 0)
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	var conns []net.Conn
	adopted := false
	defer func() {
		if !adopted {
			for _, c := range conns {
				c.Close()
			}
		}
	}()
	pair := func() error {
		ours, theirs, err := socketPair()
		if err == nil {
			conns, files = append(conns, ours), append(files, theirs)
		}
		return err
	}
	// The order is that of launch.number.
	h := m.cluster.host
	err := errors.Join(open(h.image.Kernel, os.O_RDONLY), open(h.image.Initrd, os.O_RDONLY), pair(), pair())
	if p.Served {
		err = errors.Join(err, pair())
	} else {
		err = errors.Join(err, open(p.overlay, os.O_RDWR))
	}
	for _, l := range p.layers {
		err = errors.Join(err, open(l, os.O_RDONLY))
	}
	if p.RAM != ramAnonymous {
		err = errors.Join(err, open(p.ram, os.O_RDWR))
	}
	for range p.Links {
		err = errors.Join(err, pair())
	}
	if err != nil {
		return nil, fmt.Errorf("opening what machine %q needs: %w", m.spec.Name, err)
	}

	links := conns[2:]
	var store *disk.Disk
	stored := make(chan error, 1)
	if p.Served {
		if store, err = disk.Open(p.overlay, overlaySize(m.spec)); err != nil {
			return nil, fmt.Errorf("machine %q: %w", m.spec.Name, err)
		}
		links = conns[3:]
		// QEMU asks for its disk before it says anything.
		m.all.Go(func() { stored <- store.Serve(conns[2]) })
	} else {
		stored <- nil
	}
	binary, args, env := h.binary, commandLine(p.launch), []string(nil)
	if p.Spec.Runner != nil {
		if binary, args, env, err = m.runner(p.launch, &files); err != nil {
			return nil, fmt.Errorf("machine %q: its runner: %w", m.spec.Name, err)
		}
	}
	proc, err := spawn(binary, args, files, env...)
	if err != nil {
		return nil, fmt.Errorf("machine %q: %w", m.spec.Name, err)
	}
	// From here on QEMU alone has the far ends, so that they close with it.
	for _, f := range files {
		f.Close()
	}
	files = nil
	adopted = true
	b := &boot{proc: proc, witness: newWitness(), store: store}
	var end context.CancelCauseFunc
	b.life, end = context.WithCancelCause(context.Background())
	drained := make(chan struct{})
	m.console.adopt(proc.pty)
	m.all.Add(2)
	go func() {
		defer m.all.Done()
		m.console.drain(proc.pty)
		close(drained)
	}()
	go func() {
		defer m.all.Done()
		<-proc.exited
		if store != nil {
			store.Stall(false) // what QEMU had sent is carried out, unless it was cut
		}
		<-drained
		if err := <-stored; err != nil {
			m.fail(fmt.Errorf("its disk: %w", err))
		}
		m.ended(b)
		end(errEnded)
	}()
	if store != nil {
		m.all.Go(func() {
			select {
			case <-store.Failed():
				m.fail(fmt.Errorf("its disk: %w", store.Err()))
				proc.kill()
			case <-proc.exited:
			}
		})
	}
	m.guest.Attach(conns[1])
	for i, e := range p.Links {
		if err := m.cluster.links[e.Link].Plug(m.spec.Name, links[i]); err != nil {
			proc.kill()
			<-b.life.Done()
			conns[0].Close()
			return nil, err
		}
	}
	wait, cancel := b.with(ctx)
	defer cancel()
	qmp, err := dialQMP(wait, conns[0].(*net.UnixConn), b.witness.note)
	if err != nil {
		proc.kill()
		<-b.life.Done()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("machine %q: %w", m.spec.Name, context.Cause(ctx))
		}
		stderr := proc.stderr.String()
		if strings.Contains(stderr, "Could not set up host forwarding rule") {
			return nil, errPortTaken
		}
		return nil, fmt.Errorf("machine %q: QEMU did not start (%s): %q", m.spec.Name, proc.state, stderr)
	}
	m.mu.Lock()
	b.qmp = qmp
	m.boot = b
	m.mu.Unlock()
	if err := m.unplug(ctx, b); err != nil {
		proc.kill()
		<-b.life.Done()
		return nil, err
	}
	select {
	case <-proc.exited: // perhaps noted before it was the machine's
		m.ended(b)
	default:
	}
	return b, nil
}

// ended notes that b's process is gone; a second call changes nothing.
func (m *machine) ended(b *boot) {
	m.mu.Lock()
	mine := m.boot == b
	if mine {
		m.boot = nil
	}
	qmp := b.qmp
	m.mu.Unlock()
	m.guest.Detach()
	if qmp != nil {
		qmp.close()
	}
	if mine && b.proc.died() {
		m.fail(fmt.Errorf("its process died (%s): %q", b.proc.state, b.proc.stderr.String()))
	}
	if mine {
		m.reservePorts()
	}
}

// loadState loads a saved state into a process that waits for one, and leaves
// it paused.
func (b *boot) loadState(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the saved state: %w", err)
	}
	defer f.Close()
	return b.migrate(ctx, "migrate-incoming", f)
}

// saveState writes the state of a stopped machine, without its memory, which is
// in the template's file already.
func (b *boot) saveState(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making the saved state: %w", err)
	}
	defer f.Close()
	if err := b.migrate(ctx, "migrate", f); err != nil {
		return err
	}
	return f.Sync()
}

func (b *boot) migrate(ctx context.Context, command string, f *os.File) error {
	ctx, cancel := b.with(ctx)
	defer cancel()
	type capability struct {
		Capability string `json:"capability"`
		State      bool   `json:"state"`
	}
	caps := map[string]any{"capabilities": []capability{{"x-ignore-shared", true}, {"events", true}}}
	if err := b.qmp.run(ctx, "migrate-set-capabilities", caps, nil); err != nil {
		return err
	}
	if err := b.qmp.run(ctx, "getfd", map[string]string{"fdname": "state"}, nil, f); err != nil {
		return err
	}
	if err := b.qmp.run(ctx, command, map[string]string{"uri": "fd:state"}, nil); err != nil {
		return err
	}
	var status string
	err := b.witness.await(ctx, func(w *witness) bool {
		status = w.migration
		return status == "completed" || status == "failed"
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %q", command, err, b.proc.stderr.String())
	}
	if status == "failed" {
		return fmt.Errorf("%s: QEMU could not: %q", command, b.proc.stderr.String())
	}
	return nil
}

// power asks QEMU whether the machine runs.
func (b *boot) power(ctx context.Context) (vm.Power, error) {
	var st struct{ Running bool }
	if err := b.qmp.run(ctx, "query-status", nil, &st); err != nil {
		return "", err
	}
	if st.Running {
		return vm.PowerOn, nil
	}
	return vm.PowerPaused, nil
}

// freePorts chooses n ports of the loopback that are free now.
func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("choosing a port: %w", err)
		}
		// Kept open until all are chosen, so that they differ.
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

// holdPort keeps a port of the loopback from being taken, without answering on
// it: connections are refused.
func holdPort(port int) (*os.File, error) {
	syscall.ForkLock.RLock() // no child is to have it between the two calls
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "held port")
	// Binding needs the option for the remains of earlier connections; taking it
	// back then keeps others from binding beside us.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
