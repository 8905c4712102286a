package transcript

import (
	"strings"

	"refbox/engine/transcript/skim"
)

// openCode reads what opencode keeps, whatever it is kept in: messages, and parts
// that are call and result in one. A session is a lane.
type openCode struct {
	x       *index
	held    usageFigures // of the message whose parts come
	counted bool         // the message states its usage: step-finish repeats it
}

func newOpenCode(x *index) *openCode {
	x.setClock(Absolute)
	x.describe(func(i *Info) { i.Harness = "opencode" })
	x.method("usage of each message, cached input added", "cost of each message", "reasoning tokens are counted apart from output")
	return &openCode{x: x, held: noUsage}
}

// openCodeMessage is what the parts of a message share.
type openCodeMessage struct {
	id, role, parent, session, err string
	at, done                       int64
	use                            usageFigures
}

func (o *openCode) session(r *skim.Reader, lane uint16) (id, parent string) {
	for key := range r.Keys() {
		switch key {
		case "id":
			id = short(r, 200)
		case "parentID", "parent_id":
			parent = short(r, 200)
		case "title":
			v := short(r, 400)
			if lane == 0 {
				o.x.describe(func(i *Info) { i.Task = label(v) })
			} else {
				o.x.changeAgent(int(lane), func(a *AgentInfo) { a.Name = label(v) })
			}
		case "directory":
			if v := short(r, 4096); lane == 0 {
				o.x.describe(func(i *Info) { i.WorkDir = label(v) })
			}
		case "version":
			if v := short(r, 64); lane == 0 {
				o.x.describe(func(i *Info) { i.Version = label(v) })
			}
		}
	}
	if lane == 0 {
		o.x.describe(func(i *Info) { i.Session = label(id) })
	}
	return id, parent
}

// message reads a message's info and keeps its usage for its first part.
func (o *openCode) message(r *skim.Reader) openCodeMessage {
	m := openCodeMessage{at: noTime, done: noTime, use: noUsage}
	var provider, model string
	for key := range r.Keys() {
		switch key {
		case "id":
			m.id = short(r, 200)
		case "role":
			m.role = r.Str(32)
		case "parentID":
			m.parent = short(r, 200)
		case "sessionID", "session_id":
			m.session = short(r, 200)
		case "providerID", "provider_id":
			provider = short(r, 100)
		case "modelID", "model_id":
			model = short(r, 200)
		case "cost":
			m.use.cost = microUSD(r.Float())
		case "tokens":
			cost := m.use.cost
			m.use = openCodeTokens(r)
			m.use.cost = cost
		case "tokens_input", "input_tokens":
			m.use.in = count(r)
		case "tokens_output", "output_tokens":
			m.use.out = count(r)
		case "tokens_reasoning", "reasoning_tokens":
			m.use.reasoning = count(r)
		case "tokens_cache_read", "cache_read_tokens":
			m.use.cacheRead = count(r)
		case "tokens_cache_write", "cache_write_tokens":
			m.use.cacheWrite = count(r)
		case "time":
			m.at, m.done, _ = openCodeTime(r)
		case "time_created":
			m.at = epochMS(r)
		case "time_completed":
			m.done = epochMS(r)
		case "error":
			if r.Kind() == skim.Object {
				for key := range r.Keys() {
					if key == "name" {
						m.err = short(r, 200)
					}
				}
			}
		}
	}
	if m.use.cacheRead >= 0 || m.use.cacheWrite >= 0 {
		m.use.in = plus(m.use.in, plus(m.use.cacheRead, m.use.cacheWrite))
	}
	if model != "" {
		o.x.describe(func(i *Info) {
			if i.Model == "" {
				i.Model = label(strings.TrimPrefix(provider+"/"+model, "/"))
			}
		})
	}
	o.flush()
	o.held, o.counted = m.use, !m.use.empty()
	return m
}

// flush charges a message that had no parts with the step before it.
func (o *openCode) flush() {
	if n := o.x.len(); !o.held.empty() && n > 0 {
		o.x.charge(n-1, o.held)
	}
	o.held = noUsage
}

