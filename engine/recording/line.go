package recording

import (
	"bytes"
	"encoding/json"
	"fmt"

	"refbox/engine/text"
)

// eventStart is how every writer begins a line.
var eventStart = []byte(`{"schema_version":`)

// salvage finds the event behind a line that was cut and then written on without a
// newline, as a writer does that was killed and opens its log again: where it
// begins, or 0 when there is none.
func salvage(line []byte, decodes func([]byte) bool) int {
	at := bytes.LastIndex(line, eventStart)
	if at <= 0 || !decodes(line[at:]) {
		return 0
	}
	return at
}

// checkSchema notes a line of a schema version that is not ours. It is read all
// the same.
func (r *Recording) checkSchema(line []byte) {
	if bytes.HasPrefix(line, []byte(`{"schema_version":1,`)) || bytes.Contains(line, []byte(`"schema_version":1,"sequence":`)) {
		return
	}
	var envelope struct {
		Version json.RawMessage `json:"schema_version"`
	}
	if json.Unmarshal(line, &envelope) != nil || envelope.Version == nil || string(envelope.Version) == "1" {
		return
	}
	r.findings.add(Finding{Severity: Note, Code: "schema_version", File: r.log, Line: r.lines + 1, Offset: r.size,
		Text: text.Line(fmt.Sprintf("line %d: is of schema version %.40s, not 1: it may mean something else", r.lines+1, envelope.Version))})
}
