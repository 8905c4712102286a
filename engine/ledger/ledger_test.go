package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/ledger"
	"refbox/engine/ledger/ledgertest"
	"refbox/engine/recording"
)

var now = time.Date(2026, 11, 10, 9, 0, 0, 0, time.UTC)

const today = "2026-11-10"

func policy(t testing.TB) *ledger.Policy {
	t.Helper()
	p, err := ledger.ParsePolicy("policy.toml", assets.LedgerPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// seed is the mission's model; without the test data the test is skipped.
func seed(t testing.TB) []byte {
	t.Helper()
	dir := os.Getenv("REFBOX_DATA")
	if dir == "" {
		dir = "../../../shared"
	}
	data, err := os.ReadFile(filepath.Join(dir, "seeds", "failure-model.json"))
	if err != nil {
		t.Skipf("no test data: %v; set REFBOX_DATA", err)
	}
	return data
}

// book is a ledger of the example in a folder of its own.
func book(t testing.TB) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Init(filepath.Join(t.TempDir(), "ledger"), assets.LedgerModel(), assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// judge records a story and judges it.
func judge(t testing.TB, l *ledger.Ledger, s ledgertest.Story, by ledger.Review) (ledger.Judged, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "heat")
	ledgertest.Heat(t, dir, s)
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if by.By == "" {
		by.By = "the referee's desk"
	}
	j, err := ledger.Terms{Model: l.Model, Policy: l.Policy}.JudgeHeat(t.Context(), rec, by)
	if err != nil {
		t.Fatal(err)
	}
	return j, dir
}

func only(t testing.TB, j ledger.Judged) ledger.Offer {
	t.Helper()
	if len(j.Offers) != 1 {
		t.Fatalf("%d offers, want 1; %v", len(j.Offers), j.Notes)
	}
	return j.Offers[0]
}

func codes(t testing.TB, s ledgertest.Story) []ledger.Code {
	t.Helper()
	j, _ := judge(t, book(t), s, ledger.Review{})
	return only(t, j).Verdict.Refused()
}

// add judges a story and appends what it offers.
func add(t testing.TB, l *ledger.Ledger, s ledgertest.Story, by ledger.Review) (*ledger.Ledger, string) {
	t.Helper()
	j, dir := judge(t, l, s, by)
	var entries []ledger.Entry
	for i := range j.Offers {
		entries = append(entries, ledger.Entry{Kept: j.Offers[i].Kept()})
	}
	next, err := l.Append(now, entries...)
	if err != nil {
		t.Fatal(err)
	}
	return next, dir
}

// clone is the same ledger in another folder.
func clone(t testing.TB, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(l.File))); err != nil {
		t.Fatal(err)
	}
	out, err := ledger.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func decide(t testing.TB, l *ledger.Ledger, d ledger.Decision) *ledger.Ledger {
	t.Helper()
	next, err := l.Append(now, ledger.Entry{Decision: &d})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func state(l *ledger.Ledger, scenario string) ledger.State {
	return l.Derive(ledger.Settings{Today: today}).Row(scenario).State
}

// The seed is kept to the byte, and its own observation, of another lab, is
// declared and no more.
func TestSeed(t *testing.T) {
	data := seed(t)
	l, err := ledger.Parse("failure-model.json", data, policy(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Model.Encode(); !bytes.Equal(got, data) {
		t.Errorf("it encodes to other bytes:\n%s", got)
	}
	if len(l.Findings) > 0 {
		t.Errorf("findings: %v", l.Findings)
	}
	p := l.Derive(ledger.Settings{Today: today})
	if p.Observed != 0 || p.Injectable != 8 || p.Accepted != 1 || p.Owned != 1 {
		t.Errorf("observed %d of %d, %d accepted, %d owned", p.Observed, p.Injectable, p.Accepted, p.Owned)
	}
	var said []string
	for _, f := range p.Findings {
		if f.Severity != ledger.Note {
			t.Errorf("a break: %v", f)
		}
		said = append(said, f.Scenario+": "+f.Text)
	}
	want := []string{"planned-primary-maintenance: observed-by-this-lab is declared, no evidence here",
		"client-session-loss: sampled-by-this-lab; full contract deferred-to-chapter-22 is declared, no evidence here"}
	if !slices.Equal(said, want) {
		t.Errorf("findings %q, want %q", said, want)
	}
	for i := range l.Model.Scenarios {
		s := &l.Model.Scenarios[i]
		if d, err := ledger.ParseDeclared(s.EvidenceState); err != nil || d.String() != s.EvidenceState {
			t.Errorf("%s: %q prints as %q, %v", s.ID, s.EvidenceState, d, err)
		}
		if l.Policy.Rule(s.ID) == nil {
			t.Errorf("the bundled policy has no rule for %s", s.ID)
		}
	}
	if s := l.Model.Scenarios[len(l.Model.Scenarios)-1].Declared(); len(s) != 2 || s[0].By != "this-lab" || s[1].Scope != "full contract" || s[1].Token != "deferred-to" || s[1].By != "chapter-22" {
		t.Errorf("clauses %+v", s)
	}
	used := map[string]bool{}
	for _, f := range l.Policy.Inferences {
		used[f.Needs] = true
	}
	for _, p := range l.Model.Prohibited {
		if !used[p] {
			t.Errorf("nothing in the policy says where %q tempts", p)
		}
	}
}

// The example is sound, says nothing that the seed says, and every scenario has a
// rule.
func TestExample(t *testing.T) {
	l := book(t)
	if len(l.Findings) > 0 || !bytes.Equal(l.Model.Encode(), assets.LedgerModel()) {
		t.Errorf("the example has findings %v, or another form", l.Findings)
	}
	for _, id := range l.Model.IDs() {
		if l.Policy.Rule(id) == nil {
			t.Errorf("no rule for %s", id)
		}
	}
	if p := l.Derive(ledger.Settings{Today: today}); p.Observed != 0 || p.Injectable != 7 {
		t.Errorf("observed %d of %d", p.Observed, p.Injectable)
	}
}

// Each code of a model has a model that is refused with it, at its place.
func TestModelCodes(t *testing.T) {
	base := string(assets.LedgerModel())
	for _, x := range []struct {
		name, old, new string
		code           ledger.Code
		path           string
	}{
		{"schema", `refbox-failure-model-v1`, `refbox-failure-model-v2`, ledger.BadSchema, "schema"},
		{"no JSON", `{`, ``, ledger.BadSchema, ""},
		{"a list", base, `[]`, ledger.BadSchema, ""},
		{"more after it", base, base + " {}", ledger.BadSchema, ""},
		{"same scenario", `"disk-stall"`, `"host-loss"`, ledger.ScenarioSet, "scenarios[3].id"},
		{"no id", `"disk-stall"`, `"Disk stall"`, ledger.ScenarioSet, "scenarios[3].id"},
		{"blank risk", `"a visitor who pays twice"`, `" "`, ledger.BadField, "scenarios[7].data_risk"},
		{"missing risk", `"data_risk": "a visitor who pays twice",`, ``, ledger.BadField, "scenarios[7].data_risk"},
		{"unknown key", `"release"`, `"colour": "red", "release"`, ledger.BadField, ""},
		{"a key twice", `"release": "example-1"`, `"release": "x", "release": "example-1"`, ledger.BadField, "release"},
		{"hostile text", `the tower's disk`, `the\u001b[2J disk`, ledger.BadField, "scenarios[3].failure_domain"},
		{"unknown state", `"accepted-exception"`, `"accepted"`, ledger.BadState, "scenarios[5].evidence_state"},
		{"state with a scope", `"owned-by-the-bookkeeper"`, `"all of it owned-by-the-bookkeeper"`, ledger.BadState, "scenarios[6].evidence_state"},
		{"state that is deferred", `"owned-by-the-bookkeeper"`, `"deferred-to-later"`, ledger.BadState, "scenarios[6].evidence_state"},
		{"second state", `not-injected; refunds owned-by-the-bookkeeper`, `not-injected; refunds observed-by-us`, ledger.BadState, "scenarios[7].evidence_state"},
		{"observed and not counted", `"accepted-exception"`, `"observed-by-us"`, ledger.Overclaim, "status"},
		{"counted and not observed", `model-with-no-observed-scenario`, `model-with-two-observed-scenarios`, ledger.Overclaim, "status"},
		{"nothing prohibited", base[strings.Index(base, `"prohibited_inference"`):], `"prohibited_inference": []}`, ledger.ProhibitedRemoved, "prohibited_inference"},
	} {
		t.Run(x.name, func(t *testing.T) {
			text := strings.Replace(base, x.old, x.new, 1)
			if text == base {
				t.Fatal("nothing was changed")
			}
			_, err := ledger.Parse("m.json", []byte(text), policy(t))
			var bad *ledger.Invalid
			if !errors.As(err, &bad) {
				t.Fatalf("no Invalid: %v", err)
			}
			if i := slices.IndexFunc(bad.Findings, func(f ledger.Finding) bool { return f.Code == x.code && f.Path == x.path }); i < 0 {
				t.Errorf("want %s at %q, got %v", x.code, x.path, bad.Findings)
			} else if x.path != "" && bad.Findings[i].Line == 0 {
				t.Errorf("it has no line: %v", bad.Findings[i])
			}
		})
	}
}

// What ParseDeclared accepts prints as it was written, and of anything else it
// says so.
func TestDeclaredRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`(full contract |a |)(not-injected|observed-by-[a-z0-9-]{0,4}|sampled-by-x|accepted-exception|owned-by-y|deferred-to-z)(; (rest |)(owned-by-b|deferred-to-c|not-injected)){0,2}`).Draw(t, "state")
		if d, err := ledger.ParseDeclared(s); err == nil && d.String() != s {
			t.Fatalf("%q prints as %q", s, d)
		}
	})
}

