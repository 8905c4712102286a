// Package serve shows the screen to many over SSH: each who comes gets a program of
// their own, with a playhead of its own, over the same recordings.
//
// It hides the protocol. It promises: who may look is everybody who reaches the port, or
// those whose keys are listed; nobody gets a shell, a file, a forward or an environment; who came with
// a listed key is told apart, and nobody else is; a client that is slow, silent or
// gone costs itself frames and nobody else anything; the number of clients is
// bounded; when the context ends, each has been told and has left.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/ssh"
	"github.com/charmbracelet/wish"
	gossh "golang.org/x/crypto/ssh"

	"refbox/engine/bounded"
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// Client is somebody who looks.
type Client struct {
	Name    string // as they say; sanitised
	Key     string // the fingerprint of the key that they proved to have; "" for none
	Referee bool   // the key is a listed one
	Profile canvas.Profile
	Sizes   <-chan [2]int // columns and rows: the first at once, then each change
	io.ReadWriter
}

// Config says how clients are served.
type Config struct {
	Listener net.Listener
	HostKey  []byte // PEM
	Referees []gossh.PublicKey
	// Watchers may watch, and referees; nil: anybody may.
	Watchers []gossh.PublicKey
	// Most clients at once; the next is told so and left alone.
	Most int
	// Show shows the program until the client leaves or ctx ends; its error is told to
	// the client and to Log.
	Show func(ctx context.Context, c Client) error
	Log  func(format string, a ...any)
}

// Bounds of a client.
const (
	idle      = 12 * time.Hour  // without a key and without a frame
	handshake = 2 * time.Minute // a person compares the host key meanwhile
	maxSide   = 400             // cells
	maxArea   = 48_000          // cells: each takes about sixty bytes of memory
	goodbye   = 2 * time.Second
	perClient = 4 // connections for each who may watch: some are being let in or refused
	maxKeys   = 1 << 20
)

// Serve serves until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &host{cfg: cfg, ctx: ctx, slots: make(chan struct{}, max(1, cfg.Most)), conns: make(chan struct{}, perClient*max(1, cfg.Most)), gone: make(chan struct{})}
	s, err := wish.NewServer(
		wish.WithHostKeyPEM(cfg.HostKey),
		wish.WithVersion("refbox"),
		wish.WithIdleTimeout(idle),
		// Where anybody may watch, every key is let in, as who may do what is the key's,
		// and none is needed.
		wish.WithPublicKeyAuth(func(_ ssh.Context, k ssh.PublicKey) bool {
			return cfg.Watchers == nil || listed(cfg.Watchers, k) || listed(cfg.Referees, k)
		}),
		wish.WithKeyboardInteractiveAuth(func(ssh.Context, gossh.KeyboardInteractiveChallenge) bool { return cfg.Watchers == nil }),
		wish.WithMiddleware(func(ssh.Handler) ssh.Handler { return h.session }),
	)
	if err != nil {
		return fmt.Errorf("serve over SSH: %w", err)
	}
	s.ConnCallback = h.connection
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(cfg.Listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = nil
	}
	stop()
	h.end()
	select {
	case <-h.gone:
	case <-time.After(goodbye): // a client that takes no byte keeps nobody
	}
	closing := s.Close()
	<-h.gone
	if err != nil {
		return fmt.Errorf("serve over SSH: %w", err)
	}
	if errors.Is(closing, net.ErrClosed) {
		return nil
	}
	return closing
}

type host struct {
	cfg   Config
	ctx   context.Context
	slots chan struct{}
	conns chan struct{}

	mu    sync.Mutex
	here  int  // sessions being served
	ended bool // no more are taken
	gone  chan struct{}
}

// end takes no more sessions; gone is closed once the last has ended.
func (h *host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.here == 0 {
		close(h.gone)
	}
}

// session serves one, unless the host has ended.
func (h *host) session(sess ssh.Session) {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return
	}
	h.here++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.here--; h.here == 0 && h.ended {
			close(h.gone)
		}
	}()
	h.serve(sess)
}

// connection bounds how many there are, and how long one may take to be let in.
func (h *host) connection(ctx ssh.Context, c net.Conn) net.Conn {
	select {
	case h.conns <- struct{}{}:
	default:
		return nil // it is closed
	}
	l := &limited{Conn: c, free: sync.OnceFunc(func() { <-h.conns })}
	l.late = time.AfterFunc(handshake, func() {
		if !l.in.Load() {
			l.Close()
		}
	})
	ctx.SetValue(limitedKey{}, l)
	return l
}

type limitedKey struct{}

// limited is a connection that gives its place back when it is closed.
type limited struct {
	net.Conn
	free func()
	late *time.Timer
	in   atomic.Bool // a session has begun
}

