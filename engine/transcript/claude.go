package transcript

import (
	"hash/maphash"
	"path"
	"strings"

	"refbox/engine/transcript/skim"
)

// claude reads the session files of Claude Code: a record per line, each content
// block of a message on a line of its own, results on lines of the user, order
// by parentUuid, sub-agents in files beside it or in lanes of the same file. What
// claude --output-format stream-json prints is read too: the same messages in the
// order they came, without times, a result with the cost at the end.
type claude struct {
	*lines
	seed    maphash.Seed
	seen    map[uint64]struct{} // uuids
	calls   map[uint64]int32    // open calls by tool_use id
	charges map[uint64]claudeSpend
	lanes   map[string]uint16 // agents by id
	held    []claudeRecord    // from the first whose parent has not come, in the file's order
	last    int64
	spent   int64 // micro-dollars that results have told, which count from the beginning
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
	failed                  bool // of a result
	isObject                bool
	blocks                  []claudeBlock
	use                     usageFigures
	interrupted             bool
	subAgent, parentCall    string
	under                   string // the call that started the sub-agent whose record it is, in a stream
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
	x.method("largest line per message id", "sum of costUSD, or what the result tells",
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
		case "sessionId", "session_id":
			if !c.titled {
				rec.session = r.Str(200)
			}
		case "model":
			rec.model = r.Str(200)
		case "parent_tool_use_id":
			rec.under = r.Str(200)
		case "total_cost_usd":
			if told := microUSD(r.Float()); told >= c.spent {
				rec.use.cost, c.spent = told-c.spent, told
			}
		case "is_error":
			rec.failed, _ = r.Bool()
		case "version", "claude_code_version":
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
		case "toolUseResult", "tool_use_result":
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
	if rec.under != "" {
		rec.sidechain, rec.agentID = true, rec.under
	}
	if rec.at != noTime {
		c.x.setClock(Absolute)
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
