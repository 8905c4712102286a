package event

import (
	"errors"
	"fmt"
	"math"
)

// codec walks one line in either direction. Each kind names its fields once, in
// the order of the line; when decoding, a field takes its value if the line's
// next key is its own. So a line in the usual order costs one comparison per
// field, and any other order is read too, in further rounds.
type codec struct {
	enc bool
	raw bool // decoding: hand out strings as they are in the file

	buf []byte // encoding

	line     []byte // decoding
	pos      int
	members  int
	key      []byte // the next member's key; nil at the end of the object
	taken    bool   // a field took a value in this round
	started  bool
	ended    bool
	ev       Event
	elapsed  int     // how many elapsed_ms keys were seen
	repeated *uint64 // the second of them
	doubled  bool    // the kind has an elapsed_ms of its own
	extra    []byte
	err      error
	intern   *interned
}

// interned remembers recent short strings: ids and repeated details are most of
// what a log says, and each is then one string however often it occurs.
type interned [1024]string

const internMax = 160

func (t *interned) string(b []byte) string {
	n := len(b)
	if n == 0 {
		return ""
	}
	if t == nil || n > internMax {
		return string(b)
	}
	h := uint32(n) * 0x9E3779B1
	if n >= 8 {
		for i := 0; i < 8; i++ {
			h = (h ^ uint32(b[n-1-i])) * 0x01000193
		}
		h ^= uint32(b[n/2])<<8 ^ uint32(b[0])
	} else {
		for _, c := range b {
			h = (h ^ uint32(c)) * 0x01000193
		}
	}
	slot := &t[(h^h>>15)%uint32(len(t))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

var errEnd = errors.New("the line ends inside a value")

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.key, c.ended = nil, true
}

func (c *codec) failf(format string, args ...any) { c.fail(fmt.Errorf(format, args...)) }

// more starts a round of fields; false at the end of the line.
func (c *codec) more() bool {
	if !c.started {
		c.started = true
		c.advance()
		return !c.ended
	}
	if !c.ended && !c.taken {
		c.keepExtra()
		c.advance()
	}
	c.taken = false
	return !c.ended
}

func (c *codec) spaces() {
	for c.pos < len(c.line) {
		switch c.line[c.pos] {
		case ' ', '\t', '\r', '\n':
			c.pos++
		default:
			return
		}
	}
}

// advance moves to the next member that is not the envelope's.
func (c *codec) advance() {
	for c.nextMember(); !c.ended && c.envelope(); {
		c.nextMember()
	}
}

// nextMember moves to the value of the next member, or ends.
func (c *codec) nextMember() {
	if c.err != nil {
		return
	}
	c.spaces()
	if c.pos >= len(c.line) {
		c.fail(errEnd)
		return
	}
	switch b := c.line[c.pos]; {
	case b == '}':
		c.pos++
		c.spaces()
		if c.pos != len(c.line) {
			c.failf("data after the object at byte %d", c.pos)
		}
		c.key, c.ended = nil, true
		return
	case c.members > 0 && b != ',':
		c.failf("expected a comma at byte %d", c.pos)
		return
	case c.members > 0:
		c.pos++
		c.spaces()
	}
	c.members++
	c.readKey()
}

// readKey reads `"key":` and leaves pos at the value.
func (c *codec) readKey() {
	if c.pos >= len(c.line) || c.line[c.pos] != '"' {
		c.failf("expected a key at byte %d", c.pos)
		return
	}
	start := c.pos + 1
	plain := true
	i := start
	for ; i < len(c.line) && c.line[i] != '"'; i++ {
		switch b := c.line[i]; {
		case b == '\\':
			plain = false
			i++
		case b < 0x20:
			c.failf("control character in the key at byte %d", i)
			return
		}
	}
	if i >= len(c.line) {
		c.fail(errEnd)
		return
	}
	c.key = c.line[start:i]
	if !plain {
		s, ok := unescape(c.key)
		if !ok {
			c.failf("broken escape in the key at byte %d", start)
			return
		}
		c.key = []byte(s)
	}
	c.pos = i + 1
	c.spaces()
	if c.pos >= len(c.line) || c.line[c.pos] != ':' {
		c.failf("expected a colon at byte %d", c.pos)
		return
	}
	c.pos++
	c.spaces()
}

// envelope consumes the current member if it is the envelope's.
func (c *codec) envelope() bool {
	switch string(c.key) {
	case "elapsed_ms":
		v := c.readUint(math.MaxUint64)
		c.elapsed++
		switch {
		case c.elapsed == 1 || !c.doubled:
			c.ev.ElapsedMS = v // the last one wins, as for every untyped reader
		default:
			c.repeated = &v
		}
	case "sequence":
		c.ev.Sequence = c.readUint(math.MaxUint64)
	case "schema_version", "kind":
		c.skipValue()
	case "prev":
		if c.pos >= len(c.line) || c.line[c.pos] != '"' {
			return false
		}
		c.ev.Prev = c.readString(false)
	default:
		return false
	}
	return true
}

func (c *codec) keepExtra() {
	start := c.pos
	key := c.key
	c.skipValue()
	if c.err != nil {
		return
	}
	if len(c.extra) > 0 {
		c.extra = append(c.extra, ',')
	}
	c.extra = appendString(c.extra, string(key))
	c.extra = append(c.extra, ':')
	value := c.line[start:c.pos]
	if !c.raw {
		value = printableJSON(value)
	}
	c.extra = append(c.extra, value...)
}
