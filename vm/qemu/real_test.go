package qemu

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"refbox/vm"
	"refbox/vm/vmtest"
)

// realDriver is what qemutest.Driver, which imports this package, is to others.
func realDriver(t testing.TB) *Driver {
	t.Helper()
	d := New(Config{CacheDir: vmtest.Host(t, Needs())})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if _, err := d.Versions(ctx, nil); errors.Is(err, vm.ErrMissing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return d
}

func newKey(t testing.TB) (ssh.Signer, ssh.PublicKey) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return s, s.PublicKey()
}

const conformService = `#!/usr/bin/python3
import os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = "/var/lib/conform"

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def key(self):
        name = self.path[len("/kv/"):]
        return os.path.join(ROOT, name) if self.path.startswith("/kv/") and name.isalnum() else None

    def do_GET(self):
        if self.path == "/ping":
            return self.reply(200, b"pong\n")
        try:
            with open(self.key() or "/nonexistent", "rb") as f:
                self.reply(200, f.read())
        except FileNotFoundError:
            self.reply(404)

    def do_PUT(self):
        path = self.key()
        if not path:
            return self.reply(404)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(path + ".new", "wb") as f:
            f.write(body)
            f.flush()
            os.fsync(f.fileno())
        os.rename(path + ".new", path)
        d = os.open(ROOT, os.O_RDONLY)
        os.fsync(d)
        os.close(d)
        self.reply(204)

    def log_message(self, *a):
        pass

os.makedirs(ROOT, exist_ok=True)
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`

const conformUnit = `[Unit]
Description=Conformance service

[Service]
ExecStart=/usr/local/bin/conform
Restart=on-failure

[Install]
WantedBy=multi-user.target
`

func conformMachine(name string) vm.MachineSpec {
	return vm.MachineSpec{
		Name: name, VCPUs: 1, MemoryMiB: 512, DiskMiB: 1024,
		Files: fstest.MapFS{
			"usr/local/bin/conform":              {Data: []byte(conformService)},
			"etc/systemd/system/conform.service": {Data: []byte(conformUnit)},
		},
		Setup:    []string{"/bin/sh", "-c", "systemctl daemon-reload && systemctl enable --now conform.service"},
		Forwards: []int{8080, 8081},
	}
}

func TestConformance(t *testing.T) {
	d := realDriver(t)
	vmtest.Run(t, vmtest.Fixture{Driver: d, Machine: conformMachine, Helper: "/usr/lib/refbox/agent.pyc", Patience: 4 * time.Minute, Left: ourMachines})
}

// ourMachines lists this process's QEMU children that have not ended.
func ourMachines() []string {
	var out []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// pid (comm) state ppid …
		end := strings.LastIndexByte(string(b), ')')
		f := strings.Fields(string(b[end+1:]))
		if f[0] != "Z" && f[0] != "X" && f[1] == strconv.Itoa(os.Getpid()) && strings.Contains(string(b[:end]), "(qemu") {
			out = append(out, string(b))
		}
	}
	return out
}

