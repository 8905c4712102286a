package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/internal/echo"
	"refbox/engine/text"
	"refbox/vm"
)

const (
	maxWords = 4 << 10   // of what a person tells the log
	maxTyped = 4 << 10   // of what a person types, kept
	maxAhead = 256 << 10 // of a console, for a person who does not read
)

// errNotRunning: the desk is open from Run to its return.
var errNotRunning = errors.New("the heat is not running")

// End ends the heat as aborted. Before Run it makes Run end at once. A heat that
// ends already is left to that, and the error says who ended it.
func (h *Heat) End(_ context.Context, author, reason string) error {
	return h.cut(ended{author: words(author), reason: words(reason)})
}

func (h *Heat) cut(e ended) error {
	h.endMu.Lock()
	defer h.endMu.Unlock()
	if h.ended != nil {
		return fmt.Errorf("the heat ends already: %w", *h.ended)
	}
	h.ended = &e
	if h.end == nil {
		h.early = &e
		return nil
	}
	h.end(e)
	return nil
}

// stop ends the heat as aborted, from within.
func (h *Heat) stop(cause error) {
	h.endMu.Lock()
	defer h.endMu.Unlock()
	if h.end != nil {
		h.end(cause)
	}
}

// Note adds a person's note to the log.
func (h *Heat) Note(_ context.Context, author, note string) error {
	if !h.enter() {
		return errNotRunning
	}
	defer h.desks.Done()
	_, err := h.Append(event.OperatorNote{Author: words(author), Text: words(note)})
	return err
}

// enter lets a person's call in from the log's first lines on, which may be an
// instant before the clock starts; it must leave with desks.Done.
func (h *Heat) enter() bool {
	h.endMu.Lock()
	defer h.endMu.Unlock()
	if h.end == nil || !h.begun.Load() {
		return false
	}
	h.desks.Add(1)
	return true
}

// running is a seat that has not failed, for a person's call.
func (h *Heat) running(territory string) (*seat, error) {
	if s := h.seat(territory); s != nil && s.failed == nil {
		return s, nil
	}
	return nil, fmt.Errorf("no running seat is called %q", words(territory))
}

// Attach joins a machine's serial console.
func (h *Heat) Attach(ctx context.Context, author, territory, machine string) (io.ReadWriteCloser, error) {
	if !h.enter() {
		return nil, errNotRunning
	}
	s, err := h.running(territory)
	if err != nil {
		h.desks.Done()
		return nil, err
	}
	m := s.cluster.Machine(machine)
	if m == nil {
		h.desks.Done()
		return nil, fmt.Errorf("seat %s has no machine %q", territory, machine)
	}
	author = words(author)
	if _, err := h.Append(event.ConsoleAttached{Territory: territory, Machine: machine, Author: author}); err != nil {
		h.desks.Done()
		return nil, err
	}
	c := &console{heat: h, m: m, seat: s, author: author, done: make(chan struct{})}
	c.more = sync.NewCond(&c.mu)
	c.detach = m.Console().Attach(c.printed)
	h.desks.Go(func() { // ends with the machine, or with Close
		select {
		case <-m.Done():
		case <-c.done:
		}
		c.Close()
	})
	return c, nil
}

// console is a person at a serial console.
type console struct {
	heat   *Heat
	m      vm.Machine
	seat   *seat
	author string
	detach func()

	mu    sync.Mutex
	more  *sync.Cond
	ahead []byte // printed, not read yet
	keys  echo.Input
	typed []byte // what is kept of it
	count uint64
	over  bool
	done  chan struct{} // closed when it is over
}

// Login implements control.LoginAt.
func (c *console) Login() control.Login {
	return control.Login{User: "root", Password: c.seat.password}
}

func (c *console) printed(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead = append(c.ahead, p...); len(c.ahead) > maxAhead {
		c.ahead = append([]byte(nil), c.ahead[len(c.ahead)-maxAhead/2:]...)
	}
	c.keep(c.keys.Printed(p))
	c.more.Broadcast()
}

// Read gives what is printed, from the attach on.
func (c *console) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.ahead) == 0 {
		if c.over {
			return 0, io.EOF
		}
		c.more.Wait()
	}
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// Write types.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	c.count += uint64(len(p))
	c.keep(c.keys.Typed(p))
	c.mu.Unlock()
	return c.m.Console().Write(p)
}

// keep remembers typed lines by package echo's rule: those that the console
// showed; of others only that they were. c.mu is held.
func (c *console) keep(lines []echo.Line) {
	for _, l := range lines {
		text := "[not shown]"
		if l.Shown {
			text = c.seat.masked(l.Text)
		}
		if len(c.typed)+len(text) < maxTyped {
			c.typed = append(append(c.typed, text...), '\n')
		}
	}
}

// Close detaches, and logs what was typed.
func (c *console) Close() error {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil
	}
	c.over = true
	c.keep(c.keys.End())
	close(c.done)
	typed, count := string(c.typed), c.count
	c.more.Broadcast()
	c.mu.Unlock()
	c.detach()
	c.heat.say(event.ConsoleDetached{Territory: c.seat.id(), Machine: c.m.Name(), Author: c.author, Bytes: count, Input: text.Block(typed)})
	c.heat.desks.Done()
	return nil
}

func words(s string) string { return text.Line(s[:min(len(s), maxWords)]) }
