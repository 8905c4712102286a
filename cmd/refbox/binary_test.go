package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"refbox/vm/image"
	"refbox/vm/qemu"
	"refbox/vm/vmtest"
)

// binary is the program as it is shipped, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "refbox-binary")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "refbox")
	out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return name, nil
})

// built says that the binary was asked for.
var built atomic.Bool

// tests removes the binary after the last test.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	if built.Load() {
		if name, err := binary(); err == nil {
			os.RemoveAll(filepath.Dir(name))
		}
	}
	return code
}

// box is a user's refbox: the binary, and folders of its own.
type box struct {
	t       testing.TB
	program string
	root    string       // everything but the runtime folder
	runtime string       // short, for its sockets
	cache   string       // the user's, for real machines
	others  map[int]bool // machines that ran before a box for real ones; nil in other boxes
	env     map[string]string
}

func newBox(t testing.TB) *box {
	t.Helper()
	built.Store(true)
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := os.MkdirTemp("", "rb")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, program: program, root: t.TempDir(), runtime: runtime}
	b.env = map[string]string{
		"PATH": os.Getenv("PATH"), "LANG": "C.UTF-8", "TERM": "xterm-256color",
		"HOME": b.path("home"), "XDG_CACHE_HOME": b.path("cache"), "XDG_DATA_HOME": b.path("data"),
		"XDG_STATE_HOME": b.path("state"), "XDG_RUNTIME_DIR": runtime, "TMPDIR": b.path("tmp"),
	}
	for _, dir := range []string{"home", "tmp"} {
		if err := os.Mkdir(b.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, pid := range b.processes() { // a failed test leaves nothing either
			if b.owns(fmt.Sprintf("/proc/%d", pid)) { // a machine that is not known by more may be somebody else's
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		os.RemoveAll(runtime)
	})
	return b
}

// realBox is a box for real machines, whose images and prepared states are the
// user's, and whose heats have a folder of their own. Other tests that run real machines wait until the test has ended.
func realBox(t testing.TB) *box {
	t.Helper()
	cache := vmtest.Host(t, qemu.Needs())
	b := newBox(t)
	b.others = map[int]bool{}
	for _, pid := range qemus() {
		b.others[pid] = true
	}
	b.cache = cache
	b.linked(b.path("cache"), "image", "accel", "templates")
	if _, err := image.Cached(cache, nil); errors.Is(err, fs.ErrNotExist) {
		if missing := image.Missing(); len(missing) > 0 {
			t.Skipf("there is no guest image, and this host lacks %v to build it", missing)
		}
		if p := b.run(10*time.Minute, "image", "build"); p.code != 0 {
			t.Fatalf("image build exits with %d\n%s", p.code, p.errors)
		}
	}
	return b
}

// unprepared gives the box a cache of its own that has the user's image and no
// prepared state.
func (b *box) unprepared(cache string) {
	b.t.Helper()
	b.linked(cache, "image", "accel")
}

// linked gives the box a cache of its own that shares folders with the user's.
func (b *box) linked(cache string, names ...string) {
	b.t.Helper()
	for _, name := range names {
		theirs := filepath.Join(b.cache, name)
		err := errors.Join(os.MkdirAll(theirs, 0o700), os.MkdirAll(filepath.Join(cache, "refbox"), 0o755),
			os.Symlink(theirs, filepath.Join(cache, "refbox", name)))
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.env["XDG_CACHE_HOME"] = cache
}

func (b *box) path(elem ...string) string { return filepath.Join(append([]string{b.root}, elem...)...) }

func (b *box) environ() []string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(b.env)) {
		env = append(env, k+"="+b.env[k])
	}
	return env
}

func (b *box) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.program, args...)
	cmd.Env, cmd.Dir = b.environ(), b.root
	return cmd
}

// process is a run of refbox.
type process struct {
	b      *box
	cmd    *exec.Cmd
	output *feed // standard output
	errors *feed // standard error
	ended  chan struct{}
	code   int           // after ended
	took   time.Duration // the same
}

