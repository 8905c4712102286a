package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

type jsonParser struct {
	data  []byte
	dec   *json.Decoder
	base  int // where in data the decoder began
	lines *lines
	pack  string
}

func newJSON(data []byte, from, to int, lines *lines) *jsonParser {
	p := &jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data[from:to])), base: from, lines: lines}
	p.dec.UseNumber()
	return p
}

func parseJSON(data []byte, pack string) (*Value, error) {
	p := newJSON(data, 0, len(data), newLines(data))
	p.pack = pack
	v, err := p.value(0, false)
	if err != nil {
		return nil, err
	}
	at := p.next()
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{at, "something follows the end of the document"}
	}
	return v, nil
}

// next is the place of the token that is read next.
func (p *jsonParser) next() Pos { return p.lines.pos(p.start()) }

// start is the offset of the token that is read next.
func (p *jsonParser) start() int {
	off := p.offset()
	for off < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[off]) >= 0 {
		off++
	}
	return off
}

func (p *jsonParser) offset() int { return p.base + int(p.dec.InputOffset()) }

func (p *jsonParser) token() (json.Token, error) {
	at := p.next()
	t, err := p.dec.Token()
	if err != nil {
		return nil, p.failed(at, err)
	}
	return t, nil
}

func (p *jsonParser) failed(at Pos, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{p.lines.pos(len(p.data)), "the file ends early"}
	}
	return &Error{at, strings.TrimPrefix(err.Error(), "json: ")}
}

func (p *jsonParser) value(depth int, pack bool) (*Value, error) {
	at := p.next()
	if depth > MaxDepth {
		return nil, &Error{at, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	v := &Value{Pos: at}
	switch t := t.(type) {
	case nil:
	case bool:
		v.Kind, v.Bool = Bool, t
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = String, t
	case json.Delim:
		switch {
		case t == '[' && pack:
			v.Kind = List
			err = p.packed(v)
		case t == '[':
			v.Kind = List
			err = p.list(v, depth)
		default:
			v.Kind = Object
			err = p.object(v, depth)
		}
	}
	return v, err
}

func (p *jsonParser) list(v *Value, depth int) error {
	for p.dec.More() {
		item, err := p.value(depth+1, false)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	_, err := p.token()
	return err
}

// packed is a list whose items stay text.
type packed struct {
	data  []byte
	items []span
}

type span struct{ from, to, line, lineStart int }

// item reads one. An item that is JSON but no plain value, such as a table with a
// key given twice, is null.
func (p *packed) item(i int) *Value {
	s := p.items[i]
	at := &lines{data: p.data, line: s.line, start: s.lineStart, seen: s.from}
	v, err := newJSON(p.data, s.from, s.to, at).value(0, false)
	if err != nil {
		return &Value{Pos: at.pos(s.from)}
	}
	return v
}

func (p *jsonParser) packed(v *Value) error {
	v.packed = &packed{data: p.data}
	for p.dec.More() {
		from := p.start()
		at := p.lines.pos(from)
		var text json.RawMessage
		if err := p.dec.Decode(&text); err != nil {
			return p.failed(at, err)
		}
		v.packed.items = append(v.packed.items, span{from, p.offset(), at.Line, p.lines.start})
	}
	_, err := p.token()
	return err
}

func (p *jsonParser) object(v *Value, depth int) error {
	seen := newKeys()
	for p.dec.More() {
		at := p.next()
		k, err := p.token()
		if err != nil {
			return err
		}
		key, ok := k.(string)
		if !ok {
			return &Error{at, "a key must be a string"}
		}
		if err := seen.add(key, at); err != nil {
			return err
		}
		field, err := p.value(depth+1, depth == 0 && key == p.pack)
		if err != nil {
			return err
		}
		v.Fields = append(v.Fields, Field{key, at, field})
	}
	_, err := p.token()
	return err
}

// keys refuses a key that an object has already. Small objects are searched;
// large ones get a map.
type keys struct {
	list []string
	set  map[string]bool
}

func newKeys() *keys { return &keys{} }

func (k *keys) add(key string, at Pos) error {
	twice := false
	if k.set != nil {
		twice = k.set[key]
		k.set[key] = true
	} else {
		for _, have := range k.list {
			twice = twice || have == key
		}
		k.list = append(k.list, key)
		if len(k.list) > 32 {
			k.set = make(map[string]bool)
			for _, have := range k.list {
				k.set[have] = true
			}
		}
	}
	if twice {
		return &Error{at, fmt.Sprintf("key %q is given twice", key)}
	}
	return nil
}
