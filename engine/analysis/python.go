package analysis

import (
	"maps"
	"strings"
)

// Python is followed without types: names hold values where they are known,
// blocks are entered whatever their condition, functions are followed where
// they are called, with the arguments of the call.

// pyValue is what is known about a value.
type pyValue struct {
	code          // its text; unknown when it cannot be told
	is     string // what it is, beyond text: see the constants
	name   string // dotted name of a module, class or function of a library
	path   string // of a file, database, Path
	list   []pyValue
	method string // of recv
	recv   *pyValue
	from   int // where the expression stands in the source
	to     int
}

const (
	pyFile     = "file"
	pyPath     = "path"
	pyDatabase = "database"
	pyHTTP     = "http"
	pyRequest  = "request"
	pyTemp     = "temp"
	pyList     = "list"
)

func anything() pyValue { return pyValue{code: code{text: unknown}} }

// pyFunc is a function of the program.
type pyFunc struct {
	params []string
	lines  []pyLine
	inline []pyToken
	called bool
}

// pyProgram follows one program.
type pyProgram struct {
	*shell // for commands that the program runs
	src    code
	funcs  map[string]*pyFunc
	vars   map[string]pyValue // of the running function, globals underneath
	argv   []string
	cwd    string
	result pyValue
}

// python follows a program's text.
func (s *shell) python(c code, argv []string) {
	if !s.enter() {
		return
	}
	defer s.leave()
	if len(c.text) > maxShell {
		c = c.slice(0, maxShell)
		s.degraded = true
	}
	inner := *s
	inner.src = c
	inner.stdin, inner.quiet = nil, false
	p := &pyProgram{shell: &inner, src: c, funcs: map[string]*pyFunc{}, vars: map[string]pyValue{}, argv: argv, cwd: s.env.cwd}
	p.run(pyLines(c.text))
	if strings.HasSuffix(c.text, "…") || s.degraded {
		for _, name := range sortedKeys(p.funcs) { // the calls may have been cut off
			if f := p.funcs[name]; !f.called {
				p.invoke(f, nil, nil)
			}
		}
	}
}

func (p *pyProgram) run(lines []pyLine) {
	for i := 0; i < len(lines); {
		end := block(lines, i+1, lines[i].indent)
		p.line(lines[i], lines[i+1:end])
		i = end
	}
}

// line follows one logical line with the block below it.
func (p *pyProgram) line(l pyLine, body []pyLine) {
	if !p.enter() {
		return
	}
	defer p.leave()
	t := l.tokens
	if len(t) > 1 && t[0].text == "async" && t[0].kind == pyName {
		t = t[1:]
	}
	word := ""
	if t[0].kind == pyName {
		word = t[0].text
	}
	colon := -1
	switch word {
	case "def", "class", "for", "while", "if", "elif", "else", "with", "try", "except", "finally", "match", "case":
		colon = topLevel(t, ":")
	}
	if colon < 0 {
		for _, st := range split(t, ";") {
			p.statement(st)
		}
		p.run(body) // a stray indent, in text that was cut
		return
	}
	head, inline := t[1:colon], t[colon+1:]
	suite := func() {
		if len(inline) > 0 {
			for _, st := range split(inline, ";") {
				p.statement(st)
			}
		}
		p.run(body)
	}
	switch word {
	case "def":
		if len(head) == 0 || head[0].kind != pyName {
			return
		}
		p.funcs[head[0].text] = &pyFunc{params: parameters(head[1:]), lines: body, inline: inline}
	case "class":
		// Its methods are known by their names; nothing runs but the body.
		suite()
	case "for":
		in := topLevel(head, "in")
		if in < 0 {
			suite()
			return
		}
		items := p.evaluate(head[in+1:]).list
		if len(items) == 0 || len(items) > maxRounds {
			items = []pyValue{anything()}
		}
		for _, v := range items {
			p.assign(head[:in], v)
			suite()
		}
	case "with":
		if len(head) > 1 && head[0].text == "(" && head[len(head)-1].text == ")" && topLevel(head[1:len(head)-1], "as") >= 0 {
			head = head[1 : len(head)-1]
		}
		for _, item := range split(head, ",") {
			as := topLevel(item, "as")
			if as < 0 {
				p.evaluate(item)
				continue
			}
			p.assign(item[as+1:], p.evaluate(item[:as]))
		}
		suite()
	default:
		if len(head) > 0 && word != "except" {
			p.evaluate(head)
		}
		suite()
	}
}

// parameters are the names in a function's head, without self.
func parameters(head []pyToken) []string {
	if len(head) < 2 || head[0].text != "(" {
		return nil
	}
	end := topLevel(head[1:], ")")
	if end < 0 {
		return nil
	}
	var out []string
	for _, part := range split(head[1:1+end], ",") {
		for _, t := range part {
			if t.kind == pyName {
				if t.text != "self" && t.text != "cls" {
					out = append(out, t.text)
				}
				break
			}
		}
	}
	return out
}

