package step

import (
	"embed"
	"path"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"

	"refbox/engine/text"
	"refbox/tui/canvas"
)

// The grammars that are shown in colour, from chroma (MIT, lexers/COPYING). Its
// own registry reads three hundred of them whenever the program starts.
//
//go:embed lexers/*.xml
var grammars embed.FS

// maxColored bounds what is coloured of one text: a grammar is a set of regular
// expressions, at some hundred kilobytes a second.
const maxColored = 16 << 10

// grammarOf finds a grammar by a language's name or a file's ending.
func grammarOf(name string) string {
	switch strings.ToLower(name) {
	case "sh", "bash", "shell", "zsh", "ksh", "console", "shell-session":
		return "bash"
	case "py", "python", "python3", "ipython":
		return "python"
	case "sql", "sqlite", "sqlite3", "postgres", "postgresql", "psql", "mysql":
		return "sql"
	case "yaml", "yml":
		return "yaml"
	case "toml":
		return "toml"
	case "ini", "conf", "cfg", "cnf", "env":
		return "ini"
	case "service", "socket", "timer", "target", "mount", "path", "systemd", "network":
		return "systemd"
	case "js", "ts", "jsx", "tsx", "mjs", "cjs", "javascript", "typescript":
		return "javascript"
	case "nginx":
		return "nginx_configuration_file"
	}
	return ""
}

// grammarOfFile finds a grammar by a file's name.
func grammarOfFile(name string) string {
	base := path.Base(name)
	if strings.Contains(name, "nginx") && strings.HasSuffix(base, ".conf") {
		return grammarOf("nginx")
	}
	return grammarOf(strings.TrimPrefix(path.Ext(base), "."))
}

var lexers sync.Map // grammar's name → chroma.Lexer, nil when it cannot be read

func lexerOf(grammar string) chroma.Lexer {
	if l, ok := lexers.Load(grammar); ok {
		found, _ := l.(chroma.Lexer)
		return found
	}
	l, err := chroma.NewXMLLexer(grammars, "lexers/"+grammar+".xml")
	if err != nil {
		lexers.Store(grammar, nil)
		return nil
	}
	lexers.Store(grammar, chroma.Lexer(l))
	return l
}

// span is a range of bytes with a style of its own.
type span struct {
	from, to int
	style    canvas.Style
}

// colored are the spans of a sanitised text in a language, in order and without
// gaps; nil when it is not coloured.
func colored(s, grammar string) []span {
	if grammar == "" || len(s) > maxColored {
		return nil
	}
	l := lexerOf(grammar)
	if l == nil {
		return nil
	}
	it, err := l.Tokenise(&chroma.TokeniseOptions{State: "root"}, s)
	if err != nil {
		return nil
	}
	var out []span
	at := 0
	for t := it(); t != chroma.EOF; t = it() {
		end := at + len(t.Value)
		if end > len(s) || s[at:end] != t.Value { // a grammar that changes the text
			return nil
		}
		out = append(out, span{at, end, styleOf(t.Type)})
		at = end
	}
	if at != len(s) {
		return nil
	}
	return out
}

// styleOf gives a token a role of the theme.
func styleOf(t chroma.TokenType) canvas.Style {
	switch {
	case t.InCategory(chroma.Comment):
		return canvas.Fg(canvas.Dim).With(canvas.Italic)
	case t.InSubCategory(chroma.LiteralString):
		return canvas.Fg(canvas.Ok)
	case t.InSubCategory(chroma.LiteralNumber):
		return canvas.Fg(canvas.Queue)
	case t == chroma.KeywordConstant:
		return canvas.Fg(canvas.Queue)
	case t.InCategory(chroma.Keyword):
		return canvas.Fg(canvas.Worker).With(canvas.Bold)
	case t == chroma.NameBuiltin, t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameTag, t == chroma.NameDecorator:
		return canvas.Fg(canvas.Accent)
	case t == chroma.NameVariable, t == chroma.NameAttribute, t == chroma.NameProperty:
		return canvas.Fg(canvas.Service)
	case t.InCategory(chroma.Operator), t.InCategory(chroma.Punctuation):
		return canvas.Fg(canvas.Storage)
	}
	return canvas.Fg(canvas.Text)
}

// code writes a program's text: coloured where that is quick, with the places
// that marks name underlined. Marks are bytes of raw.
func (p *paper) code(raw, grammar string, marks []span) {
	s := text.Block(raw)
	spans := colored(s, grammar)
	if spans == nil {
		spans = []span{{0, len(s), canvas.Fg(canvas.Text)}}
	}
	at := func(off int) int { // the same place in s
		off = max(0, min(off, len(raw)))
		if len(s) == len(raw) {
			return off
		}
		return min(len(text.Block(raw[:off])), len(s))
	}
	over := make([]span, 0, len(marks))
	for _, m := range marks {
		over = append(over, span{at(m.from), at(m.to), m.style})
	}
	for _, sp := range spans {
		for from := sp.from; from < sp.to; {
			to, st := sp.to, sp.style
			for _, m := range over {
				switch {
				case m.from <= from && from < m.to:
					to, st = min(to, m.to), canvas.Style{Fg: m.style.Fg, Attr: st.Attr | m.style.Attr}
				case from < m.from:
					to = min(to, m.from)
				}
			}
			p.put(s[from:to], st, 2)
			from = to
		}
	}
	p.end(2)
}
