package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"refbox/vm"
)

// fakeMachine is a machine whose service is an HTTP server of the test.
type fakeMachine struct {
	vm.Machine
	name  string
	addrs map[int]string
	guest vm.Guest
	power vm.Power
	done  chan struct{}
	con   fakeConsole
}

func (m *fakeMachine) Name() string                            { return m.name }
func (m *fakeMachine) Console() vm.Console                     { return &m.con }
func (m *fakeMachine) Done() <-chan struct{}                   { return m.done }
func (m *fakeMachine) Err() error                              { return nil }
func (m *fakeMachine) Guest() vm.Guest                         { return m.guest }
func (m *fakeMachine) Power(context.Context) (vm.Power, error) { return m.power, nil }
func (m *fakeMachine) Addr(port int) (string, error) {
	if a, ok := m.addrs[port]; ok {
		return a, nil
	}
	return "", errors.New("no forward")
}

type fakeConsole struct {
	vm.Console
	sink func([]byte)
}

func (c *fakeConsole) Attach(sink func([]byte)) func() { c.sink = sink; return func() { c.sink = nil } }

// fakeGuest is a guest with files, and failures to come.
type fakeGuest struct {
	vm.Guest
	mu    sync.Mutex
	files map[string]string
	fail  []error // of the next calls
	calls int
}

func (g *fakeGuest) next() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if len(g.fail) == 0 {
		return nil
	}
	err := g.fail[0]
	if len(g.fail) > 1 || !errors.Is(err, vm.ErrGuestLost) { // a lost guest stays lost
		g.fail = g.fail[1:]
	}
	return err
}

func (g *fakeGuest) ReadFile(_ context.Context, path string, limit int) ([]byte, error) {
	if err := g.next(); err != nil {
		return nil, err
	}
	s, ok := g.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(s[:min(len(s), limit)]), nil
}

func (g *fakeGuest) Run(_ context.Context, argv []string, _ []byte) (vm.RunResult, error) {
	return vm.RunResult{Exit: 3, Stdout: []byte(strings.Join(argv, " "))}, g.next()
}

func (g *fakeGuest) Unit(context.Context, string) (vm.Unit, error) {
	return vm.Unit{ActiveState: "active", MainPID: 7}, g.next()
}

func (g *fakeGuest) Listeners(context.Context) ([]vm.Listener, error) {
	return []vm.Listener{{IP: "127.0.0.1", Port: 8082, Process: "python3", PID: 7}}, g.next()
}

type rig struct {
	*Seat
	m *fakeMachine
	g *fakeGuest
}

