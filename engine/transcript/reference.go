package transcript

import (
	"refbox/engine/transcript/skim"
)

// reference reads the reference system's transcripts in their three dialects:
// messages with blocks, a tool_trace that knows times and results, and model
// rounds that know when the model spoke; or a trace with the model's words apart.
type reference struct {
	*document
	ids       map[string]int32 // calls by id
	messages  []referenceMessage
	assistant [][2]int32 // steps of each message of the agent: from, to
	trace     []traceItem
	joined    bool // messages hold calls
	rounds    []round
	stated    usageFigures
	hasStated bool
	estimated bool
}

type referenceMessage struct {
	role    string
	entries []entry
	ids     []string
	tools   []string
	results []resultRef
}

type resultRef struct {
	id          string
	off, length int64
	failed      bool
}

type traceItem struct {
	id, name         string
	off, length      int64
	class            Class
	failed, readOnly bool
	hasStart         bool
	start, dur       int64
	pos              int32
}

type round struct {
	start, dur int64
	hasStart   bool
	use        usageFigures
}

func openReference(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	ref := &reference{document: d, ids: map[string]int32{}, stated: noUsage}
	d.parse = ref.read
	x.setClock(Relative)
	x.describe(func(i *Info) { i.Harness = "claux" })
	return ref, nil
}

func (t *reference) read(r *skim.Reader) {
	t.top(r)
	if err := r.Err(); err != nil && !t.quit {
		// A copy that was taken while it was written has a hole: what is behind it
		// may still hold the trace.
		t.broken(err)
		if at := locate(t.src, r.Offset(), t.size(), `"tool_trace"`); at >= 0 {
			rest := skim.At(t.src, at+int64(len(`"tool_trace"`)), t.size())
			if skipColon(t.src, rest) {
				t.x.note(Repaired, "trace-behind-damage", -1, 0, at, 0, "the tool trace behind the damage was read")
				t.traces(rest)
			}
			if at := locate(t.src, rest.Offset(), t.size(), `"timing"`); at >= 0 {
				rest := skim.At(t.src, at+int64(len(`"timing"`)), t.size())
				if skipColon(t.src, rest) {
					t.timing(rest)
				}
			}
		}
		t.r = skim.Bytes(nil, t.size()) // reported already
	}
	if !t.quit {
		t.finish()
	}
}

// skipColon moves a reader that stands before a colon behind it.
func skipColon(src interface {
	ReadAt([]byte, int64) (int, error)
}, r *skim.Reader) bool {
	var b [32]byte
	n, _ := src.ReadAt(b[:], r.Offset())
	for i, c := range b[:n] {
		if c == ':' {
			r.Return(r.Offset() + int64(i) + 1)
			return true
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return false
}

func (t *reference) top(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "schema_version":
			t.x.label(&t.x.info.Version, short(r, 32))
		case "model":
			t.x.label(&t.x.info.Model, r.Str(200))
		case "harness":
			t.x.label(&t.x.info.Harness, r.Str(200))
		case "harness_version":
			t.x.fact(key, r.Str(200))
		case "outcome":
			t.outcome(r)
		case "usage":
			t.stated, t.hasStated, t.estimated = referenceUsage(r)
		case "messages":
			for range r.Items() {
				t.message(r)
				if !t.pause() {
					return
				}
			}
		case "tool_trace":
			t.traces(r)
		case "timing":
			t.timing(r)
		default:
			t.x.note(Unfamiliar, "unknown-key", -1, 0, r.Offset(), 0, "the key %q", key)
		}
	}
}

func (t *reference) outcome(r *skim.Reader) {
	if r.Kind() == skim.String {
		t.x.label(&t.x.info.Outcome, r.Str(200))
		return
	}
	for key := range r.Keys() {
		switch key {
		case "status":
			t.x.label(&t.x.info.Outcome, r.Str(200))
		case "result", "message":
			v := r.Str(16 << 10)
			t.x.describe(func(i *Info) { i.Result = NewText(v).String() })
		case "kind", "failure":
			t.x.fact("outcome."+key, short(r, 200))
		}
	}
}

// referenceUsage reads a usage. Older harnesses count cache reads and writes as
// input, newer ones do not: a cache that is larger than the input tells.
func referenceUsage(r *skim.Reader) (u usageFigures, ok, estimated bool) {
	u = noUsage
	if r.Kind() != skim.Object {
		return u, false, false
	}
	for key := range r.Keys() {
		switch key {
		case "input_tokens":
			u.in = count(r)
		case "output_tokens":
			u.out = count(r)
		case "cache_read_tokens":
			u.cacheRead = count(r)
		case "cache_creation_tokens":
			u.cacheWrite = count(r)
		case "cost_usd":
			u.cost = max(u.cost, microUSD(r.Float()))
		case "estimated_cost_usd":
			if c := microUSD(r.Float()); c >= 0 && u.cost < 0 {
				u.cost, estimated = c, true
			}
		}
	}
	if cached := plus(u.cacheRead, u.cacheWrite); u.in >= 0 && cached > u.in {
		u.in = plus(u.in, cached)
	}
	return u, true, estimated
}

