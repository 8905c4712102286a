package transcript

import (
	"hash/maphash"
	"path"
	"strings"

	"refbox/engine/transcript/skim"
)

// claude reads the session files of Claude Code: a record per line, each content
// block of a message on a line of its own, results on lines of the user, order
// by parentUuid, sub-agents in files beside it or in lanes of the same file.
type claude struct {
	*lines
	seed    maphash.Seed
	seen    map[uint64]struct{} // uuids
	calls   map[uint64]int32    // open calls by tool_use id
	charges map[uint64]claudeSpend
	lanes   map[string]uint16 // agents by id
	held    []claudeRecord    // from the first whose parent has not come, in the file's order
	last    int64
	rec     claudeRecord
	titled  bool
}

type claudeSpend struct {
	charge    int32
	sidechain bool
}

// claudeRecord is what the index needs of a line.
type claudeRecord struct {
	span
	kind, subtype           string
	uuid, parent            uint64
	agentID, model, session string
	msgID                   string
	version, cwd, summary   string
	at                      int64
	zoned                   bool
	sidechain, meta, oddMsg bool
	noContent               bool
	isObject                bool
	blocks                  []claudeBlock
	use                     usageFigures
	interrupted             bool
	subAgent, parentCall    string
	lone                    int
}

type claudeBlock struct {
	kind, id, name string
	class          Class
	isError        bool
	isText         bool
	empty          bool
	prefix         string
}

const (
	claudeHold = 256 // records among which a parent that comes late is looked for
	// maxBlocks bounds the blocks of one record that become steps.
	maxBlocks = 4096
)

func openClaude(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	c := &claude{lines: l, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, calls: map[uint64]int32{},
		charges: map[uint64]claudeSpend{}, lanes: map[string]uint16{}, last: noTime}
	l.record, l.atEnd = c.read, func() { c.release() }
	x.setClock(Absolute)
	x.method("largest line per message id", "sum of costUSD",
		"a harness may log placeholders for input and output tokens while it streams")
	x.describe(func(i *Info) { i.Harness = "claude-code" })
	c.findAgents()
	return c, nil
}

// findAgents lists the sub-agents' files: in the session's own folder, or, as
// older versions did, beside it.
func (c *claude) findAgents() {
	for _, dir := range []string{path.Join(path.Dir(c.name), stem(c.name), "subagents"), path.Dir(c.name)} {
		for _, name := range c.st.list(dir) {
			if !strings.HasPrefix(name, "agent-") || !strings.HasSuffix(name, ".jsonl") || path.Join(dir, name) == path.Clean(c.name) {
				continue
			}
			id := strings.TrimSuffix(strings.TrimPrefix(name, "agent-"), ".jsonl")
			if dir == path.Dir(c.name) && !c.sameSession(path.Join(dir, name)) {
				continue
			}
			if _, ok := c.lanes[id]; !ok {
				c.lanes[id] = c.x.agent(AgentInfo{ID: id, Step: -1, File: path.Join(dir, name)})
			}
		}
	}
}

// sameSession says that a sub-agent's file beside the session's belongs to it.
func (c *claude) sameSession(name string) bool {
	b, err := c.st.open(name)
	if err != nil {
		return false
	}
	defer b.Close()
	r := skim.At(b, 0, min(sizeOf(b), 1<<20))
	for key := range r.Keys() {
		if key == "sessionId" {
			return r.Str(200) == stem(c.name)
		}
	}
	return false
}

func (c *claude) hash(s string) uint64 {
	if s == "" {
		return 0
	}
	return maphash.String(c.seed, s) | 1
}

func (c *claude) read(r *skim.Reader, s span) error {
	rec := &c.rec
	*rec = claudeRecord{span: s, at: noTime, use: noUsage, blocks: rec.blocks[:0], noContent: true}
	rec.isObject = r.Kind() == skim.Object
	for key := range r.Keys() {
		switch key {
		case "type":
			rec.kind = r.Str(64)
		case "subtype", "operation":
			rec.subtype = r.Str(64)
		case "uuid":
			rec.uuid = c.hash(r.Str(200))
		case "parentUuid":
			rec.parent = c.hash(r.Str(200))
		case "timestamp":
			rec.at, rec.zoned, _ = parseTime(r.Str(64))
		case "sessionId":
			if !c.titled {
				rec.session = r.Str(200)
			}
		case "version":
			if !c.titled {
				rec.version = r.Str(64)
			}
		case "cwd":
			if !c.titled {
				rec.cwd = r.Str(4096)
			}
		case "agentId":
			rec.agentID = r.Str(200)
		case "isSidechain":
			rec.sidechain, _ = r.Bool()
		case "isMeta":
			rec.meta, _ = r.Bool()
		case "requestId":
			rec.msgID += "\x00" + r.Str(200)
		case "costUSD":
			rec.use.cost = microUSD(r.Float())
		case "summary":
			rec.summary = r.Str(400)
		case "message":
			c.message(r, rec)
		case "toolUseResult":
			if r.Kind() == skim.Object {
				for key := range r.Keys() {
					switch key {
					case "interrupted":
						rec.interrupted, _ = r.Bool()
					case "agentId":
						rec.subAgent = r.Str(200)
					}
				}
			}
		case "parentToolUseID":
			rec.parentCall = r.Str(200)
		case "data":
			for key := range r.Keys() {
				if key == "agentId" {
					rec.subAgent = r.Str(200)
				}
			}
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the record"}
		}
		return r.Err()
	}
	rec.lone = r.Lone
	if rec.lone > 0 {
		c.x.note(Repaired, "lone-surrogate", c.x.len(), s.line, s.off, s.length, "half of a character pair, shown as a replacement character")
	}
	if len(c.held) == 0 && c.known(rec.parent) {
		c.commit(rec, 0)
		return nil
	}
	held := *rec
	held.blocks = append([]claudeBlock(nil), rec.blocks...)
	c.held = append(c.held, held)
	if rec.uuid != 0 && rec.uuid == c.held[0].parent || len(c.held) > claudeHold {
		c.release()
	}
	return nil
}

