package transcript

import (
	"refbox/engine/transcript/skim"
)

// atif reads the Agent Trajectory Interchange Format: steps with a message,
// reasoning, calls, and an observation whose results name the call of the same
// step that they belong to. Readers of it should be lenient, this one is.
type atif struct {
	*document
	zoned bool
}

func openATIF(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	a := &atif{document: d}
	d.parse = func(r *skim.Reader) { a.root(r, 0) }
	x.method("sum of the steps' metrics", "sum of the steps' metrics")
	return a, nil
}

func (a *atif) root(r *skim.Reader, lane uint16) {
	stepsAt, want := int64(-1), int64(1)
	for key := range r.Keys() {
		switch key {
		case "schema_version":
			v := short(r, 64)
			if lane == 0 {
				a.x.describe(func(i *Info) { i.Version = label(v) })
			}
		case "session_id", "trajectory_id":
			if v := short(r, 200); lane == 0 {
				a.x.describe(func(i *Info) {
					if i.Session == "" {
						i.Session = label(v)
					}
				})
			} else {
				a.x.changeAgent(int(lane), func(i *AgentInfo) { i.ID = label(v) })
			}
		case "agent":
			a.agent(r, lane)
		case "notes":
			if lane == 0 {
				a.x.fact(key, short(r, 400))
			}
		case "steps":
			stepsAt = r.Offset()
			for i := range r.Items() {
				a.step(r, lane, i, &want)
				if !a.pause() {
					return
				}
			}
		case "final_metrics":
			if lane == 0 {
				a.metrics(r)
			}
		case "continued_trajectory_ref":
			if v := short(r, 400); v != "" {
				a.x.note(Incomplete, "continued", -1, 0, r.Offset(), 0, "the trajectory goes on in %s", v)
				a.x.fact(key, v)
			}
		case "subagent_trajectories":
			for range r.Items() {
				if lane != 0 {
					continue // deeper ones are rare, and their lanes would not be told apart
				}
				child := a.x.agent(AgentInfo{Step: -1})
				if child == 0 {
					continue
				}
				a.root(r, child)
				if !a.pause() {
					return
				}
			}
		case "extra":
			if lane == 0 {
				a.x.facts(r, "extra.", 1)
			}
		default:
			a.x.note(Unfamiliar, "unknown-key", -1, 0, r.Offset(), 0, "the key %q", key)
		}
	}
	if stepsAt < 0 && r.Err() == nil {
		a.x.note(Incomplete, "no-steps", -1, 0, 0, 0, "a trajectory without steps")
	}
}

func (a *atif) agent(r *skim.Reader, lane uint16) {
	var agent, version, model string
	for key := range r.Keys() {
		switch key {
		case "name":
			agent = r.Str(200)
		case "version":
			version = short(r, 100)
		case "model_name":
			model = r.Str(200)
		case "extra":
			if lane == 0 {
				a.x.facts(r, "agent.", 0)
			}
		}
	}
	if lane != 0 {
		a.x.changeAgent(int(lane), func(i *AgentInfo) { i.Name = label(agent) })
		return
	}
	a.x.describe(func(i *Info) { i.Harness, i.Model = label(agent), label(model) })
	a.x.fact("agent.version", version)
}

type atifCall struct {
	id, name string
	class    Class
}

