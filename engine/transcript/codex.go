package transcript

import (
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"

	"refbox/engine/transcript/skim"
)

// codex reads rollouts of Codex: {timestamp, type, payload} lines, or, before
// there was an envelope, bare items. Results find their calls by call_id; words
// are there twice, as item and as event, and are shown once.
type codex struct {
	*lines
	seed    maphash.Seed
	calls   map[uint64]int32
	open    map[uint64]struct{} // calls without a result
	words   map[uint64]int      // words of this turn, by actor and text, not yet repeated
	totals  usageFigures        // of the last token_count
	counted bool
	forked  bool
	named   bool
	last    int64
	rec     codexRecord
}

type codexRecord struct {
	span
	outer, inner     string
	at               int64
	role, name, id   string
	class            Class
	text             uint64
	sealed           bool
	exit             int64
	hasExit, failed  bool
	durMS            int64
	total            usageFigures
	hasTotal, object bool
	session, model   string
	cwd, version     string
	forked           string
	status           string
}

func openCodex(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	c := &codex{lines: l, seed: maphash.MakeSeed(), calls: map[uint64]int32{}, open: map[uint64]struct{}{},
		words: map[uint64]int{}, totals: noUsage, last: noTime}
	l.record = c.read
	x.setClock(Absolute)
	x.method("cumulative deltas", "", "input includes cached input, output includes reasoning")
	x.describe(func(i *Info) { i.Harness = "codex" })
	return c, nil
}

func (c *codex) read(r *skim.Reader, s span) error {
	c.rec = codexRecord{span: s, at: noTime, durMS: -1, total: noUsage, object: r.Kind() == skim.Object}
	rec := &c.rec
	payload := int64(-1)
	start := r.Offset()
	for key := range r.Keys() {
		switch key {
		case "timestamp":
			rec.at, _, _ = parseTime(r.Str(64))
		case "type":
			rec.outer = r.Str(64)
		case "payload":
			payload = r.Offset()
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the record"}
		}
		return r.Err()
	}
	if rec.object {
		if payload < 0 {
			payload = start
			if rec.outer == "" {
				rec.outer = "session_meta"
			} else {
				rec.outer = "response_item"
			}
		}
		r.Return(payload)
		c.payload(r, rec)
	}
	if r.Err() != nil {
		return r.Err()
	}
	c.commit(rec)
	return nil
}

func (c *codex) payload(r *skim.Reader, rec *codexRecord) {
	args := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "type":
			rec.inner = r.Str(64)
		case "role":
			rec.role = r.Str(32)
		case "name", "tool":
			if r.Kind() == skim.String {
				rec.name = r.Str(200)
			}
		case "call_id":
			rec.id = r.Str(200)
		case "id":
			rec.session = r.Str(200)
		case "status":
			rec.status = r.Str(64)
		case "arguments", "input":
			args = r.Offset()
		case "content":
			rec.text = c.hashContent(r)
		case "message", "text":
			if r.Kind() == skim.String {
				rec.text = c.hash(r.Str(64 << 10))
			}
		case "output":
			c.outcome(r, rec)
		case "encrypted_content":
			rec.sealed = r.Kind() == skim.String && r.Str(1) != ""
		case "exit_code":
			rec.exit, rec.hasExit = r.Int()
		case "success":
			ok, known := r.Bool()
			rec.failed = known && !ok
		case "duration":
			rec.durMS = codexDuration(r)
		case "info":
			for key := range r.Keys() {
				if key == "total_token_usage" {
					rec.total, rec.hasTotal = codexUsage(r), true
				}
			}
		case "model":
			rec.model = r.Str(200)
		case "cwd":
			rec.cwd = r.Str(4096)
		case "cli_version":
			rec.version = r.Str(64)
		case "forked_from_id":
			rec.forked = r.Str(200)
		}
	}
	if rec.inner == "local_shell_call" {
		rec.name = "local_shell"
	}
	if args >= 0 && r.Err() == nil && isEditor(rec.name) {
		end := r.Offset()
		r.Return(args)
		rec.class = refine(rec.name, r)
		r.Return(end)
	} else {
		rec.class = classOf(rec.name)
	}
}

func (c *codex) hash(s string) uint64 { return maphash.String(c.seed, s) }

// hashContent identifies words whatever list they are in.
func (c *codex) hashContent(r *skim.Reader) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	if r.Kind() == skim.String {
		return c.hash(r.Str(64 << 10))
	}
	if r.Kind() != skim.Array {
		return 0
	}
	for range r.Items() {
		for key := range r.Keys() {
			if key == "text" {
				h.WriteString(r.Str(64 << 10))
			}
		}
	}
	return h.Sum64()
}

