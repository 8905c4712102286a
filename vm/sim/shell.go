package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The interpreter reaches the host in a few places that no handler covers.
// Each is closed here:
//
//   - Process substitution makes a FIFO in a temporary directory: its name
//     holds a NUL byte, which no system call takes (noPath).
//   - source, type, command -v and pwd -P look at the host's files before or
//     instead of asking a handler: the call handler rewrites them (onCall).
//   - ~name asks the host's user database: the environment answers first.
//   - Dir stats the host's directory: it is set on the Runner instead.

// noPath is absolute and can name nothing on any host.
const noPath = "/\x00"

// askPrefix marks a command that onCall made up.
const askPrefix = "\x00ask-"

// shellEnv is a runner's first environment.
type shellEnv struct{ vars map[string]string }

func (e shellEnv) Get(name string) expand.Variable {
	v, ok := e.vars[name]
	if home, asks := strings.CutPrefix(name, "HOME "); asks {
		v, ok = "~"+home, true
		if home == "root" {
			v = "/root"
		}
	}
	if !ok {
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Exported: name != pidVar && name != ppidVar, Kind: expand.String, Str: v}
}

func (e shellEnv) Each(f func(string, expand.Variable) bool) {
	for k := range e.vars {
		if !f(k, e.Get(k)) {
			return
		}
	}
}

// environment is what a login or a service starts with.
func (b *boot) environment() map[string]string {
	return map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
	}
}

// command runs argv as the agent does: as root, in /, without a shell. It fails
// only when the boot is over.
func (b *boot) command(ctx context.Context, argv []string, stdin []byte, out, errw io.Writer) (int, error) {
	if len(argv) == 0 {
		return 0, errors.New("empty command")
	}
	var in *os.File
	if stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		in = r
		var feeding sync.WaitGroup
		defer feeding.Wait()
		defer r.Close()
		feeding.Go(func() {
			_, _ = w.Write(stdin)
			w.Close()
		})
	}
	p, err := b.newProcess(b.ctx, processSpec{args: argv, env: b.environment(), stdin: in, out: out, err: errw})
	if err != nil {
		return 0, err
	}
	unleash := context.AfterFunc(ctx, func() { p.signal(syscall.SIGKILL) })
	defer unleash()
	code := p.b.execute(p)
	p.finish(code)
	return code, nil
}

// lookPath finds an executable in the guest, with the shell's exit status when
// there is none.
func (p *Process) lookPath(name string) (string, int) {
	if strings.Contains(name, "/") {
		return p.executable(p.Path(name))
	}
	worst := 127
	for _, dir := range strings.Split(p.env["PATH"], ":") {
		if dir == "" {
			dir = p.Dir
		}
		at, code := p.executable(path.Join(dir, name))
		if code == 0 {
			return at, 0
		}
		worst = min(worst, code)
	}
	return "", worst
}

func (p *Process) executable(at string) (string, int) {
	st, err := p.b.fs.Stat(at)
	switch {
	case err != nil:
		return "", 127
	case st.IsDir() || st.Mode()&0o111 == 0:
		return "", 126
	}
	return at, 0
}

// execute runs the command line of p to its end and returns its exit status.
func (b *boot) execute(p *Process) int {
	if b.m.gate.wait(p.ctx) != nil {
		return p.signalled()
	}
	at, code := p.lookPath(p.Args[0])
	if code != 0 {
		if p.unit != "" {
			p.Logf("%s: Failed at step EXEC: %s", p.Args[0], map[int]string{127: "No such file or directory", 126: "Permission denied"}[code])
			return 203
		}
		p.Logf("%s: %s", p.Args[0], map[int]string{127: "command not found", 126: "Permission denied"}[code])
		return code
	}
	return b.executeFile(p, at, 0)
}

