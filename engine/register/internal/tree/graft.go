package tree

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"refbox/engine/internal/plainjson"
)

// Step is a step of a path: a key, or the place of an item where Key is empty.
type Step struct {
	Key   string
	Index int
}

// Scalar is a value to write. A Date and a Word are written without quotes where the
// language has such values.
type Scalar struct {
	Kind ScalarKind
	Text string
}

// ScalarKind is how a scalar is written.
type ScalarKind uint8

// The kinds of scalars.
const (
	Quoted ScalarKind = iota
	Plain             // a number
	Date
	Word
)

// Pair is a key with its scalar.
type Pair struct {
	Key   string
	Value Scalar
}

// Splice puts Text in the place of the bytes from At to To.
type Splice struct {
	At, To int
	Text   string
}

// Apply makes the changes, which don't overlap, in any order.
func Apply(data []byte, splices []Splice) []byte {
	list := slices.Clone(splices)
	slices.SortStableFunc(list, func(a, b Splice) int { return a.At - b.At })
	var out bytes.Buffer
	from := 0
	for _, s := range list {
		out.Write(data[from:s.At])
		out.WriteString(s.Text)
		from = s.To
	}
	out.Write(data[from:])
	return out.Bytes()
}

// Graft says how a document's text is changed so that the list called key of the
// table at path gets one more table, or, without item, so that its key is value.
// The ways are proposals, the best first: they keep every byte but those of a value
// that is replaced, and whether one says what it should, a reading of the result
// tells. None: there is no such table.
func Graft(syntax Syntax, data []byte, root *Value, path []Step, key string, item []Pair, value Scalar) [][]Splice {
	g := &graft{syntax: syntax, data: data, item: item, value: value, nl: "\n"}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		g.nl = "\r\n"
	}
	table := root
	for _, s := range path {
		switch {
		case table == nil:
			return nil
		case s.Key != "":
			table = table.Get(s.Key)
		case s.Index < table.Len():
			table = table.Item(s.Index)
		default:
			return nil
		}
	}
	if table == nil || table.Kind != Object {
		return nil
	}
	switch syntax {
	case TOML:
		return g.toml(table, path, key)
	case YAML:
		return g.yaml(table, key)
	}
	return g.json(table, key)
}

type graft struct {
	syntax Syntax
	data   []byte
	nl     string
	item   []Pair // nil to set value
	value  Scalar
}

func (g *graft) json(table *Value, key string) [][]Splice {
	f := table.Field(key)
	switch {
	case f == nil:
		return g.into(g.offset(table.Pos), func(style style) string { return quote(key) + style.colon() + g.whole(style) })
	case g.item != nil && f.Kind == List:
		return g.into(g.offset(f.Value.Pos), g.tableText)
	}
	return g.replace(g.offset(f.Value.Pos), func(at int) string { return g.whole(style{compact: true}) })
}

// whole is the value that a key gets.
func (g *graft) whole(s style) string {
	if g.item == nil {
		return g.scalar(g.value)
	}
	if s.lines {
		inner := s
		inner.indent += s.unit
		return "[" + g.nl + inner.indent + g.tableText(inner) + g.nl + s.indent + "]"
	}
	return "[" + g.tableText(s) + "]"
}

// style is how the surroundings of a bracket are written.
type style struct {
	indent  string // of an item
	unit    string // of one level more
	lines   bool   // items stand on lines of their own
	compact bool   // without any space
}

func (s style) colon() string {
	if s.compact && !s.lines {
		return ":"
	}
	return ": "
}