func (t *reference) message(r *skim.Reader) {
	if r.Kind() != skim.Object {
		off, n := valueSpan(r)
		if r.Err() == nil {
			oddRecord(t.x, span{off: off, length: n}, "a message that is no object")
		}
		return
	}
	off := r.Offset()
	m := referenceMessage{}
	content := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "role":
			m.role = r.Str(32)
		case "content":
			content = r.Offset()
		}
	}
	end := r.Offset()
	if r.Err() != nil || content < 0 {
		return
	}
	actor := User
	switch m.role {
	case "assistant":
		actor = Agent
	case "system":
		actor = System
	}
	r.Return(content)
	if r.Kind() == skim.Array {
		for range r.Items() {
			if len(m.entries) < maxBlocks {
				t.block(r, &m, actor)
			}
		}
	} else {
		r.Skip()
		m.add(step(Message, actor, off, end-off), "", "")
	}
	if r.Err() != nil {
		return
	}
	r.Return(end)
	t.messages = append(t.messages, m)
	if t.joined {
		t.flush()
	}
}

func (m *referenceMessage) add(e entry, id, tool string) {
	m.entries, m.ids, m.tools = append(m.entries, e), append(m.ids, id), append(m.tools, tool)
}

func (t *reference) block(r *skim.Reader, m *referenceMessage, actor Actor) {
	r.Kind()
	off := r.Offset()
	var kind, id, name string
	var failed, sealed, words bool
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(64)
		case "id", "tool_use_id":
			id = r.Str(200)
		case "name":
			name = r.Str(200)
		case "is_error":
			failed, _ = r.Bool()
		case "text":
			words = r.Kind() == skim.String && r.Str(1) != ""
		case "details":
			sealed = r.Kind() == skim.Array
		}
	}
	if r.Err() != nil {
		return
	}
	length := r.Offset() - off
	e := step(Message, actor, off, length)
	switch kind {
	case "text":
	case "reasoning":
		e.kind = Thinking
		e.flags |= Private
		if sealed && !words {
			e.flags |= Encrypted
		}
	case "tool_use":
		t.joined = true
		e.kind, e.outcome, e.class = ToolCall, Unfinished, classOf(name)
	case "tool_result":
		m.results = append(m.results, resultRef{id, off, length, failed})
		return
	default:
		e.kind = Unknown
	}
	m.add(e, id, name)
}

// flush adds the messages that were held back.
func (t *reference) flush() {
	for i := range t.messages {
		t.give(&t.messages[i])
	}
	t.messages = nil
}

func (t *reference) give(m *referenceMessage) {
	from := t.x.len()
	for i, e := range m.entries {
		if e.kind == ToolCall {
			e.tool = t.x.tool(m.tools[i])
		}
		n := t.x.add(e)
		if e.kind == ToolCall && m.ids[i] != "" && n >= 0 {
			if _, dup := t.ids[m.ids[i]]; dup {
				t.x.note(Duplicated, "same-call", n, 0, e.off, e.length, "a call with the same id came before")
			}
			t.ids[m.ids[i]] = int32(n)
		}
	}
	if m.role == "assistant" {
		t.assistant = append(t.assistant, [2]int32{int32(from), int32(t.x.len())})
	}
	for _, res := range m.results {
		i, ok := t.ids[res.id]
		if !ok {
			t.x.note(Orphaned, "result-without-call", -1, 0, res.off, res.length, "a result of a call that is not in this file")
			continue
		}
		t.x.change(int(i), func(call *entry) {
			call.resOff, call.resLength, call.outcome = res.off, res.length, Succeeded
			if res.failed {
				call.outcome = Failed
			}
		})
	}
}

func (t *reference) traces(r *skim.Reader) {
	for i := range r.Items() {
		item := traceItem{pos: int32(min(i, 1<<30))}
		r.Kind()
		item.off = r.Offset()
		input := int64(-1)
		for key := range r.Keys() {
			switch key {
			case "id":
				item.id = r.Str(200)
			case "name":
				item.name = r.Str(200)
			case "input":
				input = r.Offset()
			case "is_error":
				item.failed, _ = r.Bool()
			case "read_only":
				item.readOnly, _ = r.Bool()
			case "started_after_ms":
				item.start, item.hasStart = r.Int()
			case "duration_ms":
				if n, ok := r.Int(); ok {
					item.dur = n
				} else {
					item.dur = -1
				}
			}
		}
		if r.Err() != nil {
			return
		}
		end := r.Offset()
		item.length = end - item.off
		item.class = classOf(item.name)
		if isEditor(item.name) && input >= 0 {
			r.Return(input)
			item.class = refine(item.name, r)
			r.Return(end)
		}
		if len(t.trace) < maxSteps {
			t.trace = append(t.trace, item)
		}
	}
}

func (t *reference) timing(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "total_duration_ms":
			t.x.fact(key, short(r, 32))
		case "model_rounds":
			for range r.Items() {
				rd := round{dur: -1, use: noUsage}
				for key := range r.Keys() {
					switch key {
					case "started_after_ms":
						rd.start, rd.hasStart = r.Int()
					case "duration_ms":
						if n, ok := r.Int(); ok {
							rd.dur = n
						}
					case "usage":
						rd.use, _, _ = referenceUsage(r)
					}
				}
				if len(t.rounds) < maxSteps {
					t.rounds = append(t.rounds, rd)
				}
			}
		}
	}
}
