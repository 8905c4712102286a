package step

import (
	"embed"
	"path"
	"regexp"
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
// gaps; nil when it is not coloured. What is beyond maxColored is left plain.
func colored(s, grammar string) []span {
	if grammar == "" {
		return nil
	}
	if len(s) > maxColored {
		cut := strings.LastIndexByte(s[:maxColored], '\n') + 1
		head := colored(s[:cut], grammar)
		if cut == 0 || head == nil {
			return nil
		}
		return append(head, span{cut, len(s), canvas.Fg(canvas.Text)})
	}
	out := tokens(s, grammar)
	if grammar == "bash" {
		out = embedded(s, out)
	}
	return out
}

func tokens(s, grammar string) []span {
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

// hereDocument begins a text that a command reads: what it says about the language
// is before the sign, or in the file's name behind a ">".
var (
	hereDocument = regexp.MustCompile(`(?m)^.*<<-?[ \t]*(?:\\|'|")?([A-Za-z_][A-Za-z_0-9]*)['"]?.*$`)
	redirected   = regexp.MustCompile(`>{1,2}[ \t]*['"]?([^\s'"<>|&;]+)|\btee(?:[ \t]+-a)?[ \t]+['"]?([^\s'"<>|&;]+)`)
)

// embedded colours the texts inside a shell command in their own languages.
func embedded(s string, shell []span) []span {
	if shell == nil || !strings.Contains(s, "<<") {
		return shell
	}
	at := 0
	var out []span
	for at < len(s) {
		m := hereDocument.FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		line, tag := s[at+m[0]:at+m[1]], s[at+m[2]:at+m[3]]
		from := min(at+m[1]+1, len(s))
		to := len(s)
		if i := strings.Index("\n"+s[from:], "\n"+tag); i >= 0 {
			to = from + i
		}
		at = max(to, from)
		inner := tokens(s[from:to], languageOf(line))
		if inner == nil {
			continue
		}
		out = append(out, between(shell, end(out), from)...)
		for _, sp := range inner {
			out = append(out, span{sp.from + from, sp.to + from, sp.style})
		}
	}
	return append(out, between(shell, end(out), len(s))...)
}

func end(spans []span) int {
	if len(spans) == 0 {
		return 0
	}
	return spans[len(spans)-1].to
}

// between are the spans of a range of bytes.
func between(spans []span, from, to int) []span {
	var out []span
	for _, sp := range spans {
		if sp.from, sp.to = max(sp.from, from), min(sp.to, to); sp.from < sp.to {
			out = append(out, sp)
		}
	}
	return out
}

// languageOf is the grammar of what a command line reads.
func languageOf(line string) string {
	before, _, _ := strings.Cut(line, "<<")
	switch {
	case strings.Contains(before, "python"):
		return "python"
	case strings.Contains(before, "sqlite3"), strings.Contains(before, "psql"), strings.Contains(before, "mysql"):
		return "sql"
	case strings.Contains(before, "node"):
		return "javascript"
	case strings.Contains(before, "sh ") || strings.HasSuffix(strings.TrimSpace(before), "sh"):
		return "bash"
	}
	if m := redirected.FindStringSubmatch(line); m != nil {
		return grammarOfFile(m[1] + m[2])
	}
	return ""
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
