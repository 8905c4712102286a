package canvas

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ascii returns the one printable ASCII character that stands for r in ASCII mode.
// The five node states stay apart: ? o % + x.
func ascii(r rune) byte {
	switch {
	case r >= 0x2500 && r <= 0x257f:
		return asciiBox[r-0x2500]
	case r >= 0x2581 && r <= 0x2588: // eighths, the sparkline
		return "_.-=+*%#"[r-0x2581]
	case r >= 0x2589 && r <= 0x2590:
		return '|'
	case r >= 0x2591 && r <= 0x2593:
		return ":%#"[r-0x2591]
	case r >= 0x2801 && r <= 0x28ff: // braille
		return ':'
	case r == 0x2800:
		return ' '
	case r >= 0x2400 && r <= 0x2426: // control pictures
		return '^'
	}
	if b, ok := asciiGlyph(r); ok {
		return b
	}
	var buf [8]byte
	d := norm.NFKD.Bytes(utf8.AppendRune(buf[:0], r))
	if len(d) > 0 && d[0] > ' ' && d[0] < 0x7f {
		return d[0]
	}
	return '?'
}

// asciiBox maps U+2500 to U+257F. The five line styles of links stay apart in both
// directions: light - |, heavy # #, double = ", dotted . :, dashed _ !
const asciiBox = "" +
	"-#|#.#:#.#:#++++" +
	"++++++++++++++++" +
	"++++++++++++++++" +
	"++++++++++++++++" +
	"++++++++++++_#!#" +
	"=\"++++++++++++++" +
	"++++++++++++++++" +
	"+/\\X-|-|####-|-|"

func asciiGlyph(r rune) (byte, bool) {
	switch r {
	case '✓', '✔':
		return '+', true
	case '✗', '✘', '×', '✕', '✖':
		return 'x', true
	case '○', '◯', '◌':
		return 'o', true
	case '◐', '◑', '◒', '◓':
		return '%', true
	case '●', '◆', '■', '★', '◉', '•', '▪':
		return '*', true
	case '◇', '□', '☆', '◎':
		return 'o', true
	case '·', '◦', '∙', '⋅':
		return '.', true
	case '▸', '▷', '→', '▶', '►', '›', '»', '⇒', '⟶':
		return '>', true
	case '◂', '←', '◀', '◄', '‹', '«', '⇐', '↶':
		return '<', true
	case '▴', '▲', '↑', '⇑':
		return '^', true
	case '▾', '▼', '↓', '⇓':
		return 'v', true
	case '‖':
		return '"', true
	case '⇅':
		return '%', true
	case '↔', '↕':
		return '-', true
	case '…', '⋯':
		return '~', true
	case '↻':
		return '@', true
	case '≠':
		return '/', true
	case 'Σ':
		return '=', true
	case '☐':
		return 'o', true
	case '☑':
		return 'x', true
	case '⏎', '↵':
		return '\\', true
	case '≡', '═':
		return '=', true
	case '✎':
		return '!', true
	case '§':
		return '&', true
	case '±', '≈', '∼':
		return '~', true
	case '–', '—', '−', '‐', '‑':
		return '-', true
	case '‘', '’', '‚':
		return '\'', true
	case '“', '”', '„':
		return '"', true
	case '⚠', '⚔':
		return '!', true
	case '↯':
		return 'z', true
	case '⊘', '⌀':
		return '0', true
	case '≤':
		return '<', true
	case '≥':
		return '>', true
	}
	return 0, false
}
