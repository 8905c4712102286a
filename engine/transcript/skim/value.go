package skim

import (
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string: at most limit bytes of it, decoded, and the size of the
// whole (where it was cut: the size as escaped). Another kind of value is
// skipped and gives "".
func (r *Reader) Text(limit int) (s string, size int64) {
	if r.Kind() != String {
		r.Skip()
		return "", 0
	}
	start := r.Offset()
	r.pos++
	var out []byte
	for r.err == nil {
		if r.pos >= len(r.buf) && !r.more() {
			r.unexpected("a string does not end")
			return string(out), int64(len(out))
		}
		rest := r.buf[r.pos:]
		i := 0
		for i < len(rest) && rest[i] != '"' && rest[i] != '\\' {
			i++
		}
		if len(out)+i > limit {
			out = append(out, rest[:max(0, min(i, limit-len(out)))]...)
			return r.cut(out, start)
		}
		if out == nil && i < len(rest) && rest[i] == '"' {
			r.pos += i + 1
			return string(rest[:i]), int64(i)
		}
		out = append(out, rest[:i]...)
		r.pos += i
		if i == len(rest) {
			continue
		}
		if rest[i] == '"' {
			r.pos++
			return string(out), int64(len(out))
		}
		if len(out) >= limit {
			return r.cut(out, start)
		}
		out = r.escape(out)
	}
	return string(out), int64(len(out))
}

// cut passes the rest of a string of which enough is read.
func (r *Reader) cut(out []byte, start int64) (string, int64) {
	for len(out) > 0 && !utf8.Valid(out[max(0, len(out)-utf8.UTFMax):]) {
		c, n := utf8.DecodeLastRune(out)
		if c != utf8.RuneError || n != 1 {
			break
		}
		out = out[:len(out)-1]
	}
	r.pos-- // skipString passes one byte, taking it for the opening quote
	r.skipString()
	return string(out), max(r.Offset()-start-2, int64(len(out))+1)
}

func (r *Reader) escape(out []byte) []byte {
	r.pos++
	if r.pos >= len(r.buf) && !r.more() {
		r.unexpected("a string does not end")
		return out
	}
	c := r.buf[r.pos]
	r.pos++
	switch c {
	case 'n':
		return append(out, '\n')
	case 't':
		return append(out, '\t')
	case 'r':
		return append(out, '\r')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case '"', '\\', '/':
		return append(out, c)
	case 'u':
		return r.unicode(out)
	}
	return append(out, '\\', c) // not JSON; kept as it stands
}

// unicode reads the four digits of \u, and a second escape that pairs with it.
func (r *Reader) unicode(out []byte) []byte {
	c, ok := r.hex4()
	if !ok {
		return append(out, `\u`...)
	}
	if !utf16.IsSurrogate(c) {
		return utf8.AppendRune(out, c)
	}
	// The partner may be in the next window: look at it there, byte by byte.
	at := r.Offset()
	if r.next() == '\\' && r.next() == 'u' {
		if low, ok := r.hex4(); ok {
			if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair)
			}
		}
	}
	r.Return(at)
	r.Lone++
	return utf8.AppendRune(out, utf8.RuneError)
}

func (r *Reader) next() byte {
	if r.pos >= len(r.buf) && !r.more() {
		return 0
	}
	c := r.buf[r.pos]
	r.pos++
	return c
}

func (r *Reader) hex4() (rune, bool) {
	at := r.Offset()
	var c rune
	for range 4 {
		d := r.next()
		switch {
		case d >= '0' && d <= '9':
			c = c<<4 | rune(d-'0')
		case d >= 'a' && d <= 'f':
			c = c<<4 | rune(d-'a'+10)
		case d >= 'A' && d <= 'F':
			c = c<<4 | rune(d-'A'+10)
		default:
			r.Return(at)
			return 0, false
		}
	}
	return c, true
}

// Str is Text without the size.
func (r *Reader) Str(limit int) string {
	s, _ := r.Text(limit)
	return s
}

// maxNumber bounds the digits of a number that are looked at: a longer one has no
// value.
const maxNumber = 400

// literal passes a number or a word and collects it in out, if given.
func (r *Reader) literal(out *[]byte) {
	n := 0
	for {
		for ; r.pos < len(r.buf); r.pos++ {
			c := r.buf[r.pos]
			if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '-' || c == '.' {
				n++
				if out != nil && n <= maxNumber {
					*out = append(*out, c)
				} else if n <= len(r.word) {
					r.word[n-1] = c
				}
				continue
			}
			r.checkLiteral(n, out)
			return
		}
		if !r.more() {
			r.checkLiteral(n, out)
			return
		}
	}
}

func (r *Reader) checkLiteral(n int, out *[]byte) {
	var b []byte
	if out != nil {
		b = *out
	} else {
		b = r.word[:min(n, len(r.word))]
	}
	if len(b) == 0 {
		r.unexpected("not a value")
		return
	}
	switch c := b[0]; {
	case c == 't' && string(b) == "true", c == 'f' && string(b) == "false", c == 'n' && string(b) == "null":
		return
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.', string(b) == "NaN", string(b) == "Infinity":
		return
	}
	r.unexpected("not a value")
}

// Float reads a number; ok is false for every other value, which is skipped.
func (r *Reader) Float() (f float64, ok bool) {
	if r.Kind() != Number {
		r.Skip()
		return 0, false
	}
	var b [64]byte
	word := b[:0]
	r.literal(&word)
	if r.err != nil || len(word) == maxNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(word), 64)
	return f, err == nil
}

// Int reads a number as an integer, rounded; ok is false for every other value,
// for NaN and for what does not fit.
func (r *Reader) Int() (n int64, ok bool) {
	if r.Kind() != Number {
		r.Skip()
		return 0, false
	}
	var b [64]byte
	word := b[:0]
	r.literal(&word)
	if r.err != nil || len(word) == maxNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(word), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(word), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= 1<<62 {
		return 0, false
	}
	return int64(math.Round(f)), true
}

// Bool reads true or false; ok is false for every other value.
func (r *Reader) Bool() (b, ok bool) {
	k := r.Kind()
	r.Skip()
	return k == True, k == True || k == False
}

// Raw reads a value as it stands: at most limit bytes of it, and the size of the
// whole.
func (r *Reader) Raw(limit int) (b []byte, size int64) {
	r.Kind()
	from := r.Offset()
	r.Skip()
	if r.err != nil {
		return nil, 0
	}
	to := r.Offset()
	n := min(to-from, int64(limit))
	if from >= r.base {
		return append([]byte(nil), r.buf[from-r.base:from-r.base+n]...), to - from
	}
	b = make([]byte, n)
	m, _ := io.ReadFull(io.NewSectionReader(r.src, from, n), b)
	return b[:m], to - from
}
