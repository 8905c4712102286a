package sim

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// toolMagic begins the files of the commands that are Go functions; the
// command's name follows. A copy of such a file under another name stays that
// command, a changed one is none.
const toolMagic = "\x7fELF\x02sim:"

// programMagic begins the files of builtinPrograms.
const programMagic = "\x7fELF\x02sim-program:"

// tool is a command. Its standard streams are those of p, bounded by p's
// context: in, out and errw.
type tool func(t *run) int

// run is one execution of a tool.
type run struct {
	*Process
	args []string // without the command itself
	in   io.Reader
	out  io.Writer
	errw io.Writer
}

// shellTools are commands that the shell has built in and that also exist as
// files.
var shellTools = []string{"echo", "printf", "test", "["}

var tools map[string]tool

func init() { // init breaks the cycle tools → sh → execute → tools
	tools = map[string]tool{
		"arch": fixed("x86_64"), "base64": toolBase64, "basename": toolBasename, "bash": toolSh, "cat": toolCat,
		"chgrp": toolNothing, "chmod": toolChmod, "chown": toolNothing, "clear": toolNothing, "cmp": toolCmp,
		"cp": toolCp, "curl": toolCurl, "cut": toolCut, "dash": toolSh, "date": toolDate, "df": toolDf, "diff": toolDiff,
		"dirname": toolDirname, "dmesg": toolNothing, "du": toolDu, "env": toolEnv, "expr": toolExpr, "false": toolFalse,
		"find": toolFind, "free": toolFree, "grep": toolGrep, "halt": toolPower, "head": toolHead,
		"hostname": toolHostname, "id": toolID, "install": toolInstall, "journalctl": toolJournalctl,
		"kill": toolKill, "ln": toolLn, "ls": toolLs, "md5sum": toolSum, "mkdir": toolMkdir, "mktemp": toolMktemp,
		"mv": toolMv, "nohup": toolNohup, "nproc": toolNproc, "pgrep": toolPgrep, "pkill": toolPgrep,
		"poweroff": toolPower, "ps": toolPs, "pwd": toolPwd, "python3": toolPython, "readlink": toolReadlink,
		"realpath": toolReadlink, "reboot": toolPower, "rm": toolRm, "rmdir": toolRmdir, "sed": toolSed,
		"seq": toolSeq, "setsid": toolNohup, "sh": toolSh, "sha256sum": toolSum, "shutdown": toolPower,
		"sleep": toolSleep, "sort": toolSort, "ss": toolSs, "stat": toolStat, "sync": toolSync,
		"systemctl": toolSystemctl, "systemd-cat": toolNohup, "tail": toolTail, "tee": toolTee, "timeout": toolTimeout,
		"touch": toolTouch, "tr": toolTr, "true": toolNothing, "uname": toolUname, "uniq": toolUniq,
		"uptime": toolUptime, "wc": toolWc, "which": toolWhich, "whoami": fixed("root"), "xargs": toolXargs,
		"echo": toolShell, "printf": toolShell, "test": toolShell, "[": toolShell, "tac": toolTac, "yes": toolYes,
		"chpasswd": toolChpasswd, "od": toolOd, "fsync": toolSync,
	}
}

// runTool runs a tool as this process.
func (p *Process) runTool(f tool) int {
	out := &pipeEnd{p: p, w: p.Stdout}
	t := &run{Process: p, args: p.Args[1:], in: strings.NewReader(""), out: out, errw: &pipeEnd{p: p, w: p.Stderr}}
	if p.stdin != nil {
		t.in = p.stdin
		defer endWith(p.ctx, p.stdin.SetReadDeadline)()
	}
	if w, ok := p.Stdout.(*os.File); ok {
		defer endWith(p.ctx, w.SetWriteDeadline)()
	}
	code := f(t)
	if p.ctx.Err() != nil {
		return p.signalled()
	}
	if code == 0 && out.err != nil {
		return t.fail(1, "write error: %s", errText(out.err))
	}
	return code
}

// endWith makes a blocked read or write end with ctx. The returned release lets
// the next user of the file go on.
func endWith(ctx context.Context, setDeadline func(time.Time) error) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = setDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done
			_ = setDeadline(time.Time{})
		}
	}
}

// pipeEnd ends a tool that writes where nobody reads, as SIGPIPE does.
type pipeEnd struct {
	p   *Process
	w   io.Writer
	err error // of a write that failed for another reason: a full disk
}

func (e *pipeEnd) Write(b []byte) (int, error) {
	if err := e.p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := e.w.Write(b)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.err = err
	case err != nil:
		e.p.cancel(killed{syscall.SIGPIPE})
	}
	return n, err
}

