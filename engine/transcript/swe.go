package transcript

import (
	"strings"

	"refbox/engine/text"
	"refbox/engine/transcript/skim"
)

// sweAgent reads trajectories of SWE-agent: {trajectory, history, info}. Without a
// trajectory the history is stepped. There are no times: where execution times
// are recorded, a clock is made of them.
type sweAgent struct {
	*document
	clockMS int64
	timed   bool
	demos   int
	calls   map[string]int // by tool call id, in a history
	lastAct int            // the last call of a history without ids
}

func openSWE(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	s := &sweAgent{document: d, calls: map[string]int{}, lastAct: -1}
	d.parse = s.read
	x.method("totals of the run", "totals of the run")
	x.describe(func(i *Info) { i.Harness = "swe-agent" })
	return s, nil
}

func (s *sweAgent) read(r *skim.Reader) {
	history, trajectory := int64(-1), false
	for key := range r.Keys() {
		switch key {
		case "environment":
			s.x.label(&s.x.info.Task, short(r, 200))
		case "trajectory":
			for i := range r.Items() {
				trajectory = true
				s.turn(r, i)
				if !s.pause() {
					return
				}
			}
		case "history":
			history = r.Offset()
		case "info":
			s.info(r)
		}
	}
	if err := r.Err(); err != nil && (trajectory || history < 0 || s.quit) {
		return
	}
	if trajectory || history < 0 {
		return
	}
	h := skim.At(s.src, history, s.size())
	for i := range h.Items() {
		s.item(h, i)
	}
	if h.Err() != nil && r.Err() == nil {
		r.Fail(h.Err())
	}
	if s.demos > 0 {
		s.x.note(Skipped, "demonstration", -1, 0, history, 0, "left out: %s of a demonstration", text.Count(s.demos, "item"))
	}
}

// sweWords are the commands of SWE-agent's own shell.
var sweWords = map[string]Class{
	"open": Read, "goto": Read, "scroll_up": Read, "scroll_down": Read, "create": Write, "edit": Edit, "insert": Edit,
	"str_replace_editor": Edit, "search_dir": Search, "search_file": Search, "find_file": Search, "submit": Finish,
	"exit_cost": Finish, "exit_context": Finish, "exit_error": Finish, "exit_format": Finish, "exit_forfeit": Finish, "skip": Finish,
}

// sweTool names the tool of an action: a command of the harness, else the shell.
func sweTool(action string) (string, Class) {
	word := action
	if i := strings.IndexAny(action, " \t\r\n"); i >= 0 {
		word = action[:i]
	}
	if c, ok := sweWords[word]; ok {
		if word == "str_replace_editor" {
			switch rest := strings.TrimSpace(action[len(word):]); {
			case strings.HasPrefix(rest, "view"):
				c = Read
			case strings.HasPrefix(rest, "create"):
				c = Write
			}
		}
		return word, c
	}
	return "bash", Shell
}

