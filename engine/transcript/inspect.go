package transcript

import (
	"strings"
	"sync"

	"refbox/engine/transcript/skim"
)

// inspect reads what Inspect logs, whatever files it is in: a header, and
// samples with events, or, when there are none, with messages. A sample is a
// lane. Long texts and repeated messages lie in pools that events refer to.
type inspect struct {
	x     *index
	mu    sync.Mutex
	pools map[uint16]*pool
}

// pool is where a sample's shared texts lie.
type pool struct {
	texts map[string]place
	ids   map[string]int32 // calls of messages, by id
	// what was found so far
	events, charged, clocked bool
	working                  float64
}

type place struct {
	file        uint32
	off, length int64
}

func newInspect(x *index) *inspect {
	x.setClock(Absolute)
	x.method("model events, cached input added", "sum of total_cost")
	x.describe(func(i *Info) { i.Harness = "inspect_ai" })
	x.changeAgent(0, func(a *AgentInfo) { a.ID = "evaluation" })
	return &inspect{x: x, pools: map[uint16]*pool{}}
}

func (n *inspect) pool(lane uint16) *pool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pools[lane]
	if p == nil {
		p = &pool{texts: map[string]place{}, ids: map[string]int32{}}
		n.pools[lane] = p
	}
	return p
}

func (n *inspect) lane(name string) uint16 {
	return n.x.agent(AgentInfo{ID: name, Parent: 0, Step: -1})
}

// header reads the log without its samples; samples is called for them.
func (n *inspect) header(r *skim.Reader, samples func(r *skim.Reader) bool) {
	for key := range r.Keys() {
		switch key {
		case "version":
			n.x.label(&n.x.info.Version, short(r, 32))
		case "status":
			n.x.label(&n.x.info.Outcome, short(r, 32))
		case "eval":
			for key := range r.Keys() {
				switch key {
				case "task":
					n.x.label(&n.x.info.Task, short(r, 200))
				case "model":
					n.x.label(&n.x.info.Model, short(r, 200))
				case "run_id":
					n.x.label(&n.x.info.Session, short(r, 200))
				}
			}
		case "error":
			for key := range r.Keys() {
				if key == "message" {
					v := r.Str(4096)
					n.x.describe(func(i *Info) { i.Result = NewText(v).String() })
				}
			}
		case "results":
			for key := range r.Keys() {
				switch key {
				case "total_samples", "completed_samples":
					n.x.fact(key, short(r, 32))
				}
			}
		case "samples":
			if samples == nil {
				continue
			}
			for range r.Items() {
				if !samples(r) {
					return
				}
			}
		}
	}
}

// sample reads one; file is where it lies. pause may be nil.
func (n *inspect) sample(r *skim.Reader, file uint32, lane uint16, pause func() bool) {
	p := n.pool(lane)
	var id, epoch string
	messages := int64(-1)
	usage := noUsage
	for key := range r.Keys() {
		switch key {
		case "id":
			id = short(r, 200)
		case "epoch":
			epoch = short(r, 32)
		case "messages":
			messages = r.Offset()
		case "events":
			if !n.events(r, lane, pause) {
				return
			}
		case "transcript": // of old versions
			for key := range r.Keys() {
				switch key {
				case "events":
					if !n.events(r, lane, pause) {
						return
					}
				case "content":
					n.attachments(r, file, lane)
				}
			}
		case "attachments":
			n.attachments(r, file, lane)
		case "model_usage":
			for range r.Keys() {
				usage.add(inspectUsage(r))
			}
		case "scores":
			for name := range r.Keys() {
				for key := range r.Keys() {
					if key == "value" {
						n.x.fact("score."+name, short(r, 100))
					}
				}
			}
		case "error":
			for key := range r.Keys() {
				if key == "message" {
					n.x.fact("error", r.Str(400))
				}
			}
		case "limit":
			for key := range r.Keys() {
				if key == "type" {
					n.x.fact("limit", short(r, 64))
				}
			}
		}
	}
	if id != "" {
		name := "sample " + id
		if epoch != "" {
			name += ", epoch " + epoch
		}
		n.x.changeAgent(int(lane), func(a *AgentInfo) { a.Name = label(name) })
	}
	if r.Err() == nil && !p.events && messages >= 0 {
		end := r.Offset()
		r.Return(messages)
		for i := range r.Items() {
			n.message(r, lane, i)
			if pause != nil && !pause() {
				return
			}
		}
		if r.Err() == nil {
			r.Return(end)
		}
	}
	if !p.charged && !usage.empty() && n.x.len() > 0 {
		p.charged = true
		n.x.method("model usage of the samples, cached input added", "")
		n.x.charge(n.x.len()-1, usage)
	}
}