// oneMachine is a prepared template of a single machine.
func oneMachine(t testing.TB, d *Driver) vm.Template {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{conformMachine("host")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func startOne(t testing.TB, d *Driver, tpl vm.Template, name string, cold bool) (vm.Cluster, error) {
	t.Helper()
	_, public := newKey(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return d.Start(ctx, tpl, vm.Start{Name: name, Password: "secret", AuthorizedKey: public, Dir: t.TempDir(), Cold: cold})
}

// A machine that never speaks ends in an error that shows what it printed, and
// is gone.
func TestBootWatchdog(t *testing.T) {
	d := realDriver(t)
	tpl := oneMachine(t, d)
	d.timeout = 3 * time.Second
	broken := *tpl.(*template)
	host := *broken.host
	// An initrd that the kernel cannot use: it panics and says so.
	host.image.Initrd = filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(host.image.Initrd, []byte("not an initrd"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken.host = &host
	c, err := startOne(t, d, &broken, "mute", true)
	if err == nil {
		c.Close()
		t.Fatal("a machine without an initrd started")
	}
	var boot *BootError
	if !errors.As(err, &boot) || !errors.Is(err, vm.ErrGuestLost) {
		t.Fatalf("got %v, want a BootError", err)
	}
	if boot.Waited != d.timeout || len(boot.Console) > tailBytes || !strings.Contains(err.Error(), "tcg") && !strings.Contains(err.Error(), "kvm") {
		t.Errorf("%+v", boot)
	}
	if strings.ContainsAny(err.Error(), "\x1b\r\n") {
		t.Errorf("the console reached the error unquoted: %q", err)
	}
	if left := ourMachines(); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

// A port that somebody takes between its choice and its use is chosen anew.
func TestTakenPortIsRetried(t *testing.T) {
	d := realDriver(t)
	tpl := oneMachine(t, d)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	asked := 0
	d.ports = func(n int) ([]int, error) {
		p, err := freePorts(n)
		if asked++; asked <= 2 && err == nil {
			p[n-1] = taken
		}
		return p, err
	}
	c, err := startOne(t, d, tpl, "ports", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if asked != 3 {
		t.Errorf("ports were chosen %d times, want 3", asked)
	}
	if addr, err := c.Machine("host").Addr(8081); err != nil || addr == l.Addr().String() {
		t.Errorf("address %s, %v", addr, err)
	}
}

// QEMU runs sandboxed, and as nobody in particular when refbox is root.
func TestConfinement(t *testing.T) {
	d := realDriver(t)
	c, err := startOne(t, d, oneMachine(t, d), "confined", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pid := c.Machine("host").(*machine).boot.proc.proc.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NoNewPrivs:\t1", "Seccomp:\t2"}
	if os.Geteuid() == 0 {
		want = append(want, fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d", unprivilegedID), "CapEff:\t0000000000000000")
	}
	for _, w := range want {
		if !strings.Contains(string(status), w) {
			t.Errorf("the process's status lacks %q", w)
		}
	}
	overlay := c.Machine("host").(*machine).overlay()
	if st, err := os.Stat(overlay); err != nil || st.Mode() != 0o600 {
		t.Errorf("overlay %v, %v: others could read it", st.Mode(), err)
	}
	if os.Geteuid() == 0 { // another seat's QEMU, had its guest taken it over
		as := func(name string) error {
			cat := exec.Command("head", "-c1", name)
			cat.SysProcAttr = &syscall.SysProcAttr{Credential: credential()}
			return cat.Run()
		}
		if err := as("/proc/self/status"); err != nil {
			t.Fatal("positive control: ", err)
		}
		if err := as(overlay); err == nil {
			t.Error("as QEMU's user another seat's disk can be read")
		}
	}
}

// What speaks for the referee in a guest holds the only way to it: a seat that is
// root there opens no second one, as long as the helper lives.
func TestOneReferee(t *testing.T) {
	d := realDriver(t)
	c, err := startOne(t, d, oneMachine(t, d), "channel", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const try = `import errno, glob, os, sys
ports = glob.glob("/dev/vport*")
if not ports: sys.exit("there is no port")
os.close(os.open("/dev/null", os.O_RDWR))
for p in ports:
    try: os.open(p, os.O_RDWR); print(p, "opened")
    except OSError as e: print(errno.errorcode[e.errno])`
	r, err := c.Machine("host").Guest().Run(ctx, []string{"python3", "-c", try}, nil)
	if err != nil || r.Exit != 0 || string(r.Stdout) != "EBUSY\n" {
		t.Errorf("a second opening of the referee's port: exit %d, %q %q, %v; want EBUSY", r.Exit, r.Stdout, r.Stderr, err)
	}
}

// SIGKILL of the owner leaves no machine, at whatever moment it strikes, and
// the next start sweeps what it left on disk.
func TestKilledOwner(t *testing.T) {
	d := realDriver(t)
	oneMachine(t, d)
	runtime := t.TempDir()
	for _, after := range []string{"spawned", "resumed"} {
		owner := exec.Command(os.Args[0], "-test.run=^$")
		owner.Env = append(os.Environ(), ownerEnv+"="+runtime)
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		var pids []int
		for sc := bufio.NewScanner(out); sc.Scan(); {
			word, rest, _ := strings.Cut(sc.Text(), " ")
			if word == "pid" {
				pid, _ := strconv.Atoi(rest)
				pids = append(pids, pid)
			}
			if word == after {
				break
			}
			if word == "error" {
				t.Error(rest)
			}
		}
		owner.Process.Kill()
		owner.Wait()
		if len(pids) == 0 {
			t.Fatalf("%s: no machine was seen", after)
		}
		for _, pid := range pids {
			awaitEnd(t, pid, 5*time.Second)
		}
		if removed, err := Sweep(runtime); err != nil || len(removed) != 1 {
			t.Errorf("%s: swept %v, %v; want one directory", after, removed, err)
		}
		if left, _ := os.ReadDir(runtime); len(left) != 0 {
			t.Errorf("%s: %s is left", after, left[0].Name())
		}
	}
}

// own is the owner that TestKilledOwner kills.
func own(runtime string) {
	cache, _ := os.UserCacheDir()
	d := New(Config{CacheDir: filepath.Join(cache, "refbox")})
	ctx := context.Background()
	say := func(words ...any) { fmt.Println(words...) }
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{conformMachine("host")}}, nil)
	if err != nil {
		say("error", err)
		return
	}
	dir := filepath.Join(runtime, "seat")
	if err := os.Mkdir(dir, 0o700); err != nil {
		say("error", err)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Machines are children of this process from the moment of the fork.
		for seen := map[string]bool{}; len(seen) == 0; {
			for _, stat := range ourMachines() {
				if pid, _, _ := strings.Cut(stat, " "); !seen[pid] {
					seen[pid] = true
					say("pid", pid)
					say("spawned")
				}
			}
		}
	}()
	_, err = d.Start(ctx, tpl, vm.Start{Name: "seat", Password: "x", Dir: dir})
	if err != nil {
		say("error", err)
		return
	}
	<-done
	say("resumed")
	select {}
}

// BenchmarkStart measures three seats, started at once, from the prepared state
// and cold, in turn: until Start has returned for all (identity included), and
// until each one's service has answered from outside.
func BenchmarkStart(b *testing.B) {
	d := realDriver(b)
	tpl := oneMachine(b, d)
	const seats = 3
	measure := func(cold bool) (ready, serving time.Duration) {
		begin := time.Now()
		clusters := make([]vm.Cluster, seats)
		var wg sync.WaitGroup
		readies := make([]time.Duration, seats)
		for i := range clusters {
			wg.Go(func() {
				c, err := startOne(b, d, tpl, fmt.Sprint("seat-", i), cold)
				if err != nil {
					b.Error(err)
					return
				}
				clusters[i] = c
				readies[i] = time.Since(begin)
				addr, _ := c.Machine("host").Addr(8080)
				client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
				for {
					resp, err := client.Get("http://" + addr + "/ping")
					if err == nil {
						resp.Body.Close()
						return
					}
					if time.Since(begin) > time.Minute {
						b.Error(err)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		serving, ready = time.Since(begin), slices.Max(readies)
		for _, c := range clusters {
			if c != nil {
				c.Close()
			}
		}
		return ready, serving
	}
	const runs = 5
	figures := map[string][]time.Duration{}
	for b.Loop() {
		for range runs {
			for _, side := range []string{"prepared", "cold"} {
				ready, serving := measure(side == "cold")
				figures[side+" ready"] = append(figures[side+" ready"], ready)
				figures[side+" serving"] = append(figures[side+" serving"], serving)
			}
		}
	}
	for _, what := range []string{"prepared ready", "cold ready", "prepared serving", "cold serving"} {
		f := figures[what]
		slices.Sort(f)
		fmt.Printf("%d seats, %-16s min %.2f  median %.2f  max %.2f s (%d runs)\n", seats, what,
			f[0].Seconds(), f[len(f)/2].Seconds(), f[len(f)-1].Seconds(), len(f))
	}
}

// What the host does to a machine ends it for good and is told from its guest's
// doing.
func TestHostFailsAMachine(t *testing.T) {
	d := realDriver(t)
	tpl := oneMachine(t, d)
	_, public := newKey(t)
	gone := func(t *testing.T, m vm.Machine) {
		t.Helper()
		select {
		case <-m.Done():
		case <-time.After(time.Minute):
			t.Fatal("the machine goes on")
		}
		if p, err := m.Power(t.Context()); p != vm.PowerGone || err != nil {
			t.Errorf("its power is %s, %v", p, err)
		}
		if err := m.PowerOnAgain(t.Context()); !errors.Is(err, vm.ErrPower) || !errors.Is(err, m.Err()) {
			t.Errorf("started again: %v", err)
		}
	}
	t.Run("its disk is full", func(t *testing.T) {
		dir := t.TempDir()
		vmtest.SmallDisk(t, dir, "24m")
		c, err := d.Start(t.Context(), tpl, vm.Start{Name: "full", Password: "secret", AuthorizedKey: public, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Machine("host")
		if m.Err() != nil {
			t.Fatal(m.Err())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = m.Guest().Run(ctx, []string{"dd", "if=/dev/urandom", "of=/var/big", "bs=1M", "count=40", "conv=fsync"}, nil)
		if err == nil {
			t.Error("the guest was told that it was written")
		}
		gone(t, m)
		if !errors.Is(m.Err(), unix.ENOSPC) {
			t.Errorf("why: %v", m.Err())
		}
	})
	t.Run("its process dies", func(t *testing.T) {
		c, err := startOne(t, d, tpl, "dies", false)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Machine("host").(*machine)
		b, err := m.current()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(b.proc.proc.Pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		gone(t, m)
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("why: %v", err)
		}
	})
	t.Run("its guest switches it off", func(t *testing.T) {
		c, err := startOne(t, d, tpl, "off", false)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Machine("host").(*machine)
		b, err := m.current()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Guest().Run(t.Context(), []string{"systemctl", "poweroff", "--force", "--force"}, nil)
		<-b.life.Done()
		if err := m.Err(); err != nil {
			t.Errorf("charged to the host: %v", err)
		}
		if p, err := m.Power(t.Context()); p != vm.PowerOff || err != nil {
			t.Errorf("its power is %s, %v", p, err)
		}
	})
}
