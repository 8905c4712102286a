package analysis

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds on one action's reading: statements and calls, depth of nested texts
// and functions, effects kept, rounds of one loop,
// length of a variable (doubling one costs a reader much more than a shell).
const (
	maxSteps    = 20000
	maxDepth    = 200
	maxEffects  = 200
	maxRounds   = 16
	maxVariable = 16 << 10
)

// reading follows one action's text.
type reading struct {
	mem      *memory
	effects  []Effect
	limit    int // length of the action's text
	steps    int
	depth    int
	degraded bool
	seen     map[effectKey]bool
}

type effectKey struct {
	sort   Sort
	target string
	span   Span
}

// spend takes one step of the budget; false ends the reading.
func (r *reading) spend() bool {
	r.steps++
	if r.steps > maxSteps {
		r.degraded = true
		return false
	}
	return true
}

// enter goes one level down; leave must be called when it says true.
func (r *reading) enter() bool {
	if r.depth >= maxDepth || !r.spend() {
		r.degraded = true
		return false
	}
	r.depth++
	return true
}

func (r *reading) leave() { r.depth-- }

// scope is the state of one shell.
type scope struct {
	vars   map[string]string
	cwd    string // unknown at first
	funcs  map[string]*function
	traps  []code
	assert bool // set -e: a failing test ends the script
}

type function struct {
	src    code
	body   *syntax.Stmt
	called bool
}

func newScope() *scope {
	// Agents are root in their machines (design section 1).
	return &scope{vars: map[string]string{"HOME": "/root", "USER": "root"}, cwd: unknown, funcs: map[string]*function{}}
}

func (s *scope) copy() *scope {
	c := *s
	c.vars, c.funcs = maps.Clone(s.vars), maps.Clone(s.funcs)
	c.traps = nil
	return &c
}

// shell follows one text of shell statements in one scope.
type shell struct {
	*reading
	src   code
	env   *scope
	quiet bool  // inside a condition: what is tested there is no assertion
	stdin *code // what the pipe brings, when known
	piped bool  // the output goes into another command
}

// run follows shell text to its end, traps included.
func (r *reading) run(c code, env *scope, stdin *code) {
	if !r.enter() {
		return
	}
	defer r.leave()
	chunks, whole := parse(c)
	if !whole {
		r.degraded = true
	}
	for _, p := range chunks {
		(&shell{reading: r, src: p.src, env: env, stdin: stdin}).list(p.stmts)
	}
	traps := env.traps
	env.traps = nil
	for _, t := range traps {
		r.run(t, env, nil)
	}
	if !whole {
		// The rest of the text, which would have called them, is missing.
		for _, name := range sortedKeys(env.funcs) {
			if f := env.funcs[name]; !f.called {
				r.call(f, env, nil)
			}
		}
	}
}

func (r *reading) call(f *function, env *scope, args []arg) {
	if !r.enter() {
		return
	}
	defer r.leave()
	f.called = true
	saved := map[string]string{}
	keys := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "@", "*", "#"}
	for _, k := range keys {
		if v, ok := env.vars[k]; ok {
			saved[k] = v
		}
		delete(env.vars, k)
	}
	var all []string
	for i, a := range args {
		if i < 9 {
			env.vars[keys[i]] = a.text
		}
		all = append(all, a.text)
	}
	if args != nil {
		env.vars["@"] = strings.Join(all, " ")
		env.vars["*"] = env.vars["@"]
	}
	(&shell{reading: r, src: f.src, env: env}).stmt(f.body)
	for _, k := range keys {
		delete(env.vars, k)
		if v, ok := saved[k]; ok {
			env.vars[k] = v
		}
	}
}

func (s *shell) list(stmts []*syntax.Stmt) {
	for _, st := range stmts {
		s.stmt(st)
	}
}

// with follows statements with another notion of what surrounds them.
func (s *shell) with(change func(*shell), stmts ...*syntax.Stmt) {
	c := *s
	change(&c)
	c.list(stmts)
}

func (s *shell) sub(stmts []*syntax.Stmt) {
	env := s.env.copy()
	s.with(func(c *shell) { c.env = env }, stmts...)
	for _, t := range env.traps {
		s.run(t, env, nil)
	}
}

