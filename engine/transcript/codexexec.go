package transcript

import (
	"hash/maphash"

	"refbox/engine/transcript/skim"
)

// codexExec reads what `codex exec --json` prints: items that start and complete,
// and turns with their usage. There are no times.
type codexExec struct {
	*lines
	seed  maphash.Seed
	items map[uint64]int32
}

func openCodexExec(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	c := &codexExec{lines: l, seed: maphash.MakeSeed(), items: map[uint64]int32{}}
	l.record = c.read
	x.describe(func(i *Info) { i.Harness = "codex" })
	x.method("usage of each turn", "")
	return c, nil
}

func (c *codexExec) read(r *skim.Reader, s span) error {
	var kind, id, item, status string
	var exit int64
	hasExit, failed, object := false, false, r.Kind() == skim.Object
	use := noUsage
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(64)
		case "thread_id":
			c.x.label(&c.x.info.Session, r.Str(200))
		case "usage":
			use = codexUsage(r)
		case "item":
			for key := range r.Keys() {
				switch key {
				case "id":
					id = short(r, 200)
				case "type", "item_type":
					item = r.Str(64)
				case "status":
					status = r.Str(64)
				case "exit_code":
					exit, hasExit = r.Int()
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
	if !object {
		oddRecord(c.x, s, "a line that is no record")
		return nil
	}
	failed = hasExit && exit != 0 || status == "failed"
	e := step(Lifecycle, System, s.off, s.length)
	e.pos = int32(s.line - 1)
	if s.giant {
		e.flags |= Giant
	}
	switch kind {
	case "thread.started", "turn.started", "turn.completed":
	case "turn.failed", "error":
		e.outcome = Failed
	case "item.started", "item.updated", "item.completed":
		c.item(e, kind, id, item, status, failed)
		return nil
	default:
		oddRecord(c.x, s, "a record of type "+kind)
		return nil
	}
	if i := c.x.add(e); !use.empty() && i >= 0 {
		c.x.charge(i, use)
	}
	return nil
}

var codexExecTools = map[string]Class{"command_execution": Shell, "file_change": Edit, "mcp_tool_call": Other, "web_search": Browse, "todo_list": Plan}

func (c *codexExec) item(e entry, kind, id, item, status string, failed bool) {
	e.actor = Agent
	key := maphash.String(c.seed, id)
	ended := func(call *entry) {
		switch {
		case failed:
			call.outcome = Failed
		case kind == "item.completed" && status == "completed":
			call.outcome = Succeeded
		case kind == "item.completed":
			call.outcome = Done
		}
	}
	if i, ok := c.items[key]; ok && id != "" {
		c.x.change(int(i), func(call *entry) {
			call.off, call.length = e.off, e.length // the later record repeats all of it
			ended(call)
		})
		return
	}
	class, tool := codexExecTools[item]
	switch {
	case item == "agent_message", item == "assistant_message":
		e.kind = Message
	case item == "reasoning":
		e.kind = Thinking
		e.flags |= Private
	case item == "error":
		e.outcome = Failed
	case tool:
		e.kind, e.class, e.tool, e.outcome = ToolCall, class, c.x.tool(item), Unfinished
		ended(&e)
	default:
		oddRecord(c.x, span{off: e.off, length: e.length, line: int(e.pos) + 1}, "an item of type "+item)
		return
	}
	if i := c.x.add(e); i >= 0 && id != "" {
		c.items[key] = int32(i)
	}
}

func (c *codexExec) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(c.src, e.off, e.length)
	for key := range r.Keys() {
		if key != "item" {
			continue
		}
		for key := range r.Keys() {
			switch key {
			case "text":
				role := PartMessage
				if e.kind == Thinking {
					role = PartReasoning
				}
				b.text(r, role, "")
			case "command":
				b.text(r, PartCommand, "")
			case "query":
				b.text(r, PartQuery, "")
			case "arguments":
				b.arguments("", e.class, r)
			case "aggregated_output":
				b.text(r, PartOutput, "")
			case "exit_code":
				if n, ok := r.Int(); ok {
					b.exit(n)
				}
			case "message":
				b.text(r, PartError, "")
			case "changes", "items", "result":
				b.json(r, PartData, key)
			}
		}
	}
	if len(f.Parts) == 0 && e.kind != Thinking {
		return rawRecord(c.src, e, limit)
	}
	return f, nil
}
