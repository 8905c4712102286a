package recording

import (
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

// The clocks of the published transcripts: well sampled ones begin 2.8 to 4.5 s
// after the heat's at most (recordings.md 6.5).
func TestActivityIsPlacedOnTheHeatsClock(t *testing.T) {
	placed := 0
	for _, dir := range shared.Recordings(t) {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Activities(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if a.Trouble != "" {
				if len(a.Calls) > 0 || a.Placed {
					t.Errorf("%s: %+v", filepath.Base(dir), a)
				}
				continue
			}
			if len(a.Calls) == 0 {
				t.Errorf("%s: %s tells nothing", filepath.Base(dir), a.File)
			}
			if !a.Placed {
				continue
			}
			placed++
			if a.OffsetMS > 3500 || a.PlusMinusMS > 3500 || a.OffsetMS < 1000 {
				t.Errorf("%s: %s begins at %d ± %d ms", filepath.Base(dir), a.File, a.OffsetMS, a.PlusMinusMS)
			}
			for i, c := range a.Calls {
				if !c.SelfReported || c.Channel != ChannelTold || c.Command == "" || i > 0 && c.StartMS < a.Calls[i-1].StartMS {
					t.Errorf("%s: %+v", a.File, c)
				}
			}
			if n := a.At(a.Calls[0].StartMS); n < 1 || a.At(a.Calls[0].StartMS-1) != 0 {
				t.Errorf("%s: %d calls at the first", a.File, n)
			}
		}
		r.Close()
	}
	if placed < 12 {
		t.Fatalf("%d transcripts were placed", placed)
	}
}

func TestForeignActivityIsNotShown(t *testing.T) {
	r, err := Open(shared.Shared(t, "recordings", "first-build-real-20260814-075912-round-003"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Activities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, a := range all {
		foreign := a.Agent != "deepseek-builder"
		if foreign != (a.Trouble != "") || foreign != (len(a.Calls) == 0) {
			t.Errorf("%s: %q, %d calls", a.Agent, a.Trouble, len(a.Calls))
		}
		shown += len(a.Calls)
	}
	if len(all) != 3 || shown != 5 {
		t.Fatalf("%d seats, %d calls", len(all), shown)
	}
}

// The true offset lies within what is claimed, however checkpoints come.
func TestPlacement(t *testing.T) {
	told := &told{lastsMS: 9000, rounds: []round{{1000, tokens{10, 1}}, {5000, tokens{30, 2}}, {9000, tokens{60, 9}}}}
	at := func(ms uint64, k int, fresh bool) checkpoint { return checkpoint{ms, told.rounds[k].used, fresh} }
	ms := func(v uint64) *uint64 { return &v }
	for name, c := range map[string]struct {
		charged   []checkpoint
		ended     *uint64
		latest    uint64
		placed    bool
		trueStart uint64
	}{
		"sampled well":          {[]checkpoint{at(4500, 0, true), at(9200, 1, true)}, nil, 3500, true, 3000},
		"stalled once":          {[]checkpoint{at(101000, 0, true), at(101000, 1, true)}, nil, 96000, true, 3000},
		"one was never charged": {[]checkpoint{{4000, tokens{7, 7}, true}, at(8100, 1, true)}, nil, 3100, true, 3000},
		"only in the drain":     {[]checkpoint{at(2000, 2, false)}, nil, 0, false, 0},
		"the drain's stands":    {[]checkpoint{at(8500, 1, true), at(8501, 2, false)}, nil, 3500, true, 3000},
		"heard of its end":      {[]checkpoint{at(9000, 1, true)}, ms(12500), 3500, true, 3000},
		"never met":             {nil, ms(12500), 0, false, 0},
		"clocks apart":          {[]checkpoint{at(500, 0, true)}, nil, 0, true, 0},
	} {
		offset, pm, ok := told.place(c.charged, c.ended)
		if ok != c.placed || offset+pm != c.latest || c.trueStart+pm < offset || c.trueStart > offset+pm {
			t.Errorf("%s: %d ± %d %v", name, offset, pm, ok)
		}
	}
}

// Hostile commands and outputs come sanitised, and bounded.
func TestActivityIsSafeToShow(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, eventsFile), line(0, 0, `"kind":"agent_started","agent":"a","territory":"t","model":"m"`))
	write(t, filepath.Join(dir, "a-transcript.json"), `{"schema_version":2,"tool_trace":[
		{"id":"1","name":"Ba\u001b]0;x\u0007sh","input":{"command":"rm \u001b[2J\u202e\u0000"},"output":"\u001b]52;c;aaaa\u0007","started_after_ms":1},
		{"id":"2","name":"\u001b[31m","input":["\u009b"],"output":{"x":"\u001b"},"started_after_ms":-4},
		{"id":"3","name":"T","input":{"file_path":"/a\nb"},"started_after_ms":99999999999999999,"duration_ms":99999999999999999}]}`)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Activities(t.Context())
	if err != nil || all["t"] == nil || len(all["t"].Calls) != 3 {
		t.Fatalf("%+v %v", all, err)
	}
	for _, c := range all["t"].Calls {
		for _, s := range []string{c.Command, c.Output} {
			for _, bad := range []rune{0x1b, 0x07, 0x9b, 0x202e, 0} {
				for _, x := range s {
					if x == bad {
						t.Errorf("%q", s)
					}
				}
			}
		}
		if c.EndMS < c.StartMS {
			t.Errorf("%+v", c)
		}
	}
}

func TestOursHasNoToldActivity(t *testing.T) {
	dir := t.TempDir()
	writeHeat(t, filepath.Join(dir, "h"))
	r, err := Open(filepath.Join(dir, "h"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if all, err := r.Activities(t.Context()); err != nil || all != nil {
		t.Fatalf("%+v %v", all, err)
	}
}

// A live copy that was taken while its file was written has a hole in its messages:
// what its agent did stands behind it, whole.
func TestActivityOfADamagedTranscript(t *testing.T) {
	dir := shared.Shared(t, "recordings", "infra-core-durable-job-queue-round-002")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Activities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := all["queue-two"]
	if a == nil || a.Trouble != "" || len(a.Calls) != 17 || !a.Placed || a.Unproved {
		t.Fatalf("%d calls, placed %v, unproved %v, %q", len(a.Calls), a.Placed, a.Unproved, a.Trouble)
	}
	if !strings.HasPrefix(a.Damage, "the transcript is damaged at byte 1566") || !strings.Contains(a.Damage, "calls around it are read") {
		t.Errorf("%q", a.Damage)
	}
	report, err := r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Code == "torn_transcript" && (f.Severity != Note || f.Offset < 1_566_000 || !strings.Contains(f.Text, "damaged at byte 1566")) {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatADamagedTranscriptStillTells(t *testing.T) {
	const (
		head  = `{"schema_version":2,"usage":{"input_tokens":3,"output_tokens":4},`
		calls = `"tool_trace":[{"id":"a","name":"Bash","input":{"command":"one"},"output":"x","started_after_ms":1,"duration_ms":2},{"id":"b","name":"Read","input":{"path":"/p"},"output":{"y":1},"started_after_ms":5,"duration_ms":2}]`
		times = `"timing":{"total_duration_ms":9,"model_rounds":[{"started_after_ms":0,"duration_ms":1,"usage":{"input_tokens":1,"output_tokens":2}},{"started_after_ms":4,"duration_ms":1,"usage":{"input_tokens":2,"output_tokens":2}}]}`
	)
	for name, c := range map[string]struct {
		doc           string
		torn          bool
		calls, rounds int
	}{
		"whole":                                {head + `"messages":[],` + calls + "," + times + "}", false, 2, 2},
		"a hole in the messages":               {head + `"messages":[{"text":"a,"role"` + calls + "," + times + "}", true, 2, 2},
		"the keys in somebody's words":         {head + `"messages":[{]"\"tool_trace\":[{\"id\":\"no\"}]",` + calls + "," + times + "}", true, 2, 2},
		"cut in the second call":               {head + `"messages":[],` + calls[:len(calls)-30], true, 1, 0},
		"cut in the times":                     {head + `"messages":[],` + calls + "," + times[:len(times)-20], true, 2, 1},
		"numbers and surrogates that are none": {head + `"messages":[NaN,"\ud800"],` + calls + "," + times + "}", false, 2, 2},
		"no JSON":                              {"hello", true, 0, 0},
		"nothing":                              {"", true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := readTold([]byte(c.doc))
			if (got.torn != nil) != c.torn || len(got.calls) != c.calls || len(got.rounds) != c.rounds {
				t.Fatalf("torn %v, %d calls, %d rounds", got.torn, len(got.calls), len(got.rounds))
			}
			if c.calls > 0 && (got.calls[0].command != "one" || got.calls[0].output != "x" || got.total != tokens{3, 4}) {
				t.Errorf("%+v", got)
			}
			if c.calls > 1 && (got.calls[1].command != "read /p" || got.calls[1].output != `{"y":1}` || got.calls[1].bytes != 7) {
				t.Errorf("%+v", got.calls[1])
			}
		})
	}
}