func (s *shell) stmt(st *syntax.Stmt) {
	if st == nil || !s.enter() {
		return
	}
	defer s.leave()
	stdin := s.redirectsIn(st)
	if stdin == nil {
		stdin = s.stdin
	}
	c := *s
	c.stdin = stdin
	switch cmd := st.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		c.callExpr(st, cmd)
	case *syntax.BinaryCmd:
		c.binary(cmd)
	case *syntax.Block:
		c.list(cmd.Stmts)
	case *syntax.Subshell:
		c.sub(cmd.Stmts)
	case *syntax.IfClause:
		for cl := cmd; cl != nil; cl = cl.Else {
			c.with(func(x *shell) { x.quiet = true }, cl.Cond...)
			c.list(cl.Then)
		}
	case *syntax.WhileClause:
		c.with(func(x *shell) { x.quiet = true }, cmd.Cond...)
		c.list(cmd.Do)
	case *syntax.ForClause:
		c.loop(cmd)
	case *syntax.CaseClause:
		c.word(cmd.Word)
		for _, item := range cmd.Items {
			c.list(item.Stmts)
		}
	case *syntax.FuncDecl:
		if cmd.Name != nil {
			c.env.funcs[cmd.Name.Value] = &function{src: c.src, body: cmd.Body}
		}
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			c.assign(a)
		}
	case *syntax.TimeClause:
		c.stmt(cmd.Stmt)
	case *syntax.CoprocClause:
		c.stmt(cmd.Stmt)
	case *syntax.TestClause:
		c.testClause(cmd)
	default: // arithmetic, let, bats tests: nothing but expansions inside
		syntax.Walk(cmd, func(n syntax.Node) bool {
			if sub, ok := n.(*syntax.CmdSubst); ok {
				c.sub(sub.Stmts)
				return false
			}
			return true
		})
	}
	if st.Background {
		c.env.vars["!"] = background
	}
	s.redirectsOut(st)
}

func (s *shell) binary(cmd *syntax.BinaryCmd) {
	switch cmd.Op {
	case syntax.Pipe, syntax.PipeAll:
		s.with(func(x *shell) { x.piped = true; x.env = s.env.copy() }, cmd.X)
		out := s.output(cmd.X)
		s.with(func(x *shell) { x.stdin = out }, cmd.Y)
	default:
		// A long chain leans to the left; walking down it first keeps the
		// depth of the reading apart from the length of the chain.
		chain := []*syntax.BinaryCmd{cmd}
		for len(chain) < maxSteps {
			left, ok := chain[len(chain)-1].X.Cmd.(*syntax.BinaryCmd)
			if !ok || left.Op == syntax.Pipe || left.Op == syntax.PipeAll || len(chain[len(chain)-1].X.Redirs) > 0 {
				break
			}
			chain = append(chain, left)
		}
		for i := len(chain) - 1; i >= 0; i-- {
			link := chain[i]
			if i == len(chain)-1 {
				s.operand(link.X, link.Op)
			}
			op := syntax.BinCmdOperator(0)
			if i > 0 {
				op = chain[i-1].Op
			}
			s.operand(link.Y, op)
		}
	}
}

// operand follows a part of a chain; next is the operator behind it.
// `[ -f x ] && cat x` is a guard; `test "$a" = b && echo ok` tells.
func (s *shell) operand(st *syntax.Stmt, next syntax.BinCmdOperator) {
	s.with(func(x *shell) { x.quiet = x.quiet || next == syntax.AndStmt && unaryTest(st) }, st)
}

// loop follows the body once per item when the items are known and few, so that
// `for u in a b; do systemctl start $u; done` shows both units.
func (s *shell) loop(cmd *syntax.ForClause) {
	it, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		s.list(cmd.Do)
		return
	}
	var items []arg
	for _, w := range it.Items {
		items = append(items, s.words(w)...)
	}
	if len(items) == 0 || len(items) > maxRounds {
		items = []arg{{code: code{text: unknown}}}
	}
	for _, a := range items {
		s.env.vars[it.Name.Value] = a.text
		s.list(cmd.Do)
	}
}

func (s *shell) assign(a *syntax.Assign) {
	if a.Name == nil {
		if a.Value != nil {
			s.word(a.Value)
		}
		return
	}
	switch {
	case a.Array != nil:
		var all []string
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				for _, w := range s.words(e.Value) {
					all = append(all, w.text)
				}
			}
		}
		v := strings.Join(all, " ")
		if a.Append {
			v = s.env.vars[a.Name.Value] + " " + v
		}
		s.env.vars[a.Name.Value] = clip(v, maxVariable)
	case a.Value != nil:
		v := s.word(a.Value).text
		if a.Append {
			v = s.env.vars[a.Name.Value] + v
		}
		s.env.vars[a.Name.Value] = clip(v, maxVariable)
	case !a.Naked:
		s.env.vars[a.Name.Value] = ""
	}
}