// start runs refbox in the background, in a process group of its own.
func (b *box) start(args ...string) *process {
	b.t.Helper()
	p := &process{b: b, cmd: b.command(args...), output: newFeed(), errors: newFeed(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.errors
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 5 * time.Second
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
		p.code, p.took = p.cmd.ProcessState.ExitCode(), time.Since(began)
		p.output.close()
		p.errors.close()
	}()
	b.t.Cleanup(func() {
		p.cmd.Process.Kill() //nolint:errcheck // fails when it has ended
		<-p.ended
	})
	return p
}

// run runs refbox to its end.
func (b *box) run(limit time.Duration, args ...string) *process {
	b.t.Helper()
	p := b.start(args...)
	p.wait(limit)
	return p
}

// wait waits for the end and fails when it does not come.
func (p *process) wait(limit time.Duration) {
	p.b.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.b.t.Fatalf("refbox %v still runs after %v\n%s%s", p.cmd.Args[1:], limit, p.output, p.errors)
	}
}

// signal sends a signal and says how long refbox took to end.
func (p *process) signal(s syscall.Signal, limit time.Duration) time.Duration {
	p.b.t.Helper()
	at := time.Now()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.b.t.Fatal(err)
	}
	p.wait(limit)
	return time.Since(at)
}

// until waits for words on an output.
func (p *process) until(f *feed, words string, limit time.Duration) {
	p.b.t.Helper()
	ctx, stop := context.WithTimeout(p.b.t.Context(), limit)
	defer stop()
	if !f.until(ctx, words) {
		p.b.t.Fatalf("refbox %v does not say %q\n%s%s", p.cmd.Args[1:], words, p.output, p.errors)
	}
}

// feed keeps what is written, and tells those who wait for something in it.
type feed struct {
	mu    sync.Mutex
	data  []byte
	over  bool
	grown chan struct{} // closed and replaced with each change
}

func newFeed() *feed { return &feed{grown: make(chan struct{})} }

func (f *feed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.grown)
	f.grown = make(chan struct{})
}

func (f *feed) Write(p []byte) (int, error) {
	f.change(func() { f.data = append(f.data, p...) })
	return len(p), nil
}

func (f *feed) close() { f.change(func() { f.over = true }) }

func (f *feed) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.data)
}

func (f *feed) until(ctx context.Context, words string) bool {
	for {
		f.mu.Lock()
		found, over, grown := bytes.Contains(f.data, []byte(words)), f.over, f.grown
		f.mu.Unlock()
		if found || over {
			return found
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}

// processes are those of this box: refbox itself and what it started, known by
// their environment, by a file of the box that they have open, or, as machines
// have neither, by being a machine that did not run before the box.
func (b *box) processes() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !b.owns(dir) {
			continue
		}
		out = append(out, pid)
	}
	if b.others != nil {
		for _, pid := range qemus() {
			if !b.others[pid] && !slices.Contains(out, pid) {
				out = append(out, pid)
			}
		}
	}
	return out
}

// qemus are all machines of refbox's on this host.
func qemus() (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(dir + "/cmdline") // a zombie's is empty
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && bytes.Contains(line, []byte("\x00-name\x00refbox-")) {
			out = append(out, pid)
		}
	}
	return out
}

func (b *box) owns(proc string) bool {
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return false
	}
	if _, after, ok := strings.Cut(string(stat), ") "); !ok || strings.HasPrefix(after, "Z") {
		return false // a zombie holds nothing; its parent takes it away
	}
	ours := func(s string) bool { return strings.Contains(s, b.root) || strings.Contains(s, b.runtime) }
	if env, err := os.ReadFile(proc + "/environ"); err == nil && ours(string(env)) {
		return true
	}
	fds, _ := filepath.Glob(proc + "/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && ours(to) {
			return true
		}
	}
	return false
}

// machines are the QEMU processes of this box.
func (b *box) machines() []int {
	return slices.DeleteFunc(b.processes(), func(pid int) bool {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return !strings.HasPrefix(string(comm), "qemu-system")
	})
}