func openCodeTokens(r *skim.Reader) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "input":
			u.in = count(r)
		case "output":
			u.out = count(r)
		case "reasoning":
			u.reasoning = count(r)
		case "cache":
			for key := range r.Keys() {
				switch key {
				case "read":
					u.cacheRead = count(r)
				case "write":
					u.cacheWrite = count(r)
				}
			}
		}
	}
	return u
}

func epochMS(r *skim.Reader) int64 {
	ms, ok := r.Int()
	if !ok || ms <= 0 || ms > 1<<48 {
		return noTime
	}
	return ms
}

func openCodeTime(r *skim.Reader) (start, end int64, compacted bool) {
	start, end = noTime, noTime
	for key := range r.Keys() {
		switch key {
		case "start", "created":
			start = epochMS(r)
		case "end", "completed":
			end = epochMS(r)
		case "compacted":
			compacted = r.Kind() != skim.Null
		}
	}
	return start, end, compacted
}

type openCodePart struct {
	kind, tool, status string
	start, end         int64
	compacted, blank   bool
	synthetic          bool
	exit               int64
	hasExit            bool
	child              string
	use                usageFigures
	class              Class
}

// part reads one part; e says where it lies and of whom it is.
func (o *openCode) part(r *skim.Reader, e entry, m openCodeMessage) {
	p := openCodePart{start: noTime, end: noTime, use: noUsage}
	if r.Kind() != skim.Object {
		r.Skip()
		if r.Err() == nil {
			oddRecord(o.x, span{off: e.off, length: e.length, file: e.file}, "a part that is no object")
		}
		return
	}
	state := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "type":
			p.kind = r.Str(64)
		case "tool":
			p.tool = r.Str(200)
		case "state":
			state = r.Offset()
		case "time":
			p.start, p.end, _ = openCodeTime(r)
		case "text":
			p.blank = strings.TrimSpace(r.Str(64)) == ""
		case "synthetic":
			p.synthetic, _ = r.Bool()
		case "tokens":
			cost := p.use.cost
			p.use = openCodeTokens(r)
			p.use.in = plus(p.use.in, plus(p.use.cacheRead, p.use.cacheWrite))
			p.use.cost = cost
		case "cost":
			p.use.cost = microUSD(r.Float())
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	if e.length <= 0 {
		e.length = end - e.off
	}
	p.class = classOf(p.tool)
	if state >= 0 {
		r.Return(state)
		openCodeState(r, &p)
		r.Return(end)
	}
	o.give(e, &p, m)
}

func openCodeState(r *skim.Reader, p *openCodePart) {
	input := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "status":
			p.status = r.Str(32)
		case "input":
			input = r.Offset()
		case "time":
			p.start, p.end, p.compacted = openCodeTime(r)
		case "metadata":
			for key := range r.Keys() {
				switch key {
				case "exit":
					p.exit, p.hasExit = r.Int()
				case "sessionId", "sessionID":
					p.child = short(r, 200)
				}
			}
		}
	}
	if input >= 0 && isEditor(p.tool) && r.Err() == nil {
		end := r.Offset()
		r.Return(input)
		p.class = refine(p.tool, r)
		r.Return(end)
	}
}

