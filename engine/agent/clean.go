package agent

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"refbox/engine/text"
)

// textLimit bounds a command or an output as the log shows it.
const textLimit = 4 << 10

// clean makes hostile text showable, lines kept, and bounds it.
func clean(s string, limit int) string {
	// Nothing past this can survive the cut; it need not be sanitised.
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	return cut(text.Block(s), limit)
}

// line is clean for one line.
func line(s string) string {
	return cut(text.Line(s[:min(len(s), 2048)]), 512)
}

// drives says what in s would drive a terminal.
func drives(s string) string { return new(text.Detector).Scan([]byte(s)) }

// cut bounds s to limit bytes, at a rune's edge.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len(text.Ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + text.Ellipsis
}

// cutFront is cut that keeps the end.
func cutFront(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	start := len(s) - limit + len(text.Ellipsis)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return text.Ellipsis + s[start:]
}

// ends are the head and the tail of a stream of any length, part bytes of each.
type ends struct {
	head  []byte
	last  []byte // the tail, and up to as much before it
	total uint64
}

func (e *ends) add(part int, p []byte) {
	e.total += uint64(len(p))
	n := min(part-len(e.head), len(p))
	e.head = append(e.head, p[:n]...)
	p = p[n:]
	e.last = append(e.last, p[max(0, len(p)-part):]...)
	if over := len(e.last) - part; over > part { // not for every byte
		e.last = e.last[:copy(e.last, e.last[over:])]
	}
}

func (e *ends) tail(part int) []byte { return e.last[max(0, len(e.last)-part):] }

// excerpt is what is kept of an action's output.
type excerpt struct{ ends }

// excerptPart is how much is kept of either end; with the line between them
// both fit textLimit.
const excerptPart = textLimit/2 - 64

func (e *excerpt) add(p []byte) { e.ends.add(excerptPart, p) }

// String is the sanitised excerpt, at most textLimit bytes.
func (e *excerpt) String() string {
	tail := e.tail(excerptPart)
	if e.total <= uint64(len(e.head)+len(tail)) {
		whole := text.Block(string(e.head) + string(tail))
		if len(whole) > textLimit { // control pictures are longer than controls
			whole = cut(whole, textLimit)
		}
		return strings.TrimRight(whole, "\n")
	}
	// A whole first line is better than a torn one, or a torn escape sequence.
	if i := bytes.IndexByte(tail[:min(len(tail), 256)], '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	left := e.total - uint64(len(e.head)+len(tail))
	return cut(strings.TrimRight(text.Block(string(e.head)), "\n"), excerptPart) +
		fmt.Sprintf("\n%s %d bytes left out %s\n", text.Ellipsis, left, text.Ellipsis) +
		cutFront(strings.TrimRight(text.Block(string(tail)), "\n"), excerptPart)
}

// excerptOf is the excerpt of a whole string.
func excerptOf(s string) string {
	var e excerpt
	e.add([]byte(s))
	return e.String()
}