// listening are the inodes of the TCP sockets that the box's processes listen on.
func (b *box) listening() map[string]bool {
	all := listeners()
	out := map[string]bool{}
	for _, pid := range b.processes() {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			to, _ := os.Readlink(fd)
			if inode, ok := strings.CutPrefix(to, "socket:["); ok && all[strings.TrimSuffix(inode, "]")] {
				out[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return out
}

// listeners are the inodes of all TCP sockets that listen.
func listeners() map[string]bool {
	out := map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(name)
		for _, l := range strings.Split(string(data), "\n") {
			if f := strings.Fields(l); len(f) > 9 && f[3] == "0A" {
				out[f[9]] = true
			}
		}
	}
	return out
}

// gone waits until no process of the box is left.
func (b *box) gone(limit time.Duration) {
	b.t.Helper()
	end := time.Now().Add(limit)
	for {
		left := b.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			for _, pid := range left {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				b.t.Errorf("process %d is left after %v: %.300q", pid, limit, line)
			}
			return
		}
		time.Sleep(20 * time.Millisecond) // nobody tells of other processes' ends
	}
}

// nothingLeft checks that an ended refbox left nothing but its recordings, its
// log and its cache.
func (b *box) nothingLeft() {
	b.t.Helper()
	b.gone(2 * time.Second)
	for _, name := range append(b.ofHeats(), inFolder(b.path("tmp"))...) {
		b.t.Errorf("%s is left", name)
	}
	b.noHalves()
}

// ofHeats are what running heats have in the runtime folder and in that for disks,
// and what dead ones left there.
func (b *box) ofHeats() []string {
	return append(inFolder(filepath.Join(b.runtime, "refbox")), inFolder(filepath.Join(b.env["XDG_CACHE_HOME"], "refbox", "heats"))...)
}

func inFolder(dir string) []string {
	out := filesBelow(dir)
	for i := range out {
		out[i] = filepath.Join(dir, out[i])
	}
	return out
}

// noHalves checks that nothing half-made is in the cache or a recording.
func (b *box) noHalves() {
	b.t.Helper()
	for _, dir := range []string{b.root, b.env["XDG_CACHE_HOME"], filepath.Join(b.cache, "refbox", "image"), filepath.Join(b.cache, "refbox", "templates")} {
		for _, name := range filesBelow(dir) {
			base := filepath.Base(name)
			if home, _, half := strings.Cut(base, ".tmp-"); half && locked(filepath.Join(dir, filepath.Dir(name), home+".lock")) {
				continue // another process's: the user's cache is shared
			}
			building := strings.HasPrefix(base, "building-")
			if building && locked(filepath.Join(dir, filepath.Dir(name), ".lock")) {
				continue
			}
			if building || strings.Contains(base, ".tmp-") {
				b.t.Errorf("%s is left half-made", filepath.Join(dir, name))
			}
		}
	}
}

// locked says that a process holds a lock file.
func locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

func filesBelow(dir string) []string {
	var out []string
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { //nolint:errcheck // a folder that is not there has no files
		if err == nil && path != dir {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return nil
	})
	return out
}

// readable checks that a recording opens and holds, and says where it stopped
// when it was cut off.
func (b *box) readable(dir string, cut bool) {
	b.t.Helper()
	v := b.run(30*time.Second, "verify", dir)
	if v.code != 0 {
		b.t.Errorf("verify exits with %d\n%s%s", v.code, v.output, v.errors)
	}
	if cut && !strings.Contains(v.output.String(), "stopped: ") {
		b.t.Errorf("verify does not say where the heat stopped:\n%s", v.output)
	}
	for _, args := range [][]string{{"why", dir}, {"replay", dir, "--headless"}} {
		p := b.run(30*time.Second, args...)
		if p.code != 0 {
			b.t.Errorf("refbox %v exits with %d\n%s%s", args, p.code, p.output, p.errors)
		}
		if s := p.output.String(); cut && args[0] == "why" && !strings.Contains(s, "cut off: ") && !strings.Contains(s, "no seat has an outcome") {
			b.t.Errorf("why does not say that the recording is cut off:\n%s", s)
		}
	}
}

// says checks an exit code and words on standard error.
func (p *process) says(code int, words ...string) {
	p.b.t.Helper()
	if p.code != code {
		p.b.t.Errorf("refbox %v exits with %d, not %d\n%s%s", p.cmd.Args[1:], p.code, code, p.output, p.errors)
	}
	for _, w := range words {
		if !strings.Contains(p.errors.String(), w) {
			p.b.t.Errorf("refbox %v does not say %q:\n%s", p.cmd.Args[1:], w, p.errors)
		}
	}
}

// times reads how often something is repeated.
func times(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q; it is a number", variable, v)
	}
	return n
}
