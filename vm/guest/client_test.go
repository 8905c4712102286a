package guest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	guestassets "refbox/assets/guest"
	"refbox/vm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection and its other end as a file, for a process.
func pair(t *testing.T) (net.Conn, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	return conn, theirs
}

// startAgent runs the real agent on this host. Only verbs that leave the host
// as it is may be called.
func startAgent(t *testing.T) (net.Conn, *exec.Cmd) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	path := filepath.Join(t.TempDir(), "agent.py")
	if err := os.WriteFile(path, guestassets.Agent, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, file := pair(t)
	cmd := exec.Command(python, "-I", "-S", path, "fd:3")
	cmd.ExtraFiles = []*os.File{file}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			t.Logf("the agent said: %s", stderr.String())
		}
	})
	return conn, cmd
}

func realClient(t *testing.T) (*Client, context.Context) {
	t.Helper()
	conn, _ := startAgent(t)
	c := New()
	t.Cleanup(func() { _ = c.Close() })
	c.Attach(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c, ctx
}

func TestAgentHello(t *testing.T) {
	c, ctx := realClient(t)
	want, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip("no boot id on this host: ", err)
	}
	name, _ := os.Hostname()
	for range 2 {
		h, err := c.Hello(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if h.BootID != strings.TrimSpace(string(want)) || h.Hostname != name || h.Uptime <= 0 || time.Since(h.Time).Abs() > time.Minute {
			t.Errorf("%+v", h)
		}
	}
	if h, err := c.WaitHello(ctx, "another boot"); err != nil || h.BootID != strings.TrimSpace(string(want)) {
		t.Errorf("%+v, %v", h, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := c.WaitHello(short, strings.TrimSpace(string(want))); !errors.Is(err, vm.ErrGuestLost) {
		t.Errorf("waiting for a boot that does not come: %v", err)
	}
}

func TestAgentFiles(t *testing.T) {
	c, ctx := realClient(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	data := make([]byte, 700_000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	if err := c.WriteFile(ctx, path, data, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err := c.ReadFile(ctx, path, 1<<20); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes back, %v", len(got), err)
	}
	if got, err := c.ReadFile(ctx, path, 10); err != nil || !bytes.Equal(got, data[:10]) {
		t.Errorf("read %x, %v", got, err)
	}
	st, err := c.Stat(ctx, path)
	if err != nil || st.Size != int64(len(data)) || st.Mode != 0o640 || time.Since(st.Mod).Abs() > time.Minute {
		t.Errorf("%+v, %v", st, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("x", link); err != nil {
		t.Fatal(err)
	}
	if st, err := c.Stat(ctx, link); err != nil || st.Target != "x" || st.Mode.Type() != fs.ModeSymlink {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err := c.Stat(ctx, dir); err != nil || !st.Mode.IsDir() {
		t.Errorf("%+v, %v", st, err)
	}
	for range 2 {
		if err := c.Remove(ctx, path); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Stat(ctx, path); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, vm.ErrGuestLost) {
		t.Errorf("stat: %v", err)
	}
	if _, err := c.ReadFile(ctx, path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFile(ctx, fifo, 10); !errors.Is(err, ErrAnswer) {
		t.Errorf("reading a pipe: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	if err := c.Sync(ctx); err != nil {
		t.Error(err)
	}
}

func TestAgentRun(t *testing.T) {
	c, ctx := realClient(t)
	for _, tt := range []struct {
		name  string
		argv  []string
		stdin string
		want  vm.RunResult
	}{
		{"plain", []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, "", vm.RunResult{Exit: 7, Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
		{"stdin", []string{"cat"}, strings.Repeat("x", 300_000), vm.RunResult{Stdout: bytes.Repeat([]byte("x"), 300_000)}},
		{"unread stdin", []string{"true"}, strings.Repeat("x", 300_000), vm.RunResult{}},
		{"killed", []string{"sh", "-c", "kill -9 $$"}, "", vm.RunResult{Exit: 137}},
		{"no shell", []string{"printf", "%s", "$HOME;id"}, "", vm.RunResult{Stdout: []byte("$HOME;id")}},
		{"pipe held open", []string{"sh", "-c", "echo a; sleep 20 & exit 0"}, "", vm.RunResult{Stdout: []byte("a\n")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			r, err := c.Run(ctx, tt.argv, []byte(tt.stdin))
			if err != nil {
				t.Fatal(err)
			}
			if r.Exit != tt.want.Exit || !bytes.Equal(r.Stdout, tt.want.Stdout) || !bytes.Equal(r.Stderr, tt.want.Stderr) {
				t.Errorf("exit %d, %d bytes, %d bytes", r.Exit, len(r.Stdout), len(r.Stderr))
			}
			if time.Since(start) > 10*time.Second {
				t.Error("waited for what the command left behind")
			}
		})
	}
	r, err := c.Run(ctx, []string{"head", "-c", "5000000", "/dev/zero"}, nil)
	if err != nil || len(r.Stdout) != maxOutput || r.Exit != 0 {
		t.Errorf("long output: exit %d, %d bytes, %v", r.Exit, len(r.Stdout), err)
	}
	if _, err := c.Run(ctx, []string{"/no/such/thing"}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such command: %v", err)
	}
}

func TestAgentAnswersWhileItRuns(t *testing.T) {
	c, ctx := realClient(t)
	if _, err := c.Hello(ctx); err != nil {
		t.Fatal(err)
	}
	long, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	mark := filepath.Join(t.TempDir(), "pid")
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := c.Run(long, []string{"sh", "-c", `echo $$ >"$0"; exec sleep 600`, mark + strconv.Itoa(i)}, nil)
			if !errors.Is(err, context.Canceled) || errors.Is(err, vm.ErrGuestLost) {
				t.Errorf("a cancelled command: %v", err)
			}
		}()
	}
	var pids []int
	for i := range 8 {
		for {
			data, err := c.ReadFile(ctx, mark+strconv.Itoa(i), 100)
			pid, perr := strconv.Atoi(strings.TrimSpace(string(data)))
			if err == nil && perr == nil {
				pids = append(pids, pid)
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Hello(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
	for _, pid := range pids {
		for {
			if err := unix.Kill(pid, 0); err != nil {
				break
			}
			if _, err := c.Hello(ctx); err != nil {
				t.Fatalf("process %d outlives its request: %v", pid, err)
			}
		}
	}
}

func TestAgentListeners(t *testing.T) {
	c, ctx := realClient(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ls, err := c.Listeners(ctx)
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	for _, got := range ls {
		if got.Port == port {
			if got.IP != "127.0.0.1" || got.PID != os.Getpid() || got.Process == "" {
				t.Errorf("%+v", got)
			}
			return
		}
	}
	t.Errorf("port %d is not among %+v", port, ls)
}

func TestAgentHTTP(t *testing.T) {
	c, ctx := realClient(t)
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/trickle":
			for range 100 {
				_, _ = w.Write([]byte("."))
				w.(http.Flusher).Flush()
				select {
				case <-release:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		case "/reset":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
		}
	}))
	defer srv.Close()
	defer close(release)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + free.Addr().String()
	_ = free.Close()
	for _, tt := range []struct {
		url    string
		status int
		body   string
		errIs  string
	}{
		{srv.URL + "/a?b=c", http.StatusTeapot, "POST /a?b=c data", ""},
		{refusing, 0, "", "refused"},
		{srv.URL + "/slow", 0, "", "timeout"},
		{srv.URL + "/trickle", 0, "", "timeout"},
		{srv.URL + "/reset", 0, "", "reset"},
	} {
		r, err := c.HTTP(ctx, vm.HTTPRequest{Method: "POST", URL: tt.url, Body: []byte("data"), Timeout: 500 * time.Millisecond})
		if err != nil || r.Status != tt.status || string(r.Body) != tt.body || r.Err != tt.errIs {
			t.Errorf("%s: %+v, %v", tt.url, r, err)
		}
	}
}

func TestAgentUntar(t *testing.T) {
	c, ctx := realClient(t)
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed")
	}
	dir := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), 150_000)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: "a/big", Typeflag: tar.TypeReg, Mode: 0o640, Size: int64(len(big)),
		Uid: os.Getuid(), Gid: os.Getgid()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(big); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Untar(ctx, dir, &buf); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a/big")); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := c.Untar(ctx, dir, strings.NewReader(strings.Repeat("rubbish", 1000))); !errors.Is(err, ErrAnswer) {
		t.Errorf("rubbish: %v", err)
	}
	failing := io.MultiReader(strings.NewReader("x"), &failingReader{})
	if err := c.Untar(ctx, dir, failing); !errors.Is(err, errFailing) {
		t.Errorf("a failing source: %v", err)
	}
}

var errFailing = errors.New("no more")

type failingReader struct{}

func (*failingReader) Read([]byte) (int, error) { return 0, errFailing }

func TestAgentDies(t *testing.T) {
	conn, cmd := startAgent(t)
	c := New()
	defer c.Close()
	c.Attach(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Hello(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, []string{"sleep", "600"}, nil)
		done <- err
	}()
	for { // until the request is under way
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n > 0 {
			break
		}
	}
	_ = cmd.Process.Kill()
	if err := <-done; !errors.Is(err, vm.ErrTransport) {
		t.Errorf("the connection ended under a request: %v", err)
	}
	if _, err := c.Hello(ctx); !errors.Is(err, vm.ErrTransport) {
		t.Errorf("a request without a connection: %v", err)
	}
	again, _ := startAgent(t)
	c.Attach(again)
	if _, err := c.Hello(ctx); err != nil {
		t.Errorf("attached anew: %v", err)
	}
}

// script is a guest that says what a test wants it to.
type script struct {
	conn  net.Conn
	lines *bufio.Scanner
}

func scripted(t *testing.T) (*Client, *script) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := New()
	s := &script{conn: theirs, lines: bufio.NewScanner(theirs)}
	s.lines.Buffer(nil, maxRequest)
	t.Cleanup(func() {
		_ = theirs.Close()
		_ = c.Close()
	})
	c.Attach(ours)
	if r := s.next(t); r.Verb != "hello" {
		t.Fatalf("the first request is %+v", r)
	}
	return c, s
}

// next is the next request that is not empty.
func (s *script) next(t *testing.T) request {
	t.Helper()
	for s.lines.Scan() {
		if len(s.lines.Bytes()) == 0 {
			continue
		}
		var r request
		if err := json.Unmarshal(s.lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("no request: ", s.lines.Err())
	return request{}
}

func (s *script) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.conn, format+"\n", args...)
}

func (s *script) hello(session, boot string) {
	s.say(`{"session":%q,"hello":{"boot_id":%q,"hostname":"h","time_ns":1,"uptime":2}}`, session, boot)
}

// waitBoot waits until the client has taken the hello of a boot.
func waitBoot(t *testing.T, c *Client, boot string) {
	t.Helper()
	for {
		c.mu.Lock()
		got, news := c.hello.BootID, c.news
		c.mu.Unlock()
		if got == boot {
			return
		}
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatal("no hello of boot ", boot)
		}
	}
}

// async runs one request in the background.
func async(ctx context.Context, c *Client) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.ReadFile(ctx, "/x", 10)
		done <- err
	}()
	return done
}

func TestHostileReplies(t *testing.T) {
	giant := strings.Repeat("x", maxLine+10)
	for _, tt := range []struct {
		name, line string
		want       error // nil: the request is answered by the true reply that follows
	}{
		{"rubbish", "\x00\x1b]0;x\a", vm.ErrGuestLost},
		{"giant line", giant, vm.ErrGuestLost},
		{"another kind of JSON", `[1,2,3]`, vm.ErrGuestLost},
		{"deep JSON", strings.Repeat("[", 100_000), vm.ErrGuestLost},
		{"answer of another kind", `{"id":"%ID%","ok":{"data":7}}`, vm.ErrGuestLost},
		{"no answer in the answer", `{"id":"%ID%"}`, vm.ErrGuestLost},
		{"bad base64", `{"id":"%ID%","ok":{"data":"!"}}`, vm.ErrGuestLost},
		{"agent of another boot", `{"session":"s2","hello":{"boot_id":"b2"}}`, vm.ErrGuestLost},
		{"wrong id", `{"id":"nonsense","ok":{}}`, nil},
		{"id out of range", `{"id":"-99999999999999999999999","ok":{}}`, nil},
		{"hello without a session", `{"hello":{"boot_id":"b"}}`, nil},
		{"same agent's hello", `{"session":"s1","hello":{"boot_id":"b1"}}`, nil},
		{"empty lines", "\n\n\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := scripted(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			s.hello("s1", "b1")
			done := async(ctx, c)
			r := s.next(t)
			s.say("%s", strings.ReplaceAll(tt.line, "%ID%", r.ID))
			if tt.want == nil {
				s.say(`{"id":%q,"ok":{"data":"aGk="}}`, r.ID)
			}
			if err := <-done; !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			// The channel is still good.
			s.hello("s3", "b3")
			waitBoot(t, c, "b3") // a request made before would fail unsent
			done = async(ctx, c)
			r = s.next(t)
			if r.Session != "s3" {
				t.Errorf("the next request is for %q", r.Session)
			}
			s.say(`{"id":%q,"ok":{"data":""}}`, r.ID)
			if err := <-done; err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestSilentGuest(t *testing.T) {
	c, s := scripted(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := <-async(ctx, c); !errors.Is(err, vm.ErrGuestLost) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no hello: %v", err)
	}
	s.hello("s", "b")
	if _, err := c.WaitHello(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	// A guest that does not even read: the pipe takes nothing.
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 5 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := c.ReadFile(ctx, "/x", 10); !errors.Is(err, vm.ErrGuestLost) {
				t.Errorf("no answer: %v", err)
			}
		}()
	}
	wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) != 0 {
		t.Errorf("%d requests are kept for good", len(c.pending))
	}
}

func TestErrorTextIsQuoted(t *testing.T) {
	c, s := scripted(t)
	s.hello("s", "b")
	done := async(t.Context(), c)
	r := s.next(t)
	text, _ := json.Marshal("\x1b[2Jgone" + strings.Repeat("y", 100_000))
	s.say(`{"id":%q,"kind":"not-exist","error":%s}`, r.ID, text)
	err := <-done
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsRune(err.Error(), '\x1b') || len(err.Error()) > 2*maxText {
		t.Errorf("%.200q", err)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	c, s := scripted(t)
	s.hello("s", "b")
	done := async(t.Context(), c)
	s.next(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, vm.ErrTransport) {
		t.Error(err)
	}
	if _, err := c.WaitHello(t.Context(), ""); !errors.Is(err, vm.ErrTransport) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestFloodIsSlowed(t *testing.T) {
	c, s := scripted(t)
	line := []byte(`{"id":"nobody's","ok":"` + strings.Repeat("x", 1<<20) + "\"}\n")
	_ = s.conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	sent := 0
	for {
		n, err := s.conn.Write(line)
		sent += n
		if err != nil {
			break
		}
	}
	if sent > 2*idleBudget+2*len(line) {
		t.Errorf("took %d unasked bytes in half a second", sent)
	}
	_ = c
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nb\n"), 3)
	f.Add([]byte("\n\nlonger than that\nx\n"), 4)
	f.Add([]byte("no end"), 2)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + (limit&0xffff+0x10000)%0x10000
		r := newLineReader(bytes.NewReader(data), limit)
		var got [][]byte
		read := 0
		for {
			line, n, err := r.next()
			read += n
			if err != nil && !errors.Is(err, errLongLine) {
				break
			}
			if len(line) > limit {
				t.Fatalf("a line of %d bytes, over %d", len(line), limit)
			}
			if len(line) > 0 {
				got = append(got, bytes.Clone(line))
			}
		}
		if read != len(data) {
			t.Fatalf("read %d of %d bytes", read, len(data))
		}
		var want [][]byte
		for rest := data; ; {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			rest = after
			if trimmed := bytes.TrimRight(line, "\r\n"); len(line)+1 <= limit && len(trimmed) > 0 {
				want = append(want, trimmed)
			}
		}
		if !equal(got, want) {
			t.Fatalf("%q gave %q, want %q", data, got, want)
		}
	})
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// FuzzReplies: whatever a guest says, the client neither panics nor hangs.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(`{"session":"s","hello":{"boot_id":"b","uptime":1e400}}`))
	f.Add([]byte(`{"id":"1","ok":null,"kind":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		c := New()
		c.Attach(ours)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		if len(data) > idleBudget/2 {
			data = data[:idleBudget/2]
		}
		_, _ = theirs.Write(append(data, '\n'))
		_ = theirs.Close()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
