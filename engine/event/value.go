package event

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"refbox/engine/text"
)

// skipValue moves past one JSON value of any type, and checks it.
func (c *codec) skipValue() {
	start := c.pos
	if start >= len(c.line) {
		c.fail(errEnd)
		return
	}
	switch c.line[start] {
	case '"':
		i := start + 1
		for ; i < len(c.line) && c.line[i] != '"'; i++ {
			if c.line[i] == '\\' {
				i++
			}
		}
		if i >= len(c.line) {
			c.fail(errEnd)
			return
		}
		c.pos = i + 1
	case '{', '[':
		depth, inString := 0, false
		i := start
	scan:
		for ; i < len(c.line); i++ {
			switch b := c.line[i]; {
			case inString:
				if b == '\\' {
					i++
				} else if b == '"' {
					inString = false
				}
			case b == '"':
				inString = true
			case b == '{' || b == '[':
				depth++
			case b == '}' || b == ']':
				if depth--; depth == 0 {
					break scan
				}
			}
		}
		if i >= len(c.line) {
			c.fail(errEnd)
			return
		}
		c.pos = i + 1
	default:
		i := start
		for i < len(c.line) && c.line[i] != ',' && c.line[i] != '}' && c.line[i] > ' ' {
			i++
		}
		c.pos = i
	}
	if !json.Valid(c.line[start:c.pos]) {
		c.failf("no JSON value at byte %d", start)
	}
}

func (c *codec) null() bool {
	if c.pos+4 <= len(c.line) && string(c.line[c.pos:c.pos+4]) == "null" {
		c.pos += 4
		return true
	}
	return false
}

func (c *codec) readUint(max uint64) uint64 {
	if c.null() {
		return 0
	}
	start := c.pos
	var v uint64
	for c.pos < len(c.line) {
		d := c.line[c.pos] - '0'
		if d > 9 {
			break
		}
		if v > (math.MaxUint64-uint64(d))/10 {
			c.failf("number out of range at byte %d", start)
			return 0
		}
		v = v*10 + uint64(d)
		c.pos++
	}
	n := c.pos - start
	if n == 0 || v > max || (n > 1 && c.line[start] == '0') || !c.valueEnds() {
		c.failf("expected an unsigned number at byte %d", start)
		return 0
	}
	return v
}

func (c *codec) valueEnds() bool {
	if c.pos >= len(c.line) {
		return false
	}
	switch c.line[c.pos] {
	case ',', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

func (c *codec) readInt() int64 {
	negative := c.pos < len(c.line) && c.line[c.pos] == '-'
	if !negative {
		return int64(c.readUint(math.MaxInt64))
	}
	c.pos++
	v := c.readUint(1 << 63)
	return -int64(v)
}

func (c *codec) readBool() bool {
	rest := c.line[c.pos:]
	switch {
	case c.null():
	case len(rest) >= 4 && string(rest[:4]) == "true":
		c.pos += 4
		return true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		c.pos += 5
	default:
		c.failf("expected true or false at byte %d", c.pos)
	}
	return false
}

// readString reads a string or null. Unless the codec is raw the result is
// sanitised, here and nowhere else.
func (c *codec) readString(block bool) string {
	if c.null() {
		return ""
	}
	if c.pos >= len(c.line) || c.line[c.pos] != '"' {
		c.failf("expected a string at byte %d", c.pos)
		return ""
	}
	start := c.pos + 1
	i := start
	clean := true
	line := c.line
loop:
	for ; i < len(line); i++ {
		switch b := line[i]; {
		case b == '"':
			break loop
		case b == '\\':
			clean = false
			i++
		case b >= 0x7f:
			clean = false
		case b < 0x20:
			c.failf("control character in the string at byte %d", i)
			return ""
		}
	}
	if i >= len(line) {
		c.fail(errEnd)
		return ""
	}
	b := line[start:i]
	c.pos = i + 1
	if clean {
		if !c.raw && len(b) > MaxText {
			return cut(string(b))
		}
		return c.intern.string(b)
	}
	s, ok := unescape(b)
	if !ok {
		c.failf("broken escape in the string at byte %d", start)
		return ""
	}
	if c.raw {
		return s
	}
	if len(s) > MaxText {
		s = cut(s)
	}
	if block {
		s = text.Block(s)
	} else {
		s = text.Line(s)
	}
	if len(s) > MaxText {
		s = cut(s)
	}
	return s
}

func cut(s string) string { return cutAt(s, MaxText) }

func cutAt(s string, limit int) string {
	n := limit - len(text.Ellipsis)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + text.Ellipsis
}

func unescape(b []byte) (string, bool) {
	var out strings.Builder
	out.Grow(len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out.WriteByte(b[i])
			continue
		}
		if i++; i >= len(b) {
			return "", false
		}
		switch b[i] {
		case '"', '\\', '/':
			out.WriteByte(b[i])
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r, ok := hex4(b[i+1:])
			if !ok {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if low, ok := lowSurrogate(b[i+1:]); ok {
					if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
						r = both
						i += 6
					}
				}
			}
			out.WriteRune(r) // a lone surrogate becomes U+FFFD
		default:
			return "", false
		}
	}
	return out.String(), true
}

func lowSurrogate(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	return hex4(b[2:])
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// printableJSON returns JSON text that a terminal may be sent: what is not
// plainly printable is escaped, so that nothing is lost and the text stays JSON.
func printableJSON(b []byte) []byte {
	clean := true
	for _, c := range b {
		if c >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r >= 0x7f && text.Line(string(r)) != string(r):
			if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
				out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
		default:
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}

// appendString writes a JSON string as the reference does: UTF-8 as it is, short
// escapes where there are any, \u00xx in lower case for other controls.
func appendString(buf []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				buf = append(buf, s[start:i]...)
				buf = append(buf, "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		buf = append(buf, s[start:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\b':
			buf = append(buf, '\\', 'b')
		case '\f':
			buf = append(buf, '\\', 'f')
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\r':
			buf = append(buf, '\\', 'r')
		case '\t':
			buf = append(buf, '\\', 't')
		default:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	buf = append(buf, s[start:]...)
	return append(buf, '"')
}