func newRig(t testing.TB, h http.HandlerFunc) *rig {
	t.Helper()
	g := &fakeGuest{files: map[string]string{}}
	m := &fakeMachine{name: "host", addrs: map[int]string{}, guest: g, power: vm.PowerOn, done: make(chan struct{})}
	if h != nil {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		m.addrs[8080] = srv.Listener.Addr().String()
	}
	start := time.Now()
	s, err := NewSeat(Config{Territory: "one", ServicePort: 8080, Machines: []vm.Machine{m}, Secret: Secret{1},
		Clock: func() uint64 { return uint64(time.Since(start).Milliseconds()) + 1 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &rig{s, m, g}
}

func load(t testing.TB, src string) Verifier {
	t.Helper()
	v, err := Load(fstest.MapFS{"verify/v.star": {Data: []byte(src)}}, "verify/v.star")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verify runs a verify function whose body is given.
func (r *rig) verify(t *testing.T, ctx context.Context, body string) (string, *Attempt, error) {
	t.Helper()
	src := "def verify(seat):\n"
	for _, l := range strings.Split(strings.TrimSpace(body), "\n") {
		src += "    " + l + "\n"
	}
	a := r.Attempt("m", 2, map[string]json.RawMessage{"earlier": json.RawMessage(`{"id":"x","n":3}`)})
	ev, err := load(t, src).Verify(ctx, a)
	return string(ev), a, err
}

func TestStarlarkReachesTheSeat(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		w.WriteHeader(201)
		fmt.Fprintf(w, "%s %s %s", q.Method, q.URL.Path, b)
	})
	r.g.files["/etc/role"] = "primary\n"
	r.m.con.sink([]byte("login: "))
	ev, a, err := r.verify(t, t.Context(), `
r = seat.http("PUT", "/records/a", body = "v")
l = seat.guest.listeners()[0]
return {
    "http": [r.status, r.body, r.error], "role": seat.guest.read("/etc/role").strip(), "none": seat.guest.read("/none"),
    "unit": seat.guest.unit("a.service").active, "run": seat.guest.run(["echo", "hi"]).stdout, "exit": seat.guest.systemctl("stop", "a").exit,
    "listener": [l.ip, l.port, l.process, l.pid], "listening": [seat.guest.listening(8082), seat.guest.listening(1)],
    "console": seat.console_contains("login:"), "power": seat.power(), "machine": seat.machine("host").name,
    "previous": [seat.previous("earlier")["n"], seat.previous("later")], "attempt": seat.attempt, "id": seat.id,
    "same": seat.fresh("a").id == seat.fresh("a").id, "differ": seat.fresh("a").id != seat.value("a").id,
}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attempt":2,"console":true,"differ":true,"exit":3,"http":[201,"PUT /records/a v",""],"id":"one","listener":["127.0.0.1",8082,"python3",7],` +
		`"listening":[true,false],"machine":"host","none":null,"power":"on","previous":[3,null],"role":"primary","run":"echo hi","same":true,"unit":"active"}`
	if ev != want {
		t.Errorf("evidence\n got %s\nwant %s", ev, want)
	}
	recs, dropped := a.Records()
	if dropped != 0 || len(recs) != 11 {
		t.Fatalf("%d records: %+v", len(recs), recs)
	}
	outside := map[string]bool{}
	for _, c := range recs {
		outside[c.Call] = c.Outside
		if c.AtMS == 0 || (c.Forgeable == "") != (c.Call == "power") {
			t.Errorf("record %+v", c)
		}
	}
	if !outside["http"] || !outside["power"] || !outside["console"] || outside["guest.read"] || outside["guest.unit"] {
		t.Errorf("witnesses: %v", outside)
	}
	if !a.Disrupted() {
		t.Error("systemctl stop is not seen as a disruption")
	}
}

func TestRefusalsAreTheContract(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(502) })
	_, a, err := r.verify(t, t.Context(), `
r = seat.http("GET", "/health")
require(r.status == 200, "GET /health: %d\x1b]0;pwned\x07" % r.status)`)
	var f *Failure
	if !errors.As(err, &f) || f.Category != Contract || f.Source != "player" || f.Reason != "GET /health: 502" {
		t.Fatalf("%#v", err)
	}
	recs, _ := a.Records()
	if ms, why := a.Refusal(); ms != recs[0].AtMS || why != f.Reason || recs[0].Refused != f.Reason {
		t.Errorf("refused at %d for %q; record %+v", ms, why, recs[0])
	}
}

// What a service can do instead of answering.
func TestHostileServices(t *testing.T) {
	accept := func(t *testing.T, do func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() {
					defer c.Close()
					gone := make(chan struct{})
					go func() { do(c); close(gone) }()
					select {
					case <-gone:
					case <-stop:
						c.Close()
						<-gone
					}
				})
			}
		})
		t.Cleanup(func() { l.Close(); close(stop); wg.Wait() })
		return l.Addr().String()
	}
	for _, tc := range []struct {
		name  string
		do    func(net.Conn)
		error string
		port  string
	}{
		{"accepted, then closed, as QEMU does for a port nobody listens on", func(c net.Conn) {}, "closed", "closed"},
		{"reset", func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, "closed", "closed"},
		{"silent", func(c net.Conn) { io.Copy(io.Discard, c) }, "timeout", "silent"},
		{"no HTTP", func(c net.Conn) { io.WriteString(c, "SSH-2.0-x\r\n"); c.Read(make([]byte, 1)) }, "malformed", "open"},
		{"an endless header", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			for {
				if _, err := io.WriteString(c, strings.Repeat("a", 4096)); err != nil {
					return
				}
			}
		}, "malformed", "open"},
		{"a body that stops", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			c.Read(make([]byte, 1<<10))
		}, "closed", "open"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.m.addrs[8080] = accept(t, tc.do)
			ev, _, err := r.verify(t, t.Context(), `
r = seat.http("GET", "/", timeout = 0.3)
return {"status": r.status, "error": r.error, "port": seat.port(8080)}`)
			if want := fmt.Sprintf(`{"error":"%s","port":"%s","status":0}`, tc.error, tc.port); err != nil || ev != want {
				t.Errorf("got %s, %v; want %s", ev, err, want)
			}
		})
	}
}

