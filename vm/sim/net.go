package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"refbox/vm"
)

// The addresses of a guest's own interface are those of QEMU's user network.
const guestIP = "10.0.2.15"

const (
	backlog  = 64  // connections that a listener holds before it accepts them
	maxConns = 512 // connections of one machine at once
)

// port is a listening socket in a guest.
type port struct {
	b    *boot
	ip   string // "0.0.0.0" when it hears every address
	num  int
	proc *Process
	wait chan net.Conn
	gone chan struct{}
	once sync.Once
}

func (l *port) Accept() (net.Conn, error) {
	select {
	case c := <-l.wait:
		return c, nil
	case <-l.gone:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

func (l *port) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(l.ip), Port: l.num} }

// Close ends the listener; what nobody accepted is reset.
func (l *port) Close() error {
	l.once.Do(func() {
		l.b.mu.Lock()
		l.b.ports = slices.DeleteFunc(l.b.ports, func(o *port) bool { return o == l })
		l.b.mu.Unlock()
		close(l.gone)
		for {
			select {
			case c := <-l.wait:
				reset(c)
				continue
			default:
			}
			break
		}
		l.b.m.notify()
	})
	return nil
}

func (l *port) hears(ip string) bool {
	return l.ip == "0.0.0.0" || l.ip == ip || strings.HasPrefix(l.ip, "127.") && l.ip == ip
}

// listen opens a listening socket for p.
func (b *boot) listen(p *Process, addr string) (*port, error) {
	fail := func(e error) error {
		return &net.OpError{Op: "listen", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, e)}
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fail(err)
	}
	num, err := strconv.Atoi(service)
	if err != nil || num < 0 || num > 65535 {
		return nil, fail(syscall.EINVAL)
	}
	ip := "0.0.0.0"
	if host != "" && host != "0.0.0.0" && host != "::" {
		if ip, err = b.resolve(host); err != nil || !b.owns(ip) {
			return nil, fail(syscall.EADDRNOTAVAIL)
		}
	}
	l := &port{b: b, ip: ip, num: num, proc: p, wait: make(chan net.Conn, backlog), gone: make(chan struct{})}
	b.mu.Lock()
	if b.ctx.Err() != nil || p != nil && p.ctx.Err() != nil {
		b.mu.Unlock()
		return nil, fail(net.ErrClosed)
	}
	if l.num == 0 {
		for l.num = 32768; slices.ContainsFunc(b.ports, func(o *port) bool { return o.num == l.num }); l.num++ {
		}
	}
	for _, o := range b.ports {
		if o.num == l.num && (o.ip == ip || o.ip == "0.0.0.0" || ip == "0.0.0.0") {
			b.mu.Unlock()
			return nil, fail(syscall.EADDRINUSE)
		}
	}
	b.ports = append(b.ports, l)
	b.mu.Unlock()
	b.m.notify()
	return l, nil
}

// deliver hands c, a connection to ip:num, to whoever listens there.
func (b *boot) deliver(ctx context.Context, ip string, num int, c net.Conn) error {
	b.mu.Lock()
	var at *port
	for _, l := range b.ports {
		if l.num == num && l.hears(ip) {
			at = l
		}
	}
	b.mu.Unlock()
	if at == nil {
		return syscall.ECONNREFUSED
	}
	select {
	case at.wait <- c:
	case <-at.gone:
		return syscall.ECONNREFUSED
	case <-ctx.Done():
		return ctx.Err()
	}
	// The listener may have closed, and emptied its queue, just before.
	select {
	case <-at.gone:
		reset(c)
	default:
	}
	return nil
}

// owns reports whether ip is one of the machine's own addresses.
func (b *boot) owns(ip string) bool {
	return strings.HasPrefix(ip, "127.") || ip == guestIP || ip == "::1" || b.m.cl.ips[ip] == b.m
}

// resolve is what the guest's /etc/hosts says of a name.
func (b *boot) resolve(host string) (string, error) {
	if host == "::1" {
		return "127.0.0.1", nil
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.String(), nil
	}
	hosts, _ := b.fs.ReadFile("/etc/hosts")
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) > 1 && slices.ContainsFunc(f[1:], func(n string) bool { return strings.EqualFold(n, host) }) {
			if ip := net.ParseIP(f[0]); ip != nil && ip.To4() != nil {
				return ip.String(), nil
			}
		}
	}
	if host == "localhost" {
		return "127.0.0.1", nil
	}
	return "", &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// dial connects from inside the guest to one of its own addresses or, over a
