package analysis

import (
	"path"
	"strings"
)

// pyExpr reads one expression's tokens from left to right.
type pyExpr struct {
	p      *pyProgram
	tokens []pyToken
	i      int
}

func (p *pyProgram) evaluate(tokens []pyToken) pyValue {
	if len(tokens) == 0 || !p.enter() {
		return anything()
	}
	defer p.leave()
	e := &pyExpr{p: p, tokens: tokens}
	v := e.list("")
	for e.i < len(tokens) { // what was no expression: go on behind it
		e.i++
		e.list("")
	}
	return v
}

func (e *pyExpr) peek() string {
	if e.i < len(e.tokens) && e.tokens[e.i].kind != pyString {
		return e.tokens[e.i].text
	}
	return ""
}

// list reads expressions with commas between, up to the closing bracket.
func (e *pyExpr) list(end string) pyValue {
	var items []pyValue
	commas := false
	for e.i < len(e.tokens) {
		if t := e.peek(); t != "" && t == end {
			break
		}
		before := e.i
		items = append(items, e.expr())
		if e.peek() == "," || e.peek() == ":" && end != "" {
			commas = true
			e.i++
			continue
		}
		if e.i == before || end == "" {
			break
		}
		if e.peek() != end && e.i < len(e.tokens) {
			if t := e.peek(); t == ")" || t == "]" || t == "}" {
				break
			}
			if e.i < len(e.tokens) && e.tokens[e.i].kind == pyOp {
				e.i++
			}
		}
	}
	if len(items) == 1 && !commas && end != "]" {
		return items[0]
	}
	return pyValue{code: code{text: unknown}, is: pyList, list: items}
}

// binary operators; the words are operators, too. All have one rank: what
// matters here are joined texts and the calls inside.
var pyBinary = set1("+ - * / % // ** | & ^ << >> == != < > <= >= @ and or in is not if else :=")

func (e *pyExpr) expr() pyValue {
	if !e.p.enter() {
		e.i = len(e.tokens)
		return anything()
	}
	defer e.p.leave()
	start := e.i
	v := e.operand()
	for e.i < len(e.tokens) {
		op := e.peek()
		if op == "for" || op == "async" { // comprehension
			e.comprehension()
			v = anything()
			continue
		}
		if !pyBinary[op] {
			break
		}
		e.i++
		if op == ":=" {
			at := e.i - 2
			v = e.operand()
			if at >= start && e.tokens[at].kind == pyName {
				e.p.vars[e.tokens[at].text] = v
			}
			continue
		}
		v = combine(op, v, e.operand())
	}
	if start < e.i {
		v.from, v.to = e.tokens[start].start, e.tokens[e.i-1].end
	}
	return v
}

func (e *pyExpr) comprehension() {
	for e.i < len(e.tokens) && e.peek() != "in" {
		t := e.tokens[e.i]
		if t.kind == pyName && t.text != "for" && t.text != "async" {
			e.p.vars[t.text] = anything()
		}
		e.i++
	}
	e.i++
	if e.i < len(e.tokens) {
		e.operand()
	}
}

// combine is the value of an operation where it can be told.
func combine(op string, a, b pyValue) pyValue {
	switch op {
	case "+":
		if a.is == pyList && b.is == pyList {
			return pyValue{code: code{text: unknown}, is: pyList, list: append(a.list[:len(a.list):len(a.list)], b.list...)}
		}
		if a.is == "" && b.is == "" && len(a.text)+len(b.text) < maxValue {
			return pyValue{code: concat(a.code, b.code)}
		}
		if a.is == "" && b.is == pyPath {
			return pyValue{code: concat(a.code, code{text: b.path})}
		}
	case "/":
		if a.is == pyPath {
			right := b.text
			if b.is == pyPath {
				right = b.path
			}
			return pyValue{code: code{text: unknown}, is: pyPath, path: pyJoin(a.path, right)}
		}
	case "%":
		if a.text != unknown && a.is == "" { // formatting: the text around stays
			return pyValue{code: formatted(a.code, b)}
		}
	case "if", "else", "or", "and":
		// Of the alternatives the first that is known stands for all.
		if a.is != "" || a.text != unknown {
			return a
		}
		return b
	}
	return anything()
}

