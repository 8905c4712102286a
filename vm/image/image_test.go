package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	guestassets "refbox/assets/guest"
	"refbox/vm"
)

func TestSourceLines(t *testing.T) {
	const key = "/k.gpg"
	main := "deb [signed-by=/k.gpg] http://mirror/debian bookworm main"
	for _, tt := range []struct {
		name    string
		targets []target
		want    []string
	}{
		{"archive, updates, security", []target{
			{"http://mirror/debian", "bookworm", "main", "bookworm", "Debian"},
			{"http://mirror/debian", "bookworm", "main", "bookworm", "Debian"},
			{"http://mirror/debian", "bookworm", "contrib", "bookworm", "Debian"},
			{"http://mirror/debian", "bookworm-updates", "main", "bookworm-updates", "Debian"},
			{"http://mirror/debian-security", "bookworm-security", "main", "bookworm-security", "Debian"},
		}, []string{main, "deb [signed-by=/k.gpg] http://mirror/debian bookworm-updates main",
			"deb [signed-by=/k.gpg] http://mirror/debian-security bookworm-security main"}},
		{"named by age", []target{{"http://mirror/debian", "oldstable", "main", "bookworm", "Debian"}},
			[]string{"deb [signed-by=/k.gpg] http://mirror/debian oldstable main"}},
		{"lists not fetched", []target{{"http://mirror/debian", "bookworm", "main", "", ""}}, []string{main}},
		{"others' archives", []target{
			{"http://mirror/debian", "bookworm", "main", "bookworm", "Debian"},
			{"http://other/repo", "nodistro", "main", "nodistro", "Other"},
			{"http://other/php", "bookworm", "main", "bookworm", "deb.other.org"},
			{"http://mirror/debian", "bookworm-backports", "main", "bookworm-backports", "Debian Backports"},
			{"http://mirror/debian", "sid", "main", "sid", "Debian"},
			{"cdrom:[disc]/", "bookworm", "main", "bookworm", "Debian"},
			{"http://x/ y", "bookworm", "main", "bookworm", "Debian"},
		}, []string{main}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sourceLines(tt.targets, "bookworm", key)
			if err != nil || !cmp.Equal(got, tt.want) {
				t.Errorf("%v\n%s", err, cmp.Diff(tt.want, got))
			}
		})
	}
	if _, err := sourceLines(nil, "bookworm", key); !errors.Is(err, vm.ErrMissing) {
		t.Errorf("no sources: %v", err)
	}
}

