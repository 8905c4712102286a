package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guest stands for a machine's sshd: real commands of this host's sh, OpenSSH's
// limit of sessions, and a power button.
type guest struct {
	t           testing.TB
	hostKey     ssh.Signer
	key         ssh.Signer // the referee's
	config      *ssh.ServerConfig
	maxSessions int
	silent      bool // never answers a request for a command
	bare        bool // answers commands itself, without a process: "true", "cat"
	hasty       bool // has run a command and closed its channel before it would answer

	mu    sync.Mutex
	addr  string
	l     net.Listener
	conns map[net.Conn]int // sessions open
	dials int
	kills []func()
	wg    sync.WaitGroup
}

func signer(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newGuest(t testing.TB) *guest {
	g := &guest{t: t, hostKey: signer(t), key: signer(t), maxSessions: 10, conns: map[net.Conn]int{}}
	g.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(g.key.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	g.config.AddHostKey(g.hostKey)
	g.up()
	t.Cleanup(g.down)
	return g
}

func (g *guest) up() {
	g.mu.Lock()
	defer g.mu.Unlock()
	addr := g.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.l = l
	if g.addr == "" {
		g.addr = l.Addr().String()
	}
	g.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns[c] = 0
			g.dials++
			g.mu.Unlock()
			g.wg.Go(func() { g.serve(c) })
		}
	})
}

// down cuts the power and waits until nothing runs.
func (g *guest) down() {
	g.mu.Lock()
	g.l.Close()
	for c := range g.conns {
		c.Close()
	}
	for _, k := range g.kills {
		k()
	}
	g.kills = nil
	g.mu.Unlock()
	g.wg.Wait()
}

func (g *guest) dial(ctx context.Context, _ string) (*ssh.Client, error) {
	return DialSSH(ctx, g.addr, &ssh.ClientConfig{User: "root",
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(g.key)},
		HostKeyCallback: ssh.FixedHostKey(g.hostKey.PublicKey())})
}

func (g *guest) serve(c net.Conn) {
	defer func() {
		c.Close()
		g.mu.Lock()
		delete(g.conns, c)
		g.mu.Unlock()
	}()
	sc, chans, reqs, err := ssh.NewServerConn(c, g.config)
	if err != nil {
		return
	}
	g.wg.Go(func() { ssh.DiscardRequests(reqs) })
	for nc := range chans {
		switch nc.ChannelType() {
		case "session":
			g.mu.Lock()
			g.conns[c]++
			full := g.conns[c] > g.maxSessions
			if full {
				g.conns[c]--
			}
			g.mu.Unlock()
			if full {
				nc.Reject(ssh.ConnectionFailed, "open failed")
				continue
			}
			ch, reqs, err := nc.Accept()
			if err != nil {
				continue
			}
			g.wg.Go(func() {
				g.session(sc, ch, reqs)
				g.mu.Lock()
				if _, ok := g.conns[c]; ok {
					g.conns[c]--
				}
				g.mu.Unlock()
			})
		case "direct-tcpip":
			g.wg.Go(func() { g.tcpip(nc) })
		default:
			nc.Reject(ssh.UnknownChannelType, "no")
		}
	}
	sc.Wait()
}

func (g *guest) tcpip(nc ssh.NewChannel) {
	var d directTCPIP
	ssh.Unmarshal(nc.ExtraData(), &d)
	conn, err := net.Dial("tcp", net.JoinHostPort(d.Host, strconv.Itoa(int(d.Port))))
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, "connection refused")
		return
	}
	defer conn.Close()
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	g.wg.Go(func() { ssh.DiscardRequests(reqs); conn.Close() })
	g.wg.Go(func() { io.Copy(conn, ch); conn.(*net.TCPConn).CloseWrite() })
	io.Copy(ch, conn)
	ch.Close()
}

func (g *guest) session(sc *ssh.ServerConn, ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer ch.Close()
	var env []string
	var size *pty.Winsize
	var kill func(syscall.Signal)
	var resize func(pty.Winsize)
	var done chan struct{}
	for {
		var r *ssh.Request
		var ok bool
		select {
		case r, ok = <-reqs:
		case <-done:
			ch.Close()
			for range reqs {
			}
			return
		}
		if !ok {
			if kill != nil {
				kill(syscall.SIGHUP)
				<-done
			}
			return
		}
		switch r.Type {
		case "env":
			var kv struct{ K, V string }
			ssh.Unmarshal(r.Payload, &kv)
			env = append(env, kv.K+"="+kv.V)
			r.Reply(true, nil)
		case "pty-req":
			var p ptyRequest
			ssh.Unmarshal(r.Payload, &p)
			env = append(env, "TERM="+p.Term)
			size = &pty.Winsize{Cols: uint16(p.Cols), Rows: uint16(p.Rows)}
			r.Reply(true, nil)
		case "window-change":
			var w windowChange
			ssh.Unmarshal(r.Payload, &w)
			if resize != nil {
				resize(pty.Winsize{Cols: uint16(w.Cols), Rows: uint16(w.Rows)})
			}
		case "signal":
			var s struct{ Name string }
			ssh.Unmarshal(r.Payload, &s)
			kill(syscall.Signal(signals[s.Name]))
		case "exec", "shell", "subsystem":
			if g.silent {
				continue
			}
			if g.hasty {
				io.WriteString(ch, "done\n")
				ch.SendRequest("exit-status", false, []byte{0, 0, 0, 7})
				return
			}
			var arg struct{ S string }
			ssh.Unmarshal(r.Payload, &arg)
			done = make(chan struct{})
			r.Reply(true, nil)
			if g.bare {
				kill = func(syscall.Signal) {}
				g.wg.Go(func() { defer close(done); bare(ch, arg.S) })
				continue
			}
			args := []string{"-c", arg.S}
			if r.Type == "shell" {
				args = nil
			}
			cmd := exec.Command("sh", args...)
			if r.Type == "subsystem" {
				cmd = exec.Command("sh", "-c", "cat >/dev/null")
			}
			cmd.Env = append([]string{"PATH=/usr/bin:/bin", "PS1=", "HOME=/"}, env...)
			kill, resize = g.start(ch, cmd, size, done)
		default:
			r.Reply(false, nil)
		}
	}
}

