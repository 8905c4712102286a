package tree

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

func parseTOML(data []byte) (*Value, error) {
	places, err := locate(data)
	if err != nil {
		return nil, err
	}
	var raw map[string]any
	if _, err := toml.Decode(string(data), &raw); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, &Error{Pos{pe.Position.Line, pe.Position.Col}, pe.Message}
		}
		return nil, &Error{Text: err.Error()}
	}
	return (&tomlTree{places, newLines(data)}).value(raw, "", 0)
}

type tomlTree struct {
	places map[string]int
	lines  *lines
}

func (t *tomlTree) pos(path string) Pos {
	if off, ok := t.places[path]; ok {
		return t.lines.pos(off)
	}
	return Pos{}
}

func (t *tomlTree) value(raw any, path string, depth int) (*Value, error) {
	v := &Value{Pos: t.pos(path)}
	if depth > MaxDepth {
		return nil, &Error{v.Pos, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	list := func(n int, item func(int) any) error {
		v.Kind = List
		for i := range n {
			c, err := t.value(item(i), path+tomlIndex(i), depth+1)
			if err != nil {
				return err
			}
			v.Items = append(v.Items, c)
		}
		return nil
	}
	switch raw := raw.(type) {
	case map[string]any:
		v.Kind = Object
		return v, t.object(v, raw, path, depth)
	case []map[string]any:
		return v, list(len(raw), func(i int) any { return raw[i] })
	case []any:
		return v, list(len(raw), func(i int) any { return raw[i] })
	case int64:
		v.Kind, v.Text = Number, strconv.FormatInt(raw, 10)
	case float64:
		s, ok := floatText(raw)
		if !ok {
			return nil, &Error{v.Pos, "is no finite number"}
		}
		v.Kind, v.Text = Number, s
	case bool:
		v.Kind, v.Bool = Bool, raw
	case string:
		v.Kind, v.Text = String, strings.ReplaceAll(raw, "\r\n", "\n") // of a text of several lines
	case time.Time:
		// The library marks what the file said by the zone's name.
		layout := map[string]string{"date-local": "2006-01-02", "time-local": "15:04:05.999999999", "datetime-local": "2006-01-02T15:04:05.999999999"}[raw.Location().String()]
		if layout == "" {
			layout = time.RFC3339Nano
		}
		v.Kind, v.Text = String, raw.Format(layout)
	default:
		return nil, &Error{v.Pos, fmt.Sprintf("cannot be read (%T)", raw)}
	}
	return v, nil
}

func (t *tomlTree) object(v *Value, raw map[string]any, path string, depth int) error {
	names := make([]string, 0, len(raw))
	for k := range raw {
		names = append(names, k)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := t.places[path+tomlKey(names[i])], t.places[path+tomlKey(names[j])]
		if a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	for _, k := range names {
		c, err := t.value(raw[k], path+tomlKey(k), depth+1)
		if err != nil {
			return err
		}
		v.Fields = append(v.Fields, Field{k, c.Pos, c})
	}
	return nil
}

func tomlKey(k string) string { return "\x00" + k }
func tomlIndex(i int) string  { return "\x01" + strconv.Itoa(i) }

// locate maps the path of every key and array element of a TOML document to
// its offset. The TOML library keeps no positions; this only skips over values
// and checks nothing but the depth of keys.
//
// A path is a sequence of tomlKey and tomlIndex.
func locate(data []byte) (map[string]int, error) {
	l := newLocator(data)
	l.document()
	if l.tooDeep {
		return nil, &Error{newLines(data).pos(l.deep), fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	return l.places, nil
}

func newLocator(data []byte) *locator {
	return &locator{src: string(data), places: map[string]int{"": 0}, tables: map[string]int{}}
}

type locator struct {
	src     string
	pos     int
	places  map[string]int
	headers []header
	tables  map[string]int // number of elements of each array of tables so far
	depth   int
	tooDeep bool
	deep    int // where
}

// descend stops the reading where brackets or dots nest too deeply.
func (l *locator) descend(n int) bool {
	if n <= MaxDepth {
		return true
	}
	if !l.tooDeep {
		l.tooDeep, l.deep = true, l.pos
	}
	l.pos = len(l.src)
	return false
}

func (l *locator) document() {
	prefix := ""
	for l.blank(); l.pos < len(l.src) && !l.tooDeep; l.blank() {
		if l.peek() != '[' {
			l.pair(prefix)
			continue
		}
		at := l.pos
		l.next()
		array := l.peek() == '['
		if array {
			l.next()
		}
		keys := l.key()
		prefix = ""
		for i, k := range keys {
			prefix += tomlKey(k)
			l.mark(prefix, at)
			last := i == len(keys)-1
			switch {
			case last && array:
				n := l.tables[prefix]
				l.tables[prefix] = n + 1
				prefix += tomlIndex(n)
				l.mark(prefix, at)
			case !last && l.tables[prefix] > 0:
				prefix += tomlIndex(l.tables[prefix] - 1)
			}
		}
		for l.pos < len(l.src) && l.peek() == ']' {
			l.next()
		}
		l.headers = append(l.headers, header{at, l.pos, prefix})
	}
}

// header is where a table's header stands, up to its last bracket, and its path.
type header struct {
	from, to int
	path     string
}

// pair reads key = value.
func (l *locator) pair(prefix string) {
	start := l.pos
	for _, k := range l.key() {
		prefix += tomlKey(k)
		l.mark(prefix, start)
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
	if !l.descend(l.depth) {
		return
	}
	l.depth++
	defer func() { l.depth-- }()
	l.mark(path, l.pos)
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
		if !l.descend(len(keys)) {
			return nil
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
	out := l.src[min(start, len(l.src)):l.pos]
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

func (l *locator) mark(path string, at int) {
	if _, ok := l.places[path]; !ok {
		l.places[path] = at
	}
}

func (l *locator) peek() byte {
	if l.pos < len(l.src) {
		return l.src[l.pos]
	}
	return 0
}

func (l *locator) next() { l.skip(1) }

func (l *locator) skip(n int) { l.pos = min(l.pos+n, len(l.src)) }

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
