package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Program is what runs when the guest executes the file that it is registered
// for (Config.Programs). It has the process's whole life: it returns when it is
// done, and soon after ctx ends, which is how it hears SIGTERM, SIGKILL and the
// end of the boot. Returning nil, or anything after SIGTERM, is a clean exit;
// Exit(n) is exit status n; any other error is printed and is exit status 1. A
// panic is exit status 134.
//
// A program keeps what it must not lose in files, through p, and nothing in
// package variables: many machines run it at once.
type Program func(ctx context.Context, p *Process) error

// Exit is the error with which a Program exits with a status.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// killed is the cause of a process context's end.
type killed struct{ sig syscall.Signal }

func (k killed) Error() string { return k.sig.String() }

// Process is a running program's handle on its machine. Its methods work until
// the process is killed; then files and network answer with errors.
type Process struct {
	// Args is the command line; Args[0] is the command as it was called.
	Args []string
	// Dir is the working directory, absolute.
	Dir string
	// Stdout and Stderr are the journal for a unit, else the terminal or pipe.
	Stdout, Stderr io.Writer

	b      *boot
	pid    int
	parent *Process // nil for those that systemd or the agent started
	env    map[string]string
	stdin  *os.File
	unit   string // of a service's own processes
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	dead   atomic.Bool
	// lingers: a shell's background commands outlive it, on its context.
	lingers atomic.Bool
	ready   chan struct{}
	once    sync.Once
	ended   chan struct{}
	exit    int // valid once ended is closed
}

// PID is the process id, unique in one boot.
func (p *Process) PID() int { return p.pid }

// Env is an environment variable, "" when unset.
func (p *Process) Env(name string) string { return p.env[name] }

// Unit is the systemd unit that the process belongs to, or "".
func (p *Process) Unit() string { return p.unit }

// Hostname is the machine's present hostname.
func (p *Process) Hostname() string { return p.b.hostname() }

// Stdin is the process's standard input; empty when it was given none.
func (p *Process) Stdin() io.Reader {
	if p.stdin == nil {
		return strings.NewReader("")
	}
	return p.stdin
}

// Ready tells systemd that a service of Type=notify is up. For other types it
// does nothing.
func (p *Process) Ready() { p.once.Do(func() { close(p.ready) }) }

// Logf prints a line on Stderr.
func (p *Process) Logf(format string, args ...any) { fmt.Fprintf(p.Stderr, format+"\n", args...) }

// files is the file system as long as the process may use it.
func (p *Process) files() error {
	if err := p.b.m.gate.wait(p.b.ctx); err != nil || p.dead.Load() {
		return os.ErrProcessDone
	}
	return nil
}

// Path makes a path absolute, from Dir.
func (p *Process) Path(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(p.Dir, "/") + "/" + name
}

// ReadFile reads a file whole. The caller must not change what it returns.
func (p *Process) ReadFile(name string) ([]byte, error) {
	if err := p.files(); err != nil {
		return nil, err
	}
	return p.b.fs.ReadFile(p.Path(name))
}

// WriteFile replaces a file's content in one step, making the file with perm
// when it is missing. It is not on disk before Sync or SyncFile.
func (p *Process) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.WriteFile(p.Path(name), data, perm)
}

// AppendFile adds to a file, making it with perm when it is missing.
func (p *Process) AppendFile(name string, data []byte, perm fs.FileMode) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.Append(p.Path(name), data, perm)
}

// Remove removes a file or an empty directory.
func (p *Process) Remove(name string) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.Remove(p.Path(name))
}

// Rename moves a file.
func (p *Process) Rename(from, to string) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.Rename(p.Path(from), p.Path(to))
}

// MkdirAll makes a directory and those above it.
func (p *Process) MkdirAll(name string, perm fs.FileMode) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.MkdirAll(p.Path(name), perm)
}

// Stat describes a file, following symbolic links.
func (p *Process) Stat(name string) (fs.FileInfo, error) {
	if err := p.files(); err != nil {
		return nil, err
	}
	return p.b.fs.Stat(p.Path(name))
}

// ReadDir lists a directory, sorted by name.
func (p *Process) ReadDir(name string) ([]fs.FileInfo, error) {
	if err := p.files(); err != nil {
		return nil, err
	}
	list, err := p.b.fs.ReadDir(p.Path(name))
	infos := make([]fs.FileInfo, len(list))
	for i, in := range list {
		infos[i] = in
	}
	return infos, err
}

// Sync puts everything on disk, beyond the reach of a power cut.
func (p *Process) Sync() error {
	if err := p.files(); err != nil {
		return err
	}
	p.b.fs.Sync()
	return nil
}

// SyncFile puts one file on disk.
func (p *Process) SyncFile(name string) error {
	if err := p.files(); err != nil {
		return err
	}
	return p.b.fs.SyncFile(p.Path(name))
}

