package agent

import (
	"bytes"
	"context"
	"encoding/binary"
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

	"github.com/fsnotify/fsnotify"
	"golang.org/x/crypto/ssh"
)

const password = "s3cret-of-the-seat"

func open(t testing.TB, g *guest, machines ...string) (*Gateway, *watcher) {
	t.Helper()
	if len(machines) == 0 {
		machines = []string{"host"}
	}
	w := newWatcher()
	gw, err := Open(Config{Machines: machines, Dial: g.dial, Observer: w, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gw.Close() })
	return gw, w
}

func enter(t testing.TB, gw *Gateway) *ssh.Client {
	t.Helper()
	c, err := login(gw, "root", ssh.Password(password))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); c.Wait() })
	return c
}

func login(gw *Gateway, user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return DialSSH(ctx, gw.Addr(), &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.FixedHostKey(gw.HostKey())})
}

func command(t testing.TB, c *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestExec(t *testing.T) {
	for _, tt := range []struct {
		name, command, stdin    string
		stdout, stderr, excerpt string
		exit                    int
	}{
		{name: "output", command: "echo hello", stdout: "hello\n", excerpt: "hello"},
		{name: "exit status", command: "exit 7", exit: 7},
		{name: "stderr apart", command: "echo bad >&2; exit 1", stderr: "bad\n", excerpt: "bad", exit: 1},
		{name: "stdin", command: "tr a-z A-Z", stdin: "shout\n", stdout: "SHOUT\n", excerpt: "SHOUT"},
		{name: "killed", command: "kill -9 $$", exit: 137},
		{name: "many lines", command: "set -e\nx=1\necho \"$x\"", stdout: "1\n", excerpt: "1"},
		{name: "hostile output", command: `printf '\033]0;title\007\033[2Jx'`, stdout: "\x1b]0;title\x07\x1b[2Jx", excerpt: "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gw, w := open(t, newGuest(t))
			s := command(t, enter(t, gw))
			var stdout, stderr bytes.Buffer
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader(tt.stdin), &stdout, &stderr
			err := s.Run(tt.command)
			var exit *ssh.ExitError
			if errors.As(err, &exit) != (tt.exit != 0) || exit != nil && exit.ExitStatus() != tt.exit {
				t.Fatalf("Run: %v, want exit %d", err, tt.exit)
			}
			if stdout.String() != tt.stdout || stderr.String() != tt.stderr {
				t.Fatalf("got %q and %q, want %q and %q", &stdout, &stderr, tt.stdout, tt.stderr)
			}
			f := w.finish(t, 1)
			if f.Exit == nil || *f.Exit != tt.exit || f.Output != tt.excerpt || f.Bytes != uint64(len(tt.stdout+tt.stderr)) || f.Detail != "" {
				t.Fatalf("finish %+v (exit %v)", f, f.Exit)
			}
			a := w.action(1)
			if a.Channel != ChannelExec || a.Machine != "host" || a.Session != 1 || a.SelfReported {
				t.Fatalf("action %+v", a)
			}
			c := w.tape(1)
			if c.s.Command != tt.command || c.closed != 1 || c.text('x') != fmt.Sprint(tt.exit) {
				t.Fatalf("cast of %q, closed %d, exit %q", c.s.Command, c.closed, c.text('x'))
			}
			if got := c.text('i'); got != tt.stdin {
				t.Fatalf("cast's input %q, want %q", got, tt.stdin)
			}
			if got, want := c.text('o'), strings.ReplaceAll(tt.stdout+tt.stderr, "\n", "\r\n"); got != want {
				t.Fatalf("cast's output %q, want %q", got, want)
			}
		})
	}
}

