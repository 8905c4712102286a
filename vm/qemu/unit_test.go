package qemu

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"golang.org/x/sys/unix"

	"refbox/vm"
	"refbox/vm/accel"
	"refbox/vm/image"
)

var update = flag.Bool("update", false, "write golden files anew")

func someHost() *hostFacts {
	return &hostFacts{
		binary: "/usr/bin/qemu-system-x86_64", version: "7.2.22", build: "QEMU emulator version 7.2.22",
		accel: accel.Accel{Name: "tcg", CPU: "qemu64", Why: "no /dev/kvm"},
		image: image.Image{Digest: "d1", DiskMiB: 512},
	}
}

func someSpec() vm.Spec {
	m := func(name string) vm.MachineSpec {
		return vm.MachineSpec{Name: name, VCPUs: 2, MemoryMiB: 768, DiskMiB: 2048, Forwards: []int{8080},
			Files: fstest.MapFS{"etc/x": {Data: []byte("x")}}, Setup: []string{"true"}}
	}
	return vm.Spec{
		Machines: []vm.MachineSpec{m("one"), m("two")},
		Links:    []vm.LinkSpec{{Name: "private", Ends: []string{"one", "two"}, Subnet: "10.81.0"}},
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestCommandLine(t *testing.T) {
	cold := launchOf(someSpec(), 1, someHost())
	cold.Layers, cold.Served = 2, true
	cold.Forwards = []forward{{Host: 40022, Guest: 22}, {Host: 48080, Guest: 8080}}
	warm := cold
	warm.RAM, warm.Incoming = ramPrivate, true
	saving := cold
	saving.RAM, saving.Layers, saving.Served = ramShared, 1, false
	var got strings.Builder
	for _, c := range []struct {
		name string
		launch
	}{{"cold", cold}, {"resumed", warm}, {"being prepared", saving}} {
		fmt.Fprintf(&got, "# %s\n%s\n", c.name, strings.Join(commandLine(c.launch), "\n"))
	}
	golden := filepath.Join("testdata", "cmdline.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("command lines changed; a changed machine needs another recipeVersion (-want +got):\n%s", d)
	}
}

// Whatever the launch, the sizes are on the line and each descriptor is named
// there, none twice and none beyond what is handed over.
func TestCommandLineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := launch{
			Spec: vm.MachineSpec{
				Name:  rapid.StringMatching(nameForm.String()).Draw(t, "name"),
				VCPUs: rapid.IntRange(1, 64).Draw(t, "vcpus"), MemoryMiB: rapid.IntRange(256, 65536).Draw(t, "memory"),
			},
			Accel: rapid.SampledFrom([]string{"tcg", "kvm"}).Draw(t, "accel"), CPU: "qemu64",
			RAM: ramMode(rapid.IntRange(0, 2).Draw(t, "ram")), Layers: rapid.IntRange(1, 2).Draw(t, "layers"), Served: rapid.Bool().Draw(t, "served"),
			Links: slices.Repeat([]linkEnd{{"l", "52:54:00:01:00:00"}}, rapid.IntRange(0, 3).Draw(t, "links")),
		}
		args := commandLine(l)
		value := func(name string) string { return args[slices.Index(args, name)+1] }
		if got, want := value("-smp"), fmt.Sprint(l.Spec.VCPUs); got != want {
			t.Fatalf("-smp %s, want %s", got, want)
		}
		if got, want := value("-m"), fmt.Sprint(l.Spec.MemoryMiB); got != want {
			t.Fatalf("-m %s, want %s", got, want)
		}
		d := l.number()
		all := append([]int{d.Kernel, d.Initrd, d.QMP, d.Agent, d.Overlay}, d.Layers...)
		if d.RAM != 0 {
			all = append(all, d.RAM)
		}
		all = append(all, d.Links...)
		for i, fd := range all {
			if fd != 3+i {
				t.Fatalf("descriptors %v are not 3 and up in the order in which files are opened", all)
			}
			text := strings.Join(args, "\n") + "\n"
			if !slices.ContainsFunc([]string{"/proc/self/fd/%d\n", "fd=%d\n", "fd=%d,", "addr.str=%d\n", `"str":"%d"`}, func(form string) bool {
				return strings.Contains(text, fmt.Sprintf(form, fd))
			}) {
				t.Fatalf("descriptor %d is not on the line", fd)
			}
		}
	})
}