func (t *run) printf(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// fail prints a complaint and returns status.
func (t *run) fail(status int, format string, args ...any) int {
	fmt.Fprintf(t.errw, t.name()+": "+format+"\n", args...)
	return status
}

// errText is an error without Go's operation and path.
func errText(err error) string {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			break
		}
		err = u.Unwrap()
	}
	s := err.Error()
	if s != "" {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// flags splits the arguments into options and operands. withArg names the short
// options that take an argument; long options take theirs after "=", or from
// the next word when withArg holds "--name ". Unknown options are kept: a tool
// ignores what it does not know.
func (t *run) flags(withArg string) (map[string]string, []string) {
	opts := map[string]string{}
	var rest []string
	args := t.args
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return opts, append(rest, args[i+1:]...)
		case strings.HasPrefix(a, "--"):
			k, v, ok := strings.Cut(a[2:], "=")
			if !ok && strings.Contains(withArg, "--"+k+" ") && i+1 < len(args) {
				i++
				v = args[i]
			}
			opts[k] = v
		case len(a) > 1 && a[0] == '-':
		letters:
			for j := 1; j < len(a); j++ {
				c := string(a[j])
				if !strings.Contains(strings.SplitN(withArg, "--", 2)[0], c) {
					opts[c] = ""
					continue
				}
				switch {
				case j+1 < len(a):
					opts[c] = a[j+1:]
				case i+1 < len(args):
					i++
					opts[c] = args[i]
				default:
					opts[c] = ""
				}
				break letters
			}
		default:
			rest = append(rest, a)
		}
	}
	return opts, rest
}

func has(opts map[string]string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := opts[n]; return ok })
}

// open opens a guest file; a device's content never ends.
func (b *boot) open(name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if st, err := b.fs.Stat(name); err == nil {
		switch st.Special() {
		case "zero":
			return device{zeroes{}}, nil
		case "random":
			return device{randomBytes{}}, nil
		case "null", "tty":
			return device{strings.NewReader("")}, nil
		case "console":
			return device{consoleDevice{b}}, nil
		}
	}
	f, err := b.fs.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// inputs calls f for each named file, "-" and nothing being standard input, and
// returns 1 when one could not be read.
func (t *run) inputs(names []string, f func(name string, r io.Reader)) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, n := range names {
		if n == "-" {
			f(n, t.in)
			continue
		}
		st, err := t.b.fs.Stat(t.Path(n))
		if err == nil && st.IsDir() {
			code = t.fail(1, "%s: Is a directory", n)
			continue
		}
		r, err := t.b.open(t.Path(n), os.O_RDONLY, 0)
		if err != nil {
			code = t.fail(1, "%s: %s", n, errText(err))
			continue
		}
		f(n, r)
	}
	return code
}

// lines reads all lines of the named files.
func (t *run) lines(names []string) ([]string, int) {
	var all []string
	code := t.inputs(names, func(_ string, r io.Reader) {
		sc := newScanner(r)
		for sc.Scan() {
			all = append(all, sc.Text())
		}
	})
	return all, code
}

func newScanner(r io.Reader) *bufio.Scanner {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	return sc
}

func toolNothing(*run) int { return 0 }
func toolFalse(*run) int   { return 1 }

func fixed(s string) tool {
	return func(t *run) int { t.printf("%s\n", s); return 0 }
}

// toolShell is echo, printf or test run as a file, by the agent or a unit.
func toolShell(t *run) int {
	words := append([]string{t.name()}, t.args...)
	call := &syntax.CallExpr{}
	for _, w := range words {
		call.Args = append(call.Args, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: w}}})
	}
	r, err := t.runner(nil)
	if err != nil {
		return t.fail(126, "%v", err)
	}
	return t.status(r.Run(t.ctx, &syntax.Stmt{Cmd: call}))
}

func toolSh(t *run) int {
	args := t.args
	var set []string
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
		case strings.HasPrefix(a, "--"):
			continue
		case strings.HasSuffix(a, "c") && a[0] == '-':
			for _, c := range a[1 : len(a)-1] {
				if c != 'l' && c != 'i' {
					set = append(set, "-"+string(c))
				}
			}
			if len(args) == 0 {
				return t.fail(2, "-c: option requires an argument")
			}
			src := args[0]
			name := t.Args[0]
			var params []string
			if len(args) > 1 {
				name, params = args[1], args[2:]
			}
			return t.runScript(prelude(set)+src, name, params)
		case a == "-o" && len(args) > 0:
			set = append(set, "-o", args[0])
			args = args[1:]
		case a == "-s" || a == "-l" || a == "-i":
		default:
			set = append(set, a)
		}
	}
	if len(args) == 0 {
		return t.interactive(nil, nil)
	}
	data, err := t.b.fs.ReadFile(t.Path(args[0]))
	if err != nil {
		return t.fail(127, "%s: %s", args[0], errText(err))
	}
	if bytes.HasPrefix(data, []byte(toolMagic)) {
		return t.fail(126, "%s: cannot execute binary file", args[0])
	}
	return t.runScript(prelude(set)+string(data), args[0], args[1:])
}

