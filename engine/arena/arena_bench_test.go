package arena_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/probe"
	"refbox/vm"
	"refbox/vm/child"
)

// bench stands in for a machine where real ones would take too long: the arena's and
// the player's programs run on this host, with their folders and ports put elsewhere,
// under as much of systemd as they ask for. It has no disk of its own that could lose
// anything, no clock and no helper: what is shown with those needs a real machine.
type bench struct {
	vm.Machine
	t     *testing.T
	root  string
	ports map[string]int // by the port in the guest
	shim  *httptest.Server
	done  chan struct{}

	elsewhere *strings.Replacer
	numbers   map[string]string // of ports, there and back
	// fronts are the forwards, by the port in the guest.
	fronts map[string]string

	mu    sync.Mutex
	units map[string]*unit

	left   sync.Mutex
	groups []int // of commands: what they leave behind is in them
}

type unit struct {
	cmd     *exec.Cmd
	ended   chan struct{}
	wanted  bool
	enabled bool
	oneshot bool
}

// moved are the folders that are put elsewhere.
var moved = []string{"/opt/", "/var/lib/", "/etc/replaybook", "/etc/systemd/system", "/usr/lib/systemd/system", "/usr/lib/job-queue", "/usr/lib/blueprint", "/run/", "/dev/shm/"}

func (b *bench) move(s string) string { return renumber(b.elsewhere.Replace(s), b.numbers) }

// renumber puts other ports for those in a text: whole numbers that stand where a port
// may, and not parts of a name, a path or another number.
func renumber(s string, ports map[string]string) string {
	var out strings.Builder
	done := 0
	for _, at := range digits.FindAllStringIndex(s, -1) {
		to, ok := ports[s[at[0]:at[1]]]
		if !ok || at[0] > 0 && inWord(s[at[0]-1]) && !device.MatchString(s[:at[0]]) || at[1] < len(s) && inWord(s[at[1]]) && s[at[1]] != '/' && s[at[1]] != '.' {
			continue
		}
		out.WriteString(s[done:at[0]] + to)
		done = at[1]
	}
	return out.String() + s[done:]
}

var (
	digits = regexp.MustCompile(`[0-9]+`)
	device = regexp.MustCompile(`/dev/(tcp|udp)/[^/\s]+/$`) // the shell's
)

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("_-./", c) >= 0
}

// freePort is below those that the kernel gives away by itself, so that nobody has it
// by chance when it is wanted.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func newBench(t *testing.T, p *arena.Package, secret probe.Secret, territory string) *bench {
	t.Helper()
	for _, tool := range []string{"python3", "curl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this host lacks %s", tool)
		}
	}
	b := &bench{t: t, root: runtimeDir(t), ports: map[string]int{}, numbers: map[string]string{}, fronts: map[string]string{}, units: map[string]*unit{}, done: make(chan struct{})}
	var elsewhere []string
	for _, dir := range moved {
		elsewhere = append(elsewhere, dir, b.root+dir)
	}
	for _, port := range []string{"8080", "8081", "8082", "9001"} {
		for b.ports[port] == 0 || b.numbers[strconv.Itoa(b.ports[port])] != "" {
			b.ports[port] = freePort(t)
		}
		b.numbers[port], b.numbers[strconv.Itoa(b.ports[port])] = strconv.Itoa(b.ports[port]), port
	}
	b.elsewhere = strings.NewReplacer(elsewhere...)
	for port := range b.ports {
		b.fronts[port] = b.front(port)
	}
	b.shim = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		line, _ := io.ReadAll(q.Body)
		out, exit := b.systemctl(strings.Fields(string(line)))
		fmt.Fprintf(w, "%d\n%s", exit, out)
	}))
	t.Cleanup(func() {
		b.halt(syscall.SIGKILL)
		b.left.Lock()
		groups := b.groups
		b.left.Unlock()
		for _, g := range groups {
			syscall.Kill(-g, syscall.SIGKILL) //nolint:errcheck // most are gone
		}
		b.shim.Close()
	})
	err := fs.WalkDir(p.FS, "guest", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(p.FS, name)
		if err != nil {
			return err
		}
		b.write(b.root+strings.TrimPrefix(name, "guest"), b.move(string(data)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The shim's script asks the bench, and passes on what it says.
	b.write(b.root+"/bin/systemctl", "#!/bin/sh\nout=$(curl -s --max-time 60 --data \"$*\" "+b.shim.URL+")\nprintf '%s\\n' \"$out\" | tail -n +2\nexit $(printf '%s\\n' \"$out\" | head -n 1)\n")
	b.write(b.root+"/bin/sync", "#!/bin/sh\n")
	for _, dir := range []string{"/run", "/etc/systemd/system", "/var/lib", "/dev/shm", "/opt"} {
		if err := os.MkdirAll(b.root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.must(p.Guest().Setup, "")
	values := map[string]arena.Record{}
	for _, v := range p.Guest().Values {
		values[v.Name] = arena.Record(secret.Seat(territory, v.Name))
	}
	if len(p.Guest().Seat) > 0 {
		b.must(p.Guest().Seat, string(arena.SeatInput(values)))
	}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode)); err != nil {
		b.t.Fatal(err)
	}
}

// command is one of a player or the referee, as it would be given in the guest.
func (b *bench) command(argv []string, stdin string) *exec.Cmd {
	moved := make([]string, len(argv))
	for i, a := range argv {
		moved[i] = b.move(a)
	}
	return b.here(moved, stdin)
}

// here is a command whose folders have been put elsewhere already.
func (b *bench) here(argv []string, stdin string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), "PATH="+b.root+"/bin:"+os.Getenv("PATH"))
	c.Dir, c.Stdin = b.root, strings.NewReader(stdin)
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// output runs a command and gives what it wrote. What it leaves running ends with the
// bench.
func (b *bench) output(c *exec.Cmd) (string, error) {
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	return out.String(), b.do(c)
}

func (b *bench) do(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return err
	}
	b.left.Lock()
	b.groups = append(b.groups, c.Process.Pid)
	b.left.Unlock()
	return c.Wait()
}