// Everything that a saved state depends on changes its key, and nothing else.
func TestKey(t *testing.T) {
	key := func(change func(*vm.Spec, *hostFacts)) string {
		spec, h := someSpec(), someHost()
		change(&spec, h)
		var files []filesTar
		for _, m := range spec.Machines {
			f, err := packFiles(m.Files)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		return keyOf(spec, files, h)
	}
	seen := map[string]string{key(func(*vm.Spec, *hostFacts) {}): "nothing"}
	for name, change := range map[string]func(*vm.Spec, *hostFacts){
		"vcpus":        func(s *vm.Spec, _ *hostFacts) { s.Machines[0].VCPUs++ },
		"memory":       func(s *vm.Spec, _ *hostFacts) { s.Machines[0].MemoryMiB++ },
		"disk":         func(s *vm.Spec, _ *hostFacts) { s.Machines[0].DiskMiB++ },
		"name":         func(s *vm.Spec, _ *hostFacts) { s.Machines[0].Name, s.Links[0].Ends[0] = "uno", "uno" },
		"file content": func(s *vm.Spec, _ *hostFacts) { s.Machines[1].Files = fstest.MapFS{"etc/x": {Data: []byte("y")}} },
		"file name":    func(s *vm.Spec, _ *hostFacts) { s.Machines[1].Files = fstest.MapFS{"etc/y": {Data: []byte("x")}} },
		"no files":     func(s *vm.Spec, _ *hostFacts) { s.Machines[1].Files = nil },
		"set-up":       func(s *vm.Spec, _ *hostFacts) { s.Machines[1].Setup = []string{"false"} },
		"forwards":     func(s *vm.Spec, _ *hostFacts) { s.Machines[1].Forwards = nil },
		"subnet":       func(s *vm.Spec, _ *hostFacts) { s.Links[0].Subnet = "10.82.0" },
		"ends":         func(s *vm.Spec, _ *hostFacts) { slices.Reverse(s.Links[0].Ends) },
		"no link":      func(s *vm.Spec, _ *hostFacts) { s.Links = nil },
		"image":        func(_ *vm.Spec, h *hostFacts) { h.image.Digest = "d2" },
		"QEMU":         func(_ *vm.Spec, h *hostFacts) { h.build += "-1" },
		"accel":        func(_ *vm.Spec, h *hostFacts) { h.accel.Name = "kvm" },
		"processor":    func(_ *vm.Spec, h *hostFacts) { h.accel.CPU = "max" },
	} {
		k := key(change)
		if with, twice := seen[k]; twice {
			t.Errorf("changing %s gives the same key as changing %s", name, with)
		}
		seen[k] = name
	}
	if k := key(func(_ *vm.Spec, h *hostFacts) { h.accel.Why = "because"; h.binary = "/opt/qemu" }); seen[k] != "nothing" {
		t.Error("the key depends on what no state depends on")
	}
}

func TestCheck(t *testing.T) {
	if err := check(someSpec(), 512); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*vm.Spec){
		"1 to 32 machines":       func(s *vm.Spec) { s.Machines = nil },
		`"two" occurs twice`:     func(s *vm.Spec) { s.Machines[0].Name = "two" },
		"lower-case":             func(s *vm.Spec) { s.Machines[0].Name = "a,b" },
		"vcpus 0":                func(s *vm.Spec) { s.Machines[0].VCPUs = 0 },
		"memory_mib 64":          func(s *vm.Spec) { s.Machines[0].MemoryMiB = 64 },
		"disk_mib 100: want 512": func(s *vm.Spec) { s.Machines[0].DiskMiB = 100 },
		"port 70000":             func(s *vm.Spec) { s.Machines[0].Forwards = []int{70000} },
		"no machine":             func(s *vm.Spec) { s.Links[0].Ends[0] = "three" },
		"different ends":         func(s *vm.Spec) { s.Links[0].Ends = []string{"one", "one"} },
		"three octets":           func(s *vm.Spec) { s.Links[0].Subnet = "10.81" },
		"user network":           func(s *vm.Spec) { s.Links[0].Subnet = "10.0.2" },
		"occurs twice":           func(s *vm.Spec) { s.Links = append(s.Links, s.Links[0]) },
	} {
		s := someSpec()
		change(&s)
		if err := check(s, 512); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestPackFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"usr/bin/a":       {Data: []byte("elf")},
		"sbin/b":          {Data: []byte("elf")},
		"opt/c.sh":        {Data: []byte("#!/bin/sh\n")},
		"etc/d":           {Data: []byte("plain")},
		"etc/binary/file": {Data: nil},
	}
	a, err := packFiles(fsys)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := tar.NewReader(bytes.NewReader(a.data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Typeflag != tar.TypeReg {
			t.Errorf("%+v", h)
		}
		got[h.Name] = h.Mode
	}
	want := map[string]int64{"usr/bin/a": 0o755, "sbin/b": 0o755, "opt/c.sh": 0o755, "etc/d": 0o644, "etc/binary/file": 0o644}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("modes (-want +got):\n%s", d)
	}
	if b, err := packFiles(fsys); err != nil || b.digest != a.digest {
		t.Errorf("the same files give %s and %s, %v", a.digest, b.digest, err)
	}
	if b, err := packFiles(nil); err != nil || b.digest == a.digest || len(b.data) == 0 {
		t.Errorf("no files: %v, %v", b.digest, err)
	}

	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := packFiles(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a symbolic link: %v, want an error that names it", err)
	}
	small := fstest.MapFS{"a": {Data: make([]byte, 900)}, "b": {Data: make([]byte, 900)}}
	if _, err := packWithin(small, 8<<10); err != nil {
		t.Error(err)
	}
	if _, err := packWithin(small, 2000); !errors.Is(err, errFilesTooBig) {
		t.Errorf("too big: %v", err)
	}
}

