package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// writer builds a sanitised string. Runes past ASCII are gathered in run, so
// that composition sees whole clusters, and are written by flushRun.
type writer struct {
	b     strings.Builder
	run   []byte
	block bool
	limit int
	col   int // cells on the current line, for tab stops
}

func (w *writer) full() bool { return w.b.Len()+len(w.run) > w.limit+64 }

// step consumes one character or one whole escape sequence of s and returns its length.
func (w *writer) step(s string) int {
	c := s[0]
	switch {
	case c >= 0x20 && c < 0x7f:
		w.put(rune(c))
		return 1
	case c == 0x1b:
		return sequence(s, 1)
	case c == '\r' && len(s) > 1 && s[1] == '\n':
		return 1
	case c >= '\n' && c <= '\r':
		w.newline()
		return 1
	case c == '\t':
		w.tab()
		return 1
	case c < 0x20:
		w.put('␀' + rune(c))
		return 1
	case c == 0x7f:
		w.put('␡')
		return 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if r >= 0x80 && r <= 0x9f {
		return w.c1(r, s, size)
	}
	w.rune(r)
	return size
}

// c1 handles the 8-bit controls in their UTF-8 form; the raw bytes are invalid
// UTF-8 and so are U+FFFD already.
func (w *writer) c1(r rune, s string, size int) int {
	switch r {
	case 0x85:
		w.newline()
	case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
		return sequence(s, size)
	default:
		w.put(substitute)
	}
	return size
}

func (w *writer) newline() {
	w.flushRun()
	if w.block {
		w.b.WriteByte('\n')
	} else {
		w.b.WriteRune(newlineSign)
	}
	w.col = 0
}

func (w *writer) tab() {
	n := 1
	if w.block {
		w.flushRun()
		n = TabWidth - w.col%TabWidth
	}
	for range n {
		w.put(' ')
	}
}

func (w *writer) rune(r rune) {
	switch {
	case r >= 0x1F1E6 && r <= 0x1F1FF: // regional indicators, the halves of flags
		w.put('A' + r - 0x1F1E6)
	case r == 0x2028 || r == 0x2029:
		w.newline()
	case r == 0x3000:
		w.put(' ')
		w.put(' ')
	case unicode.Is(unicode.Zs, r):
		w.put(' ')
	case dropped(r):
	case !unicode.IsPrint(r):
		w.put(utf8.RuneError)
	default:
		w.put(r)
	}
}

// dropped tells the runes that draw nothing, or whose drawing terminals disagree on.
func dropped(r rune) bool {
	switch {
	case unicode.Is(unicode.Cf, r),
		unicode.Is(unicode.Variation_Selector, r),
		r >= 0x1F3FB && r <= 0x1F3FF,                       // skin tones
		r == 0x20E3,                                        // the keycap
		r == 0x034F,                                        // grapheme joiner
		r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, // Hangul fillers
		r == 0x17B4, r == 0x17B5: // Khmer inherent vowels
		return true
	}
	return false
}

func (w *writer) put(r rune) {
	w.run = utf8.AppendRune(w.run, r)
	// A run ends where nothing can compose across: before an ASCII rune that
	// follows an ASCII rune.
	if r < 0x7f && len(w.run) > 256 {
		w.flushAllBut(1)
	}
}

func (w *writer) flushAllBut(n int) {
	tail := w.run[len(w.run)-n:]
	w.flush(w.run[:len(w.run)-n])
	w.run = append(w.run[:0], tail...)
}

func (w *writer) flushRun() {
	w.flush(w.run)
	w.run = w.run[:0]
}

// flush composes p and writes it, leaving out marks that have no base and those
// beyond maxMarks.
func (w *writer) flush(p []byte) {
	if len(p) == 0 {
		return
	}
	if !norm.NFC.IsNormal(p) {
		p = norm.NFC.Bytes(p)
	}
	marks := 0
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		rw := RuneWidth(r)
		if rw == 0 {
			marks++
		} else {
			marks = 0
		}
		if rw > 0 || w.col > 0 && marks <= maxMarks {
			w.b.Write(p[:size])
		}
		w.col += rw
		p = p[size:]
	}
}

// sequence returns the length of the escape sequence at the start of s, whose
// introducer is ESC (intro 1) or a C1 control in UTF-8 (intro 2).
func sequence(s string, intro int) int {
	kind := rune(0)
	if intro == 1 {
		if len(s) == 1 {
			return 1
		}
		kind = rune(s[1]) + 0x40 // ESC [ is the 7-bit form of U+009B, and so on
		if s[1] < 0x40 || s[1] > 0x5f {
			kind = 0
		}
		intro = 2
	} else {
		kind, _ = utf8.DecodeRuneInString(s)
	}
	switch kind {
	case 0x9b:
		return controlSequence(s, intro)
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		return controlString(s, intro)
	}
	return simpleSequence(s)
}

// simpleSequence is ESC, intermediates, one final byte.
func simpleSequence(s string) int {
	for i := 1; i < len(s) && i < 16; i++ {
		switch c := s[i]; {
		case c >= 0x20 && c <= 0x2f:
		case c >= 0x30 && c <= 0x7e:
			return i + 1
		default: // a control or a rune past ASCII ends it and is kept
			return i
		}
	}
	return min(len(s), 16)
}

func controlSequence(s string, i int) int {
	for end := min(len(s), maxSequence); i < end; i++ {
		switch c := s[i]; {
		case c >= 0x20 && c <= 0x3f:
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		default:
			return i
		}
	}
	return i
}

// controlString ends at BEL, ST (ESC \ or U+009C); without one before the end of
// the line only the introducer goes.
func controlString(s string, intro int) int {
	for i := intro; i < min(len(s), maxSequence); i++ {
		switch s[i] {
		case 0x07:
			return i + 1
		case 0x1b:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			return i // another sequence cancels the string
		case 0xc2:
			if i+1 < len(s) && s[i+1] == 0x9c {
				return i + 2
			}
		case '\n', '\r':
			return intro
		}
	}
	return intro
}