func (b *bench) must(argv []string, stdin string) {
	b.t.Helper()
	if out, err := b.output(b.command(argv, stdin)); err != nil {
		b.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// file is a unit's settings; nil when there is none.
func (b *bench) file(name string) map[string]string {
	for _, dir := range []string{"/etc/systemd/system/", "/usr/lib/systemd/system/"} {
		data, err := os.ReadFile(b.root + dir + name)
		if err != nil {
			continue
		}
		out := map[string]string{}
		for _, l := range strings.Split(string(data), "\n") {
			if k, v, ok := strings.Cut(l, "="); ok {
				out[k] = v
			}
		}
		return out
	}
	return nil
}

func (b *bench) systemctl(args []string) (string, int) {
	var names []string
	verb, signal, now := "", "TERM", false
	for _, a := range args {
		switch {
		case a == "--now":
			now = true
		case strings.HasPrefix(a, "--signal="):
			signal = strings.TrimPrefix(a, "--signal=")
		case strings.HasPrefix(a, "-"):
		case verb == "":
			verb = a
		default:
			if !strings.Contains(a, ".") {
				a += ".service"
			}
			names = append(names, a)
		}
	}
	exit := 0
	for _, name := range names {
		f := b.file(name)
		if f == nil {
			return "no unit " + name, 5
		}
		b.mu.Lock()
		u := b.units[name]
		if u == nil {
			u = &unit{oneshot: f["Type"] == "oneshot"}
			b.units[name] = u
		}
		b.mu.Unlock()
		switch verb {
		case "enable":
			u.enabled = true
			if now {
				b.start(name, u, f)
			}
		case "start":
			b.start(name, u, f)
		case "stop":
			b.stop(u, f)
		case "restart":
			b.stop(u, f)
			b.start(name, u, f)
		case "kill":
			b.mu.Lock()
			if u.cmd != nil {
				syscall.Kill(-u.cmd.Process.Pid, map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}[signal])
			}
			b.mu.Unlock()
		case "is-active":
			if b.pid(name) == 0 {
				exit = 3
			}
		}
	}
	return "", exit
}

func (b *bench) start(name string, u *unit, f map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cond := f["ConditionPathExists"]; u.wanted || cond != "" && !exists(cond) {
		return
	}
	u.wanted = true
	if u.oneshot {
		b.do(b.here([]string{"/bin/sh", "-c", f["ExecStart"]}, "")) //nolint:errcheck // as with a unit that fails
		return
	}
	b.run(u, f)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// run runs a unit's program until it is stopped; mu is held.
func (b *bench) run(u *unit, f map[string]string) {
	u.cmd = b.here([]string{"/bin/sh", "-c", "exec " + f["ExecStart"]}, "")
	u.cmd.SysProcAttr = nil // a session of its own is a group, too
	u.ended = make(chan struct{})
	cmd, ended := u.cmd, u.ended
	if err := child.Start(cmd, func() { close(ended) }); err != nil {
		b.t.Errorf("%s: %v", f["ExecStart"], err)
		close(ended)
		return
	}
	go func() {
		<-ended
		pause, err := strconv.ParseFloat(f["RestartSec"], 64)
		if err != nil {
			pause = 0.1 // systemd's own
		}
		select {
		case <-time.After(time.Duration(pause * float64(time.Second))):
		case <-b.t.Context().Done():
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if u.cmd == cmd && u.wanted && f["Restart"] == "always" {
			b.run(u, f)
		}
	}()
}

func (b *bench) stop(u *unit, f map[string]string) {
	b.mu.Lock()
	cmd, ended, was := u.cmd, u.ended, u.wanted
	u.wanted, u.cmd = false, nil
	b.mu.Unlock()
	if was && u.oneshot && f["ExecStop"] != "" {
		b.do(b.here([]string{"/bin/sh", "-c", f["ExecStop"]}, "")) //nolint:errcheck // as above
	}
	if cmd == nil || cmd.Process == nil {
		return
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
}

// halt ends every unit.
func (b *bench) halt(how syscall.Signal) {
	b.mu.Lock()
	names := []string{}
	for name := range b.units {
		names = append(names, name)
	}
	b.mu.Unlock()
	slices.SortFunc(names, func(x, y string) int { // what keeps data goes last
		return strings.Compare(strconv.FormatBool(b.units[x].oneshot), strconv.FormatBool(b.units[y].oneshot))
	})
	for _, name := range names {
		b.mu.Lock()
		u := b.units[name]
		if how == syscall.SIGKILL && u.cmd != nil && u.cmd.Process != nil {
			syscall.Kill(-u.cmd.Process.Pid, syscall.SIGKILL)
		}
		b.mu.Unlock()
		b.stop(u, b.file(name))
	}
}

func (b *bench) pid(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u := b.units[name]; u != nil && u.wanted && u.cmd != nil && u.cmd.Process != nil {
		select {
		case <-u.ended:
		default:
			return u.cmd.Process.Pid
		}
	}
	return 0
}

func (b *bench) Name() string                            { return "host" }
func (b *bench) Console() vm.Console                     { return quietConsole{} }
func (b *bench) Guest() vm.Guest                         { return benchGuest{b: b} }
func (b *bench) Done() <-chan struct{}                   { return b.done }
func (b *bench) Err() error                              { return nil }
func (b *bench) Power(context.Context) (vm.Power, error) { return vm.PowerOn, nil }
func (b *bench) Addr(port int) (string, error)           { return b.fronts[strconv.Itoa(port)], nil }

// front is the forward to a port: it accepts, as QEMU's does, whether anything listens
// behind it or not.
func (b *bench) front(port string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.ports[port]))
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					io.Copy(out, in) //nolint:errcheck // ends with either end
					out.(*net.TCPConn).CloseWrite()
				}()
				io.Copy(in, out) //nolint:errcheck // as above
			}()
		}
	}()
	return l.Addr().String()
}

