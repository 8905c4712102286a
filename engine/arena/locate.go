package arena

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// locate maps the path of every key and array element of a TOML document to
// its line. The document has been accepted by the TOML library, which keeps
// no positions: so this only skips over values and checks nothing.
//
// A path is a sequence of tomlKey and tomlIndex.
func locate(data []byte) map[string]int {
	l := &locator{src: string(data), line: 1, lines: map[string]int{"": 1}, tables: map[string]int{}}
	l.document()
	return l.lines
}

func tomlKey(k string) string { return "\x00" + k }
func tomlIndex(i int) string  { return "\x01" + strconv.Itoa(i) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type locator struct {
	src    string
	pos    int
	line   int
	lines  map[string]int
	tables map[string]int // number of elements of each array of tables so far
}

func (l *locator) document() {
	prefix := ""
	for l.blank(); l.pos < len(l.src); l.blank() {
		if l.peek() != '[' {
			l.pair(prefix)
			continue
		}
		l.next()
		array := l.peek() == '['
		if array {
			l.next()
		}
		line := l.line
		keys := l.key()
		prefix = ""
		for i, k := range keys {
			prefix += tomlKey(k)
			l.mark(prefix, line)
			last := i == len(keys)-1
			switch {
			case last && array:
				n := l.tables[prefix]
				l.tables[prefix] = n + 1
				prefix += tomlIndex(n)
				l.mark(prefix, line)
			case !last && l.tables[prefix] > 0:
				prefix += tomlIndex(l.tables[prefix] - 1)
			}
		}
		for l.pos < len(l.src) && l.peek() == ']' {
			l.next()
		}
	}
}

// pair reads key = value.
func (l *locator) pair(prefix string) {
	start, line := l.pos, l.line
	for _, k := range l.key() {
		prefix += tomlKey(k)
		l.mark(prefix, line)
	}
	l.space()
	if l.peek() == '=' {
		l.next()
	}
	l.space()
	l.value(prefix)
	if l.pos == start { // not TOML after all: never stand still
		l.next()
	}
}

func (l *locator) value(path string) {
	l.mark(path, l.line)
	switch l.peek() {
	case '"', '\'':
		l.text()
	case '[':
		l.next()
		for i := 0; ; i++ {
			l.blank()
			if l.pos >= len(l.src) || l.peek() == ']' {
				l.next()
				return
			}
			start := l.pos
			l.value(path + tomlIndex(i))
			l.blank()
			if l.peek() == ',' {
				l.next()
			}
			if l.pos == start {
				l.next()
			}
		}
	case '{':
		l.next()
		for {
			l.blank()
			if l.pos >= len(l.src) || l.peek() == '}' {
				l.next()
				return
			}
			l.pair(path)
			l.blank()
			if l.peek() == ',' {
				l.next()
			}
		}
	default:
		for l.pos < len(l.src) && !strings.ContainsRune(",]}#\n", rune(l.peek())) {
			l.next()
		}
	}
}

// key reads a bare, quoted or dotted key.
func (l *locator) key() []string {
	var keys []string
	for {
		l.space()
		if c := l.peek(); c == '"' || c == '\'' {
			keys = append(keys, l.text())
		} else {
			start := l.pos
			for l.pos < len(l.src) && !strings.ContainsRune(" \t.=]\n", rune(l.peek())) {
				l.next()
			}
			keys = append(keys, l.src[start:l.pos])
		}
		l.space()
		if l.peek() != '.' {
			return keys
		}
		l.next()
	}
}

// text reads a string of any of the four forms and returns it without quotes;
// escapes are resolved as far as keys need it.
func (l *locator) text() string {
	q := l.src[l.pos : l.pos+1]
	fence := q
	if strings.HasPrefix(l.src[l.pos:], q+q+q) {
		fence = q + q + q
	}
	l.skip(len(fence))
	start := l.pos
	for l.pos < len(l.src) && !strings.HasPrefix(l.src[l.pos:], fence) {
		if q == `"` && l.peek() == '\\' {
			l.next()
		}
		l.next()
	}
	out := l.src[start:l.pos]
	l.skip(len(fence))
	// """a""""" ends with two quotes that belong to the text.
	for len(fence) == 3 && l.pos < len(l.src) && l.src[l.pos:l.pos+1] == q {
		l.next()
	}
	if q == `"` && len(fence) == 1 {
		if s, err := strconv.Unquote(`"` + out + `"`); err == nil {
			return s
		}
	}
	return out
}

func (l *locator) mark(path string, line int) {
	if _, ok := l.lines[path]; !ok {
		l.lines[path] = line
	}
}

func (l *locator) peek() byte {
	if l.pos < len(l.src) {
		return l.src[l.pos]
	}
	return 0
}

func (l *locator) next() {
	if l.pos < len(l.src) {
		if l.src[l.pos] == '\n' {
			l.line++
		}
		l.pos++
	}
}

func (l *locator) skip(n int) {
	for range n {
		l.next()
	}
}

func (l *locator) space() {
	for c := l.peek(); c == ' ' || c == '\t'; c = l.peek() {
		l.next()
	}
}

// blank skips white space, line ends and comments.
func (l *locator) blank() {
	for l.pos < len(l.src) {
		switch l.peek() {
		case ' ', '\t', '\r', '\n':
			l.next()
		case '#':
			for l.pos < len(l.src) && l.peek() != '\n' {
				l.next()
			}
		default:
			return
		}
	}
}
