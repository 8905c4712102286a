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
	lines *lines
}

func parseJSON(data []byte) (*Value, error) {
	p := &jsonParser{data, json.NewDecoder(bytes.NewReader(data)), newLines(data)}
	p.dec.UseNumber()
	v, err := p.value(0)
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
func (p *jsonParser) next() Pos {
	off := int(p.dec.InputOffset())
	for off < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[off]) >= 0 {
		off++
	}
	return p.lines.pos(off)
}

func (p *jsonParser) token() (json.Token, error) {
	at := p.next()
	t, err := p.dec.Token()
	if err == nil {
		return t, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &Error{p.lines.pos(len(p.data)), "the file ends early"}
	}
	return nil, &Error{at, strings.TrimPrefix(err.Error(), "json: ")}
}

func (p *jsonParser) value(depth int) (*Value, error) {
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
		if t == '[' {
			v.Kind = List
			err = p.list(v, depth)
		} else {
			v.Kind = Object
			err = p.object(v, depth)
		}
	}
	return v, err
}

func (p *jsonParser) list(v *Value, depth int) error {
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
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
		field, err := p.value(depth + 1)
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
