package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a heat's desk that remembers what was asked of it. Its machine's console
// prints what is typed, in capitals.
type desk struct {
	mu    sync.Mutex
	calls []string
	block chan struct{} // notes wait for it, when set
	began chan struct{} // receives when a note waits
}

func (d *desk) log(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *desk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, "|")
}

func (d *desk) End(_ context.Context, author, reason string) error {
	d.log("end %q %q", author, reason)
	return nil
}

func (d *desk) Note(ctx context.Context, author, text string) error {
	if d.block != nil {
		d.began <- struct{}{}
		select {
		case <-d.block:
		case <-ctx.Done():
			d.log("note given up")
			d.began <- struct{}{}
			return ctx.Err()
		}
	}
	d.log("note %q %q", author, text)
	return nil
}

func (d *desk) Rule(_ context.Context, author string, r Ruling) error {
	if r.Action == Resume {
		return errors.New("the heat is not paused")
	}
	d.log("%s %q %s/%s %v %q", r.Action, author, r.Territory, r.Milestone, r.By, r.Reason)
	if r.Fault != (Fault{}) {
		d.log("%s %s %q", r.Fault.Kind, r.Fault.Target(), r.Target)
	}
	return nil
}

func (d *desk) Attach(_ context.Context, author, territory, machine string) (io.ReadWriteCloser, error) {
	if territory != "one" {
		return nil, fmt.Errorf("no running seat is called %q", territory)
	}
	d.log("attach %s %s %s", author, territory, machine)
	r, w := io.Pipe()
	return &echo{r: r, w: w, closed: sync.OnceFunc(func() { d.log("detach") })}, nil
}

func (d *desk) Sit(ctx context.Context, author, territory, machine string, size Size) (Terminal, error) {
	switch territory {
	case "one":
	case "slow":
		d.began <- struct{}{}
		<-ctx.Done()
		d.log("sit given up")
		d.began <- struct{}{}
		return nil, ctx.Err()
	default:
		return nil, fmt.Errorf("no running seat is called %q", territory)
	}
	d.log("sit %s %s %s %v", author, territory, machine, size)
	r, w := io.Pipe()
	return &seated{echo: &echo{r: r, w: w, closed: sync.OnceFunc(func() { d.log("rise") })}, d: d}, nil
}

// seated is a terminal whose machine prints what is typed, in capitals, and its
// new size.
type seated struct {
	*echo
	d *desk
}

func (s *seated) Resize(z Size) error {
	_, err := fmt.Fprintf(s.w, "<%dx%d>", z.Cols, z.Rows)
	return err
}

// upper keeps the length of what is no text.
func upper(p []byte) []byte {
	out := bytes.Clone(p)
	for i, c := range out {
		if 'a' <= c && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
	}
	return out
}

type echo struct {
	r      *io.PipeReader
	w      *io.PipeWriter
	closed func()
}

func (e *echo) Login() Login { return Login{"root", "sesame"} }

func (e *echo) Read(p []byte) (int, error) { return e.r.Read(p) }
func (e *echo) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("halt")) {
		e.w.Close() // the machine ends
		return len(p), nil
	}
	return e.w.Write(upper(p))
}
func (e *echo) Close() error {
	e.closed()
	e.w.Close()
	return e.r.Close()
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "desk.sock")
}

// serveDesk serves until the test ends and returns a client.
func serveDesk(t *testing.T, d Desk) (Desk, string) {
	t.Helper()
	socket := socketPath(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, socket, d) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(socket); err == nil {
			t.Error("the socket is left")
		}
	})
	return dialSoon(t, socket, served), socket
}

