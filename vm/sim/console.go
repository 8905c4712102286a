package sim

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"refbox/vm"
)

// console is a machine's serial port.
type console struct {
	m      *machine
	mu     sync.Mutex // orders what is printed
	record io.Writer
	sinks  map[int]func([]byte)
	next   int
	closed bool

	inMu    sync.Mutex // orders what is typed
	tty     *tty
	pending []byte // typed while the machine was paused
}

const maxPending = 4096

func newConsole(m *machine, record io.Writer) *console {
	if record == nil {
		record = io.Discard
	}
	return &console{m: m, record: record, sinks: map[int]func([]byte){}}
}

// print gives bytes to the record and to everyone attached, in order.
func (c *console) print(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	_, _ = c.record.Write(p)
	for _, sink := range c.sinks {
		sink(p)
	}
}

func (c *console) Attach(sink func([]byte)) (detach func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	c.sinks[id] = sink
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sinks, id)
	}
}

// Write types. While the machine is paused the serial port holds a little;
// while it is off nobody hears.
func (c *console) Write(p []byte) (int, error) {
	c.inMu.Lock()
	defer c.inMu.Unlock()
	if c.m.current() == nil {
		return 0, fmt.Errorf("console of machine %s: %w", c.m.spec.Name, vm.ErrPower)
	}
	if !c.m.gate.isOpen() {
		c.pending = append(c.pending, p[:min(len(p), maxPending-len(c.pending))]...)
		return len(p), nil
	}
	if c.tty != nil {
		c.tty.input(p)
	}
	return len(p), nil
}

// thaw hands on what was typed during a pause.
func (c *console) thaw() {
	c.inMu.Lock()
	defer c.inMu.Unlock()
	p := c.pending
	c.pending = nil
	if c.tty != nil {
		c.tty.input(p)
	}
}

func (c *console) bootEnded() {
	c.inMu.Lock()
	defer c.inMu.Unlock()
	c.tty, c.pending = nil, nil
}

func (c *console) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// getty offers a login on the console.
func (c *console) getty(b *boot) {
	c.inMu.Lock()
	defer c.inMu.Unlock()
	if b.ctx.Err() != nil || c.m.current() != b {
		return
	}
	c.tty = &tty{echo: true, out: func(p []byte) { c.m.console.print(p) }}
	c.login(b, c.tty)
}

// login asks for a name and a password, then runs a shell, then asks again. It
// needs no goroutine until the shell runs.
func (c *console) login(b *boot, t *tty) {
	b.print("\nDebian GNU/Linux 12 " + b.hostname() + " ttyS0\n\n")
	var askName func()
	askName = func() {
		t.setEcho(true)
		b.print(b.hostname() + " login: ")
		t.read(func(line []byte) {
			user := strings.TrimSpace(string(line))
			if user == "" {
				askName()
				return
			}
			b.print("Password: ")
			t.setEcho(false)
			t.read(func(line []byte) {
				if !b.checkPassword(user, strings.TrimRight(string(line), "\n")) {
					b.print("\nLogin incorrect\n")
					askName()
					return
				}
				c.shell(b, t)
			}, askName, askName)
		}, nil, askName)
	}
	askName()
}

// shell runs a root shell on the console.
func (c *console) shell(b *boot, t *tty) {
	t.setEcho(true)
	t.read(nil, nil, nil) // what is typed meanwhile waits
	b.tasks.run(func() {
		w := &terminalWriter{func(p []byte) error {
			if err := b.m.gate.wait(b.ctx); err != nil {
				return err
			}
			c.print(p)
			return nil
		}}
		p, err := b.newProcess(b.ctx, processSpec{args: []string{"-bash"}, dir: "/root", env: b.environment(), out: w, err: w})
		if err != nil {
			return
		}
		p.finish(p.interactive(t, nil))
		c.inMu.Lock()
		defer c.inMu.Unlock()
		if c.tty == t && b.ctx.Err() == nil {
			c.login(b, t)
		}
	})
}