// known says that a record need not wait for its parent.
func (c *claude) known(parent uint64) bool {
	_, ok := c.seen[parent]
	return ok || parent == 0
}

func (c *claude) message(r *skim.Reader, rec *claudeRecord) {
	if r.Kind() != skim.Object {
		rec.oddMsg = true
		if r.Kind() == skim.String {
			rec.noContent = false
			rec.blocks = append(rec.blocks, claudeBlock{kind: "text", isText: true, prefix: r.Str(32)})
		}
		return
	}
	for key := range r.Keys() {
		switch key {
		case "id":
			rec.msgID = r.Str(200) + rec.msgID
		case "model":
			rec.model = r.Str(200)
		case "usage":
			cost := rec.use.cost
			rec.use = claudeUsage(r)
			rec.use.cost = cost
		case "content":
			rec.noContent = false
			switch r.Kind() {
			case skim.String:
				rec.blocks = append(rec.blocks, claudeBlock{kind: "text", isText: true, prefix: r.Str(32)})
			case skim.Array:
				for range r.Items() {
					if len(rec.blocks) < maxBlocks {
						rec.blocks = append(rec.blocks, claudeBlockOf(r))
					}
				}
			}
		}
	}
}

func claudeBlockOf(r *skim.Reader) claudeBlock {
	var b claudeBlock
	if r.Kind() != skim.Object {
		b.kind = "?"
		if r.Kind() == skim.String {
			b.kind, b.isText = "text?", true
		}
		r.Skip()
		return b
	}
	input := int64(-1)
	b.empty = true
	for key := range r.Keys() {
		switch key {
		case "type":
			b.kind = r.Str(64)
		case "id", "tool_use_id":
			b.id = r.Str(200)
		case "name":
			b.name = r.Str(200)
		case "is_error":
			b.isError, _ = r.Bool()
		case "text":
			b.prefix = r.Str(32)
		case "thinking":
			b.empty = r.Str(8) == ""
		case "input":
			input = r.Offset()
		}
	}
	if b.kind == "tool_use" || b.kind == "server_tool_use" {
		b.class = classOf(b.name)
		if input >= 0 && r.Err() == nil && isEditor(b.name) {
			end := r.Offset()
			r.Return(input)
			b.class = refine(b.name, r)
			r.Return(end)
		}
	}
	return b
}

func claudeUsage(r *skim.Reader) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "input_tokens":
			u.in = count(r)
		case "cache_creation_input_tokens":
			u.cacheWrite = count(r)
		case "cache_read_input_tokens":
			u.cacheRead = count(r)
		case "output_tokens":
			u.out = count(r)
		}
	}
	u.in = plus(u.in, plus(u.cacheRead, u.cacheWrite))
	return u
}