func TestHugeOutputStreams(t *testing.T) {
	gw, w := open(t, newGuest(t))
	s := command(t, enter(t, gw))
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	if err := s.Start(fmt.Sprintf("echo first; head -c %d /dev/zero; echo; echo last", size)); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	const rest = int64(len("first\n\nlast\n"))
	f := w.finish(t, 1)
	if n != size+rest || f.Bytes != uint64(n) {
		t.Fatalf("carried %d and counted %d bytes, want %d", n, f.Bytes, size+rest)
	}
	if len(f.Output) > textLimit || !strings.HasPrefix(f.Output, "first\n") || !strings.HasSuffix(f.Output, "\nlast") {
		t.Fatalf("%d bytes of excerpt: %.20q … %q", len(f.Output), f.Output, f.Output[max(0, len(f.Output)-20):])
	}
	if got := len(w.tape(1).text('o')); got > castExecBytes+2 {
		t.Fatalf("the cast took %d bytes", got)
	}
	if !strings.Contains(w.tape(1).text('m'), "left out") {
		t.Fatal("the cast does not say that something is left out")
	}
}

// A client that does not read must stop the guest's writer, not fill memory.
func TestSlowClientHoldsTheGuestBack(t *testing.T) {
	gw, w := open(t, newGuest(t))
	s := command(t, enter(t, gw))
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	progress, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer progress.Close()
	if err := progress.Add(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`i=0; while :; do head -c 1048576 /dev/zero || exit; i=$((i+1)); echo $i >` + count + `; done`); err != nil {
		t.Fatal(err)
	}
	var n int
	read := func() {
		if b, _ := os.ReadFile(count); len(b) > 0 {
			fmt.Sscan(string(b), &n)
		}
	}
	limit := time.After(30 * time.Second)
	for still := false; !still || n == 0; { // until the writer stands still
		select {
		case <-progress.Events:
			read()
			still = false
		case <-time.After(500 * time.Millisecond):
			still = true
		case <-limit:
			t.Fatalf("the guest has written %d MiB and goes on", n)
		}
	}
	// Two windows of 2 MiB, a pipe, and the sockets' buffers.
	if n > 32 {
		t.Fatalf("the guest wrote %d MiB that nobody read", n)
	}
	go io.Copy(io.Discard, out)
	for want := n + 64; n < want; read() {
		select {
		case <-progress.Events:
		case <-limit:
			t.Fatalf("the guest stands at %d MiB", n)
		}
	}
	s.Close()
	if f := w.finish(t, 1); f.Exit != nil || f.Detail != "the player ended the session" {
		t.Fatalf("finish %+v", f)
	}
}

func TestInteractive(t *testing.T) {
	gw, w := open(t, newGuest(t))
	s := command(t, enter(t, gw))
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.Setenv("LC_ALL", "C"); err != nil {
		t.Fatal(err)
	}
	if err := s.Setenv("LD_PRELOAD", "/evil.so"); err == nil {
		t.Fatal("the gateway took LD_PRELOAD")
	}
	if err := s.RequestPty("xterm-256color", 24, 80, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	screen := newScreen(out)
	fmt.Fprint(in, "echo TERM=$TERM LC=$LC_ALL; stty size\n")
	screen.expect(t, "TERM=xterm-256color LC=C")
	screen.expect(t, "24 80")
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	w.tape(1).waitFor(t, 'r', "132x50")
	fmt.Fprint(in, "stty size\n")
	screen.expect(t, "50 132")
	fmt.Fprint(in, `stty -echo; printf 'Password: '; read x; stty echo; echo len=${#x}`+"\n")
	screen.expect(t, "Password: ")
	fmt.Fprint(in, "hunter2\n")
	screen.expect(t, "len=7")
	// Asked for in words that nobody foresees, and pasted ahead of the second prompt.
	fmt.Fprint(in, `stty -echo; printf 'Wie heisst das Wort? '; read x; printf 'Und? '; read y; stty echo; echo len=${#x},${#y}`+"\n")
	screen.expect(t, "Wort? ")
	fmt.Fprint(in, "swordfish\ncorrect-horse\n")
	screen.expect(t, "len=9,13")
	fmt.Fprint(in, `printf '\033]133;E;false || exit 3\007\033]133;C\007out\n\033]133;D;3\033\\'`+"\n")
	screen.expect(t, "out")
	fmt.Fprint(in, "exit 5\n")
	err := s.Wait()
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Fatalf("Wait: %v", err)
	}
	f := w.finish(t, 1)
	if *f.Exit != 5 {
		t.Fatalf("finish %+v", f)
	}
	if a := w.action(1); a.Channel != ChannelShell || a.SelfReported {
		t.Fatalf("action %+v", a)
	}
	inner := w.action(2)
	if inner.Channel != ChannelAnnounced || !inner.SelfReported || inner.Command != "false || exit 3" || inner.Session != 1 {
		t.Fatalf("announced action %+v", inner)
	}
	if f := w.finish(t, 2); f.Exit == nil || *f.Exit != 3 {
		t.Fatalf("announced finish %+v", f)
	}
	c := w.tape(1)
	if c.s.Term != "xterm-256color" || c.s.Width != 80 || c.s.Height != 24 {
		t.Fatalf("session %+v", c.s)
	}
	typed, shown := c.text('i'), c.text('o')
	for _, secret := range []string{"hunter2", "swordfish", "correct-horse"} {
		if strings.Contains(typed, secret) || strings.Contains(shown, secret) {
			t.Errorf("%s is recorded: input %q", secret, typed)
		}
	}
	for _, line := range []string{"stty size\r", "exit 5\r"} {
		if !strings.Contains(typed, line) {
			t.Errorf("%q is not recorded: input %q", line, typed)
		}
	}
	if n := strings.Count(c.text('m'), "a typed line is left out"); n != 3 {
		t.Errorf("the cast says %d times that a line is left out", n)
	}
}

