// Package serve shows the screen to many over SSH: each who comes gets a program of
// their own, with a playhead of its own, over the same recordings.
//
// It hides the protocol. It promises: anybody who reaches the port may look, without a
// password; nobody gets a shell, a file, a forward or an environment; who came with
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
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/ssh"
	"github.com/charmbracelet/wish"
	gossh "golang.org/x/crypto/ssh"

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
	// Most clients at once; the next is told so and left alone.
	Most int
	// Show shows the program until the client leaves or ctx ends; its error is told to
	// the client and to Log.
	Show func(ctx context.Context, c Client) error
	Log  func(format string, a ...any)
}

// Bounds of a client.
const (
	idle    = 12 * time.Hour // without a key and without a frame
	maxSide = 1000           // cells
	goodbye = 2 * time.Second
)

// Serve serves until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slots := make(chan struct{}, max(1, cfg.Most))
	var clients sync.WaitGroup
	h := &host{cfg: cfg, ctx: ctx, slots: slots}
	s, err := wish.NewServer(
		wish.WithHostKeyPEM(cfg.HostKey),
		wish.WithVersion("refbox"),
		wish.WithIdleTimeout(idle),
		// Every key is let in and none is needed: who may do what is the key's.
		wish.WithPublicKeyAuth(func(ssh.Context, ssh.PublicKey) bool { return true }),
		wish.WithKeyboardInteractiveAuth(func(ssh.Context, gossh.KeyboardInteractiveChallenge) bool { return true }),
		wish.WithMiddleware(func(ssh.Handler) ssh.Handler {
			return func(sess ssh.Session) {
				clients.Add(1)
				defer clients.Done()
				h.serve(sess)
			}
		}),
	)
	if err != nil {
		return fmt.Errorf("serve over SSH: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(cfg.Listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = nil
	}
	stop()
	left := make(chan struct{})
	go func() { clients.Wait(); close(left) }()
	select {
	case <-left:
	case <-time.After(goodbye): // a client that takes no byte keeps nobody
	}
	closing := s.Close()
	<-left
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
}

// serve is one client's session, from its first byte to its last.
func (h *host) serve(sess ssh.Session) {
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
	defer stop()
	go func() { // ends with the session, which ends when this returns
		select {
		case <-sess.Context().Done():
		case <-ctx.Done():
		}
		stop()
	}()
	c := Client{Name: who, ReadWriter: sess, Profile: profile(pty.Term, sess.Environ())}
	if k := sess.PublicKey(); k != nil {
		c.Key = gossh.FingerprintSHA256(k)
		c.Referee = slices.ContainsFunc(h.cfg.Referees, func(r gossh.PublicKey) bool { return ssh.KeysEqual(k, r) })
	}
	sizes := make(chan [2]int, 1)
	sizes <- side(pty.Window)
	c.Sizes = sizes
	go func() {
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
	}()
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

func refuse(sess ssh.Session, why string) {
	fmt.Fprintf(sess.Stderr(), "refbox: %s\r\n", why)
	_ = sess.Exit(1)
}

func side(w ssh.Window) [2]int {
	return [2]int{min(max(w.Width, 0), maxSide), min(max(w.Height, 0), maxSide)}
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
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the referees' keys: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the referees' keys: %w", err)
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
