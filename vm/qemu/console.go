package qemu

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"refbox/vm"
)

// tailBytes is how much of a console's end is kept for error messages.
const tailBytes = 4 << 10

// typeTimeout bounds a Write into a console whose guest does not read: the
// kernel's buffer for it is 4 KiB.
const typeTimeout = 2 * time.Second

// console is a machine's serial console over all its boots and processes. Each
// process brings a pty; the goroutine in drain owns its reading end.
type console struct {
	record io.Writer // Start.Console's, or nil

	mu    sync.Mutex
	pty   *os.File // nil while the machine has no process
	sinks map[int]func([]byte)
	next  int
	tail  []byte
}

func newConsole(record io.Writer) *console {
	return &console{record: record, sinks: map[int]func([]byte){}}
}

// adopt makes p what is typed into. Its drain must follow.
func (c *console) adopt(p *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pty = p
}

// drain delivers what is printed on p until its process has ended. It alone
// reads p, and it never stops before: a full pty would stall the guest.
func (c *console) drain(p *os.File) {
	buf := make([]byte, 16<<10)
	for {
		n, err := p.Read(buf)
		if n > 0 {
			c.deliver(buf[:n])
		}
		if err != nil { // EIO: no process has the other end any more
			break
		}
	}
	c.mu.Lock()
	if c.pty == p {
		c.pty = nil
	}
	c.mu.Unlock()
	p.Close()
}

func (c *console) deliver(chunk []byte) {
	if c.record != nil {
		// A record that fails is the recorder's to report, not the guest's to
		// suffer.
		_, _ = c.record.Write(chunk)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, chunk...)
	if extra := len(c.tail) - tailBytes; extra > 0 {
		c.tail = slices.Delete(c.tail, 0, extra)
	}
	for _, sink := range c.sinks {
		sink(chunk)
	}
}

// lastBytes is the end of what was printed, raw.
func (c *console) lastBytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tail)
}

// Attach implements vm.Console. Sinks run under the console's lock, which is
// what makes detach final.
func (c *console) Attach(sink func([]byte)) func() {
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

// Write implements vm.Console.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	p := c.pty
	c.mu.Unlock()
	if p == nil {
		return 0, fmt.Errorf("typing into the console: %w: it is off", vm.ErrPower)
	}
	if err := p.SetWriteDeadline(time.Now().Add(typeTimeout)); err != nil {
		return 0, fmt.Errorf("typing into the console: %w: %w", vm.ErrTransport, err)
	}
	n, err := p.Write(b)
	if err != nil {
		return n, fmt.Errorf("typing into the console: %w: the guest took %d of %d bytes: %w", vm.ErrTransport, n, len(b), err)
	}
	return n, nil
}

// openPTY makes the pair that a console runs over, raw: bytes pass unchanged in
// both directions. Output processing is off as well because QEMU switches OPOST
// on and would double every carriage return.
func openPTY() (ours, theirs *os.File, err error) {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("opening a pty for the console: %w", err)
	}
	defer blocking.Close()
	ours, err = pollable(blocking)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("opening a pty for the console: %w", err)
	}
	if err := makeRaw(theirs); err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, fmt.Errorf("making the console's pty raw: %w", err)
	}
	return ours, theirs, nil
}

// pollable duplicates f as a file whose deadlines work, which the pty package's
// do not.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
