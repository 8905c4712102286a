package transcript

import (
	"fmt"
	"strconv"

	"refbox/engine/transcript/skim"
)

// heatLog reads a heat's log: the actions that the gateway saw, and what came of
// them. A seat is a lane. Routine events (checks that started, health, samples)
// are left out and counted.
type heatLog struct {
	*lines
	lanes  map[string]uint16
	calls  map[string]int32 // by territory and action
	agents map[string]uint16
	left   int
	next   int64 // the sequence that is due
	newer  bool
}

func openHeat(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	h := &heatLog{lines: l, lanes: map[string]uint16{}, calls: map[string]int32{}, agents: map[string]uint16{}}
	l.record, l.atEnd = h.read, h.tally
	x.setClock(Relative)
	x.changeAgent(0, func(a *AgentInfo) { a.ID = "heat" })
	x.method("usage that was charged", "usage that was charged")
	return h, nil
}

var heatRoutine = map[string]bool{"milestone_evaluation_started": true, "health_observed": true, "canary_sample": true, "resources_changed": true}

var heatKinds = map[string]Kind{
	"milestone_passed": Marker, "milestone_failed": Marker, "milestone_revoked": Marker, "durable_deployment_completed": Marker,
	"match_state_changed": Lifecycle, "match_finished": Lifecycle, "agent_started": Lifecycle, "agent_finished": Lifecycle,
	"agent_interrupted": Lifecycle, "agent_terminated": Lifecycle, "agent_outraced": Lifecycle, "competitor_state_changed": Lifecycle,
	"heat_paused": Lifecycle, "heat_resumed": Lifecycle, "limit_reached": Lifecycle, "seat_unavailable": Lifecycle,
	"territory_state_changed": Lifecycle, "infrastructure_failure": Lifecycle, "operator_note": Message, "referee_ruling": Message,
}

type heatEvent struct {
	kind, territory, agent, channel string
	at                              int64
	action                          string
	exit                            int64
	hasExit, selfReported           bool
	took                            int64
	use                             usageFigures
	success, hasSuccess             bool
	sequence, schema                int64
	numbered                        bool
}

func (h *heatLog) read(r *skim.Reader, s span) error {
	v := heatEvent{at: noTime, took: -1, use: noUsage}
	object := r.Kind() == skim.Object
	for key := range r.Keys() {
		switch key {
		case "kind":
			v.kind = r.Str(64)
		case "sequence":
			v.sequence, v.numbered = r.Int()
		case "schema_version":
			v.schema, _ = r.Int()
		case "elapsed_ms":
			if n, ok := r.Int(); ok && v.at == noTime { // the first of two: the envelope's
				v.at = clampMS(n)
			}
		case "territory":
			v.territory = short(r, 200)
		case "agent":
			v.agent = short(r, 200)
		case "channel":
			v.channel = short(r, 64)
		case "action":
			v.action = short(r, 32)
		case "exit":
			v.exit, v.hasExit = r.Int()
		case "took_ms":
			if n, ok := r.Int(); ok {
				v.took = n
			}
		case "self_reported":
			v.selfReported, _ = r.Bool()
		case "success":
			v.success, v.hasSuccess = r.Bool()
		case "input_tokens":
			v.use.in = count(r)
		case "output_tokens":
			v.use.out = count(r)
		case "cost_microusd":
			v.use.cost = count(r)
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the event"}
		}
		return r.Err()
	}
	if !object || v.kind == "" {
		oddRecord(h.x, s, "a line that is no event")
		return nil
	}
	h.give(&v, s)
	return nil
}

func (h *heatLog) lane(v *heatEvent) uint16 {
	if v.territory == "" {
		return h.agents[v.agent]
	}
	lane, ok := h.lanes[v.territory]
	if !ok && len(h.lanes) < 1000 {
		lane = h.x.agent(AgentInfo{ID: v.territory, Name: v.agent, Parent: 0, Step: -1})
		h.lanes[v.territory] = lane
	}
	if v.agent != "" && len(h.agents) < 1000 {
		h.agents[v.agent] = lane
	}
	return lane
}