// outcome looks at a result for what says good or bad.
func (c *codex) outcome(r *skim.Reader, rec *codexRecord) {
	if r.Kind() == skim.Object {
		for key := range r.Keys() {
			if key == "success" {
				ok, known := r.Bool()
				rec.failed = known && !ok
			}
		}
		return
	}
	if r.Kind() == skim.String {
		rec.exit, rec.hasExit, rec.durMS = codexEmbedded(r.Str(2048))
	}
}

var (
	codexExit = regexp.MustCompile(`(?m)(?:"exit_code"\s*:\s*|^Exit code: |Process exited with code )(-?\d{1,10})`)
	codexWall = regexp.MustCompile(`(?m)(?:"duration_seconds"\s*:\s*|^Wall time: )(\d{1,9}(?:\.\d{1,9})?)`)
)

// codexEmbedded reads the exit status and wall time that outputs carry as text.
func codexEmbedded(s string) (exit int64, ok bool, durMS int64) {
	durMS = -1
	if m := codexExit.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		exit, ok = n, err == nil
	}
	if m := codexWall.FindStringSubmatch(s); m != nil {
		if f, err := strconv.ParseFloat(m[1], 64); err == nil {
			durMS = int64(f * 1000)
		}
	}
	return exit, ok, durMS
}

func codexDuration(r *skim.Reader) int64 {
	ms := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "secs":
			if n, ok := r.Int(); ok && n >= 0 && n < 1<<40 {
				ms = plus(ms, n*1000)
			}
		case "nanos":
			if n, ok := r.Int(); ok && n >= 0 && n < 1<<40 {
				ms = plus(ms, n/1e6)
			}
		}
	}
	return ms
}

func codexUsage(r *skim.Reader) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "input_tokens":
			u.in = count(r)
		case "cached_input_tokens":
			u.cacheRead = count(r)
		case "output_tokens":
			u.out = count(r)
		case "reasoning_output_tokens":
			u.reasoning = count(r)
		}
	}
	return u
}

func (c *codex) commit(rec *codexRecord) {
	flags := Flags(0)
	if rec.giant {
		flags |= Giant
	}
	first := c.x.len()
	if rec.at != noTime {
		if c.last != noTime && rec.at < c.last {
			c.x.note(Disordered, "time-backwards", first, rec.line, rec.off, rec.length, "its time is %d ms before that of the record before", c.last-rec.at)
		}
		c.last = max(c.last, rec.at)
	}
	e := step(State, System, rec.off, rec.length)
	e.at, e.pos, e.flags = rec.at, int32(rec.line-1), flags
	switch {
	case !rec.object:
		oddRecord(c.x, rec.span, "a line that is no record")
	case rec.outer == "session_meta":
		c.meta(rec)
		c.x.add(e)
	case rec.outer == "turn_context", rec.outer == "world_state":
		c.words = map[uint64]int{}
		c.x.describe(func(i *Info) {
			if i.Model == "" {
				i.Model = label(rec.model)
			}
		})
		c.x.add(e)
	case rec.outer == "compacted":
		e.kind = Lifecycle
		c.x.add(e)
	case rec.outer == "response_item":
		c.item(rec, e)
	case rec.outer == "event_msg":
		c.event(rec, e)
	default:
		oddRecord(c.x, rec.span, "a record of type "+rec.outer)
	}
}

func (c *codex) meta(rec *codexRecord) {
	if c.named {
		return
	}
	c.named, c.forked = true, rec.forked != ""
	c.x.describe(func(i *Info) {
		i.Session, i.Version, i.WorkDir = label(rec.session), label(rec.version), label(rec.cwd)
	})
}

// repeated says that words were shown already: as an item what comes as an event,
// or the other way round.
func (c *codex) repeated(rec *codexRecord, side int) bool {
	actor := "assistant"
	if rec.role == "user" || rec.inner == "user_message" {
		actor = "user"
	}
	key := rec.text ^ c.hash(actor)
	if n := c.words[key]; n*side < 0 {
		c.words[key] += side
		return true
	}
	c.words[key] += side
	return false
}

func (c *codex) item(rec *codexRecord, e entry) {
	switch {
	case rec.inner == "message", rec.inner == "" && rec.role != "":
		e.kind = Message
		switch rec.role {
		case "user":
			e.actor = User
		case "assistant":
			e.actor = Agent
		default:
			e.kind = State
		}
		if c.repeated(rec, 1) {
			return
		}
		c.x.add(e)
	case rec.inner == "reasoning":
		e.kind, e.actor = Thinking, Agent
		e.flags |= Private
		if rec.sealed {
			e.flags |= Encrypted
		}
		c.x.add(e)
	case strings.HasSuffix(rec.inner, "_output"):
		c.result(rec, e)
	case strings.HasSuffix(rec.inner, "_call"):
		name := rec.name
		if name == "" {
			name = rec.inner
			rec.class = classOf(name)
		}
		e.kind, e.actor, e.class, e.tool, e.outcome = ToolCall, Agent, rec.class, c.x.tool(name), Unfinished
		if rec.id == "" && rec.status == "completed" {
			e.outcome = Done
		}
		i := c.x.add(e)
		if i >= 0 && rec.id != "" {
			key := c.hash(rec.id)
			if _, dup := c.open[key]; dup {
				c.x.note(Duplicated, "same-call", i, rec.line, rec.off, rec.length, "a call with the same call_id came before")
			}
			c.calls[key], c.open[key] = int32(i), struct{}{}
		}
	case rec.inner == "compaction":
		e.kind = Lifecycle
		e.flags |= Encrypted
		c.x.add(e)
	default:
		oddRecord(c.x, rec.span, "an item of type "+rec.inner)
	}
}

