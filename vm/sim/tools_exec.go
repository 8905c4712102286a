package sim

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

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
