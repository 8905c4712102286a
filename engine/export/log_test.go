package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"refbox/engine/event"
	"refbox/engine/export"
	"refbox/engine/export/exporttest"
	"refbox/engine/internal/shared"
	"refbox/engine/world"
)

func TestReferenceRecordingsComeOutAsTheyAre(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var plain, reference bytes.Buffer
			rec := open(t, dir)
			if err := export.Lines(&plain, rec); err != nil {
				t.Fatal(err)
			}
			_, left, err := export.Reference(&reference, rec)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(plain.Bytes(), want) || !bytes.Equal(reference.Bytes(), want) || left > 0 {
				t.Fatalf("not the same bytes; %d events left out", left)
			}
		})
	}
}

// lines is a log in memory.
type lines [][]byte

func (l lines) Len() int                  { return len(l) }
func (l lines) Raw(i int) ([]byte, error) { return slices.Clone(l[i]), nil }

// keysOf are the reference's keys of each of its kinds, in its order (recordings
// reference, section 2.1).
var keysOf = map[string]string{
	"match_state_changed": "from to", "territory_registered": "territory class agent", "agent_started": "agent territory model",
	"competitor_state_changed": "territory from to reason", "milestone_evaluation_started": "territory milestone",
	"milestone_passed": "territory milestone points evidence", "milestone_failed": "territory milestone category detail retryable",
	"milestone_revoked": "territory milestone reason", "durable_deployment_completed": "territory elapsed_ms", "match_finished": "winner reason",
	"usage_charged":            "agent resource_units input_tokens output_tokens cost_microusd",
	"post_match_drain_started": "timeout_ms pending_agents", "post_match_drain_finished": "captured_agents terminated_agents",
	"agent_finished": "agent source success detail", "agent_interrupted": "agent source detail", "agent_terminated": "agent reason",
	"agent_outraced": "agent reason", "health_observed": "territory healthy status latency_ms detail",
	"territory_state_changed": "territory from to reason", "resources_changed": "territory delta remaining reason",
	"territory_eliminated": "territory source detail", "infrastructure_failure": "component source detail",
}

// checkForm holds a line against the reference's form.
func checkForm(t interface{ Fatalf(string, ...any) }, line []byte, sequence int) {
	d := json.NewDecoder(bytes.NewReader(line))
	var keys []string
	kind := ""
	if _, err := d.Token(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch key {
		case "kind":
			kind = strings.Trim(string(value), `"`)
		case "sequence":
			if string(value) != fmt.Sprint(sequence) {
				t.Fatalf("%s: not number %d", line, sequence)
			}
		case "category":
			if string(value) != `"verification_failed"` {
				t.Fatalf("%s: category", line)
			}
		}
		keys = append(keys, key.(string))
	}
	own, known := keysOf[kind]
	if want := "schema_version sequence elapsed_ms kind " + own; !known || strings.Join(keys, " ") != want {
		t.Fatalf("%s: keys %q, want %q", line, keys, want)
	}
}

