package sim

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// sedCommand is one command of a sed script: [addr[,addr]][!]command.
type sedCommand struct {
	from, to *sedAddress
	negated  bool
	verb     byte // s d p q a i c y =
	re       *regexp.Regexp
	text     string // replacement, or the text of a, i, c
	global   bool
	nth      int
	print    bool
	inside   bool // between from and to
	block    []*sedCommand
}

type sedAddress struct {
	line int // 0: not by line
	last bool
	re   *regexp.Regexp
}

func (a *sedAddress) match(n int, last bool, line string) bool {
	switch {
	case a.last:
		return last
	case a.line > 0:
		return n == a.line
	}
	return a.re.MatchString(line)
}

// sedParser reads a script.
type sedParser struct {
	in       string
	extended bool
}

type sedError string

func (e sedError) Error() string { return string(e) }

func (p *sedParser) until(delim byte, regex bool) (string, error) {
	var s strings.Builder
	class := false
	for i := 0; i < len(p.in); i++ {
		c := p.in[i]
		switch {
		case c == '\\' && i+1 < len(p.in):
			i++
			switch {
			case p.in[i] == delim:
				// An escaped delimiter is the delimiter's plain self, except that
				// an operator stays escaped.
				if regex && delim == '|' {
					s.WriteByte('\\')
				}
				s.WriteByte(delim)
			case p.in[i] == 'n' && regex:
				s.WriteString(`\n`)
			default:
				s.WriteString(p.in[i-1 : i+1])
			}
			continue
		case regex && c == '[':
			class = true
		case c == ']':
			class = false
		case c == delim && !class:
			p.in = p.in[i+1:]
			return s.String(), nil
		}
		s.WriteByte(c)
	}
	return "", sedError("unterminated expression")
}

func (p *sedParser) space(set string) { p.in = strings.TrimLeft(p.in, set) }

func (p *sedParser) address() (*sedAddress, error) {
	switch {
	case p.in == "":
		return nil, nil
	case p.in[0] == '$':
		p.in = p.in[1:]
		return &sedAddress{last: true}, nil
	case p.in[0] >= '0' && p.in[0] <= '9':
		end := 0
		for end < len(p.in) && p.in[end] >= '0' && p.in[end] <= '9' {
			end++
		}
		n, _ := strconv.Atoi(p.in[:end])
		p.in = p.in[end:]
		return &sedAddress{line: n}, nil
	case p.in[0] == '/' || p.in[0] == '\\' && len(p.in) > 1:
		delim := p.in[0]
		p.in = p.in[1:]
		if delim == '\\' {
			delim, p.in = p.in[0], p.in[1:]
		}
		pat, err := p.until(delim, true)
		if err != nil {
			return nil, err
		}
		fold := strings.HasPrefix(p.in, "I")
		p.in = strings.TrimPrefix(p.in, "I")
		re, err := expression(pat, p.extended, false, fold)
		return &sedAddress{re: re}, err
	}
	return nil, nil
}

