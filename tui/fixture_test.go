package tui

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		childMain()
		return
	}
	time.Local = time.UTC // ages in golden frames
	goleak.VerifyTestMain(m)
}

// taped is a heat that a test writes.
type taped struct {
	t     testing.TB
	dir   string
	w     *recording.Writer
	clock atomic.Uint64
	casts map[string]*recording.CastWriter
}

func ptr[T any](v T) *T { return &v }

// demoArena has three seats, four milestones and a topology with every kind of
// link.
func demoArena() *arena.Manifest {
	milestone := func(id, name string, points uint64, needs ...string) arena.Milestone {
		return arena.Milestone{ID: id, DisplayName: name, Points: points, DependsOn: needs, Required: true, TimeoutSeconds: 30}
	}
	node := func(id, name, kind string, x, y uint8, m string) arena.Node {
		n := arena.Node{ID: id, DisplayName: name, Kind: kind, X: x, Y: y}
		if m != "" {
			n.Milestone = &m
		}
		return n
	}
	return &arena.Manifest{
		SchemaVersion: 1,
		Arena:         arena.Arena{ID: "demo-failover", DisplayName: "Demo Failover", Mode: arena.BuildRace},
		Rules:         arena.Rules{DurationSeconds: 900, TickMS: 1000},
		Build: &arena.Build{StopOnFirstDurable: true, CompletionMilestone: "reboot", Milestones: []arena.Milestone{
			milestone("reads-restored", "Reads restored", 20), milestone("primary-fenced", "Primary fenced", 30, "reads-restored"),
			milestone("writes-restored", "Writes restored", 30, "primary-fenced"), milestone("reboot", "Survives a reboot", 20, "writes-restored"),
		}},
		Visualization: &arena.Visualization{
			Nodes: []arena.Node{
				node("client", "Client", "client", 8, 20, ""), node("router", "Data Router", "proxy", 40, 20, "writes-restored"),
				node("old", "Old Primary", "database", 85, 15, "primary-fenced"), node("replica", "Replica", "database", 85, 55, "reads-restored"),
				node("host", "Host", "host", 20, 85, "reboot"),
			},
			Links: []arena.Link{
				{From: "client", To: "router", Kind: "traffic", Label: ptr("HTTP")}, {From: "router", To: "old", Kind: "traffic"},
				{From: "router", To: "replica", Kind: "traffic"}, {From: "old", To: "replica", Kind: "replication"},
				{From: "host", To: "router", Kind: "lifecycle"},
			},
		},
		Territories: []arena.Territory{{ID: "failover-one"}, {ID: "failover-two"}, {ID: "failover-three"}},
	}
}

