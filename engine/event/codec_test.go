package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"refbox/engine/internal/shared"
	"refbox/engine/text"
)

func TestReferenceLinesReencodeToTheSameBytes(t *testing.T) {
	lines := 0
	for _, dir := range shared.Recordings(t) {
		for n, line := range readLines(t, filepath.Join(dir, "events.jsonl")) {
			e, err := decodeRaw(line)
			if err != nil {
				t.Fatalf("%s line %d: %v", filepath.Base(dir), n+1, err)
			}
			if _, unknown := e.Body.(Unknown); unknown {
				t.Fatalf("%s line %d: kind %s is not known", filepath.Base(dir), n+1, e.Kind())
			}
			if e.Extra != nil {
				t.Fatalf("%s line %d: unknown keys %s", filepath.Base(dir), n+1, e.Extra)
			}
			if got := Encode(e); !bytes.Equal(got, line) {
				t.Fatalf("%s line %d:\n got %s\nwant %s", filepath.Base(dir), n+1, got, line)
			}
			lines++
		}
	}
	if lines < 1000 {
		t.Fatalf("only %d lines", lines)
	}
}

func readLines(t testing.TB, path string) [][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines [][]byte
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			lines = append(lines, bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			return lines
		}
	}
}

// bodies is one zero value of each kind.
func bodies() []Body {
	return []Body{
		MatchStateChanged{}, TerritoryRegistered{}, AgentStarted{}, CompetitorStateChanged{},
		MilestoneEvaluationStarted{}, MilestonePassed{}, MilestoneFailed{}, MilestoneRevoked{},
		DurableDeploymentCompleted{}, MatchFinished{}, UsageCharged{}, PostMatchDrainStarted{},
		PostMatchDrainFinished{}, AgentFinished{}, AgentInterrupted{}, AgentTerminated{},
		AgentOutraced{}, HealthObserved{}, TerritoryStateChanged{}, ResourcesChanged{},
		TerritoryEliminated{}, InfrastructureFailure{}, HeatPrepared{}, AgentActionStarted{},
		AgentActionFinished{}, AttackStarted{}, AttackFinished{}, FaultInjected{}, FaultConfirmed{},
		FaultCleared{}, FaultFailed{}, CanarySample{}, CanaryResult{}, LimitReached{}, SeatUnavailable{}, HeatPaused{},
		HeatResumed{}, ConsoleAttached{}, ConsoleDetached{}, RefereeRuling{}, OperatorNote{}, HostileOutput{}, DecoyUsed{},
		StateSaved{}, HeatBranched{}, MilestoneInherited{},
	}
}

func TestEveryKindHasADecoderAndItsFieldsInOrder(t *testing.T) {
	if got, want := len(bodies()), len(decoders); got != want {
		t.Fatalf("%d bodies, %d decoders", got, want)
	}
	for _, b := range bodies() {
		if decoders[b.Kind()] == nil {
			t.Errorf("no decoder for %s", b.Kind())
			continue
		}
		// encoding/json with the struct's own tags is the oracle for names,
		// order and omissions.
		want, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		line := Encode(Event{Sequence: 1, ElapsedMS: 2, Body: b})
		_, got, _ := strings.Cut(string(line), `"kind":"`+b.Kind()+`"`)
		got = "{" + strings.TrimPrefix(got, ",")
		// A nil slice is an empty list on the line.
		expect := strings.ReplaceAll(string(want), `"seats":null`, `"seats":[]`)
		if got != expect {
			t.Errorf("%s:\n got %s\nwant %s", b.Kind(), got, expect)
		}
	}
}

// drawBody fills a random body of any kind with strings from gen.
func drawBody(rt *rapid.T, gen *rapid.Generator[string]) Body {
	list := bodies()
	b := list[rapid.IntRange(0, len(list)-1).Draw(rt, "kind")]
	v := reflect.New(reflect.TypeOf(b)).Elem()
	fill(rt, v, gen)
	return v.Interface().(Body)
}

