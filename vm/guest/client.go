// Package guest is the host's end of the referee's channel into a machine.
//
// It hides the wire: one JSON object per line, either way, over a virtio-serial
// port (assets/guest/agent.py is the other end). Lines resynchronise by
// themselves after a reset, whatever was under way. Requests carry an id and
// the session of the agent that they are meant for, so that nothing sent to one
// boot is ever carried out by the next.
//
// It guarantees that nothing the guest says costs the host more than a bounded
// amount of memory, and that a request ends when its context does, whatever the
// guest does. What the guest says is never trusted beyond that: root in the
// guest can say anything here.
package guest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"refbox/vm"
)

const (
	// maxLine bounds one reply: two outputs of 1 MiB, base64, and the rest.
	maxLine = 3 << 20
	// maxRequest bounds one request; it is what the agent accepts.
	maxRequest = 12 << 20
)

// Client speaks with the agent of one machine over its life. It outlives
// connections: a machine that was cut and started again is attached anew. The
// zero value is not usable; make one with New.
type Client struct {
	mu      sync.Mutex
	link    *link // nil while detached
	closed  bool
	hello   vm.Hello
	session string        // the agent that answers now, "" while unknown
	news    chan struct{} // closed and replaced at each change of session
	pending map[uint64]chan<- outcome
	next    uint64
	prefix  string // makes ids unguessable to an earlier owner of the port

	readers sync.WaitGroup
}

// link is one connection.
type link struct {
	conn io.ReadWriteCloser
	out  chan []byte
	// cancels has room, so that nobody waits to say that he waits no more.
	cancels chan []byte
	done    chan struct{} // closed when the connection is given up
	once    sync.Once
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.done)
		_ = l.conn.Close() // nothing is buffered in it that could be lost
	})
}

type outcome struct {
	reply reply
	err   error
}

type request struct {
	ID      string `json:"id,omitempty"`
	Session string `json:"session,omitempty"`
	Verb    string `json:"verb"`
	Args    any    `json:"args,omitempty"`
}

type reply struct {
	ID      string          `json:"id"`
	Hello   *helloWire      `json:"hello"`
	Session string          `json:"session"`
	OK      json.RawMessage `json:"ok"`
	Error   string          `json:"error"`
	Kind    string          `json:"kind"`
}

type helloWire struct {
	BootID   string  `json:"boot_id"`
	Hostname string  `json:"hostname"`
	TimeNS   int64   `json:"time_ns"`
	Uptime   float64 `json:"uptime"`
}

// New returns a client that is attached to nothing yet.
func New() *Client {
	var salt [6]byte
	_, _ = rand.Read(salt[:]) // crypto/rand.Read never fails
	return &Client{
		news:    make(chan struct{}),
		pending: map[uint64]chan<- outcome{},
		prefix:  hex.EncodeToString(salt[:]) + "-",
	}
}

// Attach gives the client a connection to the machine's port, which it owns
// from then on. Requests under way on an earlier connection fail. The agent is
// asked for its hello, which an agent that is not up yet gives when it is.
func (c *Client) Attach(conn io.ReadWriteCloser) {
	l := &link{conn: conn, out: make(chan []byte), cancels: make(chan []byte, 256), done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		_ = conn.Close()
		return
	}
	old := c.link
	c.link = l
	c.forget(fmt.Errorf("%w: attached anew", vm.ErrTransport))
	c.readers.Add(2)
	c.mu.Unlock()
	if old != nil {
		old.end()
	}
	go func() {
		defer c.readers.Done()
		c.write(l)
	}()
	go func() {
		defer c.readers.Done()
		c.read(l)
	}()
}

// Detach ends the connection; calls fail with ErrTransport until the next
// Attach. The last hello is forgotten.
func (c *Client) Detach() {
	c.mu.Lock()
	l := c.link
	c.link = nil
	c.forget(fmt.Errorf("%w: detached", vm.ErrTransport))
	c.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// Close detaches for good and waits for the client's goroutines.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.Detach()
	c.readers.Wait()
	return nil
}

// forget drops the session and fails what is under way. The caller holds mu.
func (c *Client) forget(err error) {
	c.session = ""
	c.hello = vm.Hello{}
	c.fail(err)
	c.announce()
}

// fail ends all requests under way. The caller holds mu.
func (c *Client) fail(err error) {
	for id, ch := range c.pending {
		ch <- outcome{err: err}
		delete(c.pending, id)
	}
}

// announce wakes those who wait for a session. The caller holds mu.
func (c *Client) announce() {
	close(c.news)
	c.news = make(chan struct{})
}

func (c *Client) write(l *link) {
	// The leading newline ends whatever an earlier owner of the port left half
	// written. This request has no session: it asks for one.
	if _, err := l.conn.Write([]byte("\n{\"verb\":\"hello\"}\n")); err != nil {
		c.lost(l, err)
		return
	}
	for {
		var line []byte
		select {
		case line = <-l.out:
		case line = <-l.cancels:
		case <-l.done:
			return
		}
		if _, err := l.conn.Write(line); err != nil {
			c.lost(l, err)
			return
		}
	}
}

func (c *Client) read(l *link) {
	r := newLineReader(l.conn, maxLine)
	var pace pacer
	for {
		line, n, err := r.next()
		switch {
		case errors.Is(err, errLongLine):
			c.garbage(l, "a reply over the limit")
		case err != nil:
			c.lost(l, err)
			return
		case len(line) == 0:
		default:
			if c.take(l, line) {
				n = 0 // it was asked for
			}
		}
		if !pace.spend(n, l.done) {
			return
		}
	}
}