// Every transition of section 2.3 is allowed, and no other.
func TestTransitions(t *testing.T) {
	type move struct {
		from, to ledger.State
		by       ledger.Cause
	}
	const (
		ev, fix, tm, de = ledger.ByEvidence, ledger.ByFix, ledger.ByTime, ledger.ByDecision
		ni, in, sa      = ledger.NotInjected, ledger.Inconclusive, ledger.Sampled
		ob, co, st      = ledger.Observed, ledger.Contradicted, ledger.Stale
		ac, ow          = ledger.Accepted, ledger.Owned
	)
	allowed := map[move]bool{}
	for _, by := range []ledger.Cause{ev, fix} {
		allowed[move{ni, in, by}] = true
		for _, from := range []ledger.State{ni, in, st} {
			allowed[move{from, sa, by}], allowed[move{from, ob, by}] = true, true
		}
		allowed[move{sa, ob, by}] = true
		for _, from := range []ledger.State{ni, in, sa, ob, st, ac, ow} {
			allowed[move{from, co, by}] = true
		}
	}
	allowed[move{co, ob, fix}] = true
	allowed[move{ob, st, tm}], allowed[move{sa, st, tm}] = true, true
	for _, from := range []ledger.State{ni, sa, ob} {
		allowed[move{from, ow, de}] = true
	}
	allowed[move{ni, ac, de}], allowed[move{ac, ni, de}], allowed[move{ow, ni, de}] = true, true, true
	for _, from := range ledger.States() {
		for _, to := range ledger.States() {
			for _, by := range []ledger.Cause{ev, fix, tm, de} {
				err := ledger.Move(from, to, by)
				if got := err == nil; got != allowed[move{from, to, by}] {
					t.Errorf("%s to %s by %s: %v", from, to, by, err)
				}
				if err == nil {
					continue
				}
				want := ledger.BadTransition
				if to == ob && (by == tm || by == de) {
					want = ledger.Overclaim
				}
				var r *ledger.Refusal
				if !errors.As(err, &r) || r.Code != want {
					t.Errorf("%s to %s by %s: %v, want %s", from, to, by, err, want)
				}
			}
		}
	}
}