// screen is what a terminal printed and nobody has expected yet.
type screen struct {
	text string
	all  chan []byte
}

func newScreen(r io.Reader) *screen {
	s := &screen{all: make(chan []byte, 1024)}
	go func() {
		defer close(s.all)
		for {
			b := make([]byte, 4096)
			n, err := r.Read(b)
			if n > 0 {
				s.all <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) expect(t *testing.T, want string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		// What the terminal echoes of our own typing is not an answer.
		for _, l := range strings.SplitAfter(s.text, "\n") {
			if strings.Contains(l, want) && !strings.Contains(l, "echo") && !strings.Contains(l, "printf") {
				s.text = s.text[strings.Index(s.text, l)+len(l):]
				return
			}
		}
		select {
		case b, ok := <-s.all:
			if !ok {
				t.Fatalf("the terminal ended before %q; it shows %q", want, s.text)
			}
			s.text += string(b)
		case <-timeout:
			t.Fatalf("waited too long for %q; the terminal shows %q", want, s.text)
		}
	}
}

func TestSignalsReachTheGuest(t *testing.T) {
	gw, w := open(t, newGuest(t))
	s := command(t, enter(t, gw))
	out, _ := s.StdoutPipe()
	if err := s.Start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(ssh.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.Wait()
	if f := w.finish(t, 1); f.Exit == nil || *f.Exit != 9 {
		t.Fatalf("finish %+v", f)
	}
}

func TestForeignCredentials(t *testing.T) {
	guest := newGuest(t)
	own, other := signer(t), signer(t)
	w := newWatcher()
	gw, err := Open(Config{Machines: []string{"app", "db"}, Dial: guest.dial, Observer: w, Password: password, Key: own.PublicKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	for _, tt := range []struct {
		name, user string
		auth       ssh.AuthMethod
		in         bool
	}{
		{"password", "root", ssh.Password(password), true},
		{"password, by machine", "db", ssh.Password(password), true},
		{"key", "app", ssh.PublicKeys(own), true},
		{"foreign password", "root", ssh.Password("of another seat"), false},
		{"empty password", "root", ssh.Password(""), false},
		{"foreign key", "root", ssh.PublicKeys(other), false},
		{"the referee's key", "root", ssh.PublicKeys(guest.key), false},
		{"foreign machine", "host", ssh.Password(password), false},
		{"foreign machine, key", "host", ssh.PublicKeys(own), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := login(gw, tt.user, tt.auth)
			if (err == nil) != tt.in {
				t.Fatalf("login: %v, want in: %v", err, tt.in)
			}
			if err == nil {
				c.Close()
				c.Wait()
			}
		})
	}
	if c, err := login(gw, "root"); err == nil {
		c.Close()
		t.Fatal("let in without a credential")
	}
	if guest.dials != 0 {
		t.Fatalf("logging in made %d connections to the guest", guest.dials)
	}
}

func TestForwards(t *testing.T) {
	// The guest runs on this host in this test, so its loopback is ours; what
	// is held here is which requests get as far as the guest.
	gw, w := open(t, newGuest(t), "app", "db")
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	touched := make(chan struct{}, 100)
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			touched <- struct{}{}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	port := echo.Addr().(*net.TCPAddr).Port
	other, _ := open(t, newGuest(t))
	_, otherPort, _ := net.SplitHostPort(other.Addr())
	client := enter(t, gw)
	for i, tt := range []struct {
		addr    string
		machine string
	}{
		{fmt.Sprintf("127.0.0.1:%d", port), "app"},
		{fmt.Sprintf("localhost:%d", port), "app"},
		{fmt.Sprintf("db:%d", port), "db"},
	} {
		conn, err := client.Dial("tcp", tt.addr)
		if err != nil {
			t.Fatalf("positive control %s: %v", tt.addr, err)
		}
		<-touched
		fmt.Fprint(conn, "ping")
		b := make([]byte, 4)
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "ping" {
			t.Fatalf("%q, %v", b, err)
		}
		conn.Close()
		n := uint64(i + 1)
		f := w.finish(t, n)
		if a := w.action(n); a.Channel != ChannelForward || a.Machine != tt.machine || a.Command != tt.addr || f.Bytes != 4 {
			t.Fatalf("%+v, %+v", a, f)
		}
	}
	n := uint64(len(w.started))
	for _, addr := range []string{
		"10.0.2.2:" + fmt.Sprint(port), "192.0.2.1:80", "example.org:443", "[::ffff:10.0.2.2]:" + fmt.Sprint(port),
		"10.0.2.2:" + otherPort, "0.0.0.0:" + fmt.Sprint(port), "host:" + fmt.Sprint(port), "localhost.:" + fmt.Sprint(port),
		"127.1:" + fmt.Sprint(port), "2130706433:" + fmt.Sprint(port), "169.254.169.254:80",
	} {
		// What x/crypto's client will not ask by itself is asked by hand.
		host, p, _ := net.SplitHostPort(addr)
		var num uint32
		fmt.Sscan(p, &num)
		ch, _, err := client.OpenChannel("direct-tcpip", ssh.Marshal(directTCPIP{Host: host, Port: num, OriginHost: "127.0.0.1"}))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != ssh.Prohibited {
			if err == nil {
				ch.Close()
			}
			t.Fatalf("forward to %s: %v, want prohibited", addr, err)
		}
		n++
		if f := w.finish(t, n); f.Exit != nil || !strings.HasPrefix(f.Detail, "refused: ") {
			t.Fatalf("forward to %s: %+v", addr, f)
		}
	}
	if len(touched) != 0 {
		t.Fatal("a refused forward reached a listener")
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Fatal("a reverse forward was granted")
	}
	if _, err := client.ListenUnix(filepath.Join(t.TempDir(), "s")); err == nil {
		t.Fatal("a reverse socket forward was granted")
	}
	if _, err := client.Dial("unix", "/run/dbus.sock"); err == nil {
		t.Fatal("a socket forward was granted")
	}
	// A closed port is the guest's own refusal.
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	if _, err := client.Dial("tcp", closed.Addr().String()); err == nil {
		t.Fatal("a closed port answered")
	}
}

func TestReboot(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		t.Run(fmt.Sprintf("dropped=%v", dropped), func(t *testing.T) {
			guest := newGuest(t)
			gw, w := open(t, guest)
			client := enter(t, gw)
			s := command(t, client)
			out, _ := s.StdoutPipe()
			if err := s.Start("echo up; exec sleep 1000"); err != nil {
				t.Fatal(err)
			}
			io.ReadFull(out, make([]byte, 3))
			want := "the connection to machine host was lost"
			if dropped {
				want = "machine host was reset"
				gw.Drop("host", want)
			}
			guest.down()
			var missing *ssh.ExitMissingError
			if err := s.Wait(); !errors.As(err, &missing) {
				t.Fatalf("Wait: %v", err)
			}
			f := w.finish(t, 1)
			if f.Exit != nil || f.Detail != want || f.Output != "up" {
				t.Fatalf("finish %+v, want %q", f, want)
			}
			// The next command is sent while the machine is down, and waits.
			done := make(chan error, 1)
			s2 := command(t, client)
			go func() { done <- s2.Run("exit 4") }()
			w.wait(t, "the second action", func() bool { return len(w.started) == 2 })
			guest.up()
			err := <-done
			var exit *ssh.ExitError
			if !errors.As(err, &exit) || exit.ExitStatus() != 4 {
				t.Fatalf("after the reboot: %v", err)
			}
		})
	}
}

func TestClientGone(t *testing.T) {
	gw, w := open(t, newGuest(t))
	client := enter(t, gw)
	s := command(t, client)
	if err := s.Start("sleep 1000"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if f := w.finish(t, 1); f.Exit != nil || f.Detail != "the player ended the session" {
		t.Fatalf("finish %+v", f)
	}
}

func TestClose(t *testing.T) {
	guest := newGuest(t)
	gw, w := open(t, guest)
	client := enter(t, gw)
	for range 5 {
		s := command(t, client)
		out, _ := s.StdoutPipe()
		if err := s.Start("echo up; exec sleep 1000"); err != nil {
			t.Fatal(err)
		}
		// Until a child of this process has become its program it holds a
		// copy of our listener.
		if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
	}
	silent, err := net.Dial("tcp", gw.Addr()) // never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("Close took %v", took)
	}
	for n := range uint64(5) {
		w.mu.Lock()
		f, ok := w.done[n+1]
		w.mu.Unlock()
		if !ok || f.Exit != nil || f.Detail != "the gateway closed" {
			t.Fatalf("after Close: %v, %+v", ok, f)
		}
	}
	if err := gw.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
	if c, err := net.Dial("tcp", gw.Addr()); err == nil {
		c.Close()
		t.Fatal("still listening")
	}
}

func TestConcurrentExecs(t *testing.T) {
	guest := newGuest(t)
	gw, w := open(t, guest)
	const clients, each = 4, 25
	var wg sync.WaitGroup
	for range clients {
		client := enter(t, gw)
		for i := range each {
			s := command(t, client)
			wg.Go(func() {
				out, err := s.Output(fmt.Sprintf("echo %d", i))
				if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(i) {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
	}
	wg.Wait()
	w.wait(t, "all finishes", func() bool { return len(w.done) == clients*each })
	for i, a := range w.started {
		if a.Number != uint64(i+1) {
			t.Fatalf("action %d reported as number %d", a.Number, i+1)
		}
		if f := w.done[a.Number]; f.Exit == nil || *f.Exit != 0 {
			t.Fatalf("%+v", f)
		}
	}
	w.wait(t, "idle connections to close", func() bool { return true })
}

func TestSFTP(t *testing.T) {
	gw, w := open(t, newGuest(t))
	s := command(t, enter(t, gw))
	in, _ := s.StdinPipe()
	if err := s.RequestSubsystem("sftp"); err != nil {
		t.Fatal(err)
	}
	str := func(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }
	packet := func(kind byte, body string) string { return str(string(kind) + "\x00\x00\x00\x01" + body) }
	stream := packet(1, "") +
		packet(3, str("/etc/passwd")+"\x00\x00\x00\x01\x00\x00\x00\x00") +
		packet(3, str("/root/x\x1b[2J")+"\x00\x00\x00\x1a\x00\x00\x00\x00") +
		packet(6, str("h")+"\x00\x00\x00\x00\x00\x00\x00\x00"+str(strings.Repeat("d", 200_000))) +
		packet(18, str("/root/x")+str("/root/y")) + packet(13, str("/tmp/z"))
	for len(stream) > 0 { // in odd pieces
		n := min(len(stream), 7001)
		if _, err := io.WriteString(in, stream[:n]); err != nil {
			t.Fatal(err)
		}
		stream = stream[n:]
	}
	in.Close()
	s.Wait()
	f := w.finish(t, 1)
	if a := w.action(1); a.Channel != ChannelSFTP || a.Session != 0 || a.Command != "sftp" {
		t.Fatalf("%+v", a)
	}
	if want := "read /etc/passwd\nwrite /root/x\nrename /root/x /root/y\nremove /tmp/z"; f.Output != want {
		t.Fatalf("operations %q, want %q", f.Output, want)
	}
}
