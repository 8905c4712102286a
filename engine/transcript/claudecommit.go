package transcript

import (
	"strings"
)

// release gives out what is held, each record behind its parent when that is
// among them, where it lies otherwise.
func (c *claude) release() {
	coming := map[uint64]bool{}
	for _, rec := range c.held {
		coming[rec.uuid] = true
	}
	waiting := map[uint64][]claudeRecord{}
	var give func(rec *claudeRecord, flags Flags)
	give = func(rec *claudeRecord, flags Flags) {
		c.commit(rec, flags)
		children := waiting[rec.uuid]
		delete(waiting, rec.uuid)
		for i := range children {
			give(&children[i], OutOfOrder)
		}
	}
	for i := range c.held {
		rec := &c.held[i]
		switch {
		case c.known(rec.parent):
			give(rec, 0)
		case coming[rec.parent] && rec.uuid != rec.parent && rec.uuid != 0:
			waiting[rec.parent] = append(waiting[rec.parent], *rec)
		default:
			c.x.note(Orphaned, "parent-missing", c.x.len(), rec.line, rec.off, rec.length, "its parent is not in this file: shown where it lies")
			give(rec, 0)
		}
	}
	// What still waits is a circle of parents.
	for i := range c.held {
		rec := &c.held[i]
		if children := waiting[rec.parent]; len(children) > 0 && !c.known(rec.uuid) {
			c.x.note(Disordered, "parent-circle", c.x.len(), rec.line, rec.off, rec.length, "it is its own ancestor: shown where it lies")
			delete(waiting, rec.parent)
			for j := range children {
				give(&children[j], 0)
			}
		}
	}
	c.held = c.held[:0]
}

func (c *claude) commit(rec *claudeRecord, flags Flags) {
	first := c.x.len()
	if rec.uuid != 0 {
		if _, dup := c.seen[rec.uuid]; dup {
			flags |= Duplicate
			c.x.note(Duplicated, "same-uuid", first, rec.line, rec.off, rec.length, "a record with the same uuid came before")
		}
		c.seen[rec.uuid] = struct{}{}
	}
	if flags&OutOfOrder != 0 {
		c.x.note(Disordered, "before-parent", first, rec.line, rec.off, rec.length, "lies before its parent in the file: shown behind it")
	}
	if rec.giant {
		flags |= Giant
	}
	if rec.at != noTime && rec.agentID == "" && !rec.sidechain {
		if c.last != noTime && rec.at < c.last {
			c.x.note(Disordered, "time-backwards", first, rec.line, rec.off, rec.length, "its time is %d ms before that of the record before", c.last-rec.at)
		}
		c.last = max(c.last, rec.at)
	}
	c.title(rec)
	e := step(Unknown, NoActor, rec.off, rec.length)
	e.at, e.pos, e.flags, e.agent = rec.at, int32(rec.line-1), flags, c.lane(rec)
	if rec.sidechain {
		e.flags |= Sidechain
	}
	if rec.subAgent != "" && rec.parentCall != "" {
		c.link(rec.subAgent, rec.parentCall)
	}
	if rec.under != "" {
		c.link(rec.under, rec.under)
	}
	switch {
	case !rec.isObject:
		oddRecord(c.x, rec.span, "a line that is no record")
	case rec.kind == "user" || rec.kind == "assistant":
		c.words(rec, e)
	case claudeStates[rec.kind]:
		e.kind, e.actor = State, System
		c.x.add(e)
	case rec.kind == "result":
		e.kind, e.actor, e.outcome = Lifecycle, System, Succeeded
		if rec.failed {
			e.outcome = Failed
		}
		c.x.add(e)
	case rec.kind == "system":
		e.kind, e.actor = State, System
		if rec.subtype == "compact_boundary" {
			e.kind = Lifecycle
		}
		c.x.add(e)
	default:
		e.flags |= Anomalous
		i := c.x.add(e)
		what := "no type"
		if rec.kind != "" {
			what = "type " + rec.kind
		}
		c.x.note(Unfamiliar, "unknown-record", i, rec.line, rec.off, rec.length, "a record of %s", what)
	}
	c.spend(rec, first)
}

var claudeStates = map[string]bool{
	"summary": true, "progress": true, "attachment": true, "queue-operation": true, "file-history-snapshot": true,
	"file-history-delta": true, "last-prompt": true, "ai-title": true, "custom-title": true, "agent-name": true,
	"stream_event": true, "rate_limit_event": true, "tool_progress": true, "auth_status": true,
	"agent-setting": true, "pr-link": true, "mode": true, "permission-mode": true, "tag": true, "agent-color": true,
}

func (c *claude) title(rec *claudeRecord) {
	if rec.model != "" && !strings.HasPrefix(rec.model, "<") || rec.session != "" || rec.summary != "" {
		c.x.describe(func(i *Info) {
			if i.Model == "" && !strings.HasPrefix(rec.model, "<") {
				i.Model = label(rec.model)
			}
			if rec.session != "" && i.Session == "" {
				i.Session, i.Version, i.WorkDir = label(rec.session), label(rec.version), label(rec.cwd)
				c.titled = rec.version != ""
			}
			if rec.kind == "summary" {
				i.Task = label(rec.summary)
			}
		})
	}
}

