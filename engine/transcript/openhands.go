package transcript

import (
	"strings"

	"refbox/engine/transcript/skim"
)

// openHands reads events of OpenHands: V0 as a list, alone or in an evaluation's
// lines, V1 as a file per event. An observation names the action that caused it;
// usage is cumulative.
type openHands struct {
	x       *index
	ids     map[string]int32 // actions by event id, tool call id or V1 id
	lastRun int              // the last action, for observations that name none
	totals  usageFigures
	models  map[string]bool // responses that were charged
	naive   bool
}

func newOpenHands(x *index) *openHands {
	x.setClock(Naive)
	x.describe(func(i *Info) { i.Harness = "openhands" })
	x.method("deltas of the accumulated usage", "deltas of the accumulated cost")
	return &openHands{x: x, ids: map[string]int32{}, lastRun: -1, totals: noUsage, models: map[string]bool{}}
}

// openHandsList is V0: one document, or lines of them.
type openHandsList struct {
	*document
	log *openHands
}

func openOpenHands(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	o := &openHandsList{d, newOpenHands(x)}
	d.parse = o.read
	return o, nil
}

func (o *openHandsList) read(r *skim.Reader) {
	for r.Err() == nil && !r.AtEnd() {
		lane := uint16(0)
		switch r.Kind() {
		case skim.Array:
			if !o.list(r, lane) {
				return
			}
		case skim.Object:
			if !o.evaluation(r) {
				return
			}
		default:
			r.Fail(&skim.SyntaxError{Offset: r.Offset(), What: "neither a list nor an object"})
		}
	}
}

// evaluation reads an object around a list of events: a line of an evaluation's
// output is a lane.
func (o *openHandsList) evaluation(r *skim.Reader) bool {
	lane := uint16(0)
	o.log.totals = noUsage
	for key := range r.Keys() {
		switch key {
		case "instance_id":
			if id := short(r, 200); id != "" {
				lane = o.x.agent(AgentInfo{ID: id, Parent: 0, Step: -1})
				o.log.ids, o.log.lastRun = map[string]int32{}, -1
			}
		case "instruction", "error":
			v := short(r, 400)
			o.x.fact(key, v)
		case "metadata":
			for key := range r.Keys() {
				switch key {
				case "llm_config":
					for key := range r.Keys() {
						if key == "model" {
							o.x.label(&o.x.info.Model, short(r, 200))
						}
					}
				case "agent_class":
					o.x.fact(key, short(r, 100))
				}
			}
		case "test_result":
			o.x.facts(r, "test_result.", 1)
		case "history", "trajectory", "events":
			if !o.list(r, lane) {
				return false
			}
		}
	}
	return o.pause()
}

func (o *openHandsList) list(r *skim.Reader, lane uint16) bool {
	for i := range r.Items() {
		if r.Kind() == skim.Array { // very old: pairs of action and observation
			for range r.Items() {
				o.log.event(r, 0, lane, i)
			}
		} else {
			o.log.event(r, 0, lane, i)
		}
		if !o.pause() {
			return false
		}
	}
	return r.Err() == nil
}

func (o *openHandsList) full(e entry, limit int) (Full, error) {
	return openHandsBody(o.src, o.src, e, limit)
}

type openHandsEvent struct {
	id, cause, source, action, observation, kind string
	callID, tool, actionID, response             string
	at                                           int64
	exit                                         int64
	hasExit, timeout, failed, reason             bool
	hasTime                                      bool
	llm                                          usageFigures
	cumulative                                   bool
	args                                         int64
	state                                        string
}