func concat(a, b code) code {
	out := code{text: a.text + b.text, fixed: a.fixed, via: a.via}
	if a.fixed == nil {
		out.at = make([]int32, 0, len(out.text))
		for _, c := range []code{a, b} {
			for i := range len(c.text) {
				out.at = append(out.at, int32(c.span(i, i+1).Start))
			}
		}
	}
	return out
}

// formatted fills %s and %d with what is known.
func formatted(f code, v pyValue) code {
	values := v.list
	if v.is != pyList {
		values = []pyValue{v}
	}
	w := writer{src: f}
	for i := 0; i < len(f.text); i++ {
		if f.text[i] == '%' && i+1 < len(f.text) && f.text[i+1] != '%' {
			i++
			text := unknown
			if len(values) > 0 {
				text = values[0].asText()
				values = values[1:]
			}
			w.text(text, i)
			continue
		}
		w.byte(f.text[i], i)
	}
	return w.code()
}

// asText is a value as text or path.
func (v pyValue) asText() string {
	if v.is == pyPath || v.is == pyTemp {
		return v.path
	}
	return v.text
}

func pyJoin(a, b string) string {
	if strings.HasPrefix(b, "/") || a == "" {
		return b
	}
	return strings.TrimSuffix(a, "/") + "/" + b
}

func (e *pyExpr) operand() pyValue {
	if e.peek() == "-" { // nobody here counts from the end
		for e.peek() == "-" {
			e.i++
		}
		e.operand()
		return anything()
	}
	for {
		switch e.peek() {
		case "not", "+", "~", "await", "*", "**", "yield", "from", "is", "in", "async":
			e.i++
			continue
		case "lambda":
			if c := topLevel(e.tokens[e.i+1:], ":"); c >= 0 {
				e.i += c + 2
				continue
			}
		}
		break
	}
	if e.i >= len(e.tokens) {
		return anything()
	}
	start := e.i
	v := e.atom()
	for e.i < len(e.tokens) {
		switch e.peek() {
		case ".":
			e.i++
			if e.i >= len(e.tokens) {
				return v
			}
			if e.tokens[e.i].kind == pyName {
				v = e.p.attribute(v, e.tokens[start:e.i], e.tokens[e.i].text)
			}
			e.i++
		case "(":
			e.i++
			args, named := e.arguments()
			v = e.p.callValue(v, args, named, e.p.src.span(e.tokens[start].start, e.tokens[e.i-1].end))
		case "[":
			e.i++
			index := e.list("]")
			e.i = min(e.i+1, len(e.tokens))
			v = e.p.item(v, index)
		default:
			return e.placed(v, start)
		}
		v = e.placed(v, start)
	}
	return v
}

// placed notes where the expression from the token at start to here stands.
func (e *pyExpr) placed(v pyValue, start int) pyValue {
	last := max(min(e.i, len(e.tokens))-1, start)
	return v.at(e.tokens[start].start, e.tokens[last].end)
}

func (v pyValue) at(from, to int) pyValue {
	v.from, v.to = from, to
	return v
}

func (e *pyExpr) atom() pyValue {
	t := e.tokens[e.i]
	switch t.kind {
	case pyString:
		w := writer{src: e.p.src}
		for e.i < len(e.tokens) && e.tokens[e.i].kind == pyString {
			e.p.text(&w, e.tokens[e.i])
			e.i++
		}
		return pyValue{code: w.code()}.at(t.start, e.tokens[e.i-1].end)
	case pyNumber:
		e.i++
		return pyValue{code: e.p.src.slice(t.start, t.end)}.at(t.start, t.end)
	case pyName:
		e.i++
		v, ok := e.p.vars[t.text]
		if f := e.p.funcs[t.text]; f != nil && !ok {
			// Handed over as a value it will be called by whoever gets it.
			if e.peek() != "(" && !f.called {
				e.p.invoke(f, nil, nil)
			}
			return pyValue{code: code{text: unknown}, name: "\x00def." + t.text}
		}
		if !ok {
			v = pyValue{code: code{text: unknown}, name: t.text}
		}
		return v.at(t.start, t.end)
	}
	close := map[string]string{"(": ")", "[": "]", "{": "}"}[t.text]
	if close == "" {
		return anything() // the caller goes on behind it
	}
	e.i++
	v := e.list(close)
	if e.peek() == close {
		e.i++
	}
	if close == "}" {
		v = anything()
	}
	return v
}

