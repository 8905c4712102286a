package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/event"
	"refbox/tui/term"
)

// spectator is a client that reads what comes and answers no query of a terminal's.
type spectator struct {
	t     testing.TB
	conn  *ssh.Client
	sess  *ssh.Session
	keys  func(string)
	mu    sync.Mutex
	cells *term.Term
	grown chan struct{}
}

// served starts refbox serve and gives its address and host key's fingerprint.
func (b *box) served(args ...string) (p *process, addr, key string) {
	b.t.Helper()
	p = b.start(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.until(p.output, "host key ", time.Minute)
	m := regexp.MustCompile(`ssh -p (\d+) 127\.0\.0\.1\nhost key (\S+)`).FindStringSubmatch(p.output.String())
	if m == nil {
		b.t.Fatalf("serve does not say where it is:\n%s%s", p.output, p.errors)
	}
	return p, "127.0.0.1:" + m[1], m[2]
}

func dialServed(t testing.TB, addr, fingerprint, user string, key ssh.Signer) (*ssh.Client, error) {
	t.Helper()
	auth := []ssh.AuthMethod{ssh.KeyboardInteractive(func(_, _ string, q []string, _ []bool) ([]string, error) { return make([]string, len(q)), nil })}
	if key != nil {
		auth = []ssh.AuthMethod{ssh.PublicKeys(key)}
	}
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{User: user, Auth: auth, Timeout: 30 * time.Second,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			if ssh.FingerprintSHA256(k) != fingerprint {
				return fmt.Errorf("the host key is %s", ssh.FingerprintSHA256(k))
			}
			return nil
		}})
}

// spectate opens the screen of w × h.
func spectate(t testing.TB, addr, fingerprint, user string, key ssh.Signer, w, h int) *spectator {
	t.Helper()
	conn, err := dialServed(t, addr, fingerprint, user, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	sess, err := conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	s := &spectator{t: t, conn: conn, sess: sess, cells: term.New(w, h), grown: make(chan struct{})}
	in, err := sess.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.keys = func(k string) {
		if _, err := in.Write([]byte(k)); err != nil {
			t.Fatal(err)
		}
	}
	sess.Stdout = s
	if err := sess.RequestPty("xterm-256color", h, w, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := sess.Shell(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *spectator) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.grown)
	s.grown = make(chan struct{})
	return s.cells.Write(p)
}

// sees waits until the screen holds the words.
func (s *spectator) sees(words string) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer stop()
	for {
		s.mu.Lock()
		text, grown := s.cells.String(), s.grown
		s.mu.Unlock()
		if strings.Contains(text, words) {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			s.t.Fatalf("%q is not seen:\n%s", words, text)
		}
	}
}

// TestServe lets people in who have no key, shows each their own playhead, and does
// nothing else for them.
func TestServe(t *testing.T) {
	b := newBox(t)
	p, addr, key := b.served()
	one := spectate(t, addr, key, "ann", nil, 80, 24)
	two := spectate(t, addr, key, "bob\x1b[2J", nil, 120, 34)
	for _, s := range []*spectator{one, two} {
		s.sees("primary-failover")
	}
	one.keys("j") // past the laboratory's
	one.sees("▌ primary-failover")
	one.keys("\r")
	one.sees("playing")
	one.keys(" ")
	one.sees("paused")
	two.sees("enter replays it")
	if err := one.sess.WindowChange(34, 120); err != nil {
		t.Fatal(err)
	}
	one.mu.Lock()
	one.cells.Resize(120, 34)
	one.mu.Unlock()
	one.sees("3 failover-three · hasty")

	// No command, file, forward or environment is to be had.
	conn, err := dialServed(t, addr, key, "eve", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, try := range []func(*ssh.Session) error{
		func(s *ssh.Session) error { return s.Run("id") },
		func(s *ssh.Session) error { return s.RequestSubsystem("sftp") },
		func(s *ssh.Session) error { _, err := s.Output(""); return err }, // a shell without a terminal
	} {
		s, err := conn.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.Stderr = &out
		if err := try(s); err == nil {
			t.Errorf("it is done; %s", out.String())
		}
		s.Close()
	}
	if c, err := conn.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a connection is forwarded")
	}
	if l, err := conn.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("a port is forwarded")
	}
	two.keys("q")
	if err := two.sess.Wait(); err != nil {
		t.Errorf("leaving ends with %v", err)
	}
	if s := p.output.String(); strings.ContainsRune(s, 0x1b) || !strings.Contains(s, "ann watches from 127.0.0.1:") {
		t.Errorf("the log is %q", s)
	}
	p.signal(syscall.SIGINT, 20*time.Second)
	one.sess.Wait() //nolint:errcheck // it was ended
	p.says(0)       // it was to go on until it is told to end
	b.nothingLeft()
}

