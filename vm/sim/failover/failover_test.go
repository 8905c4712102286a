package failover_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"refbox/engine/arena"
	"refbox/vm"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

// world is one set of the programs: the Python ones on this host, or their
// twins in a simulated machine.
type world interface {
	addr(port int) string // of the programs that the guest has on that port
	port(port int) int    // under which the programs themselves know it
	write(name, text string)
	remove(name string)
	seat(input string) (ok bool)
	// restart ends the program of a port, without warning, and starts it.
	restart(port int)
}

// guestFiles are what the arena lays on its machines, the library's files among them.
func guestFiles(t *testing.T) fs.FS {
	t.Helper()
	p, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(p.FS, "guest")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// host runs the Python programs as processes of this host.
type host struct {
	t          *testing.T
	bin, state string
	addrs      map[int]string
	running    map[int]*exec.Cmd
}

var programs = map[int]string{8081: "primary.py", 8082: "replica.py", 8080: "proxy.py"}

func newHost(t *testing.T) *host {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: the guest's programs cannot be run here")
	}
	dir := t.TempDir()
	sub, err := fs.Sub(guestFiles(t), "opt/failover")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, bin: filepath.Join(dir, "bin"), state: filepath.Join(dir, "state"), addrs: map[int]string{}, running: map[int]*exec.Cmd{}}
	if err := os.CopyFS(h.bin, sub); err != nil {
		t.Fatal(err)
	}
	if out, err := h.command("sh", "seed").CombinedOutput(); err != nil {
		t.Fatalf("seed: %v: %s", err, out)
	}
	t.Cleanup(func() {
		for port := range h.running {
			h.kill(port)
		}
	})
	for port := range programs {
		h.start(port, "0")
	}
	return h
}

func (h *host) command(shell, name string, args ...string) *exec.Cmd {
	c := exec.Command(shell, append([]string{filepath.Join(h.bin, name)}, args...)...)
	c.Env = append(os.Environ(), "FAILOVER_STATE="+h.state, "FAILOVER_HOST=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	return c
}

func (h *host) start(port int, listen string) {
	h.t.Helper()
	c := h.command("python3", programs[port])
	c.Env = append(c.Env, "FAILOVER_PORT="+listen)
	errs, err := c.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.running[port] = c
	line, err := bufio.NewReader(errs).ReadString('\n')
	_, num, ok := strings.Cut(strings.TrimSpace(line), "listens on ")
	if err != nil || !ok {
		rest, _ := io.ReadAll(errs)
		h.t.Fatalf("%s said %q: %v\n%s", programs[port], line, err, rest)
	}
	h.addrs[port] = "127.0.0.1:" + num
}

func (h *host) kill(port int) {
	c := h.running[port]
	delete(h.running, port)
	_ = c.Process.Kill()
	_ = c.Wait()
}

func (h *host) restart(port int) {
	h.t.Helper()
	_, num, err := net.SplitHostPort(h.addrs[port])
	if err != nil {
		h.t.Fatal(err)
	}
	h.kill(port)
	h.start(port, num)
}

func (h *host) addr(port int) string { return h.addrs[port] }

func (h *host) port(port int) int {
	_, num, err := net.SplitHostPort(h.addrs[port])
	if err != nil {
		h.t.Fatal(err)
	}
	n, err := strconv.Atoi(num)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *host) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.state, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.state, name)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) seat(input string) bool {
	c := h.command("python3", "seat")
	c.Stdin = strings.NewReader(input)
	return c.Run() == nil
}

// twin is a simulated machine of the arena.
type twin struct {
	t *testing.T
	m vm.Machine
}