func TestReferenceFormOfOurHeat(t *testing.T) {
	rec := open(t, exporttest.Small(t))
	var b bytes.Buffer
	written, left, err := export.Reference(&b, rec)
	if err != nil || written+left != rec.Len() || left == 0 || written == 0 {
		t.Fatalf("%d written, %d left out of %d: %v", written, left, rec.Len(), err)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\n")) {
		checkForm(t, line, i)
	}
	var again bytes.Buffer
	if _, left, err := export.Reference(&again, lines(bytes.Split(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\n")))); err != nil || left > 0 || again.String() != b.String() {
		t.Fatalf("the reference's form of it is another: %d left out, %v", left, err)
	}
}

// drawBody is an event of our logs about one of two seats, with our keys too.
func drawBody(t *rapid.T) event.Body {
	id := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "seat")
	agent := "agent-" + id
	m := rapid.SampledFrom([]string{"reads", "fence", "writes"}).Draw(t, "milestone")
	word := rapid.SampledFrom([]string{"", "502", "line\nline\r\"<é>\u2028"}).Draw(t, "text")
	n := uint64(rapid.IntRange(0, 50).Draw(t, "number"))
	null := func() *uint64 {
		if rapid.Bool().Draw(t, "null") {
			return nil
		}
		return &n
	}
	flag := rapid.Bool().Draw(t, "flag")
	source := rapid.SampledFrom([]string{"player", "harness", "arena", "controller"}).Draw(t, "source")
	state := rapid.SampledFrom([]string{"building", "verifying", "incomplete", "unavailable"}).Draw(t, "state")
	switch rapid.IntRange(0, 24).Draw(t, "kind") {
	case 0, 1, 2:
		return event.MilestoneEvaluationStarted{Territory: id, Milestone: m, Attempt: n}
	case 3, 4, 5:
		return event.MilestonePassed{Territory: id, Milestone: m, Points: n, Evidence: json.RawMessage(`{"a":[1,"x"]}`), Attempt: n, Record: word, RecordSHA: word, NotBefore: null(), HeldAt: null()}
	case 6, 7, 8:
		return event.MilestoneFailed{Territory: id, Milestone: m, Category: "contract", Detail: word, Retryable: flag, Attempt: n, Source: source}
	case 9, 10:
		return event.MilestoneRevoked{Territory: id, Milestone: m, Reason: word, Record: word}
	case 11:
		return event.DurableDeploymentCompleted{Territory: id, DurableAt: null(), NotBefore: null(), AttackMS: n}
	case 12:
		return event.MatchFinished{Winner: &id, Reason: word, DeadHeat: []string{"one", "two"}}
	case 13:
		return event.UsageCharged{Agent: agent, ResourceUnits: n, InputTokens: null(), OutputTokens: null(), CostMicroUSD: null()}
	case 14:
		return event.AgentFinished{Agent: agent, Source: source, Success: flag, Detail: word}
	case 15:
		return event.AgentInterrupted{Agent: agent, Source: source, Detail: word}
	case 16:
		return event.AgentTerminated{Agent: agent, Reason: word}
	case 17:
		return event.AgentOutraced{Agent: agent, Reason: word}
	case 18:
		return event.CompetitorStateChanged{Territory: id, From: "building", To: state, Reason: word}
	case 19:
		return event.MatchStateChanged{From: "running", To: rapid.SampledFrom([]string{"running", "finished", "aborted"}).Draw(t, "match")}
	case 20:
		status := uint16(502)
		return event.HealthObserved{Territory: id, Healthy: flag, Status: &status, LatencyMS: n, Detail: word}
	case 21:
		return event.ResourcesChanged{Territory: id, Delta: -1, Remaining: n, Reason: word}
	case 22:
		return event.TerritoryEliminated{Territory: id, Source: source, Detail: word}
	case 23:
		return event.InfrastructureFailure{Component: word, Source: source, Detail: word}
	}
	return rapid.SampledFrom([]event.Body{
		event.OperatorNote{Author: word, Text: word}, event.AttackStarted{Territory: id, Milestone: m, Attack: word}, event.HeatPaused{Author: word},
		event.SeatUnavailable{Territory: id, Source: source, Detail: word}, event.AgentActionStarted{Territory: id, Agent: agent, Command: word},
		event.LimitReached{Agent: agent, Limit: "turns"}, event.CanarySample{Territory: id, Outcome: "failed"},
		event.Unknown{Name: "newer", Raw: json.RawMessage(`{"schema_version":1,"sequence":1,"elapsed_ms":3,"kind":"newer","prev":"00"}`)},
	}).Draw(t, "ours")
}

// Folded by the reference's rules, what is exported is the reference's part of our
// world.
func TestReferenceFoldsToOurWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := []event.Body{event.HeatPrepared{Driver: "sim"}, event.MatchStateChanged{From: "preparing", To: "running"}}
		for _, id := range []string{"two", "one"} {
			bodies = append(bodies, event.TerritoryRegistered{Territory: id, Class: "c", Agent: "agent-" + id}, event.AgentStarted{Agent: "agent-" + id, Territory: id, Model: "m"})
		}
		bodies = append(bodies, rapid.SliceOfN(rapid.Custom(drawBody), 0, 60).Draw(t, "bodies")...)
		bodies = append(bodies, event.PostMatchDrainFinished{}) // the last clock is one that the reference sees
		w := world.New()
		var log lines
		ms := uint64(0)
		for i, b := range bodies {
			ms += uint64(rapid.IntRange(0, 3).Draw(t, "ms"))
			line := event.Encode(event.Event{Sequence: uint64(i), ElapsedMS: ms, Prev: "0123", Body: b})
			e, err := (&event.Decoder{Raw: true}).Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			world.Apply(w, e)
			log = append(log, line)
		}
		var out bytes.Buffer
		written, _, err := export.Reference(&out, log)
		if err != nil {
			t.Fatal(err)
		}
		ref := newReducer()
		for i, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
			checkForm(t, line, i)
			ref.apply(line)
		}
		raw, err := w.ReferenceJSON()
		if err != nil {
			t.Fatal(err)
		}
		want := decode(raw).(map[string]any)
		want["last_sequence"] = json.Number(fmt.Sprint(written - 1))
		for _, s := range want["territories"].(map[string]any) {
			for _, m := range s.(map[string]any)["milestones"].(map[string]any) {
				if m := m.(map[string]any); m["failure_category"] != nil {
					m["failure_category"] = "verification_failed"
				}
			}
		}
		// Compared as JSON, so that numbers are numbers.
		got, err := json.Marshal(ref.world)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(decode(got), any(want)) {
			wantText, _ := json.Marshal(want)
			t.Fatalf("the reference folds it to\n%s\nand our world is\n%s", got, wantText)
		}
	})
}

