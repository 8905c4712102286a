package season

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"refbox/engine/bounded"
	"refbox/engine/text"
)

// ErrNeither is of a file that is no document of a season.
var ErrNeither = errors.New("neither a draw nor a week of a season")

// Documents is what there is of a week to look at. Any part may be nil.
type Documents struct {
	Path   string // as opened
	Draw   *Draw
	Digest string // of the draw's bytes; "" without a draw
	Week   *Week
	// Odd says what reading met: unknown keys, text that had to be sanitised.
	Odd []string
}

// ReadDraw reads a draw and its digest.
func ReadDraw(data []byte) (*Draw, string, []string, error) {
	d := new(Draw)
	odd, err := decode(data, d)
	if err != nil {
		return nil, "", nil, fmt.Errorf("draw: %w", err)
	}
	digest, err := Digest(data)
	return d, digest, odd, err
}

// ReadWeek reads a week.
func ReadWeek(data []byte) (*Week, []string, error) {
	w := new(Week)
	odd, err := decode(data, w)
	if err != nil {
		return nil, nil, fmt.Errorf("week: %w", err)
	}
	return w, odd, nil
}

// ReadFile reads draw.json or week.json, whichever the file is by its keys.
func ReadFile(file string) (Documents, error) {
	data, err := bounded.File(file, maxDocument)
	if err != nil {
		return Documents{}, err
	}
	docs := Documents{Path: file}
	if err := docs.add(data); err != nil {
		return docs, fmt.Errorf("%s: %w", file, err)
	}
	return docs, nil
}

func (docs *Documents) add(data []byte) error {
	var keys struct {
		FirstRound json.RawMessage `json:"first_round"`
		Rounds     json.RawMessage `json:"rounds"`
	}
	if err := json.Unmarshal(data, &keys); err != nil {
		return describe(data, err)
	}
	var odd []string
	var err error
	switch {
	case keys.FirstRound != nil:
		docs.Draw, docs.Digest, odd, err = ReadDraw(data)
	case keys.Rounds != nil:
		docs.Week, odd, err = ReadWeek(data)
	default:
		return ErrNeither
	}
	docs.Odd = append(docs.Odd, odd...)
	return err
}

// With adds another file's draw or week.
func (docs *Documents) With(file string) error {
	data, err := bounded.File(file, maxDocument)
	if err != nil {
		return err
	}
	had := *docs
	if err := docs.add(data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if had.Draw != nil && docs.Draw != had.Draw || had.Week != nil && docs.Week != had.Week {
		return fmt.Errorf("%s: there is a document of this kind already", file)
	}
	return nil
}

// ReadDir reads what a week's folder has of both.
func ReadDir(dir string) (Documents, error) {
	docs := Documents{Path: dir}
	for _, name := range []string{"draw.json", "week.json"} {
		data, err := bounded.File(filepath.Join(dir, name), maxDocument)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var odd []string
		if err == nil && name == "draw.json" {
			docs.Draw, docs.Digest, odd, err = ReadDraw(data)
		} else if err == nil {
			docs.Week, odd, err = ReadWeek(data)
		}
		if err != nil {
			return docs, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		docs.Odd = append(docs.Odd, odd...)
	}
	if docs.Draw == nil && docs.Week == nil {
		return docs, fmt.Errorf("%s: there is no draw.json and no week.json: %w", dir, ErrNeither)
	}
	return docs, nil
}

// decode reads a document. Keys that are not known are told, not refused: a newer
// program may have written them.
func decode(data []byte, into any) (odd []string, err error) {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		if !strings.Contains(err.Error(), "unknown field") {
			return nil, describe(data, err)
		}
		odd = append(odd, "has a key that this refbox does not know: "+text.Line(strings.TrimPrefix(err.Error(), "json: ")))
		reflect.ValueOf(into).Elem().SetZero()
		if err := json.Unmarshal(data, into); err != nil {
			return nil, describe(data, err)
		}
	} else if _, err := strict.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the document at byte %d", strict.InputOffset())
	}
	if twice := repeated(data); twice != "" {
		return nil, fmt.Errorf("the key %s is there twice in one object, so that two readers may see two documents", text.Line(twice))
	}
	if n := clean(reflect.ValueOf(into), false); n > 0 {
		odd = append(odd, fmt.Sprintf("has %d texts with characters that were made harmless", n))
	}
	return odd, nil
}

func describe(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: %s", syntax.Offset, text.Line(err.Error()))
	case errors.As(err, &kind):
		return fmt.Errorf("byte %d: %s cannot be a %s", kind.Offset, text.Line(kind.Field), text.Line(kind.Value))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("cut off after %d bytes", len(data))
	}
	return errors.New(text.Line(err.Error()))
}

// clean sanitises every string of a document in place, and counts those that it
// changed. A detail may have several lines.
func clean(v reflect.Value, block bool) (changed int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			changed = clean(v.Elem(), block)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			changed += clean(v.Field(i), v.Type().Field(i).Name == "Detail")
		}
	case reflect.Slice:
		for i := range v.Len() {
			changed += clean(v.Index(i), false)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			key, val := reflect.New(k.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(k)
			val.Set(v.MapIndex(k))
			if n := clean(key, false) + clean(val, false); n > 0 {
				changed += n
				v.SetMapIndex(k, reflect.Value{})
				v.SetMapIndex(key, val)
			}
		}
	case reflect.String:
		s := v.String()
		t := s
		if block {
			t = text.Block(s)
		} else if !plain(s) {
			t = text.Line(s)
		}
		if t != s {
			v.SetString(t)
			changed = 1
		}
	}
	return changed
}

// plain says that there is nothing in a string to sanitise.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// repeated is the first key that an object has twice; the data is valid JSON.
func repeated(data []byte) string {
	type level struct {
		object bool
		key    bool // the next string is a key
		seen   map[string]struct{}
	}
	var stack []level
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			stack = append(stack, level{object: true, key: true, seen: map[string]struct{}{}})
		case '[':
			stack = append(stack, level{})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			if n := len(stack); n > 0 {
				stack[n-1].key = stack[n-1].object
			}
		case '"':
			end := i + 1
			for data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			if n := len(stack); n > 0 && stack[n-1].key {
				top := &stack[n-1]
				key := string(data[i+1 : end])
				if strings.ContainsRune(key, '\\') {
					json.Unmarshal(data[i:end+1], &key) //nolint:errcheck // it is valid
				}
				// Go's decoder takes keys in any case.
				key = strings.ToLower(key)
				if _, twice := top.seen[key]; twice {
					return key
				}
				top.seen[key] = struct{}{}
				top.key = false
			}
			i = end
		}
	}
	return ""
}
