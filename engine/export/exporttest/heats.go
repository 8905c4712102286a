// Package exporttest writes heats that exports are tested with. It is for tests.
package exporttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
)

// Small writes a heat of two seats with everything that a page shows, and returns
// its folder. Its bytes are the same each time.
func Small(t testing.TB) string {
	t.Helper()
	h := start(t, "small-heat", manifest(), func(s string) string { return s })
	h.race()
	h.finish()
	return h.dir
}

// Canaried is Small with writes of the referee's client, some of them lost, to its first
// seat.
func Canaried(t testing.TB) string {
	t.Helper()
	h := start(t, "canary-heat", manifest(), func(s string) string { return s })
	h.race()
	h.add(4000, event.CanarySample{Territory: seats[0], Write: 7, Writes: 7, SinceMS: ptr(uint64(0)), Outcome: "indeterminate", Indeterminate: 7})
	h.add(5000, event.CanarySample{Territory: seats[0], Write: 10, Writes: 3, SinceMS: ptr(uint64(4000)), Outcome: "acknowledged", Acknowledged: 3, Indeterminate: 7},
		event.CanaryResult{Territory: seats[0], Writes: 10, Acknowledged: 3, Indeterminate: 7, Lost: 2, LossMS: 700, Outages: 1, OutageMS: 4100, LongestMS: 4100,
			OutageFromMS: ptr(uint64(0)), FirstAckMS: ptr(uint64(4100))})
	h.finish()
	return h.dir
}

// Hostile writes a heat in whose every field, file and name is s, and returns its
// folder.
func Hostile(t testing.TB, s string) string {
	t.Helper()
	name := strings.NewReplacer("/", "_", "\x00", "_").Replace("heat" + s)
	for len(name) > 200 {
		name = name[:200]
	}
	m := manifest()
	fill(reflect.ValueOf(m), s)
	m.Build.CompletionMilestone = s
	m.Rules.DurationSeconds, m.Rules.TickMS = 900, 1000
	h := start(t, name, m, func(was string) string {
		if i := slices.Index(slices.Concat(seats, agents), was); i >= 0 {
			return fmt.Sprint(s, i%len(seats)) // seats are told apart
		}
		return s
	})
	h.race()
	for _, b := range everyKind() {
		v := reflect.New(reflect.TypeOf(b)).Elem()
		fill(v.Addr(), s)
		h.add(5000, v.Interface().(event.Body))
	}
	h.finish()
	return h.dir
}

// Large writes a heat of n events over a quarter of an hour, most of them failures
// as in the reference's logs, and returns its folder.
func Large(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "large-heat")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := manifest().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var log []byte
	seq := uint64(0)
	add := func(ms uint64, b event.Body) {
		log = append(append(log, event.Encode(event.Event{Sequence: seq, ElapsedMS: ms, Body: b})...), '\n')
		seq++
	}
	for i, s := range seats {
		add(0, event.TerritoryRegistered{Territory: s, Class: "builder", Agent: agents[i]})
		add(0, event.AgentStarted{Agent: agents[i], Territory: s, Model: "lab/model"})
	}
	add(0, event.MatchStateChanged{From: "preparing", To: "running"})
	zero := 0
	for i := 0; int(seq) < n-2; i++ {
		s, ms := i%len(seats), uint64(i)*900_000/uint64(n)
		switch i % 20 {
		case 0:
			add(ms, event.AgentActionStarted{Territory: seats[s], Agent: agents[s], Action: uint64(i), Channel: "exec", Machine: "host", Command: "systemctl status proxy"})
		case 2:
			add(ms, event.AgentActionFinished{Territory: seats[s], Agent: agents[s], Action: uint64(i - 2), Exit: &zero, TookMS: 40})
		case 5, 7, 9, 11, 13, 15, 17, 19:
			add(ms, event.MilestoneFailed{Territory: seats[s], Milestone: "reads", Category: "contract", Detail: "GET /health: 502", Retryable: true})
		default:
			add(ms, event.MilestoneEvaluationStarted{Territory: seats[s], Milestone: "reads"})
		}
	}
	add(900_000, event.MatchStateChanged{From: "running", To: "finished"})
	add(900_000, event.MatchFinished{Reason: "match timer expired"})
	for name, data := range map[string][]byte{"events.jsonl": log, "arena.json": text} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Strings are what a hostile guest, agent or file may say.
