package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"refbox/engine/arena"
	"refbox/engine/event"
)

// writeHeat writes a whole small heat of two seats and finishes it.
func writeHeat(t testing.TB, dir string) {
	t.Helper()
	w := startHeat(t, dir)
	playHeat(t, w)
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

func startHeat(t testing.TB, dir string) *Writer {
	t.Helper()
	label := "x"
	w, err := Create(dir, Start{
		Match: Match{ControllerVersion: "0.0.1", ArenaID: "two-steps", ArenaMode: "buildrace"},
		Manifest: &arena.Manifest{SchemaVersion: 1, Arena: arena.Arena{ID: "two-steps", DisplayName: "Two Steps", Mode: arena.BuildRace},
			Build:         &arena.Build{CompletionMilestone: "b", Milestones: []arena.Milestone{{ID: "a", DisplayName: "A", Points: 40}, {ID: "b", DisplayName: "B", Points: 60, DependsOn: []string{"a"}}}},
			Visualization: &arena.Visualization{Links: []arena.Link{{From: "a", To: "b", Label: &label}}}},
		Seed: []byte("0123456789abcdef"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func playHeat(t testing.TB, w *Writer) {
	t.Helper()
	zero := 0
	appendAll := func(ms uint64, bodies ...event.Body) {
		for _, b := range bodies {
			if _, err := w.Append(ms, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendAll(0, event.MatchStateChanged{From: "preparing", To: "running"},
		event.TerritoryRegistered{Territory: "two", Class: "c", Agent: "agent-b"},
		event.TerritoryRegistered{Territory: "one", Class: "c", Agent: "agent-a"},
		event.AgentStarted{Agent: "agent-a", Territory: "one", Model: "m/a"},
		event.AgentStarted{Agent: "agent-b", Territory: "two", Model: "m/b"})
	for i := uint64(1); i <= 5; i++ {
		appendAll(i*1000, event.MilestoneEvaluationStarted{Territory: "one", Milestone: "a", Attempt: i},
			event.MilestoneFailed{Territory: "one", Milestone: "a", Category: "contract", Detail: "502\nbad gateway", Retryable: true, Attempt: i})
	}
	appendAll(5500, event.AgentActionStarted{Territory: "one", Agent: "agent-a", Action: 1, Channel: "exec", Machine: "host", Command: "systemctl restart x"},
		event.AgentActionFinished{Territory: "one", Agent: "agent-a", Action: 1, Exit: &zero, TookMS: 10})
	for i, m := range []string{"a", "b"} {
		at := uint64(6000 + i*1000)
		path, sha, err := w.Evidence("one", m, 6, map[string]any{"status": 200, "body": "<ok>"})
		if err != nil {
			t.Fatal(err)
		}
		appendAll(at, event.MilestoneEvaluationStarted{Territory: "one", Milestone: m, Attempt: 6},
			event.MilestonePassed{Territory: "one", Milestone: m, Points: 50, Evidence: json.RawMessage(`{"ok":true}`), Attempt: 6, Record: path, RecordSHA: sha})
	}
	winner := "one"
	appendAll(7000, event.CompetitorStateChanged{Territory: "one", From: "verifying", To: "durable"},
		event.DurableDeploymentCompleted{Territory: "one"},
		event.MatchStateChanged{From: "running", To: "finished"},
		event.MatchFinished{Winner: &winner, Reason: "first durable deployment"},
		event.AgentOutraced{Agent: "agent-b", Reason: "one reached durable first"},
		event.AgentFinished{Agent: "agent-a", Source: "player", Success: true})
	for _, s := range []string{"one", "two"} {
		if err := w.Artifact(s, "result.json", map[string]string{"status": "completed"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Brief("one", "repair it"); err != nil {
		t.Fatal(err)
	}
}

func TestWrittenHeatVerifiesAndReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	writeHeat(t, dir)
	report, err := verifyFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 0 || !report.Chained || !report.Sealed || report.Badge() != "ok" {
		t.Fatalf("report: %+v", report)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Name() != "heat" || r.Arena() != "two-steps" || r.Manifest().Build.Milestones[1].DisplayName != "B" || !r.Match().Ours() {
		t.Fatalf("%s %s %+v %+v", r.Name(), r.Arena(), r.Manifest(), r.Match())
	}
	w := r.World(r.Len())
	if w.Winner == nil || *w.Winner != "one" || w.Seat("one").Points != 100 || w.Seats()[0].ID != "two" {
		t.Fatalf("%+v", w)
	}
	data, err := r.Evidence("one", "a", 6)
	if err != nil || !bytes.Contains(data, []byte(`"<ok>"`)) {
		t.Fatalf("%s %v", data, err)
	}
	if data, name, err := r.Artifact("two", "result.json"); err != nil || name != "seats/two/result.json" || len(data) == 0 {
		t.Fatalf("%s %s %v", data, name, err)
	}
	if _, _, err := r.Artifact("two", "brief.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, exact := r.Started(); !exact {
		t.Fatal("the start is not exact")
	}
	if _, err := Create(dir, Start{}); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("a folder that holds a heat was taken again: %v", err)
	}
}

func TestTamperingIsFound(t *testing.T) {
	base := filepath.Join(t.TempDir(), "heat")
	writeHeat(t, base)
	edit := func(name, from, to string) func(string) error {
		return func(dir string) error {
			p := filepath.Join(dir, name)
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if !bytes.Contains(data, []byte(from)) {
				return errors.New("nothing to edit in " + name)
			}
			return os.WriteFile(p, bytes.Replace(data, []byte(from), []byte(to), 1), 0o644)
		}
	}
	for name, c := range map[string]struct {
		change func(string) error
		code   string
		line   int
	}{
		"a detail in the log":     {edit("events.jsonl", `bad gateway`, `bad gatewaz`), "chain_broken", 7},
		"the winner in the log":   {edit("events.jsonl", `"winner":"one"`, `"winner":"two"`), "chain_broken", 25},
		"the last line":           {edit("events.jsonl", `"success":true`, `"success":false`), "chain_broken", 27},
		"the start of match.json": {edit("match.json", "two-steps", "two-stepz"), "chain_broken", 1},
		"the seed":                {edit("match.json", `"seed": "3031`, `"seed": "3032`), "seed_differs", 0},
		"the state":               {edit("match.json", `"state": "finished"`, `"state": "aborted"`), "state_differs", 0},
		"the world's winner":      {edit("world.json", `"winner": "one"`, `"winner": "two"`), "world_differs", 0},
		"our part of the world":   {edit("world.json", `"refbox"`, `"refbux"`), "world_differs", 0},
		"a standing":              {edit("world.json", `"outcome": "won"`, `"outcome": "lost"`), "world_differs", 0},
		"the manifest":            {edit("arena.json", `"points": 40`, `"points": 41`), "arena_altered", 0},
		"evidence":                {edit("seats/one/evidence/a-6.json", `"status": 200`, `"status": 201`), "evidence_altered", 0},
		"an event put in": {func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(append(event.Encode(event.Event{Sequence: 25, ElapsedMS: 8000, Body: event.OperatorNote{Text: "x"}}), '\n'))
			return err
		}, "chain_broken", 28},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			report, err := verifyFolder(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if f.Severity == Break && f.Code == c.code && f.Line == c.line {
					return
				}
			}
			t.Fatalf("not found: %+v", report.Findings)
		})
	}
}

func TestMissingEvidenceIsANote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	writeHeat(t, dir)
	if err := os.Remove(filepath.Join(dir, "seats/one/evidence/a-6.json")); err != nil {
		t.Fatal(err)
	}
	report, err := verifyFolder(t.Context(), dir)
	if err != nil || report.Breaks() != 0 || report.Badge() != "notes" {
		t.Fatalf("%+v %v", report, err)
	}
}

func TestUnfinishedHeatSaysWhereItStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	w := startHeat(t, dir)
	for _, b := range []event.Body{event.MatchStateChanged{From: "preparing", To: "running"}, event.OperatorNote{Text: "on"}} {
		if _, err := w.Append(1500, b); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Live() || r.Integrity().Stopped != "" {
		t.Fatalf("live %v, %+v", r.Live(), r.Integrity())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if changed, err := r.Refresh(); !changed || err != nil || r.Live() {
		t.Fatalf("%v %v %v", changed, err, r.Live())
	}
	report, err := verifyFolder(t.Context(), dir)
	if err != nil || report.Breaks() != 0 || !strings.Contains(report.Stopped, "1500 ms") || !report.Chained || report.Sealed {
		t.Fatalf("%+v %v", report, err)
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := startHeat(t, dir)
	defer w.Close()
	if _, err := Create(dir, Start{}); err == nil || !strings.Contains(err.Error(), "another") {
		t.Fatalf("a second writer got the folder: %v", err)
	}
}

func TestHostileNamesStayInTheirFolder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.String().Draw(rt, "a"), rapid.String().Draw(rt, "b")
		name := fileName(a)
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00\n\x1b") || len(name) > 110 || strings.HasPrefix(name, ".") {
			rt.Fatalf("fileName(%q) = %q", a, name)
		}
		if a != b && name == fileName(b) {
			rt.Fatalf("%q and %q are both %q", a, b, name)
		}
		if len(a) < 20 && unescape(name) != a && a != "" {
			rt.Fatalf("%q comes back as %q", a, unescape(name))
		}
	})
	dir := t.TempDir()
	w := startHeat(t, filepath.Join(dir, "heat"))
	defer w.Close()
	for _, evil := range []string{"../../evil", "/etc/evil", "..", ".", "", "a\x00b", "\x1b[2J", strings.Repeat("x", 5000)} {
		if _, _, err := w.Evidence(evil, evil, 1, 1); err != nil {
			t.Error(err)
		}
		if err := w.Artifact(evil, evil, 1); err != nil {
			t.Error(err)
		}
		if _, err := w.Console(evil, evil); err != nil {
			t.Error(err)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Fatalf("%v", entries)
	}
}

func TestCastRecordsOnTheHeatsClock(t *testing.T) {
	dir := t.TempDir()
	var clock atomic.Uint64
	w, err := Create(dir, Start{Clock: clock.Load})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	for i, chunk := range []string{"boot\r\n", "gr\xc3", "\xbc\xc3\x9fe ", "\x1b[31mred\xff", "\xe2\x82"} {
		clock.Store(uint64(i) * 1000)
		c.Write([]byte(chunk))
		c.Flush()
	}
	c.Resize(100, 30)
	c.Input([]byte("ls\r"))
	c.Marker("a remark")
	c.Input(nil)
	c.Flush()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if m := r.Machines("one"); len(m) != 1 || m[0] != "host" {
		t.Fatal(m)
	}
	cast, err := r.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	defer cast.Close()
	if n := cast.IndexAt(2000); n != 3 {
		t.Fatalf("%d frames by 2000 ms", n)
	}
	clock.Store(9000)
	c.Write([]byte("end"))
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if changed, err := cast.Refresh(); err != nil || !changed {
		t.Fatal(changed, err)
	}
	frames, err := cast.Frames(0, cast.Len())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	var beside []string
	last := uint64(0)
	for _, f := range frames {
		if f.MS < last {
			t.Fatalf("time goes back: %+v", frames)
		}
		last = f.MS
		if f.Kind == 'o' {
			all.Write(f.Data)
		} else {
			beside = append(beside, string(f.Kind)+" "+string(f.Data))
		}
	}
	if got := strings.Join(beside, ", "); got != "r 100x30, i ls\r, m a remark" {
		t.Fatalf("beside the output: %q", got)
	}
	if got, want := all.String(), "boot\r\ngrüße \x1b[31mred\ufffd\xe2\x82end"; got != strings.ToValidUTF8(want, "\ufffd\ufffd") && got != strings.ToValidUTF8(want, "\ufffd") {
		t.Fatalf("%q", got)
	}
	if last != 9000 {
		t.Fatalf("ends at %d", last)
	}
}

func TestCastIsWrittenSoonWithoutBeingAsked(t *testing.T) {
	dir := t.TempDir()
	w := startHeat(t, dir)
	defer w.Close()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	changed := r.Follow(t.Context())
	c, err := w.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	cast, err := r.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	defer cast.Close()
	c.Write([]byte("hello"))
	for cast.Len() == 0 {
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatal("no output came")
		}
		if _, err := cast.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCastIsBounded(t *testing.T) {
	dir := t.TempDir()
	w := startHeat(t, dir)
	c, err := w.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 1 << 20
	c.limit = limit
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	for range limit/len(chunk) + 100 {
		c.Write(chunk)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "seats/one/machines/host/console.cast"))
	if err != nil || info.Size() > limit+4096 || info.Size() < limit/2 {
		t.Fatalf("%v %v", info.Size(), err)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "seats/one/machines/host/console.cast"))
	if bytes.Count(data, []byte("ends here")) != 1 {
		t.Fatal("the record does not say that it ends")
	}
}

// TestKilledWriter kills a process that writes a heat, at many instants.
func TestKilledWriter(t *testing.T) {
	if dir := os.Getenv("REFBOX_TEST_WRITE"); dir != "" {
		w := startHeat(t, dir)
		c, err := w.Console("one", "host")
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("started\n")
		for i := uint64(0); ; i++ {
			if _, err := w.Append(i, event.MilestoneFailed{Territory: "one", Milestone: "a", Detail: strings.Repeat("long ", 2000)}); err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("console\r\n"))
			if _, _, err := w.Evidence("one", "a", i, map[string]uint64{"i": i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if testing.Short() {
		t.Skip("starts processes; not in -short")
	}
	for n := range 10 {
		dir := filepath.Join(t.TempDir(), "heat")
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
		cmd.Env = append(os.Environ(), "REFBOX_TEST_WRITE="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		// The instants differ by how far the log has come.
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for r.Len() < 1+n*7 {
			if _, err := r.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		report, err := verifyFolder(t.Context(), dir)
		if err != nil || report.Breaks() != 0 || report.Events == 0 || report.Stopped == "" || !report.Chained {
			t.Fatalf("killed writer %d: %+v %v", n, report, err)
		}
		if tmp, _ := filepath.Glob(filepath.Join(dir, "*.tmp*")); len(tmp) > 0 {
			t.Fatalf("left %v", tmp)
		}
	}
}

func TestWriterWorldIsTheFold(t *testing.T) {
	dir := t.TempDir()
	w := startHeat(t, dir)
	if _, err := w.Append(1, event.MilestoneFailed{Territory: "one", Milestone: "a", Detail: "bad \xff utf \x1b[31m"}); err != nil {
		t.Fatal(err)
	}
	mine, err := w.World().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := (&event.Decoder{Raw: true}).Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := folded(e).JSON()
	if err != nil || !bytes.Equal(mine, theirs) {
		t.Fatalf("%s\n%s", mine, theirs)
	}
}

// Of a sealed heat every altered byte of the log is a break, and its line is named.
func TestAnyAlteredByteOfASealedHeatIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "recordings", "primary-failover"))); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, eventsFile)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	edits := 60
	if testing.Short() {
		edits = 15
	}
	for range edits {
		at, to := rand.IntN(len(whole)), byte(rand.IntN(256))
		if to == whole[at] {
			continue
		}
		altered := bytes.Clone(whole)
		altered[at] = to
		write(t, log, string(altered))
		report, err := verifyFolder(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		line := 1 + bytes.Count(whole[:at], []byte("\n"))
		if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
			return f.Severity == Break && f.Code == "chain_broken" && f.Line == line
		}) {
			t.Fatalf("byte %d, of line %d, changed from %q to %q: %+v", at, line, whole[at], to, report.Findings)
		}
	}
}