func (p *sedParser) commands(nested bool) ([]*sedCommand, error) {
	var list []*sedCommand
	for {
		p.space(" \t\n;")
		if p.in == "" {
			if nested {
				return nil, sedError("unmatched {")
			}
			return list, nil
		}
		if p.in[0] == '}' {
			p.in = p.in[1:]
			if !nested {
				return nil, sedError("unexpected }")
			}
			return list, nil
		}
		if p.in[0] == '#' {
			_, p.in, _ = strings.Cut(p.in, "\n")
			continue
		}
		c := &sedCommand{}
		var err error
		if c.from, err = p.address(); err != nil {
			return nil, err
		}
		if strings.HasPrefix(p.in, ",") && c.from != nil {
			p.in = p.in[1:]
			if c.to, err = p.address(); err != nil {
				return nil, err
			}
			if c.to == nil {
				return nil, sedError("unexpected ,")
			}
		}
		p.space(" ")
		if strings.HasPrefix(p.in, "!") {
			c.negated = true
			p.in = p.in[1:]
			p.space(" ")
		}
		if p.in == "" {
			return nil, sedError("missing command")
		}
		c.verb, p.in = p.in[0], p.in[1:]
		if err := p.command(c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
}

func (p *sedParser) command(c *sedCommand) error {
	switch c.verb {
	case '{':
		var err error
		c.block, err = p.commands(true)
		return err
	case 's':
		if p.in == "" {
			return sedError("unterminated s command")
		}
		delim := p.in[0]
		p.in = p.in[1:]
		pat, err := p.until(delim, true)
		if err != nil {
			return err
		}
		if c.text, err = p.until(delim, false); err != nil {
			return err
		}
		fold := false
		for p.in != "" {
			switch f := p.in[0]; {
			case f == 'g':
				c.global = true
			case f == 'p':
				c.print = true
			case f == 'i' || f == 'I':
				fold = true
			case f >= '1' && f <= '9':
				c.nth = int(f - '0')
			default:
				c.re, err = expression(pat, p.extended, false, fold)
				return err
			}
			p.in = p.in[1:]
		}
		c.re, err = expression(pat, p.extended, false, fold)
		return err
	case 'a', 'i', 'c':
		p.space(" \t")
		p.in = strings.TrimPrefix(p.in, "\\")
		p.space(" \t\n")
		c.text, p.in, _ = strings.Cut(p.in, "\n")
		c.text = strings.ReplaceAll(c.text, `\n`, "\n")
		return nil
	case 'd', 'p', 'q', '=':
		return nil
	}
	return sedError("unknown command: '" + string(c.verb) + "'")
}

func (c *sedCommand) selected(n int, last bool, line string) bool {
	hit := true
	switch {
	case c.from != nil && c.to != nil:
		if !c.inside {
			if hit = c.from.match(n, last, line); hit {
				c.inside = c.to.line == 0 || c.to.line > n
			}
		} else if c.to.match(n, last, line) || c.to.line > 0 && n >= c.to.line {
			c.inside = false
		}
	case c.from != nil:
		hit = c.from.match(n, last, line)
	}
	return hit != c.negated
}

// substitute applies s///.
func (c *sedCommand) substitute(line string) (string, bool) {
	var out strings.Builder
	at, count, done := 0, 0, false
	for _, m := range c.re.FindAllStringSubmatchIndex(line, -1) {
		count++
		if c.nth > 0 && count < c.nth || c.nth == 0 && !c.global && count > 1 || c.nth > 0 && !c.global && count > c.nth {
			continue
		}
		done = true
		out.WriteString(line[at:m[0]])
		for i := 0; i < len(c.text); i++ {
			switch ch := c.text[i]; {
			case ch == '&':
				out.WriteString(line[m[0]:m[1]])
			case ch == '\\' && i+1 < len(c.text):
				i++
				if d := int(c.text[i] - '0'); d >= 0 && d <= 9 {
					if 2*d+1 < len(m) && m[2*d] >= 0 {
						out.WriteString(line[m[2*d]:m[2*d+1]])
					}
				} else if c.text[i] == 'n' {
					out.WriteByte('\n')
				} else {
					out.WriteByte(c.text[i])
				}
			default:
				out.WriteByte(ch)
			}
		}
		at = m[1]
	}
	out.WriteString(line[at:])
	return out.String(), done
}

// sedRun is one pass over one input.
type sedRun struct {
	out   *bytes.Buffer
	n     int
	last  bool
	after []string
	quit  bool
}

// apply runs commands on a line and reports whether it is deleted.
func (r *sedRun) apply(list []*sedCommand, line *string) (deleted bool) {
	for _, c := range list {
		if !c.selected(r.n, r.last, *line) {
			continue
		}
		switch c.verb {
		case '{':
			if r.apply(c.block, line) {
				return true
			}
		case 's':
			var hit bool
			if *line, hit = c.substitute(*line); hit && c.print {
				r.out.WriteString(*line + "\n")
			}
		case 'd':
			return true
		case 'p':
			r.out.WriteString(*line + "\n")
		case '=':
			r.out.WriteString(strconv.Itoa(r.n) + "\n")
		case 'q':
			r.quit = true
			return false
		case 'a':
			r.after = append(r.after, c.text)
		case 'i':
			r.out.WriteString(c.text + "\n")
		case 'c':
			if c.to == nil || !c.inside {
				r.out.WriteString(c.text + "\n")
			}
			return true
		}
		if r.quit {
			return false
		}
	}
	return false
}

func sedEdit(list []*sedCommand, data []byte, silent bool) []byte {
	r := &sedRun{out: &bytes.Buffer{}}
	text := string(data)
	for text != "" && !r.quit {
		line, rest, newline := strings.Cut(text, "\n")
		text = rest
		r.n++
		r.last = rest == ""
		r.after = nil
		if !r.apply(list, &line) && !silent {
			r.out.WriteString(line)
			if newline || !r.last {
				r.out.WriteByte('\n')
			}
		}
		for _, a := range r.after {
			r.out.WriteString(a + "\n")
		}
	}
	return r.out.Bytes()
}

func toolSed(t *run) int {
	var scripts, files []string
	silent, extended, inPlace := false, false, false
	for i := 0; i < len(t.args); i++ {
		a := t.args[i]
		switch {
		case a == "-e" && i+1 < len(t.args):
			i++
			scripts = append(scripts, t.args[i])
		case a == "-n" || a == "--quiet" || a == "--silent":
			silent = true
		case a == "-E" || a == "-r" || a == "--regexp-extended":
			extended = true
		case strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place"):
			inPlace = true
		case len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "nErise") == "":
			silent = silent || strings.Contains(a, "n")
			extended = extended || strings.ContainsAny(a, "Er")
			inPlace = inPlace || strings.Contains(a, "i")
			if strings.HasSuffix(a, "e") && i+1 < len(t.args) {
				i++
				scripts = append(scripts, t.args[i])
			}
		default:
			files = append(files, a)
		}
	}
	if len(scripts) == 0 {
		if len(files) == 0 {
			return t.fail(1, "no script")
		}
		scripts, files = files[:1], files[1:]
	}
	parse := func() ([]*sedCommand, error) {
		p := &sedParser{in: strings.Join(scripts, "\n"), extended: extended}
		return p.commands(false)
	}
	if _, err := parse(); err != nil {
		return t.fail(1, "-e expression: %v", err)
	}
	if inPlace {
		code := 0
		for _, f := range files {
			list, _ := parse()
			data, err := t.b.fs.ReadFile(t.Path(f))
			if err == nil {
				err = t.b.fs.WriteFile(t.Path(f), sedEdit(list, data, silent), 0o644)
			}
			if err != nil {
				code = t.fail(2, "can't edit %s: %s", f, errText(err))
			}
		}
		return code
	}
	var all []byte
	code := t.inputs(files, func(_ string, r io.Reader) {
		data, _ := io.ReadAll(io.LimitReader(r, 64<<20))
		all = append(all, data...)
	})
	list, _ := parse()
	_, _ = t.out.Write(sedEdit(list, all, silent))
	return code
}
