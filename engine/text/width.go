package text

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// RuneWidth returns the cells that r takes on the canvas: 0 for controls and
// combining marks, 1, or 2 for wide East Asian runes and emoji.
func RuneWidth(r rune) int {
	if r < 0x20 {
		return 0
	}
	if r < 0x7f {
		return 1
	}
	if r >= 0x2500 && r < 0x2600 && r != 0x25fd && r != 0x25fe { // box drawing, blocks, shapes: hot on every frame
		return 1
	}
	switch {
	case r >= 0x1F1E6 && r <= 0x1F1FF: // half a flag, drawn as a letter
		return 1
	case r >= 0x1F3FB && r <= 0x1F3FF: // skin tones, never drawn
		return 0
	}
	return displaywidth.Options{}.Rune(r)
}

// Width returns the cells that s takes when its runes are drawn one after the
// other on one line.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += RuneWidth(r)
	}
	return n
}

// Truncate returns s if it fits in w cells; otherwise as much of it as fits
// before tail (an empty tail means "…"). The result is never wider than w.
func Truncate(s string, w int, tail string) string {
	if w <= 0 {
		return ""
	}
	if len(s) <= w || Width(s) <= w {
		// A rune is never wider than its bytes are many.
		return s
	}
	if tail == "" {
		tail = Ellipsis
	}
	tw := Width(tail)
	if tw > w {
		return prefix(tail, w)
	}
	return prefix(s, w-tw) + tail
}

// prefix returns the longest start of s that fits in w cells, marks included.
func prefix(s string, w int) string {
	n := 0
	for i, r := range s {
		n += RuneWidth(r)
		if n > w {
			return s[:i]
		}
	}
	return s
}

// Pad returns s cut with "…" or filled with spaces to exactly w cells.
func Pad(s string, w int) string {
	s = Truncate(s, w, Ellipsis)
	if n := w - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// Wrap breaks s into lines of at most w cells, at spaces where there are any and
// inside a word only where the word alone is too long. Line breaks in s stay.
// A rune wider than w is replaced by "…". There is always at least one line.
func Wrap(s string, w int) []string {
	if w < 1 {
		w = 1
	}
	var lines []string
	for para := range strings.SplitSeq(s, "\n") {
		lines = wrapLine(lines, para, w)
	}
	return lines
}

func wrapLine(lines []string, s string, w int) []string {
	for {
		if len(s) <= w || Width(s) <= w {
			return append(lines, s)
		}
		// end is where the line must end at the latest, brk the last good place.
		n, end, brk := 0, len(s), -1
		for i, r := range s {
			rw := RuneWidth(r)
			if n+rw > w {
				end = i
				if r == ' ' {
					brk = i
				}
				break
			}
			if r == ' ' {
				brk = i
			}
			n += rw
		}
		switch {
		case end == 0: // the first rune alone is too wide
			size := len(s)
			for i, r := range s {
				if i > 0 && RuneWidth(r) != 0 {
					size = i
					break
				}
			}
			lines = append(lines, Ellipsis)
			s = s[size:]
			if s == "" {
				return lines
			}
		case brk > 0 && strings.TrimLeft(s[:brk], " ") != "":
			lines = append(lines, strings.TrimRight(s[:brk], " "))
			s = strings.TrimLeft(s[brk:], " ")
			if s == "" {
				return lines
			}
		default:
			lines = append(lines, s[:end])
			s = s[end:]
		}
	}
}
