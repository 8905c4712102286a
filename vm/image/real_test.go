package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
	"refbox/vm/child"
	"refbox/vm/guest"
	"refbox/vm/image"
	"refbox/vm/vmtest"
)

// machine boots the image in the plainest way that machines.md has, without
// package vm/qemu, so that image and agent stand on their own.
type machine struct {
	pid     int
	client  *guest.Client
	ssh     string // host:port
	console *syncBuffer
	start   time.Time
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func realImage(t *testing.T, packages ...string) image.Image {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real machine: skipped under -short")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	vmtest.Alone(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no cache folder for the image: ", err)
	}
	img, err := image.Ensure(t.Context(), filepath.Join(cache, "refbox"), packages, func(step string, done float64) {
		t.Logf("image: %3.0f %% %s", done*100, step)
	})
	if errors.Is(err, vm.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func boot(t *testing.T, img image.Image, diskMiB int) *machine {
	t.Helper()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk.qcow2")
	out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-b", img.Disk, "-F", img.DiskFormat,
		disk, fmt.Sprintf("%dM", diskMiB)).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img: %v: %s", err, out)
	}
	sock := filepath.Join(dir, "a")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := freePort(t)
	m := &machine{client: guest.New(), ssh: fmt.Sprintf("127.0.0.1:%d", port), console: &syncBuffer{}, start: time.Now()}
	cmd := exec.Command("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
		"-M", "q35,smm=off,vmport=off,sata=off,usb=off", "-accel", "tcg,thread=multi,tb-size=128",
		"-cpu", "qemu64", "-smp", "1", "-m", "384", "-kernel", img.Kernel, "-initrd", img.Initrd,
		"-append", image.Cmdline, "-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con",
		"-drive", "if=none,id=d0,file="+disk+",format=qcow2,discard=unmap,detect-zeroes=unmap",
		"-device", "virtio-blk-pci,drive=d0",
		"-netdev", fmt.Sprintf("user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22", port),
		"-device", "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:00,romfile=",
		"-netdev", "socket,id=n1,udp=127.0.0.1:9,localaddr=127.0.0.1:0",
		"-device", "virtio-net-pci,netdev=n1,mac=52:54:00:00:01:00,romfile=",
		"-device", "virtio-serial-pci,id=vs0", "-chardev", "socket,id=ag,path="+sock,
		"-device", "virtserialport,chardev=ag,name=refbox.agent,bus=vs0.0", "-device", "virtio-rng-pci")
	cmd.Stdout, cmd.Stderr = m.console, m.console
	ended := make(chan struct{})
	if err := child.Start(cmd, func() { close(ended) }); err != nil {
		t.Fatal(err)
	}
	m.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = m.client.Close()
		if t.Failed() {
			t.Logf("console:\n%s", m.console.String())
		}
	})
	_ = l.(*net.UnixListener).SetDeadline(time.Now().Add(10 * time.Second))
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("QEMU did not connect the agent's port: %v\n%s", err, m.console.String())
	}
	m.client.Attach(conn)
	return m
}

