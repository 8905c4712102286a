package step

import (
	"strings"

	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/term"
)

// Output that holds terminal sequences is shown as a terminal would: by the
// emulator, wide enough for any table, a part at a time because it keeps a
// bounded history.
const (
	emulated  = 400
	emulatedH = 50
	atATime   = term.Scrollback - emulatedH
)

// output writes what came back from a command.
func (p *paper) output(raw string, st canvas.Style) {
	if !strings.ContainsAny(raw, "\x1b\r\b\u009b") {
		p.put(strings.TrimRight(text.Block(raw), "\n"), st, 0)
		p.end(0)
		return
	}
	for raw != "" && !p.full() {
		part := raw
		if i := nthLine(raw, atATime); i >= 0 {
			part = raw[:i]
		}
		raw = raw[len(part):]
		t := term.New(emulated, emulatedH)
		t.Write([]byte("\x1b[20h")) //nolint:errcheck // it never fails; a line feed returns, as in a file
		t.Write([]byte(part))       //nolint:errcheck // the same
		end := t.End()
		for end > 0 && t.Text(end-1) == "" {
			end--
		}
		for i := range end {
			cells := append([]canvas.Cell(nil), t.Line(i)...)
			for j := range cells {
				if cells[j].S.Fg == canvas.Default {
					cells[j].S.Fg = st.Fg
				}
			}
			p.line = cells
			p.end(0)
		}
	}
}

// nthLine is where line n begins; -1 when there are fewer.
func nthLine(s string, n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	if at >= len(s) {
		return -1
	}
	return at
}

// json writes JSON text with one value a line, as far as it is JSON: it may be
// cut, or hold what is none, such as NaN.
func (p *paper) json(raw string) {
	s := text.Block(raw)
	depth, key := 0, true
	plain, mark := canvas.Fg(canvas.Text), canvas.Fg(canvas.Storage)
	indent := func() {
		p.end(2)
		p.put(strings.Repeat("  ", min(depth, 40)), plain, 0)
	}
	for i := 0; i < len(s) && !p.full(); {
		switch c := s[i]; c {
		case '"':
			end := i + 1
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(s))
			st := canvas.Fg(canvas.Ok)
			if key && followed(s[end:], ':') {
				st = canvas.Fg(canvas.Accent)
			}
			p.put(strings.ReplaceAll(s[i:end], "\n", "⏎"), st, 0)
			i = end
		case '{', '[':
			p.put(s[i:i+1], mark, 0)
			i++
			if j := i + blanks(s[i:]); j < len(s) && (s[j] == '}' || s[j] == ']') {
				p.put(s[j:j+1], mark, 0)
				i = j + 1
				break
			}
			depth++
			indent()
		case '}', ']':
			depth = max(0, depth-1)
			indent()
			p.put(s[i:i+1], mark, 0)
			i++
		case ',':
			p.put(",", mark, 0)
			i++
			indent()
		case ':':
			p.put(": ", mark, 0)
			i++
		case ' ', '\n':
			i++
		default:
			end := i
			for end < len(s) && !strings.ContainsRune("{}[],:\" \n", rune(s[end])) {
				end++
			}
			p.put(s[i:end], canvas.Fg(canvas.Queue), 0)
			i = end
		}
	}
	p.end(2)
}

func blanks(s string) int { return len(s) - len(strings.TrimLeft(s, " \n")) }

func followed(s string, c byte) bool {
	i := blanks(s)
	return i < len(s) && s[i] == c
}

// patch writes a diff: what goes and what comes, by sign and colour.
func (p *paper) patch(raw string) {
	for line := range strings.Lines(text.Block(raw)) {
		if p.full() {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		st := canvas.Fg(canvas.Text)
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "***"), strings.HasPrefix(line, "diff "):
			st = canvas.Fg(canvas.Title).With(canvas.Bold)
		case strings.HasPrefix(line, "@@"):
			st = canvas.Fg(canvas.Accent)
		case strings.HasPrefix(line, "+"):
			st = canvas.Fg(canvas.Ok)
		case strings.HasPrefix(line, "-"):
			st = canvas.Fg(canvas.Bad)
		}
		p.put(line, st, 0)
		p.end(2)
	}
}