// take acts on one line and tells whether it answered a request.
func (c *Client) take(l *link, line []byte) bool {
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		c.garbage(l, "a line that is not a reply")
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return false
	}
	if r.Hello != nil {
		if r.Session == "" || len(r.Session) > 64 || len(r.Hello.BootID) > 64 || len(r.Hello.Hostname) > 255 {
			return false
		}
		if r.Session != c.session {
			c.fail(fmt.Errorf("%w: its agent was started anew", vm.ErrGuestLost))
		}
		c.session = r.Session
		c.hello = r.Hello.hello()
		c.announce()
		return false
	}
	id, ok := c.parseID(r.ID)
	if !ok {
		return false
	}
	ch, ok := c.pending[id]
	if !ok {
		return false // answered too late, or never asked
	}
	delete(c.pending, id)
	ch <- outcome{reply: r}
	return true
}

func (h helloWire) hello() vm.Hello {
	up := h.Uptime
	if !(up >= 0 && up < 1e9) { // also NaN
		up = 0
	}
	return vm.Hello{
		BootID:   h.BootID,
		Hostname: h.Hostname,
		Time:     time.Unix(0, h.TimeNS),
		Uptime:   time.Duration(math.Round(up * 1e9)),
	}
}

func (c *Client) parseID(s string) (uint64, bool) {
	rest, ok := bytes.CutPrefix([]byte(s), []byte(c.prefix))
	if !ok || len(rest) == 0 || len(rest) > 19 {
		return 0, false
	}
	var id uint64
	for _, d := range rest {
		if d < '0' || d > '9' {
			return 0, false
		}
		id = id*10 + uint64(d-'0')
	}
	return id, true
}

// garbage fails what is under way: a reply may have been what was garbled.
func (c *Client) garbage(l *link, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == l {
		c.fail(fmt.Errorf("%w: its agent sent %s", vm.ErrGuestLost, what))
	}
}

// lost ends a connection that failed by itself.
func (c *Client) lost(l *link, err error) {
	l.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return
	}
	c.link = nil
	c.forget(fmt.Errorf("%w: %w", vm.ErrTransport, err))
}

// call makes one request and decodes its answer into out, which may be nil.
func (c *Client) call(ctx context.Context, verb string, args, out any) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("guest %s: %w", verb, err)
	}
	l, session, err := c.ready(ctx)
	if err != nil {
		return fmt.Errorf("guest %s: %w", verb, err)
	}
	ch := make(chan outcome, 1)
	c.mu.Lock()
	if c.link != l || c.session != session {
		c.mu.Unlock()
		return fmt.Errorf("guest %s: %w: the guest restarted", verb, vm.ErrGuestLost)
	}
	c.next++
	n := c.next
	c.pending[n] = ch
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		delete(c.pending, n)
		c.mu.Unlock()
	}

	id := fmt.Sprintf("%s%d", c.prefix, n)
	line, err := json.Marshal(request{ID: id, Session: session, Verb: verb, Args: args})
	if err != nil {
		forget()
		return fmt.Errorf("guest %s: %w", verb, err)
	}
	if len(line) >= maxRequest {
		forget()
		return fmt.Errorf("guest %s: a request of %d bytes is over the limit of %d", verb, len(line), maxRequest)
	}
	select {
	case l.out <- append(line, '\n'):
	case o := <-ch:
		return finish(verb, o, out)
	case <-ctx.Done():
		forget()
		return fmt.Errorf("guest %s: %w", verb, silent(ctx))
	}
	select {
	case o := <-ch:
		return finish(verb, o, out)
	case <-ctx.Done():
		forget()
		c.cancel(l, session, id)
		return fmt.Errorf("guest %s: %w", verb, silent(ctx))
	}
}

// cancel tells the agent that nobody waits any more. It never waits itself; a
// guest that reads nothing misses it.
func (c *Client) cancel(l *link, session, id string) {
	line, err := json.Marshal(request{Session: session, Verb: "cancel", Args: map[string]string{"id": id}})
	if err != nil {
		return
	}
	select {
	case l.cancels <- append(line, '\n'):
	default:
	}
}

// silent is why a context's end ended a request: a deadline is the guest's
// silence, a cancellation is the caller's wish.
func silent(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", vm.ErrGuestLost, ctx.Err())
	}
	return ctx.Err()
}

// ready waits until an agent has said hello on a connection.
func (c *Client) ready(ctx context.Context) (*link, string, error) {
	for {
		c.mu.Lock()
		l, session, news := c.link, c.session, c.news
		c.mu.Unlock()
		if l == nil {
			return nil, "", fmt.Errorf("%w: not attached", vm.ErrTransport)
		}
		if session != "" {
			return l, session, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, "", silent(ctx)
		}
	}
}

// WaitHello waits for the hello of a boot other than notBoot; "" takes any. It
// waits through detached times.
func (c *Client) WaitHello(ctx context.Context, notBoot string) (vm.Hello, error) {
	for {
		c.mu.Lock()
		h, session, news, closed := c.hello, c.session, c.news, c.closed
		c.mu.Unlock()
		if session != "" && h.BootID != notBoot {
			return h, nil
		}
		if closed {
			return vm.Hello{}, fmt.Errorf("guest hello: %w: closed", vm.ErrTransport)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return vm.Hello{}, fmt.Errorf("guest hello: %w", silent(ctx))
		}
	}
}
