package tree

import (
	"bytes"
	"strings"
)

// yaml knows tables and lists in braces, and those that their indentation makes.
func (g *graft) yaml(table *Value, key string) [][]Splice {
	at := g.offset(table.Pos)
	f := table.Field(key)
	switch {
	case f == nil && g.at(at) == '{':
		return g.into(at, func(s style) string {
			if g.item == nil {
				return key + ": " + g.scalar(g.value)
			}
			return key + ": [" + g.tableText(s) + "]"
		})
	case f == nil:
		return g.yamlKey(at, key)
	case g.item == nil || f.Kind != List:
		return g.yamlSet(g.offset(f.Pos), f)
	}
	if list := g.offset(f.Value.Pos); g.at(list) == '[' {
		return g.into(list, g.tableText)
	} else if f.Len() > 0 {
		return g.yamlItem(list, f.Item(f.Len()-1))
	}
	return nil
}

func (g *graft) at(off int) byte {
	if off < len(g.data) {
		return g.data[off]
	}
	return 0
}

// yamlSet gives a key that has a scalar, or nothing, its value.
func (g *graft) yamlSet(at int, f *Field) [][]Splice {
	text := g.scalar(g.value)
	if g.item != nil {
		text = "[" + g.tableText(style{}) + "]"
	}
	if v := g.offset(f.Value.Pos); v > at && g.lineStart(v) == g.lineStart(at) && v < g.lineEnd(v) && g.at(v) != '#' && g.data[v-1] != ':' {
		return g.replace(v, func(int) string { return text })
	}
	if c := g.at(at); c == '"' || c == '\'' {
		at = g.stringEnd(at)
	}
	i := bytes.IndexByte(g.data[at:g.lineEnd(at)], ':')
	if i < 0 {
		return nil
	}
	at += i + 1
	return [][]Splice{{{at, at, " " + text}}}
}

// yamlKey adds a key to the table whose first key is at an offset.
func (g *graft) yamlKey(at int, key string) [][]Splice {
	indent := strings.Repeat(" ", at-g.lineStart(at))
	var b strings.Builder
	b.WriteString(g.nl + indent + key + ":")
	if g.item == nil {
		b.WriteString(" " + g.scalar(g.value))
	} else {
		g.yamlTable(&b, indent+"  ")
	}
	return g.yamlBehind(at, len(indent), b.String())
}

// yamlTable writes the item as one of a list that is indented so far.
func (g *graft) yamlTable(b *strings.Builder, indent string) {
	sign := "- "
	for _, p := range g.item {
		b.WriteString(g.nl + indent + sign + p.Key + ": " + g.scalar(p.Value))
		sign = "  "
	}
}

// yamlItem adds an item to the list whose first dash is at an offset.
func (g *graft) yamlItem(at int, last *Value) [][]Splice {
	indent := strings.Repeat(" ", at-g.lineStart(at))
	var b strings.Builder
	if g.at(g.offset(last.Pos)) == '{' {
		b.WriteString(g.nl + indent + "- " + g.tableText(style{}))
	} else {
		g.yamlTable(&b, indent)
	}
	// A list may be no further in than the key that it belongs to: what follows it
	// there is no item.
	return g.yamlBehind(at, len(indent), b.String())
}

// yamlBehind puts text behind what begins at an offset and is indented by n: behind
// its last line that is no comment, or else behind those that look like one, which a
// block of text may hold.
func (g *graft) yamlBehind(from, n int, text string) [][]Splice {
	item := g.at(from) == '-'
	end, talk := g.lineEnd(from), g.lineEnd(from)
	for at := end; ; {
		i := bytes.IndexByte(g.data[at:], '\n')
		if i < 0 || at+i+1 >= len(g.data) {
			break
		}
		at += i + 1
		stop := g.lineEnd(at)
		line := strings.TrimSpace(string(g.data[at:stop]))
		depth := len(g.indentOf(at))
		switch {
		case line == "":
		case line[0] == '#':
			switch {
			case depth > n: // it is about what is further in
				end, talk = stop, stop
			case depth == n:
				talk = stop
			}
		case depth < n, depth == n && item && line[0] != '-', n == 0 && (line == "---" || line == "..."):
			at = len(g.data)
		default:
			end, talk = stop, stop
		}
		if at >= len(g.data) {
			break
		}
		at = stop
	}
	out := [][]Splice{{{end, end, text}}}
	if talk != end {
		out = append(out, []Splice{{talk, talk, text}})
	}
	return out
}