// count reads a number of tokens; -1 when it is none.
func count(r *skim.Reader) int64 {
	n, ok := r.Int()
	if !ok || n < 0 || n > 1<<50 {
		return -1
	}
	return n
}

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
	switch {
	case !rec.isObject:
		oddRecord(c.x, rec.span, "a line that is no record")
	case rec.kind == "user" || rec.kind == "assistant":
		c.words(rec, e)
	case claudeStates[rec.kind]:
		e.kind, e.actor = State, System
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

func (c *claude) full(e entry, limit int) (Full, error) {
	var f Full
	b := &bodies{f: &f, limit: limit}
	r := reader(c.src, e.off, e.length)
	c.bodies(r, b, e, int(e.block), false)
	if err := r.Err(); err != nil {
		return rawRecord(c.src, e, limit)
	}
	if e.resLength > 0 {
		r := reader(c.src, e.resOff, e.resLength)
		c.bodies(r, b, e, int(e.resBlock), true)
	}
	return f, nil
}

// bodies takes one block of a record. The rich result beside a message says what
// the block's content says, in parts; it is taken instead where it splits
// standard error from output, and for patches.
func (c *claude) bodies(r *skim.Reader, b *bodies, e entry, block int, result bool) {
	var rich Full
	start, before := r.Offset(), len(b.f.Parts)
	if r.Kind() != skim.Object {
		b.json(r, PartData, "")
		return
	}
	for key := range r.Keys() {
		switch key {
		case "cwd":
			if !result {
				b.f.WorkDir = r.Str(4096)
			}
		case "toolUseResult":
			if result {
				claudeRich(r, &bodies{f: &rich, limit: b.limit})
			}
		case "message":
			if r.Kind() != skim.Object {
				b.text(r, PartMessage, "")
				continue
			}
			for key := range r.Keys() {
				switch key {
				case "model":
					b.f.Model = r.Str(200)
				case "content":
					if r.Kind() == skim.String {
						b.text(r, PartMessage, "")
						continue
					}
					for n := range r.Items() {
						if n == block {
							c.block(r, b, e)
						}
					}
				}
			}
		}
	}
	if !result && len(b.f.Parts) == before && r.Err() == nil && e.kind != Thinking {
		r.Return(start)
		c.other(r, b)
	}
	if _, ok := rich.Part(PartError); ok && result {
		kept := b.f.Parts[:0]
		for _, p := range b.f.Parts {
			if p.Role != PartOutput {
				kept = append(kept, p)
			}
		}
		b.f.Parts = append(kept, rich.Parts...)
	} else if result {
		b.f.Parts = append(b.f.Parts, rich.All(PartPatch)...)
	}
}

func claudeRich(r *skim.Reader, b *bodies) {
	if r.Kind() != skim.Object {
		return
	}
	for key := range r.Keys() {
		switch key {
		case "stdout":
			b.text(r, PartOutput, "")
		case "stderr":
			b.text(r, PartError, "stderr")
		case "structuredPatch":
			b.patch(r)
		}
	}
}

// patch takes hunks as Claude Code notes them.
func (b *bodies) patch(r *skim.Reader) {
	var text strings.Builder
	for range r.Items() {
		var oldStart, oldLines, newStart, newLines int64
		var lines []string
		for key := range r.Keys() {
			switch key {
			case "oldStart":
				oldStart, _ = r.Int()
			case "oldLines":
				oldLines, _ = r.Int()
			case "newStart":
				newStart, _ = r.Int()
			case "newLines":
				newLines, _ = r.Int()
			case "lines":
				for range r.Items() {
					if line := r.Str(b.limit); text.Len() < b.limit && len(lines) < 100_000 {
						lines = append(lines, line)
					}
				}
			}
		}
		if text.Len() < b.limit {
			text.WriteString(hunk(oldStart, oldLines, newStart, newLines, lines))
		}
	}
	b.say(PartPatch, "", text.String())
}

func (c *claude) block(r *skim.Reader, b *bodies, e entry) {
	if r.Kind() != skim.Object {
		b.json(r, PartData, "")
		return
	}
	at := r.Offset()
	var kind, name string
	input, content := int64(-1), int64(-1)
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(64)
		case "name":
			name = r.Str(200)
		case "id", "tool_use_id":
			b.f.CallID = r.Str(200)
		case "input":
			input = r.Offset()
		case "content":
			content = r.Offset()
		}
	}
	end := r.Offset()
	switch {
	case r.Err() != nil:
		return
	case input >= 0 && (kind == "tool_use" || kind == "server_tool_use"):
		r.Return(input)
		b.arguments(name, e.class, r)
	case content >= 0 && strings.HasSuffix(kind, "tool_result"):
		r.Return(content)
		role := PartOutput
		if e.outcome == Failed {
			role = PartError
		}
		b.content(r, role)
	default:
		r.Return(at)
		role := PartMessage
		if e.kind == Output {
			role = PartOutput
		}
		b.piece(r, role)
	}
	if r.Err() == nil {
		r.Return(end)
	}
}

// other takes a record that is no message.
func (c *claude) other(r *skim.Reader, b *bodies) {
	start := r.Offset()
	if r.Kind() == skim.Object {
		kind := ""
		for key := range r.Keys() {
			switch key {
			case "type":
				kind = r.Str(64)
				b.say(PartDescription, "", kind)
			case "subtype", "operation":
				b.say(PartDescription, key, r.Str(64))
			case "content", "summary", "lastPrompt", "title", "aiTitle":
				if r.Kind() == skim.String {
					b.text(r, PartMessage, key)
				}
			}
		}
	} else {
		r.Skip()
	}
	r.Return(start)
	b.json(r, PartData, "")
}
