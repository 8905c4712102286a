package transcript

import (
	"refbox/engine/transcript/skim"
)

// message reads one of a sample without events.
func (n *inspect) message(r *skim.Reader, lane uint16, pos int) {
	r.Kind()
	e := step(Message, User, r.Offset(), 0)
	e.agent, e.pos = lane, int32(min(pos, 1<<30))
	var role, callID string
	var words, reason bool
	var v inspectEvent
	var ids, names []string
	for key := range r.Keys() {
		switch key {
		case "role":
			role = r.Str(32)
		case "content":
			words, reason = inspectContent(r)
		case "tool_call_id":
			callID = short(r, 200)
		case "function":
			v.fn = short(r, 200)
		case "error", "tool_error":
			n.eventError(r, &v)
		case "tool_calls":
			for range r.Items() {
				var id, name string
				for key := range r.Keys() {
					switch key {
					case "id":
						id = r.Str(200)
					case "function":
						name = r.Str(200)
					}
				}
				if len(ids) < maxBlocks {
					ids, names = append(ids, id), append(names, name)
				}
			}
		}
	}
	if r.Err() != nil {
		return
	}
	e.length = r.Offset() - e.off
	p := n.pool(lane)
	switch role {
	case "system":
		e.kind, e.actor = State, System
		n.x.add(e)
	case "assistant":
		e.actor = Agent
		if reason {
			t := e
			t.kind, t.block = Thinking, 1
			t.flags |= Private
			n.x.add(t)
		}
		if words {
			n.x.add(e)
		}
		for i, id := range ids {
			c := e
			c.kind, c.class, c.tool, c.block, c.outcome = ToolCall, classOf(names[i]), n.x.tool(names[i]), uint16(2+i), Unfinished
			at := n.x.add(c)
			p.ids[id] = int32(at)
		}
	case "tool":
		call, ok := p.ids[callID]
		if !ok {
			e.kind, e.actor, e.tool, e.class = ToolCall, Agent, n.x.tool(v.fn), classOf(v.fn)
			e.resOff, e.resLength, e.outcome = e.off, e.length, v.returned()
			i := n.x.add(e)
			n.x.note(Orphaned, "result-without-call", i, 0, e.off, e.length, "a result of a call that is not in this sample")
			return
		}
		n.x.change(int(call), func(c *entry) {
			c.resOff, c.resLength, c.outcome = e.off, e.length, v.returned()
		})
	default:
		n.x.add(e)
	}
}

// returned is the outcome of a call that has ended.
func (v *inspectEvent) returned() Outcome {
	switch {
	case v.errType == "timeout":
		return TimedOut
	case v.errType == "cancelled":
		return Cancelled
	case v.bad || v.failed:
		return Failed
	}
	return Succeeded
}