// Listen opens a TCP port of the guest: ":8080", "127.0.0.1:8082", or a name
// from the guest's /etc/hosts. A taken port is syscall.EADDRINUSE. The listener
// closes with the process.
func (p *Process) Listen(addr string) (net.Listener, error) {
	if err := p.files(); err != nil {
		return nil, err
	}
	return p.b.listen(p, addr)
}

// Dial connects to a port of this machine, or of a linked one by name.
func (p *Process) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if err := p.files(); err != nil {
		return nil, err
	}
	return p.b.dial(ctx, addr)
}

// HTTP is a client that dials inside the cluster, keeps no connection between
// requests, follows no redirect, and has no timeout of its own.
func (p *Process) HTTP() *http.Client { return p.b.httpClient(p.ctx) }

// Serve opens addr, says Ready, and serves h until ctx ends; then it lets
// requests in flight finish for up to a second and returns nil.
func (p *Process) Serve(ctx context.Context, addr string, h http.Handler) error {
	l, err := p.Listen(addr)
	if err != nil {
		return err
	}
	var running tasks
	srv := &http.Server{
		ErrorLog:    quiet,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !running.add() {
				return
			}
			defer running.done()
			h.ServeHTTP(w, r)
		}),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	p.Ready()
	select {
	case err = <-served:
	case <-ctx.Done():
		grace := time.Second
		if p.dead.Load() {
			grace = 0
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		_ = srv.Shutdown(last)
		cancel()
		<-served
		err = nil
	}
	srv.Close()
	running.wait()
	return err
}

// signal sends the process a signal; those that end nothing are ignored, and
// what an ended shell left in the background is not the shell any more.
func (p *Process) signal(sig syscall.Signal) {
	select {
	case <-p.ended:
		return
	default:
	}
	switch sig {
	case 0, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGWINCH, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGURG:
		return
	case syscall.SIGKILL:
		p.dead.Store(true)
		p.closePorts()
	}
	p.cancel(killed{sig})
}

func (p *Process) closePorts() {
	p.b.mu.Lock()
	mine := slices.Clone(p.b.ports)
	p.b.mu.Unlock()
	for _, l := range mine {
		if l.proc == p {
			l.Close()
		}
	}
}

// ppid is the parent's pid as ps shows it.
func (p *Process) ppid() int {
	if p.parent == nil {
		return 1
	}
	return p.parent.pid
}

// name is the process's name as ps shows it.
func (p *Process) name() string {
	arg := p.Args[0]
	return arg[strings.LastIndexByte(arg, '/')+1:]
}

// processSpec says what a new process starts with.
type processSpec struct {
	args     []string
	dir      string
	env      map[string]string
	stdin    *os.File
	out, err io.Writer
	unit     string
	parent   *Process
}

// newProcess enters a process into the table; the caller runs it and calls
// finish. It fails when the boot is over or the table is full.
func (b *boot) newProcess(ctx context.Context, s processSpec) (*Process, error) {
	if s.dir == "" {
		s.dir = "/"
	}
	if s.out == nil {
		s.out = io.Discard
	}
	if s.err == nil {
		s.err = io.Discard
	}
	p := &Process{Args: s.args, Dir: s.dir, Stdout: s.out, Stderr: s.err, b: b, parent: s.parent,
		env: s.env, stdin: s.stdin, unit: s.unit, began: time.Now(),
		ready: make(chan struct{}), ended: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.procs) >= maxProcs {
		return nil, syscall.EAGAIN
	}
	if !b.tasks.add() {
		return nil, os.ErrProcessDone
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	b.lastPID++
	p.pid = b.lastPID
	b.procs[p.pid] = p
	return p, nil
}

func (p *Process) finish(code int) {
	p.exit = code
	p.closePorts()
	p.b.mu.Lock()
	delete(p.b.procs, p.pid)
	for _, o := range p.b.procs {
		if o.parent == p {
			p.lingers.Store(true)
		}
	}
	p.b.mu.Unlock()
	if !p.lingers.Load() {
		p.cancel(nil)
	} else if p.parent != nil {
		p.parent.lingers.Store(true)
	}
	close(p.ended)
	p.b.tasks.done()
}

// runProgram runs f in this process and returns its exit status.
func (p *Process) runProgram(f Program) (code int) {
	defer func() {
		if r := recover(); r != nil {
			p.Logf("%s: panic: %v\n%s", p.name(), r, debug.Stack())
			code = 134
		}
	}()
	err := f(p.ctx, p)
	var exit Exit
	switch {
	case p.ctx.Err() != nil:
		return p.signalled()
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	p.Logf("%s: %v", p.name(), err)
	return 1
}

// signalled is the exit status of a process whose context has ended.
func (p *Process) signalled() int {
	if k, ok := errors.AsType[killed](context.Cause(p.ctx)); ok {
		return 128 + int(k.sig)
	}
	return 128 + int(syscall.SIGTERM)
}

// processes are the running ones, by pid.
func (b *boot) processes() []*Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.procs), func(x, y *Process) int { return x.pid - y.pid })
}
