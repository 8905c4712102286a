package analysis

import (
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds on what is parsed. The parser recurses once per open bracket, so text
// that nests absurdly is read line by line instead.
const (
	maxShell   = 256 << 10
	maxNesting = 200
	maxRepairs = 24
	maxBroken  = 100 // hard errors in one text
)

// parsed is a run of statements whose offsets count from base in the code.
type parsed struct {
	src   code
	stmts []*syntax.Stmt
}

// parse reads shell text as far as it can be read. What is merely unfinished
// (a cut quote, here-document, loop) is finished; a line that is no shell is
// left out and reading goes on after it. whole is false when either happened.
func parse(c code) (out []parsed, whole bool) {
	whole = true
	rest := c
	if len(rest.text) > maxShell {
		rest, whole = rest.slice(0, maxShell), false
	}
	for broken := 0; strings.TrimSpace(rest.text) != ""; {
		if nesting(rest.text) <= maxNesting {
			stmts, repaired, err := parseOnce(rest.text)
			if repaired {
				whole = false
			}
			if len(stmts) > 0 {
				out = append(out, parsed{rest, stmts})
			}
			if err == nil {
				return out, whole
			}
			if end := min(endOf(stmts), len(rest.text)); end > 0 {
				rest = rest.slice(end, len(rest.text))
			}
		}
		whole = false
		if broken++; broken > maxBroken {
			return out, whole
		}
		n := firstLine(rest.text)
		if n < len(rest.text) && nesting(rest.text[:n]) <= maxNesting {
			line := rest.slice(0, n)
			if stmts, _, _ := parseOnce(line.text); len(stmts) > 0 {
				out = append(out, parsed{line, stmts})
			}
		}
		rest = rest.slice(n, len(rest.text))
	}
	return out, whole
}

// parseOnce parses text, finishing what its end leaves open. With an error it
// returns the statements before it.
func parseOnce(text string) (stmts []*syntax.Stmt, repaired bool, err error) {
	tail := ""
	for range maxRepairs {
		var file *syntax.File
		p := syntax.NewParser(syntax.Variant(syntax.LangBash))
		file, err = p.Parse(strings.NewReader(text+tail), "")
		if file != nil {
			stmts = file.Stmts
		}
		if err == nil {
			return stmts, tail != "", nil
		}
		more := closer(err)
		if more == "" {
			return stmts, tail != "", err
		}
		tail += more
	}
	return stmts, true, err
}

var (
	unclosedHeredoc = regexp.MustCompile("^unclosed here-document [`\"](.+)[`\"]$")
	unclosedQuote   = regexp.MustCompile("^reached .?EOF.? without closing quote [`\"](.+)[`\"]$")
	unmatched       = regexp.MustCompile("^reached .?EOF.? without matching .+ with [`\"](.+)[`\"]$")
	unended         = regexp.MustCompile("^.+ statement must end with [`\"](.+)[`\"]$")
	unfollowed      = regexp.MustCompile("^.+ must be followed by (.+)$")
)

// closer is what the text lacks according to the parser's complaint, or "".
func closer(err error) string {
	var pe syntax.ParseError
	if !errors.As(err, &pe) {
		return ""
	}
	if m := unclosedHeredoc.FindStringSubmatch(pe.Text); m != nil {
		return "\n" + m[1] + "\n"
	}
	if !pe.Incomplete {
		return ""
	}
	if m := unclosedQuote.FindStringSubmatch(pe.Text); m != nil {
		return m[1]
	}
	if m := unmatched.FindStringSubmatch(pe.Text); m != nil {
		if m[1] == "}" && !strings.Contains(pe.Text, "${") || m[1] == ")" && !strings.Contains(pe.Text, "((") {
			return "\n" + m[1]
		}
		return " " + m[1]
	}
	if m := unended.FindStringSubmatch(pe.Text); m != nil {
		return "\n" + m[1]
	}
	if m := unfollowed.FindStringSubmatch(pe.Text); m != nil {
		switch {
		case strings.Contains(m[1], "`then`"):
			return "\nthen :"
		case strings.Contains(m[1], "`do`"):
			return "\ndo :"
		case strings.Contains(m[1], "statement"):
			return " :"
		case strings.Contains(m[1], "expression"):
			return " 1"
		case strings.Contains(m[1], "a word"):
			return " /dev/null"
		}
	}
	return ""
}

// endOf is where the last statement ends, its here-documents included.
func endOf(stmts []*syntax.Stmt) int {
	end := 0
	for _, s := range stmts {
		end = max(end, int(s.End().Offset()))
		syntax.Walk(s, func(n syntax.Node) bool {
			if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
				end = max(end, int(r.Hdoc.End().Offset()))
			}
			return true
		})
	}
	return end
}

var heredoc = regexp.MustCompile(`<<-?[ \t]*(?:\\|'|")?([A-Za-z_][A-Za-z0-9_]*)`)

// firstLine is the length of the first line with what belongs to it: the
// here-document that it opens.
func firstLine(text string) int {
	n := strings.IndexByte(text, '\n') + 1
	if n == 0 {
		return len(text)
	}
	if m := heredoc.FindStringSubmatch(text[:n]); m != nil {
		for i := n; i < len(text); {
			end := len(text)
			if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
				end = i + j + 1
			}
			if strings.TrimSpace(text[i:end]) == m[1] {
				return end
			}
			i = end
		}
		return len(text)
	}
	return n
}

// nesting estimates from above how deep brackets and compound commands nest,
// here-documents left out.
func nesting(text string) int {
	depth, words, most := 0, 0, 0
	for len(text) > 0 {
		n := firstLine(text)
		line := text[:n]
		if end := strings.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		text = text[n:]
		for i := 0; i < len(line); {
			j := i
			for j < len(line) && (line[j] >= 'a' && line[j] <= 'z') {
				j++
			}
			switch line[i:j] {
			case "if", "while", "until", "for", "case", "select":
				words++
			case "fi", "done", "esac":
				words = max(words-1, 0)
			case "":
				switch line[i] {
				case '(', '{':
					depth++
				case ')', '}':
					depth = max(depth-1, 0)
				}
				j = i + 1
			}
			most = max(most, depth+words)
			i = j
		}
	}
	return most
}
