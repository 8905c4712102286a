package tree

import (
	"bytes"
	"slices"
	"strings"

	"refbox/engine/internal/tomlplace"
)

// toml knows three ways in which a table is written: under a header, in braces, and
// as dotted keys of another table.
func (g *graft) toml(table *Value, path []Step, key string) [][]Splice {
	l := tomlplace.Find(g.data, MaxDepth)
	enc, names := "", []string{}
	for _, s := range path {
		if s.Key == "" {
			enc += tomlplace.Index(s.Index)
			continue
		}
		enc += tomlplace.Key(s.Key)
		names = append(names, tomlBare(s.Key))
	}
	at, known := l.Keys[enc]
	if !known {
		return nil
	}
	if f := table.Field(key); f != nil {
		from := l.Keys[enc+tomlplace.Key(key)]
		switch {
		case g.data[from] == '[': // [[a.b]]
			return g.tomlSection(l, enc, names, key)
		case g.item != nil:
			return g.into(g.tomlValue(from), g.tableText)
		}
		return g.replace(g.tomlValue(from), func(int) string { return g.scalar(g.value) })
	}
	if path[len(path)-1].Key != "" && g.data[at] != '[' {
		at = g.tomlValue(at)
	}
	if g.data[at] == '{' {
		return g.into(at, func(s style) string {
			if g.item == nil {
				return key + " = " + g.scalar(g.value)
			}
			return key + " = [" + g.tableText(s) + "]"
		})
	}
	if g.item != nil {
		return g.tomlSection(l, enc, names, key)
	}
	if g.data[at] == '[' {
		return g.tomlLine(l, enc, key)
	}
	return g.tomlDotted(l, table, enc, key)
}

// tomlBare is a key as a header has it.
func tomlBare(key string) string {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return quote(key)
		}
	}
	return key
}

// tomlValue is where the value of the key at an offset begins.
func (g *graft) tomlValue(at int) int {
	for at < len(g.data) && g.data[at] != '=' && g.data[at] != '\n' {
		if g.data[at] == '"' || g.data[at] == '\'' {
			at = g.stringEnd(at)
			continue
		}
		at++
	}
	for at++; at < len(g.data) && (g.data[at] == ' ' || g.data[at] == '\t'); at++ {
	}
	return min(at, len(g.data)-1)
}

// tomlSection adds [[path.key]] behind what belongs to the table, or to the nearest
// one above it that has a header.
func (g *graft) tomlSection(l tomlplace.Places, enc string, names []string, key string) [][]Splice {
	name := strings.Join(append(slices.Clone(names), tomlBare(key)), ".")
	var out [][]Splice
	for up := enc; up != ""; up = up[:strings.LastIndexAny(up, "\x00\x01")] {
		from := slices.IndexFunc(l.Headers, func(h tomlplace.Header) bool { return h.Path == up })
		if from < 0 {
			continue
		}
		to := from + 1
		for to < len(l.Headers) && strings.HasPrefix(l.Headers[to].Path, up) && (len(l.Headers[to].Path) == len(up) || l.Headers[to].Path[len(up)] < 2) {
			to++
		}
		end := len(g.data)
		if to < len(l.Headers) {
			end = l.Headers[to].From
		}
		at := g.tomlEnd(l.Headers[to-1].To, end)
		indent := g.tomlIndent(l.Headers[from:to], enc, key)
		var b strings.Builder
		b.WriteString(g.nl + g.nl + indent + "[[" + name + "]]")
		for _, p := range g.item {
			b.WriteString(g.nl + indent + p.Key + " = " + g.scalar(p.Value))
		}
		if next := bytes.TrimPrefix(g.data[at:], []byte(g.nl)); len(next) < len(g.data)-at && len(next) > 0 && next[0] != '\n' && next[0] != '\r' {
			b.WriteString(g.nl) // what follows keeps its distance
		}
		out = append(out, []Splice{{at, at, b.String()}})
	}
	return out
}

// tomlIndent is how a new section of the table is indented: as its like, else as the
// table's first section, else as the table.
func (g *graft) tomlIndent(headers []tomlplace.Header, enc, key string) string {
	best, indent := 0, g.indentOf(headers[0].From)
	for _, h := range headers {
		rank := 0
		switch {
		case strings.HasPrefix(h.Path, enc+tomlplace.Key(key)):
			rank = 3
		case strings.HasPrefix(h.Path, enc+"\x00"):
			rank = 2
		case h.Path == enc:
			rank = 1
		}
		if rank > best {
			best, indent = rank, g.indentOf(h.From)
		}
	}
	return indent
}

// tomlLine adds key = value behind the table's own keys.
func (g *graft) tomlLine(l tomlplace.Places, enc, key string) [][]Splice {
	i := slices.IndexFunc(l.Headers, func(h tomlplace.Header) bool { return h.Path == enc })
	if i < 0 {
		return nil
	}
	end := len(g.data)
	if i+1 < len(l.Headers) {
		end = l.Headers[i+1].From
	}
	at := g.tomlEnd(l.Headers[i].To, end)
	return [][]Splice{{{at, at, g.nl + g.indentOf(g.lastKey(l, enc, l.Headers[i].From)) + key + " = " + g.scalar(g.value)}}}
}

// lastKey is where the last key of a table stands, or else what is given.
func (g *graft) lastKey(l tomlplace.Places, enc string, at int) int {
	for path, off := range l.Keys {
		if rest, ok := strings.CutPrefix(path, enc+"\x00"); ok && !strings.ContainsAny(rest, "\x00\x01") && off > at && g.data[off] != '[' {
			at = off
		}
	}
	return at
}

// tomlDotted adds a.b.key = value below a.b.other = …
func (g *graft) tomlDotted(l tomlplace.Places, table *Value, enc, key string) [][]Splice {
	if len(table.Fields) == 0 {
		return nil
	}
	at := g.lastKey(l, enc, -1)
	if at < 0 {
		return nil
	}
	value := g.tomlValue(at)
	name := strings.TrimRight(string(g.data[at:bytes.LastIndexByte(g.data[:value], '=')]), " \t")
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	end := g.lineEnd(value)
	return [][]Splice{{{end, end, g.nl + g.indentOf(at) + name[:dot+1] + key + " = " + g.scalar(g.value)}}}
}

// tomlEnd is the end of the last line with more than a comment from an offset on,
// before another one.
func (g *graft) tomlEnd(from, end int) int {
	at := g.lineEnd(from)
	for i := from; i < end; {
		switch c := g.data[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
			continue
		case '#':
			i = g.lineEnd(i)
			continue
		case '"', '\'':
			i = g.stringEnd(i)
		default:
			i++
		}
		at = g.lineEnd(min(i, len(g.data)) - 1)
		if at < i {
			at = g.lineEnd(i)
		}
	}
	return at
}
