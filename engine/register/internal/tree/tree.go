// Package tree reads JSON, TOML and YAML into one tree that keeps what a typed
// decoder forgets: the order of keys, the place of every value, and that a key
// was given twice (which is an error here, in every syntax). A number keeps its
// exact text. Input is bounded in size and depth; anything that the three
// languages can say and a plain document cannot (YAML aliases and merge keys,
// infinities, several documents) is refused with its place.
package tree

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a document: far above any real one. A tree takes some fifteen times
// the memory of its text, which is why there is a bound at all; JSON, in which
// renderings come, may be longer, since the one list that grows with stores ×
// scenarios can stay text.
const (
	MaxBytes     = 64 << 20
	MaxJSONBytes = 512 << 20
	MaxDepth     = 64
)

// Kind is what a value is. A date or time of TOML or YAML is a String that
// holds it as it was written.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a table"}[k]
}

// Pos is a place in the file, both counted from 1, the column in characters.
// A zero Line is unknown.
type Pos struct{ Line, Col int }

// Value is one value of a document.
type Value struct {
	Kind   Kind
	Pos    Pos    // of the value
	Text   string // of a String; of a Number, in JSON's form
	Bool   bool
	Items  []*Value
	Fields []Field // in the document's order

	packed *packed // in place of Items
}

// Len is how many items a list has.
func (v *Value) Len() int {
	if v.packed != nil {
		return len(v.packed.items)
	}
	return len(v.Items)
}

// Item is an item of a list; of one that stayed text it is read now.
func (v *Value) Item(i int) *Value {
	if v.packed != nil {
		return v.packed.item(i)
	}
	return v.Items[i]
}

// Field is one key of an object.
type Field struct {
	Key string
	Pos Pos // of the key
	*Value
}

// Get returns the value of a key, or nil.
func (v *Value) Get(key string) *Value {
	if f := v.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// Field returns a key with its place, or nil.
func (v *Value) Field(key string) *Field {
	if v == nil {
		return nil
	}
	for i := range v.Fields {
		if v.Fields[i].Key == key {
			return &v.Fields[i]
		}
	}
	return nil
}

// Error is a document that cannot be read.
type Error struct {
	Pos  Pos
	Text string
}

func (e *Error) Error() string { return e.Text }

// Syntax is the language of a document.
type Syntax string

// The three languages.
const (
	JSON Syntax = "json"
	TOML Syntax = "toml"
	YAML Syntax = "yaml"
)

// SyntaxOf decides by the file's extension, else by how the text starts.
func SyntaxOf(file string, data []byte) Syntax {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return JSON
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return JSON
	}
	return TOML
}

// Parse reads a document. Its errors are of type *Error. In JSON the list of the
// top-level key pack is only made sure to be JSON, and stays text until its items
// are asked for.
func Parse(syntax Syntax, data []byte, pack string) (*Value, error) {
	most := MaxBytes
	if syntax == JSON {
		most = MaxJSONBytes
	}
	if len(data) > most {
		return nil, &Error{Text: fmt.Sprintf("is longer than %d MiB, the most that is read of %s: what is read takes many times its length in memory; split the register, or check what it declares instead of its rendering", most>>20, strings.ToUpper(string(syntax)))}
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, &Error{Pos{1, 1}, "starts with a byte order mark; save it as UTF-8 without one"}
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, &Error{newLines(data).pos(i), fmt.Sprintf("byte %#02x is not UTF-8; save the file as UTF-8", data[i])}
	}
	var v *Value
	var err error
	switch syntax {
	case JSON:
		v, err = parseJSON(data, pack)
	case TOML:
		v, err = parseTOML(data)
	default:
		v, err = parseYAML(data)
	}
	if err != nil {
		return nil, err
	}
	if v.Kind != Object {
		return nil, &Error{v.Pos, fmt.Sprintf("is %s; a table is wanted", v.Kind)}
	}
	return v, nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// At returns the place of a path such as stores[2].copies[0].lagSec, or of the
// deepest part of it that exists. The key's place is returned for a key.
func (v *Value) At(path string) Pos {
	at := v.Pos
	for path != "" && v != nil {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return at
			}
			i, err := strconv.Atoi(path[1:end])
			if err != nil || i < 0 || i >= v.Len() {
				return at
			}
			v, path = v.Item(i), path[end+1:]
			at = v.Pos
		default:
			f := v.longest(path)
			if f == nil {
				return at
			}
			v, path = f.Value, path[len(f.Key):]
			at = f.Pos
		}
	}
	return at
}

// longest finds the key that a path starts with; keys may hold dots.
func (v *Value) longest(path string) *Field {
	var best *Field
	for i := range v.Fields {
		f := &v.Fields[i]
		rest, ok := strings.CutPrefix(path, f.Key)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (best == nil || len(f.Key) > len(best.Key)) {
			best = f
		}
	}
	return best
}

// lines turns byte offsets into places; offsets are best asked for in order.
type lines struct {
	data  []byte
	line  int // of the last offset
	start int // of that line
	seen  int
}

func newLines(data []byte) *lines { return &lines{data: data, line: 1} }

func (l *lines) pos(off int) Pos {
	if off < l.seen {
		l.line, l.start, l.seen = 1, 0, 0
	}
	part := l.data[l.seen:off]
	if n := bytes.Count(part, []byte("\n")); n > 0 {
		l.line += n
		l.start = l.seen + bytes.LastIndexByte(part, '\n') + 1
	}
	l.seen = off
	// A file of one long line must not cost its length for each value.
	if off-l.start > 4096 {
		return Pos{l.line, off - l.start + 1}
	}
	return Pos{l.line, utf8.RuneCount(l.data[l.start:off]) + 1}
}

// floatText is a number in JSON's form; false for what JSON cannot say.
func floatText(f float64) (string, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0" // so that 1.0 does not pass for an integer
	}
	return s, true
}
