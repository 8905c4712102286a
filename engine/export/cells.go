package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"refbox/engine/event"
	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
	"refbox/engine/world"
)

func outcomeWord(o world.Outcome) string { return strings.ReplaceAll(string(o), "_", " ") }

func seconds(ms uint64) string { return fmt.Sprintf("%.2f s", float64(ms)/1000) }

// cell is text on one line, cut to what a cell of a table holds.
func cell(s string) string {
	if len(s) > 8*maxCell {
		s = s[:8*maxCell] // half a character at the end is cut below, too
	}
	return text.Truncate(text.Line(s), maxCell, text.Ellipsis)
}

// excerpt is text with its lines, cut.
func excerpt(s string) string {
	cut := len(s) > maxExcerpt
	if cut {
		s = s[:maxExcerpt]
	}
	s = text.Block(s)
	if cut {
		s = strings.TrimSuffix(s, "\uFFFD") + text.Ellipsis
	}
	return s
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return event.Text(raw)
	}
	return event.Text(b.Bytes())
}

// indented is evidence in a form that people read.
func indented(raw json.RawMessage) string {
	var v any
	if len(raw) > 4*maxExcerpt || json.Unmarshal(raw, &v) != nil {
		return event.Text(raw)
	}
	out, err := plainjson.Indented(json.RawMessage(event.Text(raw)))
	if err != nil {
		return event.Text(raw)
	}
	return string(out)
}
