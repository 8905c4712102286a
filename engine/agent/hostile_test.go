package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// writeKey makes a key pair, writes the private one to dir/key and returns the
// public one.
func writeKey(t testing.TB, dir string) ssh.PublicKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return s.PublicKey()
}

// Connections that only sit there keep nobody out.
func TestHandshakeHoarders(t *testing.T) {
	gw, _ := open(t, newGuest(t))
	for range 3 * maxHandshakes {
		c, err := net.Dial("tcp", gw.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if out, err := command(t, enter(t, gw)).Output("echo in"); err != nil || string(out) != "in\n" {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestTooManyChannels(t *testing.T) {
	gw, w := open(t, newGuest(t))
	client := enter(t, gw)
	var last error
	for range maxChannels + 1 {
		if _, err := client.NewSession(); err != nil {
			last = err
		}
	}
	var refused *ssh.OpenChannelError
	if !errors.As(last, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Fatalf("opened %d channels: %v", maxChannels+1, last)
	}
	w.wait(t, "the refusal", func() bool { return len(w.done) == 1 })
	client.Close()
	client.Wait()
	// Their room comes back, each when its session has noticed that the client is
	// gone; until then a new one may be refused.
	for range maxChannels {
		gw.channels <- struct{}{}
	}
	for range maxChannels {
		<-gw.channels
	}
	if out, err := command(t, enter(t, gw)).Output("echo in"); err != nil || string(out) != "in\n" {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	gw, w := open(t, newGuest(t))
	client := enter(t, gw)
	for range 3 * maxRefusals {
		if _, _, err := client.OpenChannel("x-\x1b[2J", nil); err == nil {
			t.Fatal("an unknown channel was opened")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.started) != maxRefusals || len(w.done) != maxRefusals {
		t.Fatalf("%d refusals recorded", len(w.started))
	}
	if strings.Contains(w.started[0].Command, "\x1b") || !strings.Contains(w.done[maxRefusals].Detail, "not listed") {
		t.Fatalf("%q, %q", w.started[0].Command, w.done[maxRefusals].Detail)
	}
}

func TestHostileRequests(t *testing.T) {
	gw, w := open(t, newGuest(t))
	client := enter(t, gw)
	raw := func() ssh.Channel {
		ch, reqs, err := client.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		go ssh.DiscardRequests(reqs)
		return ch
	}
	big := strings.Repeat("A", 100_000)
	for _, tt := range []struct {
		name    string
		request string
		payload any
	}{
		{"torn exec", "exec", struct{ N uint32 }{9999}},
		{"empty exec payload", "exec", nil},
		{"another subsystem", "subsystem", struct{ S string }{"netconf"}},
		{"long terminal", "pty-req", ptyRequest{Term: big, Cols: 80, Rows: 24}},
		{"huge terminal", "pty-req", ptyRequest{Term: "xterm", Cols: 1 << 31, Rows: 24}},
		{"long modes", "pty-req", ptyRequest{Term: "xterm", Cols: 80, Rows: 24, Modes: big}},
		{"long environment", "env", struct{ K, V string }{"LC_X", big}},
		{"agent forwarding", "auth-agent-req@openssh.com", nil},
		{"X11", "x11-req", nil},
		{"signal before a command", "signal", struct{ S string }{"KILL"}},
		{"unknown", "x-\x1b]0;", nil},
	} {
		ch := raw()
		var p []byte
		if tt.payload != nil {
			p = ssh.Marshal(tt.payload)
		}
		if ok, err := ch.SendRequest(tt.request, true, p); ok || err != nil {
			t.Errorf("%s: granted %v, %v", tt.name, ok, err)
		}
		ch.Close()
	}
	// One channel runs one command.
	ch := raw()
	for i, want := range []bool{true, false} {
		if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ S string }{"sleep 1000"})); ok != want || err != nil {
			t.Fatalf("command %d on one channel: %v, %v", i+1, ok, err)
		}
	}
	ch.Close()
	// A long command runs whole and is recorded in part.
	s := command(t, client)
	out, err := s.Output("echo " + big + " | wc -c")
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(len(big)+1) {
		t.Fatalf("%q, %v", out, err)
	}
	w.wait(t, "all finishes", func() bool { return len(w.done) == len(w.started) })
	last := w.started[len(w.started)-1]
	if len(last.Command) > textLimit || !strings.Contains(last.Command, "left out") {
		t.Fatalf("%d bytes of command", len(last.Command))
	}
}

// A guest whose SSH server takes commands and never answers.
func TestSilentGuest(t *testing.T) {
	guest := newGuest(t)
	guest.silent = true
	gw, w := open(t, guest)
	client := enter(t, gw)
	s := command(t, client)
	done := make(chan error, 1)
	go func() { done <- s.Run("echo") }()
	w.wait(t, "the action", func() bool { return len(w.started) == 1 })
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Fatal("a silent guest ran a command")
	}
	if f := w.finish(t, 1); f.Exit != nil || !strings.Contains(f.Detail, "the gateway closed") {
		t.Fatalf("%+v", f)
	}
}

// A guest that is never there: the action fails, and says so.
func TestUnreachableGuest(t *testing.T) {
	w := newWatcher()
	gw, err := Open(Config{Machines: []string{"host"}, Observer: w, Password: password,
		Dial: func(ctx context.Context, _ string) (*ssh.Client, error) { <-ctx.Done(); return nil, ctx.Err() }})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	client := enter(t, gw)
	s := command(t, client)
	done := make(chan error, 1)
	go func() { done <- s.Run("echo") }()
	w.wait(t, "the action", func() bool { return len(w.started) == 1 })
	client.Close() // the player does not wait that long
	<-done
	f := w.finish(t, 1)
	if f.Exit != nil || !strings.Contains(f.Detail, "does not answer") {
		t.Fatalf("%+v", f)
	}
	if f.Took > 10*time.Second {
		t.Fatalf("a player that left was waited for %v", f.Took)
	}
}

// A forward that takes connections for a machine which is still starting.
func TestDialTriesAgainWhatStaysSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for five seconds of silence: skipped under -short")
	}
	guest := newGuest(t)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			c, err := front.Accept()
			if err != nil {
				return
			}
			if first {
				defer c.Close()
				continue
			}
			back, err := net.Dial("tcp", guest.addr)
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() { io.Copy(back, c); back.Close() })
			wg.Go(func() { io.Copy(c, back); c.Close() })
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := DialSSH(ctx, front.Addr().String(), &ssh.ClientConfig{User: "root",
		Auth: []ssh.AuthMethod{ssh.PublicKeys(guest.key)}, HostKeyCallback: ssh.FixedHostKey(guest.hostKey.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Wait()
	front.Close()
	wg.Wait()
}

// A server that ends a command's channel before it answers the request has run
// the command all the same.
func TestEndBeforeAnswer(t *testing.T) {
	g := newGuest(t)
	g.hasty = true
	gw, w := open(t, g)
	c := enter(t, gw)
	for n := uint64(1); n <= 20; n++ {
		out, err := command(t, c).Output("anything")
		var exit *ssh.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != 7 || string(out) != "done\n" {
			t.Fatalf("%q, %v", out, err)
		}
		if f := w.finish(t, n); f.Exit == nil || *f.Exit != 7 || f.Detail != "" || f.Output != "done" {
			t.Fatalf("%+v", f)
		}
	}
}