// arg is one word of a command after expansion.
type arg struct {
	code
	from, to int // the word itself, in the shell text
}

// words expands one word to fields: braces, and a lone variable that holds
// several.
func (s *shell) words(w *syntax.Word) []arg {
	if len(w.Parts) == 1 {
		if _, ok := w.Parts[0].(*syntax.ParamExp); ok {
			a := s.word(w)
			return a.fields()
		}
		if q, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			if p, ok := q.Parts[0].(*syntax.ParamExp); ok && p.Param != nil &&
				(p.Param.Value == "@" || p.Index != nil) {
				a := s.word(w)
				return a.fields()
			}
		}
	}
	open := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			open += strings.Count(lit.Value, "{")
			if strings.Contains(lit.Value, "..") {
				open = 3 // a sequence may be endless
			}
		}
	}
	if open == 0 || open > 2 || len(w.Parts) > 20 {
		return []arg{s.word(w)}
	}
	var out []arg
	syntax.SplitBraces(w)
	for x, err := range expand.BracesSeq(nil, w) {
		if err != nil || len(out) == maxRounds {
			break
		}
		a := s.word(x)
		a.from, a.to = int(w.Pos().Offset()), int(w.End().Offset())
		out = append(out, a)
	}
	return out
}

func (a arg) fields() []arg {
	f := strings.Fields(a.text)
	if len(f) < 2 {
		return []arg{a}
	}
	var out []arg
	for _, t := range f {
		at := strings.Index(a.text, t)
		out = append(out, arg{a.code.slice(at, at+len(t)), a.from, a.to})
	}
	return out
}

// word expands one word to one field.
func (s *shell) word(w *syntax.Word) arg {
	out := writer{src: s.src}
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && (lit.Value == "~" || strings.HasPrefix(lit.Value, "~/")) {
			out.text("/root", int(lit.Pos().Offset()))
			s.literal(&out, lit.Value[1:], int(lit.Pos().Offset())+1, false)
			continue
		}
		s.part(&out, p, false)
	}
	return arg{out.code(), int(w.Pos().Offset()), int(w.End().Offset())}
}

func (s *shell) part(out *writer, p syntax.WordPart, quoted bool) {
	at := int(p.Pos().Offset())
	switch p := p.(type) {
	case *syntax.Lit:
		s.literal(out, p.Value, at, quoted)
	case *syntax.SglQuoted:
		if p.Dollar {
			ansiC(out, p.Value, at+2)
		} else {
			for i := range len(p.Value) {
				out.byte(p.Value[i], at+1+i)
			}
		}
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			s.part(out, q, true)
		}
	case *syntax.ParamExp:
		out.text(s.param(p), at)
	case *syntax.CmdSubst:
		s.sub(p.Stmts)
		out.text(s.substitution(p.Stmts), at)
	case *syntax.ProcSubst:
		s.sub(p.Stmts)
		out.text("/dev/fd/"+unknown, at)
	default: // arithmetic, extended globs
		out.text(unknown, at)
	}
}

// literal appends text, taking away the backslashes that the shell would.
func (s *shell) literal(out *writer, v string, at int, quoted bool) {
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && (!quoted || strings.IndexByte("$`\"\\", v[i+1]) >= 0) {
			i++
		}
		out.byte(v[i], at+i)
	}
}

func ansiC(out *writer, v string, at int) {
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '\\' && i+1 < len(v) {
			i++
			switch v[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			default:
				c = v[i]
			}
		}
		out.byte(c, at+i)
	}
}

func (s *shell) param(p *syntax.ParamExp) string {
	if p.Param == nil || p.Length || p.Excl || p.Slice != nil || p.Repl != nil {
		return unknown
	}
	v, ok := s.env.vars[p.Param.Value]
	switch {
	case p.Exp == nil || p.Exp.Word == nil:
	case !ok && (p.Exp.Op == syntax.DefaultUnset || p.Exp.Op == syntax.DefaultUnsetOrNull ||
		p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull):
		return s.word(p.Exp.Word).text
	case ok && (p.Exp.Op == syntax.RemSmallSuffix || p.Exp.Op == syntax.RemLargeSuffix):
		if suffix := s.word(p.Exp.Word).text; !hasGlob(suffix) {
			return strings.TrimSuffix(v, suffix)
		}
		return unknown
	case p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull:
	default:
		return unknown
	}
	switch {
	case ok:
		return v
	case p.Param.Value == "PWD":
		return s.env.cwd
	}
	return unknown
}
