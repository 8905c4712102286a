package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/internal/pause"
	"refbox/vm"
)

// Dial makes an authenticated connection, as root, to the SSH server of one of
// the seat's machines. The connection belongs to the gateway.
type Dial func(ctx context.Context, machine string) (*ssh.Client, error)

// DialCluster dials the machines of a cluster with the key that its Start was
// given, and knows their host keys.
func DialCluster(c vm.Cluster, key ssh.Signer) Dial {
	return func(ctx context.Context, machine string) (*ssh.Client, error) {
		m := c.Machine(machine)
		if m == nil {
			return nil, fmt.Errorf("the seat has no machine %q", machine)
		}
		addr, err := m.Addr(22)
		if err != nil {
			return nil, err
		}
		return DialSSH(ctx, addr, &ssh.ClientConfig{
			User:            "root",
			Auth:            []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback: ssh.FixedHostKey(m.HostKey()),
		})
	}
}

// DialSSH is ssh.Dial that ctx ends, the handshake included. A connection on
// which the server has not said anything after a while is tried again: a
// forward takes connections for a machine that is still starting, and may not
// come back to them before long. Once the server has spoken it has all of ctx.
func DialSSH(ctx context.Context, addr string, config *ssh.ClientConfig) (*ssh.Client, error) {
	for patience := 5 * time.Second; ; patience *= 2 {
		conn, err := vm.Dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		server := &speaker{Conn: conn, silence: time.AfterFunc(patience, func() { conn.Close() })}
		c, chans, reqs, err := ssh.NewClientConn(server, addr, config)
		silent := !server.silence.Stop() && !server.spoke.Load()
		if !stop() && err == nil { // ctx ended between the handshake and here
			c.Close()
			c.Wait()
			err = ctx.Err()
		}
		switch {
		case err == nil:
			return ssh.NewClient(c, chans, reqs), nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w (%w)", ctx.Err(), err)
		case !silent:
			return nil, err
		}
	}
}

// speaker is a connection that ends unless the server says something in time.
type speaker struct {
	net.Conn
	silence *time.Timer
	spoke   atomic.Bool
}

func (s *speaker) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 && !s.spoke.Load() {
		s.spoke.Store(true)
		s.silence.Stop()
	}
	return n, err
}

// Config describes a seat's gateway.
type Config struct {
	Machines []string // the seat's machines; "root" is the first
	Dial     Dial
	Observer Observer
	// Password and Key are the credentials that let a player in; at least one.
	Password string
	Key      ssh.PublicKey
}

// Bounds of what clients may ask of a gateway.
const (
	maxClients    = 128              // authenticated connections of a seat
	maxHandshakes = 32               // connections that are not authenticated yet
	maxChannels   = 128              // sessions and forwards of a seat
	maxRefusals   = 100              // refusals that are recorded, of a seat
	authTries     = 3                // per connection
	handshakeTime = 15 * time.Second // from accept to authenticated
	linger        = 10 * time.Second // for the far end to confirm a close
)

// Gateway is one seat's door: an SSH server that lets the seat's player through
// to the seat's machines, and tells the observer what it does there.
type Gateway struct {
	cfg      Config
	listener net.Listener
	hostKey  ssh.Signer
	server   *ssh.ServerConfig
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	channels chan struct{} // a token for each open session or forward
	machines map[string]*upstream
	hold     hold

	mu         sync.Mutex
	handshakes []net.Conn // oldest first
	clients    int
	sessions   uint64
	refusals   int

	startMu sync.Mutex // keeps the actions' numbers in the order of their reports
	actions uint64
}

// Open starts a gateway on a free port of the host's loopback, with a host key
// of its own.
func Open(cfg Config) (*Gateway, error) {
	switch {
	case len(cfg.Machines) == 0:
		return nil, errors.New("open gateway: the seat has no machines")
	case cfg.Dial == nil || cfg.Observer == nil:
		return nil, errors.New("open gateway: Dial and Observer are needed")
	case cfg.Password == "" && cfg.Key == nil:
		return nil, errors.New("open gateway: a password or a key is needed")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the gateway's host key: %w", err)
	}
	hostKey, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		return nil, fmt.Errorf("make the gateway's host key: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open gateway: %w", err)
	}
	g := &Gateway{cfg: cfg, listener: l, hostKey: hostKey,
		channels: make(chan struct{}, maxChannels), machines: map[string]*upstream{}}
	g.cfg.Machines = slices.Clone(cfg.Machines)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	for _, m := range cfg.Machines {
		g.machines[m] = newUpstream(g, m)
	}
	g.server = g.serverConfig()
	g.wg.Go(g.accept)
	return g, nil
}

func (g *Gateway) serverConfig() *ssh.ServerConfig {
	c := &ssh.ServerConfig{MaxAuthTries: authTries, ServerVersion: "SSH-2.0-refbox"}
	refused := errors.New("refused")
	if g.cfg.Password != "" {
		want := sha256.Sum256([]byte(g.cfg.Password))
		c.PasswordCallback = func(m ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			got := sha256.Sum256(password)
			if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || g.machineOf(m.User()) == "" {
				return nil, refused
			}
			return nil, nil
		}
	}
	if g.cfg.Key != nil {
		want := g.cfg.Key.Marshal()
		c.PublicKeyCallback = func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if subtle.ConstantTimeCompare(key.Marshal(), want) != 1 || g.machineOf(m.User()) == "" {
				return nil, refused
			}
			return nil, nil
		}
	}
	c.AddHostKey(g.hostKey)
	return c
}

