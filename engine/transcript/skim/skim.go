// Package skim reads JSON that need not be whole, small or quite JSON.
//
// A Reader walks over a document of any size in a fixed window. It knows at
// every moment its byte offset, so what it passed can be found again. It takes
// what encoding/json refuses (NaN and infinities, lone surrogates, raw control
// characters in strings, repeated keys, a document that stops in the middle)
// and never holds more of a value than it was asked for. Values that the caller
// does not consume are skipped, and are checked for their structure all the
// same: a damaged document is always noticed.
//
// Errors stick: after the first, every call returns nothing and every loop
// ends; Err says what and where.
package skim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Kind is the kind of a value, by its first byte.
type Kind byte

// Kinds.
const (
	End    Kind = 0 // nothing more
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0' // NaN and infinities too
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
	Bad    Kind = '?'
)

// maxDepth bounds the nesting that is followed.
const maxDepth = 10_000

const windowSize = 256 << 10

// SyntaxError is the place where a document stops being JSON.
type SyntaxError struct {
	Offset    int64
	What      string
	Truncated bool // it ends too early, and is right up to there
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.What, e.Offset) }

// Truncated says that an error is a document's early end.
func Truncated(err error) bool {
	var s *SyntaxError
	return errors.As(err, &s) && s.Truncated
}

// Reader reads one document. Not for use by several goroutines.
type Reader struct {
	src   io.ReaderAt // nil: all is in buf
	buf   []byte
	base  int64 // offset of buf[0]
	pos   int
	end   int64 // offset where the document's bytes end
	err   error
	stack []byte
	depth int
	keys  map[string]string
	once  bool     // keys are not kept
	word  [16]byte // the beginning of a literal, to check it
	// Lone counts the surrogate escapes without a partner that were read as U+FFFD.
	Lone int
}

// Bytes reads a document in memory; base is the offset of its first byte.
func Bytes(b []byte, base int64) *Reader {
	r := &Reader{}
	r.Reset(b, base)
	r.once = true
	return r
}

// Reset starts anew with a document in memory, keeping what was allocated.
func (r *Reader) Reset(b []byte, base int64) {
	r.src, r.buf, r.base, r.pos, r.end = nil, b, base, 0, base+int64(len(b))
	r.err, r.depth, r.Lone, r.once = nil, 0, 0, false
}

// At reads the document in src between the offsets from and to.
func At(src io.ReaderAt, from, to int64) *Reader {
	return &Reader{src: src, base: from, end: max(from, to)}
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Fail makes err the reader's error, unless it has one.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Offset is the place of the next byte, after white space when Kind was called.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Back reads a value that was passed, at an offset, and comes back to where the reader
// stands; nothing below 0, or after an error.
func (r *Reader) Back(off int64, read func()) {
	if off < 0 || r.err != nil {
		return
	}
	end := r.Offset()
	r.Return(off)
	read()
	r.Return(end)
}

// Return goes to an offset, which must be the start of a value that was passed.
func (r *Reader) Return(off int64) {
	if r.err != nil {
		return
	}
	if off >= r.base && off <= r.base+int64(len(r.buf)) {
		r.pos = int(off - r.base)
		return
	}
	if r.src == nil {
		r.fail("return outside of the document", false)
		return
	}
	r.base, r.pos, r.buf = off, 0, r.buf[:0]
}

func (r *Reader) fail(what string, truncated bool) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: r.Offset(), What: what, Truncated: truncated}
	}
}

// more makes at least one byte available at pos.
func (r *Reader) more() bool {
	if r.pos < len(r.buf) {
		return true
	}
	if r.err != nil || r.src == nil {
		return false
	}
	at := r.base + int64(len(r.buf))
	want := min(r.end-at, windowSize)
	if want <= 0 {
		return false
	}
	if cap(r.buf) < int(want) {
		r.buf = make([]byte, want, max(want, min(windowSize, r.end-r.base)))
	}
	r.buf = r.buf[:want]
	n, err := r.src.ReadAt(r.buf, at)
	r.buf, r.base, r.pos = r.buf[:n], at, 0
	if n == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			r.Fail(fmt.Errorf("reading at byte %d: %w", at, err))
		}
		return false
	}
	return true
}

// peek is the next byte that is not white space, 0 at the end.
func (r *Reader) peek() byte {
	for {
		for ; r.pos < len(r.buf); r.pos++ {
			switch c := r.buf[r.pos]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c
			}
		}
		if !r.more() {
			return 0
		}
	}
}

// Kind tells the next value's kind without consuming it.
func (r *Reader) Kind() Kind {
	if r.err != nil {
		return End
	}
	c := r.peek()
	if c == 0 && r.pos >= len(r.buf) {
		return End
	}
	switch c {
	case '{', '[', '"', 't', 'f', 'n':
		return Kind(c)
	case '-', 'N', 'I', '+', '.':
		return Number
	}
	if c >= '0' && c <= '9' {
		return Number
	}
	return Bad
}

// AtEnd says that nothing but white space is left.
func (r *Reader) AtEnd() bool { return r.err == nil && r.Kind() == End }

// Keys yields an object's keys in order. Inside the loop the reader stands before
// the key's value; what the body does not consume is skipped. After a break the
// reader stands inside the object. A value that is not an object is skipped and
// yields nothing.
func (r *Reader) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		if r.Kind() != Object {
			r.Skip()
			return
		}
		if !r.enter() {
			return
		}
		defer r.leave()
		r.pos++
		for first := true; ; first = false {
			c := r.peek()
			if c == '}' {
				r.pos++
				return
			}
			if !first {
				if c != ',' {
					r.unexpected("expected , or } in an object")
					return
				}
				r.pos++
				c = r.peek()
				if c == '}' { // a trailing comma
					r.pos++
					return
				}
			}
			if c != '"' {
				r.unexpected("expected a key")
				return
			}
			key := r.key()
			if r.err != nil {
				return
			}
			if r.peek() != ':' {
				r.unexpected("expected : after a key")
				return
			}
			r.pos++
			r.Kind()
			at := r.Offset()
			if !yield(key) || r.err != nil {
				return
			}
			if r.Offset() == at {
				r.Skip()
			}
			if r.err != nil {
				return
			}
		}
	}
}