func decode(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// reducer is the reference's, written anew from its description (recordings
// reference, section 3) over untyped values: it shares nothing with package world.
type reducer struct{ world map[string]any }

func newReducer() *reducer {
	return &reducer{map[string]any{"match_state": "preparing", "territories": map[string]any{}, "agents": map[string]any{}, "winner": nil,
		"finish_reason": nil, "infrastructure_failures": num(0), "last_sequence": nil, "elapsed_ms": num(0)}}
}

func num(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

func sum(a, b any) json.Number {
	x, y := new(big.Int), new(big.Int)
	x.SetString(fmt.Sprint(a), 10)
	if b != nil {
		y.SetString(fmt.Sprint(b), 10)
	}
	return json.Number(x.Add(x, y).String())
}

func (r *reducer) territory(e map[string]any) map[string]any {
	all := r.world["territories"].(map[string]any)
	id := e["territory"].(string)
	if all[id] == nil {
		all[id] = map[string]any{"class": nil, "agent": nil, "state": "provisioning", "resources": num(0), "last_health": nil, "elimination_source": nil,
			"elimination_detail": nil, "competitor_state": nil, "milestones": map[string]any{}, "milestone_points": num(0), "durable_at_ms": nil}
	}
	return all[id].(map[string]any)
}

func (r *reducer) milestone(e map[string]any) map[string]any {
	all := r.territory(e)["milestones"].(map[string]any)
	id := e["milestone"].(string)
	if all[id] == nil {
		all[id] = map[string]any{"evaluating": false, "passed": false, "points": num(0), "evidence": nil, "failure_category": nil, "failure_detail": nil}
	}
	return all[id].(map[string]any)
}

func newAgent() map[string]any {
	return map[string]any{"territory": "", "model": "", "running": false, "successful": nil, "failure_source": nil, "terminal_state": nil, "terminal_detail": nil,
		"resource_units_used": num(0), "input_tokens": num(0), "output_tokens": num(0), "cost_microusd": num(0)}
}

func (r *reducer) agent(e map[string]any) map[string]any {
	all := r.world["agents"].(map[string]any)
	id := e["agent"].(string)
	if all[id] == nil {
		all[id] = newAgent()
	}
	return all[id].(map[string]any)
}

func (r *reducer) end(e map[string]any, success, source any, state string, detail any) {
	a := r.agent(e)
	a["running"], a["successful"], a["failure_source"], a["terminal_state"], a["terminal_detail"] = false, success, source, state, detail
}

func (r *reducer) apply(line []byte) {
	e := decode(line).(map[string]any) // of a doubled key the last counts
	r.world["last_sequence"], r.world["elapsed_ms"] = e["sequence"], e["elapsed_ms"]
	switch e["kind"] {
	case "territory_registered":
		t := r.territory(e)
		t["class"], t["agent"] = e["class"], e["agent"]
	case "match_state_changed":
		r.world["match_state"] = e["to"]
	case "territory_state_changed":
		r.territory(e)["state"] = e["to"]
	case "health_observed":
		r.territory(e)["last_health"] = map[string]any{"healthy": e["healthy"], "status": e["status"], "latency_ms": e["latency_ms"], "detail": e["detail"]}
	case "agent_started":
		a := newAgent()
		a["territory"], a["model"], a["running"] = e["territory"], e["model"], true
		r.world["agents"].(map[string]any)[e["agent"].(string)] = a
	case "agent_finished":
		state := "failed"
		if e["success"] == true {
			state = "completed"
		}
		r.end(e, e["success"], e["source"], state, e["detail"])
	case "agent_interrupted":
		r.end(e, nil, e["source"], "interrupted", e["detail"])
	case "agent_terminated":
		r.end(e, nil, "controller", "terminated", e["reason"])
	case "agent_outraced":
		r.end(e, false, "player", "incomplete", e["reason"])
	case "usage_charged":
		a := r.agent(e)
		a["resource_units_used"] = sum(a["resource_units_used"], e["resource_units"])
		for _, key := range []string{"input_tokens", "output_tokens", "cost_microusd"} {
			a[key] = sum(a[key], e[key])
		}
	case "competitor_state_changed":
		r.territory(e)["competitor_state"] = e["to"]
	case "milestone_evaluation_started":
		r.milestone(e)["evaluating"] = true
	case "milestone_passed":
		t, m := r.territory(e), r.milestone(e)
		if m["passed"] == false {
			t["milestone_points"] = sum(t["milestone_points"], e["points"])
		}
		m["evaluating"], m["passed"], m["points"], m["evidence"], m["failure_category"], m["failure_detail"] = false, true, e["points"], e["evidence"], nil, nil
	case "milestone_failed":
		m := r.milestone(e)
		m["evaluating"], m["failure_category"], m["failure_detail"] = false, e["category"], e["detail"]
	case "milestone_revoked":
		t, m := r.territory(e), r.milestone(e)
		if m["passed"] == true {
			left := sum(t["milestone_points"], "-"+fmt.Sprint(m["points"]))
			if strings.HasPrefix(left.String(), "-") { // points are unsigned: passed again with more, they are not below none
				left = num(0)
			}
			t["milestone_points"] = left
		}
		m["evaluating"], m["passed"], m["evidence"] = false, false, nil
	case "durable_deployment_completed":
		t := r.territory(e)
		t["competitor_state"], t["durable_at_ms"] = "durable", e["elapsed_ms"]
	case "resources_changed":
		r.territory(e)["resources"] = e["remaining"]
	case "territory_eliminated":
		t := r.territory(e)
		t["state"], t["elimination_source"], t["elimination_detail"] = "eliminated", e["source"], e["detail"]
	case "infrastructure_failure":
		r.world["infrastructure_failures"] = sum(r.world["infrastructure_failures"], 1)
	case "match_finished":
		if r.world["match_state"] != "aborted" {
			r.world["match_state"] = "finished"
		}
		r.world["winner"], r.world["finish_reason"] = e["winner"], e["reason"]
	}
}