// Requests that are made at once do not wait for each other, and are recorded in
// their order.
func TestRequestsAtOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		all.Done()
		all.Wait() // until the others have come
		if q.URL.Path == "/b" {
			w.WriteHeader(404)
		}
		io.WriteString(w, q.URL.Path)
	})
	ev, a, err := r.verify(t, t.Context(), `rs = seat.get_all(["/a", "/b", "/c"], timeout = 10)
return {"status": [r.status for r in rs], "body": [r.body for r in rs], "none": seat.get_all([])}`)
	if err != nil || ev != `{"body":["/a","/b","/c"],"none":[],"status":[200,404,200]}` {
		t.Fatalf("%s, %v", ev, err)
	}
	recs, _ := a.Records()
	if len(recs) != 3 || recs[0].Request["url"] != "/a" || recs[1].Request["url"] != "/b" || recs[2].Request["url"] != "/c" {
		t.Fatalf("%+v", recs)
	}
	for body, want := range map[string]string{
		`seat.get_all(["/a"] * 65)`: "at most 64", `seat.get_all(["a"])`: "does not begin with /", `seat.get_all([1])`: "paths[0] is a int",
	} {
		if _, _, err := r.verify(t, t.Context(), body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestEndlessBodyIsBounded(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("\x1b[2J", 1<<12)); err != nil {
				return
			}
		}
	})
	ev, a, err := r.verify(t, t.Context(), `return {"n": len(seat.http("GET", "/").body)}`)
	if err != nil || ev != `{"n":65536}` {
		t.Fatal(ev, err)
	}
	recs, _ := a.Records()
	b, err := json.Marshal(recs)
	if err != nil || len(b) > 4<<10 || strings.ContainsRune(string(b), 0x1b) || strings.Contains(string(b), "u001b") {
		t.Errorf("record of %d bytes, %v", len(b), err)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://127.0.0.1:1/", http.StatusFound)
	})
	ev, _, err := r.verify(t, t.Context(), `return {"s": seat.http("GET", "/").status}`)
	if err != nil || ev != `{"s":302}` {
		t.Fatal(ev, err)
	}
}

func TestTransportIsRetriedInsideTheCall(t *testing.T) {
	r := newRig(t, nil)
	r.g.files["/a"] = "x"
	r.g.fail = []error{vm.ErrTransport, vm.ErrTransport}
	_, a, err := r.verify(t, t.Context(), `return {"a": seat.guest.read("/a")}`)
	recs, _ := a.Records()
	if err != nil || len(recs) != 1 || recs[0].Tries != 3 {
		t.Fatalf("%v %+v", err, recs)
	}
	r.g.fail = []error{vm.ErrTransport, vm.ErrTransport, vm.ErrTransport, vm.ErrTransport, vm.ErrTransport}
	_, _, err = r.verify(t, t.Context(), `return {"a": seat.guest.read("/a")}`)
	var f *Failure
	if !errors.As(err, &f) || f.Category != Transport || f.Source != "controller" {
		t.Fatalf("%#v", err)
	}
}

func TestLostGuestIsThePlayers(t *testing.T) {
	r := newRig(t, nil)
	r.g.fail = []error{vm.ErrGuestLost}
	_, _, err := r.verify(t, t.Context(), `return {"a": seat.guest.read("/a")}`)
	var f *Failure
	if !errors.As(err, &f) || f.Category != Contract || f.Source != "player" || r.g.calls != 4 {
		t.Fatalf("%#v after %d calls", err, r.g.calls)
	}
}

