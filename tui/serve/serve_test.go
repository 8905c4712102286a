package serve

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"refbox/tui/canvas"
)

func newKey(t *testing.T) (gossh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := gossh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := gossh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// serving serves until the test ends, or stop is called, which waits for Serve.
func serving(t *testing.T, cfg Config) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no listener here: " + err.Error())
	}
	_, cfg.HostKey = newKey(t)
	cfg.Listener, cfg.Log = l, func(string, ...any) {}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg) }()
	done := false
	stop = func() error { done = true; cancel(); return <-ended }
	t.Cleanup(func() {
		if !done {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
	return l.Addr().String(), stop
}

func come(t *testing.T, addr, user string, keys ...gossh.Signer) (*gossh.Client, error) {
	t.Helper()
	auth := []gossh.AuthMethod{gossh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })}
	if len(keys) > 0 {
		auth = []gossh.AuthMethod{gossh.PublicKeys(keys...)}
	}
	c, err := gossh.Dial("tcp", addr, &gossh.ClientConfig{User: user, Auth: auth, HostKeyCallback: gossh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// shell begins a session with a terminal, and gives what it is shown, or why it is not.
func shell(t *testing.T, c *gossh.Client, w, h int) (out, errors io.Reader, s *gossh.Session) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = s.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if errors, err = s.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.RequestPty("xterm-256color", h, w, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	return out, errors, s
}

func until(t *testing.T, r io.Reader, words string) {
	t.Helper()
	got := ""
	buf := make([]byte, 512)
	for !strings.Contains(got, words) {
		n, err := r.Read(buf)
		got += string(buf[:n])
		if err != nil && !strings.Contains(got, words) {
			t.Fatalf("%q does not come, but %q, %v", words, got, err)
		}
	}
}

// Who comes is shown the program with what is known of them; a listed key is a referee,
// another one is not.
func TestWhoComes(t *testing.T) {
	referee, _ := newKey(t)
	other, _ := newKey(t)
	addr, _ := serving(t, Config{Most: 3, Referees: []gossh.PublicKey{referee.PublicKey()}, Show: func(_ context.Context, c Client) error {
		size := <-c.Sizes
		fmt.Fprintf(c, "%s referee=%t key=%t %dx%d %v.", c.Name, c.Referee, c.Key != "", size[0], size[1], c.Profile == canvas.ANSI256)
		return nil
	}})
	for name, x := range map[string]struct {
		keys []gossh.Signer
		want string
	}{
		"nobody":       {nil, "referee=false key=false 100x30 true."},
		"some\x1b[31m": {[]gossh.Signer{other}, "referee=false key=true 100x30 true."},
		"ann":          {[]gossh.Signer{referee}, "ann referee=true key=true 100x30 true."},
	} {
		c, err := come(t, addr, name, x.keys...)
		if err != nil {
			t.Fatal(err)
		}
		out, _, s := shell(t, c, 100, 30)
		until(t, out, x.want)
		if err := s.Wait(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Where watchers are listed, others do not come in.
func TestOnlyListedKeysComeIn(t *testing.T) {
	watcher, _ := newKey(t)
	other, _ := newKey(t)
	addr, _ := serving(t, Config{Most: 1, Watchers: []gossh.PublicKey{watcher.PublicKey()}, Show: func(_ context.Context, c Client) error { return nil }})
	if _, err := come(t, addr, "ann", watcher); err != nil {
		t.Error(err)
	}
	if _, err := come(t, addr, "eve", other); err == nil {
		t.Error("a key that is not listed comes in")
	}
	if _, err := come(t, addr, "eve"); err == nil {
		t.Error("nobody's key comes in")
	}
}

// There is no command, no subsystem, no forward, and one more than may is told so.
func TestNothingElse(t *testing.T) {
	addr, _ := serving(t, Config{Most: 1, Show: func(ctx context.Context, c Client) error {
		fmt.Fprint(c, "shown.")
		<-ctx.Done()
		return nil
	}})
	c, err := come(t, addr, "eve")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.CombinedOutput("id"); err == nil || !strings.Contains(string(out), "nothing to run here") {
		t.Errorf("a command: %q, %v", out, err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("a port is forwarded from here")
	}
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if d, err := c.Dial("tcp", target.Addr().String()); err == nil {
		d.Close()
		t.Error("a port is forwarded to here")
	}
	first, err := come(t, addr, "ann")
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := shell(t, first, 80, 24)
	until(t, out, "shown.")
	second, err := come(t, addr, "bob")
	if err != nil {
		t.Fatal(err)
	}
	_, refused, _ := shell(t, second, 80, 24)
	until(t, refused, "1 watch already")
}

// At the end each has been told, and Serve has waited for them.
func TestEnd(t *testing.T) {
	left := make(chan struct{})
	addr, stop := serving(t, Config{Most: 1, Show: func(ctx context.Context, c Client) error {
		defer close(left)
		fmt.Fprint(c, "shown.")
		<-ctx.Done()
		return nil
	}})
	c, err := come(t, addr, "ann")
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := shell(t, c, 80, 24)
	until(t, out, "shown.")
	told := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(out)
		told <- string(rest)
	}()
	if err := stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-left:
	default:
		t.Error("Serve returned while somebody was shown something")
	}
	if rest := <-told; !strings.Contains(rest, "refbox serve has ended") {
		t.Errorf("the client is told %q", rest)
	}
}

// The area of a client's terminal is bounded, whatever it says.
func TestSides(t *testing.T) {
	for _, w := range [][2]int{{80, 24}, {100000, 100000}, {400, 400}, {-1, 5}, {0, 0}} {
		got := side(struct{ Width, Height, WidthPixels, HeightPixels int }{Width: w[0], Height: w[1]})
		if got[0] < 0 || got[1] < 0 || got[0] > maxSide || got[1] > maxSide || got[0]*got[1] > maxArea {
			t.Errorf("%v becomes %v", w, got)
		}
	}
	if got := side(struct{ Width, Height, WidthPixels, HeightPixels int }{Width: 200, Height: 60}); got != [2]int{200, 60} {
		t.Errorf("200×60 becomes %v", got)
	}
}

// A file of keys: comments and empty lines aside, each line is a key, and what is none is
// named with its line.
func TestKeys(t *testing.T) {
	k, _ := newKey(t)
	line := strings.TrimSpace(string(gossh.MarshalAuthorizedKey(k.PublicKey())))
	for content, want := range map[string]string{
		"# ours\n\n" + line + " ann@here\n": "",
		line + "\nno key\n":                 "keys:2: ",
		"# nobody\n":                        "holds no public key",
		`command="id" ` + line + "\n":       "options are not heeded",
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Keys(file)
		switch {
		case want == "" && (err != nil || len(got) != 1):
			t.Errorf("%q: %d keys, %v", content, len(got), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}