func (p *pyProgram) statement(t []pyToken) {
	if len(t) == 0 || !p.spend() {
		return
	}
	span := p.src.span(t[0].start, t[len(t)-1].end)
	if t[0].kind == pyName {
		switch t[0].text {
		case "import":
			for _, item := range split(t[1:], ",") {
				p.imported("", item)
			}
			return
		case "from":
			if i := topLevel(t, "import"); i > 0 {
				module := joined(t[1:i])
				rest := t[i+1:]
				if len(rest) > 1 && rest[0].text == "(" {
					rest = rest[1:]
				}
				for _, item := range split(rest, ",") {
					p.imported(module, item)
				}
			}
			return
		case "assert":
			p.evaluate(t[1:])
			p.note(Asserted, "", "python assert", span)
			return
		case "raise":
			p.evaluate(t[1:])
			if len(t) > 1 && (t[1].text == "SystemExit" || t[1].text == "AssertionError" || t[1].text == "RuntimeError") {
				p.note(Asserted, "", "python raise", span)
			}
			return
		case "return":
			p.result = p.evaluate(t[1:])
			return
		case "pass", "break", "continue", "global", "nonlocal":
			return
		case "del", "yield", "await":
			p.evaluate(t[1:])
			return
		}
	}
	if t[0].text == "@" {
		return // decorator
	}
	if i := topLevel(t, "=", "+=", "-=", "*=", "/=", "|=", "%=", "//=", "&="); i > 0 {
		if t[i].text != "=" {
			left := p.evaluate(t[:i])
			right := p.evaluate(t[i+1:])
			p.assign(t[:i], combine(strings.TrimSuffix(t[i].text, "="), left, right))
			return
		}
		parts := split(t, "=")
		v := p.evaluate(parts[len(parts)-1])
		for _, target := range parts[:len(parts)-1] {
			if c := topLevel(target, ":"); c > 0 { // annotated
				target = target[:c]
			}
			p.assign(target, v)
		}
		return
	}
	p.evaluate(t)
}

// imported binds a name to the dotted name that it stands for.
func (p *pyProgram) imported(module string, item []pyToken) {
	if len(item) == 0 || item[0].kind != pyName {
		return
	}
	as := topLevel(item, "as")
	name := joined(item)
	if as > 0 {
		name = joined(item[:as])
	}
	name = strings.TrimSuffix(name, ")")
	full, bound := name, name
	if module != "" {
		full = module + "." + name
	} else if i := strings.IndexByte(name, '.'); i > 0 && as < 0 {
		full, bound = name[:i], name[:i]
	}
	if as > 0 && as+1 < len(item) {
		bound = item[as+1].text
	}
	p.vars[bound] = pyValue{code: code{text: unknown}, name: full}
}

func joined(t []pyToken) string {
	var b strings.Builder
	for _, x := range t {
		b.WriteString(x.text)
	}
	return b.String()
}

// assign binds names, apart from each other when there are several.
func (p *pyProgram) assign(target []pyToken, v pyValue) {
	for len(target) > 1 && (target[0].text == "(" || target[0].text == "[") {
		target = target[1:]
		if last := target[len(target)-1].text; last == ")" || last == "]" {
			target = target[:len(target)-1]
		}
	}
	if parts := split(target, ","); len(parts) > 1 {
		for i, part := range parts {
			e := anything()
			if i < len(v.list) {
				e = v.list[i]
			}
			p.assign(part, e)
		}
		return
	}
	if len(target) == 1 && target[0].kind == pyName {
		p.vars[target[0].text] = v
		return
	}
	// self.x = v is known as x of whatever object.
	if n := len(target); n == 3 && target[1].text == "." && target[0].kind == pyName {
		p.vars[target[0].text+"."+target[2].text] = v
	}
	if len(target) > 1 {
		p.evaluate(target)
	}
}

// invoke follows a function of the program with arguments.
func (p *pyProgram) invoke(f *pyFunc, args []pyValue, named map[string]pyValue) pyValue {
	if !p.enter() {
		return anything()
	}
	defer p.leave()
	f.called = true
	outer, result := p.vars, p.result
	p.vars = maps.Clone(outer)
	p.result = anything()
	for i, name := range f.params {
		v := anything()
		if i < len(args) {
			v = args[i]
		}
		if n, ok := named[name]; ok {
			v = n
		}
		p.vars[name] = v
	}
	for _, st := range split(f.inline, ";") {
		p.statement(st)
	}
	p.run(f.lines)
	out := p.result
	p.vars, p.result = outer, result
	return out
}
