package analysis

import "strings"

// pyToken is one token of Python; strings carry what is inside the quotes.
type pyToken struct {
	kind       pyKind
	text       string // names, numbers, operators
	start, end int
	from, to   int // inside of a string
	raw, f     bool
}

type pyKind byte

const (
	pyName pyKind = iota
	pyNumber
	pyString
	pyOp
)

// pyLine is one logical line: brackets and backslashes join lines.
type pyLine struct {
	indent int
	tokens []pyToken
}

// pyLines splits Python. Whatever is unclosed ends with the text; whatever is no
// Python becomes operators that mean nothing.
func pyLines(s string) []pyLine {
	var lines []pyLine
	var cur pyLine
	depth, col, fresh := 0, 0, true
	flush := func() {
		if len(cur.tokens) > 0 {
			lines = append(lines, cur)
		}
		cur, col, fresh = pyLine{}, 0, true
	}
	add := func(t pyToken) {
		if fresh {
			cur.indent, fresh = col, false
		}
		cur.tokens = append(cur.tokens, t)
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\n':
			i++
			if depth == 0 {
				flush()
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			if c == '\t' {
				col = col/8*8 + 8
			} else {
				col++
			}
			i++
		case c == '#':
			i = until(s, i, "\n")
			if i > 0 && s[i-1] == '\n' {
				i--
			}
		case c == '\\' && i+1 < len(s) && (s[i+1] == '\n' || s[i+1] == '\r'):
			i += 2
		case c == '"' || c == '\'':
			t := pyStringAt(s, i, i)
			add(t)
			i = t.end
		case nameByte(c) && !(c >= '0' && c <= '9'):
			j := i
			for j < len(s) && nameByte(s[j]) {
				j++
			}
			word := s[i:j]
			if j < len(s) && (s[j] == '"' || s[j] == '\'') && len(word) <= 2 && strings.Trim(strings.ToLower(word), "rbuft") == "" {
				t := pyStringAt(s, i, j)
				t.raw = strings.ContainsAny(word, "rR")
				t.f = strings.ContainsAny(word, "fFtT")
				add(t)
				i = t.end
				continue
			}
			add(pyToken{kind: pyName, text: word, start: i, end: j})
			i = j
		case c >= '0' && c <= '9':
			j := i
			for j < len(s) && (nameByte(s[j]) || s[j] == '.') {
				j++
			}
			add(pyToken{kind: pyNumber, text: s[i:j], start: i, end: j})
			i = j
		default:
			n := 1
			for _, op := range []string{"**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "//", ":=", "<<", ">>"} {
				if strings.HasPrefix(s[i:], op) {
					n = len(op)
					break
				}
			}
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(depth-1, 0)
			}
			add(pyToken{kind: pyOp, text: s[i : i+n], start: i, end: i + n})
			i += n
		}
	}
	flush()
	return lines
}

func nameByte(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// pyStringAt reads the string whose prefix starts at start and quote at q.
func pyStringAt(s string, start, q int) pyToken {
	mark := s[q : q+1]
	if strings.HasPrefix(s[q:], strings.Repeat(mark, 3)) {
		mark = s[q : q+3]
	}
	i := q + len(mark)
	from := i
	for i < len(s) && !strings.HasPrefix(s[i:], mark) {
		if s[i] == '\n' && len(mark) == 1 {
			return pyToken{kind: pyString, start: start, end: i, from: from, to: i} // unclosed: ends with its line
		}
		if s[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(s))
	return pyToken{kind: pyString, start: start, end: min(i+len(mark), len(s)), from: from, to: i}
}

// block is the first line at or after i that is no longer deeper than indent.
func block(lines []pyLine, i, indent int) int {
	for i < len(lines) && lines[i].indent > indent {
		i++
	}
	return i
}

// topLevel is the index of the first token at bracket depth 0 that is one of
// ops, or -1. Inside lambda the colon is not a block's.
func topLevel(tokens []pyToken, ops ...string) int {
	depth, lambda := 0, 0
	for i, t := range tokens {
		if t.kind == pyName && t.text == "lambda" && depth == 0 {
			lambda++
		}
		if t.kind == pyString {
			continue
		}
		if depth == 0 {
			for _, op := range ops {
				if t.text != op {
					continue
				}
				if op == ":" && lambda > 0 {
					lambda--
					continue
				}
				return i
			}
		}
		if t.kind == pyOp {
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
		}
	}
	return -1
}

// split cuts tokens at top-level separators.
func split(tokens []pyToken, sep string) [][]pyToken {
	var out [][]pyToken
	for {
		i := topLevel(tokens, sep)
		if i < 0 {
			return append(out, tokens)
		}
		out = append(out, tokens[:i])
		tokens = tokens[i+1:]
	}
}