// cpu is the processor time that the machine has used: unlike the time on the
// clock it says something on a busy host too.
func (m *machine) cpu(t *testing.T) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var user, system int
	if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestRealMachine(t *testing.T) {
	img := realImage(t)
	const diskMiB = 1024
	m := boot(t, img, diskMiB)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c := m.client

	first, err := c.WaitHello(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("measured: hello %.2f s after the start, %v of processor time", time.Since(m.start).Seconds(), m.cpu(t))

	clientKey, hostKey := identify(t, ctx, m, "seat-one", "correct horse")
	t.Run("identity", func(t *testing.T) {
		for range 3 {
			start := time.Now()
			client, err := dial(m.ssh, ssh.PublicKeys(clientKey), hostKey)
			if err != nil {
				t.Fatal(err)
			}
			dialled := time.Since(start)
			out, err := sshRun(client, "hostname; cat /etc/machine-id; echo $PATH; echo $LANG; ip -br addr")
			t.Logf("measured: ssh dial %.3f s, command %.3f s", dialled.Seconds(), (time.Since(start) - dialled).Seconds())
			if err != nil || !strings.HasPrefix(out, "seat-one\n") || !strings.Contains(out, "10.81.0.10/24") ||
				!strings.Contains(out, "/usr/sbin") || !strings.Contains(out, "C.UTF-8") {
				t.Errorf("ssh: %q, %v", out, err)
			}
			client.Close()
		}
		client, err := dial(m.ssh, ssh.Password("correct horse"), hostKey)
		if err != nil {
			t.Fatal("password: ", err)
		}
		client.Close()
		if _, err := dial(m.ssh, ssh.Password("wrong"), hostKey); err == nil {
			t.Error("a wrong password was let in")
		}
		clock, err := c.SetClock(ctx, 0)
		if err != nil || clock.Offset.Abs() > 50*time.Millisecond {
			t.Errorf("clock is off by %v, %v", clock.Offset, err)
		}
		t.Logf("measured: clock off by %v, round trip %v", clock.Offset, clock.RTT)
	})
	t.Run("prompt", func(t *testing.T) {
		for !strings.Contains(m.console.String(), "seat-one login:") {
			if ctx.Err() != nil {
				t.Fatal("the console never showed a login prompt with the machine's name")
			}
			if _, err := c.Hello(ctx); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("measured: prompt %.2f s after the start", time.Since(m.start).Seconds())
	})
	t.Run("verbs", func(t *testing.T) { realVerbs(t, ctx, c) })
	t.Run("grow", func(t *testing.T) {
		start := time.Now()
		if err := c.Grow(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("measured: grow %v", time.Since(start))
		r, err := c.Run(ctx, []string{"df", "-m", "--output=size", "/"}, nil)
		var size int
		if _, serr := fmt.Sscanf(string(r.Stdout), "1M-blocks\n%d", &size); err != nil || serr != nil || size < diskMiB*9/10 {
			t.Errorf("root has %d MiB of %d: %q %v", size, diskMiB, r.Stdout, err)
		}
	})
	t.Run("background", func(t *testing.T) {
		// What a session leaves running stays, as under a lone sshd.
		client, err := dial(m.ssh, ssh.PublicKeys(clientKey), hostKey)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sshRun(client, "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > /run/left"); err != nil {
			t.Fatal(err)
		}
		client.Close()
		r, err := c.Run(ctx, []string{"sh", "-c", "sleep 1; kill -0 $(cat /run/left)"}, nil)
		if err != nil || r.Exit != 0 {
			t.Errorf("a session's background process is gone: %+v, %v", r, err)
		}
	})
	t.Run("settle", func(t *testing.T) {
		start := time.Now()
		if err := c.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("measured: settle %v", time.Since(start))
	})
	t.Run("agent killed", func(t *testing.T) {
		u, err := c.Unit(ctx, "refbox-agent.service")
		if err != nil || u.MainPID == 0 {
			t.Fatalf("%+v, %v", u, err)
		}
		_, err = c.Run(ctx, []string{"kill", "-9", fmt.Sprint(u.MainPID)}, nil)
		if !errors.Is(err, vm.ErrGuestLost) {
			t.Errorf("a request that died with the agent: %v", err)
		}
		if h, err := c.Hello(ctx); err != nil || h.BootID != first.BootID {
			t.Errorf("the agent did not come back: %+v, %v", h, err)
		}
	})
	t.Run("reboot", func(t *testing.T) {
		if err := c.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := c.Reboot(ctx); err != nil {
			t.Fatal(err)
		}
		h, err := c.WaitHello(ctx, first.BootID)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("measured: reboot to hello %.2f s", time.Since(start).Seconds())
		if h.Hostname != "seat-one" {
			t.Errorf("after the reboot it is called %q", h.Hostname)
		}
		r, err := c.Run(ctx, []string{"ip", "-br", "addr"}, nil)
		if err != nil || !strings.Contains(string(r.Stdout), "10.81.0.10/24") {
			t.Errorf("the link's address is gone: %s, %v", r.Stdout, err)
		}
		client := dialUntil(t, ctx, m.ssh, ssh.PublicKeys(clientKey), hostKey)
		t.Logf("measured: reboot to ssh %.2f s", time.Since(start).Seconds())
		client.Close()
	})
}

func identify(t *testing.T, ctx context.Context, m *machine, name, password string) (ssh.Signer, ssh.PublicKey) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	id, hostKey, err := guest.NewIdentity(name, password, signer.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	id.Links = []guest.Link{{MAC: "52:54:00:00:01:00", CIDR: "10.81.0.10/24"}}
	id.Hosts = []guest.Host{{IP: "10.81.0.11", Name: "other"}}
	for range 2 { // the second is warm, as in a resumed machine
		start := time.Now()
		clock, err := m.client.Identify(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("measured: identify %v, clock off by %v, all in all %v of processor time", time.Since(start), clock.Offset, m.cpu(t))
	}
	dialUntil(t, ctx, m.ssh, ssh.PublicKeys(signer), hostKey).Close()
	t.Logf("measured: ssh %.2f s after the start", time.Since(m.start).Seconds())
	return signer, hostKey
}

func dial(addr string, auth ssh.AuthMethod, hostKey ssh.PublicKey) (*ssh.Client, error) {
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{auth}, Timeout: 20 * time.Second,
		HostKeyCallback: ssh.FixedHostKey(hostKey), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
}

func dialUntil(t *testing.T, ctx context.Context, addr string, auth ssh.AuthMethod, hostKey ssh.PublicKey) *ssh.Client {
	t.Helper()
	for {
		client, err := dial(addr, auth, hostKey)
		if err == nil {
			return client
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func sshRun(client *ssh.Client, command string) (string, error) {
	s, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	out, err := s.Output(command)
	return string(out), err
}

func realVerbs(t *testing.T, ctx context.Context, c *guest.Client) {
	timed := func(name string, f func() error) {
		t.Helper()
		var best time.Duration
		for i := range 5 {
			start := time.Now()
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if d := time.Since(start); i == 0 || d < best {
				best = d
			}
		}
		t.Logf("measured: %-10s %v at best", name, best)
	}
	timed("hello", func() error { _, err := c.Hello(ctx); return err })
	timed("write", func() error { return c.WriteFile(ctx, "/root/x", []byte("text\n"), 0o640) })
	timed("read", func() error {
		b, err := c.ReadFile(ctx, "/root/x", 100)
		if err == nil && string(b) != "text\n" {
			err = fmt.Errorf("read %q", b)
		}
		return err
	})
	timed("stat", func() error {
		st, err := c.Stat(ctx, "/root/x")
		if err == nil && (st.Size != 5 || st.Mode != 0o640) {
			err = fmt.Errorf("%+v", st)
		}
		return err
	})
	timed("listeners", func() error {
		ls, err := c.Listeners(ctx)
		if err == nil && (len(ls) != 1 || ls[0].Port != 22 || ls[0].PID != 1) {
			err = fmt.Errorf("%+v", ls)
		}
		return err
	})
	timed("unit", func() error {
		u, err := c.Unit(ctx, "systemd-journald.service")
		if err == nil && (u.LoadState != "loaded" || u.ActiveState != "active" || u.SubState != "running" || u.MainPID < 2) {
			err = fmt.Errorf("%+v", u)
		}
		return err
	})
	timed("no unit", func() error {
		u, err := c.Unit(ctx, "no-such-thing@x.service")
		if err == nil && (u.LoadState != "not-found" || u.ActiveState != "inactive") {
			err = fmt.Errorf("%+v", u)
		}
		return err
	})
	timed("run", func() error {
		r, err := c.Run(ctx, []string{"sh", "-c", "cat; echo err >&2; exit 3"}, []byte("in"))
		if err == nil && (r.Exit != 3 || string(r.Stdout) != "in" || string(r.Stderr) != "err\n") {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	timed("http", func() error {
		r, err := c.HTTP(ctx, vm.HTTPRequest{Method: "GET", URL: "http://127.0.0.1:9/", Timeout: time.Second})
		if err == nil && r.Err != "refused" {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	timed("sync", func() error { return c.Sync(ctx) })
	timed("remove", func() error { return c.Remove(ctx, "/root/x") })
	if _, err := c.Stat(ctx, "/root/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of a removed file: %v", err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	for _, h := range []*tar.Header{
		{Name: "opt/", Typeflag: tar.TypeDir, Mode: 0o700},
		{Name: "opt/arena/big", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(big))},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write(big); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := c.Untar(ctx, "/", &buf); err != nil {
		t.Fatal(err)
	}
	t.Logf("measured: untar of 3 MB %v", time.Since(start))
	if st, err := c.Stat(ctx, "/opt/arena/big"); err != nil || st.Size != int64(len(big)) {
		t.Errorf("unpacked: %+v, %v", st, err)
	}
	if st, err := c.Stat(ctx, "/opt"); err != nil || st.Mode.Perm() != 0o755 {
		t.Errorf("an existing folder's mode was changed: %v, %v", st.Mode, err)
	}
	if err := c.Untar(ctx, "/", io.LimitReader(rand.Reader, 2<<20)); !errors.Is(err, guest.ErrAnswer) {
		t.Errorf("untar of rubbish: %v", err)
	}
}

// An arena's packages are there, none of their services runs until it is enabled,
// and the referee's helper boots as ever.
func TestRealPackages(t *testing.T) {
	img := realImage(t, "redis-server", "nginx-light")
	if img.Packages["redis-server"] == "" || img.Packages["nginx-light"] == "" {
		t.Fatalf("the lock lacks the packages: %v", img.Packages)
	}
	m := boot(t, img, img.DiskMiB)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c := m.client
	if _, err := c.WaitHello(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Run(ctx, []string{"systemctl", "is-system-running", "--wait"}, nil); err != nil {
		t.Fatal(r, err)
	}
	listens := func(port int) bool {
		all, err := c.Listeners(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(l vm.Listener) bool { return l.Port == port })
	}
	for unit, port := range map[string]int{"redis-server.service": 6379, "nginx.service": 80} {
		u, err := c.Unit(ctx, unit)
		if err != nil || u.LoadState != "loaded" || u.ActiveState != "inactive" || u.UnitFileState != "disabled" || listens(port) {
			t.Errorf("%s after the boot: %+v, %v", unit, u, err)
		}
		if r, err := c.Run(ctx, []string{"systemctl", "enable", "--now", unit}, nil); err != nil || r.Exit != 0 {
			t.Errorf("enable %s: %s %v", unit, r.Stderr, err)
		}
		if u, err := c.Unit(ctx, unit); err != nil || u.ActiveState != "active" || !listens(port) {
			t.Errorf("%s once enabled: %+v, %v", unit, u, err)
		}
	}
}
