package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"refbox/engine/text"
)

func (c *codec) name(name string) {
	c.buf = append(c.buf, ',', '"')
	c.buf = append(c.buf, name...)
	c.buf = append(c.buf, '"', ':')
}

// at says whether the line's next member is the named one.
func (c *codec) at(name string) bool {
	if string(c.key) != name {
		return false
	}
	c.taken = true
	return true
}

// id is a string on one line.
func (c *codec) id(name string, p *string) {
	if c.enc {
		c.name(name)
		c.buf = appendString(c.buf, *p)
	} else if c.at(name) {
		*p = c.readString(false)
		c.advance()
	}
}

// text is a string that may have several lines.
func (c *codec) text(name string, p *string) {
	if c.enc {
		c.name(name)
		c.buf = appendString(c.buf, *p)
	} else if c.at(name) {
		*p = c.readString(true)
		c.advance()
	}
}

// optID is left out when it is empty.
func (c *codec) optID(name string, p *string) {
	if !c.enc || *p != "" {
		c.id(name, p)
	}
}

func (c *codec) nullID(name string, p **string) {
	if c.enc {
		c.name(name)
		if *p == nil {
			c.buf = append(c.buf, "null"...)
		} else {
			c.buf = appendString(c.buf, **p)
		}
	} else if c.at(name) {
		if c.null() {
			*p = nil
		} else {
			s := c.readString(false)
			*p = &s
		}
		c.advance()
	}
}

func (c *codec) uint(name string, p *uint64) {
	if c.enc {
		c.name(name)
		c.buf = strconv.AppendUint(c.buf, *p, 10)
	} else if c.at(name) {
		*p = c.readUint(math.MaxUint64)
		c.advance()
	}
}

func (c *codec) optUint(name string, p *uint64) {
	if !c.enc || *p != 0 {
		c.uint(name, p)
	}
}

func (c *codec) nullUint(name string, p **uint64) {
	if c.enc {
		c.name(name)
		if *p == nil {
			c.buf = append(c.buf, "null"...)
		} else {
			c.buf = strconv.AppendUint(c.buf, **p, 10)
		}
	} else if c.at(name) {
		if c.null() {
			*p = nil
		} else {
			v := c.readUint(math.MaxUint64)
			*p = &v
		}
		c.advance()
	}
}

func (c *codec) optNullUint(name string, p **uint64) {
	if !c.enc || *p != nil {
		c.nullUint(name, p)
	}
}

func (c *codec) nullUint16(name string, p **uint16) {
	if c.enc {
		c.name(name)
		if *p == nil {
			c.buf = append(c.buf, "null"...)
		} else {
			c.buf = strconv.AppendUint(c.buf, uint64(**p), 10)
		}
	} else if c.at(name) {
		if c.null() {
			*p = nil
		} else {
			v := uint16(c.readUint(math.MaxUint16))
			*p = &v
		}
		c.advance()
	}
}

func (c *codec) int(name string, p *int64) {
	if c.enc {
		c.name(name)
		c.buf = strconv.AppendInt(c.buf, *p, 10)
	} else if c.at(name) {
		*p = c.readInt()
		c.advance()
	}
}

func (c *codec) nullInt(name string, p **int) {
	if c.enc {
		c.name(name)
		if *p == nil {
			c.buf = append(c.buf, "null"...)
		} else {
			c.buf = strconv.AppendInt(c.buf, int64(**p), 10)
		}
	} else if c.at(name) {
		if c.null() {
			*p = nil
		} else {
			v := int(c.readInt())
			*p = &v
		}
		c.advance()
	}
}

func (c *codec) bool(name string, p *bool) {
	if c.enc {
		c.name(name)
		c.buf = strconv.AppendBool(c.buf, *p)
	} else if c.at(name) {
		*p = c.readBool()
		c.advance()
	}
}

func (c *codec) optBool(name string, p *bool) {
	if !c.enc || *p {
		c.bool(name, p)
	}
}

// json is a value of any type, kept as it is on the line. Absent and null are
// both nil.
func (c *codec) json(name string, p *json.RawMessage) {
	if c.enc {
		c.name(name)
		c.buf = appendRaw(c.buf, *p)
	} else if c.at(name) {
		start := c.pos
		c.skipValue()
		if c.err == nil {
			value := c.line[start:c.pos]
			if !c.raw {
				value = printableJSON(value)
			}
			if *p = nil; string(value) != "null" {
				*p = append(json.RawMessage(nil), value...)
			}
		}
		c.advance()
	}
}

func (c *codec) optJSON(name string, p *json.RawMessage) {
	if !c.enc || len(*p) > 0 {
		c.json(name, p)
	}
}

// list and its like are for rare kinds: they go through encoding/json.
func (c *codec) list(name string, into any, sanitise func()) {
	if !c.at(name) {
		return
	}
	start := c.pos
	c.skipValue()
	if c.err == nil {
		if err := json.Unmarshal(c.line[start:c.pos], into); err != nil {
			c.failf("%s: %w", name, err)
		} else if !c.raw {
			sanitise()
		}
	}
	c.advance()
}

func (c *codec) ids(name string, p *[]string) {
	if !c.enc {
		c.list(name, p, func() {
			for i, s := range *p {
				(*p)[i] = text.Line(s)
			}
		})
		if len(*p) == 0 {
			*p = nil
		}
		return
	}
	c.name(name)
	c.buf = appendStrings(c.buf, *p)
}

func appendStrings(buf []byte, list []string) []byte {
	buf = append(buf, '[')
	for i, s := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendString(buf, s)
	}
	return append(buf, ']')
}

// appendRaw writes JSON on one line; what is not JSON becomes a JSON string, so
// that no value can break the line.
func appendRaw(buf []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(buf, "null"...)
	}
	if !json.Valid(raw) {
		return appendString(buf, string(raw))
	}
	for _, c := range raw {
		if c == '\n' || c == '\r' {
			return appendCompact(buf, raw)
		}
	}
	return append(buf, raw...)
}

func appendCompact(buf []byte, raw json.RawMessage) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return appendString(buf, string(raw))
	}
	return append(buf, out.Bytes()...)
}