// startTape begins a heat's folder called demo-heat.
func startTape(t testing.TB, m *arena.Manifest) *taped {
	t.Helper()
	x := &taped{t: t, dir: filepath.Join(t.TempDir(), "demo-heat"), casts: map[string]*recording.CastWriter{}}
	id := "demo-failover"
	if m != nil {
		id = m.Arena.ID
	}
	w, err := recording.Create(x.dir, recording.Start{
		Match:    recording.Match{ControllerVersion: "test", ArenaID: id, ArenaMode: "buildrace", StartedAt: ptr(epoch)},
		Manifest: m, Seed: []byte("0123456789abcdef"), Clock: x.clock.Load,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.w = w
	t.Cleanup(func() { w.Close() })
	return x
}

// epoch is when every test heat started.
var epoch = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func (x *taped) add(ms uint64, bodies ...event.Body) {
	x.t.Helper()
	x.clock.Store(ms)
	for _, b := range bodies {
		if _, err := x.w.Append(ms, b); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *taped) console(seat, s string) {
	x.t.Helper()
	c := x.casts[seat]
	if c == nil {
		var err error
		if c, err = x.w.Console(seat, "main"); err != nil {
			x.t.Fatal(err)
		}
		x.casts[seat] = c
	}
	c.Write([]byte(s)) //nolint:errcheck // never fails
	c.Flush()
}

var demoSeats = []string{"failover-one", "failover-two", "failover-three"}

// begin writes how a heat of three seats starts, up to 2 s.
func (x *taped) begin() {
	var prepared []event.PreparedSeat
	for i, s := range demoSeats {
		adapter := []string{"script:right", "script:careful", "command"}[i]
		prepared = append(prepared, event.PreparedSeat{Territory: s, Machines: []string{"main"}, Agent: "agent-" + s[9:], Adapter: adapter})
	}
	x.add(0, event.HeatPrepared{Driver: "sim", Start: "cold", TookMS: 120, Seats: prepared}, event.MatchStateChanged{From: "preparing", To: "running"})
	for _, s := range demoSeats {
		x.add(0, event.TerritoryRegistered{Territory: s, Class: "builder", Agent: "agent-" + s[9:]},
			event.AgentStarted{Agent: "agent-" + s[9:], Territory: s, Model: "lab/glm-flash"},
			event.CompetitorStateChanged{Territory: s, From: "preparing", To: "building", Reason: "agent started"})
		x.console(s, "[\x1b[32m  OK  \x1b[m] Started ssh.service.\r\n[\x1b[32m  OK  \x1b[m] Reached target 多ユーザ.\r\n\r\nDebian GNU/Linux 12 "+s+" ttyS0\r\n\r\n"+s+" login: ")
	}
	for i := range uint64(5) {
		for _, s := range demoSeats {
			x.fail(200+i*400, s, "reads-restored", i+1, "GET /health: 502")
		}
	}
}

func (x *taped) fail(ms uint64, seat, milestone string, attempt uint64, detail string) {
	x.t.Helper()
	record := x.evidence(seat, milestone, attempt, "failed", detail, 502)
	x.add(ms, event.MilestoneEvaluationStarted{Territory: seat, Milestone: milestone, Attempt: attempt},
		event.MilestoneFailed{Territory: seat, Milestone: milestone, Category: "contract", Detail: detail, Retryable: true, Attempt: attempt, Record: record, Source: "player"})
}

func (x *taped) evidence(seat, milestone string, attempt uint64, verdict, reason string, status int) string {
	x.t.Helper()
	name, _, err := x.w.Evidence(seat, milestone, attempt, map[string]any{
		"verdict": verdict, "category": "contract", "source": "player", "reason": reason, "verifier": "verify/" + milestone + ".star", "verifier_sha256": "0123456789abcdef",
		"started_ms": 200, "finished_ms": 260,
		"records": []map[string]any{{"call": "http", "machine": "main", "at_ms": 210, "took_ms": 4, "outside": true, "forgeable": "what is answered: root runs the service",
			"request": map[string]any{"method": "GET", "url": "/health"}, "response": map[string]any{"status": status, "body": "upstream 8081 does not answer"}}},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return name
}

func (x *taped) pass(ms uint64, seat, milestone string, points, attempt uint64) {
	x.t.Helper()
	record := x.evidence(seat, milestone, attempt, "passed", "", 200)
	x.add(ms, event.MilestoneEvaluationStarted{Territory: seat, Milestone: milestone, Attempt: attempt},
		event.MilestonePassed{Territory: seat, Milestone: milestone, Points: points, Evidence: json.RawMessage(`{"status":200}`), Attempt: attempt, Record: record})
}

func (x *taped) action(ms uint64, seat string, number uint64, command string, exit int) {
	x.t.Helper()
	agent := "agent-" + seat[9:]
	x.add(ms, event.AgentActionStarted{Territory: seat, Agent: agent, Action: number, Channel: "exec", Machine: "main", Command: command})
	x.add(ms+100, event.AgentActionFinished{Territory: seat, Agent: agent, Action: number, Exit: &exit, TookMS: 100, Output: "8081\nprimary\n", Bytes: 13})
}

// middle writes what happens between 2 s and 8 s.
func (x *taped) middle() {
	one, two, three := demoSeats[0], demoSeats[1], demoSeats[2]
	x.action(2000, one, 1, "cat /var/lib/failover/upstream", 0)
	x.action(2400, two, 1, "# look first\n\nsystemctl status failover-primary --no-pager", 3)
	x.action(2600, three, 1, "printf '8082\\n' >/var/lib/failover/upstream", 0)
	x.fail(3000, three, "reads-restored", 6, "GET /role: reads come from a replica")
	x.pass(3500, one, "reads-restored", 20, 6)
	x.add(4000, event.MilestoneEvaluationStarted{Territory: one, Milestone: "primary-fenced", Attempt: 1},
		event.AttackStarted{Territory: one, Milestone: "primary-fenced", Attack: "the old primary is started and written to"})
	x.add(4300, event.AttackFinished{Territory: one, Milestone: "primary-fenced", Attack: "the old primary is started and written to", Held: true, TookMS: 300, Undone: true, Detail: "withstood"})
	x.pass(4400, one, "primary-fenced", 30, 1)
	x.add(5000, event.OperatorNote{Author: "referee", Text: "seat three guesses"})
	x.action(5200, one, 2, "systemctl mask --now failover-primary && echo masked", 0)
	x.fail(6000, two, "reads-restored", 6, "GET /health: 502")
	x.add(7000, event.MilestoneEvaluationStarted{Territory: one, Milestone: "writes-restored", Attempt: 1})
}

// finish writes the end, at 9 s, and seals the heat.
func (x *taped) finish() { x.finishAt(9000) }

func (x *taped) finishAt(end uint64) {
	x.t.Helper()
	one := demoSeats[0]
	x.pass(end-1000, one, "writes-restored", 30, 2)
	x.console(one, "\x1b[31mreboot: Restarting system\x1b[m\r\n[  OK  ] Started ssh.service.\r\n"+one+" login: ")
	x.pass(end, one, "reboot", 20, 1)
	x.add(end, event.CompetitorStateChanged{Territory: one, From: "verifying", To: "durable", Reason: "completion milestone passed"},
		event.DurableDeploymentCompleted{Territory: one, DurableAt: ptr(end - 50), NotBefore: ptr(end - 200)})
	for _, s := range demoSeats[1:] {
		x.add(end, event.CompetitorStateChanged{Territory: s, From: "building", To: "incomplete", Reason: "outraced by " + one})
	}
	x.add(end, event.MatchStateChanged{From: "running", To: "finished"}, event.MatchFinished{Winner: ptr(one), Reason: "first durable deployment"})
	for _, s := range demoSeats {
		if err := x.w.Artifact(s, "result.json", map[string]string{"territory": s}); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := x.w.Finish(); err != nil {
		x.t.Fatal(err)
	}
}

// demoHeat is the folder of a whole heat.
func demoHeat(t testing.TB) string {
	x := startTape(t, demoArena())
	x.begin()
	x.middle()
	x.finish()
	return x.dir
}