type quietConsole struct{ vm.Console }

func (quietConsole) Attach(func([]byte)) func() { return func() {} }

type benchGuest struct {
	vm.Guest
	b *bench
}

func (g benchGuest) Run(_ context.Context, argv []string, stdin []byte) (vm.RunResult, error) {
	if argv[0] == "systemctl" {
		out, exit := g.b.systemctl(argv[1:])
		return vm.RunResult{Exit: exit, Stderr: []byte(out)}, nil
	}
	c := g.b.command(argv, string(stdin))
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := g.b.do(c)
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		return vm.RunResult{}, err
	}
	return vm.RunResult{Exit: c.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: said.Bytes()}, nil
}

func (g benchGuest) ReadFile(_ context.Context, name string, _ int) ([]byte, error) {
	data, err := os.ReadFile(g.b.move(name))
	// Ports that were put elsewhere are read as they were written.
	return []byte(renumber(string(data), g.b.numbers)), err
}

func (g benchGuest) WriteFile(_ context.Context, name string, data []byte, mode fs.FileMode) error {
	return os.WriteFile(g.b.move(name), data, mode)
}

func (g benchGuest) Remove(_ context.Context, name string) error {
	if err := os.Remove(g.b.move(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (g benchGuest) Stat(_ context.Context, name string) (vm.FileStat, error) {
	_, err := os.Lstat(g.b.move(name))
	return vm.FileStat{}, err
}

func (g benchGuest) Unit(_ context.Context, name string) (vm.Unit, error) {
	if pid := g.b.pid(name); pid != 0 {
		return vm.Unit{LoadState: "loaded", ActiveState: "active", MainPID: pid}, nil
	}
	return vm.Unit{LoadState: "loaded", ActiveState: "inactive"}, nil
}

// HTTP is what the guest's helper asks: it has no name of its own.
func (g benchGuest) HTTP(ctx context.Context, q vm.HTTPRequest) (vm.HTTPResult, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.Method, g.b.move(q.URL), strings.NewReader(string(q.Body)))
	if err != nil {
		return vm.HTTPResult{}, err
	}
	req.Header.Set("User-Agent", "")
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", req.URL.Host)
	if err != nil {
		return vm.HTTPResult{Err: "refused"}, nil
	}
	defer c.Close()
	if at, ok := ctx.Deadline(); ok { // one that never answers is a time-out, as in the guest
		c.SetDeadline(at) //nolint:errcheck // then the connection has failed already
	}
	late := func(word string) string {
		if ctx.Err() != nil {
			return "timeout"
		}
		return word
	}
	if err := req.Write(c); err != nil {
		return vm.HTTPResult{Err: late("reset")}, nil
	}
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return vm.HTTPResult{Err: late("reset")}, nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return vm.HTTPResult{Err: late("reset")}, nil
	}
	return vm.HTTPResult{Status: res.StatusCode, Body: body}, nil
}

func (g benchGuest) Sync(context.Context) error { return nil }

// onBench plays a script and climbs the ladder with the given checks as far as the
// milestone, or as a bench can: without the clock's attack, and not to the reboot. It
// gives the milestone that was refused, and why; "" for none.
func onBench(t *testing.T, p *arena.Package, script, upTo string, check func(milestone string) string) (refused string, why error) {
	t.Helper()
	const territory = "seat"
	secret := probe.NewSecret()
	b := newBench(t, p, secret, territory)
	began := time.Now()
	seat, err := probe.NewSeat(probe.Config{Territory: territory, ServicePort: 8080, Machines: []vm.Machine{b}, Secret: secret, Slow: 3,
		Clock: func() uint64 { return uint64(time.Since(began).Milliseconds()) }})
	if err != nil {
		t.Fatal(err)
	}
	defer seat.Close()
	previous := map[string]json.RawMessage{}
	number := map[string]uint64{}
	played := false
	for _, m := range p.Manifest.Build.Milestones {
		if m.Operation == arena.HostReboot {
			return "", nil
		}
		v, err := probe.Load(p.FS, check(m.ID))
		if err != nil {
			t.Fatal(err)
		}
		// A player comes to what is there: what holds from the start was looked at.
		if !played && !strings.HasPrefix(m.ID, "baseline") {
			b.play(p, script)
			played = true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		attempt := func() *probe.Attempt { return seat.Attempt(m.ID, number[m.ID], previous) }
		number[m.ID]++
		raw, err := v.Verify(ctx, attempt())
		for i := range v.Attacks() {
			if err != nil || strings.Contains(v.Attacks()[i], "clock") {
				break
			}
			err = v.Attack(ctx, attempt(), i)
			if uerr := v.Undo(ctx, attempt(), i); uerr != nil && err == nil {
				err = uerr
			}
		}
		if err == nil {
			err = v.Holds(ctx, func() *probe.Attempt { previous[m.ID] = raw; return attempt() }())
		}
		if err != nil {
			return m.ID, err
		}
		if m.ID == upTo {
			return "", nil
		}
	}
	return "", nil
}

// play runs a player's blocks.
func (b *bench) play(p *arena.Package, script string) {
	b.t.Helper()
	data, err := fs.ReadFile(p.FS, path.Clean(script))
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := agent.ParseScript(script, data)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, block := range s.Blocks {
		if block.Text == "" {
			continue
		}
		time.Sleep(block.Pause) // as it is played
		deadline := time.Now().Add(30 * time.Second)
		for {
			c := b.command([]string{"/bin/sh", "-c", block.Text}, "")
			out, err := b.output(c)
			if block.Repeat != nil && c.ProcessState.ExitCode() != block.Repeat.Until && time.Now().Before(deadline) {
				time.Sleep(50 * time.Millisecond) // the script's own rhythm
				continue
			}
			if block.Must && err != nil {
				b.t.Fatalf("%s:%d: %v\n%s", script, block.Line, err, out)
			}
			break
		}
	}
}

// needsMachine are the cheats that only a real machine shows: they lie about its disk,
// its clock or its helper.
func needsMachine(c arena.Cheat) bool {
	return c.Milestone == "host-reboot" || c.Class == "time-falsified" || c.Class == "tools-replaced"
}

// benched tries an arena's players and cheats as far as a bench can: each cheat passes
// the simple check of its milestone, and is refused there by the arena's own, in the
// words of the manifest.
func benched(t *testing.T, p *arena.Package) {
	t.Helper()
	only := os.Getenv("REFBOX_BENCH")
	if only == "" {
		t.Skip("runs players' programs on this host for some minutes: task cheats does, or REFBOX_BENCH=all or one's name")
	}
	for _, x := range p.Manifest.Players {
		if only != "all" && only != x.Name {
			continue
		}
		t.Run(x.Name, func(t *testing.T) {
			refused, why := onBench(t, p, x.Script, "", p.Verifier)
			want := x.Result
			if want == arena.Durable || want == "host-reboot" {
				want = ""
			}
			if refused != want {
				t.Errorf("refused at %q, must be at %q: %v", refused, want, why)
			}
			t.Logf("%v", why)
		})
	}
	for _, x := range p.Manifest.Cheats {
		if needsMachine(x) || only != "all" && only != x.Name {
			continue
		}
		t.Run(x.Name, func(t *testing.T) {
			if refused, why := onBench(t, p, x.Script, x.Milestone, p.ReferenceCheck); refused != "" {
				t.Errorf("the simple check of %s refuses it: %v", refused, why)
			}
			refused, why := onBench(t, p, x.Script, x.Milestone, p.Verifier)
			if refused != x.Milestone || why == nil || !strings.Contains(why.Error(), x.Refusal) {
				t.Errorf("refused at %q, must be at %q with %q: %v", refused, x.Milestone, x.Refusal, why)
			}
			t.Logf("%v", why)
		})
	}
}

// TestRenumber: a bench moves ports, and nothing that only looks like one.
func TestRenumber(t *testing.T) {
	ports := map[string]string{"8080": "20001", "20001": "8080", "9001": "29999", "29999": "9001"}
	for was, want := range map[string]string{
		"curl http://127.0.0.1:8080/role": "curl http://127.0.0.1:20001/role",
		"('127.0.0.1', 8080)":             "('127.0.0.1', 20001)",
		"PORT=9001 8080\n":                "PORT=29999 20001\n",
		`printf '8080\n' >port`:           `printf '20001\n' >port`,
		"exec 3<>/dev/tcp/127.0.0.1/8080": "exec 3<>/dev/tcp/127.0.0.1/20001",
		"listen 20001;":                   "listen 8080;",
		"8080.":                           "20001.",
		"jobs/9001":                       "jobs/9001",
		"seat-1/20001":                    "seat-1/20001",
		"job-8080 x8080 80801 18080":      "job-8080 x8080 80801 18080",
		"0.8080":                          "0.8080",
		"a9001-b 9001b":                   "a9001-b 9001b",
	} {
		if got := renumber(was, ports); got != want {
			t.Errorf("%q: %q, want %q", was, got, want)
		}
	}
}