func (o *openHands) event(r *skim.Reader, file uint32, lane uint16, pos int) {
	if r.Kind() != skim.Object {
		off, length := valueSpan(r)
		if r.Err() == nil {
			oddRecord(o.x, span{off: off, length: length, file: file}, "an event that is no object")
		}
		return
	}
	e := step(Unknown, System, r.Offset(), 0)
	e.file, e.agent, e.pos = file, lane, int32(min(pos, 1<<30))
	v := openHandsEvent{at: noTime, llm: noUsage, args: -1}
	for key := range r.Keys() {
		o.field(r, key, &v)
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	e.length, e.at = end-e.off, v.at
	e.class = classOf(v.tool)
	if v.args >= 0 && isEditor(v.tool) {
		r.Return(v.args)
		e.class = refine(v.tool, r)
		r.Return(end)
	}
	o.give(e, &v)
}

func (o *openHands) field(r *skim.Reader, key string, v *openHandsEvent) {
	switch key {
	case "id":
		v.id = short(r, 200)
	case "cause":
		v.cause = short(r, 200)
	case "timestamp":
		ms, zoned, ok := parseTime(short(r, 64))
		if ok {
			v.at, v.hasTime = ms, true
			if zoned && !o.naive {
				o.x.setClock(Absolute)
			}
			o.naive = true
		}
	case "source":
		v.source = r.Str(64)
	case "kind":
		v.kind = r.Str(64)
	case "action":
		if r.Kind() == skim.String {
			v.action = r.Str(64)
			return
		}
		v.args = r.Offset()
		for key := range r.Keys() {
			if key == "kind" {
				v.action = r.Str(64)
			}
		}
	case "args":
		v.args = r.Offset()
	case "observation":
		if r.Kind() == skim.Object {
			v.observation = "?"
			for key := range r.Keys() {
				o.extra(r, key, v)
			}
			return
		}
		v.observation = short(r, 64)
		if v.observation == "" {
			v.observation = "null"
		}
	case "extras":
		for key := range r.Keys() {
			o.extra(r, key, v)
		}
	case "tool_name":
		v.tool = r.Str(200)
	case "tool_call_id":
		v.callID = short(r, 200)
	case "action_id":
		v.actionID = short(r, 200)
	case "llm_response_id":
		v.response = short(r, 200)
	case "tool_call_metadata":
		o.metadata(r, v)
	case "llm_metrics":
		v.llm, v.cumulative = openHandsMetrics(r), true
	case "reasoning_content":
		v.reason = r.Kind() == skim.String && r.Str(4) != ""
	}
}

func (o *openHands) extra(r *skim.Reader, key string, v *openHandsEvent) {
	switch key {
	case "kind":
		v.observation = r.Str(64)
	case "exit_code":
		if n, ok := r.Int(); ok && !v.hasExit {
			v.exit, v.hasExit = n, true
		}
	case "metadata":
		for key := range r.Keys() {
			if key == "exit_code" {
				if n, ok := r.Int(); ok {
					v.exit, v.hasExit = n, true
				}
			}
		}
	case "timeout":
		if r.Kind() == skim.True {
			v.timeout = true
		}
	case "is_error":
		v.failed, _ = r.Bool()
	case "agent_state":
		v.state = short(r, 64)
	}
}

func (o *openHands) metadata(r *skim.Reader, v *openHandsEvent) {
	for key := range r.Keys() {
		switch key {
		case "function_name":
			v.tool = r.Str(200)
		case "tool_call_id":
			v.callID = short(r, 200)
		case "model_response":
			u := noUsage
			for key := range r.Keys() {
				switch key {
				case "id":
					v.response = short(r, 200)
				case "usage":
					for key := range r.Keys() {
						switch key {
						case "prompt_tokens":
							u.in = count(r)
						case "completion_tokens":
							u.out = count(r)
						case "prompt_tokens_details":
							for key := range r.Keys() {
								if key == "cached_tokens" {
									u.cacheRead = count(r)
								}
							}
						}
					}
				}
			}
			if !v.cumulative {
				v.llm = u
			}
		}
	}
}

func openHandsMetrics(r *skim.Reader) usageFigures {
	u := noUsage
	for key := range r.Keys() {
		switch key {
		case "accumulated_cost":
			u.cost = microUSD(r.Float())
		case "accumulated_token_usage":
			for key := range r.Keys() {
				switch key {
				case "prompt_tokens":
					u.in = count(r)
				case "completion_tokens":
					u.out = count(r)
				case "cache_read_tokens":
					u.cacheRead = count(r)
				case "cache_write_tokens":
					u.cacheWrite = count(r)
				}
			}
		}
	}
	return u
}

// openHandsTools are V0's actions that call something.
var openHandsTools = map[string]Class{
	"run": Shell, "run_ipython": Code, "read": Read, "edit": Edit, "write": Write, "browse": Browse, "browse_interactive": Browse,
	"think": Plan, "finish": Finish, "delegate": Delegate, "call_tool_mcp": Other, "task_tracking": Plan,
}

func (o *openHands) give(e entry, v *openHandsEvent) {
	first := o.x.len()
	switch v.source {
	case "agent":
		e.actor = Agent
	case "user":
		e.actor = User
	case "environment":
		e.actor = Environment
	}
	switch {
	case v.kind == "ActionEvent":
		o.call(e, v, v.tool, e.class)
	case v.kind == "MessageEvent":
		if v.reason {
			t := e
			t.kind, t.block = Thinking, 1
			t.flags |= Private
			o.x.add(t)
		}
		e.kind = Message
		o.x.add(e)
	case v.kind == "ObservationEvent", v.kind == "AgentErrorEvent", v.kind == "UserRejectObservation":
		v.failed = v.failed || v.kind == "AgentErrorEvent"
		o.result(e, v)
	case v.kind == "SystemPromptEvent", strings.HasSuffix(v.kind, "StateUpdateEvent"), v.kind == "TokenEvent", v.kind == "Condensation":
		e.kind, e.actor = State, System
		o.x.add(e)
	case v.kind == "PauseEvent":
		e.kind = Lifecycle
		o.x.add(e)
	case v.action == "message":
		e.kind = Message
		o.x.add(e)
	case v.action == "system", v.action == "recall", v.action == "condensation", v.action == "initialize", v.observation == "null" && v.action == "",
		v.observation == "recall", v.observation == "agent_state_changed", v.action == "change_agent_state":
		e.kind = State
		if v.action == "change_agent_state" || v.observation == "agent_state_changed" {
			e.kind = Lifecycle
		}
		o.x.add(e)
	case v.action != "":
		class, ok := openHandsTools[v.action]
		if !ok {
			class = Other
			o.x.note(Unfamiliar, "unknown-record", o.x.len(), 0, e.off, e.length, "an action %q", v.action)
		}
		o.call(e, v, v.action, class)
	case v.observation != "":
		v.failed = v.failed || v.observation == "error"
		o.result(e, v)
	default:
		i := o.x.add(e)
		what := "an event without action, observation or kind"
		if v.kind != "" {
			what = "an event of kind " + v.kind
		}
		o.x.note(Unfamiliar, "unknown-record", i, 0, e.off, e.length, "%s", what)
	}
	if !v.hasTime {
		o.x.note(Misleading, "no-time", min(first, o.x.len()-1), 0, e.off, e.length, "an event without a time: placed by its neighbours")
	}
	o.spend(first, v)
}

func (o *openHands) call(e entry, v *openHandsEvent, tool string, class Class) {
	if v.reason {
		t := e
		t.kind, t.actor, t.block = Thinking, Agent, 1
		t.flags |= Private
		o.x.add(t)
	}
	e.kind, e.class, e.tool, e.outcome = ToolCall, class, o.x.tool(tool), Unfinished
	if class == Finish || v.action == "think" {
		e.outcome = Done // nothing comes back
	}
	i := o.x.add(e)
	if i < 0 {
		return
	}
	o.lastRun = i
	for _, id := range []string{"id " + v.id, "call " + v.callID} {
		if !strings.HasSuffix(id, " ") && len(o.ids) < maxSteps {
			o.ids[id] = int32(i)
		}
	}
}

func (o *openHands) result(e entry, v *openHandsEvent) {
	i, ok := -1, false
	for _, id := range []string{"id " + v.cause, "id " + v.actionID, "call " + v.callID} {
		if n, found := o.ids[id]; found && !strings.HasSuffix(id, " ") && !ok {
			i, ok = int(n), true
		}
	}
	named := v.cause != "" || v.actionID != "" || v.callID != ""
	if !ok && !named && o.lastRun >= 0 {
		i, ok = o.lastRun, true
	}
	outcome := Done
	switch {
	case v.timeout, v.hasExit && v.exit == -1 && !v.failed:
		outcome = TimedOut
	case v.failed, v.hasExit && v.exit != 0:
		outcome = Failed
	case v.hasExit:
		outcome = Succeeded
	}
	if !ok {
		e.kind, e.actor, e.outcome = Output, Environment, outcome
		n := o.x.add(e)
		if named {
			o.x.note(Orphaned, "result-without-call", n, 0, e.off, e.length, "an observation whose cause is not in this file")
		}
		return
	}
	o.lastRun = -1
	o.x.change(i, func(c *entry) {
		c.resOff, c.resLength, c.resFile, c.outcome = e.off, e.length, e.file, outcome
		if e.at != noTime && c.at != noTime {
			c.dur = span32(e.at - c.at)
		}
	})
}

// spend differences what is cumulative; without it, each response counts once.
func (o *openHands) spend(at int, v *openHandsEvent) {
	if v.llm.empty() || o.x.len() == 0 {
		return
	}
	at = min(at, o.x.len()-1)
	if v.cumulative {
		u := usageFigures{delta(v.llm.in, o.totals.in), delta(v.llm.cacheRead, o.totals.cacheRead), delta(v.llm.cacheWrite, o.totals.cacheWrite),
			delta(v.llm.out, o.totals.out), -1, delta(v.llm.cost, o.totals.cost)}
		o.totals = v.llm
		if u.in > 0 || u.out > 0 || u.cost > 0 {
			o.x.charge(at, u)
		}
		return
	}
	if !o.totals.empty() || v.response == "" || o.models[v.response] || len(o.models) > maxSteps {
		return // the running totals count it
	}
	o.models[v.response] = true
	o.x.method("usage of each model response, once", "")
	o.x.charge(at, v.llm)
}