// Items yields an array's indexes in order, the same way as Keys.
func (r *Reader) Items() iter.Seq[int] {
	return func(yield func(int) bool) {
		if r.Kind() != Array {
			r.Skip()
			return
		}
		if !r.enter() {
			return
		}
		defer r.leave()
		r.pos++
		for i := 0; ; i++ {
			c := r.peek()
			if c == ']' {
				r.pos++
				return
			}
			if i > 0 {
				if c != ',' {
					r.unexpected("expected , or ] in a list")
					return
				}
				r.pos++
				if r.peek() == ']' {
					r.pos++
					return
				}
			}
			r.Kind()
			at := r.Offset()
			if !yield(i) || r.err != nil {
				return
			}
			if r.Offset() == at {
				r.Skip()
			}
			if r.err != nil {
				return
			}
		}
	}
}

func (r *Reader) enter() bool {
	if r.depth >= maxDepth {
		r.fail("nested too deeply", false)
		return false
	}
	r.depth++
	return true
}

func (r *Reader) leave() { r.depth-- }

func (r *Reader) unexpected(what string) {
	if r.err != nil {
		return
	}
	if r.pos >= len(r.buf) && !r.more() {
		r.fail("the document ends too early", true)
		return
	}
	r.fail(what, false)
}

// key reads a key; keys are few, so their strings are kept.
func (r *Reader) key() string {
	if i := bytes.IndexByte(r.buf[r.pos+1:], '"'); i >= 0 {
		b := r.buf[r.pos+1 : r.pos+1+i]
		if bytes.IndexByte(b, '\\') < 0 {
			r.pos += i + 2
			if s, ok := r.keys[string(b)]; ok {
				return s
			}
			s := string(b)
			if r.once { // a small document has no key often enough
				return s
			}
			if r.keys == nil {
				r.keys = map[string]string{}
			}
			if len(r.keys) < 512 && len(s) < 64 {
				r.keys[s] = s
			}
			return s
		}
	}
	s, _ := r.Text(4096)
	return s
}

// Skip passes one value and checks its structure.
func (r *Reader) Skip() {
	switch r.Kind() {
	case End:
		r.unexpected("expected a value")
	case Object, Array:
		r.skipNested()
	case String:
		r.skipString()
	case Bad:
		r.unexpected("not a value")
	default:
		r.literal(nil)
	}
}

// skipNested passes an object or list without recursion.
func (r *Reader) skipNested() {
	stack := r.stack[:0]
	defer func() { r.stack = stack }()
	const (
		value   = iota // a value must come
		firstIn        // a value, or the end of an empty list
		firstKey
		key
		after // , or the end
	)
	state := value
	for r.err == nil {
		c := r.peek()
		if c == 0 {
			r.unexpected("control character between values")
			return
		}
		switch state {
		case firstKey, key:
			if c == '}' {
				stack, r.pos, state = stack[:len(stack)-1], r.pos+1, after
				break
			}
			if c != '"' {
				r.unexpected("expected a key")
				return
			}
			r.skipString()
			if r.err == nil && r.peek() != ':' {
				r.unexpected("expected : after a key")
				return
			}
			r.pos++
			state = value
		case value, firstIn:
			switch {
			case c == '{' || c == '[':
				if len(stack) >= maxDepth {
					r.fail("nested too deeply", false)
					return
				}
				stack = append(stack, c)
				r.pos++
				state = firstIn
				if c == '{' {
					state = firstKey
				}
			case c == ']' && len(stack) > 0 && stack[len(stack)-1] == '[':
				stack, r.pos, state = stack[:len(stack)-1], r.pos+1, after
			case c == '"':
				r.skipString()
				state = after
			default:
				if r.Kind() == Bad {
					r.unexpected("not a value")
					return
				}
				r.literal(nil)
				state = after
			}
		case after:
			top := stack[len(stack)-1]
			switch {
			case c == ',' && top == '{':
				state = key
			case c == ',':
				state = firstIn
			case c == '}' && top == '{', c == ']' && top == '[':
				stack = stack[:len(stack)-1]
			default:
				r.unexpected("expected , or an end")
				return
			}
			r.pos++
		}
		if len(stack) == 0 {
			return
		}
	}
}

// skipString passes a string. pos is at its opening quote.
func (r *Reader) skipString() {
	r.pos++
	odd := false // an odd number of backslashes ends the window before
	for {
		rest := r.buf[r.pos:]
		from := 0
		for {
			i := bytes.IndexByte(rest[from:], '"')
			if i < 0 {
				break
			}
			i += from
			n := 0
			for n < i && rest[i-1-n] == '\\' {
				n++
			}
			if (n%2 == 1) != (n == i && odd) {
				from = i + 1
				odd = false
				rest = rest[from:]
				r.pos += from
				from = 0
				continue
			}
			r.pos += i + 1
			return
		}
		n := 0
		for n < len(rest) && rest[len(rest)-1-n] == '\\' {
			n++
		}
		if n == len(rest) {
			odd = (n%2 == 1) != odd
		} else {
			odd = n%2 == 1
		}
		r.pos = len(r.buf)
		if !r.more() {
			r.unexpected("a string does not end")
			return
		}
	}
}
