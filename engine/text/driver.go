package text

import (
	"bytes"
	"strconv"
)

// A Detector looks through a stream of raw bytes for what would drive the
// terminal that it was printed on: what [Line] and [Block] neutralise, less what
// only colours. It keeps its place between chunks, and is cheap on plain text.
// The zero value looks through text that was never meant for a screen.
type Detector struct {
	// Screen tells that the stream belongs to a screen, where moving the cursor,
	// clearing, and modes are ordinary. Window titles, the clipboard, questions
	// to the terminal (whose answer is typed) and control strings are not.
	Screen bool

	state  byte
	params []byte // of a control sequence, or the number of an operating system command
}

const (
	ground byte = iota
	escape
	charset // ESC ( and its kin: one more byte
	control // CSI
	command // OSC
	half    // 0xC2, which may begin a C1 control
)

// Scan returns what it finds first, such as "OSC 52, the clipboard", "" when there
// is nothing. What comes after that in p is not looked at.
func (d *Detector) Scan(p []byte) string {
	for _, c := range p {
		if d.state == ground && c != 0x1b && c != 0x05 && c != 0x0e && c != 0xc2 {
			continue
		}
		if found := d.step(c); found != "" {
			d.state = ground
			return found
		}
	}
	return ""
}

func (d *Detector) step(c byte) string {
	switch d.state {
	case ground:
		switch c {
		case 0x1b:
			d.state = escape
		case 0x05:
			return "ENQ, a question to the terminal"
		case 0x0e:
			if !d.Screen {
				return "SO, another character set"
			}
		case 0xc2:
			d.state = half
		}
	case half:
		d.state = ground
		if c >= 0x80 && c < 0xa0 {
			return d.escaped(c - 0x40)
		}
		return d.step(c)
	case escape:
		d.state = ground
		return d.escaped(c)
	case charset:
		d.state = ground
		if c != 'B' && !d.Screen {
			return "another character set"
		}
	case control:
		switch {
		case c >= 0x40 && c <= 0x7e:
			d.state = ground
			return d.controlled(c)
		case c < 0x20 || c > 0x7e:
			d.state = ground
			if c == 0x1b {
				d.state = escape
			}
		case len(d.params) < 64:
			d.params = append(d.params, c)
		}
	case command:
		if c >= '0' && c <= '9' && len(d.params) < 8 {
			d.params = append(d.params, c)
			return ""
		}
		d.state = ground
		if c == 0x1b { // the end of it, or something else
			d.state = escape
		}
		return d.commanded()
	}
	return ""
}

// escaped is what ESC c begins or does.
func (d *Detector) escaped(c byte) string {
	switch c {
	case '[':
		d.state, d.params = control, d.params[:0]
	case ']':
		d.state, d.params = command, d.params[:0]
	case 'P':
		return "DCS, a control string"
	case 'X', '^', '_':
		return "a control string"
	case 'k':
		return "ESC k, the window's title"
	case 'Z':
		return "ESC Z, a question to the terminal"
	case '(', ')', '*', '+':
		d.state = charset
	case 0x1b:
		d.state = escape
	case '\\': // the end of a control string
	default:
		if !d.Screen {
			return "an escape sequence"
		}
	}
	return ""
}

// controlled judges a whole control sequence.
func (d *Detector) controlled(final byte) string {
	private := len(d.params) > 0 && d.params[0] >= '<' && d.params[0] <= '?'
	first := byte(0)
	if private {
		first = d.params[0]
	}
	last := byte(0)
	if n := len(d.params); n > 0 {
		last = d.params[n-1]
	}
	name := "CSI " + string(d.params) + string(final)
	ask := name + ", a question to the terminal"
	switch {
	case final == 'm' && !private, final == 'K' && !private:
		return ""
	case final == 'n' && first != '>', final == 'c' && first != '?', final == 'x', final == 'p' && last == '$',
		final == 'q' && first == '>', final == 'u' && first == '?', final == 'm' && first == '?':
		return ask
	case final == 't':
		n, _, _ := bytes.Cut(d.params, []byte{';'})
		op, _ := strconv.Atoi(string(n))
		switch {
		case op >= 11 && op <= 21:
			return ask
		case op >= 1 && op <= 10:
			return name + ", the window"
		}
	case final == 'i':
		return name + ", the printer"
	}
	if d.Screen {
		return ""
	}
	return name
}

// commanded judges an operating system command by its number. Marks of a
// shell's prompts (133, 633, 3008), links and the working folder drive nothing.
func (d *Detector) commanded() string {
	switch n := string(d.params); n {
	case "133", "633", "3008", "8", "7":
		return ""
	case "104", "110", "111", "112": // the terminal's own colours again
		if d.Screen {
			return ""
		}
		return "OSC " + n
	case "0", "1", "2":
		return "OSC " + n + ", the window's title"
	case "52":
		return "OSC 52, the clipboard"
	default:
		return "OSC " + n
	}
}
