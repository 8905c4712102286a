// Package plainjson is the form of the reference's JSON files: <, > and & stay as
// they are, and no newline ends the text. Hashes and comparisons byte for byte rest
// on it.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Compact is v on one line.
func Compact(v any) ([]byte, error) { return encoded(v, "") }

// Indented is v with two spaces for each level.
func Indented(v any) ([]byte, error) { return encoded(v, "  ") }

func encoded(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