func (c *codex) result(rec *codexRecord, e entry) {
	key := c.hash(rec.id)
	i, ok := c.calls[key]
	if !ok {
		e.kind, e.actor, e.outcome = Output, Environment, Done
		n := c.x.add(e)
		c.x.note(Orphaned, "result-without-call", n, rec.line, rec.off, rec.length, "a result of a call that is not in this file")
		return
	}
	delete(c.open, key)
	c.x.change(int(i), func(call *entry) {
		if call.resLength == 0 || strings.HasSuffix(rec.inner, "_output") {
			call.resOff, call.resLength = rec.off, rec.length
		}
		c.ended(call, rec)
	})
}

// ended notes a call's outcome. What an event measured is not overruled by what
// an output carries as text.
func (c *codex) ended(call *entry, rec *codexRecord) {
	switch {
	case rec.durMS >= 0:
		call.dur = span32(rec.durMS)
	case rec.at != noTime && call.at != noTime && call.dur < 0:
		call.dur = span32(rec.at - call.at)
	}
	switch {
	case rec.hasExit && rec.exit != 0, rec.failed, rec.status == "failed":
		call.outcome = Failed
	case rec.hasExit:
		call.outcome = Succeeded
	case rec.status == "declined":
		call.outcome = Cancelled
	case call.outcome == Unfinished:
		call.outcome = Done
	}
}

func (c *codex) event(rec *codexRecord, e entry) {
	switch rec.inner {
	case "user_message", "agent_message":
		e.kind, e.actor = Message, Agent
		if rec.inner == "user_message" {
			e.actor = User
		}
		if c.repeated(rec, -1) {
			return
		}
		c.x.add(e)
	case "agent_reasoning", "agent_reasoning_raw_content":
		return // the item says it too
	case "token_count":
		c.tokens(rec)
	case "exec_command_end", "mcp_tool_call_end", "patch_apply_end", "web_search_end":
		if i, ok := c.calls[c.hash(rec.id)]; ok {
			c.x.change(int(i), func(call *entry) {
				c.ended(call, rec)
				if call.resLength == 0 {
					call.resOff, call.resLength = rec.off, rec.length
				}
			})
			delete(c.open, c.hash(rec.id))
			return
		}
		c.x.add(e)
	case "task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted", "context_compacted", "thread_rolled_back":
		if strings.HasSuffix(rec.inner, "_started") {
			c.words = map[uint64]int{}
		}
		e.kind = Lifecycle
		if rec.inner == "turn_aborted" {
			e.outcome = Cancelled
		}
		c.x.add(e)
	case "item_completed", "exec_command_begin", "mcp_tool_call_begin", "patch_apply_begin", "error", "stream_error", "warning", "background_event":
		if rec.inner == "error" || rec.inner == "stream_error" {
			e.outcome = Failed
		}
		c.x.add(e)
	default:
		oddRecord(c.x, rec.span, "an event of type "+rec.inner)
	}
}

// tokens adds what a running total has more than the one before. The first total
// of a forked session is what its ancestor had used.
func (c *codex) tokens(rec *codexRecord) {
	if !rec.hasTotal || rec.total.empty() {
		return
	}
	old := c.totals
	c.totals = rec.total
	if !c.counted && c.forked {
		c.counted = true
		c.x.method("", "", "the first total of a forked session is taken as what its ancestor had used")
		return
	}
	c.counted = true
	u := usageFigures{in: delta(rec.total.in, old.in), cacheRead: delta(rec.total.cacheRead, old.cacheRead), cacheWrite: -1,
		out: delta(rec.total.out, old.out), reasoning: delta(rec.total.reasoning, old.reasoning), cost: -1}
	if u.in <= 0 && u.out <= 0 {
		return
	}
	c.x.charge(max(c.x.len()-1, 0), u)
}

// delta is how much a running total grew; one that fell began anew.
func delta(now, before int64) int64 {
	switch {
	case now < 0:
		return -1
	case before < 0 || now < before:
		return now
	}
	return now - before
}