func bare(ch ssh.Channel, command string) {
	if command == "cat" {
		io.Copy(ch, ch)
	}
	ch.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
}

func (g *guest) start(ch ssh.Channel, cmd *exec.Cmd, size *pty.Winsize, done chan struct{}) (func(syscall.Signal), func(pty.Winsize)) {
	resize := func(pty.Winsize) {}
	var streams sync.WaitGroup
	if size != nil {
		f, err := pty.StartWithSize(cmd, size)
		if err != nil {
			g.t.Error(err)
			close(done)
			return func(syscall.Signal) {}, resize
		}
		resize = func(w pty.Winsize) { pty.Setsize(f, &w) }
		g.wg.Go(func() { io.Copy(f, ch); f.Close() })
		streams.Go(func() { io.Copy(ch, f) })
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		errs, _ := cmd.StderrPipe()
		if err := cmd.Start(); err != nil {
			g.t.Error(err)
			close(done)
			return func(syscall.Signal) {}, resize
		}
		g.wg.Go(func() { io.Copy(in, ch); in.Close() })
		streams.Go(func() { io.Copy(ch, out) })
		streams.Go(func() { io.Copy(ch.Stderr(), errs) })
	}
	pid := cmd.Process.Pid
	kill := func(s syscall.Signal) { syscall.Kill(-pid, s) }
	g.mu.Lock()
	g.kills = append(g.kills, func() { kill(syscall.SIGKILL) })
	g.mu.Unlock()
	g.wg.Go(func() {
		defer close(done)
		streams.Wait()
		err := cmd.Wait()
		var status int
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			ws := exit.Sys().(syscall.WaitStatus)
			if ws.Signaled() {
				for name, n := range signals {
					if n == int(ws.Signal()) {
						ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
							Name       string
							Core       bool
							Text, Lang string
						}{name, false, "", ""}))
						return
					}
				}
			}
			status = exit.ExitCode()
		}
		ch.SendRequest("exit-status", false, []byte{0, 0, 0, byte(status)})
	})
	return kill, resize
}

// watcher remembers what a gateway tells.
type watcher struct {
	mu      sync.Mutex
	changed chan struct{}
	started []Action
	done    map[uint64]Finish
	ended   map[uint64]int
	casts   map[uint64]*tape
}

type tape struct {
	w      *watcher // told of events; nil for none
	mu     sync.Mutex
	s      Session
	events []struct {
		code byte
		data string
	}
	closed int
}

func newWatcher() *watcher {
	return &watcher{changed: make(chan struct{}), done: map[uint64]Finish{}, ended: map[uint64]int{}, casts: map[uint64]*tape{}}
}

func (w *watcher) tell(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watcher) ActionStarted(a Action) { w.tell(func() { w.started = append(w.started, a) }) }
func (w *watcher) ActionFinished(f Finish) {
	w.tell(func() {
		if _, twice := w.done[f.Number]; twice || w.ended[f.Number] != 1 {
			panic("an action finished twice, or without its end")
		}
		w.done[f.Number] = f
	})
}
func (w *watcher) ActionEnded(n uint64, _ string) { w.tell(func() { w.ended[n]++ }) }
func (w *watcher) SessionStarted(s Session) Cast {
	c := &tape{w: w, s: s}
	w.tell(func() { w.casts[s.Number] = c })
	return c
}

func (c *tape) Event(code byte, data []byte) {
	if c.w != nil {
		defer c.w.tell(func() {})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, struct {
		code byte
		data string
	}{code, string(data)})
}

func (c *tape) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *tape) text(code byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, e := range c.events {
		if e.code == code {
			b.WriteString(e.data)
		}
	}
	return b.String()
}

// waitFor waits until the cast's events of a kind have the words.
func (c *tape) waitFor(t testing.TB, code byte, want string) {
	t.Helper()
	c.w.wait(t, fmt.Sprintf("%q in the cast's %c events", want, code), func() bool { return strings.Contains(c.text(code), want) })
}

// wait waits until ok holds of what was told.
func (w *watcher) wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		changed, good := w.changed, ok()
		w.mu.Unlock()
		if good {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// finish waits for an action's finish.
func (w *watcher) finish(t testing.TB, n uint64) Finish {
	t.Helper()
	w.wait(t, "the finish of action "+strconv.Itoa(int(n)), func() bool { _, ok := w.done[n]; return ok })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[n]
}

func (w *watcher) action(n uint64) Action {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started[n-1]
}

func (w *watcher) tape(n uint64) *tape {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.casts[n]
}
