package arena

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"refbox/engine/internal/tomlplace"
)

// Bounds of a manifest file: far above any real one, low enough that a hostile
// one costs nothing.
const (
	maxManifestBytes = 1 << 20
	maxNesting       = 64
)

// value is a parsed manifest, of either syntax, that knows where it stands.
// Its data is *object, []*value, string, bool, json.Number, nil, or a foreign
// type of TOML's (a time), which no field accepts.
type value struct {
	at   place
	data any
}

type object struct {
	keys   []string
	fields map[string]*value
}

// place is where a value or its key stands. A zero line is unknown; offset is
// in bytes and used for JSON alone, whose files may be one line.
type place struct {
	line   int
	offset int64
}

// syntaxError is a manifest that cannot be read at all.
type syntaxError struct {
	at   place
	text string
}

func (e *syntaxError) Error() string { return e.text }

func parse(file string, data []byte) (*value, error) {
	if len(data) > maxManifestBytes {
		return nil, &syntaxError{text: fmt.Sprintf("longer than %d bytes: not a manifest", maxManifestBytes)}
	}
	if isJSON(file, data) {
		return parseJSON(data)
	}
	return parseTOML(data)
}

func isJSON(file string, data []byte) bool {
	switch {
	case strings.HasSuffix(file, ".json"):
		return true
	case strings.HasSuffix(file, ".toml"):
		return false
	}
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

func parseJSON(data []byte) (*value, error) {
	p := &jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, p.fail("something follows the manifest's closing brace")
	}
	return v, nil
}

type jsonParser struct {
	data []byte
	dec  *json.Decoder
	line int
	seen int64 // lines are counted up to here
}

// here is the place of the token just read; offsets only grow.
func (p *jsonParser) here() place {
	off := p.dec.InputOffset()
	p.line += bytes.Count(p.data[p.seen:off], []byte("\n"))
	p.seen = off
	return place{p.line, off}
}

func (p *jsonParser) fail(text string) error { return &syntaxError{p.here(), text} }

func (p *jsonParser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, p.fail("the file ends early")
		}
		return nil, p.fail(strings.TrimPrefix(err.Error(), "json: "))
	}
	return t, nil
}

func (p *jsonParser) value(depth int) (*value, error) {
	if depth > maxNesting {
		return nil, p.fail("nested too deeply")
	}
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	v := &value{at: p.here(), data: t}
	switch t {
	case json.Delim('{'):
		o := &object{fields: map[string]*value{}}
		v.data = o
		for p.dec.More() {
			k, err := p.token()
			if err != nil {
				return nil, err
			}
			key, ok := k.(string)
			if !ok {
				return nil, p.fail("a key must be a string")
			}
			if o.fields[key] != nil {
				return nil, p.fail(fmt.Sprintf("key %q is given twice", key))
			}
			at := p.here()
			field, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			field.at = at
			o.keys = append(o.keys, key)
			o.fields[key] = field
		}
		_, err = p.token()
	case json.Delim('['):
		list := []*value{}
		for p.dec.More() {
			item, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		v.data = list
		_, err = p.token()
	}
	return v, err
}

func parseTOML(data []byte) (*value, error) {
	places := tomlplace.Find(data, maxNesting)
	if places.TooDeep >= 0 {
		return nil, &syntaxError{place{line: lineOf(data, places.TooDeep)}, "nested too deeply"}
	}
	var raw map[string]any
	if _, err := toml.Decode(string(data), &raw); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, &syntaxError{place{line: pe.Position.Line}, pe.Message}
		}
		return nil, &syntaxError{text: err.Error()}
	}
	return tomlValue(raw, "", linesOf(data, places.Keys)), nil
}

func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// linesOf are the lines of what stands at offsets.
func linesOf(data []byte, at map[string]int) map[string]int {
	lines, line, from := make(map[string]int, len(at)), 1, 0
	for _, path := range slices.SortedFunc(maps.Keys(at), func(a, b string) int { return cmp.Compare(at[a], at[b]) }) {
		line += bytes.Count(data[from:at[path]], []byte("\n"))
		lines[path], from = line, at[path]
	}
	return lines
}

func tomlValue(raw any, path string, lines map[string]int) *value {
	v := &value{at: place{line: lines[path]}}
	list := func(n int, item func(int) any) {
		out := make([]*value, n)
		for i := range out {
			out[i] = tomlValue(item(i), path+tomlplace.Index(i), lines)
		}
		v.data = out
	}
	switch raw := raw.(type) {
	case map[string]any:
		o := &object{fields: make(map[string]*value, len(raw))}
		for _, k := range slices.Sorted(maps.Keys(raw)) {
			o.keys = append(o.keys, k)
			o.fields[k] = tomlValue(raw[k], path+tomlplace.Key(k), lines)
		}
		v.data = o
	case []map[string]any:
		list(len(raw), func(i int) any { return raw[i] })
	case []any:
		list(len(raw), func(i int) any { return raw[i] })
	case int64:
		v.data = json.Number(strconv.FormatInt(raw, 10))
	case float64:
		text := strconv.FormatFloat(raw, 'g', -1, 64)
		if raw == math.Trunc(raw) {
			text += ".0" // keeps 1.0 from passing for the integer 1
		}
		v.data = json.Number(text)
	default: // string, bool; a time is refused by every field
		v.data = raw
	}
	return v
}
