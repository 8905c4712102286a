package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"refbox/vm"
)

// guest is the referee's channel to a machine. The far end is the process of
// agentUnit: when that is gone, so is the channel, until the next boot.
type guest struct{ m *machine }

const maxOutput = 1 << 20

// runAgent is the guest agent: it stands for the verbs below.
func runAgent(ctx context.Context, p *Process) error {
	p.b.agentUp.Store(true)
	p.b.m.notify()
	<-ctx.Done()
	p.b.agentUp.Store(false)
	p.b.m.notify()
	return nil
}

// call begins a verb: it applies the injected faults and finds the agent.
func (g *guest) call(ctx context.Context, verb string) (*boot, error) {
	fail := func(err error) (*boot, error) {
		// The caller's own impatience is not the guest's silence; its deadline is.
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", vm.ErrGuestLost, err)
		}
		return nil, fmt.Errorf("machine %s: %s: %w", g.m.spec.Name, verb, err)
	}
	if err := g.m.faults.apply(ctx); err != nil {
		return fail(err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	g.m.mu.Lock()
	b, power := g.m.boot, g.m.power
	g.m.mu.Unlock()
	if power == vm.PowerOff || power == vm.PowerGone {
		return fail(fmt.Errorf("%w: the machine is %s", vm.ErrTransport, power))
	}
	if err := g.m.gate.wait(ctx); err != nil {
		return fail(err)
	}
	if b == nil || !b.agentUp.Load() {
		return fail(vm.ErrGuestLost)
	}
	return b, nil
}

// answered turns what happened after call into the channel's errors: an answer
// from an agent that has meanwhile died did not arrive.
func (g *guest) answered(ctx context.Context, b *boot, verb string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", vm.ErrGuestLost, ctx.Err())
	case ctx.Err() != nil:
		err = ctx.Err()
	case b.ctx.Err() != nil:
		err = vm.ErrGuestLost
	case err == nil:
		return nil
	}
	return fmt.Errorf("machine %s: %s: %w", g.m.spec.Name, verb, err)
}

func (g *guest) Hello(ctx context.Context) (vm.Hello, error) {
	b, err := g.call(ctx, "hello")
	if err != nil {
		return vm.Hello{}, err
	}
	return vm.Hello{BootID: b.id, Hostname: b.hostname(), Time: b.now(), Uptime: time.Since(b.began)}, nil
}

func (g *guest) Run(ctx context.Context, argv []string, stdin []byte) (vm.RunResult, error) {
	b, err := g.call(ctx, "run")
	if err != nil {
		return vm.RunResult{}, err
	}
	if stdin == nil {
		stdin = []byte{}
	}
	var out, errw capped
	code, err := b.command(ctx, argv, stdin, &out, &errw)
	if err := g.answered(ctx, b, "run", err); err != nil {
		return vm.RunResult{}, err
	}
	return vm.RunResult{Exit: code, Stdout: out.bytes(), Stderr: errw.bytes()}, nil
}

// capped keeps the first maxOutput bytes.
type capped struct {
	mu  sync.Mutex
	buf []byte
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(c.buf, p[:min(len(p), maxOutput-len(c.buf))]...)
	return len(p), nil
}

func (c *capped) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.buf...)
}

func (g *guest) ReadFile(ctx context.Context, name string, limit int) ([]byte, error) {
	b, err := g.call(ctx, "read file")
	if err != nil {
		return nil, err
	}
	f, err := b.open(name, 0, 0)
	if err != nil {
		return nil, g.answered(ctx, b, "read file", err)
	}
	data := make([]byte, 0, min(max(limit, 0), 64<<10))
	chunk := make([]byte, 32<<10)
	for len(data) < limit {
		n, err := f.Read(chunk[:min(len(chunk), limit-len(data))])
		data = append(data, chunk[:n]...)
		if err != nil {
			break
		}
	}
	return data, g.answered(ctx, b, "read file", nil)
}

func (g *guest) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	b, err := g.call(ctx, "write file")
	if err != nil {
		return err
	}
	err = b.onDisk(ctx, func() error {
		temp := path.Join(path.Dir(name), ".refbox-"+randomHex(6))
		err := b.fs.WriteFile(temp, data, mode)
		if err == nil {
			if err = b.fs.Rename(temp, name); err != nil {
				_ = b.fs.Remove(temp)
			} else {
				err = b.fs.SyncFile(name)
			}
		}
		return err
	})
	return g.answered(ctx, b, "write file", err)
}

// onDisk does what may have to wait for the disk, and no longer than ctx.
func (b *boot) onDisk(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	if !b.tasks.run(func() { done <- do() }) {
		return vm.ErrGuestLost
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *guest) Remove(ctx context.Context, name string) error {
	b, err := g.call(ctx, "remove")
	if err != nil {
		return err
	}
	if err = b.fs.Remove(name); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return g.answered(ctx, b, "remove", err)
}

func (g *guest) Stat(ctx context.Context, name string) (vm.FileStat, error) {
	b, err := g.call(ctx, "stat")
	if err != nil {
		return vm.FileStat{}, err
	}
	st, err := b.fs.Lstat(name)
	if err := g.answered(ctx, b, "stat", err); err != nil {
		return vm.FileStat{}, err
	}
	return vm.FileStat{Size: st.Size(), Mode: st.Mode(), Mod: st.ModTime(), Target: st.Target()}, nil
}

// listeners are the boot's listening sockets.
func (b *boot) listeners() []vm.Listener {
	var list []vm.Listener
	for _, l := range b.sortedPorts() {
		v := vm.Listener{IP: l.ip, Port: l.num}
		if l.proc != nil {
			v.Process, v.PID = l.proc.name(), l.proc.pid
		}
		list = append(list, v)
	}
	return list
}

func (g *guest) Listeners(ctx context.Context) ([]vm.Listener, error) {
	b, err := g.call(ctx, "list listeners")
	if err != nil {
		return nil, err
	}
	return b.listeners(), nil
}

func (g *guest) Unit(ctx context.Context, name string) (vm.Unit, error) {
	b, err := g.call(ctx, "unit")
	if err != nil {
		return vm.Unit{}, err
	}
	st, _ := b.sys.status(unitName(name))
	return st, nil
}

func (g *guest) HTTP(ctx context.Context, r vm.HTTPRequest) (vm.HTTPResult, error) {
	b, err := g.call(ctx, "http")
	if err != nil {
		return vm.HTTPResult{}, err
	}
	res, err := b.request(ctx, r)
	if err := g.answered(ctx, b, "http", err); err != nil {
		return vm.HTTPResult{}, err
	}
	return res, nil
}

func (g *guest) Sync(ctx context.Context) error {
	b, err := g.call(ctx, "sync")
	if err != nil {
		return err
	}
	err = b.onDisk(ctx, func() error { b.fs.Sync(); return nil })
	return g.answered(ctx, b, "sync", err)
}