// private link, to another machine of the cluster. There is nothing else.
func (b *boot) dial(ctx context.Context, addr string) (net.Conn, error) {
	fail := func(e error) error {
		if oe, ok := errors.AsType[*net.OpError](e); ok {
			return oe
		}
		return &net.OpError{Op: "dial", Net: "tcp", Err: e}
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fail(err)
	}
	num, err := strconv.Atoi(service)
	if err != nil {
		return nil, fail(err)
	}
	ip, err := b.resolve(host)
	if err != nil {
		return nil, fail(err)
	}
	to := b.m
	if !b.owns(ip) {
		if to = b.m.cl.ips[ip]; to == nil || !b.m.cl.linked(b.m, to, ip) {
			return nil, fail(syscall.ENETUNREACH)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	if err := b.m.gate.wait(ctx); err != nil {
		return nil, fail(err)
	}
	if err := to.gate.wait(ctx); err != nil {
		return nil, fail(err)
	}
	target := b
	if to != b.m {
		if target = to.current(); target == nil {
			<-ctx.Done() // nobody answers for a machine that is off
			return nil, fail(ctx.Err())
		}
	}
	if to != b.m {
		// A SYN and its answer; TCP repeats what is lost.
		if err := b.m.cl.cross(ctx, b.m, to, ip); err != nil {
			return nil, fail(err)
		}
	}
	near, far := net.Pipe()
	client, err := b.wrap(near, &net.TCPAddr{IP: net.ParseIP(ip), Port: num})
	if err != nil {
		near.Close()
		far.Close()
		return nil, fail(err)
	}
	server, err := target.wrap(far, &net.TCPAddr{IP: net.ParseIP(guestIP), Port: 40000})
	if err == nil && to != b.m {
		client.over, server.over = func(ctx context.Context) error { return b.m.cl.cross(ctx, b.m, to, ip) }, func(ctx context.Context) error { return b.m.cl.cross(ctx, to, b.m, ip) }
	}
	if err == nil {
		if err = target.deliver(ctx, ip, num, server); err != nil {
			server.Close()
		}
	}
	if err != nil {
		client.Close()
		far.Close()
		return nil, fail(err)
	}
	return client, nil
}

// conn is a guest's end of a connection: it stands still while the machine is
// paused and ends with its boot.
type conn struct {
	net.Conn
	b      *boot
	remote net.Addr
	once   sync.Once
	over   func(context.Context) error // the private link that it goes over, if any
}

func (b *boot) wrap(inner net.Conn, remote net.Addr) (*conn, error) {
	c := &conn{Conn: inner, b: b, remote: remote}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	if len(b.conns) >= maxConns {
		return nil, syscall.EMFILE
	}
	b.conns[c] = struct{}{}
	return c, nil
}

func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gerr := c.b.m.gate.wait(c.b.ctx); gerr != nil && n == 0 && err == nil {
		err = io.EOF
	}
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.b.m.gate.wait(c.b.ctx); err != nil {
		return 0, net.ErrClosed
	}
	if c.over != nil && c.over(c.b.ctx) != nil {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = syscall.EPIPE
	}
	return n, err
}

func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		c.b.mu.Lock()
		delete(c.b.conns, c)
		c.b.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}

// reset closes a connection so that the far end sees a reset where the medium
// has one.
func reset(c net.Conn) {
	inner := c
	if w, ok := c.(*conn); ok {
		inner = w.Conn
	}
	if t, ok := inner.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}

// forward is a loopback port of the host that reaches a port of the guest, for
// as long as the machine lives.
type forward struct {
	guest int
	addr  string       // of the host, fixed at start
	l     net.Listener // nil while the machine is off: its address then refuses
}

// openForwards listens on the host's side of every forward.
func (m *machine) openForwards() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		return vm.ErrPower
	}
	for _, f := range m.forwards {
		if f.l != nil {
			continue
		}
		l, err := net.Listen("tcp4", f.addr)
		if err != nil {
			return fmt.Errorf("machine %s: open a loopback port for guest port %d: %w", m.spec.Name, f.guest, err)
		}
		f.l = l
		if addr := l.Addr().String(); f.addr != addr { // at the start; later it is read without the lock
			f.addr = addr
		}
		m.tasks.run(func() { m.serveForward(f, l) })
	}
	return nil
}

func (m *machine) closeForwards() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.forwards {
		if f.l != nil {
			f.l.Close()
			f.l = nil
		}
	}
}

func (m *machine) serveForward(f *forward, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if m.life.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: the host's trouble, which passes.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-m.life.Done():
				return
			}
			continue
		}
		if m.gate.isOpen() {
			m.admit(f, c)
		} else if !m.tasks.run(func() {
			if m.gate.wait(m.life) == nil {
				m.admit(f, c)
			} else {
				reset(c)
			}
		}) {
			reset(c)
		}
	}
}

// admit behaves as QEMU's user network does: the host's connection exists
// already; a guest that does not want it has it reset.
func (m *machine) admit(f *forward, c net.Conn) {
	b := m.current()
	if b == nil {
		reset(c)
		return
	}
	w, err := b.wrap(c, &net.TCPAddr{IP: net.IPv4(10, 0, 2, 2), Port: c.RemoteAddr().(*net.TCPAddr).Port})
	if err != nil {
		reset(c)
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	if b.deliver(ctx, guestIP, f.guest, w) != nil {
		reset(w)
	}
}
