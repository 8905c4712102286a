package analysis

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Commands that run other commands, interpreters, and programs of no table.

// wrapper says how the inner command is found: which options take a value, and
// how many words stand before it.
type wrapper struct {
	valued string
	long   []string
	words  int
}

var wrappers = map[string]wrapper{
	"sudo": {valued: "ugpCDhRrtT", long: []string{"user", "group", "chdir", "host"}}, "doas": {valued: "uC"},
	"nohup": {}, "setsid": {}, "time": {valued: "fo"}, "exec": {valued: "a"}, "command": {}, "builtin": {},
	"timeout": {valued: "ks", long: []string{"signal", "kill-after"}, words: 1},
	"nice":    {valued: "n", long: []string{"adjustment"}}, "ionice": {valued: "cnp"}, "chrt": {valued: "pTPD", words: 1},
	"taskset": {words: 1}, "stdbuf": {valued: "ioe"}, "unshare": {valued: "SGR"}, "nsenter": {valued: "tSG", long: []string{"target"}},
	"chroot": {words: 1}, "strace": {valued: "eopsuPIaOSX"}, "ltrace": {valued: "eopu"}, "busybox": {}, "unbuffer": {},
	"flock": {valued: "wEc", words: 1}, "watch": {valued: "nq"}, "xargs": {valued: "IinPLsdEa", long: []string{"max-args", "max-procs", "replace", "delimiter"}},
	"parallel": {valued: "jN"}, "setpriv": {long: []string{"reuid", "regid"}}, "prlimit": {}, "runuser": {valued: "ugGsc", long: []string{"user", "command"}},
	"systemd-inhibit": {}, "systemd-cat": {valued: "tp"}, "firejail": {}, "torsocks": {}, "faketime": {words: 1}, "script": {valued: "c", words: 9},
	"chpst": {valued: "ue"}, "caffeinate": {}, "dbus-run-session": {}, "coproc": {}, "noglob": {}, "eatmydata": {},
}

func wrap(c *call) {
	w := wrappers[c.name]
	if c.name == "command" && len(c.args) > 0 && (c.args[0].text == "-v" || c.args[0].text == "-V") {
		return // asks where a program is
	}
	_, opts := getopt(leading(c.args, w), w.valued, w.long...)
	if script, ok := opts["c"]; ok && strings.Contains(w.valued, "c") && c.name != "ionice" {
		c.run(script.code, newScope(), c.stdin)
		return
	}
	words := w.words
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		switch {
		case t == "--":
			c.inner(c.args[i+1:])
			return
		case len(t) > 1 && t[0] == '-':
			name, _, has := strings.Cut(strings.TrimLeft(t, "-"), "=")
			if strings.HasPrefix(t, "--") && !has && slices.Contains(w.long, name) ||
				len(t) == 2 && strings.IndexByte(w.valued, t[1]) >= 0 {
				i++
			}
		case (c.name == "sudo" || c.name == "doas") && strings.Contains(t, "=") && !strings.Contains(t, "/"):
		case words > 0:
			words--
		default:
			c.inner(c.args[i:])
			return
		}
	}
}

// leading is the part of the words that holds the wrapper's own options.
func leading(args []arg, w wrapper) []arg {
	for i := 0; i < len(args); i++ {
		t := args[i].text
		if len(t) < 2 || t[0] != '-' || t == "--" {
			return args[:i]
		}
		if len(t) == 2 && strings.IndexByte(w.valued, t[1]) >= 0 {
			i++
		}
	}
	return args
}

func (c *call) inner(args []arg) {
	if len(args) == 0 {
		return
	}
	s := *c.shell
	switch c.name {
	case "xargs", "parallel": // what it is given is unknown
		args = append(slices.Clone(args), arg{code{text: unknown}, args[len(args)-1].from, args[len(args)-1].to})
		s.stdin = nil
	case "watch":
		c.run(args[0].code, newScope(), nil)
		return
	case "setsid", "nohup":
		if c.background || c.name == "setsid" {
			s.command(args, true)
			return
		}
	}
	s.command(args, c.background)
}

func env(c *call) {
	args := c.args
	for len(args) > 0 {
		t := args[0].text
		switch {
		case t == "-u" || t == "-C" || t == "--unset" || t == "--chdir":
			args = args[min(2, len(args)):]
		case t == "-S" && len(args) > 1:
			c.run(args[1].code, newScope(), c.stdin)
			return
		case strings.HasPrefix(t, "-") || strings.Contains(t, "="):
			args = args[1:]
		default:
			c.inner(args)
			return
		}
	}
}