func (l *limited) Close() error {
	l.late.Stop()
	l.free()
	return l.Conn.Close()
}

// serve is one client's session, from its first byte to its last.
func (h *host) serve(sess ssh.Session) {
	if l, ok := sess.Context().Value(limitedKey{}).(*limited); ok && l.in.Swap(true) {
		refuse(sess, "one session to a connection")
		return
	}
	who := text.Truncate(text.Line(sess.User()), 40, "…")
	pty, changes, ok := sess.Pty()
	switch {
	case len(sess.Command()) > 0 || sess.Subsystem() != "":
		refuse(sess, "there is nothing to run here, only to watch: ssh without a command")
		return
	case !ok:
		refuse(sess, "this needs a terminal: ssh -t")
		return
	case pty.Term == "dumb":
		refuse(sess, "a dumb terminal cannot show the screen")
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		refuse(sess, fmt.Sprintf("%d watch already, which is as many as may", cap(h.slots)))
		return
	}
	ctx, stop := context.WithCancel(h.ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { // the connection's end
		select {
		case <-sess.Context().Done():
		case <-ctx.Done():
		}
		stop()
	})
	c := Client{Name: who, ReadWriter: &line{sess, stop}, Profile: profile(pty.Term, sess.Environ())}
	if k := sess.PublicKey(); k != nil {
		c.Key = gossh.FingerprintSHA256(k)
		c.Referee = listed(h.cfg.Referees, k)
	}
	sizes := make(chan [2]int, 1)
	sizes <- side(pty.Window)
	c.Sizes = sizes
	beside.Go(func() {
		for {
			select {
			case w, ok := <-changes:
				if !ok {
					return
				}
				select { // only the latest counts
				case <-sizes:
				default:
				}
				sizes <- side(w)
			case <-ctx.Done():
				return
			}
		}
	})
	h.cfg.Log("%s watches from %s%s", who, sess.RemoteAddr(), map[bool]string{true: ", a referee"}[c.Referee])
	err := h.cfg.Show(ctx, c)
	switch {
	case h.ctx.Err() != nil:
		fmt.Fprint(sess, "refbox serve has ended\r\n")
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(sess, "%s\r\n", text.Line(err.Error()))
		h.cfg.Log("%s: %s", who, text.Line(err.Error()))
		_ = sess.Exit(1)
		return
	}
	h.cfg.Log("%s has left", who)
	_ = sess.Exit(0)
}

// line is a session whose end is its program's: the program itself takes neither the
// end of its input nor a failed write for one.
type line struct {
	ssh.Session
	stop func()
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Session.Read(p)
	if err != nil {
		l.stop()
	}
	return n, err
}

func (l *line) Write(p []byte) (int, error) {
	n, err := l.Session.Write(p)
	if err != nil {
		l.stop()
	}
	return n, err
}

func listed(keys []gossh.PublicKey, k ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(o gossh.PublicKey) bool { return ssh.KeysEqual(k, o) })
}

func refuse(sess ssh.Session, why string) {
	fmt.Fprintf(sess.Stderr(), "refbox: %s\r\n", why)
	_ = sess.Exit(1)
}

func side(w ssh.Window) [2]int {
	columns, rows := min(max(w.Width, 0), maxSide), min(max(w.Height, 0), maxSide)
	return [2]int{columns, min(rows, maxArea/max(columns, 1))}
}

// profile tells a client's colours from what it says of its terminal: nothing is
// asked of it.
func profile(term string, env []string) canvas.Profile {
	for _, kv := range env {
		switch k, v, _ := strings.Cut(kv, "="); {
		case k == "NO_COLOR" && v != "":
			return canvas.Mono
		case k == "COLORTERM" && (v == "truecolor" || v == "24bit"):
			return canvas.TrueColor
		}
	}
	switch {
	case strings.HasSuffix(term, "-direct"), strings.Contains(term, "kitty"), strings.Contains(term, "ghostty"), strings.Contains(term, "alacritty"):
		return canvas.TrueColor
	case strings.Contains(term, "256color"):
		return canvas.ANSI256
	case strings.HasPrefix(term, "vt"):
		return canvas.Mono
	}
	return canvas.ANSI16
}

// Keys reads public keys as an authorized_keys file has them.
func Keys(file string) ([]gossh.PublicKey, error) {
	data, err := bounded.File(file, maxKeys)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	var out []gossh.PublicKey
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, _, options, _, err := gossh.ParseAuthorizedKey([]byte(line))
		if err == nil && len(options) > 0 {
			err = errors.New("a key's options are not heeded here; leave them out")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no public key", file)
	}
	return out, nil
}
