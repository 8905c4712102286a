// Package tomlplace finds where the keys of a TOML document stand, since the
// library that decodes it keeps no positions. It skips over values and checks
// nothing but how deep they nest; it ends for any input, TOML or not.
package tomlplace

import (
	"strconv"
	"strings"
)

// Places are where the parts of a document stand, as offsets in bytes.
type Places struct {
	// Keys has the path, a sequence of Key and Index, of every key and element, and
	// "" for the document.
	Keys    map[string]int
	Headers []Header // in the order of the document
	TooDeep int      // where values nest too deep, and the reading ended; else -1
}

// Header is where a table's header stands, up to its last bracket, and its path.
type Header struct {
	From, To int
	Path     string
}

// Key is a key's part of a path.
func Key(k string) string { return "\x00" + k }

// Index is an array's element's part of a path.
func Index(i int) string { return "\x01" + strconv.Itoa(i) }

// Find reads a document whose values nest no deeper than most.
func Find(data []byte, most int) Places {
	out := Places{Keys: map[string]int{"": 0}, TooDeep: -1}
	r := reader{src: string(data), out: &out, tables: map[string]int{}, most: most}
	r.document()
	return out
}

type reader struct {
	src    string
	pos    int
	out    *Places
	tables map[string]int // number of elements of each array of tables so far
	depth  int
	most   int
}

// descend stops the reading where brackets or dots nest too deeply.
func (r *reader) descend(n int) bool {
	if n <= r.most {
		return true
	}
	if r.out.TooDeep < 0 {
		r.out.TooDeep = r.pos
	}
	r.pos = len(r.src)
	return false
}

func (r *reader) document() {
	prefix := ""
	for r.blank(); r.pos < len(r.src) && r.out.TooDeep < 0; r.blank() {
		if r.peek() != '[' {
			r.pair(prefix)
			continue
		}
		at := r.pos
		r.next()
		array := r.peek() == '['
		if array {
			r.next()
		}
		keys := r.key()
		prefix = ""
		for i, k := range keys {
			prefix += Key(k)
			r.mark(prefix, at)
			last := i == len(keys)-1
			switch {
			case last && array:
				n := r.tables[prefix]
				r.tables[prefix] = n + 1
				prefix += Index(n)
				r.mark(prefix, at)
			case !last && r.tables[prefix] > 0:
				prefix += Index(r.tables[prefix] - 1)
			}
		}
		for r.pos < len(r.src) && r.peek() == ']' {
			r.next()
		}
		r.out.Headers = append(r.out.Headers, Header{at, r.pos, prefix})
	}
}

// pair reads key = value.
func (r *reader) pair(prefix string) {
	start := r.pos
	for _, k := range r.key() {
		prefix += Key(k)
		r.mark(prefix, start)
	}
	r.space()
	if r.peek() == '=' {
		r.next()
	}
	r.space()
	r.value(prefix)
	if r.pos == start { // not TOML after all: never stand still
		r.next()
	}
}

func (r *reader) value(path string) {
	if !r.descend(r.depth) {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	r.mark(path, r.pos)
	switch r.peek() {
	case '"', '\'':
		r.text()
	case '[':
		r.next()
		for i := 0; ; i++ {
			r.blank()
			if r.pos >= len(r.src) || r.peek() == ']' {
				r.next()
				return
			}
			start := r.pos
			r.value(path + Index(i))
			r.blank()
			if r.peek() == ',' {
				r.next()
			}
			if r.pos == start {
				r.next()
			}
		}
	case '{':
		r.next()
		for {
			r.blank()
			if r.pos >= len(r.src) || r.peek() == '}' {
				r.next()
				return
			}
			r.pair(path)
			r.blank()
			if r.peek() == ',' {
				r.next()
			}
		}
	default:
		for r.pos < len(r.src) && !strings.ContainsRune(",]}#\n", rune(r.peek())) {
			r.next()
		}
	}
}

// key reads a bare, quoted or dotted key.
func (r *reader) key() []string {
	var keys []string
	for {
		r.space()
		if c := r.peek(); c == '"' || c == '\'' {
			keys = append(keys, r.text())
		} else {
			start := r.pos
			for r.pos < len(r.src) && !strings.ContainsRune(" \t.=]\n", rune(r.peek())) {
				r.next()
			}
			keys = append(keys, r.src[start:r.pos])
		}
		r.space()
		if r.peek() != '.' {
			return keys
		}
		if !r.descend(len(keys)) {
			return nil
		}
		r.next()
	}
}

// text reads a string of any of the four forms and returns it without quotes;
// escapes are resolved as far as keys need it.
func (r *reader) text() string {
	q := r.src[r.pos : r.pos+1]
	fence := q
	if strings.HasPrefix(r.src[r.pos:], q+q+q) {
		fence = q + q + q
	}
	r.skip(len(fence))
	start := r.pos
	for r.pos < len(r.src) && !strings.HasPrefix(r.src[r.pos:], fence) {
		if q == `"` && r.peek() == '\\' {
			r.next()
		}
		r.next()
	}
	out := r.src[min(start, len(r.src)):r.pos]
	r.skip(len(fence))
	// """a""""" ends with two quotes that belong to the text.
	for len(fence) == 3 && r.pos < len(r.src) && r.src[r.pos:r.pos+1] == q {
		r.next()
	}
	if q == `"` && len(fence) == 1 {
		if s, err := strconv.Unquote(`"` + out + `"`); err == nil {
			return s
		}
	}
	return out
}

func (r *reader) mark(path string, at int) {
	if _, ok := r.out.Keys[path]; !ok {
		r.out.Keys[path] = at
	}
}

func (r *reader) peek() byte {
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

func (r *reader) next() { r.skip(1) }

func (r *reader) skip(n int) { r.pos = min(r.pos+n, len(r.src)) }

func (r *reader) space() {
	for c := r.peek(); c == ' ' || c == '\t'; c = r.peek() {
		r.next()
	}
}

// blank skips white space, line ends and comments.
func (r *reader) blank() {
	for r.pos < len(r.src) {
		switch r.peek() {
		case ' ', '\t', '\r', '\n':
			r.next()
		case '#':
			for r.pos < len(r.src) && r.peek() != '\n' {
				r.next()
			}
		default:
			return
		}
	}
}