func dialSoon(t *testing.T, socket string, served <-chan error) Desk {
	t.Helper()
	limit := time.Now().Add(10 * time.Second)
	for {
		c, err := Dial(socket)
		if err == nil {
			return c
		}
		if !errors.Is(err, ErrNoDesk) || time.Now().After(limit) {
			t.Fatal(err)
		}
		select {
		case err := <-served:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}

// bothWays tests a desk in this process, and one over a socket.
func bothWays(t *testing.T, test func(t *testing.T, d *desk, c Desk)) {
	t.Run("in process", func(t *testing.T) { d := &desk{}; test(t, d, d) })
	t.Run("socket", func(t *testing.T) {
		d := &desk{}
		c, _ := serveDesk(t, d)
		test(t, d, c)
	})
}

// types types texts of all lengths, each followed by then, and reads what the
// machine prints of both.
func types(t *testing.T, console io.ReadWriter, more string, then func() error) {
	t.Helper()
	for _, typed := range []string{"ls\r", strings.Repeat("x", 300_000), "\x00\xff"} {
		var typing sync.WaitGroup
		typing.Go(func() {
			n, err := console.Write([]byte(typed))
			if err = errors.Join(err, then()); n != len(typed) || err != nil {
				t.Error(n, err)
			}
		})
		want := string(upper([]byte(typed))) + more
		got := make([]byte, len(want))
		if _, err := io.ReadFull(console, got); err != nil || string(got) != want {
			t.Fatalf("typed %d bytes, got %.20q, %v", len(typed), got, err)
		}
		typing.Wait()
	}
}

func TestBothWaysBehaveTheSame(t *testing.T) {
	bothWays(t, func(t *testing.T, d *desk, c Desk) {
		ctx := t.Context()
		if err := c.Note(ctx, "ann", "line\n\x1b[31m \"two\" ü"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Attach(ctx, "ann", "nowhere", "host"); err == nil || err.Error() != `no running seat is called "nowhere"` {
			t.Fatalf("attach to nothing: %v", err)
		}
		console, err := c.Attach(ctx, "ann", "one", "host")
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := LoginAt(console); !ok || l.User != "root" || l.Password != "sesame" {
			t.Fatalf("the login is %q, %q", l.User, l.Password)
		}
		types(t, console, "", func() error { return nil })
		if err := console.Close(); err != nil {
			t.Fatal(err)
		}
		// Detached is recorded when Close returns.
		want := `note "ann" "line\n\x1b[31m \"two\" ü"|attach ann one host|detach`
		if got := d.said(); got != want {
			t.Fatalf("\n%s\n%s", got, want)
		}
		if console, err = c.Attach(ctx, "bob", "one", "host"); err != nil {
			t.Fatal(err)
		}
		if _, err := console.Write([]byte("halt")); err != nil {
			t.Fatal(err)
		}
		if _, err := console.Read(make([]byte, 10)); !errors.Is(err, io.EOF) {
			t.Fatalf("the machine ended, and reading gives %v", err)
		}
		console.Close()
		if err := c.End(ctx, "ann", "enough"); err != nil {
			t.Fatal(err)
		}
		if got := d.said(); !strings.HasSuffix(got, `|attach bob one host|detach|end "ann" "enough"`) {
			t.Fatal(got)
		}
		d.calls = nil
		for _, r := range []Ruling{
			{Action: Pause, Reason: "a\n\x1b[31m ü"}, {Action: Extend, By: 90 * time.Second, Reason: "b"}, {Action: Unavailable, Territory: "one", Reason: "c"},
			{Action: Revoke, Territory: "one", Milestone: "m", Reason: "d"}, {Action: AddNote, Reason: "e"}, {Action: EndHeat, Reason: "f"},
			{Action: InjectFault, Territory: "one", Fault: Fault{Kind: "service-stop", Machine: "host", Unit: "a.service"}, By: time.Second, Reason: "g"},
			{Action: ClearFault, Territory: "one", Fault: Fault{Kind: "service-stop"}, Target: "host/a.service", Reason: "h"},
		} {
			if err := Do(ctx, c, "ann", r); err != nil {
				t.Errorf("%s: %v", r.Action, err)
			}
		}
		if err := c.Rule(ctx, "bob", Ruling{Action: Resume, Reason: "x"}); err == nil || err.Error() != "the heat is not paused" {
			t.Errorf("a refused ruling: %v", err)
		}
		want = `pause "ann" / 0s "a\n\x1b[31m ü"|extend "ann" / 1m30s "b"|unavailable "ann" one/ 0s "c"|revoke "ann" one/m 0s "d"|note "ann" "e"|end "ann" "f"|fault "ann" one/ 1s "g"|service-stop host/a.service ""|clear "ann" one/ 0s "h"|service-stop  "host/a.service"`
		if got := d.said(); got != want {
			t.Errorf("\n%s\n%s", got, want)
		}
	})
}

func TestRulingsThatLackSomething(t *testing.T) {
	d := &desk{}
	_, socket := serveDesk(t, d)
	for _, x := range []struct {
		r    Ruling
		want string
	}{
		{Ruling{Action: "dance", Reason: "x"}, "knows no"},
		{Ruling{Action: Pause, Reason: " "}, "needs a reason"},
		{Ruling{Action: AddNote}, "needs a text"},
		{Ruling{Action: Restore, Reason: "x"}, "needs a seat"},
		{Ruling{Action: Uphold, Territory: "one", Reason: "x"}, "needs a milestone"},
		{Ruling{Action: InjectFault, Territory: "one", Reason: "x", Fault: Fault{Kind: "earthquake", Machine: "host"}}, "want one of"},
		{Ruling{Action: InjectFault, Territory: "one", Reason: "x", Fault: Fault{Kind: "freeze"}}, "names no machine"},
		{Ruling{Action: InjectFault, Territory: "one", Reason: "x", Fault: Fault{Kind: "clock-jump", Machine: "host"}}, "jump_ms"},
		{Ruling{Action: InjectFault, Territory: "one", Reason: "x", Fault: Fault{Kind: "hard-reset", Machine: "host"}, By: time.Second}, "does not last"},
		{Ruling{Action: ClearFault, Territory: "one", Reason: "x"}, "want one of"},
		{Ruling{Action: Extend, Reason: "x"}, "put off by"},
		{Ruling{Action: Extend, By: -time.Hour, Reason: "x"}, "put off by"},
		{Ruling{Action: Extend, By: 25 * time.Hour, Reason: "x"}, "put off by"},
	} {
		if err := Do(t.Context(), d, "ann", x.r); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.r, err, x.want)
		}
		if x.r.Action == AddNote {
			continue // has a call of its own
		}
		if err := (client{socket}).Rule(t.Context(), "ann", x.r); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v over the socket: %v, want %q", x.r, err, x.want)
		}
	}
	if d.said() != "" {
		t.Error(d.said())
	}
}

