package event

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// MaxText is the longest string that a decoded event carries, in bytes; what is
// longer is cut and ends in "…". A raw Decoder cuts nothing.
const MaxText = 64 << 10

// Decoder decodes lines of one log. It remembers recent strings, so that
// repeated ids and details take memory once. Not for use by several goroutines.
type Decoder struct {
	// Raw hands out strings exactly as they are in the file, for re-encoding and
	// for comparing worlds. Nothing decoded raw may reach a terminal.
	Raw bool

	c      codec
	intern interned
}

var decoderPool = sync.Pool{New: func() any { return new(Decoder) }}

// Decode reads one line, with or without its newline. Strings are sanitised for
// showing (text.Line for ids, text.Block for prose) and cut at MaxText. A kind
// that is not known becomes Unknown, unknown keys go to Extra. Of a key that
// occurs twice the last one counts, the reference's doubled elapsed_ms aside.
func Decode(line []byte) (Event, error) {
	d := decoderPool.Get().(*Decoder)
	defer decoderPool.Put(d)
	return d.Decode(line)
}

// Decode reads one line; see the function Decode. The event keeps nothing of line.
func (d *Decoder) Decode(line []byte) (Event, error) {
	c := &d.c
	*c = codec{line: bytes.TrimRight(line, "\r\n"), raw: d.Raw, intern: &d.intern, extra: c.extra[:0]}
	kind := c.prefix()
	if kind == nil {
		var err error
		if kind, err = c.findKind(); err != nil {
			return Event{}, err
		}
	}
	decode, known := decoders[string(kind)]
	if !known {
		return c.unknown(string(kind))
	}
	c.doubled = string(kind) == "durable_deployment_completed"
	body := decode(c)
	if c.err != nil {
		return Event{}, fmt.Errorf("%s: %w", kind, c.err)
	}
	if c.repeated != nil {
		durable := body.(DurableDeploymentCompleted)
		durable.Repeated = c.repeated
		body = durable
	}
	c.ev.Body = body
	if len(c.extra) > 0 {
		c.ev.Extra = bytes.Clone(c.extra)
	}
	return c.ev, nil
}

func decodeAs[T Body, P interface {
	*T
	fields(*codec)
}](c *codec) Body {
	b := new(T)
	for c.more() {
		P(b).fields(c)
	}
	return *b
}

func decodeMilestoneEvaluationStarted(c *codec) Body {
	var b MilestoneEvaluationStarted
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeMilestoneFailed(c *codec) Body {
	var b MilestoneFailed
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeMilestonePassed(c *codec) Body {
	var b MilestonePassed
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeHealthObserved(c *codec) Body {
	var b HealthObserved
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeResourcesChanged(c *codec) Body {
	var b ResourcesChanged
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeUsageCharged(c *codec) Body {
	var b UsageCharged
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeAgentActionStarted(c *codec) Body {
	var b AgentActionStarted
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeAgentActionFinished(c *codec) Body {
	var b AgentActionFinished
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeCanarySample(c *codec) Body {
	var b CanarySample
	for c.more() {
		b.fields(c)
	}
	return b
}

func decodeCompetitorStateChanged(c *codec) Body {
	var b CompetitorStateChanged
	for c.more() {
		b.fields(c)
	}
	return b
}

var (
	prefixSequence = []byte(`{"schema_version":1,"sequence":`)
	prefixElapsed  = []byte(`,"elapsed_ms":`)
	prefixKind     = []byte(`,"kind":"`)
)

// prefix reads the envelope in its usual form and returns the kind, or nil and
// nothing read.
func (c *codec) prefix() []byte {
	if !bytes.HasPrefix(c.line, prefixSequence) {
		return nil
	}
	c.pos = len(prefixSequence)
	sequence, ok := c.digits()
	if !ok || !bytes.HasPrefix(c.line[c.pos:], prefixElapsed) {
		c.pos = 0
		return nil
	}
	c.pos += len(prefixElapsed)
	elapsed, ok := c.digits()
	if !ok || !bytes.HasPrefix(c.line[c.pos:], prefixKind) {
		c.pos = 0
		return nil
	}
	c.pos += len(prefixKind)
	end := bytes.IndexByte(c.line[c.pos:], '"')
	if end < 0 || bytes.IndexByte(c.line[c.pos:c.pos+end], '\\') >= 0 {
		c.pos = 0
		return nil
	}
	kind := c.line[c.pos : c.pos+end]
	if decoders[string(kind)] == nil {
		c.pos = 0
		return nil
	}
	c.pos += end + 1
	c.members = 4
	c.elapsed = 1
	c.ev.Sequence, c.ev.ElapsedMS = sequence, elapsed
	return kind
}

// digits reads up to 18 of them; longer numbers take the slow way.
func (c *codec) digits() (uint64, bool) {
	start := c.pos
	var v uint64
	for c.pos < len(c.line) && c.line[c.pos]-'0' <= 9 {
		v = v*10 + uint64(c.line[c.pos]-'0')
		c.pos++
	}
	n := c.pos - start
	return v, n > 0 && n <= 18 && (n == 1 || c.line[start] != '0')
}

// findKind looks for the kind anywhere in the object and leaves pos at the first
// member.
func (c *codec) findKind() ([]byte, error) {
	c.spaces()
	if c.pos >= len(c.line) || c.line[c.pos] != '{' {
		return nil, errors.New("the line is not a JSON object")
	}
	c.pos++
	scan := codec{line: c.line, pos: c.pos, raw: true}
	var kind []byte
	for {
		scan.nextMember()
		if scan.ended {
			break
		}
		if string(scan.key) == "kind" {
			s := scan.readString(false)
			kind = []byte(s)
		} else {
			scan.skipValue()
		}
	}
	if scan.err != nil {
		return nil, scan.err
	}
	if len(kind) == 0 {
		return nil, errors.New("the line has no kind")
	}
	return kind, nil
}

func (c *codec) unknown(kind string) (Event, error) {
	for c.more() {
		c.skipValue()
		c.taken = true
		c.advance()
	}
	if c.err != nil {
		return Event{}, fmt.Errorf("%s: %w", kind, c.err)
	}
	raw := c.line
	if !c.raw {
		raw = printableJSON(raw)
		kind = cleanKind(kind)
	}
	c.ev.Body = Unknown{Name: kind, Raw: bytes.Clone(raw)}
	return c.ev, nil
}

// Kinds are the kinds that are known, sorted: what folds or tells events is tested
// for all of them.
func Kinds() []string { return slices.Sorted(maps.Keys(decoders)) }
