package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"refbox/engine/event"
	"refbox/engine/internal/shared"
	"refbox/engine/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReferenceRecordingsVerify(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		before := treeOf(t, dir)
		report, err := verifyFolder(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if report.Breaks() != 0 || !report.Verified || report.Stopped != "" || report.Chained || report.Events < 40 {
			t.Errorf("%s: %+v", filepath.Base(dir), report)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		w := r.World(r.Len())
		if w.Winner == nil || !w.Over() || r.Live() || !r.Complete() {
			t.Errorf("%s: winner %v, live %v", filepath.Base(dir), w.Winner, r.Live())
		}
		if got := r.Head(); got != w.ElapsedMS {
			t.Errorf("%s: head %d, world %d", filepath.Base(dir), got, w.ElapsedMS)
		}
		r.Close()
		if after := treeOf(t, dir); before != after {
			t.Errorf("%s: reading changed the folder", filepath.Base(dir))
		}
	}
}

func treeOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime())
	}
	return b.String()
}

func TestReferenceArtifactsAreFound(t *testing.T) {
	r, err := Open(shared.Shared(t, "recordings", "infra-core-primary-failover-round-002"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, s := range r.World(r.Len()).Seats() {
		for _, name := range []string{"result.json", "transcript.json", "transcript.live.json", "analysis.json"} {
			data, path, err := r.Artifact(s.ID, name)
			if err != nil || len(data) == 0 || path != s.Agent+"-"+name {
				t.Errorf("%s of %s: %s %v", name, s.ID, path, err)
			}
		}
	}
	if m := r.Manifest(); m == nil || len(m.Build.Milestones) != 6 {
		t.Fatalf("%+v", m)
	}
}

func TestListOfReferenceRecordings(t *testing.T) {
	root := shared.Shared(t, "recordings")
	list, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(shared.Recordings(t)); len(list) != want {
		t.Fatalf("%d listed, %d there", len(list), want)
	}
	for i, s := range list {
		if s.Badge == "broken" || s.State != "finished" || s.Winner == "" || len(s.Seats) != 3 || s.DurationMS == 0 || s.Events == nil || s.Arena == "" {
			t.Errorf("%+v", s)
		}
		if i > 0 && s.StartedAt.After(list[i-1].StartedAt) {
			t.Errorf("%s is not in order", s.Name)
		}
	}
}

// longLog writes a log of n events, of all sorts, and returns its path.
func longLog(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	var buf bytes.Buffer
	for i, e := range logEvents(n) {
		e.Sequence = uint64(i)
		buf.Write(event.Encode(e))
		buf.WriteByte('\n')
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// logEvents makes n events such as a long heat of three seats leaves.
func logEvents(n int) []event.Event {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]event.Event, 0, n)
	ms, action := uint64(0), uint64(0)
	add := func(b event.Body) { out = append(out, event.Event{ElapsedMS: ms, Body: b}) }
	seats := []string{"failover-one", "failover-two", "failover-three"}
	add(event.MatchStateChanged{From: "preparing", To: "running"})
	for i, s := range seats {
		add(event.TerritoryRegistered{Territory: s, Class: "engineer", Agent: fmt.Sprint("agent-", i)})
		add(event.AgentStarted{Agent: fmt.Sprint("agent-", i), Territory: s, Model: "m"})
	}
	for len(out) < n {
		ms += uint64(rng.IntN(300))
		k := rng.IntN(3)
		s := seats[k]
		switch rng.IntN(20) {
		case 0:
			action++
			add(event.AgentActionStarted{Territory: s, Agent: fmt.Sprint("agent-", k), Action: action, Channel: "exec", Machine: "host", Command: fmt.Sprintf("grep -rn %d /etc/systemd/system", action)})
			exit := rng.IntN(2)
			add(event.AgentActionFinished{Territory: s, Agent: fmt.Sprint("agent-", k), Action: action, Exit: &exit, TookMS: 20, Output: fmt.Sprintf("line %d\nof output", action), Bytes: 90})
		case 1:
			one := uint64(100)
			add(event.UsageCharged{Agent: fmt.Sprint("agent-", k), InputTokens: &one, OutputTokens: &one, CostMicroUSD: &one})
		case 2:
			add(event.MilestoneFailed{Territory: s, Milestone: "writes-restored", Category: "contract", Detail: fmt.Sprintf("HTTP %d", 500+rng.IntN(4)), Retryable: true})
		case 3:
			add(event.CanarySample{Territory: s, Write: uint64(len(out)), Outcome: "failed", Failed: uint64(len(out))})
		case 4:
			if rng.IntN(50) == 0 {
				add(event.MilestonePassed{Territory: s, Milestone: "reads-restored", Points: 20, Evidence: []byte(`{"status":200}`)})
				add(event.MilestoneRevoked{Territory: s, Milestone: "reads-restored", Reason: "does not hold"})
			}
		default:
			add(event.MilestoneEvaluationStarted{Territory: s, Milestone: "reads-restored"})
			add(event.MilestoneFailed{Territory: s, Milestone: "reads-restored", Category: "verification_failed", Detail: "curl: (22) The requested URL returned error: 502", Retryable: true})
		}
	}
	return out[:n]
}

func worldText(t interface{ Fatal(...any) }, w *world.World) string {
	text, err := w.JSON()
	if err != nil {
		t.Fatal(err)
	}
	rest, err := json.Marshal(deep(w))
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + string(rest)
}

// deep is what world.json leaves out.
func deep(w *world.World) []any {
	var out []any
	for _, s := range w.Seats() {
		out = append(out, s.ID, s.Actions.Slice(0, s.Actions.Len()), s.Spans.Slice(0, s.Spans.Len()), s.RunningActions(), s.Revocations.Slice(0, s.Revocations.Len()))
		for _, m := range s.Milestones {
			span, open := s.Span(&m)
			out = append(out, m.ID, m.Failure, span, open)
		}
	}
	return out
}

func TestSeekingIsFoldingThePrefix(t *testing.T) {
	path := longLog(t, 6000)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Len() != 6000 || len(r.frames) < 6 {
		t.Fatalf("%d events, %d keyframes", r.Len(), len(r.frames))
	}
	events := make([]event.Event, 0, r.Len())
	if err := r.Events(0, r.Len(), func(_ int, e event.Event) bool { events = append(events, e); return true }); err != nil {
		t.Fatal(err)
	}
	kept := map[int]*world.World{}
	rapid.Check(t, func(rt *rapid.T) {
		ms := rapid.Uint64Range(0, r.Head()+10).Draw(rt, "ms")
		n := r.IndexAt(ms)
		for i, e := range events {
			if (e.ElapsedMS <= ms) != (i < n) {
				rt.Fatalf("IndexAt(%d) = %d, but event %d is at %d", ms, n, i, e.ElapsedMS)
			}
		}
		w := r.World(n)
		if got, want := worldText(rt, w), worldText(rt, folded(events[:n]...)); got != want {
			rt.Fatalf("World(%d) is not the fold: %s", n, cmp.Diff(want, got))
		}
		kept[n] = w
	})
	for n, w := range kept {
		if got, want := worldText(t, w), worldText(t, folded(events[:n]...)); got != want {
			t.Fatalf("World(%d) was changed later: %s", n, cmp.Diff(want, got))
		}
	}
}

func TestStep(t *testing.T) {
	path := longLog(t, 3000)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var forward []int
	for i := r.Step(-1, 1, ClassAction); i >= 0; i = r.Step(i, 1, ClassAction) {
		forward = append(forward, i)
		e, err := r.Event(i)
		if _, ok := e.Body.(event.AgentActionStarted); !ok || err != nil {
			t.Fatalf("event %d is %s, %v", i, e.Kind(), err)
		}
	}
	var back []int
	for i := r.Step(r.Len(), -1, ClassAction); i >= 0; i = r.Step(i, -1, ClassAction) {
		back = append([]int{i}, back...)
	}
	if len(forward) < 50 || fmt.Sprint(forward) != fmt.Sprint(back) {
		t.Fatalf("%v\n%v", forward, back)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func line(seq, ms int, rest string) string {
	return fmt.Sprintf(`{"schema_version":1,"sequence":%d,"elapsed_ms":%d,%s}`+"\n", seq, ms, rest)
}

const note = `"kind":"operator_note","author":"a","text":"b"`

// Each step of the clock back is found once, and against the line before.
func TestClockBackIsCountedByStep(t *testing.T) {
	dir := t.TempDir()
	var log string
	for i, ms := range []int{0, 9, 5, 6, 7, 9, 8, 8, 20} {
		log += line(i, ms, note)
	}
	write(t, filepath.Join(dir, "events.jsonl"), log)
	report, err := verifyFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		if f.Code == "clock_back" {
			got = append(got, f.Text)
		}
	}
	want := []string{"line 3: the clock goes back from 9 to 5 ms", "line 7: the clock goes back from 9 to 8 ms"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestOddLogsAreReadAsFarAsTheyCan(t *testing.T) {
	for name, c := range map[string]struct {
		log    string
		events int
		codes  []string
	}{
		"empty":              {"", 0, nil},
		"torn tail":          {line(0, 0, note) + `{"schema_version":1,"seq`, 1, []string{"torn_tail", "stopped"}},
		"no last newline":    {line(0, 0, note) + strings.TrimSpace(line(1, 5, note)), 2, []string{"stopped"}},
		"broken in between":  {line(0, 0, note) + "garbage\x1b[2J\n\xff\xfe\n" + line(1, 5, note), 2, []string{"broken_line"}},
		"cut and written on": {line(0, 0, note) + `{"schema_version":1,"sequence":1,"elapsed_ms":3,"kind":"op` + line(1, 4, note) + line(2, 5, note), 3, []string{"broken_line"}},
		"a newer schema":     {strings.Replace(line(0, 0, note), `version":1`, `version":2`, 1) + strings.Replace(line(1, 0, note), `version":1`, `version":"\u001b"`, 1), 2, []string{"schema_version"}},
		"a hole of NULs":     {line(0, 0, note) + strings.Repeat("\x00", 700) + "\n" + line(1, 5, note), 2, []string{"broken_line"}},
		"empty lines":        {line(0, 0, note) + "\n\n" + line(1, 5, note), 2, nil},
		"gap":                {line(0, 0, note) + line(5, 5, note), 2, []string{"sequence_gap"}},
		"repeated":           {line(0, 0, note) + line(0, 5, note), 2, []string{"sequence_repeated"}},
		"clock back":         {line(0, 9, note) + line(1, 5, note), 2, []string{"clock_back"}},
		"unknown kind":       {line(0, 9, `"kind":"x\u001b[31my"`), 1, []string{"unknown_kind"}},
		"unknown key":        {line(0, 9, note+`,"more":1`), 1, []string{"unknown_keys"}},
		"duplicate ids": {line(0, 0, `"kind":"territory_registered","territory":"t","class":"c","agent":"a"`) +
			line(1, 0, `"kind":"territory_registered","territory":"t","class":"c","agent":"a"`), 2, []string{"duplicate_id"}},
		"two clocks":       {line(0, 9, `"kind":"durable_deployment_completed","territory":"t","elapsed_ms":8`), 1, []string{"clock_doubled"}},
		"windows newlines": {strings.ReplaceAll(line(0, 0, note)+line(1, 5, note), "\n", "\r\n"), 2, nil},
		"a line of 17 MiB": {line(0, 0, note) + strings.Repeat("x", 17<<20) + "\n" + line(1, 5, note), 2, []string{"broken_line"}},
		"17 MiB torn":      {line(0, 0, note) + strings.Repeat("x", 17<<20), 1, []string{"torn_tail"}},
		"NUL":              {line(0, 0, note) + strings.Repeat("\x00", 4096), 1, []string{"torn_tail"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "events.jsonl"), c.log)
			report, err := verifyFolder(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if report.Events != c.events || report.Breaks() != 0 {
				t.Errorf("%d events, %+v", report.Events, report)
			}
			for _, code := range c.codes {
				found := false
				for _, f := range report.Findings {
					found = found || f.Code == code
					if strings.ContainsAny(f.Text, "\x1b\n\x00") {
						t.Errorf("text is not clean: %q", f.Text)
					}
				}
				if !found {
					t.Errorf("no %s in %+v", code, report.Findings)
				}
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for i := range r.Len() {
				if _, err := r.Event(i); err != nil {
					t.Error(err)
				}
				raw, err := r.Raw(i)
				if err != nil {
					t.Error(err)
				}
				n, offset := r.Line(i)
				if !strings.HasPrefix(c.log[offset:], string(raw)) || strings.Count(c.log[:offset], "\n")+1 != n {
					t.Errorf("event %d is at line %d, byte %d", i, n, offset)
				}
			}
		})
	}
}

func TestHostileFolders(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, `{"schema_version":1,"arena_id":"stolen"}`)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "events.jsonl"), line(0, 0, `"kind":"territory_registered","territory":"../..","class":"c","agent":"../../x"`)+
		line(1, 0, `"kind":"milestone_passed","territory":"../..","milestone":"m","points":1,"evidence":null,"record":"`+strings.Repeat("../", 20)+strings.TrimPrefix(secret, "/")+`"`))
	if err := os.Symlink(secret, filepath.Join(dir, "match.json")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "arena.json"), strings.Repeat("[", 1<<20))
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Match() != nil || r.Manifest() != nil {
		t.Fatalf("read %+v", r.Match())
	}
	for _, name := range []string{secret, "../secret", "/etc/passwd", "a/../../b", "", ".", "seats"} {
		if data, err := r.File(name); err == nil {
			t.Errorf("File(%q) = %q", name, data)
		}
	}
	if _, _, err := r.Artifact("../..", "../../../etc/passwd"); err == nil {
		t.Error("left the folder")
	}
	report, err := verifyFolder(t.Context(), dir)
	if err != nil || report.Breaks() != 0 {
		t.Fatalf("%+v %v", report, err)
	}
	// A pipe in the log's place would block whoever opens it.
	pipe := t.TempDir()
	if err := mkfifo(filepath.Join(pipe, "events.jsonl")); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	if r, err := Open(pipe); err == nil {
		r.Close()
		t.Error("a pipe was opened as a log")
	}
}

func TestSingleLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "some.jsonl")
	write(t, path, line(0, 0, note))
	write(t, filepath.Join(dir, "match.json"), `{"arena_id":"other"}`)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() != 1 || r.Match() != nil || r.Name() != "some.jsonl" {
		t.Fatalf("%d %v %s", r.Len(), r.Match(), r.Name())
	}
	if _, err := Open(filepath.Join(dir, "absent")); err == nil {
		t.Fatal("opened what is not there")
	}
}

