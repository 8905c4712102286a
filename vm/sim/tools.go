package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
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
		"dirname": toolDirname, "dmesg": toolNothing, "du": toolDu, "env": toolEnv, "expr": toolExpr, "fallocate": toolFallocate, "false": toolFalse,
		"find": toolFind, "free": toolFree, "grep": toolGrep, "halt": toolPower, "head": toolHead,
		"hostname": toolHostname, "id": toolID, "install": toolInstall, "journalctl": toolJournalctl,
		"kill": toolKill, "ln": toolLn, "ls": toolLs, "md5sum": toolSum, "mkdir": toolMkdir, "mktemp": toolMktemp,
		"mv": toolMv, "nohup": toolNohup, "nproc": toolNproc, "pgrep": toolPgrep, "ping": toolPing, "pkill": toolPgrep,
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