func newTwin(t *testing.T) *twin {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d := sim.New(sim.Config{Programs: failover.Programs()})
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{{
		Name: "host", VCPUs: 1, MemoryMiB: 768, DiskMiB: 2048, Files: guestFiles(t),
		Setup: []string{"/opt/failover/setup"}, Forwards: []int{8080, 8081, 8082},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(ctx, tpl, vm.Start{Name: "twin", Password: "p", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &twin{t: t, m: c.Machine("host")}
	w.run("systemctl", "start", "failover-primary.service")
	return w
}

func (w *twin) run(argv ...string) {
	w.t.Helper()
	res, err := w.m.Guest().Run(w.t.Context(), argv, nil)
	if err != nil || res.Exit != 0 {
		w.t.Fatalf("%v: exit %d, %v\n%s%s", argv, res.Exit, err, res.Stdout, res.Stderr)
	}
}

func (w *twin) addr(port int) string {
	a, err := w.m.Addr(port)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *twin) port(port int) int { return port }

func (w *twin) write(name, text string) {
	w.t.Helper()
	if err := w.m.Guest().WriteFile(w.t.Context(), "/var/lib/failover/"+name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *twin) remove(name string) {
	w.t.Helper()
	if err := w.m.Guest().Remove(w.t.Context(), "/var/lib/failover/"+name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *twin) seat(input string) bool {
	res, err := w.m.Guest().Run(w.t.Context(), []string{"/opt/failover/seat"}, []byte(input))
	return err == nil && res.Exit == 0
}

func (w *twin) restart(port int) {
	w.t.Helper()
	w.run("systemctl", "restart", map[int]string{8080: "failover-proxy", 8081: "failover-primary", 8082: "failover-replica"}[port])
}

// ask makes one request and says what came: "204", "200 ready", "closed".
func ask(addr, method, path, body string, header ...string) string {
	req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	if body == "-" { // a length that nobody knows
		req, _ = http.NewRequest(method, "http://"+addr+path, io.NopCloser(strings.NewReader("x")))
	}
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		req.Header.Set(k, v)
	}
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		return "closed"
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return "broken"
	}
	if len(got) > 60 {
		got = fmt.Appendf(nil, "%d bytes", len(got))
	}
	return strings.TrimSpace(strconv.Itoa(res.StatusCode) + " " + string(got))
}

// story is what happens to a world, and what each step must show.
func story(t *testing.T, w world) []string {
	var out []string
	step := func(port int, method, path, body string) {
		got := ask(w.addr(port), method, path, body)
		for _, p := range []int{8080, 8081, 8082} {
			got = strings.ReplaceAll(got, strconv.Itoa(w.port(p)), strconv.Itoa(p))
		}
		if len(path) > 40 {
			path = path[:40] + "…"
		}
		if len(body) > 40 {
			body = fmt.Sprintf("(%d)", len(body))
		}
		out = append(out, fmt.Sprintf("%d %s %s %s: %s", port, method, path, body, got))
	}
	note := func(s string, ok bool) { out = append(out, fmt.Sprintf("%s: %v", s, ok)) }
	upstream := func(port int) { w.write("upstream", strconv.Itoa(w.port(port))+"\n") }

	note("seat", w.seat(`{"values":{"record-red":{"id":"ab12-cd","value":"red-1"},"record-blue":{"id":"x","value":"ü"}}}`))
	for _, port := range []int{8081, 8082} {
		step(port, "GET", "/health", "")
		step(port, "GET", "/role", "")
		step(port, "GET", "/records/ab12-cd", "")
		step(port, "GET", "/records/x", "")
		step(port, "GET", "/records/none", "")
		step(port, "PUT", "/records/new", "value")
		step(port, "GET", "/records/new", "")
		step(port, "DELETE", "/records/x", "")
		step(port, "GET", "/records/x", "")
	}
	upstream(8082)
	step(8080, "GET", "/health", "")
	step(8080, "GET", "/role", "")
	step(8080, "PUT", "/records/new", "value")
	for _, role := range []string{"primary", " primary \n", "PRIMARY", "primary replica", "", "replica\n", "\xff\n"} {
		w.write("replica.role", role)
		step(8082, "GET", "/role", "")
	}
	w.remove("replica.role")
	step(8082, "GET", "/role", "")
	w.write("replica.role", "primary\n")
	for _, port := range []int{8080, 8082} {
		step(port, "GET", "/role", "")
		step(port, "PUT", "/records/a", "one")
		step(port, "PUT", "/records/a", "two")
		step(port, "PUT", "/records/empty", "")
		step(port, "GET", "/records/empty", "")
		step(port, "PUT", "/records/big", strings.Repeat("x", 64<<10))
		step(port, "GET", "/records/big", "")
		step(port, "PUT", "/records/big", strings.Repeat("x", 64<<10+1))
		step(port, "PUT", "/records/unknown-length", "-")
		step(port, "PUT", "/records/UPPER", "x")
		step(port, "PUT", "/records/"+strings.Repeat("a", 64), "x")
		step(port, "PUT", "/records/"+strings.Repeat("a", 65), "x")
		step(port, "PUT", "/records/", "x")
		step(port, "PUT", "/health", "x")
		step(port, "GET", "/records/a?b=c", "")
		step(port, "GET", "/records/%61", "")
		step(port, "GET", "/", "")
		step(port, "GET", "/records/a/b", "")
		step(port, "DELETE", "/records/empty", "")
		step(port, "DELETE", "/records/empty", "")
		step(port, "GET", "/records/empty", "")
	}
	for _, port := range []int{8082, 8080} {
		w.restart(port)
		for deadline := time.Now().Add(10 * time.Second); ask(w.addr(port), "GET", "/health", "") == "closed" && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond) // a process comes up: there is no event to await
		}
	}
	step(8080, "GET", "/records/a", "")
	step(8082, "GET", "/records/a", "")
	step(8081, "GET", "/records/a", "") // what the old primary has is its own
	upstream(8081)
	step(8080, "GET", "/role", "")
	step(8080, "PUT", "/records/split", "brain")
	step(8082, "GET", "/records/split", "")
	for _, text := range []string{"", "x", "1", "0", "65536", "-1", "8082 8081", "99999999999999999999"} {
		w.write("upstream", text)
		step(8080, "GET", "/health", "")
	}
	w.remove("upstream")
	step(8080, "GET", "/health", "")
	note("seat with nothing", w.seat(`{"values":{}}`))
	note("seat with no JSON", w.seat(`x`))
	step(8081, "GET", "/records/ab12-cd", "")
	note("seat again", w.seat(`{"values":{"r":{"id":"y","value":"2"}}}`))
	step(8081, "GET", "/records/ab12-cd", "")
	step(8082, "GET", "/records/a", "")
	step(8082, "GET", "/records/y", "")
	return out
}

func TestTwinsBehaveAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python processes")
	}
	real := story(t, newHost(t))
	simulated := story(t, newTwin(t))
	if d := cmp.Diff(real, simulated); d != "" {
		t.Errorf("(-Python +twin):\n%s", d)
	}
	check(t, real)
}