// text appends a string's value; an f-string's expressions are evaluated.
func (p *pyProgram) text(w *writer, t pyToken) {
	s := p.src.text
	for i := t.from; i < t.to; i++ {
		c := s[i]
		switch {
		case c == '\\' && !t.raw && i+1 < t.to:
			i++
			switch s[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case '\n':
				continue
			case '\\', '\'', '"':
				c = s[i]
			default:
				w.byte('\\', i-1)
				c = s[i]
			}
			w.byte(c, i)
		case t.f && c == '{' && i+1 < t.to && s[i+1] == '{', t.f && c == '}':
			i++
			w.byte(c, i)
		case t.f && c == '{':
			end, depth := i+1, 1
			for end < t.to && depth > 0 {
				switch s[end] {
				case '{':
					depth++
				case '}':
					depth--
				}
				end++
			}
			w.text(p.inside(i+1, max(i+1, end-1)), i)
			i = end - 1
		default:
			w.byte(c, i)
		}
	}
}

// inside evaluates the part of the source in an f-string's braces.
func (p *pyProgram) inside(from, to int) string {
	text := p.src.text[from:to]
	if i := strings.LastIndexAny(text, "!:"); i > 0 && !strings.ContainsAny(text[i:], ")]'\"") && !strings.HasPrefix(text[i:], "!=") {
		text = text[:i]
	}
	var tokens []pyToken
	for _, l := range pyLines(text) {
		for _, t := range l.tokens {
			t.start, t.end, t.from, t.to = t.start+from, t.end+from, t.from+from, t.to+from
			tokens = append(tokens, t)
		}
	}
	return p.evaluate(tokens).asText()
}

// arguments reads a call's arguments up to its closing bracket.
func (e *pyExpr) arguments() (args []pyValue, named map[string]pyValue) {
	named = map[string]pyValue{}
	for e.i < len(e.tokens) && e.peek() != ")" {
		before := e.i
		if e.i+1 < len(e.tokens) && e.tokens[e.i].kind == pyName && e.tokens[e.i+1].text == "=" && e.tokens[e.i+1].kind == pyOp {
			name := e.tokens[e.i].text
			e.i += 2
			named[name] = e.expr()
		} else {
			args = append(args, e.expr())
		}
		if e.peek() == "," || e.i == before {
			e.i++
		} else if e.i < len(e.tokens) && e.peek() != ")" {
			e.i++
		}
	}
	e.i = min(e.i+1, len(e.tokens))
	return args, named
}

func (p *pyProgram) attribute(v pyValue, tokens []pyToken, name string) pyValue {
	if len(tokens) == 2 && tokens[0].kind == pyName {
		if x, ok := p.vars[tokens[0].text+"."+name]; ok {
			return x
		}
	}
	switch v.is {
	case pyPath:
		switch name {
		case "parent":
			return pyValue{code: code{text: unknown}, is: pyPath, path: path.Dir(v.path)}
		case "name":
			return pyValue{code: code{text: path.Base(v.path), fixed: p.src.fixed}}
		}
	case pyTemp, pyFile:
		if name == "name" {
			return pyValue{code: code{text: v.path}}
		}
	}
	out := pyValue{code: code{text: unknown}, recv: &v, method: name}
	if v.name != "" {
		out.name = v.name + "." + name
	}
	return out
}

func (p *pyProgram) item(v, index pyValue) pyValue {
	n := -1
	if index.is == pyList && len(index.list) == 1 {
		index = index.list[0]
	}
	if len(index.text) == 1 && index.text[0] >= '0' && index.text[0] <= '9' {
		n = int(index.text[0] - '0')
	}
	if n >= 0 && n < len(v.list) {
		return v.list[n]
	}
	if v.name == "sys.argv" && n > 0 && n <= len(p.argv) {
		return pyValue{code: code{text: p.argv[n-1]}}
	}
	return anything()
}