func (n *inspect) attachments(r *skim.Reader, file uint32, lane uint16) {
	p := n.pool(lane)
	for key := range r.Keys() {
		off, length := valueSpan(r)
		n.mu.Lock()
		if len(p.texts) < 1<<20 && len(key) < 200 {
			p.texts[key] = place{file, off, length}
		}
		n.mu.Unlock()
	}
}

func (n *inspect) events(r *skim.Reader, lane uint16, pause func() bool) bool {
	for i := range r.Items() {
		n.event(r, lane, i)
		if pause != nil && !pause() {
			return false
		}
	}
	return r.Err() == nil
}

// inspectUsage: input excludes what a cache gave or took.
func inspectUsage(r *skim.Reader) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "input_tokens":
			u.in = count(r)
		case "output_tokens":
			u.out = count(r)
		case "input_tokens_cache_read":
			u.cacheRead = count(r)
		case "input_tokens_cache_write":
			u.cacheWrite = count(r)
		case "reasoning_tokens":
			u.reasoning = count(r)
		case "total_cost":
			u.cost = microUSD(r.Float())
		}
	}
	u.in = plus(u.in, plus(u.cacheRead, u.cacheWrite))
	return u
}

type inspectEvent struct {
	kind, fn, errType    string
	completed            int64
	pending, failed, bad bool
	words, reason        bool
	use                  usageFigures
	code                 int64
	hasCode              bool
	working              float64
	hasWorking           bool
	cancelled            bool
	class                Class
}