// tableText is the item as a table in braces.
func (g *graft) tableText(s style) string {
	var parts []string
	for _, p := range g.item {
		switch g.syntax {
		case TOML:
			parts = append(parts, p.Key+" = "+g.scalar(p.Value))
		case YAML:
			parts = append(parts, p.Key+": "+g.scalar(p.Value))
		default:
			parts = append(parts, quote(p.Key)+s.colon()+g.scalar(p.Value))
		}
	}
	switch {
	case g.syntax == TOML:
		return "{ " + strings.Join(parts, ", ") + " }"
	case g.syntax == JSON && s.lines:
		sep := g.nl + s.indent + s.unit
		return "{" + sep + strings.Join(parts, ","+sep) + g.nl + s.indent + "}"
	case s.compact:
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (g *graft) scalar(v Scalar) string {
	switch {
	case v.Kind == Plain, v.Kind == Date && g.syntax != JSON, v.Kind == Word && g.syntax == YAML:
		return v.Text
	}
	return quote(v.Text)
}

// quote writes a string as JSON does, which TOML and YAML read as well.
func quote(s string) string {
	b, err := plainjson.Compact(s)
	if err != nil { // a string always encodes
		return `""`
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`) // TOML wants it escaped
}

// into adds to what the bracket at open holds: as the last of it, in the way in which
// the others are written.
func (g *graft) into(open int, text func(style) string) [][]Splice {
	b, ok := g.bracket(open)
	if !ok {
		return nil
	}
	s := style{unit: "  ", compact: !bytes.ContainsAny(g.data, " \t\n")}
	switch {
	case b.first < 0: // nothing in it
		if g.syntax == JSON && bytes.IndexByte(g.data[:open], '\n') >= 0 {
			s.lines = true
			s.unit = g.unit(open)
			s.indent = g.indentOf(open) + s.unit
			return [][]Splice{{{b.inner, b.inner, g.nl + s.indent + text(s) + g.nl + g.indentOf(open)}}}
		}
		return [][]Splice{{{b.inner, b.inner, text(s)}}}
	case bytes.IndexByte(g.data[open:b.first], '\n') < 0:
		if g.data[b.last] == ',' {
			return [][]Splice{{{b.last + 1, b.last + 1, " " + text(s)}}}
		}
		sep := ", "
		if s.compact {
			sep = ","
		}
		return [][]Splice{{{b.last + 1, b.last + 1, sep + text(s)}}}
	}
	s.lines = true
	s.indent = g.indentOf(b.first)
	s.unit = g.unit(b.first)
	line := g.lineEnd(b.last) // a comment behind the last one stays with it
	if line >= b.close || len(bytes.TrimSpace(g.data[b.last+1:line])) == 0 {
		line = b.last + 1
	}
	if g.data[b.last] == ',' {
		return [][]Splice{{{line, line, g.nl + s.indent + text(s) + ","}}}
	}
	if line == b.last+1 {
		return [][]Splice{{{line, line, "," + g.nl + s.indent + text(s)}}}
	}
	return [][]Splice{{{b.last + 1, b.last + 1, ","}, {line, line, g.nl + s.indent + text(s)}}}
}

// unit is what one level more is indented by, as far as the surroundings of an offset
// show.
func (g *graft) unit(off int) string {
	own := g.indentOf(off)
	for from := off; from > 0; {
		from = bytes.LastIndexByte(g.data[:from], '\n')
		if from < 0 {
			break
		}
		above := g.indentOf(max(0, from-1))
		if rest, ok := strings.CutPrefix(own, above); ok && rest != "" {
			return rest
		}
	}
	return "  "
}

// lineStart and lineEnd are the ends of an offset's line, without what ends it.
func (g *graft) lineStart(off int) int { return bytes.LastIndexByte(g.data[:off], '\n') + 1 }

func (g *graft) lineEnd(off int) int {
	end := len(g.data)
	if i := bytes.IndexByte(g.data[off:], '\n'); i >= 0 {
		end = off + i
	}
	if end > off && end < len(g.data) && g.data[end-1] == '\r' {
		end--
	}
	return end
}

// indentOf is the white space that an offset's line begins with.
func (g *graft) indentOf(off int) string {
	from := g.lineStart(off)
	to := from
	for to < len(g.data) && (g.data[to] == ' ' || g.data[to] == '\t') {
		to++
	}
	return string(g.data[from:to])
}

// offset is the byte of a place.
func (g *graft) offset(p Pos) int {
	off := 0
	for line := 1; line < p.Line; line++ {
		i := bytes.IndexByte(g.data[off:], '\n')
		if i < 0 {
			return len(g.data)
		}
		off += i + 1
	}
	// Columns count characters near a line's start, and bytes far from it: lines.pos.
	if far := off + p.Col - 1; p.Col > 4096 {
		return min(far, len(g.data))
	}
	for range p.Col - 1 {
		_, n := utf8.DecodeRune(g.data[off:])
		off = min(off+n, len(g.data))
	}
	return off
}

// replace puts text in the place of the scalar at an offset.
func (g *graft) replace(at int, text func(at int) string) [][]Splice {
	return [][]Splice{{{at, g.scalarEnd(at), text(at)}}}
}

// scalarEnd is where the scalar at an offset ends.
func (g *graft) scalarEnd(at int) int {
	if at < len(g.data) && (g.data[at] == '"' || g.data[at] == '\'') {
		return g.stringEnd(at)
	}
	end := at
	for end < len(g.data) {
		c := g.data[end]
		if c == '\n' || c == ',' && g.syntax != YAML || c == ']' || c == '}' ||
			c == '#' && g.syntax != JSON && (end == at || g.data[end-1] == ' ' || g.data[end-1] == '\t' || g.syntax == TOML) ||
			c == ',' && end+1 < len(g.data) && strings.IndexByte(" \t\r\n", g.data[end+1]) >= 0 {
			break
		}
		end++
	}
	for end > at && strings.IndexByte(" \t\r", g.data[end-1]) >= 0 {
		end--
	}
	return end
}

// stringEnd is where the quoted string at an offset ends.
func (g *graft) stringEnd(at int) int {
	q := g.data[at]
	fence := []byte{q}
	if g.syntax == TOML && bytes.HasPrefix(g.data[at:], []byte{q, q, q}) {
		fence = []byte{q, q, q}
	}
	i := at + len(fence)
	for i < len(g.data) && !bytes.HasPrefix(g.data[i:], fence) {
		if q == '"' && g.data[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i+len(fence), len(g.data))
	for len(fence) == 3 && i < len(g.data) && g.data[i] == q { // quotes of the text's own
		i++
	}
	if g.syntax == YAML && q == '\'' && i < len(g.data) && g.data[i] == '\'' { // '' is a quote
		return g.stringEnd(i)
	}
	return i
}

// bracket is what stands in a pair of brackets.
type bracket struct {
	inner, close int // behind the opening one; the closing one
	first, last  int // first and last byte of what is neither space nor comment; -1
}

// bracket finds the end of the one that opens at an offset.
func (g *graft) bracket(open int) (bracket, bool) {
	if open >= len(g.data) || g.data[open] != '[' && g.data[open] != '{' {
		return bracket{}, false
	}
	b := bracket{inner: open + 1, first: -1, last: -1}
	depth := 0
	for i := open; i < len(g.data); i++ {
		from := i
		switch c := g.data[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '#':
			if g.syntax == TOML || g.syntax == YAML && strings.IndexByte(" \t\n,[{", g.data[i-1]) >= 0 {
				i = g.lineEnd(i)
				if i < len(g.data) && g.data[i] == '\r' {
					i++
				}
				continue
			}
		case '"', '\'':
			if c == '"' || g.syntax == TOML || g.syntax == YAML && strings.IndexByte(" \t\n,[{:", g.data[i-1]) >= 0 {
				i = g.stringEnd(i) - 1
			}
		case '[', '{':
			depth++
			if depth == 1 {
				continue
			}
		case ']', '}':
			if depth--; depth == 0 {
				b.close = i
				return b, true
			}
		}
		if b.first < 0 {
			b.first = from
		}
		b.last = min(i, len(g.data)-1)
	}
	return b, false
}

// Float is a number as it is written.
func Float(f float64) Scalar { return Scalar{Plain, strconv.FormatFloat(f, 'f', -1, 64)} }
