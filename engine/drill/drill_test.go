package drill

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/internal/shared"
	"refbox/engine/recording"
	"refbox/engine/register"
)

// tape writes a heat that never ran. What it says comes at its instants.
type tape struct {
	manifest func(*arena.Manifest)
	driver   string
	say      []at
	unsealed bool
	aborted  bool
	reason   string
	end      uint64
}

type at struct {
	ms   uint64
	body event.Body
}

func pass(ms uint64, territory, milestone string) at {
	return at{ms, event.MilestonePassed{Territory: territory, Milestone: milestone, Points: 1, Evidence: json.RawMessage("{}"), Attempt: 1}}
}

func (x tape) measure(t *testing.T) (Measure, error) {
	t.Helper()
	dir := t.TempDir() + "/heat-1"
	p, to, store, copies := arena.Restore, "writes", "app-db", "app-db-dump"
	m := &arena.Manifest{SchemaVersion: 1, Arena: arena.Arena{ID: "lab", DisplayName: "Lab", Mode: arena.BuildRace},
		Procedure: &p, Clock: &arena.Clock{To: to}, Store: &store, Copy: &copies,
		Build: &arena.Build{CompletionMilestone: "writes", Milestones: []arena.Milestone{{ID: "reads", Required: true}, {ID: "writes", Required: true}}}}
	if x.manifest != nil {
		x.manifest(m)
	}
	started := time.Date(2026, 10, 13, 23, 59, 59, 0, time.UTC)
	w, err := recording.Create(dir, recording.Start{Seed: []byte("s"), Manifest: m, Match: recording.Match{ControllerVersion: "test", ArenaID: "lab", StartedAt: &started}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if x.driver == "" {
		x.driver = "qemu"
	}
	say := func(ms uint64, bodies ...event.Body) {
		for _, b := range bodies {
			if _, err := w.Append(ms, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	say(0, event.HeatPrepared{Driver: x.driver}, event.MatchStateChanged{From: "preparing", To: "running"})
	for _, id := range []string{"one", "two", "three"} {
		say(0, event.TerritoryRegistered{Territory: id, Class: "c", Agent: "agent-" + id})
	}
	for _, e := range x.say {
		say(e.ms, e.body)
	}
	if x.end > 0 {
		to := "finished"
		if x.aborted {
			to = "aborted"
		}
		say(x.end, event.MatchStateChanged{From: "running", To: to}, event.MatchFinished{Reason: x.reason})
	}
	if !x.unsealed {
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return Of(t.Context(), rec)
}

const first = "first durable deployment"

func words(m Measure) string {
	var out []string
	for _, s := range m.Seats {
		x := s.Territory + " " + s.Words()
		if s.Paused {
			x += " paused"
		}
		out = append(out, x)
	}
	return strings.Join(out, "; ")
}

// Every rule of the clock and of outcomes.
func TestMeasure(t *testing.T) {
	crash := func(m *arena.Manifest) { m.Exercises = []arena.Exercise{{Scenario: "s", Fault: "power-cut"}} }
	for _, x := range []struct {
		name, want string
		tape
	}{
		{"to the first pass of the named milestone, not to the end", "one 42s (38987 ms); two at least 55000 ms, censored: another seat got there first; three at least 55000 ms, censored: another seat got there first",
			tape{say: []at{pass(38_987, "one", "writes"), pass(54_000, "one", "reboot")}, end: 55_000, reason: first}},
		{"several get there", "one 42s (38987 ms); two 42s (39000 ms); three at least 55000 ms, censored: another seat got there first",
			tape{say: []at{pass(38_987, "one", "writes"), pass(39_000, "two", "writes")}, end: 55_000, reason: first}},
		{"nobody gets there in the whole time", "one failed: not there in 15.1m; two failed: not there in 15.1m; three failed: not there in 15.1m", tape{end: 900_001, reason: timedOut}},
		{"with the time over, but somebody there", "one 6s (1 ms); two at least 900000 ms, censored: another seat got there first; three at least 900000 ms, censored: another seat got there first",
			tape{say: []at{pass(1, "one", "writes")}, end: 900_000, reason: timedOut}},
		{"another reason than the time", "one at least 5000 ms, censored: lights out; two at least 5000 ms, censored: lights out; three at least 5000 ms, censored: lights out", tape{end: 5_000, reason: "lights out"}},
		{"taken back for good", "one failed: not there in 15m; two failed: not there in 15m; three failed: not there in 15m",
			tape{say: []at{pass(10, "one", "writes"), {20, event.MilestoneRevoked{Territory: "one", Milestone: "writes"}}}, end: 900_000, reason: timedOut}},
		{"taken back and passed again", "one 6s (30 ms)", tape{say: []at{pass(10, "one", "writes"), {20, event.MilestoneRevoked{Territory: "one", Milestone: "writes"}}, pass(30, "one", "writes")}, end: 40, reason: first}},
		{"from a milestone", "one 6s (70 ms); two at least 0 ms, censored: its clock never started",
			tape{manifest: func(m *arena.Manifest) { from := "reads"; m.Clock.From = &from }, say: []at{pass(30, "one", "reads"), pass(100, "one", "writes"), pass(100, "two", "writes")}, end: 200, reason: first}},
		{"from the fault's confirmation", "one 6s (600 ms); two at least 0 ms, censored: its clock never started",
			tape{manifest: crash, say: []at{{100, event.FaultInjected{Territory: "one", Fault: "power-cut", Target: "host"}}, {400, event.FaultConfirmed{Territory: "one", Fault: "power-cut", Target: "host", Receipt: json.RawMessage(`{"confirmed":true}`)}}, pass(1_000, "one", "writes"),
				{100, event.FaultInjected{Territory: "two", Fault: "disk-full", Target: "host"}}, {400, event.FaultConfirmed{Territory: "two", Fault: "disk-full", Target: "host", Receipt: json.RawMessage(`{"confirmed":true}`)}}}, end: 2_000, reason: first}},
		{"passed before the fault only", "one at least 1600 ms, censored: lights out",
			tape{manifest: crash, say: []at{pass(50, "one", "writes"), {100, event.FaultInjected{Territory: "one", Fault: "power-cut", Target: "host"}}, {400, event.FaultConfirmed{Territory: "one", Fault: "power-cut", Target: "host", Receipt: json.RawMessage(`{"confirmed":true}`)}}}, end: 2_000, reason: "lights out"}},
		{"an arena that starts broken", "one 6s (1000 ms)",
			tape{manifest: func(m *arena.Manifest) {
				crash(m)
				m.Exercises = append(m.Exercises, arena.Exercise{Scenario: "s", Fault: arena.StartsBroken})
			}, say: []at{{100, event.FaultInjected{Territory: "one", Fault: "power-cut", Target: "host"}}, {400, event.FaultConfirmed{Territory: "one", Fault: "power-cut", Target: "host", Receipt: json.RawMessage(`{"confirmed":true}`)}}, pass(1_000, "one", "writes")}, end: 2_000, reason: first}},
		{"a seat that could not go on is no failure", "one failed: not there in 15m; two at least 300 ms, censored: the machine died",
			tape{say: []at{{300, event.SeatUnavailable{Territory: "two", Source: "provider", Detail: "the machine died"}}}, end: 900_000, reason: timedOut}},
		{"a pause", "one 6s (500 ms) paused; two at least 900 ms, censored: another seat got there first paused",
			tape{say: []at{{200, event.HeatPaused{Author: "a", Reason: "r"}}, {200, event.HeatResumed{Author: "a", Reason: "r", PausedMS: 5000}}, pass(500, "one", "writes")}, end: 900, reason: first}},
		{"a pause after it", "one 6s (500 ms); two at least 900 ms, censored: another seat got there first paused",
			tape{say: []at{pass(500, "one", "writes"), {600, event.HeatPaused{Author: "a", Reason: "r"}}, {600, event.HeatResumed{Author: "a", Reason: "r", PausedMS: 5000}}}, end: 900, reason: first}},
	} {
		m, err := x.measure(t)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if got := words(m); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s:\n%s\nwant %s", x.name, got, x.want)
		}
		if m.Day != "2026-10-13" || !strings.HasPrefix(m.ID, "heat-1@") || len(m.Doubts) > 0 {
			t.Errorf("%s: %+v", x.name, m)
		}
	}
}

// What measures nothing says why.
func TestMeasuresNothing(t *testing.T) {
	none := func(m *arena.Manifest) { m.Procedure, m.Clock, m.Store, m.Copy = nil, nil, nil, nil }
	if _, err := (tape{manifest: none, end: 5, reason: first}).measure(t); !errors.Is(err, ErrNoProcedure) {
		t.Errorf("%v", err)
	}
	for want, x := range map[string]tape{
		"was aborted":       {end: 5, aborted: true, reason: "no power"},
		"not over":          {unsealed: true},
		"counts for nobody": {say: []at{{3, event.RefereeRuling{Ruling: event.RulingVoided, Reason: "r", Author: "a"}}}, end: 5, reason: first},
	} {
		if _, err := x.measure(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func starter(t *testing.T) (*register.Source, *register.Document) {
	t.Helper()
	data, err := register.Starter("toml")
	if err != nil {
		t.Fatal(err)
	}
	src, err := register.Parse("mine.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := src.Derive(register.Settings{On: "2026-10-14"})
	if err != nil {
		t.Fatal(err)
	}
	return src, doc
}

// What makes a heat a rehearsal, each reason by a heat that has it alone.
func TestRehearsals(t *testing.T) {
	_, doc := starter(t)
	set := func(p **string, s string) { *p = &s }
	good := tape{say: []at{pass(38_987, "one", "writes")}, end: 55_000, reason: first}
	for want, x := range map[string]struct {
		store    string
		driver   string
		unsealed bool
		say      []at
		m        func(*arena.Manifest)
	}{
		"":                                {},
		"its machines were not real ones": {driver: "sim"},
		"a script of the arena's own started its machines: nobody knows what they were": {m: func(m *arena.Manifest) { m.Guest = &arena.Guest{Runner: "run.sh"} }},
		"arena lab names no store: its machines held nothing of app-db":                 {store: "app-db", m: func(m *arena.Manifest) { m.Store, m.Copy = nil, nil }},
		"arena lab is of the store cache":                                               {store: "app-db", m: func(m *arena.Manifest) { set(&m.Store, "cache") }},
		"arena lab does not say of which copy of app-db its machines are":               {m: func(m *arena.Manifest) { m.Copy = nil }},
		"app-db has no copy dump":                                                       {m: func(m *arena.Manifest) { set(&m.Copy, "dump") }},
		"app-db-bucket is only planned: nothing can have run on it":                     {m: func(m *arena.Manifest) { set(&m.Copy, "app-db-bucket") }},
		"app-db-replica is a streaming-replica, which cannot be restored from":          {m: func(m *arena.Manifest) { set(&m.Copy, "app-db-replica") }},
		"the promotion is of app-db-replica, not of app-db-dump":                        {m: func(m *arena.Manifest) { set(&m.Procedure, arena.Promotion) }},
		"app-db has no queue that drains":                                               {m: func(m *arena.Manifest) { set(&m.Procedure, arena.Drain) }},
		"registers keep no drills of rollouts":                                          {m: func(m *arena.Manifest) { set(&m.Procedure, arena.Rollout) }},
		"m-9 is none of app-db":                                                         {m: func(m *arena.Manifest) { set(&m.Procedure, arena.Rollback); set(&m.Migration, "m-9") }},
		"it stood still while the clock ran":                                            {say: []at{{200, event.HeatPaused{}}, {200, event.HeatResumed{PausedMS: 5}}}},
	} {
		y := good
		y.driver, y.manifest = x.driver, x.m
		y.say = append(x.say, good.say...)
		m, err := y.measure(t)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		o, err := m.For(doc, x.store)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := strings.Join(o.Because, "; "); got != want || o.Drill() != (want == "") {
			t.Errorf("because %q, want %q", got, want)
		}
		if len(o.Additions) != 1 || o.Additions[0].Rehearses != (want != "") || *o.Additions[0].Drill.MeasuredMinutes != 0.7 || *o.Additions[0].Drill.MeasuredMs != 38_987 {
			t.Errorf("%s: %+v", want, o.Additions)
		}
	}
	m, err := (tape{unsealed: true, say: good.say, end: 9, reason: first}).measure(t)
	if err != nil || len(m.Doubts) != 1 || !strings.Contains(m.Doubts[0], "chained and sealed") {
		t.Errorf("%v %v", err, m.Doubts)
	}
	if _, err := m.For(doc, "moon"); !errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), "it has app-db, cache") {
		t.Errorf("%v", err)
	}
	m.Store = ""
	if _, err := m.For(doc, ""); err == nil || !strings.Contains(err.Error(), "names no store") {
		t.Errorf("%v", err)
	}
}

// A rehearsal changes no finding; a drill closes what it is of; censored seats add
// nothing, and what the register has is not added again.
func TestOffer(t *testing.T) {
	src, before := starter(t)
	good := tape{say: []at{pass(38_987, "one", "writes"), pass(39_000, "two", "writes")}, end: 55_000, reason: first}
	m, err := good.measure(t)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(o Offer) (*register.Source, *register.Document) {
		t.Helper()
		e, err := src.Add(o.Additions)
		if err != nil {
			t.Fatal(err)
		}
		after, err := e.After.Derive(register.Settings{On: "2026-10-14"})
		if err != nil {
			t.Fatal(err)
		}
		return e.After, after
	}
	o, err := m.For(before, "")
	if err != nil || len(o.Additions) != 2 || len(o.Verdicts) != 2 || !o.Verdicts[0].Holds {
		t.Fatalf("%v %+v", err, o)
	}
	_, after := apply(o)
	c := register.Diff(before, after)
	if len(c.Closed) != 1 || c.Closed[0].Code != "restore-never-drilled" || len(c.Opened) != 0 || len(c.Drills) != 2 || !*c.Drills[1].Holds {
		t.Errorf("%+v", c)
	}
	if d := after.Stores[0].LastDrill; *d.MeasuredMs != 39_000 || after.Summary.Drilled != 1 {
		t.Errorf("the slowest is not the last: %+v", d)
	}
	if again, err := m.For(after, ""); err != nil || len(again.Additions) != 0 || again.Known != 2 || again.Nothing != "" {
		t.Errorf("%v %+v", err, again)
	}
	good.driver = "sim"
	if m, err = good.measure(t); err != nil {
		t.Fatal(err)
	}
	if o, err = m.For(before, ""); err != nil {
		t.Fatal(err)
	}
	_, after = apply(o)
	c = register.Diff(before, after)
	if len(c.Closed)+len(c.Opened)+len(c.Turned)+len(c.Cells)+len(c.Summary) != 0 || len(c.Drills) != 2 || !c.Drills[0].Rehearsed || len(after.Stores[0].Rehearsals) != 2 {
		t.Errorf("a rehearsal changes something: %+v", c)
	}
	rehearsed := after
	if again, err := m.For(rehearsed, ""); err != nil || len(again.Additions) != 0 || again.Known != 2 {
		t.Errorf("a rehearsal is added twice: %v %+v", err, again)
	}
	// What made it a rehearsal was mended in the register: it is a drill that is not known.
	real := m
	real.Doubts = nil
	if o, err = real.For(rehearsed, ""); err != nil || !o.Drill() || len(o.Additions) != 2 || o.Known != 0 {
		t.Errorf("a kept rehearsal hides the drill: %v %+v", err, o)
	}
	// And what is a drill already is no rehearsal beside it.
	if o, err = real.For(before, ""); err != nil {
		t.Fatal(err)
	}
	_, drilled := apply(o)
	if o, err = m.For(drilled, ""); err != nil || o.Drill() || len(o.Additions) != 0 || o.Known != 2 {
		t.Errorf("a drill is added as a rehearsal: %v %+v", err, o)
	}
	cut := tape{end: 5_000, reason: "lights out"}
	if m, err = cut.measure(t); err != nil {
		t.Fatal(err)
	}
	if o, err = m.For(before, ""); err != nil || len(o.Additions) != 0 || !strings.Contains(o.Nothing, "cut short") {
		t.Errorf("%v %+v", err, o)
	}
	late := tape{end: 900_000, reason: timedOut}
	if m, err = late.measure(t); err != nil {
		t.Fatal(err)
	}
	if o, err = m.For(before, ""); err != nil || len(o.Additions) != 3 || o.Additions[0].Drill.Outcome != register.Fail || o.Additions[0].Drill.MeasuredMinutes != nil {
		t.Fatalf("%v %+v", err, o)
	}
	_, after = apply(o)
	c = register.Diff(before, after)
	if len(c.Opened) != 1 || c.Opened[0].Code != "restore-drill-failed" || len(c.Closed) != 1 {
		t.Errorf("%+v", c)
	}
}

// A millisecond over an objective of two hours breaks it.
func TestAMillisecondOver(t *testing.T) {
	_, doc := starter(t)
	doc.Stores[0].Objectives.RTOMinutes = 120
	for ms, holds := range map[uint64]bool{7_200_000: true, 7_200_001: false} {
		m, err := (tape{say: []at{pass(ms, "one", "writes")}, end: ms + 1, reason: first}).measure(t)
		if err != nil {
			t.Fatal(err)
		}
		o, err := m.For(doc, "")
		if err != nil || len(o.Verdicts) != 1 || o.Verdicts[0].Holds != holds {
			t.Errorf("%d ms: %v %+v", ms, err, o.Verdicts)
		}
	}
}

// The season of the reference, as its part 3 counts it, and bound to a store of the
// seed as it does.
func TestReferenceSeason(t *testing.T) {
	data, err := os.ReadFile(shared.Shared(t, "seeds", "week.json"))
	if err != nil {
		t.Fatal(err)
	}
	var week struct {
		Rounds []struct {
			Arena string `json:"arena_id"`
			Heats []struct {
				Output    string
				Standings []struct {
					Territory string  `json:"territory"`
					Fleet     string  `json:"fleet_id"`
					Durable   *uint64 `json:"durable_at_ms"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &week); err != nil {
		t.Fatal(err)
	}
	var list []Measure
	for _, r := range week.Rounds {
		for _, h := range r.Heats {
			m := Measure{Arena: r.Arena, ID: "h@" + h.Output, Day: "2026-10-13", Procedure: register.Restoring, Store: "coolify-state", Copy: "coolify-dump-local"}
			for _, s := range h.Standings {
				seat := Seat{Territory: s.Territory, Agent: s.Fleet, Outcome: Censored}
				if s.Durable != nil {
					seat.Outcome, seat.MS = Passed, int64(*s.Durable)
				}
				m.Seats = append(m.Seats, seat)
			}
			settle(m.Seats, first)
			list = append(list, m)
		}
	}
	sums := Sum(list)
	if len(sums) != 2 || sums[0].Arena != "primary-failover" || sums[0].Finished != 2 || sums[0].Censored != 4 || *sums[0].MinMS != 38_987 || sums[0].MedianMS != nil ||
		sums[1].Finished != 1 || sums[1].Censored != 2 || register.TenthsUp(*sums[1].MinMS) != 2.1 {
		t.Errorf("%v", sums)
	}
	if register.TenthsUp(38_987) != 0.7 || register.TenthsUp(207_909) != 3.5 {
		t.Error("minutes are not rounded up to a tenth")
	}
	src, err := register.Load(shared.Shared(t, "register", "declared.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := src.LoadEstate(shared.Shared(t, "register", "externals.json")); err != nil {
		t.Fatal(err)
	}
	set := register.Settings{On: "2026-10-14", Profile: register.Full}
	before, err := src.Derive(set)
	if err != nil {
		t.Fatal(err)
	}
	o, err := list[0].For(before, "")
	if err != nil || !o.Drill() || len(o.Additions) != 1 {
		t.Fatalf("%v %+v", err, o)
	}
	e, err := src.Add(o.Additions)
	if err != nil {
		t.Fatal(err)
	}
	after, err := e.After.Derive(set)
	if err != nil {
		t.Fatal(err)
	}
	c := register.Diff(before, after)
	if len(c.Closed) != 1 || c.Closed[0].Code != "restore-never-drilled" || c.Closed[0].StoreID != "coolify-state" || after.Summary.Drilled != 2 {
		t.Errorf("%+v, %d drilled", c.Closed, after.Summary.Drilled)
	}
	stale := false
	for _, f := range after.Findings {
		stale = stale || f.Code == "restore-drill-stale" && f.StoreID == "jarvisos-postgres" && strings.Contains(f.Detail, "94 days")
	}
	if !stale {
		t.Error("the drill of jarvisos-postgres is not stale by then")
	}
	// As the seeds stand no arena names a store, so all are rehearsals.
	list[0].Store, list[0].Copy = "", ""
	if o, err = list[0].For(before, "coolify-state"); err != nil || o.Drill() {
		t.Errorf("%v %+v", err, o)
	}
}

// The median is Kaplan and Meier's, of five finishes or more.
func TestMedian(t *testing.T) {
	of := func(passed []int64, censored ...int64) Figures {
		m := Measure{Arena: "a"}
		for _, ms := range passed {
			m.Seats = append(m.Seats, Seat{Outcome: Passed, MS: ms})
		}
		for _, ms := range censored {
			m.Seats = append(m.Seats, Seat{Outcome: Censored, MS: ms})
		}
		return Sum([]Measure{m})[0]
	}
	five := []int64{50, 10, 40, 20, 30}
	for _, x := range []struct {
		f    Figures
		want int64 // 0: none
	}{
		{of(five[:4]), 0},
		{of(five), 30},
		{of(five, 5, 5, 5), 30},               // gone before anybody finished
		{of(five, 35, 35, 35), 40},            // 7/8, 6/8, 5/8, then one of two
		{of(five, 60, 60, 60, 60, 60, 60), 0}, // most did not finish
	} {
		switch {
		case x.want == 0 && x.f.MedianMS != nil:
			t.Errorf("%v", x.f)
		case x.want != 0 && (x.f.MedianMS == nil || *x.f.MedianMS != x.want):
			t.Errorf("%v, want a median of %d", x.f, x.want)
		}
	}
}