func (n *inspect) event(r *skim.Reader, lane uint16, pos int) {
	if r.Kind() != skim.Object {
		off, length := valueSpan(r)
		if r.Err() == nil {
			oddRecord(n.x, span{off: off, length: length}, "an event that is no object")
		}
		return
	}
	e := step(State, System, r.Offset(), 0)
	e.agent, e.pos = lane, int32(min(pos, 1<<30))
	v := inspectEvent{completed: noTime, use: noUsage}
	args := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "event":
			v.kind = r.Str(64)
		case "timestamp":
			if ms, zoned, ok := parseTime(r.Str(64)); ok {
				e.at = ms
				if !zoned {
					n.x.setClock(Naive)
				}
			}
		case "completed":
			v.completed, _, _ = parseTime(r.Str(64))
		case "working_start":
			v.working, v.hasWorking = r.Float()
		case "pending":
			v.pending, _ = r.Bool()
		case "failed":
			v.failed, _ = r.Bool()
		case "function", "action":
			v.fn = short(r, 200)
		case "arguments":
			args = r.Offset()
		case "error":
			n.eventError(r, &v)
		case "result":
			if v.code, v.hasCode = 0, false; r.Kind() == skim.Number {
				v.code, v.hasCode = r.Int()
			}
		case "output":
			if r.Kind() == skim.Object {
				inspectOutput(r, &v)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	e.length = end - e.off
	v.class = classOf(v.fn)
	if args >= 0 && isEditor(v.fn) {
		r.Return(args)
		v.class = refine(v.fn, r)
		r.Return(end)
	}
	n.working(e, &v)
	n.give(e, &v)
}

func (n *inspect) eventError(r *skim.Reader, v *inspectEvent) {
	switch r.Kind() {
	case skim.String:
		v.bad = true
		v.cancelled = strings.HasPrefix(r.Str(64), "Cancelled by ")
	case skim.Object:
		v.bad = true
		for key := range r.Keys() {
			if key == "type" {
				v.errType = short(r, 64)
			}
		}
	}
}

func inspectOutput(r *skim.Reader, v *inspectEvent) {
	for key := range r.Keys() {
		switch key {
		case "choices":
			for i := range r.Items() {
				if i > 0 {
					continue
				}
				for key := range r.Keys() {
					if key != "message" {
						continue
					}
					for key := range r.Keys() {
						if key == "content" {
							v.words, v.reason = inspectContent(r)
						}
					}
				}
			}
		case "usage":
			v.use = inspectUsage(r)
		}
	}
}

// inspectContent tells what kinds of words a message's content holds.
func inspectContent(r *skim.Reader) (words, reason bool) {
	switch r.Kind() {
	case skim.String:
		return strings.TrimSpace(r.Str(64)) != "", false
	case skim.Array:
		for range r.Items() {
			kind, some := "", false
			for key := range r.Keys() {
				switch key {
				case "type":
					kind = r.Str(32)
				case "text":
					some = strings.TrimSpace(r.Str(64)) != ""
				}
			}
			switch {
			case kind == "reasoning":
				reason = true
			case kind != "text" || some:
				words = true
			}
		}
	}
	return words, reason
}

// working looks at the working clock, which is not monotone in some logs: it is
// not used for the axis.
func (n *inspect) working(e entry, v *inspectEvent) {
	p := n.pool(e.agent)
	if v.hasWorking && !p.clocked && v.working < p.working-1 {
		p.clocked = true
		n.x.note(Disordered, "working-clock", n.x.len(), 0, e.off, e.length,
			"the working clock falls from %.3f s to %.3f s: wall time is used", p.working, v.working)
	}
	if v.hasWorking {
		p.working = v.working
	}
}

func (n *inspect) give(e entry, v *inspectEvent) {
	p := n.pool(e.agent)
	p.events = true
	if v.completed != noTime && e.at != noTime {
		e.dur = span32(v.completed - e.at)
	}
	if v.pending {
		e.outcome = Unfinished
	}
	switch v.kind {
	case "model":
		n.model(e, v, p)
		return
	case "tool":
		e.kind, e.actor, e.class, e.tool = ToolCall, Agent, v.class, n.x.tool(v.fn)
		if !v.pending {
			e.outcome = v.returned()
		}
	case "sandbox":
		e.kind, e.actor = Output, Environment
		if v.hasCode {
			if e.outcome = Succeeded; v.code != 0 {
				e.outcome = Failed
			}
		}
	case "sample_init", "input":
		e.kind, e.actor = Message, User
	case "sample_limit", "interrupt", "compaction":
		e.kind = Lifecycle
		if v.kind != "compaction" {
			e.outcome = Cancelled
		}
	case "error":
		e.kind, e.outcome = Lifecycle, Failed
	case "score", "score_edit", "checkpoint", "branch", "anchor":
		e.kind = Marker
	case "state", "store", "approval", "logger", "info", "span_begin", "span_end", "step", "subtask":
	default:
		e.kind = Unknown
		i := n.x.add(e)
		n.x.note(Unfamiliar, "unknown-record", i, 0, e.off, e.length, "an event of kind %s", v.kind)
		return
	}
	n.x.add(e)
}

func (n *inspect) model(e entry, v *inspectEvent, p *pool) {
	first := n.x.len()
	e.actor = Agent
	if v.reason {
		t := e
		t.kind, t.block = Thinking, 1
		t.flags |= Private
		n.x.add(t)
	}
	e.kind = Message
	switch {
	case v.cancelled:
		e.outcome = Cancelled
	case v.bad:
		e.outcome = Failed
	}
	if v.words || v.bad {
		n.x.add(e)
	} else if !v.reason {
		e.kind = State // a turn that only called tools
		n.x.add(e)
	}
	if !v.use.empty() {
		p.charged = true
		n.x.charge(min(first, max(n.x.len()-1, 0)), v.use)
	}
}