func TestOpenFS(t *testing.T) {
	root := t.TempDir()
	writeHeat(t, filepath.Join(root, "recordings", "one"))
	r, err := OpenFS(os.DirFS(root), "recordings/one")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Name() != "one" || r.World(r.Len()).Winner == nil || r.Arena() != "two-steps" {
		t.Fatalf("%s %+v", r.Name(), r.World(r.Len()))
	}
	report, err := r.Verify(t.Context())
	if err != nil || len(report.Findings) != 0 {
		t.Fatalf("%+v %v", report, err)
	}
}

// until waits for a condition, looking whenever the recording says that something
// came.
func until(t *testing.T, changed <-chan struct{}, what string, holds func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// A follower tells of what another reader of the recording was quicker to read.
func TestFollowBesideAnotherReader(t *testing.T) {
	log := filepath.Join(t.TempDir(), "events.jsonl")
	write(t, log, line(0, 0, note))
	r, err := Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, stop := context.WithCancel(t.Context())
	changed := r.Follow(ctx)
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := 1; i <= 20; i++ {
		if _, err := f.WriteString(line(i, i, note)); err != nil {
			t.Fatal(err)
		}
		if err := r.Load(ctx); err != nil || r.Len() != i+1 {
			t.Fatalf("%d events, %v", r.Len(), err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing tells of event %d", i)
		}
	}
	stop()
	for range changed { // the follower has ended when it is closed
	}
}

func TestFollow(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "heat")
	log := filepath.Join(dir, "events.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan *Recording, 1)
	go func() {
		defer close(opened)
		r, err := Await(ctx, dir)
		if err != nil {
			t.Error(err)
			return
		}
		opened <- r
	}()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := <-opened
	if r == nil {
		t.FailNow()
	}
	defer r.Close()
	changed := r.Follow(ctx)

	write(t, log, line(0, 0, note))
	until(t, changed, "the log appears", func() bool { return r.Len() == 1 })

	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	second := line(1, 7, note)
	if _, err := f.WriteString(second[:30]); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Refresh(); err != nil || r.Len() != 1 {
		t.Fatalf("half a line counts: %d %v", r.Len(), err)
	}
	if _, err := f.WriteString(second[30:]); err != nil {
		t.Fatal(err)
	}
	until(t, changed, "the other half comes", func() bool { return r.Len() == 2 && r.Head() == 7 })

	moved := filepath.Join(root, "renamed")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line(2, 8, note)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	until(t, changed, "the folder is renamed and the log grows", func() bool { return r.Len() == 3 })
	if r.Restarts() != 0 {
		t.Fatal("a rename is no restart")
	}

	write(t, log, line(0, 1, note))
	until(t, changed, "another folder takes its place", func() bool { return r.Restarts() == 1 && r.Len() == 1 && r.Head() == 1 })

	write(t, log, line(0, 2, note)+line(1, 3, note)+line(2, 4, note))
	until(t, changed, "the log is written anew, longer", func() bool { return r.Restarts() == 2 && r.Len() == 3 })

	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	until(t, changed, "the log is cut", func() bool { return r.Restarts() == 3 && r.Len() == 0 })

	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	write(t, log, line(0, 9, note))
	until(t, changed, "the log is replaced", func() bool { return r.Len() == 1 && r.Head() == 9 })
	if !strings.Contains(fmt.Sprint(r.Integrity().Findings), "restarted") {
		t.Error("the report does not say that the log was restarted")
	}
	cancel()
	for range changed {
	}
}

func TestFollowALiveWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	w := startHeat(t, dir)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Live() {
		t.Fatal("not live")
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed := r.Follow(ctx)
	playHeat(t, w)
	until(t, changed, "all events come", func() bool { return r.Len() == 27 })
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	until(t, changed, "the writer ends", func() bool { return !r.Live() && r.Match().End != nil })
	cancel()
	for range changed {
	}
}

func TestLargeLogOpensAtOnceAndIsReadOn(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a large log; not in -short")
	}
	path := longLog(t, 100_000)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Complete() || r.Len() == 0 || r.Progress() >= 1 {
		t.Fatalf("%d events at once, complete %v", r.Len(), r.Complete())
	}
	head := r.Head()
	s := r.Summary()
	if s.Events != nil || len(s.Seats) != 3 {
		t.Fatalf("%+v", s)
	}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Len() != 100_000 || !r.Complete() || r.Head() != head {
		t.Fatalf("%d events, head %d was %d", r.Len(), r.Head(), head)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(line(0, 0, note) + "x\n" + line(1, 1, note)))
	f.Add([]byte("\n\n{"))
	f.Add([]byte(line(0, 5, `"kind":"milestone_passed","territory":"t","milestone":"m","points":18446744073709551615,"evidence":{"a":[]}`)))
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), log, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole, err := r.World(r.Len()).JSON()
		if err != nil {
			t.Fatal(err)
		}
		n := r.Len()
		for i := range n {
			r.World(i)
		}
		if again, err := r.World(n).JSON(); err != nil || !bytes.Equal(whole, again) {
			t.Fatalf("the world changed: %v", err)
		}
		r.Summary()
		if _, err := r.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func verifyFolder(ctx context.Context, path string) (Report, error) {
	r, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	defer r.Close()
	return r.Verify(ctx)
}

// Between two events there may be anything, of any size: whoever asks for events
// does not hold it in memory.
func TestWhatLiesBetweenEventsIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.jsonl")
	write(t, path, line(0, 0, note)+"\n"+line(1, 1, note)+"x\n")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const hole = 256 << 20
	tail := "\n" + line(2, 2, note) + strings.Repeat("y", readAhead) + "\n" + line(3, 3, note)
	if _, err := f.WriteAt([]byte(tail), hole); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Len() != 4 {
		t.Fatalf("%d events", r.Len())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 4 {
		raw, err := r.Raw(i)
		if err != nil || !bytes.HasPrefix(raw, fmt.Appendf(nil, `{"schema_version":1,"sequence":%d,`, i)) {
			t.Fatalf("event %d: %.80q %v", i, raw, err)
		}
		if w := r.World(i + 1); w.ElapsedMS != uint64(i) {
			t.Fatalf("the world after event %d is at %d ms", i, w.ElapsedMS)
		}
	}
	var seen []uint64
	if err := r.Events(0, 4, func(_ int, e event.Event) bool { seen = append(seen, e.Sequence); return true }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if !slices.Equal(seen, []uint64{0, 1, 2, 3}) {
		t.Fatalf("events %v", seen)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Fatalf("%d MiB were taken", took>>20)
	}
}

// folded is the world after events.
func folded(events ...event.Event) *world.World {
	w := world.New()
	for _, e := range events {
		world.Apply(w, e)
	}
	return w
}