func (s *sweAgent) turn(r *skim.Reader, n int) {
	r.Kind()
	e := step(Message, Agent, r.Offset(), 0)
	e.pos = int32(min(n, 1<<30))
	var action, thought string
	took := int64(-1)
	hasAction := false
	for key := range r.Keys() {
		switch key {
		case "action":
			action, hasAction = strings.TrimSpace(r.Str(4096)), true
		case "thought":
			thought = strings.TrimSpace(r.Str(64))
		case "execution_time":
			if f, ok := r.Float(); ok && f >= 0 && f < 1e9 {
				took = int64(f * 1000)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	e.length = r.Offset() - e.off
	if took >= 0 {
		if !s.timed {
			s.timed = true
			s.x.setClock(Synthetic)
			s.x.note(Misleading, "synthetic-clock", -1, 0, 0, 0, "no times are recorded: the clock adds up execution times, without the model's")
		}
		e.at = s.clockMS
	}
	if thought != "" {
		s.x.add(e)
	}
	if !hasAction || action == "" {
		if thought == "" {
			e.kind = State
			s.x.add(e)
		}
		return
	}
	tool, class := sweTool(action)
	e.kind, e.class, e.tool, e.block, e.outcome = ToolCall, class, s.x.tool(tool), 1, Done
	if took >= 0 {
		e.dur = span32(took)
		s.clockMS = clampMS(s.clockMS + took)
	}
	s.x.add(e)
}

func (s *sweAgent) item(r *skim.Reader, n int) {
	r.Kind()
	e := step(Message, NoActor, r.Offset(), 0)
	e.pos = int32(min(n, 1<<30))
	var role, kind, action, callID string
	var ids, names []string
	demo, words := false, false
	for key := range r.Keys() {
		switch key {
		case "role":
			role = r.Str(32)
		case "message_type":
			kind = r.Str(64)
		case "action":
			action = strings.TrimSpace(r.Str(4096))
		case "is_demo":
			demo, _ = r.Bool()
		case "thought", "content":
			k := r.Kind()
			words = words || k == skim.String && strings.TrimSpace(r.Str(64)) != "" || k == skim.Array
		case "tool_call_ids":
			for range r.Items() {
				if callID == "" {
					callID = r.Str(200)
				}
			}
		case "tool_calls":
			for range r.Items() {
				id, name := functionCall(r)
				if len(ids) < maxBlocks {
					ids, names = append(ids, id), append(names, name)
				}
			}
		}
	}
	if r.Err() != nil {
		return
	}
	if demo {
		s.demos++
		return
	}
	e.length = r.Offset() - e.off
	switch {
	case role == "system":
		e.kind, e.actor = State, System
		s.x.add(e)
	case role == "assistant":
		e.actor = Agent
		if words {
			s.x.add(e)
		}
		for i, id := range ids {
			c := e
			c.kind, c.tool, c.class, c.block, c.outcome = ToolCall, s.x.tool(names[i]), classOf(names[i]), uint16(1+i), Unfinished
			s.lastAct = s.x.add(c)
			s.calls[id] = s.lastAct
		}
		if len(ids) == 0 && action != "" {
			tool, class := sweTool(action)
			c := e
			c.kind, c.tool, c.class, c.block, c.outcome = ToolCall, s.x.tool(tool), class, 1, Unfinished
			s.lastAct = s.x.add(c)
		}
	case role == "tool", kind == "observation" && s.lastAct >= 0:
		call, ok := s.calls[callID]
		if !ok {
			call, ok = s.lastAct, callID == "" && s.lastAct >= 0
		}
		if !ok {
			e.kind, e.actor = Output, Environment
			i := s.x.add(e)
			s.x.note(Orphaned, "result-without-call", i, 0, e.off, e.length, "an observation of a call that is not in this file")
			return
		}
		s.lastAct = -1
		s.x.change(call, func(c *entry) { c.resOff, c.resLength, c.outcome = e.off, e.length, Done })
	default:
		e.actor = User
		s.x.add(e)
	}
}

// functionCall reads {id, function: {name, arguments}} as OpenAI writes calls.
func functionCall(r *skim.Reader) (id, name string) {
	for key := range r.Keys() {
		switch key {
		case "id":
			id = r.Str(200)
		case "function":
			for key := range r.Keys() {
				if key == "name" {
					name = r.Str(200)
				}
			}
		}
	}
	return id, name
}

func (s *sweAgent) info(r *skim.Reader) {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "exit_status":
			s.x.label(&s.x.info.Outcome, short(r, 200))
		case "submission":
			v := short(r, 64<<10)
			s.x.describe(func(i *Info) { i.Result = NewText(v).String() })
		case "model_stats":
			total := int64(-1)
			for key := range r.Keys() {
				switch key {
				case "instance_cost":
					u.cost = microUSD(r.Float())
				case "total_cost":
					total = microUSD(r.Float())
				case "tokens_sent":
					u.in = count(r)
				case "tokens_received":
					u.out = count(r)
				case "api_calls":
					s.x.fact(key, short(r, 32))
				}
			}
			if u.cost < 0 {
				u.cost = total
			}
		case "swe_agent_version":
			s.x.label(&s.x.info.Version, short(r, 64))
		default:
			if k := r.Kind(); k == skim.String || k == skim.Number {
				s.x.fact(key, short(r, 200))
			}
		}
	}
	switch {
	case u.empty() || r.Err() != nil:
	case u.in <= 0 && u.out <= 0 && u.cost <= 0:
		s.x.note(Misleading, "no-usage", -1, 0, r.Offset(), 0, "the totals of the run are all zero, as in a replay: taken as not recorded")
	default:
		s.x.give(u, "totals of the run", "totals of the run")
	}
}

func (s *sweAgent) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(s.src, e.off, e.length)
	at := map[string]int64{}
	for key := range r.Keys() {
		if len(at) < 100 {
			at[key] = r.Offset()
		}
	}
	if err := r.Err(); err != nil {
		return rawRecord(s.src, e, limit)
	}
	take := func(key string, read func()) bool {
		off, ok := at[key]
		if ok {
			r.Return(off)
			read()
		}
		return ok
	}
	take("state", func() { s.state(r, &f) })
	take("execution_time", func() {})
	if e.kind != ToolCall {
		if !take("thought", func() { b.text(r, PartMessage, "") }) || len(f.Parts) == 0 {
			take("content", func() { b.content(r, PartMessage) })
		}
		if len(f.Parts) == 0 {
			r.Return(e.off)
			b.json(r, PartData, "")
		}
		return f, r.Err()
	}
	calls := false
	take("tool_calls", func() {
		for i := range r.Items() {
			if i == int(e.block)-1 {
				calls = true
				b.functionCall(r, e.class)
			}
		}
	})
	if !calls {
		take("action", func() { b.text(r, PartCommand, "") })
	}
	take("observation", func() { b.text(r, PartOutput, "") })
	if e.resLength > 0 {
		res := reader(s.src, e.resOff, e.resLength)
		for key := range res.Keys() {
			if key == "content" {
				b.content(res, PartOutput)
			}
		}
	}
	return f, r.Err()
}

// functionCall takes {id, function: {name, arguments}}.
func (b *bodies) functionCall(r *skim.Reader, class Class) {
	name, args := "", int64(-1)
	for key := range r.Keys() {
		switch key {
		case "id":
			b.f.CallID = r.Str(200)
		case "function":
			for key := range r.Keys() {
				switch key {
				case "name":
					name = r.Str(200)
				case "arguments":
					args = r.Offset()
				}
			}
		}
	}
	r.Back(args, func() { b.arguments(name, class, r) })
}

// state is an object, or, in older versions, a string that holds one.
func (s *sweAgent) state(r *skim.Reader, f *Full) {
	in := r
	if r.Kind() == skim.String {
		in = skim.Bytes([]byte(r.Str(16<<10)), 0)
	}
	for key := range in.Keys() {
		if key == "working_dir" {
			f.WorkDir = in.Str(4096)
		}
	}
}