func fill(rt *rapid.T, v reflect.Value, gen *rapid.Generator[string]) {
	for i := range v.NumField() {
		f := v.Field(i)
		name := v.Type().Field(i).Name
		if name == "Repeated" {
			continue
		}
		switch f.Interface().(type) {
		case string:
			f.SetString(gen.Draw(rt, name))
		case bool:
			f.SetBool(rapid.Bool().Draw(rt, name))
		case uint64:
			f.SetUint(rapid.Uint64().Draw(rt, name))
		case int64:
			f.SetInt(rapid.Int64().Draw(rt, name))
		case *uint64:
			if rapid.Bool().Draw(rt, name) {
				n := rapid.Uint64().Draw(rt, name)
				f.Set(reflect.ValueOf(&n))
			}
		case *uint16:
			if rapid.Bool().Draw(rt, name) {
				n := rapid.Uint16().Draw(rt, name)
				f.Set(reflect.ValueOf(&n))
			}
		case *int:
			if rapid.Bool().Draw(rt, name) {
				n := rapid.IntRange(-1000, 1000).Draw(rt, name)
				f.Set(reflect.ValueOf(&n))
			}
		case *string:
			if rapid.Bool().Draw(rt, name) {
				s := gen.Draw(rt, name)
				f.Set(reflect.ValueOf(&s))
			}
		case json.RawMessage:
			if rapid.Bool().Draw(rt, name) {
				f.Set(reflect.ValueOf(json.RawMessage(`{"a":[1,"x\u001b"]}`)))
			}
		case []string:
			if s := rapid.SliceOfN(gen, 0, 3).Draw(rt, name); len(s) > 0 {
				f.Set(reflect.ValueOf(s))
			}
		case []PreparedSeat:
			if rapid.Bool().Draw(rt, name) {
				f.Set(reflect.ValueOf([]PreparedSeat{{Territory: gen.Draw(rt, "t"), Machines: []string{"host"}, Agent: gen.Draw(rt, "a")}}))
			}
		default:
			rt.Fatalf("field %s has a type that the test does not fill", name)
		}
	}
}

func TestEncodeThenDecodeIsEqual(t *testing.T) {
	clean := rapid.StringMatching(`[a-z0-9 "\\/<>&-]{0,40}`)
	hostile := rapid.String()
	rapid.Check(t, func(rt *rapid.T) {
		for _, c := range []struct {
			raw bool
			gen *rapid.Generator[string]
		}{{false, clean}, {true, hostile}} {
			in := Event{
				Sequence:  rapid.Uint64().Draw(rt, "sequence"),
				ElapsedMS: rapid.Uint64().Draw(rt, "elapsed"),
				Prev:      rapid.StringMatching(`[0-9a-f]{0,64}`).Draw(rt, "prev"),
				Body:      drawBody(rt, c.gen),
			}
			if rapid.Bool().Draw(rt, "extra") {
				in.Extra = []byte(`"later":{"x":[1,2]},"more":null`)
			}
			line := Encode(in)
			if !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
				rt.Fatalf("not one line of JSON: %q", line)
			}
			d := &Decoder{Raw: c.raw}
			out, err := d.Decode(line)
			if err != nil {
				rt.Fatalf("%s: %v", line, err)
			}
			if diff := cmp.Diff(in, out); diff != "" {
				rt.Fatalf("%s\n%s", line, diff)
			}
			if again := Encode(out); !bytes.Equal(again, line) {
				rt.Fatalf("second encoding differs:\n%s\n%s", line, again)
			}
		}
	})
}

func TestDecodeSanitisesWhatItHandsOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := Event{Body: drawBody(rt, rapid.String())}
		out, err := Decode(Encode(in))
		if err != nil {
			rt.Fatal(err)
		}
		v := reflect.ValueOf(out.Body)
		for i := range v.NumField() {
			if s, ok := v.Field(i).Interface().(string); ok && (text.Block(s) != s || !utf8.ValidString(s)) {
				rt.Fatalf("field %s is not sanitised: %q", v.Type().Field(i).Name, s)
			}
		}
	})
}