// A sound heat passes every gate, and is worth what it covers.
func TestWorth(t *testing.T) {
	x := ledgertest.Exercise()
	x.SingleWriter = new(string)
	*x.SingleWriter = "single"
	whole := []arena.Exercise{x}
	part := x
	part.Coverage, part.Machinery = "partial", "stand-in"
	crash := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill", Coverage: arena.WholeDomain, Machinery: arena.RealMachinery}
	stop := crash
	stop.Fault = "service-stop"
	soon := crash
	soon.WithinSeconds = 2
	planned := arena.Exercise{Scenario: "planned-switchover", Fault: "switchover", Coverage: arena.WholeDomain, Machinery: arena.RealMachinery, Announced: true}
	for _, c := range []struct {
		name  string
		story ledgertest.Story
		want  ledger.State
		why   string
	}{
		{"the whole of it, and a single writer", ledgertest.Story{Exercises: whole, Pass: []string{"single"}}, ledger.Observed, ""},
		{"nobody watched the writers", ledgertest.Story{}, ledger.Sampled, "nobody watched"},
		{"a stand-in", ledgertest.Story{Exercises: []arena.Exercise{part}, Pass: []string{"single"}}, ledger.Sampled, "stands in"},
		{"a fault that samples", ledgertest.Story{Exercises: []arena.Exercise{stop}}, ledger.Sampled, "service-stop only samples"},
		{"a witness that root could forge, and nobody was there", ledgertest.Story{Exercises: []arena.Exercise{crash}, Receipt: `{"confirmed":true,"witness":"systemd","forgeable":"everything"}`}, ledger.Observed, ""},
		{"a witness that root forges", ledgertest.Story{Exercises: []arena.Exercise{crash}, Entered: true, Receipt: `{"confirmed":true,"witness":"systemd","forgeable":"everything"}`}, ledger.Sampled, "could forge"},
		{"a crash", ledgertest.Story{Exercises: []arena.Exercise{crash}}, ledger.Observed, ""},
		{"a tail within the risk", ledgertest.Story{Exercises: []arena.Exercise{crash}, Lost: 3, LossMS: 1500}, ledger.Observed, ""},
		{"a planned switchover that was announced", ledgertest.Story{Exercises: []arena.Exercise{planned}}, ledger.Observed, ""},
		{"a tail beyond the risk", ledgertest.Story{Exercises: []arena.Exercise{crash}, Lost: 12, LossMS: 6000}, ledger.Contradicted, "12 acknowledged writes are lost"},
		{"any loss where none is at risk", ledgertest.Story{Exercises: []arena.Exercise{planned}, Lost: 1, LossMS: 100}, ledger.Contradicted, "1 acknowledged writes are lost"},
		{"a doubled action", ledgertest.Story{Exercises: []arena.Exercise{crash}, Phantoms: 1}, ledger.Contradicted, "a retry doubles"},
		{"two writers, by the verifier", ledgertest.Story{Exercises: whole, Fail: []string{"single"}}, ledger.Contradicted, "2 histories"},
		{"a recovery so slow that nobody could say", ledgertest.Story{Exercises: whole, Late: []string{"single"}}, ledger.Sampled, "nobody watched"},
		{"a slow recovery, and a single writer after all", ledgertest.Story{Exercises: whole, Late: []string{"single"}, Pass: []string{"single"}}, ledger.Observed, ""},
		{"two writers, by an attack", ledgertest.Story{Exercises: whole, Pass: []string{"single"}, Beaten: true}, ledger.Contradicted, "2 histories"},
		{"service later than expected", ledgertest.Story{Exercises: []arena.Exercise{soon}}, ledger.Contradicted, "other than expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, _ := judge(t, book(t), c.story, ledger.Review{})
			v := only(t, j).Verdict
			if v.Outcome != c.want || !strings.Contains(strings.Join(v.Why, "; "), c.why) || c.why == "" && len(v.Why) > 0 {
				t.Errorf("%s %q, want %s %q; refused by %v", v.Outcome, v.Why, c.want, c.why, v.Refused())
			}
		})
	}
}

// What a heat measured is in the evidence.
func TestFigures(t *testing.T) {
	j, _ := judge(t, book(t), ledgertest.Story{}, ledger.Review{})
	e := only(t, j).Evidence
	got := fmt.Sprintf("baseline %d injected %d confirmed %d restored %d end %d gap %d; before %d after %d of %d; %s %s %s; control %d/%d",
		e.Clock.BaselineMS, e.Clock.InjectedMS, e.Clock.ConfirmedMS, *e.Clock.RestoredMS, e.Clock.EndMS, *e.Probe.GapMS,
		e.Probe.Before, e.Probe.After, e.Probe.Acknowledged, e.Day, e.Agent, e.Fault.ConfirmedBy, e.NegativeControl.Cases, e.NegativeControl.Rejected)
	want := "baseline 0 injected 20000 confirmed 20150 restored 24220 end 44700 gap 4020; before 40 after 41 of 81; 2026-11-01 right the host's process table; control 10/10"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, name := range []string{"match.json", "arena.json", "events.jsonl", "world.json", "seats/one/brief.md"} {
		if e.Artifacts[name] == "" {
			t.Errorf("it does not rest on %s", name)
		}
	}
}

