package agent

import (
	"net/url"
	"strconv"
	"strings"
)

// announcer finds the marks by which a shell says what it runs, in a terminal's
// output: OSC 133 (and its 633 dialect) with E, the command line; C, the
// command's output begins; D, it ended. Everything it finds is the guest's word.
type announcer struct {
	state byte // what the next byte belongs to: one of the values below
	osc   []byte
	line  string // from the last E, until C
}

const (
	inGround byte = iota
	inEscape
	inOSC
	inOSCEscape // ESC inside an OSC: its end, if a backslash follows
)

// announcement is a command's start or end.
type announcement struct {
	start bool
	line  string // of a start; "" when the shell did not say
	exit  *int   // of an end; nil when the shell did not say
}

// oscLimit bounds a mark; a longer one is not looked at.
const oscLimit = 8 << 10

// scan looks through a chunk and calls found for each mark.
func (a *announcer) scan(p []byte, found func(announcement)) {
	for _, c := range p {
		switch a.state {
		case inGround:
			if c == 0x1b {
				a.state = inEscape
			}
		case inEscape:
			switch c {
			case ']':
				a.state, a.osc = inOSC, a.osc[:0]
			case 0x1b:
			default:
				a.state = inGround
			}
		case inOSC:
			switch {
			case c == 0x07:
				a.end(found)
			case c == 0x1b:
				a.state = inOSCEscape
			case c == 0x18 || c == 0x1a: // cancel
				a.state = inGround
			case len(a.osc) <= oscLimit:
				a.osc = append(a.osc, c)
			}
		case inOSCEscape:
			switch c {
			case '\\':
				a.end(found)
			case ']':
				a.state, a.osc = inOSC, a.osc[:0]
			case 0x1b:
			default:
				a.state = inGround
			}
		}
	}
}

func (a *announcer) end(found func(announcement)) {
	a.state = inGround
	if len(a.osc) > oscLimit {
		return
	}
	number, rest, _ := strings.Cut(string(a.osc), ";")
	if number != "133" && number != "633" {
		return
	}
	mark, params, _ := strings.Cut(rest, ";")
	switch mark {
	case "E":
		if number == "633" { // a nonce may follow; semicolons in the line are escaped
			params, _, _ = strings.Cut(params, ";")
		}
		a.line = unescapeLine(params)
	case "C":
		if l, ok := lineParam(params); ok {
			a.line = l
		}
		found(announcement{start: true, line: a.line})
		a.line = ""
	case "D":
		code, _, _ := strings.Cut(params, ";")
		var exit *int
		if n, err := strconv.Atoi(code); err == nil && n >= 0 && n <= 255 {
			exit = &n
		}
		found(announcement{exit: exit})
	}
}

// lineParam finds the command line among a C mark's parameters.
func lineParam(params string) (string, bool) {
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		if v, ok := strings.CutPrefix(p, "cmdline_url="); ok {
			if u, err := url.PathUnescape(v); err == nil {
				return u, true
			}
			return v, true
		}
		if v, ok := strings.CutPrefix(p, "cmdline="); ok {
			return v, true
		}
	}
	return "", false
}

// unescapeLine undoes \\ and \xHH.
func unescapeLine(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\\' {
				b.WriteByte('\\')
				i++
				continue
			}
			if s[i+1] == 'x' && i+3 < len(s) {
				if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 3
					continue
				}
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
