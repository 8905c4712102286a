package analysis

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one simple command about to be judged.
type call struct {
	*shell
	name       string // base name of the program, without version
	word       string // the program as written
	args       []arg
	at         Span
	background bool
	sub        string // verb of a command with verbs; shown beside the name
}

func (s *shell) callExpr(st *syntax.Stmt, cmd *syntax.CallExpr) {
	if len(cmd.Args) == 0 {
		for _, a := range cmd.Assigns {
			s.assign(a)
		}
		return
	}
	for _, a := range cmd.Assigns {
		if a.Value != nil {
			s.word(a.Value)
		}
	}
	var args []arg
	for _, w := range cmd.Args {
		args = append(args, s.words(w)...)
		if len(args) > 4096 {
			break
		}
	}
	s.command(args, st.Background)
}

// command judges a simple command: its first word is the program.
func (s *shell) command(args []arg, background bool) {
	if len(args) == 0 || !s.enter() {
		return
	}
	defer s.leave()
	word := args[0].text
	c := &call{shell: s, name: program(word), word: word, args: args[1:], background: background}
	c.at = s.src.span(args[0].from, args[len(args)-1].to)
	if f := s.env.funcs[word]; f != nil {
		s.reading.call(f, s.env, append([]arg{}, args[1:]...))
		return
	}
	if c.inert() {
		return
	}
	if h := handlers[c.name]; h != nil {
		h(c)
		return
	}
	if quietPrograms[c.name] {
		return
	}
	c.program()
}

var versioned = regexp.MustCompile(`^(python|pip|ruby|perl|node|php|lua|psql|pg_ctl|java|gcc|clang)[0-9]+([.][0-9]+)*$`)

// program is the base name of a command word, without a version.
func program(word string) string {
	name := path.Base(word)
	if m := versioned.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return name
}

// inert tells whether the command only prints help or its version, or was told
// to act as if.
func (c *call) inert() bool {
	for _, a := range c.args {
		switch a.text {
		case "--help", "--version", "--usage", "--dry-run", "--just-print", "--simulate", "--no-act":
			return true
		case "-h", "-V", "-v", "-version", "version", "help":
			if len(c.args) == 1 && !(c.name == "shutdown" || c.name == "halt" || c.name == "reboot") {
				return true
			}
		case "--":
			return false
		}
	}
	return false
}

// by names the command in an effect.
func (c *call) by() string {
	if c.sub != "" {
		return c.name + " " + c.sub
	}
	return c.name
}

// add notes an effect that the whole command shows.
func (c *call) add(sort Sort, target string) { c.note(sort, target, c.by(), c.at) }

// file notes an effect on the file that a word names.
func (c *call) file(sort Sort, a arg) {
	if a.text == "" || a.text == "-" {
		return
	}
	c.add(sort, c.resolve(a.text))
}

// resolve makes a path absolute where the working directory is known.
func (s *shell) resolve(p string) string { return join(s.env.cwd, p) }

// note adds an effect to the reading.
func (s *shell) note(sort Sort, target, by string, span Span) {
	s.reading.note(sort, target, by, span, s.src.via)
}

func (r *reading) note(sort Sort, target, by string, span Span, via string) {
	sort = r.special(sort, target)
	if sort == FileWritten && (sinks[target] || strings.HasPrefix(target, "/dev/fd/")) {
		return
	}
	e := Effect{Sort: sort, By: clip(by, 60), Span: span, Via: via, target: clip(target, 4096)}
	e.Span.End = min(max(e.Span.End, 0), r.limit)
	e.Span.Start = min(max(e.Span.Start, 0), e.Span.End)
	switch sort {
	case FileWritten, FileRemoved, DirectoryCreated, AttributesChanged, DataChanged, DataRead, DataDescribed, ProcessStarted, ProgramRun, MountChanged:
		e.Scratch = scratch(target)
	}
	key := effectKey{sort, e.target, e.Span}
	if r.seen[key] {
		return
	}
	if len(r.effects) >= maxEffects {
		// What was seen so far decides; a change must never be lost behind reads.
		if !(sort.Kind() == Mutation || sort.Kind() == Lifecycle) || len(r.effects) >= 2*maxEffects {
			r.degraded = true
			return
		}
	}
	r.seen[key] = true
	r.effects = append(r.effects, e)
}

