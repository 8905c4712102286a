package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"refbox/engine/text"
)

// lines are the line, from 1, of each value of a JSON text, by its path.
type lines map[string]int

type oddity struct{ path, text string }

const (
	maxDepth = 32
	// A value's whole path is kept, so that both of these bound the memory.
	maxKey    = 100
	maxValues = 100_000
)

// walk finds the place of each value of a JSON text, and the strings in it that
// are not plain text on one line: whoever reads on may show all the others. Lines
// are nil where the text is no JSON.
func walk(data []byte) (lines, []oddity) {
	w := &walker{d: json.NewDecoder(bytes.NewReader(data)), data: data, at: lines{}}
	w.d.UseNumber()
	if err := w.value("", 0); err != nil {
		return nil, nil
	}
	if !utf8.Valid(data) {
		w.odd = append(w.odd, oddity{"", "is not UTF-8 throughout"})
	}
	return w.at, w.odd
}

type walker struct {
	d    *json.Decoder
	data []byte
	seen int // bytes whose lines are counted
	line int
	at   lines
	odd  []oddity
}

func (w *walker) value(path string, depth int) error {
	if depth > maxDepth {
		return errors.New("too deep")
	}
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	if len(w.at) >= maxValues {
		return fmt.Errorf("more than %d values", maxValues)
	}
	end := int(w.d.InputOffset())
	w.line += bytes.Count(w.data[w.seen:end], []byte("\n"))
	w.seen = end
	if _, twice := w.at[path]; twice && path != "" {
		w.odd = append(w.odd, oddity{path, "is given twice"})
	}
	w.at[path] = w.line + 1
	switch t := t.(type) {
	case string:
		w.plain(path, t)
	case json.Delim:
		for i := 0; w.d.More(); i++ {
			at := fmt.Sprintf("%s[%d]", path, i)
			if t == '{' {
				key, err := w.d.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				w.plain(path, name)
				if len(name) > maxKey {
					return fmt.Errorf("a key of %d bytes, at most %d are allowed", len(name), maxKey)
				}
				if at = text.Line(name); path != "" {
					at = path + "." + at
				}
			}
			if err := w.value(at, depth+1); err != nil {
				return err
			}
		}
		_, err = w.d.Token()
	}
	return err
}

func (w *walker) plain(path, s string) {
	if text.Line(s) != s {
		w.odd = append(w.odd, oddity{path, "holds what is not plain text on one line"})
	}
}

// of is the line of a path, or of the nearest thing around it that is there.
func (l lines) of(path string) int {
	for path != "" {
		if n, ok := l[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return l[""]
}

// lineAt is the line of a JSON error, 0 where it has none.
func (lines) lineAt(data []byte, err error) int {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	at := int64(-1)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &typed):
		at = typed.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return 0
	}
	return 1 + bytes.Count(data[:at], []byte("\n"))
}