func TestEveryActionIsDescribed(t *testing.T) {
	for _, a := range []Action{Pause, Resume, Extend, Unavailable, Restore, Revoke, Uphold, InjectFault, ClearFault, AddNote, EndHeat, Void} {
		if d, ok := Describe(a); !ok || d.Short == "" || d.Does == "" || d.Milestone && !d.Seat {
			t.Errorf("%s: %+v", a, d)
		}
	}
	if len(Actions()) != 12 {
		t.Errorf("%d actions", len(Actions()))
	}
}

func TestLoginsAreNotPrinted(t *testing.T) {
	l := Login{"root", "sesame"}
	text, err := json.Marshal(map[string]any{"login": l})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "login", l)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "login", l, "in", struct{ L Login }{l})
	for _, s := range []string{fmt.Sprint(l), fmt.Sprintf("%+v %#v %q", l, &l, l), fmt.Sprintf("%+v", []Login{l}), string(text), log.String()} {
		if strings.Contains(s, "sesame") {
			t.Error(s)
		}
	}
	if l, ok := LoginAt(struct{ io.ReadWriteCloser }{}); ok {
		t.Errorf("a console that knows none has the login %v", l)
	}
}

func TestACallerThatGoesEndsItsCall(t *testing.T) {
	d := &desk{block: make(chan struct{}), began: make(chan struct{})}
	c, _ := serveDesk(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- c.Note(ctx, "a", "b") }()
	<-d.began
	cancel()
	<-d.began
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if d.said() != "note given up" {
		t.Fatal(d.said())
	}
}

func TestServeEndsWhatRuns(t *testing.T) {
	d := &desk{block: make(chan struct{}), began: make(chan struct{}, 4)}
	socket := socketPath(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, socket, d) }()
	c := dialSoon(t, socket, served)
	console, err := c.Attach(t.Context(), "a", "one", "host")
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- c.Note(t.Context(), "a", "b") }()
	<-d.began
	idle, err := net.Dial("unix", socket) // says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Fatal("a call survived")
	}
	if _, err := console.Read(make([]byte, 1)); err == nil {
		t.Fatal("a console survived")
	}
	console.Close()
	if _, err := Dial(socket); !errors.Is(err, ErrNoDesk) {
		t.Fatal(err)
	}
	if !strings.Contains(d.said(), "detach") {
		t.Fatal(d.said())
	}
}

func TestSocket(t *testing.T) {
	d := &desk{}
	_, socket := serveDesk(t, d)
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	if err := Serve(t.Context(), socket, d); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("two desks at one socket: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(socket)); len(entries) != 1 {
		t.Fatalf("left %v", entries)
	}
	for _, line := range []string{"nonsense\n", "{}\n", `{"op":"rm -rf"}` + "\n", strings.Repeat("x", 2*maxRequest)} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(line))
		answer, _ := bufio.NewReader(conn).ReadString('\n')
		if !strings.Contains(answer, `"ok":false`) && len(line) < maxRequest {
			t.Errorf("%.20q is answered with %q", line, answer)
		}
		conn.Close()
	}
	if d.said() != "" {
		t.Fatal(d.said())
	}
	file := socketPath(t)
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), file, d); err == nil {
		t.Fatal("a file was replaced")
	}
	if err := Serve(t.Context(), filepath.Join(t.TempDir(), strings.Repeat("x", 120)), d); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Fatal(err)
	}
	if _, err := Dial(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoDesk) {
		t.Fatal(err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	socket := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // as a killed process leaves it
	if _, err := Dial(socket); !errors.Is(err, ErrNoDesk) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, socket, &desk{}) }()
	dialSoon(t, socket, served)
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestSweepRemovesWhatTheDeadLeft(t *testing.T) {
	_, live := serveDesk(t, &desk{})
	dir := filepath.Dir(live)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "dead"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	old, fresh := filepath.Join(dir, privatePrefix+"old"), filepath.Join(dir, privatePrefix+"fresh")
	long := time.Now().Add(-time.Hour)
	err = errors.Join(os.Mkdir(old, 0o700), os.Chtimes(old, long, long), os.Mkdir(fresh, 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), privatePrefix+"fresh "+filepath.Base(live)+" file"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	if _, err := Dial(live); err != nil {
		t.Error(err)
	}
}
