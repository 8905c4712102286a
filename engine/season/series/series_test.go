package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"refbox/engine/internal/shared"
	"refbox/engine/season"
)

func published(t *testing.T, name string) (Series, []byte) {
	t.Helper()
	data, err := os.ReadFile(shared.Shared(t, "series", name, "series.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s Series
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s, data
}

// recordings that are here of the published series, by round.
var recordings = map[string]map[int]string{
	"durable-job-queue-20260814-194238": {1: "durable-job-queue-20260814-194238-round-001"},
	"oracle-smoke-2":                    {2: "oracle-smoke-2-round-002"},
}

func runsOf(t *testing.T, name string) map[int]Run {
	t.Helper()
	out := map[int]Run{}
	for n, dir := range recordings[name] {
		r, err := ReadRun(t.Context(), shared.Shared(t, "recordings", dir))
		if err != nil {
			t.Fatal(err)
		}
		out[n] = r
	}
	return out
}

func broken(checks []season.Check) (list []season.Check) {
	for _, c := range checks {
		if c.Verdict == season.Broken {
			list = append(list, c)
		}
	}
	return list
}

func TestPublishedSeries(t *testing.T) {
	for name := range recordings {
		s, data := published(t, name)
		again, err := json.MarshalIndent(s, "", "  ")
		if err != nil || string(again) != string(data) {
			t.Errorf("%s: written again it differs: %v %s", name, err, cmp.Diff(string(data), string(again)))
		}
		runs := runsOf(t, name)
		if b := broken(s.Check(runs)); len(b) > 0 {
			t.Errorf("%s: %+v", name, b)
		}
		for n, r := range runs {
			if diff := cmp.Diff(s.Rounds[n-1], RoundOf(n, s.Rounds[n-1].Output, r)); diff != "" {
				t.Errorf("%s, round %d (-published +recomputed):\n%s", name, n, diff)
			}
		}
	}
}

// TestAPublishedSeriesIsAggregatedEqually: with heats made to say what the series sums up, its
// standings come out equal, the sums, the upper median and the order included.
func TestAPublishedSeriesIsAggregatedEqually(t *testing.T) {
	s, _ := published(t, "durable-job-queue-20260814-194238")
	runs := make([]Run, len(s.Rounds))
	var outputs []string
	for i, r := range s.Rounds {
		run := Run{ArenaID: s.ArenaID, Finished: true, DurationMS: r.DurationMS, Winner: *r.WinnerTerritory}
		for _, st := range s.Standings {
			p := Player{Agent: st.Agent, Model: st.Model, Territory: r.Seats[st.Agent], UsageRecorded: true}
			if i == 0 { // all of the sums in one round
				p.InputTokens, p.OutputTokens, p.CostMicroUSD = *st.InputTokens, *st.OutputTokens, *st.CostMicroUSD
			}
			if *r.WinnerAgent == st.Agent && i > 0 { // round 1 was won by points
				at := map[int]int64{1: 227867, 2: 66120}[i]
				p.DurableMS = &at
			}
			run.Players = append(run.Players, p)
		}
		slices.SortFunc(run.Players, func(a, b Player) int { return strings.Compare(a.Agent, b.Agent) })
		runs[i] = run
		outputs = append(outputs, r.Output)
	}
	got := Aggregate(s.ArenaID, s.RoundsRequested, outputs, runs)
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("(-published +aggregated)\n%s", diff)
	}
	all := map[int]Run{1: runs[0], 2: runs[1], 3: runs[2]}
	if b := broken(s.Check(all)); len(b) > 0 {
		t.Errorf("%+v", b)
	}
	for name, change := range map[string]func(*Series){
		"seat": func(x *Series) { x.Rounds[1].Seats["luna-queue-builder"] = "queue-one" }, "wins": func(x *Series) { x.Standings[0].Wins++ },
		"cost": func(x *Series) { *x.Standings[0].CostMicroUSD++ }, "order": func(x *Series) { slices.Reverse(x.Standings) },
		"folder": func(x *Series) { x.Rounds[0].Output += "x" }, "winner": func(x *Series) { *x.Rounds[2].WinnerAgent = "glm-queue-builder" },
		"usage": func(x *Series) { x.Rounds[0].UsageAgents = nil }, "count": func(x *Series) { x.RoundsCompleted++ },
	} {
		worse, _ := published(t, "durable-job-queue-20260814-194238")
		change(&worse)
		if len(broken(worse.Check(all))) == 0 {
			t.Errorf("%s: a change is not found", name)
		}
	}
}

func TestResume(t *testing.T) {
	s, _ := published(t, "oracle-smoke-2")
	key := func(string) (string, error) { return "k", nil }
	if err := s.Resumable("first-build", 3, "k", key); err != nil {
		t.Error(err)
	}
	gap, _ := published(t, "oracle-smoke-2")
	gap.Rounds[1].Round = 3
	for name, err := range map[string]error{
		"arena": s.Resumable("other", 3, "k", key), "rounds": s.Resumable("first-build", 4, "k", key), "key": s.Resumable("first-build", 3, "new", key),
		"gap": gap.Resumable("first-build", 3, "k", key),
	} {
		if !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plan := []Planned{{"a", "a.toml", "k", 3, "01-a"}}
	b := Bench("s", []ArenaRuns{{Planned: plan[0]}})
	if err := b.Resumable("s", plan); err != nil {
		t.Error(err)
	}
	if err := b.Resumable("s", []Planned{{"a", "a.toml", "k2", 3, "01-a"}}); !errors.Is(err, ErrOther) {
		t.Errorf("another key: %v", err)
	}
}

// TestBenchmarkOfRecordedHeats sums up the three heats that are here of the
// published benchmark.
func TestBenchmarkOfRecordedHeats(t *testing.T) {
	var arenas []ArenaRuns
	var all []Run
	for i, name := range []string{"first-build-real-round-003", "durable-job-queue-round-002", "primary-failover-round-002"} {
		r, err := ReadRun(t.Context(), shared.Shared(t, "recordings", "infra-core-"+name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		arenas = append(arenas, ArenaRuns{Planned: Planned{r.ArenaID, name, r.Key, 1, fmt.Sprintf("%02d-%s", i+1, r.ArenaID)}, Runs: []Run{r}})
	}
	b := Bench("infra-core", arenas)
	if b.ArenasCompleted != 3 || len(b.Standings) != 3 {
		t.Fatalf("%+v", b)
	}
	luna := b.Standings[0]
	if luna.Model != "openai/gpt-5.6-luna" || luna.Adapter != "claux" || luna.ReasoningEffort != "high" || luna.Wins != 2 || luna.Appearances != 3 ||
		!slices.Equal(luna.DurableTimesMS, []int64{42589, 824025}) || *luna.MedianDurableMS != 824025 {
		t.Errorf("%+v", luna)
	}
	n := 0
	for _, k := range luna.Failures {
		n += k
	}
	if n != 3 {
		t.Errorf("the reference counts how all of its sessions ended: %v", luna.Failures)
	}
	if bad := broken(b.Check(arenas)); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
	f := Compute(all)
	for _, p := range f.Players {
		if p.Model == luna.Model {
			if k := p.Failures["arena"] + p.Failures["player"] + p.Failures["controller"]; k > 0 || p.Durable.Estimate == 0 || p.Heats != 3 {
				t.Errorf("winning or being outraced is no failure: %+v", p)
			}
			if p.Durable.Low >= p.Durable.Estimate || p.Durable.High <= p.Durable.Estimate {
				t.Errorf("no interval: %+v", p.Durable)
			}
		}
	}
	if len(f.Pairs) != 3 || len(f.Apart) != 3 {
		t.Errorf("pairs %+v, apart %+v", f.Pairs, f.Apart)
	}
	worse := b
	worse.Standings = slices.Clone(b.Standings)
	worse.Standings[0].MilestonePasses++
	if len(broken(worse.Check(arenas))) == 0 {
		t.Error("a changed number is not found")
	}
}

func TestAWinnerIsNoFailure(t *testing.T) {
	f := Compute([]Run{{Name: "h", Finished: true, Winner: "t1", Host: Host{PreparedMS: -1}, Players: []Player{
		{Model: "a", Territory: "t1", FailureSource: "player"}, {Model: "b", Territory: "t2", FailureSource: "player"}, {Model: "c", Territory: "t3"}}}})
	for _, p := range f.Players {
		want := map[string]map[string]int{"a": {}, "b": {"player": 1}, "c": {"unknown": 1}}[p.Model]
		if !reflect.DeepEqual(p.Failures, want) {
			t.Errorf("%s: %v, want %v", p.Model, p.Failures, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	// Wilson's interval of 8 of 12, as tables have it.
	w := wilson(8, 12)
	if math.Abs(w.Low-0.3906) > 5e-4 || math.Abs(w.High-0.8619) > 5e-4 {
		t.Errorf("%+v", w)
	}
	if w := wilson(0, 0); w.Low != 0 || w.High != 1 {
		t.Errorf("nothing is known of no heats: %+v", w)
	}
	// Of 10 values the 2nd and the 9th hold the median with 97.9 %, of 6 the ends.
	var list []int64
	for i := range 10 {
		list = append(list, int64(10*(10-i)))
	}
	if m := middle(list); m.Estimate != 55 || m.Low != 20 || m.High != 90 {
		t.Errorf("%+v", m)
	}
	if m := middle(list[:6]); m.Low != 50 || m.High != 100 || strings.Contains(m.How, "few") {
		t.Errorf("%+v", m)
	}
	if m := middle(list[:5]); !strings.Contains(m.How, "too few") {
		t.Errorf("%+v", m)
	}
	if middle(nil) != nil {
		t.Error("a median of nothing")
	}
}

func TestHeatsAreKeptApart(t *testing.T) {
	run := func(name, key string, ready int64) Run {
		return Run{Name: name, ArenaID: "x", Key: key, Finished: true, Host: Host{"tcg", "3", ready}, Players: []Player{{Model: "a"}, {Model: "b"}}}
	}
	slow, other, aborted, unknown := run("slow", "k", 4000), run("other", "k2", 1000), run("aborted", "k", 1000), run("unknown", "k", -1)
	aborted.Finished = false
	f := Compute([]Run{run("1", "k", 1000), run("2", "k", 1100), run("3", "k", 1000), slow, other, aborted, unknown})
	var got []string
	for _, a := range f.Apart {
		got = append(got, a.Heat)
	}
	slices.Sort(got)
	if want := []string{"aborted", "other", "slow", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("apart: %v, want %v", f.Apart, want)
	}
	for _, p := range f.Players {
		if p.Heats != 6 || p.CostUnknown != 6 || p.CostMicroUSD != nil {
			t.Errorf("unknown costs stay unknown, aborted heats are left out: %+v", p)
		}
	}
}

func TestSuite(t *testing.T) {
	good := "schema_version = 1\n[suite]\nid = \"core\"\nrounds = 2\n[[arenas]]\nmanifest = \"a.toml\"\n[[arenas]]\nmanifest = \"b.toml\"\nrounds = 5\n"
	s, err := ReadSuite([]byte(good))
	if err != nil || !reflect.DeepEqual(s, &Suite{"core", []SuiteArena{{"a.toml", 2}, {"b.toml", 5}}}) {
		t.Errorf("%+v %v", s, err)
	}
	for _, c := range [][2]string{{"rounds = 2", "rounds = 0"}, {"core", "a core"}, {"b.toml", "a.toml"}, {"rounds = 5", "round = 5"}, {"schema_version = 1", "schema_version = 2"}} {
		if _, err := ReadSuite([]byte(strings.Replace(good, c[0], c[1], 1))); err == nil {
			t.Errorf("%s is accepted", c[1])
		}
	}
}

func TestRotation(t *testing.T) {
	s, _ := published(t, "durable-job-queue-20260814-194238")
	for i, r := range s.Rounds {
		got := Rotate([]string{"queue-one", "queue-two", "queue-three"}, []string{"deepseek-queue-builder", "luna-queue-builder", "glm-queue-builder"}, i)
		if !reflect.DeepEqual(got, r.Seats) {
			t.Errorf("round %d: %v, published %v", i+1, got, r.Seats)
		}
	}
}

func TestReadRunRefusesWhatIsNotOver(t *testing.T) {
	if _, err := ReadRun(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a heat that is not there was read")
	}
}

// A document that is wrong everywhere does not fill the memory with what is wrong.
func TestBreaksAreBounded(t *testing.T) {
	s := Series{SchemaVersion: 1, Rounds: make([]Round, 1000)}
	broken := 0
	for _, c := range s.Check(nil) {
		if c.Verdict == season.Broken {
			broken++
		}
	}
	if broken != 50 {
		t.Errorf("%d breaks", broken)
	}
}
