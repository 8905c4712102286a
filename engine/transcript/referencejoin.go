package transcript

import (
	"cmp"
	"slices"

	"refbox/engine/transcript/skim"
)

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
	b := newBodies(&f, e, limit)
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