func TestTwin(t *testing.T) { check(t, story(t, newTwin(t))) }

// check holds a story to the contract, so that two equal mistakes show.
func check(t *testing.T, got []string) {
	t.Helper()
	all := "\n" + strings.Join(got, "\n") + "\n"
	for _, want := range []string{
		"seat: true",
		"8081 GET /health : 200 ready", "8081 GET /role : 200 primary", "8081 GET /records/ab12-cd : 200 red-1", "8081 GET /records/x : 200 ü",
		"8081 GET /records/none : 404 no such record", "8081 PUT /records/new value: 204", "8081 GET /records/new : 200 value", "8081 DELETE /records/x : 204",
		"8082 GET /role : 200 replica", "8082 GET /records/ab12-cd : 200 red-1", "8082 PUT /records/new value: 503 read-only: not the primary",
		"8080 GET /role : 200 replica", "8080 PUT /records/new value: 503 read-only: not the primary",
		"8080 PUT /records/a one: 204", "8082 GET /records/big : 200 65536 bytes", "8082 PUT /records/big (65537): 413 too large",
		"8082 PUT /records/unknown-length -: 411 length required", "8080 GET /records/a : 200 two", "8082 GET /records/a : 200 two", "8081 GET /records/a : 404 no such record",
		"8080 PUT /records/split brain: 204", "8082 GET /records/split : 404 no such record",
		"8080 GET /health : 502 no upstream", "8080 GET /health : 502 upstream 1 does not answer",
		"seat with nothing: false", "seat with no JSON: false", "8082 GET /records/y : 200 2",
	} {
		if !strings.Contains(all, "\n"+want+"\n") {
			t.Errorf("the story lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}