// sinks keep nothing of what is written to them.
var sinks = set1("/dev/null /dev/zero /dev/full /dev/tty /dev/stdout /dev/stderr /dev/stdin")

// special knows the files that are no files: writing to them tells the kernel
// something.
func (r *reading) special(sort Sort, target string) Sort {
	if sort != FileWritten {
		return sort
	}
	switch {
	case target == "/proc/sysrq-trigger":
		return Reboot
	case strings.HasPrefix(target, "/proc/self/"):
		return sort
	case strings.HasPrefix(target, "/proc/sys/"), strings.HasPrefix(target, "/sys/"), strings.HasPrefix(target, "/proc/"):
		return KernelSetting
	}
	return sort
}

// redirectsIn finds what the statement reads: a here-document, a here-string, a
// file. A code whose text is unknown stands for input that cannot be told.
func (s *shell) redirectsIn(st *syntax.Stmt) *code {
	var in *code
	for _, r := range st.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc == nil {
				continue
			}
			out := writer{src: s.src}
			for _, p := range r.Hdoc.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok {
					s.part(&out, p, true)
					continue
				}
				// The value may lack the tabs and joined lines of the text;
				// positions are then those of the nearest byte before.
				at, end := int(lit.Pos().Offset()), int(lit.End().Offset())
				for i := range len(lit.Value) {
					out.byte(lit.Value[i], min(at+i, max(at, end-1)))
				}
			}
			c := out.code()
			in = &c
		case syntax.WordHdoc:
			c := s.word(r.Word).code
			in = &c
		case syntax.RdrIn, syntax.RdrInOut:
			p := s.resolve(s.word(r.Word).text)
			if text, ok := s.script(p); ok {
				at := s.src.span(int(r.Pos().Offset()), int(r.End().Offset()))
				in = &code{text: text, fixed: &at, via: p}
			} else {
				in = &code{text: unknown}
			}
		}
	}
	return in
}

// redirectsOut notes what the statement's output is written to.
func (s *shell) redirectsOut(st *syntax.Stmt) {
	for _, r := range st.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.RdrAllClob,
			syntax.AppAll, syntax.AppAllClob, syntax.RdrInOut:
		case syntax.DplOut:
			if t := s.word(r.Word).text; t == "-" || t == unknown || strings.Trim(t, "0123456789-") == "" {
				continue
			}
		default:
			continue
		}
		target := s.word(r.Word).text
		at := s.src.span(int(r.Pos().Offset()), int(r.End().Offset()))
		if strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/") {
			s.note(PortProbed, strings.Replace(target[9:], "/", ":", 1), "redirect", at)
			continue
		}
		if target == "" || r.Op == syntax.RdrInOut {
			continue
		}
		p := s.resolve(target)
		s.note(FileWritten, p, "redirect", at)
		if out := s.output(st); out != nil {
			s.wrote(p, out.text, r.Op == syntax.AppOut)
		}
	}
}

// output is what a statement prints, when that can be told without running it.
func (s *shell) output(st *syntax.Stmt) *code {
	whatever := &code{text: unknown}
	cmd, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(cmd.Args) == 0 || !s.enter() {
		if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) {
			return s.output(b.Y) // `cat <<EOF | tee f | cmd` keeps nothing: tee's own output is unknown
		}
		return whatever
	}
	defer s.leave()
	var args []arg
	for _, w := range cmd.Args {
		args = append(args, s.words(w)...)
	}
	out := writer{src: s.src}
	switch program(args[0].text) {
	case "echo":
		rest := args[1:]
		nl := true
		for len(rest) > 0 && (rest[0].text == "-n" || rest[0].text == "-e" || rest[0].text == "-ne") {
			nl = nl && rest[0].text == "-e"
			rest = rest[1:]
		}
		for i, a := range rest {
			if i > 0 {
				out.byte(' ', a.from)
			}
			a.appendTo(&out)
		}
		if nl {
			out.byte('\n', args[0].from)
		}
	case "printf":
		if len(args) < 2 {
			return whatever
		}
		format, rest := args[1], args[2:]
		for i := 0; i < len(format.text); i++ {
			ch := format.text[i]
			at := format.from
			switch {
			case ch == '%' && i+1 < len(format.text) && format.text[i+1] == '%':
				i++
				out.byte('%', at)
			case ch == '%' && i+1 < len(format.text):
				i++
				if len(rest) > 0 {
					rest[0].appendTo(&out)
					rest = rest[1:]
				} else {
					out.text(unknown, at)
				}
			case ch == '\\' && i+1 < len(format.text):
				i++
				switch format.text[i] {
				case 'n':
					out.byte('\n', at)
				case 't':
					out.byte('\t', at)
				default:
					out.byte(format.text[i], at)
				}
			default:
				out.byte(ch, at)
			}
		}
		for _, a := range rest { // the format is used again
			a.appendTo(&out)
			out.byte('\n', a.from)
		}
	case "cat":
		if len(args) == 1 || len(args) == 2 && args[1].text == "-" {
			if in := s.redirectsIn(st); in != nil {
				return in
			}
			return whatever
		}
		if text, ok := s.script(s.resolve(args[1].text)); ok && len(args) == 2 {
			at := s.src.span(args[0].from, args[1].to)
			return &code{text: text, fixed: &at, via: s.resolve(args[1].text)}
		}
		return whatever
	default:
		return whatever
	}
	c := out.code()
	return &c
}