func TestSweep(t *testing.T) {
	root := t.TempDir()
	mk := func(name string) string {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead, deep, alive, other := mk("dead"), mk("heat/seat"), mk("alive"), mk("other")
	for _, dir := range []string{dead, deep} {
		f, err := claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		f.Close() // as the kernel does when the owner dies
	}
	f, err := claim(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := claim(alive); err == nil {
		t.Error("two clusters claim one directory")
	}
	removed, err := Sweep(root)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(removed)
	if d := cmp.Diff([]string{dead, deep}, removed); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
	for dir, want := range map[string]bool{dead: false, deep: false, alive: true, other: true} {
		if exists(dir) != want {
			t.Errorf("%s exists: %v", dir, !want)
		}
	}
	if _, err := Sweep(filepath.Join(root, "nowhere")); err != nil {
		t.Errorf("sweeping what is not there: %v", err)
	}
	// A cluster in the runtime directory itself does not cost that directory.
	if f, err := claim(root); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	if _, err := Sweep(root); err != nil || !exists(other) {
		t.Errorf("the runtime directory was swept away: %v", err)
	}
}

func TestHoldPort(t *testing.T) {
	ports, err := freePorts(2)
	if err != nil || ports[0] == ports[1] {
		t.Fatal(ports, err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	f, err := holdPort(ports[0])
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a held port takes connections")
	}
	if l, err := net.Listen("tcp", addr); err == nil {
		l.Close()
		t.Error("a held port can be taken")
	}
	f.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("a port held no longer: %v", err)
	}
	l.Close()
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var packages []string
	for _, n := range Needs() {
		packages = append(packages, n.Package)
	}
	if d := cmp.Diff([]string{"qemu-system-x86", "qemu-utils"}, packages); d != "" {
		t.Errorf("needs (-want +got):\n%s", d)
	}
	_, err := New(Config{CacheDir: t.TempDir()}).Versions(t.Context(), nil)
	if !errors.Is(err, vm.ErrMissing) || !strings.Contains(err.Error(), "apt-get install qemu-system-x86 qemu-utils") {
		t.Errorf("got %v, want ErrMissing with the command that mends it", err)
	}
}

func TestTemplatesAreKeptWhileUsed(t *testing.T) {
	shelf := t.TempDir()
	mk := func(name string) string {
		home := filepath.Join(shelf, name)
		if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(home, metaName), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-2 * keepUnused)
		if err := os.Chtimes(filepath.Join(home, metaName), long, long); err != nil {
			t.Fatal(err)
		}
		return home
	}
	used, unused := mk("used"), mk("unused")
	tpl := &template{}
	if !tpl.found(used) || tpl.dir != used {
		t.Fatal("a template that is there was not found")
	}
	if tpl.found(filepath.Join(shelf, "none")) {
		t.Fatal("a template that is not there was found")
	}
	// Of two that are being prepared one has lost who prepared it.
	dead, live := filepath.Join(shelf, "dead.tmp-1"), filepath.Join(shelf, "live.tmp-1")
	if err := errors.Join(os.Mkdir(dead, 0o700), os.Mkdir(live, 0o700)); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), filepath.Join(shelf, "live.lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := prune(shelf, time.Now()); err != nil {
		t.Fatal(err)
	}
	if exists(dead) || !exists(live) {
		t.Errorf("dead half: %v, live half: %v", exists(dead), exists(live))
	}
	if !exists(used) || exists(unused) {
		t.Errorf("used: %v, unused: %v", exists(used), exists(unused))
	}
}

func TestNoRoom(t *testing.T) {
	spec := someSpec()
	if err := room(t.TempDir(), spec); err != nil {
		t.Fatal(err)
	}
	spec.Machines[0].MemoryMiB = 1 << 40
	if err := room(t.TempDir(), spec); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

func TestCPUTime(t *testing.T) {
	busy, all := cpuTime("cpu  10 1 20 300 5 2 3 0 0 0\ncpu0 99 99 99 99\n")
	if busy != 10+1+20+5+2+3 || all != busy+300 {
		t.Errorf("busy %d of %d", busy, all)
	}
	// Whatever a guest puts there is a number or nothing.
	if busy, all := cpuTime("cpu x -1 99999999999999999999999\x00\n"); busy != 0 || all != 0 {
		t.Errorf("nonsense counts as %d of %d", busy, all)
	}
}