// Each gate refuses a heat that lacks what it asks for, and no other gate does.
func TestGatesByHeats(t *testing.T) {
	crash := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill"}
	told := crash
	told.Announced = true
	from := crash
	from.From = new(string)
	*from.From = "writes"
	to := crash
	to.To = new(string)
	*to.To = "writes"
	odd := arena.Exercise{Scenario: "host-loss", Fault: "process-kill"}
	one := func(x arena.Exercise) []arena.Exercise { return []arena.Exercise{x} }
	for _, c := range []struct {
		name  string
		story ledgertest.Story
		want  ledger.Code // "" for none
	}{
		{"sound", ledgertest.Story{Exercises: one(crash)}, ""},
		{"simulated machines", ledgertest.Story{Exercises: one(crash), Driver: "sim"}, ledger.TargetDrift},
		{"not closed properly", ledgertest.Story{Exercises: one(crash), Unsealed: true}, ledger.Integrity},
		{"another scenario's fault", ledgertest.Story{Exercises: one(odd)}, ledger.FaultKind},
		{"announced by the arena", ledgertest.Story{Exercises: one(told)}, ledger.Announced},
		{"announced by the brief", ledgertest.Story{Exercises: one(crash), Brief: "There will be a process kill at noon."}, ledger.Announced},
		{"a fault that did not bite", ledgertest.Story{Exercises: one(crash), Unconfirmed: true}, ledger.Unconfirmed},
		{"confirmed by its injector", ledgertest.Story{Exercises: one(crash), Author: "the desk", Receipt: `{"confirmed":true,"witness":"the desk"}`}, ledger.Unconfirmed},
		{"a receipt that does not confirm", ledgertest.Story{Exercises: one(crash), Receipt: `{"confirmed":false,"witness":"host"}`}, ledger.Unconfirmed},
		{"paused meanwhile", ledgertest.Story{Exercises: one(crash), Pause: true}, ledger.BadClock},
		{"nothing after", ledgertest.Story{Exercises: one(crash), AfterS: 1, OutMS: 20000}, ledger.Bracket},
		{"too little after", ledgertest.Story{Exercises: one(crash), AfterS: 2}, ""},
		{"the expected milestone is open", ledgertest.Story{Exercises: one(to)}, ledger.Bracket},
		{"the expected milestone passed", ledgertest.Story{Exercises: one(to), Pass: []string{"writes"}}, ""},
		{"unread writes", ledgertest.Story{Exercises: one(crash), Unread: 2}, ledger.Tokens},
		{"no result", ledgertest.Story{Exercises: one(crash), NoResult: true}, ledger.Tokens},
		{"a result that is not the samples'", ledgertest.Story{Exercises: one(crash), Miscount: true}, ledger.Tokens},
		{"sick before", ledgertest.Story{Exercises: one(crash), Sick: true}, ledger.Baseline},
		{"not repaired before", ledgertest.Story{Exercises: one(from)}, ledger.Baseline},
		{"repaired before", ledgertest.Story{Exercises: one(from), First: []string{"writes"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []ledger.Code
			if c.want != "" {
				want = []ledger.Code{c.want}
			}
			if got := codes(t, c.story); !slices.Equal(got, want) {
				t.Errorf("refused by %v, want %v", got, want)
			}
		})
	}
}

// What was broken before the heat was never healthy: nothing brackets it, and the
// player was told.
func TestStartsBroken(t *testing.T) {
	x := arena.Exercise{Scenario: "postgres-process-crash", Fault: arena.StartsBroken}
	j, _ := judge(t, book(t), ledgertest.Story{Exercises: []arena.Exercise{x}, NoFault: true}, ledger.Review{})
	o := only(t, j)
	if got, want := o.Verdict.Refused(), []ledger.Code{ledger.Announced, ledger.Bracket, ledger.Baseline}; !slices.Equal(got, want) || o.Verdict.Outcome != ledger.Inconclusive {
		t.Errorf("%s, refused by %v, want %v", o.Verdict.Outcome, got, want)
	}
	if by := o.Evidence.Fault.ConfirmedBy; by != "the referee's probe of reads-restored" {
		t.Errorf("seen by %q", by)
	}
}

// Losses of a heat with several faults are nobody's.
func TestSharedLoss(t *testing.T) {
	x := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill"}
	j, _ := judge(t, book(t), ledgertest.Story{Exercises: []arena.Exercise{x}, Again: true}, ledger.Review{})
	if len(j.Offers) != 2 || j.Offers[0].Verdict.Outcome != ledger.Sampled || j.Offers[1].Verdict.Outcome != ledger.Sampled || j.Offers[0].Evidence.ID == j.Offers[1].Evidence.ID {
		t.Fatalf("two faults give %+v", j.Offers)
	}
	j, _ = judge(t, book(t), ledgertest.Story{Exercises: []arena.Exercise{x}, Again: true, Lost: 1, LossMS: 500}, ledger.Review{})
	for _, o := range j.Offers {
		if got := o.Verdict.Refused(); !slices.Equal(got, []ledger.Code{ledger.Tokens}) {
			t.Errorf("refused by %v", got)
		}
	}
}

// Nothing is inferred from an arena that declares nothing, or a scenario that the
// model does not have.
func TestNothingInferred(t *testing.T) {
	for _, x := range []struct {
		exercises []arena.Exercise
		note      string
	}{
		{[]arena.Exercise{}, "declares no scenario"},
		{[]arena.Exercise{{Scenario: "flood", Fault: "power-cut"}}, "no scenario flood"},
		{[]arena.Exercise{{Scenario: "host-loss", Fault: "freeze"}}, "no seat had the fault freeze"},
		{[]arena.Exercise{{Scenario: "host-loss", Fault: "power-cut", Target: new(string)}}, "no seat had the fault power-cut"},
	} {
		j, _ := judge(t, book(t), ledgertest.Story{Exercises: x.exercises, Fault: "power-cut"}, ledger.Review{})
		if len(j.Offers) != 0 || !strings.Contains(strings.Join(j.Notes, "; "), x.note) {
			t.Errorf("%d offers, %v, want %q", len(j.Offers), j.Notes, x.note)
		}
	}
}

// Ten doctored bundles, each refused by the gate that it offends, and by no other.
func TestDoctored(t *testing.T) {
	l := book(t)
	j, dir := judge(t, l, ledgertest.Story{}, ledger.Review{})
	good := only(t, j).Evidence
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	terms := ledger.Terms{Model: l.Model, Policy: l.Policy}.TermsOf(t.Context(), rec)
	if v := terms.Judge(&good); len(v.Refused()) > 0 {
		t.Fatalf("the good one is refused by %v", v.Refused())
	}
	sum := func(e *ledger.Evidence) { e.Target.Digest = e.Target.Sum() }
	for _, x := range []struct {
		name string
		code ledger.Code
		do   func(*ledger.Evidence)
	}{
		{"another release, with its digest", ledger.TargetDrift, func(e *ledger.Evidence) { e.Target.Release = "2"; sum(e) }},
		{"another policy, with its digest", ledger.TargetDrift, func(e *ledger.Evidence) { e.Target.Policy = e.Target.Arena; sum(e) }},
		{"another image under the old digest", ledger.TargetDrift, func(e *ledger.Evidence) { e.Target.Image = "x" }},
		{"the player's own report", ledger.SelfReport, func(e *ledger.Evidence) { e.Recorder = "right" }},
		{"reviewed by the player", ledger.SelfReport, func(e *ledger.Evidence) { e.Reviewer = "right" }},
		{"reviewed by nobody", ledger.SelfReport, func(e *ledger.Evidence) { e.Reviewer = "" }},
		{"a file that was altered", ledger.Integrity, func(e *ledger.Evidence) {
			e.Artifacts = map[string]string{"events.jsonl": strings.Repeat("0", 64)}
		}},
		{"a file that is not there", ledger.Integrity, func(e *ledger.Evidence) {
			e.Artifacts = map[string]string{"nothing.json": strings.Repeat("0", 64)}
		}},
		{"a file elsewhere", ledger.Integrity, func(e *ledger.Evidence) {
			e.Artifacts = map[string]string{"../../etc/passwd": strings.Repeat("0", 64)}
		}},
		{"no files", ledger.Integrity, func(e *ledger.Evidence) { e.Artifacts = nil }},
		{"another fault", ledger.FaultKind, func(e *ledger.Evidence) { e.Fault.Kind = "slow-link" }},
		{"announced", ledger.Announced, func(e *ledger.Evidence) { e.Fault.AnnouncedToAgent = true }},
		{"confirmed by nobody", ledger.Unconfirmed, func(e *ledger.Evidence) { e.Fault.ConfirmedBy = "" }},
		{"confirmed by its injector", ledger.Unconfirmed, func(e *ledger.Evidence) { e.Fault.ConfirmedBy = e.Fault.Injector }},
		{"restored before it was hurt", ledger.BadClock, func(e *ledger.Evidence) { at := uint64(1); e.Clock.RestoredMS = &at }},
		{"over before it was confirmed", ledger.BadClock, func(e *ledger.Evidence) { e.Clock.EndMS = 1 }},
		{"nothing before", ledger.Bracket, func(e *ledger.Evidence) { e.Probe.Before = 1 }},
		{"nothing after", ledger.Bracket, func(e *ledger.Evidence) { e.Probe.After = 0 }},
		{"a write too many", ledger.Tokens, func(e *ledger.Evidence) { e.Probe.Failed++ }},
		{"more before than at all", ledger.Tokens, func(e *ledger.Evidence) { e.Probe.Before += 100 }},
		{"hurt before", ledger.Baseline, func(e *ledger.Evidence) { e.BaselineHealthy = false }},
		{"a control that let one pass", ledger.Negative, func(e *ledger.Evidence) { e.NegativeControl.Rejected-- }},
		{"no control", ledger.Negative, func(e *ledger.Evidence) { e.NegativeControl = ledger.NegativeControl{} }},
	} {
		spoilt := good
		x.do(&spoilt)
		if got := terms.Judge(&spoilt).Refused(); !slices.Equal(got, []ledger.Code{x.code}) {
			t.Errorf("%s: refused by %v, want %s", x.name, got, x.code)
		}
	}
	terms.Arenas = map[string]string{"lab": "another"}
	if got := terms.Judge(&good).Refused(); !slices.Equal(got, []ledger.Code{ledger.TargetDrift}) {
		t.Errorf("another arena file: refused by %v", got)
	}
}

// What a ledger says of evidence is what its heat gives, or it is found out.
func TestCheck(t *testing.T) {
	l, dir := add(t, book(t), ledgertest.Story{}, ledger.Review{})
	check := func(l *ledger.Ledger) ledger.Report {
		t.Helper()
		r, err := l.Check(t.Context(), ledger.Settings{Today: today}, recording.Open)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := check(l); !r.Holds || r.Heats != 1 || r.Kind != "ledger" || r.Entries != 2 {
		t.Fatalf("a sound ledger: %+v", r)
	}
	// Its figures altered, and the chain made anew: the heat tells.
	forged := *l.Entries[1].Kept
	forged.Probe.Lost, forged.Probe.After = 0, 30
	other, err := ledger.Init(filepath.Join(t.TempDir(), "other"), assets.LedgerModel(), assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	other, err = other.Append(now, ledger.Entry{Kept: &forged})
	if err != nil {
		t.Fatal(err)
	}
	if r := check(other); r.Holds || !told(r.Findings, ledger.Break, ledger.Integrity, "probe") {
		t.Errorf("forged figures: %v", r.Findings)
	}
	// A better outcome than the gates give.
	better := *l.Entries[1].Kept
	better.Outcome = ledger.Observed
	other, err = other.Append(now, ledger.Entry{Kept: &better})
	if err != nil {
		t.Fatal(err)
	}
	p := other.Derive(ledger.Settings{Today: today})
	if p.Row("host-loss").State != ledger.Sampled || !told(p.Findings, ledger.Break, ledger.Integrity, "its gates give sampled") {
		t.Errorf("a forged outcome: %s, %v", p.Row("host-loss").State, p.Findings)
	}
	// A heat that is gone is a note.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r := check(l); !r.Holds || r.Heats != 0 || !told(r.Findings, ledger.Note, "", "is not checked again") {
		t.Errorf("a heat that is gone: %+v", r.Findings)
	}
}

// A ledger that was written before evidence had some of its keys holds; what it says by
// them is checked.
func TestCheckOlder(t *testing.T) {
	single := "single"
	x := ledgertest.Exercise()
	x.SingleWriter, x.To = &single, &single
	l, _ := add(t, book(t), ledgertest.Story{Exercises: []arena.Exercise{x}, Pass: []string{"single"},
		Receipt: `{"confirmed":true,"witness":"systemd","forgeable":"everything"}`}, ledger.Review{})
	whole := *l.Entries[1].Kept
	if whole.Told == nil || whole.Watched == nil || !whole.Fault.Untouched {
		t.Fatalf("the heat shows too little: %+v", whole)
	}
	for _, c := range []struct {
		name  string
		alter func(*ledger.Kept)
		broke string
	}{
		{"as it is", func(*ledger.Kept) {}, ""},
		{"without told", func(k *ledger.Kept) { k.Told = nil }, ""},
		{"without watched", func(k *ledger.Kept) { k.Watched = nil }, ""},
		{"without untouched", func(k *ledger.Kept) { k.Fault.Untouched = false }, ""},
		{"another told", func(k *ledger.Kept) { k.Told = json.RawMessage(`{"a":1}`) }, "told"},
		{"another watched", func(k *ledger.Kept) { k.Watched = json.RawMessage(`{"a":1}`) }, "watched"},
		{"another fault, without untouched", func(k *ledger.Kept) { k.Fault.Untouched, k.Fault.Saw = false, "more" }, "fault"},
	} {
		k := whole
		c.alter(&k)
		other, err := ledger.Init(filepath.Join(t.TempDir(), "other"), assets.LedgerModel(), assets.LedgerPolicy(), now)
		if err != nil {
			t.Fatal(err)
		}
		if other, err = other.Append(now, ledger.Entry{Kept: &k}); err != nil {
			t.Fatal(err)
		}
		r, err := other.Check(t.Context(), ledger.Settings{Today: today}, recording.Open)
		if err != nil {
			t.Fatal(err)
		}
		if c.broke == "" {
			var found []string
			for _, f := range r.Findings {
				if f.Severity == ledger.Break && strings.Contains(f.Text, "not what its heat gives") {
					found = append(found, f.Text)
				}
			}
			if found != nil {
				t.Errorf("%s: %q", c.name, found)
			}
		} else if !told(r.Findings, ledger.Break, ledger.Integrity, c.broke) {
			t.Errorf("%s: %v", c.name, r.Findings)
		}
	}
}

func told(list []ledger.Finding, s ledger.Severity, code ledger.Code, text string) bool {
	return slices.ContainsFunc(list, func(f ledger.Finding) bool {
		return f.Severity == s && f.Code == code && strings.Contains(f.Text, text)
	})
}

// A heat that was altered after it was kept is found out.
func TestAlteredHeat(t *testing.T) {
	l, dir := add(t, book(t), ledgertest.Story{}, ledger.Review{})
	brief := filepath.Join(dir, "seats", "one", "brief.md")
	if err := os.WriteFile(brief, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := l.Check(t.Context(), ledger.Settings{Today: today}, recording.Open)
	if err != nil || r.Holds || !told(r.Findings, ledger.Break, ledger.Integrity, "artifacts") {
		t.Errorf("%v, %v", r.Findings, err)
	}
}

// The states follow line by line.
func TestStates(t *testing.T) {
	crash := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill", Coverage: arena.WholeDomain, Machinery: arena.RealMachinery}
	part := arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill"}
	story := func(x arena.Exercise) ledgertest.Story { return ledgertest.Story{Exercises: []arena.Exercise{x}} }
	refused := story(part)
	refused.Sick = true
	lost := story(crash)
	lost.Lost, lost.LossMS = 40, 20_000
	const id = "postgres-process-crash"

	l := book(t)
	want := func(s ledger.State) {
		t.Helper()
		if got := state(l, id); got != s {
			t.Fatalf("%s, want %s", got, s)
		}
	}
	want(ledger.NotInjected)
	l, _ = add(t, l, refused, ledger.Review{})
	want(ledger.Inconclusive)
	l, _ = add(t, l, story(part), ledger.Review{})
	want(ledger.Sampled)
	l, _ = add(t, l, refused, ledger.Review{})
	want(ledger.Sampled)
	l, _ = add(t, l, story(crash), ledger.Review{})
	want(ledger.Observed)
	p := l.Derive(ledger.Settings{Today: today})
	if p.Observed != 1 || !told(p.Findings, ledger.Note, "", "underclaimed") {
		t.Errorf("observed %d, %v", p.Observed, p.Findings)
	}
	// Time and drift.
	if got := l.Derive(ledger.Settings{Today: "2027-01-30"}).Row(id).State; got != ledger.Observed {
		t.Errorf("after 90 days %s", got)
	}
	if got := l.Derive(ledger.Settings{Today: "2027-01-31"}).Row(id).State; got != ledger.Stale {
		t.Errorf("after 91 days %s", got)
	}
	if got := l.Derive(ledger.Settings{Today: today, Arenas: []ledger.Use{{ID: "lab", SHA256: "other"}}}).Row(id).State; got != ledger.Stale {
		t.Errorf("with another arena file %s", got)
	}
	newer := story(part)
	newer.Image = "another"
	drifted, _ := add(t, clone(t, l), newer, ledger.Review{})
	if got := state(drifted, id); got != ledger.Sampled {
		t.Errorf("with another image since %s: only what came on it counts", got)
	}
	// A contradiction outlasts observations that name no fix.
	l, _ = add(t, l, lost, ledger.Review{})
	want(ledger.Contradicted)
	l, _ = add(t, l, story(crash), ledger.Review{})
	want(ledger.Contradicted)
	l, _ = add(t, l, story(part), ledger.Review{Fix: "synchronous replication"})
	want(ledger.Contradicted)
	l, _ = add(t, l, story(crash), ledger.Review{Fix: "synchronous replication"})
	want(ledger.Observed)
	// Somebody owns it, and gives it back.
	l = decide(t, l, ledger.Decision{Scenario: id, Kind: ledger.Own, Owner: "the bookkeeper", Reason: "moved", ReviewOn: "2027-02-01"})
	want(ledger.Owned)
	l, _ = add(t, l, story(crash), ledger.Review{})
	want(ledger.Owned)
	if p := l.Derive(ledger.Settings{Today: "2027-02-02"}); !told(p.Findings, ledger.Note, "", "was to be looked at again on 2027-02-01") {
		t.Errorf("an ownership that is overdue is not told: %v", p.Findings)
	}
	l = decide(t, l, ledger.Decision{Scenario: id, Kind: ledger.Reopen, Owner: "the keeper", Reason: "new topology", ReviewOn: "2027-02-01"})
	want(ledger.NotInjected)
	l = decide(t, l, ledger.Decision{Scenario: id, Kind: ledger.Accept, Owner: "the keeper", Reason: "too dear", ReviewOn: "2027-02-01"})
	want(ledger.Accepted)
	// An accepted exception cannot be tested away.
	l, _ = add(t, l, story(crash), ledger.Review{})
	want(ledger.Accepted)
	if p := l.Derive(ledger.Settings{Today: today}); !told(p.Findings, ledger.Note, ledger.BadTransition, "cannot be tested away") {
		t.Errorf("findings %v", p.Findings)
	}
	l, _ = add(t, l, lost, ledger.Review{})
	want(ledger.Contradicted)
}

// What contradicts a declared observation is a break.
func TestContradictedClaim(t *testing.T) {
	model := strings.Replace(string(assets.LedgerModel()), `"evidence_state": "not-injected"`, `"evidence_state": "observed-by-us"`, 1)
	model = strings.Replace(model, "model-with-no-observed", "model-with-one-observed", 1)
	l, err := ledger.Init(t.TempDir(), []byte(model), assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	x := arena.Exercise{Scenario: "planned-switchover", Fault: "switchover"}
	l, _ = add(t, l, ledgertest.Story{Exercises: []arena.Exercise{x}}, ledger.Review{})
	if p := l.Derive(ledger.Settings{Today: today}); ledger.Breaks(p.Findings) || !told(p.Findings, ledger.Note, "", "overclaimed") {
		t.Errorf("findings %v", p.Findings)
	}
	l, _ = add(t, l, ledgertest.Story{Exercises: []arena.Exercise{x}, Lost: 1, LossMS: 1}, ledger.Review{})
	if p := l.Derive(ledger.Settings{Today: today}); !told(p.Findings, ledger.Break, ledger.Overclaim, "contradicted") {
		t.Errorf("findings %v", p.Findings)
	}
}

// Decisions need an owner, a reason and a day to come back to.
func TestDecisions(t *testing.T) {
	good := ledger.Decision{Scenario: "host-loss", Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"}
	l := book(t)
	for name, do := range map[string]func(*ledger.Decision){
		"":               func(*ledger.Decision) {},
		"no scenario":    func(d *ledger.Decision) { d.Scenario = "flood" },
		"no kind":        func(d *ledger.Decision) { d.Kind = "forget" },
		"no owner":       func(d *ledger.Decision) { d.Owner = " " },
		"no reason":      func(d *ledger.Decision) { d.Reason = "" },
		"no day":         func(d *ledger.Decision) { d.ReviewOn = "soon" },
		"a day gone by":  func(d *ledger.Decision) { d.ReviewOn = today },
		"hostile reason": func(d *ledger.Decision) { d.Reason = "\u200b" },
	} {
		d := good
		do(&d)
		err := d.Check(l.Model, today)
		var r *ledger.Refusal
		if (err != nil) != (name != "") || err != nil && (!errors.As(err, &r) || r.Code != ledger.BadDecision) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// One in a ledger that may not be is told, and changes nothing.
	l = decide(t, l, ledger.Decision{Scenario: "host-loss", Kind: ledger.Reopen, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"})
	p := l.Derive(ledger.Settings{Today: today})
	if p.Row("host-loss").State != ledger.NotInjected || !told(p.Findings, ledger.Note, ledger.BadTransition, "does not count") {
		t.Errorf("%s, %v", p.Row("host-loss").State, p.Findings)
	}
}

// Claims: what is proved, what is not, and what no evidence ever licenses.
func TestClaims(t *testing.T) {
	x := ledgertest.Exercise()
	x.SingleWriter = new(string)
	*x.SingleWriter = "single"
	l, err := ledger.Init(t.TempDir(), seed(t), assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(id string) ledger.Claim {
		t.Helper()
		c, err := l.Claim(l.Derive(ledger.Settings{Today: today}), id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	guard := func(id, says string, want ledger.Code) {
		t.Helper()
		err := l.Guard(claim(id), says)
		var r *ledger.Refusal
		if want == "" && err != nil || want != "" && (!errors.As(err, &r) || r.Code != want) {
			t.Errorf("%q of %s: %v, want %q", says, id, err, want)
		}
	}
	guard("host-loss", "observed", ledger.Unsupported)
	guard("planned-primary-maintenance", "observed", ledger.Unsupported)
	l, _ = add(t, l, ledgertest.Story{Exercises: []arena.Exercise{x}, Pass: []string{"single"}}, ledger.Review{})
	c := claim("host-loss")
	if c.State != ledger.Observed || len(c.Proves) != 1 || !strings.Contains(c.Proves[0], "On 2026-11-01") || !strings.Contains(c.Proves[0], "from 4.2 s after its injection writes were acknowledged for good; the longest stretch without an acknowledged one took 4.0 s") {
		t.Errorf("%+v", c)
	}
	guard("host-loss", "observed", "")
	guard("host-loss", "sampled", "")
	guard("host-loss", c.Proves[0], "")
	guard("host-loss", "it will always fail over", ledger.Unsupported)
	// Observed or not: the five lines stay, in any dress.
	for _, line := range l.Model.Prohibited {
		guard("host-loss", line, ledger.Prohibited)
		guard("host-loss", "  "+strings.ToUpper(line)+".", ledger.Prohibited)
	}
	guard("host-loss", "each machine fails alone", ledger.Prohibited)
	for _, id := range l.Model.IDs() {
		c := claim(id)
		guard(id, string(c.State), "") // what is derived may be said, whatever it is
		guard(id, strings.ReplaceAll(string(c.State), "-", " "), "")
		n := len(c.Always)
		for _, p := range c.Prohibited {
			if p.OfModel {
				n++
			}
		}
		if n < len(l.Model.Prohibited) {
			t.Errorf("%s: %d prohibited lines are shown, the model has %d", id, n, len(l.Model.Prohibited))
		}
		if len(c.Prohibited) == 0 && id != "storage-loss-or-stall" {
			t.Errorf("nothing tempts at %s", id)
		}
	}
	if c := claim("shared-hypervisor-loss"); c.State != ledger.Accepted || !strings.Contains(strings.Join(c.DoesNot, " "), "Nothing that runs on a machine") {
		t.Errorf("%+v", c)
	}
	// Equal refusals are said once.
	sick := ledgertest.Story{Exercises: []arena.Exercise{{Scenario: "dcs-loss", Fault: "freeze"}}, Sick: true}
	l, _ = add(t, l, sick, ledger.Review{})
	l, _ = add(t, l, sick, ledger.Review{})
	if c := claim("dcs-loss"); len(c.DoesNot) != 1 || !strings.HasSuffix(c.DoesNot[0], "refused by E_BASELINE (2 times)") {
		t.Errorf("%q", c.DoesNot)
	}
	guard("dcs-loss", "inconclusive", "")
	guard("dcs-loss", "not injected", ledger.Unsupported)
	if _, err := l.Claim(l.Derive(ledger.Settings{Today: today}), "flood"); err == nil {
		t.Error("a claim about a scenario that is none")
	}
	j, _ := judge(t, l, ledgertest.Story{Exercises: []arena.Exercise{x}}, ledger.Review{})
	h := l.ClaimHeat(j)
	text, _ := json.Marshal(h)
	for _, want := range []string{"On 2026-11-01", "the whole of host-loss", "the fastest finisher of a race", "timings of hardware", "three guests"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the heat's claim lacks %q:\n%s", want, text)
		}
	}
}

// A file of a heat is read once for all that is judged by it, and not after who asked has
// gone.
func TestFilesAreReadOnce(t *testing.T) {
	l := book(t)
	j, dir := judge(t, l, ledgertest.Story{}, ledger.Review{})
	good := only(t, j).Evidence
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	ctx, cancel := context.WithCancel(t.Context())
	terms := ledger.Terms{Model: l.Model, Policy: l.Policy}.TermsOf(ctx, rec)
	first, err := terms.Digest("match.json")
	if err != nil || first != good.Artifacts["match.json"] {
		t.Fatal(first, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "match.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if again, err := terms.Digest("match.json"); again != first || err != nil {
		t.Errorf("it is read again: %s, %v", again, err)
	}
	cancel()
	if _, err := terms.Digest("events.jsonl"); !errors.Is(err, context.Canceled) {
		t.Errorf("read for nobody: %v", err)
	}
	if _, err := (ledger.Terms{Model: l.Model, Policy: l.Policy}).JudgeHeat(ctx, rec, ledger.Review{By: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("judged for nobody: %v", err)
	}
}

func TestToldWords(t *testing.T) {
	for told, want := range map[string]string{
		"": "", "{}": "", "[1]": "", "{": "",
		`{"timeline":3,"leader":"db2"}`: "leader db2, timeline 3",
		`{"writers":["db1","db2"]}`:     "writers [db1 db2]",
	} {
		if got := ledger.ToldWords([]byte(told)); got != want {
			t.Errorf("%s: %q, want %q", told, got, want)
		}
	}
	if got := ledger.ToldWords([]byte(`{"leader":"\u001b[31m` + strings.Repeat("x", 1000) + `"}`)); strings.Contains(got, "\x1b") || len(got) > 400 {
		t.Errorf("%q", got)
	}
}
