package transcript

import (
	"cmp"
	"slices"

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
			v := short(r, 32)
			t.x.describe(func(i *Info) { i.Version = label(v) })
		case "model":
			v := r.Str(200)
			t.x.describe(func(i *Info) { i.Model = label(v) })
		case "harness":
			v := r.Str(200)
			t.x.describe(func(i *Info) { i.Harness = label(v) })
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
		v := r.Str(200)
		t.x.describe(func(i *Info) { i.Outcome = label(v) })
		return
	}
	for key := range r.Keys() {
		switch key {
		case "status":
			v := r.Str(200)
			t.x.describe(func(i *Info) { i.Outcome = label(v) })
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

// finish joins what the parts of the file say of the same things.
func (t *reference) finish() {
	slices.SortStableFunc(t.trace, func(a, b traceItem) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(t.trace); i++ {
		if t.trace[i].pos < t.trace[i-1].pos {
			t.x.note(Disordered, "trace-order", -1, 0, t.trace[i].off, t.trace[i].length, "trace item %d starts before the items listed ahead of it", t.trace[i].pos)
		}
	}
	if !t.joined && len(t.trace) > 0 {
		// The model's words are apart from the calls: who asked comes first, what was
		// said at the end comes last.
		words := t.messages
		t.messages = nil
		for i := range words {
			if words[i].role != "assistant" {
				t.give(&words[i])
			}
		}
		t.join()
		for i := range words {
			if words[i].role == "assistant" {
				t.give(&words[i])
			}
		}
		t.x.note(Misleading, "words-without-time", -1, 0, 0, 0, "the record does not say when the model spoke: its words come last")
	} else {
		t.flush()
		t.join()
	}
	t.spend()
	t.x.reclock()
}

// join gives the calls what the trace knows, and adds those that only it knows.
func (t *reference) join() {
	for _, item := range t.trace {
		i, ok := t.ids[item.id]
		if !ok || item.id == "" {
			e := step(ToolCall, Agent, item.off, item.length)
			e.tool, e.class = t.x.tool(item.name), item.class
			n := t.x.add(e)
			if t.joined {
				t.x.note(Orphaned, "trace-without-call", n, 0, item.off, item.length, "a traced call that no message makes")
			}
			i = int32(n)
		}
		t.x.change(int(i), func(call *entry) {
			if call.pos >= 0 {
				return // a second item with the same id
			}
			call.resOff, call.resLength = item.off, item.length
			if call.off == item.off {
				call.resLength = 0
			}
			call.pos, call.class, call.outcome = item.pos, item.class, Succeeded
			if item.failed {
				call.outcome = Failed
			}
			if item.readOnly {
				call.flags |= ReadOnly
			}
			if item.hasStart {
				call.at = clampMS(item.start)
			}
			if item.dur >= 0 {
				call.dur = span32(item.dur)
			}
		})
	}
}

// clampMS keeps a relative time where arithmetic on it is safe.
func clampMS(ms int64) int64 { return min(max(ms, -1<<52), 1<<52) }

// spend charges each round with the message it brought.
func (t *reference) spend() {
	if len(t.rounds) > 0 && len(t.rounds) != len(t.assistant) && len(t.rounds) != len(t.assistant)+1 {
		t.x.note(Misleading, "rounds", -1, 0, 0, 0, "%d model rounds for %d messages of the agent: taken in their order", len(t.rounds), len(t.assistant))
	}
	sum := noUsage
	for i, rd := range t.rounds {
		at := max(t.x.len()-1, 0)
		if i < len(t.assistant) {
			from, to := t.assistant[i][0], t.assistant[i][1]
			at = int(from)
			for n := from; n < to && rd.hasStart; n++ {
				t.x.change(int(n), func(e *entry) {
					if e.at != noTime {
						return
					}
					e.at = clampMS(rd.start)
					if n == from && rd.dur >= 0 && e.kind != ToolCall {
						e.dur = span32(rd.dur)
					}
				})
			}
		}
		if !rd.use.empty() && t.x.len() > 0 {
			t.x.charge(at, rd.use)
			sum.add(rd.use)
		}
	}
	if !t.hasStated {
		t.x.method("sum of model rounds", "sum of model rounds")
		return
	}
	costs := "stated by the harness"
	if t.estimated {
		costs = "estimated by the harness"
	}
	t.x.give(t.stated, "stated by the harness", costs)
	t.x.method("", "", "harnesses of different eras count cached input differently: totals of different cohorts are not comparable")
	if len(t.rounds) > 0 && sum.in >= 0 && t.stated.in >= 0 && sum.in != t.stated.in {
		t.x.note(Misleading, "usage-sum", -1, 0, 0, 0, "the model rounds add up to %d input tokens, the record states %d", sum.in, t.stated.in)
	}
}

func (t *reference) full(e entry, limit int) (Full, error) {
	var f Full
	b := &bodies{f: &f, limit: limit}
	t.body(reader(t.src, e.off, e.length), b, e, false)
	if e.resLength > 0 {
		t.body(reader(t.src, e.resOff, e.resLength), b, e, true)
	}
	return f, nil
}

func (t *reference) body(r *skim.Reader, b *bodies, e entry, result bool) {
	output := PartOutput
	if e.outcome == Failed {
		output = PartError
	}
	start := r.Offset()
	var name string
	input, out := int64(-1), int64(-1)
	for key := range r.Keys() {
		switch key {
		case "id", "tool_use_id":
			b.f.CallID = r.Str(200)
		case "name":
			name = r.Str(200)
		case "input":
			input = r.Offset()
		case "output", "content":
			out = r.Offset()
		case "text":
			role := PartMessage
			if e.kind == Thinking {
				role = PartReasoning
			}
			b.text(r, role, "")
		case "details":
			from := r.Offset()
			r.Skip()
			if e.has(Encrypted) {
				b.sealed("encrypted", r.Offset()-from)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	if e.kind == ToolCall {
		if input >= 0 && !result {
			r.Return(input)
			b.arguments(name, e.class, r)
		}
		if out >= 0 {
			r.Return(out)
			b.content(r, output)
		}
		return
	}
	if out >= 0 {
		r.Return(out)
		b.content(r, PartMessage)
		return
	}
	if e.kind == Unknown {
		r.Return(start)
		b.json(r, PartData, "")
	}
}

func (e entry) has(f Flags) bool { return e.flags&f == f }