// TestServeReferees gives the referee's keys to who has a listed key, and to nobody
// else.
func TestServeReferees(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	b := newBox(t)
	dir := b.path("heat")
	listed, other := newSigner(t), newSigner(t)
	if err := os.WriteFile(b.path("referees"), append([]byte("# of the cup\n"), ssh.MarshalAuthorizedKey(listed.PublicKey())...), 0o600); err != nil {
		t.Fatal(err)
	}
	heat := b.simulated(dir)
	heat.until(heat.output, "heat running", time.Minute)
	if _, addr, key := b.served("--watchers", b.path("referees")); true {
		for name, k := range map[string]ssh.Signer{"nobody": nil, "stranger": other} {
			if c, err := dialServed(t, addr, key, name, k); err == nil {
				c.Close()
				t.Errorf("%s is let in without a listed key", name)
			}
		}
		spectate(t, addr, key, "rita", listed, 80, 24).sees("primary-failover")
	}
	p, addr, key := b.served(dir, "--referees", b.path("referees"))
	for name, k := range map[string]ssh.Signer{"nobody": nil, "stranger": other} {
		s := spectate(t, addr, key, name, k, 120, 34)
		s.sees("failover-one")
		s.keys("a")
		s.sees("LIVE") // a key that does nothing changes nothing; the next is heard after it
		s.keys("from-" + name + "\r")
		s.conn.Close()
	}
	ref := spectate(t, addr, key, "rita", listed, 120, 34)
	ref.sees("LIVE")
	ref.keys("a")
	ref.sees("note")
	ref.keys("seen by a referee\r")
	heat.wait(time.Minute)
	notes := events[event.OperatorNote](t, recorded(t, dir))
	if len(notes) != 1 || notes[0].Text != "seen by a referee" || !strings.HasPrefix(notes[0].Author, "rita (SHA256:") {
		t.Errorf("the notes are %+v", notes)
	}
	p.signal(syscall.SIGTERM, 20*time.Second)
	p.says(0) // it was to go on until it is told to end
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// admitted says whether one more is shown the screen, and leaves.
func admitted(t *testing.T, addr, key string) bool {
	t.Helper()
	c, err := dialServed(t, addr, key, "ann", nil)
	if err != nil { // there are as many connections as may be
		return false
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err := errors.Join(err, s.RequestPty("xterm", 24, 80, nil), s.Shell()); err != nil {
		t.Fatal(err)
	}
	n, _ := out.Read(make([]byte, 1)) // ends without a byte for who is refused
	return n > 0
}

// TestServeBounds says what is wrong with what serve is given, and how many may come.
func TestServeBounds(t *testing.T) {
	b := newBox(t)
	if err := os.WriteFile(b.path("bad"), []byte("\n# fine\nnot a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(time.Minute, "serve", "--referees", b.path("bad")).says(1, "bad:3: ")
	b.run(time.Minute, "serve", "--referees", b.path("none")).says(1, "read the keys")
	b.run(time.Minute, "serve", b.path("nowhere")).says(1, "nowhere is not there")
	b.run(time.Minute, "serve", "--listen", "nonsense").says(3, "--listen")
	b.run(time.Minute, "serve", "--most", "0").says(2, "--most")

	// Who leaves without a word gives the place back, and a connection has one session.
	_, addr, key := b.served("--most", "1")
	first := spectate(t, addr, key, "amy", nil, 5000, 5000)
	first.sees("primary-failover")
	again, err := first.conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	again.Stderr = &said
	if err := errors.Join(again.RequestPty("xterm", 24, 80, nil), again.Shell(), again.Wait()); err == nil || !strings.Contains(said.String(), "one session to a connection") {
		t.Errorf("a second session is let in: %v, %s", err, said.String())
	}
	first.sess.Close() // the channel alone; the connection stays
	for end := time.Now().Add(20 * time.Second); !admitted(t, addr, key); {
		if time.Now().After(end) {
			t.Fatal("the place of one who left is not free")
		}
	}
	_, addr, key = b.served("--most", "1")
	one := spectate(t, addr, key, "ann", nil, 80, 24)
	one.sees("primary-failover")
	conn, err := dialServed(t, addr, key, "bob", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s.Stderr = &out
	if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err == nil || !strings.Contains(out.String(), "1 watch already") {
		t.Errorf("the second is let in: %v, %s", err, out.String())
	}
}