func (h *heatLog) give(v *heatEvent, s span) {
	lane := h.lane(v)
	if v.numbered && v.sequence != h.next {
		h.x.note(Skipped, "sequence-gap", h.x.len(), s.line, s.off, s.length, "event %d where %d was due", v.sequence, h.next)
	}
	if v.numbered {
		h.next = v.sequence + 1
	}
	if v.schema > 1 && !h.newer {
		h.newer = true
		h.x.note(Unfamiliar, "newer-schema", h.x.len(), s.line, s.off, s.length, "an event of schema %d: written by a newer version", v.schema)
	}
	if heatRoutine[v.kind] {
		h.left++
		return
	}
	e := step(State, System, s.off, s.length)
	e.at, e.agent, e.pos = v.at, lane, int32(s.line-1)
	key := v.territory + "\x00" + v.action
	switch {
	case v.kind == "agent_action_started":
		e.kind, e.actor, e.class, e.outcome = ToolCall, Agent, Shell, Unfinished
		if v.channel == "sftp" || v.channel == "forward" {
			e.class = Other
		}
		if n, err := strconv.Atoi(v.action); err == nil && n > 0 && n < 1<<31 {
			e.pos = int32(n - 1)
		}
		e.tool = h.x.tool(v.channel)
		if i := h.x.add(e); i >= 0 {
			h.calls[key] = int32(i)
		}
		return
	case v.kind == "agent_action_finished":
		i, ok := h.calls[key]
		if !ok {
			e.kind = Output
			n := h.x.add(e)
			h.x.note(Orphaned, "result-without-call", n, s.line, s.off, s.length, "an action that ends and did not begin")
			return
		}
		delete(h.calls, key)
		h.x.change(int(i), func(c *entry) {
			c.resOff, c.resLength = e.off, e.length
			if v.took >= 0 {
				c.dur = span32(v.took)
			}
			switch {
			case !v.hasExit:
				c.outcome = Cancelled
			case v.exit == 0:
				c.outcome = Succeeded
			default:
				c.outcome = Failed
			}
		})
		return
	}
	if kind, ok := heatKinds[v.kind]; ok {
		e.kind = kind
	}
	switch {
	case v.kind == "milestone_passed":
		e.outcome = Succeeded
	case v.kind == "milestone_failed", v.kind == "milestone_revoked", v.kind == "infrastructure_failure", v.hasSuccess && !v.success:
		e.outcome = Failed
	}
	i := h.x.add(e)
	if v.kind == "usage_charged" && i >= 0 {
		h.x.charge(i, v.use)
	}
}

func (h *heatLog) tally() {
	if h.left > 0 {
		h.x.describe(func(i *Info) {
			text := fmt.Sprintf("%d routine events are left out", h.left)
			for j := range i.Extra {
				if i.Extra[j].Name == "left out" {
					i.Extra[j].Value = text
					return
				}
			}
			i.Extra = append(i.Extra, Fact{"left out", text})
		})
	}
}

func (h *heatLog) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	h.bodies(reader(h.src, e.off, e.length), b, e)
	if e.resLength > 0 {
		h.bodies(reader(h.src, e.resOff, e.resLength), b, e)
	}
	return f, nil
}

func (h *heatLog) bodies(r *skim.Reader, b *bodies, e entry) {
	start := r.Offset()
	for key := range r.Keys() {
		switch key {
		case "kind":
			if e.kind != ToolCall {
				b.text(r, PartDescription, "")
			}
		case "command":
			role := PartCommand
			if e.class != Shell {
				role = PartInput
			}
			b.text(r, role, "")
		case "output":
			b.text(r, PartOutput, "")
		case "exit":
			if n, ok := r.Int(); ok {
				b.exit(n)
			}
		case "detail", "reason", "text", "ruling":
			b.text(r, PartMessage, key)
		case "milestone", "machine", "to":
			if e.kind != ToolCall {
				b.text(r, PartMessage, key)
			}
		}
	}
	if e.kind != ToolCall && r.Err() == nil {
		r.Return(start)
		b.json(r, PartData, "")
	}
}