func TestMachineGoneAndOff(t *testing.T) {
	r := newRig(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.m.addrs[8080] = l.Addr().String()
	l.Close() // the forward itself refuses
	r.m.power = vm.PowerOff
	var f *Failure
	if _, _, err := r.verify(t, t.Context(), `return {"s": seat.http("GET", "/").status}`); !errors.As(err, &f) || f.Category != Contract {
		t.Errorf("off: %#v", err)
	}
	if ev, _, err := r.verify(t, t.Context(), `return {"s": seat.port(8080)}`); err != nil || ev != `{"s":"closed"}` {
		t.Errorf("off: %s %v", ev, err)
	}
	r.g.fail = []error{vm.ErrTransport, vm.ErrTransport, vm.ErrTransport, vm.ErrTransport}
	if _, _, err := r.verify(t, t.Context(), `return {"a": seat.guest.read("/a")}`); !errors.As(err, &f) || f.Source != "player" || r.g.calls != 1 {
		t.Errorf("off: its guest: %#v after %d calls", err, r.g.calls)
	}
	r.g.fail = nil
	r.m.power = vm.PowerOn
	if _, _, err := r.verify(t, t.Context(), `return {"s": seat.http("GET", "/").status}`); !errors.As(err, &f) || f.Category != Transport {
		t.Errorf("on, but refused: %#v", err)
	}
	close(r.m.done)
	if _, _, err := r.verify(t, t.Context(), `return {"s": seat.http("GET", "/").status}`); !errors.Is(err, ErrGone) {
		t.Errorf("gone: %#v", err)
	}
}

func TestEventually(t *testing.T) {
	n := 0
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		if n++; n < 4 {
			w.WriteHeader(503)
		}
	})
	ev, a, err := r.verify(t, t.Context(), `
def up():
    require(seat.http("GET", "/").status == 200, "not up")
    return 7
return {"r": eventually(up, timeout = 5, every = 0.01)}`)
	if err != nil || ev != `{"r":7}` {
		t.Fatal(ev, err)
	}
	if ms, why := a.Refusal(); ms == 0 || why != "not up" {
		t.Error("the refused probe is not remembered")
	}
	n = -1000
	var f *Failure
	start := time.Now()
	_, _, err = r.verify(t, t.Context(), `eventually(lambda: seat.http("GET", "/").status == 200, timeout = 0.2, every = 0.01)`)
	if !errors.As(err, &f) || f.Category != Contract || time.Since(start) > 2*time.Second {
		t.Fatalf("%#v", err)
	}
}

func TestTimeoutEndsAVerifier(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(503) })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for _, body := range []string{
		`eventually(lambda: seat.http("GET", "/").status == 200, timeout = 100)`,
		"for i in range(1000000000):\n    pass",
		`eventually(lambda: False, timeout = 100)`,
	} {
		start := time.Now()
		_, _, err := r.verify(t, ctx, body)
		if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(fmt.Sprint(err), "too many steps") || time.Since(start) > 3*time.Second {
			t.Errorf("%s: %#v", body, err)
		}
	}
}

// TestCutOffIsNoRefusal: a request that is cut off with its evaluation is not a
// service that does not answer.
func TestCutOffIsNoRefusal(t *testing.T) {
	asked := make(chan context.CancelFunc, 1)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) {
		(<-asked)()
		<-q.Context().Done()
	})
	for range 20 { // what ends first is chance
		ctx, cancel := context.WithCancel(t.Context())
		asked <- cancel
		_, _, err := r.verify(t, ctx, `
require(seat.http("GET", "/", timeout = 60).error == "", "the service does not answer")
return {}`)
		var f *Failure
		if errors.As(err, &f) || !errors.Is(err, context.Canceled) {
			t.Fatalf("%#v", err)
		}
	}
}

func TestHostileFiles(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"load", `load("other.star", "x")` + "\ndef verify(seat):\n    return {}", "load is not available"},
		{"no verify", `x = 1`, "defines no verify(seat)"},
		{"verify is a number", `verify = 1`, "verify must be a function of one parameter"},
		{"verify without a seat", "def verify():\n    return {}", "verify must be a function of one parameter"},
		{"syntax", "def verify(seat)\n", "v.star:2:1"},
		{"unknown name", "def verify(seat):\n    return open('/etc/passwd')", "undefined: open"},
		{"endless top level", "def f():\n    for i in range(1000000000):\n        pass\nf()\ndef verify(seat):\n    return {}", "too many steps"},
		{"recursion", "def f(): return f()\nf()\ndef verify(seat):\n    return {}", "recursively"},
		{"top-level require", "require(False, 'x')\ndef verify(seat):\n    return {}", "x"},
		{"top-level eventually", "eventually(lambda: True)\ndef verify(seat):\n    return {}", "not available while the file is loaded"},
		{"attacks is text", "attacks = 'x'\ndef verify(seat):\n    return {}", "attacks must be a list"},
		{"attacks hold text", "attacks = ['x']\ndef verify(seat):\n    return {}", "attacks[0] is a string"},
		{"attack without words", "attacks = [attack('', len, len)]\ndef verify(seat):\n    return {}", "words are empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{"v.star": {Data: []byte(tc.src)}}, "v.star")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := Load(fstest.MapFS{"v.star": {Data: make([]byte, maxSource+1)}}, "v.star"); err == nil {
		t.Error("a huge file was loaded")
	}
}

