package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const maxSessions = 64 // on one connection

// runSSHD is the SSH server. As with Debian's, connections outlive a stop of
// the service and end with the boot.
func runSSHD(ctx context.Context, p *Process) error {
	b := p.b
	key, err := p.ReadFile("/etc/ssh/ssh_host_ed25519_key")
	if err != nil {
		return fmt.Errorf("no hostkeys available: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	cfg := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.2p1-sim",
		MaxAuthTries:  6,
		PasswordCallback: func(c ssh.ConnMetadata, pw []byte) (*ssh.Permissions, error) {
			if b.checkPassword(c.User(), string(pw)) {
				return nil, nil
			}
			return nil, fmt.Errorf("permission denied")
		},
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() == "root" && b.authorized(key) {
				return nil, nil
			}
			return nil, fmt.Errorf("permission denied")
		},
	}
	cfg.AddHostKey(signer)
	l, err := p.Listen(":22")
	if err != nil {
		return err
	}
	p.Ready()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		if !b.tasks.run(func() { b.serveSSH(c, cfg) }) {
			reset(c)
		}
	}
}

// authorized reports whether root's authorized_keys names the key.
func (b *boot) authorized(key ssh.PublicKey) bool {
	data, err := b.fs.ReadFile("/root/.ssh/authorized_keys")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		known, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err == nil && bytes.Equal(known.Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

func (b *boot) serveSSH(c net.Conn, cfg *ssh.ServerConfig) {
	defer c.Close()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	conn, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	wg.Go(func() {
		for r := range reqs { // keepalives
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	})
	var sessions tasks
	defer sessions.wait()
	for nc := range chans {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		sessions.mu.Lock()
		full := sessions.n >= maxSessions
		sessions.mu.Unlock()
		if full {
			_ = nc.Reject(ssh.ResourceShortage, "too many sessions")
			continue
		}
		ch, chReqs, err := nc.Accept()
		if err != nil {
			continue
		}
		sessions.run(func() { b.serveSession(ctx, ch, chReqs) })
	}
	cancel() // the client is gone: so is what it waited for
}

// serveSession runs the one command or shell of a session channel.
func (b *boot) serveSession(ctx context.Context, ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer ch.Close()
	env := b.environment()
	var (
		terminal bool
		proc     *Process
		over     chan int
	)
	started := make(chan *Process, 1)
	for reqs != nil {
		select {
		case <-over:
			_ = ch.Close()
			over = nil
		case r, ok := <-reqs:
			if !ok {
				reqs = nil
				break
			}
			accepted := false
			switch r.Type {
			case "env":
				var kv struct{ Name, Value string }
				if accepted = ssh.Unmarshal(r.Payload, &kv) == nil && len(env) < 64; accepted {
					env[kv.Name] = kv.Value
				}
			case "pty-req":
				terminal, accepted = true, over == nil && proc == nil
			case "window-change":
				accepted = true
			case "signal":
				var s struct{ Name string }
				if proc != nil && ssh.Unmarshal(r.Payload, &s) == nil {
					proc.signal(signalNumber(s.Name))
					accepted = true
				}
			case "exec", "shell":
				if proc != nil {
					break
				}
				line := struct{ Command string }{}
				if r.Type == "exec" && ssh.Unmarshal(r.Payload, &line) != nil {
					break
				}
				// The answer goes first: a quick command closes the channel.
				if r.WantReply {
					_ = r.Reply(true, nil)
					r.WantReply = false
				}
				over = make(chan int, 1)
				out := over
				if !b.tasks.run(func() { out <- b.session(ctx, ch, r.Type, line.Command, env, terminal, started) }) {
					reqs = nil
					break
				}
				proc = <-started
			}
			if r.WantReply {
				_ = r.Reply(accepted, nil)
			}
		}
	}
	if over != nil { // the client closed the channel first
		if proc != nil {
			proc.signal(syscall.SIGHUP)
		}
		ch.Close()
		<-over
	}
}

// session runs a command, or a shell, with the channel as its streams. It sends
// the process to started, nil when there is none.
func (b *boot) session(ctx context.Context, ch ssh.Channel, kind, command string, env map[string]string, terminal bool, started chan<- *Process) int {
	spec := processSpec{args: []string{"bash", "-c", command}, dir: "/root", env: env, out: ch, err: ch.Stderr()}
	if kind == "shell" {
		spec.args = []string{"-bash"}
	}
	var t *tty
	if terminal {
		w := &terminalWriter{func(p []byte) error { _, err := ch.Write(p); return err }}
		spec.out, spec.err = w, w
		t = &tty{echo: true, out: func(p []byte) { _, _ = ch.Write(p) }}
	}
	var feeding sync.WaitGroup
	if t == nil || kind == "exec" {
		r, w, err := os.Pipe()
		if err != nil {
			started <- nil
			return 255
		}
		defer feeding.Wait()
		defer ch.Close()
		defer r.Close()
		spec.stdin = r
		if t != nil {
			t.read(func(line []byte) { _, _ = w.Write(line) }, func() { w.Close() }, nil)
		}
		feeding.Go(func() {
			defer w.Close()
			if t == nil {
				_, _ = io.Copy(w, ch)
				return
			}
			pump(ch, t)
		})
	}
	p, err := b.newProcess(b.ctx, spec)
	if err != nil {
		started <- nil
		return 255
	}
	// The client's going away is a hang-up; what was left in the background
	// stays.
	unleash := context.AfterFunc(ctx, func() { p.signal(syscall.SIGHUP) })
	defer unleash()
	if t != nil && kind == "exec" {
		t.read(t.onLine, t.onEOF, func() { p.signal(syscall.SIGINT) })
	}
	started <- p
	code := 0
	switch {
	case kind == "exec":
		code = b.execute(p)
	case t != nil:
		code = p.interactive(t, func() { feeding.Go(func() { pump(ch, t) }) })
		defer feeding.Wait()
		defer ch.Close()
	default:
		code = p.interactive(nil, nil)
	}
	p.finish(code)
	// The status must leave before the channel closes.
	sendExit(ch, code)
	return code
}

func sendExit(ch ssh.Channel, code int) {
	_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
}

// pump types what the client sends until it ends.
func pump(ch ssh.Channel, t *tty) {
	buf := make([]byte, 4096)
	for {
		n, err := ch.Read(buf)
		t.input(buf[:n])
		if err != nil {
			t.mu.Lock()
			eof := t.onEOF
			t.mu.Unlock()
			if eof != nil {
				eof()
			}
			return
		}
	}
}