func (o *openCode) give(e entry, p *openCodePart, m openCodeMessage) {
	if e.at = p.start; e.at == noTime {
		e.at = m.at
	}
	if p.start != noTime && p.end != noTime {
		e.dur = span32(p.end - p.start)
	}
	e.actor = Agent
	if m.role == "user" {
		e.actor = User
	}
	i := -1
	switch p.kind {
	case "text":
		if e.kind = Message; p.synthetic {
			e.kind, e.actor = State, System
		}
		i = o.x.add(e)
	case "reasoning":
		e.kind = Thinking
		if e.flags |= Private; p.blank {
			e.flags |= Encrypted
		}
		i = o.x.add(e)
	case "tool":
		e.kind, e.class, e.tool = ToolCall, p.class, o.x.tool(p.tool)
		if p.compacted {
			e.flags |= Compacted
		}
		switch {
		case p.status == "error", p.hasExit && p.exit != 0:
			e.outcome = Failed
		case p.status == "completed":
			e.outcome = Succeeded
		default:
			e.outcome = Unfinished
		}
		if i = o.x.add(e); p.child != "" {
			o.child(p.child, i)
		}
	case "step-finish":
		if !o.counted && !p.use.empty() && o.x.len() > 0 {
			o.x.method("usage of each finished step, cached input added", "cost of each finished step")
			o.x.charge(o.x.len()-1, p.use)
		}
		return
	case "step-start":
		return
	case "file":
		e.kind = Message
		i = o.x.add(e)
	case "patch", "snapshot", "agent":
		e.kind, e.actor = State, System
		i = o.x.add(e)
	case "subtask", "retry", "compaction":
		if e.kind = Lifecycle; p.kind == "retry" {
			e.outcome = Failed
		}
		i = o.x.add(e)
	default:
		i = o.x.add(e)
		o.x.note(Unfamiliar, "unknown-record", i, 0, e.off, e.length, "a part of type %s", p.kind)
	}
	if i >= 0 && !o.held.empty() {
		o.x.charge(i, o.held)
		o.held = noUsage
	}
}

// child notes which call started a session.
func (o *openCode) child(id string, call int) {
	o.x.mu.Lock()
	found := false
	for i := range o.x.agents {
		if i > 0 && o.x.agents[i].ID == label(id) {
			o.x.agents[i].Step, found = call, true
		}
	}
	o.x.mu.Unlock()
	if !found {
		o.x.agent(AgentInfo{ID: id, Step: call})
	}
}

// openCodeBody decodes a part.
func openCodeBody(r *skim.Reader, e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	start := r.Offset()
	var tool, kind string
	state := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "part", "data": // the wrappings of a stream and of a dump
			if r.Kind() == skim.Object {
				return openCodeBody(r, e, limit)
			}
		case "type":
			kind = r.Str(64)
		case "callID":
			f.CallID = short(r, 200)
		case "tool":
			tool = r.Str(200)
		case "text":
			role := PartMessage
			if e.kind == Thinking {
				role = PartReasoning
			}
			b.text(r, role, "")
		case "mime":
			f.Parts = append(f.Parts, Part{Role: PartMedia, Label: short(r, 100)})
		case "filename":
			b.text(r, PartPath, "")
		case "prompt", "description":
			b.text(r, PartMessage, key)
		case "state":
			state = r.Offset()
		}
	}
	if err := r.Err(); err != nil {
		return f, err
	}
	end := r.Offset()
	if state >= 0 && e.kind == ToolCall {
		r.Return(state)
		b.openCodeState(r, tool, e)
		r.Return(end)
	}
	if e.kind == State || e.kind == Lifecycle || e.kind == Unknown {
		b.say(PartDescription, "", kind)
		r.Return(start)
		b.json(r, PartData, "")
	}
	return f, r.Err()
}

func (b *bodies) openCodeState(r *skim.Reader, tool string, e entry) {
	at := map[string]int64{}
	for key := range r.Keys() {
		if len(at) < 50 {
			at[key] = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	take := func(key string, read func()) {
		if off, ok := at[key]; ok {
			r.Return(off)
			read()
		}
	}
	take("title", func() {
		if r.Kind() == skim.String {
			b.text(r, PartDescription, "")
		}
	})
	take("input", func() { b.arguments(tool, e.class, r) })
	take("output", func() { b.content(r, PartOutput) })
	take("error", func() { b.fault(r) })
	take("metadata", func() {
		for key := range r.Keys() {
			switch key {
			case "exit":
				if n, ok := r.Int(); ok {
					b.exit(n)
				}
			case "diff":
				b.text(r, PartPatch, "")
			}
		}
	})
}