func TestBrokenVerifiersAreTheArenas(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	for _, tc := range []struct{ body, want string }{
		{`return 1`, "verify returned a int"},
		{`pass`, "verify returned a NoneType"},
		{`return {"a": verify}`, "is no evidence"},
		{`return {1: 2}`, "is not text"},
		{`return {"a": "x" * 60000, "b": "x" * 60000}`, "larger than"},
		{`return {}["x"]`, `v.star:2:14: key "x" not in dict`},
		{`seat.http("GET", "health")`, "does not begin with /"},
		{`seat.http("GET", "/", timeout = -1)`, "seconds from 0"},
		{`seat.http("GET", "/", port = 9)`, "is not forwarded"},
		{`seat.http("BAD METHOD", "/")`, "invalid method"},
		{`seat.port(9)`, "is not forwarded"},
		{`seat.machine("other")`, `no machine "other"`},
		{`seat.guest.systemctl("isolate", "x")`, `no action "isolate"`},
		{`seat.guest.run([])`, "no command"},
		{`seat.guest.run([1])`, "argv[0] is a int"},
		{`seat.attempt = 4`, "can't assign"},
		{`seat.http("GET", "/", body = 1)`, "body is a int"},
	} {
		_, _, err := r.verify(t, t.Context(), tc.body)
		var f *Failure
		if !errors.As(err, &f) || f.Category != Broken || f.Source != "arena" || !strings.Contains(f.Reason, tc.want) {
			t.Errorf("%s: %v", tc.body, err)
		}
	}
}

func TestFileFunctions(t *testing.T) {
	v := load(t, `
def verify(seat):
    return {}
def before(seat):
    require(seat.guest.read("/before") != None, "no before")
def holds(seat):
    return seat.guest.read("/holds") != None
def run(seat):
    require(seat.guest.read("/fence") != None, "acknowledged")
def undo(seat):
    require(seat.guest.read("/undone") != None, "still there")
attacks = [attack("start it", run, undo)]
`)
	r := newRig(t, nil)
	if got := v.Attacks(); len(got) != 1 || got[0] != "start it" {
		t.Fatal(got)
	}
	calls := map[string]func() error{
		"/before": func() error { return v.Before(t.Context(), r.Attempt("m", 1, nil)) },
		"/holds":  func() error { return v.Holds(t.Context(), r.Attempt("m", 1, nil)) },
		"/fence":  func() error { return v.Attack(t.Context(), r.Attempt("m", 1, nil), 0) },
		"/undone": func() error { return v.Undo(t.Context(), r.Attempt("m", 1, nil), 0) },
	}
	for file, call := range calls {
		var f *Failure
		if err := call(); !errors.As(err, &f) || f.Category != Contract {
			t.Errorf("%s: %v", file, err)
		}
		r.g.files[file] = ""
		if err := call(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// One file serves all seats at the same time.
func TestSeatsShareAVerifier(t *testing.T) {
	v := load(t, "seen = []\ndef verify(seat):\n    return {\"v\": seat.value(\"a\").value, \"s\": seat.http(\"GET\", \"/\").status}")
	var wg sync.WaitGroup
	for range 8 {
		r := newRig(t, func(http.ResponseWriter, *http.Request) {})
		wg.Go(func() {
			for range 20 {
				if _, err := v.Verify(t.Context(), r.Attempt("m", 1, nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestRecordsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	_, a, err := r.verify(t, t.Context(), "for i in range(1000):\n    seat.guest.read(\"/%d\" % i)\nreturn {}")
	recs, dropped := a.Records()
	if err != nil || len(recs) != maxRecords || dropped != 600 {
		t.Fatal(len(recs), dropped, err)
	}
	if recs[0].Request["path"] != "/0" || recs[len(recs)-1].Request["path"] != "/999" || recs[maxRecords/2-1].Request["path"] != "/199" {
		t.Error("the head or the tail is missing")
	}
}

func TestSecrets(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if a == b || a.SHA256() == b.SHA256() || len(a.String()) != 64 {
		t.Fatal("secrets are not secret")
	}
	seen := map[Value]string{}
	for _, s := range []Secret{a, b} {
		for _, seat := range []string{"one", "two"} {
			for _, name := range []string{"red", "blue"} {
				v := s.Seat(seat, name)
				if other, ok := seen[v]; ok {
					t.Errorf("%s %s is also %s", seat, name, other)
				}
				seen[v] = seat + " " + name
				if strings.Trim(v.ID+v.Value, "0123456789abcdef-") != "" {
					t.Errorf("%v is not URL-safe", v)
				}
			}
		}
	}
	if a.Derive("ab", "c") == a.Derive("a", "bc") {
		t.Error("names run into one another")
	}
	if a.Fresh("one", "m", 1, "x") == a.Fresh("one", "m", 2, "x") {
		t.Error("not fresh")
	}
}
