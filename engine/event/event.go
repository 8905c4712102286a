// Package event is a heat's log: the kinds, their envelope on the line, the
// chain that ties each line to the one before, and tolerant reading.
//
// Guarantees: what Encode writes, Decode reads back equal; the reference's lines
// re-encode to the same bytes (the doubled elapsed_ms included); unknown kinds
// and keys are kept; every line written by an Appender is whole, and chained.
package event

// SchemaVersion is the envelope's; the same in every era.
const SchemaVersion = 1

// Event is one line of events.jsonl.
type Event struct {
	Sequence  uint64
	ElapsedMS uint64 // the heat's monotonic clock
	// Prev is the hex SHA-256 of the previous line without its newline; the
	// first line carries the hash of match.json's start part. Empty in the
	// reference's logs.
	Prev string
	Body Body
	// Extra holds keys of a known kind that this version does not know, in the
	// order of the line; nil for none.
	Extra []byte
}

// Kind is the event's kind on the line.
func (e Event) Kind() string { return e.Body.Kind() }
