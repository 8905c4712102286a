package transcript

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/engine/internal/shared"
)

// The awkward inputs of the transcripts reference, and the test of each.
//
//	I01  TestJoinedLine                         I18  TestCasts
//	I02  TestHoles                              I19  TestTerminalBench
//	I03  TestGrowing                            I20  TestMarkersKeepTheirTimes; idle stretches: engine/playback, tui
//	I04  TestClaudeEdgeCases                    I21  TestTypescriptIsRefused: no importer, said clearly
//	I05  TestCodex                              I22  TestGrowing, TestTornCopyIsNotTaken
//	I06  TestCodex                              I23  TestLanesAtOneInstant
//	I07  TestClaudeUsage                        I24  TestHeat; engine/event, engine/recording
//	I08  TestClaudeOrder                        I25  TestSWEAgent
//	I09  TestInspectArchiveCut                  I26  TestTruncatedDocument
//	I10  TestInspectArchive                     I27  TestOpenHands, TestOpenHandsV1
//	I11  TestInspectSamples                     I28  TestOpenCode
//	I12  TestInspectIndex                       I29  TestHarborTrial
//	I13  TestManyEvents, BenchmarkGigabyte      I30  tui: TestResizeStorm, TestGoldenSmall, TestKeysWhileTooSmall
//	I14  TestGiants                             I31  TestRawRecordsKeepSecrets; transcript/export: TestNoSecretLeaves,
//	I15  TestHostileText; export: TestReplayable     TestSealedContentIsNeverRendered
//	I16  TestHostileText; engine/text           I32  engine/referee, engine/heat
//	I17  TestCasts                              I33  engine/fleet, engine/season
//	                                            I34  engine/register
func TestEveryAwkwardInputHasItsTest(t *testing.T) {
	raw, err := os.ReadFile(shared.Shared(t, "reference", "transcripts.md"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("awkward_list_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, dir := range []string{".", "export", "../../tui"} {
		files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(b)
		}
	}
	listed := 0
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| I") {
			continue
		}
		listed++
		if id := line[2:5]; !strings.Contains(string(own), id+"  ") {
			t.Errorf("%s is not in the list", id)
		}
	}
	list, _, _ := strings.Cut(string(own), "func ")
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,;:/\t\n", r) }) {
		if strings.HasPrefix(word, "Test") && !strings.Contains(tests.String(), "func "+word+"(") {
			t.Errorf("the list names %s, which there is not", word)
		}
	}
	if listed < 34 {
		t.Errorf("the reference lists %d", listed)
	}
}

// I13: many events with long metadata: the first are there at once.
func TestManyEvents(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"messages":[],"events":[`)
	const n = 20_000
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"event":"sandbox","action":"exec","cmd":"step %d","output":"%s","result":0,"timestamp":"2026-01-02T10:00:00+00:00","metadata":{"m":"%s"}}`,
			i, "out", strings.Repeat("x", 700))
	}
	b.WriteString("]}]}")
	file := filepath.Join(t.TempDir(), "log.json")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	tr, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Len() == 0 || tr.Step(0).Title == "" {
		t.Error("the first step is not there when the file is open")
	}
	t.Logf("%d steps after %v", tr.Len(), time.Since(begin))
	if err := tr.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for i := range tr.Len() {
		if tr.Head(i).Kind == ToolCall || tr.Head(i).Kind == Output {
			calls++
		}
	}
	if f, err := tr.Full(tr.Len() - 1); err != nil || calls < n || f.Command() != fmt.Sprintf("step %d", n-1) {
		t.Errorf("%d of %d events; the last is %q (%v)", calls, n, f.Command(), err)
	}
}

// I20: a marker's time is the record's own, also behind a long pause that a limit
// would shorten.
func TestMarkersKeepTheirTimes(t *testing.T) {
	tr := written(t, `{"version":2,"width":80,"height":24,"idle_time_limit":1}`+"\n"+`[0.5,"o","a"]`+"\n"+`[600,"m","late"]`+"\n"+`[601,"o","b"]`+"\n")
	i := tr.Next(-1, 1, func(h Head) bool { return h.Kind == Marker })
	if i < 0 || tr.Head(i).AtMS != 600_000 || tr.Step(i).Title != "late" {
		t.Fatalf("the marker is step %d at %d ms, %q", i, tr.Head(i).AtMS, tr.Step(i).Title)
	}
	found := false
	for _, f := range tr.Info().Extra {
		found = found || f.Name == "idle_time_limit" && f.Value == "1"
	}
	if !found {
		t.Error("the limit that the record asks for is not told")
	}
}

// I21: what util-linux's script writes has no times of its own and is none of the
// formats.
func TestTypescriptIsRefused(t *testing.T) {
	for _, content := range []string{"Script started on 2026-01-02 10:00:00+00:00 [TERM=\"xterm\"]\n$ ls\r\nfile\r\n", "0.1 5\n0.2 7\n"} {
		file := filepath.Join(t.TempDir(), "typescript")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := Open(file)
		if err == nil {
			tr.Close()
			t.Errorf("%q was read as %s", content, tr.Info().Format)
		} else if !strings.Contains(err.Error(), "not a transcript of a known format") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// I23: lanes that share an instant keep the order of the log, one whose clock is
// ahead does not move the others, and no duration is negative.
func TestLanesAtOneInstant(t *testing.T) {
	var b strings.Builder
	n := 0
	event := func(seat string, at, action int, kind, more string) {
		fmt.Fprintf(&b, `{"schema_version":1,"sequence":%d,"elapsed_ms":%d,"kind":%q,"territory":%q,"agent":"a","action":%d,%s}`+"\n", n, at, kind, seat, action, more)
		n++
	}
	for i := 1; i <= 3; i++ {
		for _, seat := range []string{"one", "two", "three"} {
			at := 1000
			if seat == "two" {
				at += 90_000
			}
			event(seat, at, i, "agent_action_started", fmt.Sprintf(`"channel":"exec","command":"%s %d"`, seat, i))
			event(seat, at-5, i, "agent_action_finished", `"exit":0,"took_ms":0,"output":""`)
		}
	}
	tr := written(t, b.String())
	var got []string
	for i := range tr.Len() {
		if h := tr.Head(i); h.Kind == ToolCall {
			got = append(got, tr.Step(i).Title)
			want := int64(1000)
			if strings.HasPrefix(tr.Step(i).Title, "two") {
				want = 91_000
			}
			if h.AtMS != want || h.DurationMS < 0 || h.Outcome != Succeeded {
				t.Errorf("%s is at %d for %d, %s", tr.Step(i).Title, h.AtMS, h.DurationMS, h.Outcome)
			}
		}
	}
	if want := "one 1,two 1,three 1,one 2,two 2,three 2,one 3,two 3,three 3"; strings.Join(got, ",") != want {
		t.Errorf("the order is %v", got)
	}
}
