// Package echo decides how much of what is typed into a terminal may be kept.
//
// The rule: a typed line is kept only if the terminal showed it. Its text, in
// one piece and followed by a line's end, must be among what was printed between
// its first key and a little after its Enter. So a record of input tells nothing
// that the record of output does not, whatever words a guest asks for a secret
// in, and however early the secret is typed: what is pasted ahead of a password
// prompt is echoed by nobody, and not kept.
//
// What that costs: a line that was composed by other means than typing its text
// (completion, history, cursor keys) is not kept either. The output shows it.
package echo

import (
	"bytes"
	"unicode/utf8"
)

// Bounds of what is remembered of a terminal.
const (
	maxLine    = 4 << 10
	maxWaiting = 64
	maxPrinted = 16 << 10
	// patience is how much may be printed after a line's Enter and before its
	// echo ends. Longer would let a secret be taken for shown because a program
	// happens to print its text.
	patience = 4 << 10
)

// Line is a line that was typed, Enter left out. Text is "" unless it was shown.
// It has no control characters, but may be hostile in other ways.
type Line struct {
	Text  string
	Shown bool
}

// Input follows one terminal. The zero value is ready. It is not safe for
// concurrent use.
type Input struct {
	keys, screen filter

	typing  []byte // of the line that has not been entered yet
	began   bool   // it has keys
	start   int    // where in the output its first key was
	waiting []entered

	printed []byte // the end of what was printed
	base    int    // where in the output it begins
	cursor  int    // where in the output the last echo ended
}

// entered is a line whose echo has not been seen.
type entered struct {
	text       []byte
	start, end int // where in the output its first key and its Enter were
	seen       int // up to where its echo was looked for
}

// Typed takes keys, before the terminal gets them, and returns the lines that are
// given up for them. Empty lines are nobody's secret, and nobody's news.
func (i *Input) Typed(p []byte) (lines []Line) {
	for _, b := range p {
		if !i.began && b != '\r' && b != '\n' {
			i.began, i.start = true, i.position()
		}
		switch b = i.keys.next(b); {
		case b == 0:
		case b == '\b':
			i.typing = withoutLast(i.typing)
		case b != '\r' && b != '\n':
			if len(i.typing) <= maxLine {
				i.typing = append(i.typing, b)
			}
		case i.began:
			i.waiting = append(i.waiting, entered{i.typing, i.start, i.position(), i.start})
			i.typing, i.began = nil, false
			if len(i.waiting) > maxWaiting {
				i.waiting = i.waiting[1:]
				lines = append(lines, Line{})
			}
		}
	}
	return lines
}

// Printed takes output, and returns the lines that are decided by it, in the
// order in which they were typed.
func (i *Input) Printed(p []byte) (lines []Line) {
	if !i.began && len(i.waiting) == 0 {
		i.base, i.printed = i.position(), nil // nobody asks for it
		i.base += len(p)
		for _, b := range p {
			i.screen.next(b)
		}
		return nil
	}
	for len(p) > 0 { // in pieces that the window holds
		n := min(len(p), patience)
		lines = append(lines, i.print(p[:n])...)
		p = p[n:]
	}
	return lines
}

func (i *Input) print(p []byte) (lines []Line) {
	low := i.position() // what is below it is as it was
	for _, b := range p {
		switch b = i.screen.next(b); b {
		case 0:
		case '\b':
			if n := len(i.printed); n > 0 && i.printed[n-1] != '\r' && i.printed[n-1] != '\n' { // it stays in its line
				i.printed = withoutLast(i.printed)
				low = min(low, i.position())
			}
		default:
			i.printed = append(i.printed, b)
		}
	}
	if over := len(i.printed) - maxPrinted; over > 0 {
		i.printed = append([]byte(nil), i.printed[over:]...)
		i.base += over
	}
	// Only at the ends of printed lines that were not looked at before: who types
	// and prints without measure must not make this dear.
	from := i.position()
	for n := range i.waiting {
		i.waiting[n].seen = min(i.waiting[n].seen, low)
		from = min(from, i.waiting[n].seen)
	}
	for at := max(from, i.base); at < i.position(); at++ {
		if b := i.printed[at-i.base]; b != '\r' && b != '\n' {
			continue
		}
		// The last that ends here: what ends a later line's echo is no echo of its
		// own, as when a command names what was typed blindly before.
		n := len(i.waiting) - 1
		for n >= 0 && !i.ends(i.waiting[n], at) {
			n--
		}
		if n < 0 {
			continue
		}
		for range n { // an echo comes in the order of typing
			lines = append(lines, Line{})
		}
		lines = append(lines, Line{Text: string(i.waiting[n].text), Shown: true})
		i.waiting, i.cursor = i.waiting[n+1:], at
	}
	for n := range i.waiting {
		i.waiting[n].seen = i.position()
	}
	for len(i.waiting) > 0 && i.position()-i.waiting[0].end > patience {
		i.waiting = i.waiting[1:]
		lines = append(lines, Line{})
	}
	return lines
}

// End returns what nothing can decide any more.
func (i *Input) End() []Line {
	n := len(i.waiting)
	if i.began {
		n++
	}
	*i = Input{}
	return make([]Line, n)
}

func (i *Input) position() int { return i.base + len(i.printed) }

// ends tells whether a line's echo ends at a place of the output where a line does.
func (i *Input) ends(l entered, at int) bool {
	first := at - len(l.text)
	return at >= l.seen && len(l.text) > 0 && len(l.text) <= maxLine && first >= max(l.start, i.cursor, i.base) &&
		bytes.Equal(i.printed[first-i.base:at-i.base], l.text)
}

func withoutLast(b []byte) []byte {
	_, n := utf8.DecodeLastRune(b)
	return b[:len(b)-n]
}

// filter passes text, line ends and backspaces.
type filter struct{ state byte }

// States of a filter.
const (
	inText   = iota
	inEscape // after ESC
	inCSI
	inString // of OSC, DCS, APC, PM, SOS
	inStringEscape
)

// next takes a byte of the stream; 0 when it is none of the text.
func (f *filter) next(b byte) byte {
	switch f.state {
	case inEscape:
		switch b {
		case '[':
			f.state = inCSI
		case ']', 'P', '_', '^', 'X':
			f.state = inString
		default:
			if b < 0x20 || b > 0x2f { // intermediates go on
				f.state = inText
			}
		}
		return 0
	case inCSI:
		if b >= 0x40 && b <= 0x7e || b == 0x18 || b == 0x1a {
			f.state = inText
		}
		return 0
	case inString, inStringEscape:
		switch {
		case b == 0x07, f.state == inStringEscape && b == '\\', b == 0x18, b == 0x1a:
			f.state = inText
		case b == 0x1b:
			f.state = inStringEscape
		default:
			f.state = inString
		}
		return 0
	}
	switch {
	case b == 0x1b:
		f.state = inEscape
		return 0
	case b == 0x7f:
		return '\b'
	case b < 0x20 && b != '\r' && b != '\n' && b != '\b':
		return 0
	}
	return b
}
