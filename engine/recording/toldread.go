package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"refbox/engine/text"
	"refbox/engine/transcript/skim"
)

const (
	maxTold  = 64 << 20
	maxCalls = 20000
	maxMS    = 1 << 42 // no clock says more
	maxTyped = 2048    // bytes of a call's command that are kept
	maxSaid  = 512     // and of its output
)

// readTold reads a transcript; what is private in it, the messages, is passed
// over. Of one that is damaged, as a copy is that was taken while the file was
// written, what lies before the damage counts, and the trace and the times behind
// it. One odd value leaves the others.
func readTold(data []byte) told {
	t := told{sha: digest(data)}
	d := toldReader{told: &t}
	r := skim.Bytes(data, 0)
	d.top(r)
	if err := r.Err(); err != nil {
		t.torn, t.tornAt = err, r.Offset()
		d.behind(data, int(r.Offset()))
	}
	t.odd = t.torn == nil && (!d.versioned || !d.traced && !d.stated)
	if !d.stated && len(t.rounds) > 0 {
		t.total = t.rounds[len(t.rounds)-1].used
	}
	t.partial = t.torn != nil && !d.stated
	return t
}

// toldReader fills a told.
type toldReader struct {
	*told
	versioned, traced, stated bool
}

func (d *toldReader) top(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "schema_version":
			d.versioned = r.Kind() != skim.Null
		case "usage":
			if used, ok := tokensOf(r); ok {
				d.total, d.stated = used, true
			}
		case "tool_trace":
			d.trace(r)
		case "timing":
			d.timing(r)
		}
	}
}

// behind reads what a damaged transcript has behind the damage. Inside a string of
// JSON a quote is escaped, so the keys cannot be met in somebody's words.
func (d *toldReader) behind(data []byte, from int) {
	member := func(key string, read func(*skim.Reader)) {
		quoted := []byte(`"` + key + `"`)
		for at := from; at < len(data); {
			i := bytes.Index(data[at:], quoted)
			if i < 0 {
				return
			}
			at += i + len(quoted)
			if rest := bytes.TrimLeft(data[at:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
				r := skim.Bytes(rest[1:], 0)
				read(r)
				return
			}
		}
	}
	if !d.traced {
		member("tool_trace", d.trace)
	}
	if len(d.rounds) == 0 {
		member("timing", d.timing)
	}
}

func (d *toldReader) trace(r *skim.Reader) {
	d.traced = r.Kind() == skim.Array
	for range r.Items() {
		if len(d.calls) < maxCalls {
			d.call(r)
		}
	}
}

func (d *toldReader) call(r *skim.Reader) {
	var c call
	for key := range r.Keys() {
		switch key {
		case "id":
			c.id = clipped(r.Str(200), 200)
		case "name":
			c.name = clipped(r.Str(200), 200)
		case "input":
			c.input, _ = r.Raw(maxTold)
		case "output":
			if r.Kind() != skim.String {
				raw, _ := r.Raw(maxTold)
				c.output = string(raw)
				break
			}
			c.output = r.Str(maxTold)
		case "is_error":
			c.failed, _ = r.Bool()
		case "started_after_ms":
			c.startMS = natural(r)
		case "duration_ms":
			c.tookMS = natural(r)
		}
	}
	if r.Err() != nil || c.id == "" && c.name == "" {
		return // the damage is in it, or it is no call
	}
	c.command, c.input = c.typed(), nil
	c.bytes, c.output = uint64(len(c.output)), clipped(c.output, maxSaid)
	d.calls = append(d.calls, c)
}

func (d *toldReader) timing(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "total_duration_ms":
			d.lastsMS = natural(r)
		case "model_rounds":
			var used tokens
			for range r.Items() {
				d.round(r, &used)
			}
		}
	}
}

func (d *toldReader) round(r *skim.Reader, used *tokens) {
	var ends uint64
	var took tokens
	told := false
	for key := range r.Keys() {
		switch key {
		case "started_after_ms", "duration_ms":
			ends += natural(r)
		case "usage":
			took, told = tokensOf(r)
		}
	}
	if r.Err() != nil || !told || len(d.rounds) >= maxCalls {
		return
	}
	*used = tokens{used.in + min(took.in, maxMS), used.out + min(took.out, maxMS)}
	d.rounds = append(d.rounds, round{ends, *used})
}

func tokensOf(r *skim.Reader) (t tokens, ok bool) {
	if r.Kind() != skim.Object {
		return t, false
	}
	for key := range r.Keys() {
		switch key {
		case "input_tokens":
			t.in = natural(r)
		case "output_tokens":
			t.out = natural(r)
		}
	}
	return t, r.Err() == nil
}

// natural is a number within bounds; 0 for another value.
func natural(r *skim.Reader) uint64 {
	n, ok := r.Int()
	if !ok || n < 0 {
		return 0
	}
	return min(uint64(n), maxMS)
}

// typed is a call in a line or a few, as a person would type it.
func (c *call) typed() string {
	var in map[string]json.RawMessage
	if json.Unmarshal(c.input, &in) == nil {
		for _, key := range []string{"command", "cmd"} {
			var s string
			if json.Unmarshal(in[key], &s) == nil && s != "" {
				return clipped(s, maxTyped)
			}
		}
		for _, key := range []string{"file_path", "filePath", "path", "pattern"} {
			var s string
			if json.Unmarshal(in[key], &s) == nil && s != "" {
				return clipped(strings.ToLower(c.name)+" "+s, maxTyped)
			}
		}
	}
	var compact bytes.Buffer
	if len(c.input) == 0 || json.Compact(&compact, c.input) != nil {
		return clipped(c.name, maxTyped)
	}
	return clipped(c.name+" "+compact.String(), maxTyped)
}

// clipped is at most n bytes of a string, safe to show.
func clipped(s string, n int) string {
	cut := len(s) > n
	s = text.Block(s[:min(len(s), n)])
	if cut {
		s += text.Ellipsis
	}
	return s
}

// damage says where a transcript is damaged, and what is left of it.
func (t *told) damage() string {
	if t.sha == "" {
		return "cannot be read: " + text.Line(t.torn.Error())
	}
	why := text.Line(t.torn.Error())
	var syntax *skim.SyntaxError
	if errors.As(t.torn, &syntax) {
		why = syntax.What // the place is told already
	}
	if len(t.calls) == 0 {
		return fmt.Sprintf("is damaged at byte %d, and no call can be read: %s", t.tornAt, why)
	}
	return fmt.Sprintf("is damaged at byte %d: %s; %d calls around it are read", t.tornAt, why, len(t.calls))
}
