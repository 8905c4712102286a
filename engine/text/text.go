// Package text makes strings from guests, agents and files safe to show, and
// measures them as a terminal draws them (design: section 1, decision 5).
//
// A string is sanitised once, when it is read, with [Line] or [Block]. What
// comes out is valid UTF-8 in NFC and holds only printable runes (and "\n" in
// a Block), so every later step may put it on a canvas, a log line or a window
// title as it is. The rules:
//
//   - escape sequences (7-bit and 8-bit: CSI, OSC, DCS, SOS, PM, APC, ESC x)
//     are dropped whole; a string sequence that is not closed on its line, or
//     within 4096 bytes, loses only its introducer, so that it can hide nothing;
//   - other control characters become their control picture (BEL is ␇, DEL is ␡),
//     C1 controls become ␦ (substitute);
//   - bidi overrides, embeddings and isolates, zero-width characters, soft
//     hyphens, tags, fillers and variation selectors are dropped;
//   - an invalid byte, a private-use or an unassigned rune becomes U+FFFD;
//   - every kind of space becomes plain spaces;
//   - emoji are brought to forms whose width all terminals agree on: ZWJ
//     sequences fall apart into their members, skin tones are dropped, flags
//     become two capital letters;
//   - at most two combining marks stay on one base rune, none at a line's start.
//
// Widths never depend on the locale or the environment: ambiguous is narrow.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxLine is the largest result of Line, in bytes.
	MaxLine = 64 << 10
	// MaxBlock is the largest result of Block, in bytes.
	MaxBlock = 8 << 20
	// TabWidth is the distance of the tab stops of Block, in cells.
	TabWidth = 8
	// Ellipsis marks what was cut, here and on the canvas.
	Ellipsis = "…"

	maxSequence = 4096
	maxMarks    = 2
	newlineSign = '⏎'
	substitute  = '␦'
)

// Line returns s on one line: tabs become one space, line breaks inside become
// "⏎", line breaks at the end are dropped. Longer results than MaxLine end in "…".
// Line(Line(s)) == Line(s); clean ASCII is returned as it is, without allocation.
func Line(s string) string {
	if len(s) <= MaxLine && isClean(s, false) {
		return s
	}
	return sanitise(s, false)
}

// Block returns s with its lines kept: "\n" ends a line ("\r\n", a lone "\r" and the
// Unicode separators become "\n"), tabs are expanded to stops of TabWidth cells.
// Longer results than MaxBlock end in "…". Block(Block(s)) == Block(s).
func Block(s string) string {
	if len(s) <= MaxBlock && isClean(s, true) {
		return s
	}
	return sanitise(s, true)
}

func isClean(s string, block bool) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			if c != '\n' || !block {
				return false
			}
		}
	}
	return true
}

func sanitise(s string, block bool) string {
	limit := MaxLine
	if block {
		limit = MaxBlock
	}
	w := writer{block: block, limit: limit}
	w.b.Grow(min(len(s), limit) + 16)
	for i := 0; i < len(s) && !w.full(); {
		i += w.step(s[i:])
	}
	w.flushRun()
	out := w.b.String()
	if len(out) > limit {
		return cutBytes(out, limit-len(Ellipsis)) + Ellipsis
	}
	if !block {
		out = strings.TrimRight(out, string(newlineSign))
	}
	return out
}

// cutBytes cuts s to at most n bytes without splitting a rune or leaving a base
// rune without the marks that follow it.
func cutBytes(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	for n > 0 {
		if r, _ := utf8.DecodeRuneInString(s[n:]); RuneWidth(r) != 0 || r == '\n' {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:n])
		n -= size
	}
	return s[:n]
}

// Count is a number with what is counted, which takes an s but for one: "1 break",
// "2 breaks".
func Count[T ~int | ~int64 | ~uint | ~uint64 | ~uint32](n T, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