func TestDecodeTolerates(t *testing.T) {
	one, two := uint64(7), uint64(9)
	for name, c := range map[string]struct {
		line string
		want Event
	}{
		"unknown kind": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":5,"kind":"moon_rose","phase":[1,{"a":"}"}]}`,
			Event{Sequence: 4, ElapsedMS: 5, Body: Unknown{Name: "moon_rose", Raw: json.RawMessage(`{"schema_version":1,"sequence":4,"elapsed_ms":5,"kind":"moon_rose","phase":[1,{"a":"}"}]}`)}},
		},
		"unknown keys": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":5,"kind":"operator_note","a":1,"author":"me","b":{"c":null},"text":"x"}`,
			Event{Sequence: 4, ElapsedMS: 5, Body: OperatorNote{Author: "me", Text: "x"}, Extra: []byte(`"a":1,"b":{"c":null}`)},
		},
		"another order and spaces": {
			` { "text" : "x" , "kind":"operator_note", "author":"me","elapsed_ms":5,"sequence":4 } `,
			Event{Sequence: 4, ElapsedMS: 5, Body: OperatorNote{Author: "me", Text: "x"}},
		},
		"the doubled clock": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"durable_deployment_completed","territory":"t","elapsed_ms":9}`,
			Event{Sequence: 4, ElapsedMS: one, Body: DurableDeploymentCompleted{Territory: "t", Repeated: &two}},
		},
		"a doubled key": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":"a","author":"b"}`,
			Event{Sequence: 4, ElapsedMS: 7, Body: OperatorNote{Author: "b"}},
		},
		"missing and null": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"milestone_failed","territory":null,"retryable":null}`,
			Event{Sequence: 4, ElapsedMS: 7, Body: MilestoneFailed{}},
		},
		"evidence of any type": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"milestone_passed","territory":"t","milestone":"m","points":1,"evidence":["x",2]}`,
			Event{Sequence: 4, ElapsedMS: 7, Body: MilestonePassed{Territory: "t", Milestone: "m", Points: 1, Evidence: json.RawMessage(`["x",2]`)}},
		},
		"escapes": {
			`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":"\u0041\ud83d\ude00","text":"a\u001b[31mb\nc"}`,
			Event{Sequence: 4, ElapsedMS: 7, Body: OperatorNote{Author: "A😀", Text: "ab\nc"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, line := range []string{
		``, `{`, `[]`, `"x"`, `{}`, `{"kind":""}`, `{"kind":5}`, `nonsense`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":"a"`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":"a"}x`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note" "author":"a"}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":5}`,
		`{"schema_version":1,"sequence":-4,"elapsed_ms":7,"kind":"operator_note"}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7.5,"kind":"operator_note"}`,
		`{"schema_version":1,"sequence":99999999999999999999,"elapsed_ms":7,"kind":"operator_note"}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"health_observed","status":70000}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"milestone_passed","evidence":{"a":}}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"milestone_passed","evidence":[}`,
		"{\"schema_version\":1,\"sequence\":4,\"elapsed_ms\":7,\"kind\":\"operator_note\",\"author\":\"a\x1b\"}",
		`{"schema_version":1,"sequence":4,"elapsed_ms":7,"kind":"operator_note","author":"\x"}`,
	} {
		if e, err := Decode([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", line, e)
		}
	}
}

func TestLongStringsAreCut(t *testing.T) {
	long := strings.Repeat("é", MaxText)
	line := Encode(Event{Body: OperatorNote{Author: "a", Text: long}})
	e, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Body.(OperatorNote).Text; len(got) > MaxText || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
		t.Fatalf("length %d", len(got))
	}
	raw, err := decodeRaw(line)
	if err != nil || raw.Body.(OperatorNote).Text != long {
		t.Fatalf("raw decoding changed the text: %v", err)
	}
}

func TestEvidenceCannotBreakTheLineOrTheTerminal(t *testing.T) {
	for _, evidence := range []string{"{\n \"a\": 1\n}", "not json \x1b[2J", "\"\u009b31m\u202e\""} {
		line := Encode(Event{Body: MilestonePassed{Evidence: json.RawMessage(evidence)}})
		if !json.Valid(line) || bytes.ContainsAny(line, "\n\x1b") {
			t.Fatalf("%q", line)
		}
		e, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		got := string(e.Body.(MilestonePassed).Evidence)
		if text.Line(got) != got || !json.Valid([]byte(got)) {
			t.Fatalf("evidence is not safe to show: %q", got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range bodies() {
		f.Add(Encode(Event{Sequence: 3, ElapsedMS: 4, Body: b, Prev: "ab"}))
	}
	f.Add([]byte(`{"kind":"x","a":[[[{"b":"\ud800"}]]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line)
		if err != nil {
			return
		}
		again, err := Decode(Encode(e))
		if err != nil {
			t.Fatalf("own encoding not read: %v\n%s", err, Encode(e))
		}
		if !bytes.Equal(Encode(again), Encode(e)) {
			t.Fatalf("not stable:\n%s\n%s", Encode(e), Encode(again))
		}
		raw, err := decodeRaw(line)
		if err != nil {
			t.Fatalf("read sanitised but not raw: %v", err)
		}
		if !json.Valid(Encode(raw)) {
			t.Fatalf("invalid: %s", Encode(raw))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	line := []byte(`{"schema_version":1,"sequence":22,"elapsed_ms":1338,"kind":"milestone_failed","territory":"failover-one","milestone":"reads-restored","category":"verification_failed","detail":"curl: (22) The requested URL returned error: 502","retryable":true}`)
	d := &Decoder{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(line); err != nil {
			b.Fatal(err)
		}
	}
}