// executeFile runs the file at the path at as the kernel would.
func (b *boot) executeFile(p *Process, at string, depth int) int {
	data, err := b.fs.ReadFile(at)
	if err != nil {
		p.Logf("%s: %v", p.Args[0], err)
		return 126
	}
	if name, ok := bytes.CutPrefix(data, []byte(toolMagic)); ok {
		tool := tools[strings.TrimSpace(string(name))]
		if tool == nil {
			return 126
		}
		return p.runTool(tool)
	}
	if name, ok := bytes.CutPrefix(data, []byte(programMagic)); ok {
		if f := builtinPrograms[strings.TrimSpace(string(name))]; f != nil {
			return p.runProgram(f)
		}
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	interpreter := ""
	if rest, ok := bytes.CutPrefix(line, []byte("#!")); ok {
		f := strings.Fields(string(rest))
		if len(f) > 1 && path.Base(f[0]) == "env" {
			f = f[1:]
		}
		if len(f) > 0 {
			interpreter = path.Base(f[0])
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return 0
	}
	switch interpreter {
	case "sh", "bash", "dash":
		return p.runScript(string(data), at, p.Args[1:])
	}
	if program := b.program(at); program != nil {
		return p.runProgram(program)
	}
	if interpreter == "" {
		if bytes.IndexByte(line, 0) >= 0 {
			p.Logf("%s: cannot execute binary file: Exec format error", p.Args[0])
			return 126
		}
		return p.runScript(string(data), at, p.Args[1:])
	}
	p.Logf("%s: this simulated machine has no %s and no program registered for %s", p.Args[0], interpreter, at)
	return 126
}

// program is the Program registered for a guest path, links resolved.
func (b *boot) program(at string) Program {
	real, err := b.fs.Real(at)
	if err != nil {
		return nil
	}
	if f := b.m.cl.d.cfg.Programs[real]; f != nil {
		return f
	}
	if st, err := b.fs.Lstat(at); err == nil && st.Mode()&fs.ModeSymlink == 0 {
		return b.m.cl.d.cfg.Programs[path.Clean(at)]
	}
	return nil
}

func (p *Process) runScript(src, name string, params []string) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(src), name)
	if err != nil {
		p.Logf("%v", err)
		return 2
	}
	r, err := p.runner(params)
	if err != nil {
		p.Logf("%v", err)
		return 126
	}
	p.adopt(file)
	return p.status(r.Run(p.ctx, file))
}

// The names under which a runner keeps its process ids.
const pidVar, ppidVar = "_SIM_PID", "_SIM_PPID"

// adopt prepares a parsed command for p's shell: $$ and $PPID, for which the
// interpreter has the host's numbers, become the guest's.
func (p *Process) adopt(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if n.Background || n.Disown {
				p.lingers.Store(true)
			}
		case *syntax.ParamExp:
			if n.Param == nil {
				break
			}
			if name := map[string]string{"$": pidVar, "PPID": ppidVar}[n.Param.Value]; name != "" {
				n.Param = &syntax.Lit{ValuePos: n.Param.ValuePos, ValueEnd: n.Param.ValueEnd, Value: name}
			}
		}
		return true
	})
}

// status is the exit status that a runner's error stands for.
func (p *Process) status(err error) int {
	var exit interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case p.ctx.Err() != nil:
		return p.signalled()
	}
	p.Logf("%v", err)
	return 1
}

// runner is a shell in the process p.
func (p *Process) runner(params []string) (*interp.Runner, error) {
	env := maps.Clone(p.env)
	if env == nil {
		env = map[string]string{}
	}
	env["UID"], env["EUID"], env["GID"] = "0", "0", "0"
	if _, ok := env["HOME"]; !ok {
		env["HOME"] = "/root"
	}
	env[pidVar], env[ppidVar] = strconv.Itoa(p.pid), strconv.Itoa(p.ppid())
	first := maps.Clone(env)
	first["TMPDIR"] = noPath
	// Background commands write side by side with the foreground.
	out, errw := &syncWriter{w: p.Stdout}, &syncWriter{w: p.Stderr}
	var stdout, stderr io.Writer = out, errw
	if f, ok := p.Stdout.(*os.File); ok {
		stdout = f
	}
	if f, ok := p.Stderr.(*os.File); ok {
		stderr = f
	} else if p.Stdout == p.Stderr {
		stderr = stdout
	}
	var stdin io.Reader
	if p.stdin != nil {
		stdin = p.stdin
	}
	r, err := interp.New(
		interp.Dir("/"),
		interp.Env(shellEnv{first}),
		interp.Params(append([]string{"--"}, params...)...),
		interp.StdIO(stdin, stdout, stderr),
		interp.CallHandler(p.onCall),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return p.onExec }),
		interp.OpenHandler(p.onOpen),
		interp.ReadDirHandler2(p.onReadDir),
		interp.StatHandler(p.onStat),
		interp.AccessHandler(p.onAccess),
	)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	r.Reset() // takes noPath as the place of its FIFOs, once
	if err := interp.Env(shellEnv{env})(r); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	r.Reset()
	if p.Dir != "/" {
		r.Dir = p.Dir
		// The first statement must see it; Reset would take the first Dir again.
		if err := r.Run(p.ctx, cdNode(p.Dir)); err != nil {
			return nil, fmt.Errorf("shell: cannot enter %s: %w", p.Dir, err)
		}
	}
	return r, nil
}

func cdNode(dir string) syntax.Node {
	lit := func(s string) *syntax.Word {
		return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: s}}}
	}
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{lit("cd"), lit(dir)}}}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 4096 {
		t.buf = slices.Clone(t.buf[len(t.buf)-4096:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