// appendTo copies the word with its places.
func (a arg) appendTo(w *writer) {
	for i := range len(a.text) {
		if len(w.b) >= maxValue {
			return
		}
		w.b = append(w.b, a.text[i])
		w.at = append(w.at, int32(a.code.span(i, i+1).Start))
	}
}

// substitution is what $(…) yields, when that can be told.
func (s *shell) substitution(stmts []*syntax.Stmt) string {
	if len(stmts) != 1 {
		return unknown
	}
	cmd, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(cmd.Args) == 0 {
		return unknown
	}
	var args []arg
	for _, w := range cmd.Args {
		args = append(args, s.words(w)...)
	}
	last := args[len(args)-1].text
	switch name := program(args[0].text); name {
	case "mktemp":
		ops, opts := getopt(args[1:], "p", "tmpdir", "suffix")
		if dir, ok := opts["p"]; ok {
			return join(s.resolve(dir.text), temporary)
		}
		if dir, ok := opts["tmpdir"]; ok && dir.text != "" {
			return join(s.resolve(dir.text), temporary)
		}
		if _, inTmp := opts["t"]; len(ops) == 1 && !inTmp {
			if strings.Contains(ops[0].text, "/") {
				return s.resolve(path.Dir(ops[0].text)) + "/" + temporary
			}
			return s.resolve(temporary)
		}
		return "/tmp/" + temporary
	case "dirname":
		if len(args) == 2 && !strings.HasPrefix(last, unknown) {
			return path.Dir(last)
		}
	case "basename":
		if len(args) == 2 {
			return path.Base(last)
		}
	case "pwd":
		return s.env.cwd
	case "readlink", "realpath":
		if len(args) > 1 && strings.HasPrefix(last, "/") {
			return last // good enough for where it leads
		}
	case "echo", "printf", "cat":
		if out := s.output(stmts[0]); out != nil {
			return strings.TrimRight(out.text, "\n")
		}
	}
	return unknown
}

// getopt splits arguments into operands and options. valued lists the short
// options that take a value, long the long ones; an option's value is empty
// when it takes none. Operands and options may mix, as GNU programs allow.
func getopt(args []arg, valued string, long ...string) (operands []arg, options map[string]arg) {
	options = map[string]arg{}
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case t == "--":
			return append(operands, args[i+1:]...), options
		case strings.HasPrefix(t, "--"):
			name, _, has := strings.Cut(t[2:], "=")
			a := arg{}
			if has {
				at := len(name) + 3
				a = arg{args[i].code.slice(at, len(t)), args[i].from, args[i].to}
			} else if slices.Contains(long, name) && i+1 < len(args) {
				i++
				a = args[i]
			}
			options[name] = a
		case len(t) > 1 && t[0] == '-':
			for j := 1; j < len(t); j++ {
				if strings.IndexByte(valued, t[j]) < 0 {
					options[t[j:j+1]] = arg{}
					continue
				}
				if j+1 < len(t) {
					options[t[j:j+1]] = arg{args[i].code.slice(j+1, len(t)), args[i].from, args[i].to}
				} else if i+1 < len(args) {
					i++
					options[t[j:j+1]] = args[i]
				}
				break
			}
		default:
			operands = append(operands, args[i])
		}
	}
	return operands, options
}