// shellProgram is sh, bash and their kin.
func shellProgram(c *call) {
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		switch {
		case strings.HasPrefix(t, "--"):
		case t == "-" || t == "-s":
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			if strings.Contains(t, "n") && t != "-norc" && t[0] == '-' && !strings.Contains(t, "c") {
				c.add(SyntaxChecked, "")
				return
			}
			if strings.Contains(t, "c") && t[0] == '-' {
				if i+1 < len(c.args) {
					e := newScope()
					e.cwd = c.env.cwd
					for j, a := range c.args[i+2:] {
						if j < 10 {
							e.vars[string(rune('0'+j))] = a.text
						}
					}
					c.run(c.args[i+1].code, e, c.stdin)
				}
				return
			}
			if t == "-o" || t == "+o" || t == "-O" {
				i++
			}
		default:
			c.script1(c.args[i], "sh", c.args[i+1:])
			return
		}
	}
	if c.stdin != nil {
		c.unknownInput()
		e := newScope()
		e.cwd = c.env.cwd
		c.run(*c.stdin, e, nil)
	}
}

// unknownInput notes a program whose text nobody sees (`curl … | sh`).
func (c *call) unknownInput() {
	if c.stdin != nil && c.stdin.text == unknown {
		c.add(ProgramRun, "")
	}
}

// script1 runs a script file: followed when its text is known, else a program.
func (c *call) script1(file arg, language string, args []arg) {
	p := c.resolve(file.text)
	text, known := c.shell.script(p)
	if c.background {
		c.add(ProcessStarted, p)
	} else {
		c.add(ProgramRun, p)
	}
	if !known || !c.enter() {
		return
	}
	defer c.leave()
	src := code{text: text, fixed: &c.at, via: p}
	switch {
	case language == "python" || language == "" && shebang(text) == "python":
		c.python(src, texts0(args))
	case language == "sh" || language == "" && (shebang(text) == "sh" || shebang(text) == "bash"):
		e := newScope()
		e.cwd = c.env.cwd
		for i, a := range args {
			if i < 9 {
				e.vars[string(rune('1'+i))] = a.text
			}
		}
		c.run(src, e, c.stdin)
	}
}

func texts0(args []arg) []string {
	var out []string
	for _, a := range args {
		out = append(out, a.text)
	}
	return out
}

// shebang is the interpreter that the first line of a program names, or "".
func shebang(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "#!") {
		return ""
	}
	words := strings.Fields(line[2:])
	for i, w := range words {
		name := program(w)
		if name == "env" && i+1 < len(words) {
			continue
		}
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		if name == "dash" || name == "ash" || name == "zsh" || name == "ksh" {
			return "sh"
		}
		return name
	}
	return ""
}

func source(c *call) {
	if len(c.args) == 0 {
		return
	}
	if text, ok := c.shell.script(c.resolve(c.args[0].text)); ok {
		c.run(code{text: text, fixed: &c.at, via: c.resolve(c.args[0].text)}, c.env, nil)
	}
}

func eval(c *call) {
	if len(c.args) == 0 {
		return
	}
	w := writer{src: c.src}
	for i, a := range c.args {
		if i > 0 {
			w.byte(' ', a.from)
		}
		a.appendTo(&w)
	}
	c.run(w.code(), c.env, c.stdin)
}

func trap(c *call) {
	if len(c.args) > 1 && c.args[0].text != "-" && c.args[0].text != "" && !strings.HasPrefix(c.args[0].text, "-") {
		c.env.traps = append(c.env.traps, c.args[0].code)
	}
}

func cd(c *call) {
	ops, _ := getopt(c.args, "")
	switch {
	case len(ops) == 0:
		c.env.cwd = "/root"
	case c.name == "popd" || ops[0].text == "-":
		c.env.cwd = unknown
	default:
		c.env.cwd = c.resolve(ops[0].text)
	}
}

func read(c *call) {
	ops, _ := getopt(c.args, "dinNptu")
	for _, a := range ops {
		delete(c.env.vars, a.text)
	}
}

func set(c *call) {
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "e") {
			c.env.assert = true
		}
	}
}

func su(c *call) {
	_, opts := getopt(c.args, "csgGw", "command", "shell", "group")
	for _, k := range []string{"c", "command"} {
		if a, ok := opts[k]; ok {
			c.run(a.code, newScope(), c.stdin)
		}
	}
}

// ssh runs what follows the host there; whatever the host, it is the agent's.
func ssh(c *call) {
	valued := "bcDEeFIiJLlmOopQRSWw"
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		if len(t) > 1 && t[0] == '-' {
			if len(t) == 2 && strings.IndexByte(valued, t[1]) >= 0 {
				i++
			}
			continue
		}
		rest := c.args[i+1:]
		if len(rest) > 0 {
			w := writer{src: c.src}
			for j, a := range rest {
				if j > 0 {
					w.byte(' ', a.from)
				}
				a.appendTo(&w)
			}
			c.run(w.code(), newScope(), c.stdin)
		} else if c.stdin != nil {
			c.run(*c.stdin, newScope(), nil)
		}
		return
	}
}