// machineOf is the machine that a user name selects; "" for none.
func (g *Gateway) machineOf(user string) string {
	if slices.Contains(g.cfg.Machines, user) {
		return user
	}
	if user == "root" {
		return g.cfg.Machines[0]
	}
	return ""
}

// Addr is where players connect: "127.0.0.1:port".
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

// HostKey is the gateway's.
func (g *Gateway) HostKey() ssh.PublicKey { return g.hostKey.PublicKey() }

// Login is the player's way in, the files left out.
func (g *Gateway) Login() Login {
	return Login{Addr: g.Addr(), User: "root", Machines: slices.Clone(g.cfg.Machines),
		Password: g.cfg.Password, HostKey: g.HostKey()}
}

// Drop ends the connections to a machine that is known to have gone down: the
// actions on it finish without an exit, with reason as detail. New ones
// connect afresh.
func (g *Gateway) Drop(machine, reason string) {
	if u := g.machines[machine]; u != nil {
		u.drop(reason)
	}
}

// Close ends all sessions and waits for everything that the gateway started.
// Open actions finish without an exit. It is idempotent.
func (g *Gateway) Close() error {
	g.cancel()
	err := g.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, u := range g.machines {
		u.drop("the gateway closed")
	}
	g.wg.Wait()
	return err
}

func (g *Gateway) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: what frees them is not in our
			// hands, so try again soon.
			if !pause.For(g.ctx, 50*time.Millisecond) {
				return
			}
			continue
		}
		g.shakeHands(conn)
		g.wg.Go(func() { g.serve(conn) })
	}
}

// shakeHands lists a connection that is not authenticated yet. When there are
// too many the oldest goes: whoever can finish a handshake has done so long
// before, and one who only holds connections open keeps nobody out.
func (g *Gateway) shakeHands(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handshakes = append(g.handshakes, conn)
	if len(g.handshakes) > maxHandshakes {
		g.handshakes[0].Close()
		g.handshakes = slices.Delete(g.handshakes, 0, 1)
	}
}

// handsShaken ends a handshake; true when the client is let in.
func (g *Gateway) handsShaken(conn net.Conn, ok bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.handshakes, conn); i >= 0 {
		g.handshakes = slices.Delete(g.handshakes, i, i+1)
	}
	if !ok || g.clients >= maxClients {
		return false
	}
	g.clients++
	return true
}

func (g *Gateway) serve(conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(g.ctx, func() { conn.Close() })
	defer stop()
	conn.SetDeadline(time.Now().Add(handshakeTime))
	sc, chans, reqs, err := ssh.NewServerConn(conn, g.server)
	if !g.handsShaken(conn, err == nil) {
		if err == nil {
			sc.Close()
			sc.Wait()
		}
		return
	}
	defer func() {
		g.mu.Lock()
		g.clients--
		g.mu.Unlock()
	}()
	conn.SetDeadline(time.Time{})
	c := &client{g: g, conn: sc, machine: g.machineOf(sc.User())}
	c.serve(chans, reqs)
}

// client is one authenticated connection of the player.
type client struct {
	g       *Gateway
	conn    *ssh.ServerConn
	machine string
	wg      sync.WaitGroup
}

func (c *client) serve(chans <-chan ssh.NewChannel, reqs <-chan *ssh.Request) {
	c.wg.Go(func() { c.requests(reqs) })
	for nc := range chans {
		kind := nc.ChannelType()
		if kind != "session" && kind != "direct-tcpip" {
			c.g.refuse(c.machine, "open a "+line(kind)+" channel", "not offered")
			nc.Reject(ssh.UnknownChannelType, "the gateway does not offer this")
			continue
		}
		select {
		case c.g.channels <- struct{}{}:
		default:
			c.g.refuse(c.machine, "open a "+kind+" channel", "too many are open")
			nc.Reject(ssh.ResourceShortage, fmt.Sprintf("the seat has %d channels open", maxChannels))
			continue
		}
		c.wg.Go(func() {
			defer func() { <-c.g.channels }()
			if kind == "session" {
				c.session(nc)
			} else {
				c.forward(nc)
			}
		})
	}
	c.wg.Wait()
}

// requests refuses what a connection as a whole may ask for; a refused
// keepalive is an answered one.
func (c *client) requests(reqs <-chan *ssh.Request) {
	for r := range reqs {
		switch r.Type {
		case "tcpip-forward", "streamlocal-forward@openssh.com":
			c.g.refuse(c.machine, r.Type, "nothing in the seat may listen for the host")
		}
		r.Reply(false, nil)
	}
}

// begin numbers and reports a new action. Command may be hostile.
func (g *Gateway) begin(channel, machine, command string, session uint64) *action {
	g.startMu.Lock()
	defer g.startMu.Unlock()
	g.actions++
	a := &action{g: g, number: g.actions, machine: machine, start: time.Now()}
	g.cfg.Observer.ActionStarted(Action{
		Number: a.number, Channel: channel, Machine: machine, Command: excerptOf(command),
		Session: session, SelfReported: channel == ChannelAnnounced || channel == ChannelTerminal, Hostile: drives(command),
	})
	return a
}

// refuse reports, within bounds, what a player was not allowed to do.
func (g *Gateway) refuse(machine, what, why string) {
	g.mu.Lock()
	g.refusals++
	n := g.refusals
	g.mu.Unlock()
	if n > maxRefusals {
		return
	}
	if n == maxRefusals {
		why += "; further refusals are not listed"
	}
	g.begin(ChannelForward, machine, line(what), 0).finish(nil, "", 0, "refused: "+why)
}

func (g *Gateway) nextSession() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions++
	return g.sessions
}