func Strings() map[string]string {
	return map[string]string{
		"escapes":  "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x1b[?1049h",
		"osc52":    "\x1b]52;c;AAAA\x1b\\copied",
		"c1":       "\u009b31m\u009d0;t\u009c \x9b31m",
		"bidi":     "\u202eevil\u2066\u200b\u00ad txt",
		"nul":      "a\x00b\x7fc\rd\ne",
		"invalid":  "\xff\xfe\xc3(",
		"markup":   `<script>alert(1)</script>"'><img src=x onerror=alert(1)><!-- `,
		"close":    "</title></style></pre></svg><script>alert(1)</script>",
		"url":      "javascript:alert(1)",
		"template": "{{.}}${1}`x`",
		"wide":     "多ユーザ👩‍👩‍👧\u0301\u0301\u0301",
	}
}

var (
	seats  = []string{"failover-one", "failover-two"}
	agents = []string{"careful", "hasty"}
)

func ptr[T any](v T) *T { return &v }

func manifest() *arena.Manifest {
	milestone := func(id, name string, points uint64, needs ...string) arena.Milestone {
		return arena.Milestone{ID: id, DisplayName: name, Points: points, DependsOn: needs, Required: true, TimeoutSeconds: 30}
	}
	return &arena.Manifest{
		SchemaVersion: 1,
		Arena:         arena.Arena{ID: "small-failover", DisplayName: "Small Failover", Mode: arena.BuildRace},
		Rules:         arena.Rules{DurationSeconds: 900, TickMS: 1000},
		Build: &arena.Build{StopOnFirstDurable: true, CompletionMilestone: "writes", Milestones: []arena.Milestone{
			milestone("reads", "Reads restored", 40), milestone("fence", "Primary fenced", 20, "reads"), milestone("writes", "Writes restored", 40, "fence"),
		}},
		Visualization: &arena.Visualization{
			Nodes: []arena.Node{
				{ID: "client", DisplayName: "Client", Kind: "client", X: 10, Y: 20},
				{ID: "router", DisplayName: "Router", Kind: "proxy", X: 50, Y: 20, Milestone: ptr("reads")},
				{ID: "db", DisplayName: "Database", Kind: "database", X: 90, Y: 60, Milestone: ptr("writes")},
			},
			Links: []arena.Link{{From: "client", To: "router", Kind: "traffic", Label: ptr("HTTP")}, {From: "router", To: "db", Kind: "traffic"}},
		},
		Territories: []arena.Territory{{ID: seats[0]}, {ID: seats[1]}},
	}
}

type heat struct {
	t     testing.TB
	dir   string
	w     *recording.Writer
	clock atomic.Uint64
	say   func(string) string
}

