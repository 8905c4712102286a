package event

import (
	"encoding/json"
	"strconv"

	"refbox/engine/text"
)

// Encode writes an event as one line, without the newline: the envelope, the
// kind's fields in their order, the keys that this version does not know, and
// prev last. Unknown is written as it was read.
func Encode(e Event) []byte { return appendEvent(make([]byte, 0, 256), e) }

func appendEvent(buf []byte, e Event) []byte {
	if u, ok := e.Body.(Unknown); ok && len(u.Raw) > 0 {
		return appendRaw(buf, u.Raw)
	}
	c := codec{enc: true, buf: buf}
	c.buf = append(c.buf, `{"schema_version":`...)
	c.buf = strconv.AppendUint(c.buf, SchemaVersion, 10)
	c.uint("sequence", &e.Sequence)
	c.uint("elapsed_ms", &e.ElapsedMS)
	c.name("kind")
	c.buf = appendString(c.buf, e.Body.Kind())
	c.encodeBody(e.Body)
	if d, ok := e.Body.(DurableDeploymentCompleted); ok && d.Repeated != nil {
		c.uint("elapsed_ms", d.Repeated)
	}
	if len(e.Extra) > 0 {
		c.buf = append(c.buf, ',')
		c.buf = append(c.buf, e.Extra...)
	}
	c.optID("prev", &e.Prev)
	return append(c.buf, '}')
}

// AppendString appends s as a JSON string in the log's form: UTF-8 as it is, what
// is not UTF-8 as U+FFFD.
func AppendString(buf []byte, s string) []byte { return appendString(buf, s) }

func (c *codec) optText(name string, p *string) {
	if !c.enc || *p != "" {
		c.text(name, p)
	}
}

func (c *codec) optIDs(name string, p *[]string) {
	if !c.enc || len(*p) > 0 {
		c.ids(name, p)
	}
}

func (c *codec) seats(name string, p *[]PreparedSeat) {
	if !c.enc {
		c.list(name, p, func() {
			for i := range *p {
				s := &(*p)[i]
				s.Territory, s.Agent, s.Adapter = text.Line(s.Territory), text.Line(s.Agent), text.Line(s.Adapter)
				s.Note = text.Block(s.Note)
				for j, m := range s.Machines {
					s.Machines[j] = text.Line(m)
				}
			}
		})
		if len(*p) == 0 {
			*p = nil
		}
		return
	}
	c.name(name)
	c.buf = append(c.buf, '[')
	for i, s := range *p {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, `{"territory":`...)
		c.buf = appendString(c.buf, s.Territory)
		c.name("machines")
		c.buf = appendStrings(c.buf, s.Machines)
		c.id("agent", &s.Agent)
		c.id("adapter", &s.Adapter)
		c.optText("note", &s.Note)
		c.buf = append(c.buf, '}')
	}
	c.buf = append(c.buf, ']')
}

// Text is JSON evidence on one line, safe to show.
func Text(raw json.RawMessage) string { return string(printableJSON(raw)) }

func cleanKind(kind string) string {
	kind = text.Line(kind)
	if len(kind) > 128 {
		kind = cutAt(kind, 128)
	}
	return kind
}