func prelude(set []string) string {
	if len(set) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("set")
	for _, w := range set {
		s.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	s.WriteString("\n")
	return s.String()
}

// toolPython runs the program registered for a script.
func toolPython(t *run) int {
	args := t.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-c" && args[0] != "-m" && args[0] != "-" {
		args = args[1:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return t.fail(1, "this simulated machine runs only scripts that a program is registered for")
	}
	at := t.Path(args[0])
	if _, err := t.b.fs.ReadFile(at); err != nil {
		return t.fail(2, "can't open file '%s': [Errno 2] No such file or directory", args[0])
	}
	program := t.b.program(at)
	if program == nil {
		return t.fail(1, "this simulated machine has no program registered for %s", at)
	}
	t.Args = args
	return t.runProgram(program)
}

// inner runs another command in this process's place.
func (t *run) inner(args []string) int {
	if len(args) == 0 {
		return t.fail(125, "missing operand")
	}
	t.Process.Args = args
	return t.b.execute(t.Process)
}

func toolNohup(t *run) int {
	_, rest := leading(t.args)
	return t.inner(rest)
}

// leading splits options before the first operand from what follows.
func leading(args []string) (opts, rest []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

func toolEnv(t *run) int {
	args := t.args
	env := map[string]string{}
	for k, v := range t.env {
		env[k] = v
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-i":
			env = map[string]string{}
		case args[0] == "-u" && len(args) > 1:
			delete(env, args[1])
			args = args[1:]
		}
		args = args[1:]
	}
	for len(args) > 0 {
		k, v, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		env[k] = v
		args = args[1:]
	}
	t.env = env
	if len(args) > 0 {
		return t.inner(args)
	}
	for _, k := range sortedKeys(env) {
		t.printf("%s=%s\n", k, env[k])
	}
	return 0
}

func toolTimeout(t *run) int {
	_, rest := leading(t.args)
	if len(rest) < 2 {
		return t.fail(125, "missing operand")
	}
	d, ok := seconds(rest[0])
	if !ok {
		return t.fail(125, "invalid time interval '%s'", rest[0])
	}
	p, err := t.b.newProcess(t.ctx, processSpec{args: rest[1:], dir: t.Dir, env: t.env, stdin: t.stdin, out: t.Stdout, err: t.Stderr, parent: t.Process})
	if err != nil {
		return t.fail(125, "%v", err)
	}
	hit := make(chan struct{})
	stop := time.AfterFunc(d, func() { close(hit); p.signal(15) })
	p.finish(t.b.execute(p))
	stop.Stop()
	select {
	case <-hit:
		return 124
	default:
		return p.exit
	}
}

func seconds(s string) (time.Duration, bool) {
	if s == "infinity" {
		return 1<<63 - 1, true
	}
	if s != "" && strings.IndexByte("0123456789.", s[len(s)-1]) >= 0 {
		s += "s"
	}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		d, err := time.ParseDuration(n + "h")
		return d * 24, err == nil
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

func toolSleep(t *run) int {
	total := time.Duration(0)
	for _, a := range t.args {
		d, ok := seconds(a)
		if !ok {
			return t.fail(1, "invalid time interval '%s'", a)
		}
		total += d
	}
	_ = sleep(t.ctx, total)
	return 0
}

func toolXargs(t *run) int {
	opts, rest := leading(t.args)
	one := slices.Contains(opts, "-n1") || slices.Contains(opts, "-0n1")
	if i := slices.Index(opts, "-n"); i >= 0 && len(rest) > 0 {
		one = rest[0] == "1"
		rest = rest[1:]
	}
	data, _ := io.ReadAll(io.LimitReader(t.in, 1<<20))
	words := strings.Fields(string(data))
	if slices.Contains(opts, "-0") {
		words = strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 })
	}
	if len(rest) == 0 {
		rest = []string{"echo"}
	}
	if len(words) == 0 && slices.Contains(opts, "-r") {
		return 0
	}
	groups := [][]string{words}
	if one {
		groups = nil
		for _, w := range words {
			groups = append(groups, []string{w})
		}
	}
	code := 0
	for _, g := range groups {
		p, err := t.b.newProcess(t.ctx, processSpec{args: slices.Concat(rest, g), dir: t.Dir, env: t.env, out: t.Stdout, err: t.Stderr, parent: t.Process})
		if err != nil {
			return t.fail(126, "%v", err)
		}
		p.finish(t.b.execute(p))
		if p.exit != 0 {
			code = 123
		}
	}
	return code
}

// whatIs answers type and command -v, which the interpreter would answer from
// the host. It does not know functions and aliases.
func (p *Process) whatIs(which string, args []string) int {
	terse := which == "command"
	code := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			terse = terse || a == "-p" || a == "-P"
			continue
		}
		say := func(short, long string) {
			if terse {
				fmt.Fprintln(p.Stdout, short)
			} else {
				fmt.Fprintln(p.Stdout, a+" is "+long)
			}
		}
		switch at, missing := p.lookPath(a); {
		case syntax.IsKeyword(a):
			say(a, "a shell keyword")
		case interp.IsBuiltin(a):
			say(a, "a shell builtin")
		case missing == 0:
			say(at, at)
		default:
			if which == "type" {
				p.Logf("type: %s: not found", a)
			}
			code = 1
		}
	}
	return code
}

func toolWhich(t *run) int {
	code := 0
	_, rest := t.flags("")
	for _, a := range rest {
		if at, missing := t.lookPath(a); missing == 0 {
			t.printf("%s\n", path.Clean(at))
		} else {
			code = 1
		}
	}
	return code
}
