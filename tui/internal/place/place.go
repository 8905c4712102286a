// Package place says where in a TOML file something stands: a fault that the decoder
// found, or a key that is well formed and yet wrong. It hides that the decoder tells
// the one in two ways and the other not at all.
package place

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// Fault is the line of a decoder's error, from 1, and what is wrong; the line is 0
// when the error tells none.
func Fault(err error) (line int, what string) {
	var at toml.ParseError
	if errors.As(err, &at) {
		return at.Position.Line, at.Message
	}
	what = err.Error()
	if n, scanErr := fmt.Sscanf(what, "toml: line %d ", &line); n == 1 && scanErr == nil {
		_, rest, _ := strings.Cut(what, "): ")
		return line, rest
	}
	return 0, strings.TrimPrefix(what, "toml: ")
}

// Line is the line of a key, or of the table of that name, from 1; 0 if there is none
// that is written in the usual way.
func Line(data []byte, key ...string) int {
	want := strings.Join(key, ".")
	table, n := "", 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "["); ok {
			head, _, _ = strings.Cut(head, "]")
			if table = strings.Trim(head, "[ "); table == want {
				return n
			}
			continue
		}
		name, _, found := strings.Cut(line, "=")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if table != "" {
			name = table + "." + name
		}
		if found && name == want {
			return n
		}
	}
	return 0
}
