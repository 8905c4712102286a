package sim

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"refbox/vm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kv is a small store: GET /ping, GET and PUT /kv/<key>, kept in dir.
func kv(addr, dir string) Program {
	return func(ctx context.Context, p *Process) error {
		if err := p.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pong") })
		mux.HandleFunc("GET /kv/{key}", func(w http.ResponseWriter, r *http.Request) {
			data, err := p.ReadFile(dir + "/" + r.PathValue("key"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
			w.Write(data)
		})
		mux.HandleFunc("PUT /kv/{key}", func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			at := dir + "/" + r.PathValue("key")
			err := p.WriteFile(at, data, 0o644)
			if err == nil {
				err = p.SyncFile(at)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		return p.Serve(ctx, addr, mux)
	}
}

const kvUnit = `[Unit]
Description=a store
ConditionPathExists=!/etc/kv.fenced
[Service]
ExecStart=/usr/bin/python3 /opt/kv.py
Restart=always
RestartSec=20ms
[Install]
WantedBy=multi-user.target
`

func kvSpec() vm.Spec {
	return vm.Spec{Machines: []vm.MachineSpec{{
		Name: "host", VCPUs: 2, MemoryMiB: 256, DiskMiB: 64, Forwards: []int{8080, 9999},
		Files: fstest.MapFS{
			"opt/kv.py":                     {Data: []byte("#!/usr/bin/python3\n")},
			"etc/systemd/system/kv.service": {Data: []byte(kvUnit)},
			"usr/local/bin/greet":           {Data: []byte("#!/bin/sh\necho \"hello $1\"\n")},
		},
		Setup: []string{"sh", "-c", "systemctl daemon-reload && systemctl enable --now kv.service"},
	}}}
}

func kvConfig() Config {
	return Config{Programs: map[string]Program{"/opt/kv.py": kv(":8080", "/var/lib/kv")}}
}

// begin starts a cluster that ends with the test.
func begin(t *testing.T, d *Driver, spec vm.Spec, s vm.Start) vm.Cluster {
	t.Helper()
	tmpl, err := d.Prepare(t.Context(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name == "" {
		s.Name = "seat"
	}
	if s.Password == "" {
		s.Password = "secret"
	}
	c, err := d.Start(t.Context(), tmpl, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func beginKV(t *testing.T) vm.Machine {
	t.Helper()
	return begin(t, New(kvConfig()), kvSpec(), vm.Start{}).Machine("host")
}

// sh runs a script in the guest and returns its output and exit status.
func sh(t *testing.T, m vm.Machine, script string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := m.Guest().Run(ctx, []string{"sh", "-c", script}, nil)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return string(r.Stdout) + string(r.Stderr), r.Exit
}

func get(t *testing.T, m vm.Machine, port int, path string) (int, string, error) {
	t.Helper()
	addr, err := m.Addr(port)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + addr + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// until polls, since a service comes up when it does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func pings(t *testing.T, m vm.Machine) func() bool {
	return func() bool { _, body, err := get(t, m, 8080, "/ping"); return err == nil && body == "pong\n" }
}

func TestForwards(t *testing.T) {
	m := beginKV(t)
	if code, body, err := get(t, m, 8080, "/ping"); err != nil || code != 200 || body != "pong\n" {
		t.Fatalf("ping right after a prepared start: %d %q %v", code, body, err)
	}
	if _, _, err := get(t, m, 9999, "/"); err == nil || strings.Contains(err.Error(), "refused") {
		t.Fatalf("a port that nobody hears must accept, then reset: %v", err)
	}
	if _, err := m.Addr(81); err == nil {
		t.Fatal("a port that is not forwarded has an address")
	}
}

func TestShell(t *testing.T) {
	m := beginKV(t)
	for _, c := range []struct {
		script, want string
		exit         int
	}{
		{"echo hello | tr a-z A-Z", "HELLO\n", 0},
		{"greet you", "hello you\n", 0},
		{"printf '%s\\n' b a c | sort | head -n 2", "a\nb\n", 0},
		{"echo x=1 > /tmp/f; sed -i 's/x=\\(.\\)/y=\\1\\1/' /tmp/f; cat /tmp/f", "y=11\n", 0},
		{"printf 'a\\nb\\nc\\n' | sed -n '2p;$='", "b\n3\n", 0},
		{"printf 'a 8081\\nb\\n' | sed -E 's|80(8)([0-9])|\\2\\1|; /^b$/d'", "a 18\n", 0},
		{"cat <<E | grep -c o\none\ntwo\nsix\nE", "2\n", 0},
		{"grep -q nothing /etc/hosts", "", 1},
		{"grep -rl ExecStart /etc/systemd/system", "/etc/systemd/system/kv.service\n", 0},
		{"test -f /opt/kv.py && [ -x /opt/kv.py ] && echo yes", "yes\n", 0},
		{"cd /opt && pwd && ls", "/opt\nkv.py\n", 0},
		{"mkdir -p /a/b && touch /a/b/c && mv /a/b /a/d && find /a -type f", "/a/d/c\n", 0},
		{"ln -s /etc/hostname /l && cat /l && readlink /l", "seat\n/etc/hostname\n", 0},
		{"cp /etc/hostname /c; rm /c; cat /c", "cat: /c: No such file or directory\n", 1},
		{"nosuch", "nosuch: command not found\n", 127},
		{"seq 3 | cut -c1 | wc -l", "3\n", 0},
		{"for i in 1 2; do echo $i; done; exit 7", "1\n2\n", 7},
		{"f() { echo in $1; }; f x; x=$(f y); echo \"[$x]\"", "in x\n[in y]\n", 0},
		{"hostname; id -un; uname -s; nproc", "seat\nroot\nLinux\n2\n", 0},
		{"which cat; command -v kill; type nosuch", "/usr/bin/cat\nkill\ntype: nosuch: not found\n", 1},
		{"curl -s http://127.0.0.1:8080/ping", "pong\n", 0},
		{"curl -s -X PUT -d v1 http://localhost:8080/kv/k && curl -sS -o /tmp/o -w '%{http_code}\\n' http://seat:8080/kv/k; cat /tmp/o", "200\nv1", 0},
		{"curl -sf http://localhost:8080/kv/none; echo $?", "22\n", 0},
		{"curl -s http://localhost:1/; echo $?", "7\n", 0},
		{"curl -s -m 1 http://10.9.9.9/; echo $?", "7\n", 0},
		{"head -c 4 /dev/urandom | wc -c", "4\n", 0},
		{"timeout 0.01 sleep 5; echo $?", "124\n", 0},
		{"yes | head -n 1", "y\n", 0},
		{"echo a > /x; echo b >> /x; while read l; do echo \"<$l>\"; done < /x", "<a>\n<b>\n", 0},
		{"sh -c 'echo $0-$1' n 1", "n-1\n", 0},
		{"ss -ltn | grep -c :8080", "1\n", 0},
		{"echo 'echo sourced $1' > /s; . /s; source /s arg", "sourced\nsourced arg\n", 0},
		{"systemctl is-active kv; systemctl is-enabled kv; systemctl is-active nosuch", "active\nenabled\ninactive\n", 3},
		{"systemctl show kv -p ActiveState,NRestarts", "ActiveState=active\nNRestarts=0\n", 0},
		{"systemctl cat kv | sed -n 2,3p", "[Unit]\nDescription=a store\n", 0},
		{"kill -9 $(pgrep -f /opt/kv.py); echo $?", "0\n", 0},
		{"nproc > /dev/null; grep MemTotal /proc/meminfo", "MemTotal:         262144 kB\n", 0},
		{"cat /nosuch 2>/dev/null || echo none", "none\n", 0},
		{"echo one | tee /t1 /t2; cat /t1 /t2", "one\none\none\n", 0},
		{"install -m 600 /etc/hostname /i; stat -c '%a %s' /i", "600 5\n", 0},
		{"env A=b sh -c 'echo $A'", "b\n", 0},
		{"cat < /etc/hostname; ls /etc/host*", "seat\n/etc/hostname\n/etc/hosts\n", 0},
	} {
		if got, exit := sh(t, m, c.script); got != c.want || exit != c.exit {
			t.Errorf("%s\n got %q, %d\nwant %q, %d", c.script, got, exit, c.want, c.exit)
		}
	}
}

// Each script tries to see or touch the host; the marker tells whether it did.
func TestHostOutOfReach(t *testing.T) {
	m := beginKV(t)
	dir := t.TempDir()
	marker := filepath.Join(dir, "marker")
	if err := os.WriteFile(marker, []byte("host-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho host-secret\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	for _, s := range []string{
		"cat MARKER", "cat < MARKER", "echo $(<MARKER)", "ls DIR", "test -e MARKER && echo host-secret", "[[ -e MARKER ]] && echo host-secret",
		"echo DIR/mark*", "cd DIR && echo host-secret", ". MARKER", "source SCRIPT", "builtin source SCRIPT", "command . SCRIPT", "builtin command builtin . SCRIPT",
		"SCRIPT", "exec SCRIPT", "command SCRIPT", "command -v SCRIPT && echo host-secret", "builtin command -v SCRIPT && echo host-secret",
		"type SCRIPT && echo host-secret", "builtin type -p SCRIPT && echo host-secret", "PATH=DIR; script", "PATH=DIR type script && echo host-secret",
		"eval cat MARKER", "trap 'cat MARKER' EXIT", "cat <(echo host-secret)", "echo x > >(cat)", "eval 'cat <(echo host-secret)'",
		"TMPDIR=DIR sh -c 'cat <(echo host-secret)'", "export TMPDIR=DIR; sh -c 'cat <(echo host-secret)'", "pushd DIR && echo host-secret",
		"mapfile a < MARKER; echo ${a[0]}", "read a < MARKER; echo $a", "cp MARKER /x; cat /x", "curl -d @MARKER http://localhost:8080/kv/x",
		"ln -s MARKER /m; cat /m", "rm -f MARKER; echo x > MARKER", "mkdir -p DIR; echo x > DIR/made; rm -rf DIR", "echo x > DIR/made",
		"cd / && pwd -P && builtin pwd -P", "mv MARKER /y; cat /y", "sed -i s/host/gone/ MARKER", "find DIR", "chmod 000 MARKER", "kill -9 $PPID $$", "pkill -9 .; true",
	} {
		r := strings.NewReplacer("MARKER", marker, "SCRIPT", script, "DIR", dir)
		g := begin(t, New(kvConfig()), kvSpec(), vm.Start{}).Machine("host")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		res, err := g.Guest().Run(ctx, []string{"bash", "-c", r.Replace(s)}, nil)
		cancel()
		if err != nil && !errors.Is(err, vm.ErrGuestLost) {
			t.Errorf("%s: %v", s, err)
		}
		if out := string(res.Stdout) + string(res.Stderr); strings.Contains(strings.ReplaceAll(out, marker, ""), "host-secret") {
			t.Errorf("%s: saw the host: %q", s, out)
		}
		data, err := os.ReadFile(marker)
		if err != nil || string(data) != "host-secret" {
			t.Fatalf("%s: changed the host's file: %q %v", s, data, err)
		}
		list, _ := os.ReadDir(dir)
		if len(list) != 2 {
			t.Fatalf("%s: left something on the host: %v", s, list)
		}
	}
	_ = m
}

func TestUnits(t *testing.T) {
	m := beginKV(t)
	g := m.Guest()
	unit := func(name string) vm.Unit {
		t.Helper()
		u, err := g.Unit(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	u := unit("kv.service")
	if u.LoadState != "loaded" || u.ActiveState != "active" || u.SubState != "running" || u.UnitFileState != "enabled" || u.MainPID == 0 {
		t.Fatalf("running unit: %+v", u)
	}
	if u := unit("nosuch.service"); u.LoadState != "not-found" {
		t.Fatalf("missing unit: %+v", u)
	}
	// Killed, it is restarted.
	sh(t, m, fmt.Sprintf("kill -9 %d", u.MainPID))
	until(t, "restart", func() bool {
		n := unit("kv.service")
		return n.ActiveState == "active" && n.MainPID != u.MainPID && n.Restarts == 1
	})
	until(t, "ping after restart", pings(t, m))
	// Stopped, it stays so.
	sh(t, m, "systemctl stop kv")
	if u := unit("kv.service"); u.ActiveState != "inactive" || u.MainPID != 0 {
		t.Fatalf("stopped: %+v", u)
	}
	if _, _, err := get(t, m, 8080, "/ping"); err == nil {
		t.Fatal("a stopped service answers")
	}
	// kv.service is a real file in /etc, so mask refuses, as systemd does.
	if out, exit := sh(t, m, "systemctl mask kv"); exit != 1 || !strings.Contains(out, "already exists") {
		t.Fatalf("mask over a file: %d %q", exit, out)
	}
	// Masked, it cannot be started.
	sh(t, m, "systemctl stop kv; rm /etc/systemd/system/kv.service; ln -s /dev/null /etc/systemd/system/kv.service; systemctl daemon-reload")
	if u := unit("kv.service"); u.LoadState != "masked" {
		t.Fatalf("masked: %+v", u)
	}
	if out, exit := sh(t, m, "systemctl start kv"); exit == 0 || !strings.Contains(out, "is masked") {
		t.Fatalf("start of a masked unit: %d %q", exit, out)
	}
}

func TestConditionDropInAndOneshot(t *testing.T) {
	m := beginKV(t)
	out, _ := sh(t, m, `touch /etc/kv.fenced; systemctl stop kv; systemctl start kv; echo $?; systemctl is-active kv; systemctl show -p ConditionResult --value kv
mkdir -p /etc/systemd/system/kv.service.d
printf '[Unit]\nConditionPathExists=\n[Service]\nEnvironment=A=1 "B=two words"\n' > /etc/systemd/system/kv.service.d/o.conf
systemctl daemon-reload; systemctl start kv; systemctl is-active kv; systemctl cat kv | tail -n 1
cat > /etc/systemd/system/once.service <<'E'
[Service]
Type=oneshot
RemainAfterExit=yes
Environment=N=5
ExecStart=/bin/sh -c 'echo "$$N ${N}" > /once'
ExecStop=/bin/rm /once
E
systemctl start once; cat /once; systemctl is-active once; systemctl stop once; ls /once
cat > /etc/systemd/system/bad.service <<E
[Service]
Type=oneshot
ExecStart=/bin/false
E
systemctl start bad; echo $?; systemctl is-failed bad; systemctl reset-failed bad; systemctl is-failed bad
systemctl status nosuch >/dev/null 2>&1; echo $?`)
	want := "0\ninactive\nno\nactive\nEnvironment=A=1 \"B=two words\"\n5 5\nactive\n1\nfailed\ninactive\n4\n"
	got := strings.Join(grepOut(out, "ls: ", "Job for", "See "), "\n") + "\n"
	if got != want {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func grepOut(text string, prefixes ...string) []string {
	var kept []string
lines:
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		for _, p := range prefixes {
			if strings.HasPrefix(l, p) {
				continue lines
			}
		}
		kept = append(kept, l)
	}
	return kept
}

func TestRebootAndPower(t *testing.T) {
	m := beginKV(t)
	ctx := t.Context()
	h1, err := m.Guest().Hello(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, m, "echo kept > /kept; echo gone > /run/gone")
	if err := m.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	h2, err := m.Guest().Hello(ctx)
	if err != nil || h1.BootID == h2.BootID {
		t.Fatalf("boot id after a reboot: %q %q %v", h1.BootID, h2.BootID, err)
	}
	if out, _ := sh(t, m, "cat /kept; test -e /run/gone || echo clean"); out != "kept\nclean\n" {
		t.Fatalf("files after a reboot: %q", out)
	}
	until(t, "ping after reboot", pings(t, m))

	if err := m.PowerCut(ctx); err != nil {
		t.Fatal(err)
	}
	if p, _ := m.Power(ctx); p != vm.PowerOff {
		t.Fatalf("power after a cut: %s", p)
	}
	if _, err := m.Guest().Hello(ctx); !errors.Is(err, vm.ErrTransport) {
		t.Fatalf("hello of a machine that is off: %v", err)
	}
	if err := m.PowerCut(ctx); !errors.Is(err, vm.ErrPower) {
		t.Fatalf("second cut: %v", err)
	}
	asked := make(chan error, 1) // the referee asks for addresses at any time, this one included
	go func() {
		_, err := m.Addr(22)
		asked <- err
	}()
	if err := m.PowerOnAgain(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	until(t, "ping after power on", pings(t, m))
	if err := m.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	until(t, "ping after reset", pings(t, m))
	h3, _ := m.Guest().Hello(ctx)
	if h3.BootID == h2.BootID {
		t.Fatal("reset kept the boot")
	}
	// The guest may reboot itself.
	_, _ = m.Guest().Run(ctx, []string{"reboot"}, nil) // the answer may go with the boot
	until(t, "own reboot", func() bool { h, err := m.Guest().Hello(ctx); return err == nil && h.BootID != h3.BootID })
	// And switch itself off.
	_, _ = m.Guest().Run(ctx, []string{"systemctl", "poweroff"}, nil)
	until(t, "power off", func() bool { p, _ := m.Power(ctx); return p == vm.PowerOff })
}

func TestRebootRefused(t *testing.T) {
	m := beginKV(t)
	sh(t, m, "systemctl mask reboot.target")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Reboot(ctx); !errors.Is(err, vm.ErrGuestRefused) {
		t.Fatalf("masked reboot.target: %v", err)
	}
	sh(t, m, `systemctl unmask reboot.target
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop=/bin/sleep infinity\n' > /etc/systemd/system/block.service
systemctl start block`)
	ctx2, cancel2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel2()
	if err := m.Reboot(ctx2); !errors.Is(err, vm.ErrGuestRefused) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("blocked stop: %v", err)
	}
	if err := m.Reset(t.Context()); err != nil {
		t.Fatalf("reset of a machine that hangs: %v", err)
	}
}

func TestAgentKilled(t *testing.T) {
	for _, how := range []string{"pkill -9 -f refbox-agent", "systemctl stop refbox-agent", "kill -9 $(systemctl show -p MainPID --value refbox-agent)"} {
		m := beginKV(t)
		_, _ = m.Guest().Run(t.Context(), []string{"sh", "-c", how}, nil)
		until(t, "lost: "+how, func() bool { _, err := m.Guest().Hello(t.Context()); return errors.Is(err, vm.ErrGuestLost) })
		if !pings(t, m)() {
			_, _, err := get(t, m, 8080, "/ping")
			u, uerr := m.Guest().Unit(t.Context(), "kv")
			t.Fatal("the service fell with the agent: ", how, err, u, uerr)
		}
		if err := m.Reboot(t.Context()); !errors.Is(err, vm.ErrGuestRefused) || !errors.Is(err, vm.ErrGuestLost) {
			t.Fatalf("reboot without an agent: %v", err)
		}
		if err := m.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Guest().Hello(t.Context()); err != nil {
			t.Fatalf("after a reset: %v", err)
		}
	}
}

func TestPause(t *testing.T) {
	m := beginKV(t)
	if err := m.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := m.Guest().Hello(ctx); !errors.Is(err, vm.ErrGuestLost) {
		t.Fatalf("hello of a paused machine: %v", err)
	}
	addr, _ := m.Addr(8080)
	answered := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/ping")
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a paused machine answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := m.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatalf("after resume: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestFaults(t *testing.T) {
	d := New(kvConfig())
	m := begin(t, d, kvSpec(), vm.Start{Name: "one"}).Machine("host")
	other := begin(t, d, kvSpec(), vm.Start{Name: "two"}).Machine("host")
	f := d.Faults("one", "host")
	f.Flake(2)
	for i := range 3 {
		_, err := m.Guest().Hello(t.Context())
		if flaked := errors.Is(err, vm.ErrTransport); flaked != (i < 2) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	release := f.Wedge()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := m.Guest().Hello(ctx); !errors.Is(err, vm.ErrGuestLost) {
		t.Fatalf("wedged: %v", err)
	}
	if _, err := other.Guest().Hello(t.Context()); err != nil {
		t.Fatalf("the other machine: %v", err)
	}
	release()
	f.Delay(30 * time.Millisecond)
	began := time.Now()
	if _, err := m.Guest().Hello(t.Context()); err != nil || time.Since(began) < 30*time.Millisecond {
		t.Fatalf("delay: %v after %s", err, time.Since(began))
	}
}

func TestIdentity(t *testing.T) {
	d := New(kvConfig())
	see := func(m vm.Machine) []string {
		out, _ := sh(t, m, "cat /etc/machine-id; cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | base64; cat /etc/shadow; hostname")
		return append(strings.Split(strings.TrimSpace(out), "\n"), string(m.HostKey().Marshal()))
	}
	a := see(begin(t, d, kvSpec(), vm.Start{Name: "one", Password: "pw1"}).Machine("host"))
	b := see(begin(t, d, kvSpec(), vm.Start{Name: "two", Password: "pw2"}).Machine("host"))
	if len(a) != 6 || len(b) != 6 {
		t.Fatalf("%q %q", a, b)
	}
	for i := range a {
		if a[i] == b[i] {
			t.Errorf("shared: %q", a[i])
		}
	}
}

func TestLoseUnsynced(t *testing.T) {
	cfg := kvConfig()
	cfg.LoseUnsynced = true
	m := begin(t, New(cfg), kvSpec(), vm.Start{}).Machine("host")
	sh(t, m, "echo a > /synced; sync; echo b > /unsynced; echo c > /one; sync /one")
	if err := m.Guest().WriteFile(t.Context(), "/by-agent", []byte("d"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOnAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, _ := sh(t, m, "wc -c /synced /unsynced /one /by-agent"); out != "2 /synced\n0 /unsynced\n2 /one\n1 /by-agent\n" {
		t.Fatalf("after the cut: %q", out)
	}
}

func TestLinks(t *testing.T) {
	cfg := Config{Programs: map[string]Program{"/opt/kv.py": kv(":8080", "/var/lib/kv")}}
	spec := kvSpec()
	node := spec.Machines[0]
	node.Setup = []string{"systemctl", "enable", "kv"}
	a, b, c := node, node, node
	a.Name, b.Name, c.Name = "a", "b", "c"
	spec.Machines = []vm.MachineSpec{a, b, c}
	spec.Links = []vm.LinkSpec{{Name: "ab", Ends: []string{"a", "b"}, Subnet: "10.81.0"}}
	cl := begin(t, New(cfg), spec, vm.Start{Cold: true})
	ctx := t.Context()
	for _, m := range cl.Machines() {
		until(t, "ping "+m.Name(), pings(t, m))
	}
	res, err := cl.Machine("a").Guest().HTTP(ctx, vm.HTTPRequest{Method: "PUT", URL: "http://b:8080/kv/x", Body: []byte("1")})
	if err != nil || res.Status != 200 {
		t.Fatalf("%+v %v", res, err)
	}
	if out, _ := sh(t, cl.Machine("b"), "cat /var/lib/kv/x; hostname; curl -s http://10.81.0.10:8080/ping"); out != "1seat-b\npong\n" {
		t.Fatalf("b: %q", out)
	}
	if out, _ := sh(t, cl.Machine("c"), "curl -s http://b:8080/ping; echo $?; curl -s http://10.81.0.11:8080/ping; echo $?"); out != "6\n7\n" {
		t.Fatalf("c reaches a link that it is not on: %q", out)
	}
}

func dial(t *testing.T, m vm.Machine, auth ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	addr, err := m.Addr(22)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{auth}, HostKeyCallback: ssh.FixedHostKey(m.HostKey()), Timeout: 5 * time.Second})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestSSH(t *testing.T) {
	_, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, _ := ssh.NewSignerFromKey(priv)
	m := begin(t, New(kvConfig()), kvSpec(), vm.Start{Name: "seat", Password: "pw", AuthorizedKey: signer.PublicKey()}).Machine("host")
	if _, err := dial(t, m, ssh.Password("wrong")); err == nil {
		t.Fatal("a wrong password opens")
	}
	if _, err := dial(t, m, ssh.Password("pw")); err != nil {
		t.Fatal(err)
	}
	c, err := dial(t, m, ssh.PublicKeys(signer))
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd, stdin string) (string, string, error) {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var out, errw bytes.Buffer
		s.Stdout, s.Stderr, s.Stdin = &out, &errw, strings.NewReader(stdin)
		err = s.Run(cmd)
		return out.String(), errw.String(), err
	}
	if out, errw, err := run("cat; echo err >&2; pwd", "in\n"); err != nil || out != "in\n/root\n" || errw != "err\n" {
		t.Fatalf("%q %q %v", out, errw, err)
	}
	var exit *ssh.ExitError
	if _, _, err := run("exit 3", ""); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Fatalf("exit status: %v", err)
	}
	// A background command outlives its session.
	if _, _, err := run("(sleep 0.05; echo late > /late) > /dev/null 2>&1 &", ""); err != nil {
		t.Fatal(err)
	}
	until(t, "background command", func() bool { out, _ := sh(t, m, "cat /late 2>/dev/null"); return out == "late\n" })
	// A shell without a terminal reads its script from standard input.
	s, _ := c.NewSession()
	var out bytes.Buffer
	s.Stdout = &out
	s.Stdin = strings.NewReader("x=1\nread y\nline for read\necho $x $y\nexit 4\n")
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 4 || out.String() != "1 line for read\n" {
		t.Fatalf("shell on a pipe: %q %v", out.String(), err)
	}
	s, _ = c.NewSession()
	out.Reset()
	s.Stdout = &out
	s.Stdin = strings.NewReader("cat <<E\ndoc $((1+\n1))\nE\necho a \\\nb; (exit 3)\nif [ $? = 3 ]\nthen echo last; fi")
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil || out.String() != "doc 2\na b\nlast\n" {
		t.Fatalf("continued lines: %q %v", out.String(), err)
	}
	// A terminal echoes and prompts; Ctrl-C ends a command; the session survives.
	s, _ = c.NewSession()
	defer s.Close()
	screen := &screen{}
	s.Stdout = screen
	in, _ := s.StdinPipe()
	if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	screen.expect(t, "root@seat:~# ")
	io.WriteString(in, "sleep 60\r")
	screen.expect(t, "sleep 60\r\n")
	until(t, "sleep to run", func() bool { _, exit := sh(t, m, "pgrep -x sleep"); return exit == 0 })
	io.WriteString(in, "\x03")
	screen.expect(t, "root@seat:~# ")
	io.WriteString(in, "cat\r")
	io.WriteString(in, "typed\r\x04")
	screen.expect(t, "typed\r\ntyped\r\n")
	io.WriteString(in, "exit 5\r")
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Fatalf("terminal: %v", err)
	}
	// A reboot ends the connection.
	if err := m.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Fatal("the connection outlived the boot")
	}
	until(t, "ssh after reboot", func() bool { _, err := dial(t, m, ssh.PublicKeys(signer)); return err == nil })
}

// screen collects what a terminal printed.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
	at  int
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// expect waits for text after what was last expected.
func (s *screen) expect(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		s.mu.Lock()
		rest := s.buf.String()[s.at:]
		i := strings.Index(rest, text)
		if i >= 0 {
			s.at += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never printed %q; printed %q", text, rest)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestConsole(t *testing.T) {
	record, seen := &screen{}, &screen{}
	m := begin(t, New(kvConfig()), kvSpec(), vm.Start{Name: "seat", Password: "pw", Cold: true,
		Console: func(string) io.Writer { return record }}).Machine("host")
	record.expect(t, "Linux version")
	record.expect(t, "seat login: ")
	detach := m.Console().Attach(func(p []byte) { seen.Write(p) })
	type_ := func(s string) { io.WriteString(m.Console(), s) }
	type_("root\rnope\r")
	seen.expect(t, "root\r\nPassword: ")
	seen.expect(t, "Login incorrect")
	type_("root\rpw\r")
	seen.expect(t, "root@seat:~# ")
	type_("echo $((6*7))\r")
	seen.expect(t, "\r\n42\r\n")
	type_("if true\rthen echo multi; fi\r")
	seen.expect(t, "> ")
	seen.expect(t, "multi\r\n")
	type_("exit\r")
	seen.expect(t, "seat login: ")
	detach()
	if err := m.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	record.expect(t, "Restarting system")
	record.expect(t, "seat login: ")
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if strings.Contains(seen.buf.String(), "Restarting") {
		t.Fatal("a detached sink was called")
	}
}

func TestGuestFiles(t *testing.T) {
	m := beginKV(t)
	g, ctx := m.Guest(), t.Context()
	if _, err := g.ReadFile(ctx, "/none", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("missing: %v", err)
	}
	if err := g.WriteFile(ctx, "/f", []byte("hello"), 0o640); err != nil {
		t.Fatal(err)
	}
	if data, err := g.ReadFile(ctx, "/f", 3); err != nil || string(data) != "hel" {
		t.Fatalf("%q %v", data, err)
	}
	sh(t, m, "ln -s /f /l")
	if st, err := g.Stat(ctx, "/l"); err != nil || st.Target != "/f" || st.Mode&fs.ModeSymlink == 0 {
		t.Fatalf("%+v %v", st, err)
	}
	if st, err := g.Stat(ctx, "/f"); err != nil || st.Size != 5 || st.Mode.Perm() != 0o640 {
		t.Fatalf("%+v %v", st, err)
	}
	for range 2 {
		if err := g.Remove(ctx, "/f"); err != nil {
			t.Fatal(err)
		}
	}
	if out, exit := sh(t, m, "head -c 100M /dev/zero > /big; echo $?; rm /big; echo small > /s && cat /s"); exit != 0 || !strings.Contains(out, "No space left") || !strings.Contains(out, "small\n") {
		t.Fatalf("full disk: %d %q", exit, out)
	}
	ls, err := g.Listeners(ctx)
	if err != nil || len(ls) != 2 || ls[0].Port != 22 || ls[1].Port != 8080 || ls[1].PID == 0 {
		t.Fatalf("%+v %v", ls, err)
	}
	res, err := g.HTTP(ctx, vm.HTTPRequest{Method: "GET", URL: "http://127.0.0.1:81/", Timeout: time.Second})
	if err != nil || res.Err != "refused" {
		t.Fatalf("%+v %v", res, err)
	}
}

// TestFailedSetup also shows that a failure is not kept.
func TestFailedSetup(t *testing.T) {
	spec := kvSpec()
	spec.Machines[0].Setup = []string{"sh", "-c", "echo why >&2; exit 3"}
	d := New(kvConfig())
	for range 2 {
		_, err := d.Prepare(t.Context(), spec, nil)
		if err == nil || !strings.Contains(err.Error(), "exits with 3: \"why\"") {
			t.Fatal(err)
		}
	}
}

func TestPrepareOnce(t *testing.T) {
	d := New(kvConfig())
	a, err := d.Prepare(t.Context(), kvSpec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := d.Prepare(t.Context(), kvSpec(), nil)
	if a != b {
		t.Fatal("prepared twice")
	}
	changed := kvSpec()
	changed.Machines[0].Files = fstest.MapFS{"opt/kv.py": {Data: []byte("#!/usr/bin/python3\n#")}}
	changed.Machines[0].Setup = nil
	c, err := d.Prepare(t.Context(), changed, nil)
	if err != nil || c.Key() == a.Key() {
		t.Fatalf("a changed spec has the same key: %v", err)
	}
}

// TestCutWhilePaused: what a paused guest was about to do never happens.
func TestCutWhilePaused(t *testing.T) {
	m := beginKV(t)
	if err := m.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	addr, _ := m.Addr(8080)
	req, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://"+addr+"/kv/late", strings.NewReader("x"))
	done := make(chan error, 1)
	go func() {
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	// The request is on its way once the connection is; that much is enough.
	time.Sleep(10 * time.Millisecond)
	if err := m.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := <-done
	until(t, "ping", pings(t, m))
	if code, _, _ := get(t, m, 8080, "/kv/late"); err != nil && code != http.StatusNotFound {
		t.Fatalf("a write that failed (%v) is there: %d", err, code)
	}
}