func (a *atif) step(r *skim.Reader, lane uint16, n int, want *int64) {
	if r.Kind() != skim.Object {
		off, length := valueSpan(r)
		if r.Err() == nil {
			oddRecord(a.x, span{off: off, length: length}, "a step that is no object")
		}
		return
	}
	e := step(Message, NoActor, r.Offset(), 0)
	e.agent, e.pos = lane, int32(min(n, 1<<30))
	var (
		source        string
		words, reason bool
		id            int64
		calls         []atifCall
		results       []atifResult
		use           = noUsage
		relative      = int64(noTime)
	)
	for key := range r.Keys() {
		switch key {
		case "step_id":
			id, _ = r.Int()
		case "timestamp":
			if ms, zoned, ok := parseTime(r.Str(64)); ok {
				e.at = ms
				a.sawTime(zoned)
			}
		case "source":
			source = r.Str(32)
		case "message":
			k := r.Kind()
			words = k == skim.String && r.Str(8) != "" || k == skim.Array
		case "reasoning_content":
			reason = r.Kind() == skim.String && r.Str(8) != ""
		case "tool_calls":
			for range r.Items() {
				if c := atifCallOf(r); len(calls) < maxBlocks {
					calls = append(calls, c)
				}
			}
		case "observation":
			results = atifResults(r)
		case "is_copied_context":
			if copied, _ := r.Bool(); copied {
				e.flags |= Copied
			}
		case "metrics":
			use = atifUsage(r, "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
		case "extra":
			for key := range r.Keys() {
				switch key {
				case "started_after_ms":
					if ms, ok := r.Int(); ok {
						relative = clampMS(ms)
					}
				case "duration_ms":
					if ms, ok := r.Int(); ok {
						e.dur = span32(ms)
					}
				case "read_only":
					if only, _ := r.Bool(); only {
						e.flags |= ReadOnly
					}
				}
			}
		}
	}
	if r.Err() != nil {
		return
	}
	e.length = r.Offset() - e.off
	if id != *want {
		a.x.note(Disordered, "step-id", a.x.len(), 0, e.off, e.length, "step_id %d where %d was due", id, *want)
		*want = id
	}
	*want++
	if e.at == noTime && relative != noTime {
		e.at = relative
		a.x.setClock(Relative)
	}
	switch source {
	case "agent":
		e.actor = Agent
	case "user":
		e.actor = User
	default:
		e.actor = System
	}
	a.give(e, words, reason, calls, results, use)
}

func (a *atif) sawTime(zoned bool) {
	if a.zoned {
		return
	}
	a.zoned = zoned
	c := Absolute
	if !zoned {
		c = Naive
	}
	a.x.setClock(c)
}

func (a *atif) give(e entry, words, reason bool, calls []atifCall, results []atifResult, use usageFigures) {
	first := a.x.len()
	dur := e.dur
	e.dur = -1
	if reason {
		t := e
		t.kind, t.block = Thinking, 1
		t.flags |= Private
		a.x.add(t)
	}
	if words || len(calls) == 0 && len(results) == 0 && !reason {
		a.x.add(e)
	}
	used := make([]bool, len(results))
	for i, c := range calls {
		t := e
		t.kind, t.actor, t.class, t.tool, t.block, t.outcome, t.dur = ToolCall, Agent, c.class, a.x.tool(c.name), uint16(2+i), Unfinished, dur
		for j, res := range results {
			if used[j] || res.id != c.id {
				continue
			}
			used[j] = true
			t.resBlock = uint16(min(j+1, 1<<16-1))
			t.outcome = Done
			if res.hasError {
				t.outcome = Succeeded
				if res.failed {
					t.outcome = Failed
				}
			}
		}
		n := a.x.add(t)
		for _, res := range results {
			if res.id == c.id && res.child != "" {
				a.x.agent(AgentInfo{ID: res.child, Step: n, File: a.beside(res.childFile)})
			}
		}
	}
	for j, res := range results {
		if used[j] {
			continue
		}
		t := e
		t.kind, t.actor, t.resBlock = Output, Environment, uint16(min(j+1, 1<<16-1))
		n := a.x.add(t)
		if res.id != "" {
			a.x.note(Orphaned, "result-without-call", n, 0, e.off, e.length, "a result of a call that this step does not make")
		}
	}
	if !use.empty() && !e.has(Copied) {
		a.x.charge(min(first, max(a.x.len()-1, 0)), use)
	}
}

// beside is a sub-agent's file if there is one.
func (a *atif) beside(ref string) string {
	if ref != "" && a.st.isFile(ref) {
		return ref
	}
	return ""
}

func atifCallOf(r *skim.Reader) atifCall {
	var c atifCall
	args := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "tool_call_id":
			c.id = r.Str(200)
		case "function_name":
			c.name = r.Str(200)
		case "arguments":
			args = r.Offset()
		}
	}
	c.class = classOf(c.name)
	if args >= 0 && isEditor(c.name) && r.Err() == nil {
		end := r.Offset()
		r.Return(args)
		c.class = refine(c.name, r)
		r.Return(end)
	}
	return c
}

type atifResult struct {
	id, child, childFile string
	failed, hasError     bool
}

func atifResults(r *skim.Reader) []atifResult {
	var results []atifResult
	for key := range r.Keys() {
		if key != "results" {
			continue
		}
		for range r.Items() {
			var res atifResult
			for key := range r.Keys() {
				switch key {
				case "source_call_id":
					res.id = short(r, 200)
				case "extra":
					for key := range r.Keys() {
						if key == "is_error" {
							res.failed, res.hasError = r.Bool()
						}
					}
				case "subagent_trajectory_ref":
					for range r.Items() {
						for key := range r.Keys() {
							switch key {
							case "trajectory_id", "session_id":
								if v := short(r, 200); res.child == "" {
									res.child = v
								}
							case "trajectory_path":
								res.childFile = short(r, 400)
								if res.child == "" {
									res.child = res.childFile
								}
							}
						}
					}
				}
			}
			if len(results) < maxBlocks {
				results = append(results, res)
			}
		}
	}
	return results
}

func atifUsage(r *skim.Reader, in, out, cached, cost string) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case in:
			u.in = count(r)
		case out:
			u.out = count(r)
		case cached:
			u.cacheRead = count(r)
		case cost:
			u.cost = microUSD(r.Float())
		}
	}
	return u
}

func (a *atif) metrics(r *skim.Reader) {
	at := r.Offset()
	for key := range r.Keys() {
		if key != "extra" {
			continue
		}
		for key := range r.Keys() {
			if key == "infrastructure_evaluation" {
				a.x.facts(r, "", 3)
				continue
			}
			a.x.fact(key, short(r, 200))
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	r.Return(at)
	u := atifUsage(r, "total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd")
	r.Return(end)
	if !u.empty() {
		a.x.give(u, "final metrics of the trajectory", "final metrics of the trajectory")
	}
}

func (a *atif) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(a.src, e.off, e.length)
	output := PartOutput
	if e.outcome == Failed {
		output = PartError
	}
	for key := range r.Keys() {
		switch key {
		case "model_name":
			f.Model = r.Str(200)
		case "message":
			if e.kind == Message {
				b.content(r, PartMessage)
			}
		case "reasoning_content":
			if e.kind == Thinking {
				b.text(r, PartReasoning, "")
			}
		case "tool_calls":
			for i := range r.Items() {
				if e.kind == ToolCall && i == int(e.block)-2 {
					b.call(r, e.class, "tool_call_id", "function_name")
				}
			}
		case "observation":
			for key := range r.Keys() {
				if key != "results" {
					continue
				}
				for i := range r.Items() {
					if i != int(e.resBlock)-1 {
						continue
					}
					for key := range r.Keys() {
						if key == "content" {
							b.content(r, output)
						}
					}
				}
			}
		}
	}
	if e.kind == Unknown {
		return rawRecord(a.src, e, limit)
	}
	return f, r.Err()
}