func python(c *call) {
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		switch {
		case strings.HasPrefix(t, "-") && len(t) > 1 && t[1] != '-' && strings.HasSuffix(t, "c"):
			if i+1 < len(c.args) {
				c.started(ProgramRun, "")
				c.python(c.args[i+1].code, texts0(c.args[i+2:]))
			}
			return
		case t == "-m":
			if i+1 < len(c.args) {
				c.module(c.args[i+1].text, c.args[i+2:])
			}
			return
		case t == "-W" || t == "-X":
			i++
		case t == "-":
			c.started(ProgramRun, "")
			if c.stdin != nil {
				c.python(*c.stdin, texts0(c.args[i+1:]))
			}
			return
		case strings.HasPrefix(t, "-"):
		default:
			c.script1(c.args[i], "python", c.args[i+1:])
			return
		}
	}
	c.started(ProgramRun, "")
	if c.stdin != nil {
		c.python(*c.stdin, nil)
	}
}

// started is sort, or a started process when the command goes on behind it.
func (c *call) started(sort Sort, target string) {
	if c.background {
		sort = ProcessStarted
	}
	c.add(sort, target)
}

func (c *call) module(name string, args []arg) {
	c.sub = name
	switch name {
	case "py_compile", "compileall", "pyflakes", "mypy", "flake8", "pylint", "json.tool":
		if name != "json.tool" {
			c.add(SyntaxChecked, "")
		}
	case "pytest", "unittest", "doctest":
		c.add(TestRun, "")
	case "pip", "ensurepip":
		inner := append([]arg{{code{text: "pip"}, 0, 0}}, args...)
		inner[0].from, inner[0].to = c.bounds()
		c.command(inner, false)
	case "venv", "virtualenv":
		for _, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				c.file(DirectoryCreated, a)
			}
		}
	default:
		c.started(ProgramRun, "")
	}
}

func (c *call) bounds() (from, to int) {
	if len(c.args) == 0 {
		return 0, 0
	}
	return c.args[0].from, c.args[len(c.args)-1].to
}

// otherLanguage is an interpreter whose code is not followed: only what its
// command line tells.
func otherLanguage(c *call) {
	inPlace := false
	for i, a := range c.args {
		t := a.text
		if c.name == "perl" || c.name == "ruby" {
			if len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.Contains(t, "i") && !strings.HasPrefix(t, "-M") && !strings.HasPrefix(t, "-I") {
				inPlace = true
			}
		}
		if len(t) > 1 && t[0] == '-' && strings.HasSuffix(t, "e") || t == "-c" && c.name == "node" || t == "--eval" {
			if inPlace {
				for _, f := range c.args[min(i+2, len(c.args)):] {
					c.file(FileWritten, f)
				}
				return
			}
			if t == "-c" {
				c.add(SyntaxChecked, "")
				return
			}
			c.started(ProgramRun, "")
			if i+1 < len(c.args) {
				c.foreign(c.args[i+1].code)
			}
			return
		}
		if !strings.HasPrefix(t, "-") {
			c.script1(a, c.name, nil)
			return
		}
	}
	if c.stdin != nil {
		c.started(ProgramRun, "")
		c.foreign(*c.stdin)
	}
}

// program judges a command that no table knows.
func (c *call) program() {
	if strings.HasPrefix(c.word, "/etc/init.d/") && len(c.args) > 0 {
		c.initScript(path.Base(c.word), c.args[0].text)
		return
	}
	if strings.Contains(c.word, "/") {
		c.script1(arg{code{text: c.word}, 0, 0}, "", c.args)
		return
	}
	if c.background {
		c.add(ProcessStarted, c.word)
		return
	}
	c.add(ProgramRun, c.word)
}

// unaryTest tells whether a statement only asks what a file or word is.
func unaryTest(st *syntax.Stmt) bool {
	switch cmd := st.Cmd.(type) {
	case *syntax.TestClause:
		_, unary := cmd.X.(*syntax.UnaryTest)
		return unary
	case *syntax.CallExpr:
		if len(cmd.Args) < 3 {
			return false
		}
		name, op := cmd.Args[0].Lit(), cmd.Args[1].Lit()
		if op == "!" {
			op = cmd.Args[2].Lit()
		}
		return (name == "[" || name == "test") && len(op) == 2 && op[0] == '-'
	}
	return false
}

func (s *shell) testClause(t *syntax.TestClause) {
	syntax.Walk(t.X, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			s.word(w)
			return false
		}
		return true
	})
	if !s.quiet {
		s.note(Asserted, "", "test", s.src.span(int(t.Pos().Offset()), int(t.End().Offset())))
	}
}

func test(c *call) {
	if !c.quiet && len(c.args) > 1 {
		c.add(Asserted, "")
	}
}