func TestPickOptions(t *testing.T) {
	got := pickOptions("Acquire\t\nAcquire::http::Proxy\thttp://proxy:3142\nAcquire::Languages\tnone\n" +
		"Acquire::Check-Valid-Until\tfalse\nAcquire::http::Evil\tx\"; Dir \"/\nAcquire::Retries\t3\n")
	want := []string{`Acquire::http::Proxy "http://proxy:3142"`, `Acquire::Check-Valid-Until "false"`, `Acquire::Retries "3"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestModuleClosure(t *testing.T) {
	const depends = "kernel/a/virtio-rng.ko: kernel/b/rng.ko\nkernel/b/rng.ko:\n" +
		"kernel/c/net.ko: kernel/c/fail.ko kernel/c/core.ko\nkernel/c/fail.ko: kernel/c/core.ko\nkernel/c/core.ko:\nkernel/d/unused.ko:\n"
	got, err := moduleClosure(depends, []string{"virtio_rng", "net", "builtin"})
	want := []string{"kernel/b/rng.ko:", "kernel/a/virtio-rng.ko: kernel/b/rng.ko",
		"kernel/c/fail.ko: kernel/c/core.ko", "kernel/c/core.ko:", "kernel/c/net.ko: kernel/c/fail.ko kernel/c/core.ko"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	for _, damaged := range []string{"no colon\n", "a.ko: b.ko\n"} {
		if _, err := moduleClosure(damaged, []string{"a"}); err == nil {
			t.Errorf("%q was taken", damaged)
		}
	}
}

func TestInitrdUnpacks(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("cpio is not installed")
	}
	boot := &bootFiles{version: "6.1", busybox: []byte("box"), depends: "kernel/x/a.ko:\n",
		modules: map[string][]byte{"kernel/x/a.ko": []byte("module")}}
	data, err := boot.initrd([]string{"a"}, []byte("#!init"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cpio", "-t", "-v", "--quiet")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	for _, want := range []string{"lib/modules/6.1/kernel/x/a.ko", "lib/modules/6.1/modules.dep", "-rwxr-xr-x", "bin/busybox", "crw-------", "dev/console", "init", "modules"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the archive lacks %s:\n%s", want, out)
		}
	}
	boot.depends = "kernel/x/gone.ko:\n"
	if _, err := boot.initrd([]string{"gone"}, nil); err == nil {
		t.Error("a module that is not there was taken")
	}
}

func TestSplitBoot(t *testing.T) {
	var in bytes.Buffer
	w := tar.NewWriter(&in)
	for _, f := range []struct{ name, data string }{
		{"./boot/vmlinuz-6.1-cloud", "kernel"}, {"./boot/config-6.1-cloud", "config"},
		{"./boot/busybox/bin/busybox", "box"}, {"./boot/packages", "bash 5\n"}, {"./boot/sums", "0  x\n"},
		{"./usr/lib/modules/6.1-cloud/modules.dep", "kernel/a.ko:\n"}, {"./usr/lib/modules/6.1-cloud/kernel/a.ko", "module"},
		{"./usr/bin/true", "true"}, {"./dev/null", ""},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	boot, err := splitBoot(&in, &out)
	if err != nil {
		t.Fatal(err)
	}
	want := &bootFiles{version: "6.1-cloud", kernel: []byte("kernel"), busybox: []byte("box"), packages: "bash 5\n", sums: []byte("0  x\n"),
		depends: "kernel/a.ko:\n", modules: map[string][]byte{"kernel/a.ko": []byte("module")}}
	if d := cmp.Diff(want, boot, cmp.AllowUnexported(bootFiles{})); d != "" {
		t.Error(d)
	}
	var left []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, h.Name)
	}
	if d := cmp.Diff([]string{"./usr/lib/modules/6.1-cloud/modules.dep", "./usr/lib/modules/6.1-cloud/kernel/a.ko", "./usr/bin/true"}, left); d != "" {
		t.Error(d)
	}
}

func TestOverlayHoldsTheAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "o.tar")
	if err := writeOverlay(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string]bool{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = true
		if h.Name == "usr/lib/refbox/agent.py" {
			data, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(data, guestassets.Agent) {
				t.Errorf("the agent is another: %v", err)
			}
		}
	}
	for _, want := range []string{"usr/lib/refbox/agent.py", "etc/systemd/system/refbox-agent.service", "etc/ssh/sshd_config"} {
		if !found[want] {
			t.Errorf("the overlay lacks %s", want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"vmlinuz", "initrd", "disk.raw"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := "bash 5.2\nlibc6 2.36\n"
	if err := seal(dir, "6.1", 640, parsePackages(text), text); err != nil {
		t.Fatal(err)
	}
	img, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if img.Disk != filepath.Join(dir, "disk.raw") || len(img.Digest) != 64 || img.Packages["bash"] != "5.2" || img.KernelVersion != "6.1" || img.DiskMiB != 640 {
		t.Errorf("%+v", img)
	}
	if err := os.Remove(img.Disk); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a damaged image: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged manifest: %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	got := make(chan error, 1)
	waiting := make(chan struct{})
	go func() {
		again, err := lock(t.Context(), path, func() { close(waiting) })
		if err == nil {
			again()
		}
		got <- err
	}()
	<-waiting
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	err := place("/some/where/file", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/some/where") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Error(err)
	}
	if err := spaceError(errors.New("tar: write: No space left on device"), "/d"); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if err := roomFor(t.TempDir(), 1<<40); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

func TestWatchEndsTheWholeGroup(t *testing.T) {
	// All of the group hold the pipe, so it ends when the last of them has.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-c", "(trap '' TERM; echo begun >&2; sleep 600) & sleep 600")
	cmd.ExtraFiles = []*os.File{w}
	if err := watch(cmd, func(string) { cancel() }); err == nil {
		t.Error("an interrupted command succeeded")
	}
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the group outlives its command: %v", err)
	}
	cmd = exec.CommandContext(t.Context(), "sh", "-c", "echo why >&2; exit 3")
	if err := watch(cmd, func(string) {}); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a failed command: %v", err)
	}
}

func TestKey(t *testing.T) {
	key := func(packages ...string) string {
		k, err := Key(packages)
		if errors.Is(err, vm.ErrMissing) {
			t.Skip(err)
		}
		if err != nil || len(k) != 24 {
			t.Fatalf("%q: %q, %v", packages, k, err)
		}
		return k
	}
	plain, two := key(), key("etcd-server", "haproxy")
	for _, tt := range []struct {
		packages []string
		want     string
	}{
		{nil, plain}, {[]string{}, plain}, {[]string{"python3"}, plain}, // the recipe's own
		{[]string{"haproxy", "etcd-server"}, two}, {[]string{"etcd-server", "haproxy", "curl", "haproxy"}, two},
	} {
		if got := key(tt.packages...); got != tt.want {
			t.Errorf("%q has another key", tt.packages)
		}
	}
	for _, k := range []string{key("etcd-server"), key("haproxy"), key("etcd-server-haproxy"), two} {
		if k == plain {
			t.Error("packages are left out of the key")
		}
	}
	if key("haproxy") == two || key("haproxy") == key("etcd-server") {
		t.Error("sets of packages share a key")
	}
}

func TestPackageNames(t *testing.T) {
	for _, name := range []string{"postgresql-15", "g++", "libc6", "python3.11", "0ad"} {
		if err := vm.CheckPackage(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "a", "-x", "+x", "Patroni", "a b", "a,b", "a=1", "a/sid", "a:amd64", "a\nb", "$(x)", "?name(x)", strings.Repeat("a", 64)} {
		if _, err := Key([]string{name}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	var many []string
	for i := range vm.MaxPackages + 1 {
		many = append(many, fmt.Sprintf("package-%d", i))
	}
	if _, err := Key(many); err == nil {
		t.Errorf("%d packages were taken", len(many))
	}
}

func TestDiskFitsItsArchive(t *testing.T) {
	for _, tt := range []struct {
		mib  int64
		want int
	}{{0, 512}, {170, 512}, {300, 512}, {310, 640}, {600, 896}, {1000, 1408}} {
		if got := diskFor(tt.mib << 20); got != tt.want {
			t.Errorf("%d MiB: a disk of %d, want %d", tt.mib, got, tt.want)
		}
	}
}