func (c *claude) lane(rec *claudeRecord) uint16 {
	id := rec.agentID
	if !rec.sidechain {
		return 0
	}
	if id == "" {
		id = "sidechain"
	}
	lane, ok := c.lanes[id]
	if !ok && len(c.lanes) < maxNames {
		lane = c.x.agent(AgentInfo{ID: id, Step: -1})
		c.lanes[id] = lane
	}
	return lane
}

// link notes which call started a sub-agent.
func (c *claude) link(agent, call string) {
	i, ok := c.calls[c.hash(call)]
	lane, known := c.lanes[agent]
	if !ok || len(c.lanes) >= maxNames {
		return
	}
	if !known {
		lane = c.x.agent(AgentInfo{ID: agent, Step: -1})
		c.lanes[agent] = lane
	}
	if lane != 0 {
		c.x.changeAgent(int(lane), func(a *AgentInfo) { a.Step = int(i) })
	}
}

func (c *claude) words(rec *claudeRecord, e entry) {
	if rec.noContent {
		i := c.x.add(e)
		c.x.note(Unfamiliar, "no-content", i, rec.line, rec.off, rec.length, "a message without content")
		return
	}
	if rec.oddMsg {
		c.x.note(Unfamiliar, "odd-message", c.x.len(), rec.line, rec.off, rec.length, "a message that is only a text")
	}
	actor := User
	if rec.kind == "assistant" {
		actor = Agent
	}
	if rec.meta {
		actor = System
	}
	for n, b := range rec.blocks {
		e := e
		e.block, e.actor = uint16(n), actor
		switch b.kind {
		case "text", "image", "document":
			e.kind = Message
			if rec.kind == "user" {
				e.kind, e.actor = claudeWrapper(b.prefix, actor)
			}
			c.x.add(e)
		case "thinking", "redacted_thinking":
			e.kind = Thinking
			e.flags |= Private
			if b.kind != "thinking" || b.empty {
				e.flags |= Encrypted
			}
			c.x.add(e)
		case "tool_use", "server_tool_use":
			e.kind, e.class, e.tool, e.outcome = ToolCall, b.class, c.x.tool(b.name), Unfinished
			i := c.x.add(e)
			if i >= 0 && b.id != "" && e.flags&Duplicate == 0 {
				c.calls[c.hash(b.id)] = int32(i)
			}
		case "tool_result", "web_search_tool_result":
			c.result(rec, b, e)
		default:
			i := c.x.add(e)
			c.x.note(Unfamiliar, "unknown-block", i, rec.line, rec.off, rec.length, "content that is not a known block (%q)", b.kind)
		}
	}
}

// claudeWrapper tells what a user's text really is, by the tag it begins with.
func claudeWrapper(prefix string, actor Actor) (Kind, Actor) {
	switch {
	case strings.HasPrefix(prefix, "<local-command-stdout"), strings.HasPrefix(prefix, "<bash-stdout"), strings.HasPrefix(prefix, "<bash-stderr"):
		return Output, Environment
	case strings.HasPrefix(prefix, "<system-reminder"), strings.HasPrefix(prefix, "<local-command-caveat"), strings.HasPrefix(prefix, "Caveat: The messages below"):
		return State, System
	}
	return Message, actor
}

func (c *claude) result(rec *claudeRecord, b claudeBlock, e entry) {
	key := c.hash(b.id)
	i, ok := c.calls[key]
	if !ok {
		e.kind, e.actor, e.outcome = Output, Environment, Done
		if b.isError {
			e.outcome = Failed
		}
		n := c.x.add(e)
		c.x.note(Orphaned, "result-without-call", n, rec.line, rec.off, rec.length, "a result of a call that is not in this file")
		return
	}
	delete(c.calls, key)
	if rec.subAgent != "" {
		c.calls[key] = i
		c.link(rec.subAgent, b.id)
		delete(c.calls, key)
	}
	c.x.change(int(i), func(call *entry) {
		call.resOff, call.resLength, call.resBlock = rec.off, rec.length, e.block
		call.flags |= e.flags & (Giant | Damaged)
		if rec.at != noTime && call.at != noTime {
			call.dur = span32(rec.at - call.at)
		}
		switch {
		case rec.interrupted:
			call.outcome = Cancelled
		case b.isError:
			call.outcome = Failed
		default:
			call.outcome = Succeeded
		}
	})
}

// spend keeps, of the lines of one message, the one with the highest output.
func (c *claude) spend(rec *claudeRecord, first int) {
	if rec.use.empty() {
		return
	}
	at := max(min(first, c.x.len()-1), 0)
	if rec.msgID == "" {
		c.x.charge(at, rec.use)
		return
	}
	key := c.hash(rec.msgID)
	old, ok := c.charges[key]
	if !ok {
		c.charges[key] = claudeSpend{int32(c.x.charge(at, rec.use)), rec.sidechain}
		return
	}
	had := c.x.charged(int(old.charge))
	switch {
	case old.sidechain && !rec.sidechain:
		c.charges[key] = claudeSpend{old.charge, false}
	case !old.sidechain && rec.sidechain, rec.use.out <= had.out:
		return
	}
	c.x.recharge(int(old.charge), rec.use)
}