func start(t testing.TB, name string, m *arena.Manifest, say func(string) string) *heat {
	t.Helper()
	h := &heat{t: t, dir: filepath.Join(t.TempDir(), name), say: say}
	started := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	w, err := recording.Create(h.dir, recording.Start{
		Match: recording.Match{ControllerVersion: say("0.1.0"), SourceRevision: ptr(say("abcdef")), ArenaID: say("small-failover"), ArenaMode: "buildrace",
			StartedAt: &started, Machines: map[string]string{say("sim"): say("1")}},
		Manifest: m, Seed: []byte("0123456789abcdef"), Clock: h.clock.Load,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.w = w
	t.Cleanup(func() { w.Close() })
	return h
}

func (h *heat) add(ms uint64, bodies ...event.Body) {
	h.t.Helper()
	h.clock.Store(ms)
	for _, b := range bodies {
		if _, err := h.w.Append(ms, b); err != nil {
			h.t.Fatal(err)
		}
	}
}

// race is what happens until the end: one fails and passes, the other only fails.
func (h *heat) race() {
	s := h.say
	one, two := s(seats[0]), s(seats[1])
	h.add(0, event.HeatPrepared{Driver: s("sim"), Start: s("cold"), TookMS: 120, Seats: []event.PreparedSeat{
		{Territory: one, Machines: []string{s("host")}, Agent: s(agents[0]), Adapter: s("script:careful")},
		{Territory: two, Machines: []string{s("host")}, Agent: s(agents[1]), Adapter: s("script:hasty"), Note: s("played by a script")},
	}}, event.MatchStateChanged{From: "preparing", To: "running"})
	for i, seat := range []string{one, two} {
		agent := s(agents[i])
		h.add(0, event.TerritoryRegistered{Territory: seat, Class: s("builder"), Agent: agent},
			event.AgentStarted{Agent: agent, Territory: seat, Model: s("lab/model")},
			event.CompetitorStateChanged{Territory: seat, From: "preparing", To: "building", Reason: s("SSH preflight passed")})
		c, err := h.w.Console(seat, s("host"))
		if err != nil {
			h.t.Fatal(err)
		}
		c.Write([]byte("[  OK  ] Started " + s("ssh.service") + "\r\n" + s("login: "))) //nolint:errcheck // never fails
		c.Flush()
		h.fail(1000, seat, "reads", 1)
		h.fail(2000, seat, "reads", 2)
	}
	agent := s(agents[0])
	exit := 0
	h.add(2500, event.AgentActionStarted{Territory: one, Agent: agent, Action: 1, Channel: s("exec"), Machine: s("host"), Command: s("systemctl stop old-primary && echo <done>")})
	h.add(2700, event.AgentActionFinished{Territory: one, Agent: agent, Action: 1, Exit: &exit, TookMS: 200, Output: s("<done>\n"), Bytes: 7})
	h.pass(3000, one, "reads", 40, 3)
	h.add(3200, event.AttackStarted{Territory: one, Milestone: s("fence"), Attack: s("the old primary is started")})
	h.add(3400, event.AttackFinished{Territory: one, Milestone: s("fence"), Attack: s("the old primary is started"), Held: true, Undone: true, TookMS: 200, Detail: s("no write was acknowledged")})
	h.pass(3500, one, "fence", 20, 1)
	h.add(3600, event.UsageCharged{Agent: agent, InputTokens: ptr(uint64(1200)), OutputTokens: ptr(uint64(80)), CostMicroUSD: ptr(uint64(1234))},
		event.OperatorNote{Author: s("referee"), Text: s("seat two guesses")},
		event.FaultInjected{Territory: two, Fault: s("slow-disk"), Target: s("host"), Author: s("referee"), Reason: s("drill")})
}

func (h *heat) finish() {
	h.t.Helper()
	s := h.say
	one := s(seats[0])
	h.pass(6000, one, "writes", 40, 1)
	h.add(6000, event.CompetitorStateChanged{Territory: one, From: "verifying", To: "durable", Reason: s("completion milestone passed")},
		event.DurableDeploymentCompleted{Territory: one, DurableAt: ptr(uint64(5800)), NotBefore: ptr(uint64(5700)), AttackMS: 200},
		event.MatchStateChanged{From: "running", To: "finished"},
		event.MatchFinished{Winner: &one, Reason: s("first durable deployment")},
		event.PostMatchDrainStarted{TimeoutMS: 1000, PendingAgents: 2},
		event.AgentFinished{Agent: s(agents[0]), Source: s("player"), Success: true, Detail: s("done")},
		event.AgentOutraced{Agent: s(agents[1]), Reason: s("failover-one was first")},
		event.PostMatchDrainFinished{CapturedAgents: 2})
	if err := h.w.Finish(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *heat) evidence(seat, milestone string, attempt uint64, verdict string) (file, sha string) {
	s := h.say
	file, sha, err := h.w.Evidence(seat, milestone, attempt, map[string]any{
		"verdict": verdict, "reason": s("502"), "records": []map[string]any{{
			"call": s("http"), "machine": s("host"), "at_ms": 990, "took_ms": 4, "outside": true, "forgeable": s("what is answered"), "refused": s("status is 502"),
			"request": map[string]any{"url": s("/health")}, "response": map[string]any{s("body"): s("<upstream> does not answer")},
		}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return file, sha
}

func (h *heat) fail(ms uint64, seat, milestone string, attempt uint64) {
	h.t.Helper()
	milestone = h.say(milestone)
	file, sha := h.evidence(seat, milestone, attempt, "failed")
	h.add(ms, event.MilestoneEvaluationStarted{Territory: seat, Milestone: milestone, Attempt: attempt},
		event.MilestoneFailed{Territory: seat, Milestone: milestone, Category: h.say("contract"), Detail: h.say("GET /health: 502"), Retryable: true,
			Attempt: attempt, Record: file, RecordSHA: sha, Source: h.say("player")})
}

func (h *heat) pass(ms uint64, seat, milestone string, points, attempt uint64) {
	h.t.Helper()
	milestone = h.say(milestone)
	file, sha := h.evidence(seat, milestone, attempt, "passed")
	shown, err := json.Marshal(map[string]any{h.say("status"): h.say("200")})
	if err != nil {
		h.t.Fatal(err)
	}
	h.add(ms, event.MilestoneEvaluationStarted{Territory: seat, Milestone: milestone, Attempt: attempt},
		event.MilestonePassed{Territory: seat, Milestone: milestone, Points: points, Evidence: shown, Attempt: attempt,
			Record: file, RecordSHA: sha, NotBefore: ptr(ms - 20), HeldAt: ptr(ms - 10)})
}

// fill puts s into every string that v, a pointer, leads to.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), s)
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			// A pointer to a table stays as it is: an absent one has a meaning.
			if v.Type().Field(i).IsExported() && (f.Kind() != reflect.Pointer || !f.IsNil() || f.Type().Elem().Kind() == reflect.String) {
				fill(f, s)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw, err := json.Marshal(map[string]string{s: s})
			if err != nil {
				panic(err)
			}
			v.Set(reflect.ValueOf(json.RawMessage(raw)))
			return
		}
		if v.Len() == 0 && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	}
}

// everyKind is a body of each kind.
func everyKind() []event.Body {
	return []event.Body{
		event.MatchStateChanged{}, event.TerritoryRegistered{}, event.AgentStarted{}, event.CompetitorStateChanged{},
		event.MilestoneEvaluationStarted{}, event.MilestonePassed{Points: 1}, event.MilestoneFailed{}, event.MilestoneRevoked{},
		event.DurableDeploymentCompleted{}, event.MatchFinished{}, event.UsageCharged{}, event.PostMatchDrainStarted{},
		event.PostMatchDrainFinished{}, event.AgentFinished{}, event.AgentInterrupted{}, event.AgentTerminated{}, event.AgentOutraced{},
		event.HealthObserved{}, event.TerritoryStateChanged{}, event.ResourcesChanged{}, event.TerritoryEliminated{}, event.InfrastructureFailure{},
		event.HeatPrepared{}, event.AgentActionStarted{Action: 7}, event.AgentActionFinished{Action: 7}, event.AttackStarted{}, event.AttackFinished{},
		event.FaultInjected{}, event.FaultConfirmed{}, event.FaultCleared{}, event.FaultFailed{}, event.CanarySample{}, event.CanaryResult{}, event.LimitReached{},
		event.SeatUnavailable{}, event.HeatPaused{}, event.HeatResumed{}, event.ConsoleAttached{}, event.ConsoleDetached{}, event.RefereeRuling{},
		event.OperatorNote{}, event.HostileOutput{}, event.Unknown{Name: "newer", Raw: json.RawMessage(`{"schema_version":1,"sequence":0,"elapsed_ms":5000,"kind":"newer"}`)},
	}
}
