package step

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/transcript"
	"refbox/recordings"
	"refbox/tui/view"
	"refbox/tui/viewtest"
)

func TestJumps(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	for _, leap := range []struct {
		key string
		to  int
	}{
		{"M", demoMask}, {"M", demoEdit}, {"n", demoWrite}, {"N", demoEdit}, {"alt+M", demoMask},
		{"C", demoCheck}, {"L", demoRestart}, {"E", demoFailed}, {"n", demoFailed}, {"alt+C", demoCheck},
		{"}", demoColors}, {"{", demoCheck}, {".", demoColors}, {",", demoCheck}, {"g", 0}, {"G", demoEnd},
	} {
		x.press(leap.key)
		x.at(leap.to)
	}
	x.press("M")
	if !strings.Contains(x.said, "no further mutation") {
		t.Errorf("at the end: %q", x.said)
	}
	x.press("g", "A")
	if !strings.Contains(x.said, "no further anomaly") {
		t.Errorf("without anomalies: %q", x.said)
	}
}

func TestGoTo(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	for _, place := range []struct {
		typed string
		to    int
	}{{"7", 7}, {"#3", 3}, {"100%", demoEnd}, {"start", 0}, {"end", demoEnd}, {"0:09", demoColors}, {"9s", demoColors}, {"50%", 7}} {
		x.press(":")
		x.answer(place.typed)
		x.at(place.to)
	}
	x.press(":")
	x.answer("99")
	if !strings.Contains(x.said, "there is no step 99") {
		t.Errorf("said %q", x.said)
	}
	x.at(7)
	x.press(":")
	x.answer("rubbish")
	if !strings.Contains(x.said, "a step's number") {
		t.Errorf("said %q", x.said)
	}
}

func TestBeginsAtAStep(t *testing.T) {
	path := demo(t)
	s, err := Open(path, "", demoEdit)
	if err != nil {
		t.Fatal(err)
	}
	stageOf(t, s, 120, 33).at(demoEdit)
	if _, err := Open(path, "", 16); err == nil || !strings.Contains(err.Error(), "has no step 16: 16 steps") {
		t.Errorf("a step too many: %v", err)
	}
	if _, err := Open(path, filepath.Join(filepath.Dir(path), "absent"), -1); err == nil {
		t.Error("an absent file beside was opened")
	}
}

func TestSearch(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.press("/")
	x.answer("Needle in the")
	x.at(demoGiant)
	x.shows("needle in the giant") // what was folded was opened, and scrolled to
	x.press("n")
	x.at(demoGiant)
	x.shows("from the start again")
	x.press("esc", "esc", "esc", "/")
	x.answer("failover-proxy")
	x.at(demoLook) // round the end
	x.press("N")
	x.at(demoRestart)
	x.shows("from the end again")
	x.press("/")
	x.answer("in no step")
	x.at(demoRestart)
	x.shows("no step has in no step")
}

func TestSearchGoesBackAndSkipsReasoning(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.press("/")
	x.answer("private thought")
	x.at(0)
	x.shows("no step has")
	x.press("esc", "R", "/")
	x.answer("private thought")
	x.at(demoPrivate)
	x.shows("PRIVATE thought")
	x.press("/")
	x.answer("failover-proxy")
	x.at(demoLook)
	x.press("n")
	x.at(demoRestart)
	x.press("N")
	x.at(demoLook)
}

func TestPrivateAndSealed(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	for _, step := range []int{demoPrivate, demoSealed} {
		x.goTo(step)
		x.lacks("PRIVATE", "S3CR3T")
		x.press("y")
		if strings.Contains(x.copied, "PRIVATE") || strings.Contains(x.copied, "S3CR3T") {
			t.Errorf("copied %q", x.copied)
		}
		x.press("enter")
		x.lacks("PRIVATE", "S3CR3T")
		x.press("esc", "esc")
	}
	x.press("R")
	x.goTo(demoPrivate)
	x.shows("PRIVATE thought about the replica")
	x.lacks("S3CR3T")
	x.goTo(demoSealed)
	x.lacks("S3CR3T")
	x.press("R")
	x.goTo(demoPrivate)
	x.lacks("PRIVATE")
}

func TestGiantsAreFolded(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.goTo(demoGiant)
	x.lacks("record 110 ")
	x.press("enter")
	for range 4 {
		x.press("pgdown")
	}
	x.shows("record 110 ")
	x.press("esc")
	if x.step.track().open {
		t.Error("escape does not fold")
	}
	x.at(demoGiant)
}

func TestFilter(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.goTo(demoEdit)
	x.press("F")
	x.shows("[ ] mutation", "[ ] any tool", "[ ] Bash")
	x.press("j", "enter", "F")
	x.shows("3 steps", "only mutation")
	x.at(demoEdit)
	x.press("j")
	x.at(demoWrite)
	x.press("j")
	x.at(demoWrite)
	x.press("F", "g", "enter", "F") // all steps
	x.shows("16 steps")
	x.at(demoWrite)
	x.press("F")
	for range 20 {
		if list := x.step.track().choices(); list[x.step.chooser.at].name == "Write" {
			break
		}
		x.press("j")
	}
	x.press("enter", "F")
	x.shows("1 step", "only Write")
}

func TestSubAgent(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.goTo(demoDelegate)
	x.shows("▸ look at the unit", "enter steps through abc")
	x.press("enter")
	x.shows("3 steps", "It runs.")
	if c := x.s.Crumbs(); c[len(c)-1] != "abc" {
		t.Errorf("crumbs %q", c)
	}
	x.press("G")
	x.at(2)
	x.press("esc")
	x.at(demoDelegate)
	if x.s.Back() {
		t.Error("escape does not leave")
	}
}

// What is appended comes by itself, and moves nothing but a pinned choice.
func TestFollowsAFileThatGrows(t *testing.T) {
	s := newSession(t)
	s.user("go")
	s.bash("ls", "a")
	x := opened(t, s.write(), 120, 33)
	x.goTo(1)
	more := func() {
		before := s.b.Len()
		s.bash("systemctl restart x.service", "")
		f, err := os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(s.b.String()[before:]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	until := func(n int) {
		t.Helper()
		late := time.NewTimer(10 * time.Second)
		defer late.Stop()
		for x.step.track().tr.Len() < n {
			select {
			case <-x.s.Feed():
			case <-time.After(50 * time.Millisecond):
			case <-late.C:
				t.Fatalf("%d steps, want %d; %s", x.step.track().tr.Len(), n, x.step.track().faulted())
			}
			x.s.Advance(time.Time{})
		}
		x.settle()
	}
	more()
	until(3)
	x.at(1)
	x.press("G")
	x.at(2)
	more()
	until(4)
	x.at(3)
	x.press("k")
	more()
	until(5)
	x.at(2)
	x.shows("↻")
}

func TestTwoOnOneClock(t *testing.T) {
	a, b := newSession(t), newSession(t)
	a.user("a")
	b.second = 10 // begins ten seconds later
	b.user("b")
	for i := range 10 {
		a.bash(fmt.Sprintf("echo a%d", i), "")
		b.bash(fmt.Sprintf("echo b%d", i), "")
	}
	s, err := Open(a.write(), b.write(), -1)
	if err != nil {
		t.Fatal(err)
	}
	x := stageOf(t, s, 160, 33)
	x.shows("one clock: the time of day")
	x.at(0)
	x.press(":")
	x.answer("7") // at 13 s
	other := func(want int) {
		t.Helper()
		if got := int(x.step.sides[1-x.step.lead].top().value()); got != want {
			t.Fatalf("the other side is at %d, want %d:\n%s", got, want, x.text())
		}
	}
	other(2) // began at 13 s, too
	x.press("2")
	x.at(2)
	x.press("j", "j")
	x.at(4)
	other(9)
	x.press("g")
	other(5)
	x.press("tab", "tab") // through its page to the first side
	if x.step.lead != 0 || x.step.detail {
		t.Errorf("tab leads to side %d, page %v", x.step.lead, x.step.detail)
	}
	x.press("+")
	x.lacks("echo b")
	x.press("_")
	x.shows("echo something")
}

func TestIntegrityPanel(t *testing.T) {
	s := newSession(t)
	s.user("go")
	s.bash("ls", "a")
	s.b.WriteString("no json at all\n")
	s.user("more")
	x := opened(t, s.write(), 120, 33)
	x.press("i")
	x.shows("integrity", "byte", "read ")
	found := x.step.track().integrity().Findings
	if len(found) == 0 || found[0].Step < 0 {
		t.Fatalf("%+v", found)
	}
	x.shows(view.Count(found[0].Offset))
	x.press("enter")
	x.at(found[0].Step)
	x.press("esc")
	x.lacks("┏ integrity")
	x.press("g", "A")
	x.at(found[0].Step)
}

func TestCopyAndEditor(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.goTo(demoColors)
	x.press("y")
	for _, want := range []string{"ls --color=always /srv", "100% done"} {
		if !strings.Contains(x.copied, want) {
			t.Errorf("the copy lacks %q: %q", want, x.copied)
		}
	}
	if strings.ContainsAny(x.copied, "\x1b\x07\r") || strings.Contains(x.copied, "evil") {
		t.Errorf("the copy has controls: %q", x.copied)
	}
	f, err := x.step.track().tr.FullLimit(demoGiant, editLimit)
	if err != nil {
		t.Fatal(err)
	}
	name, err := leaf(f, false)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(name))
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "needle in the giant") {
		t.Error("the editor's copy is cut")
	}
}

// An editor that is given a pipe for a terminal cannot be used: vi says so and waits.
func TestEditorGetsTheTerminal(t *testing.T) {
	cmd := editing([]string{"vi", "-R"}, "/a b")
	if cmd.Stdin != os.Stdin || cmd.Stdout != os.Stdout || cmd.Stderr != os.Stderr {
		t.Error("the editor would not be given the terminal")
	}
	if want := []string{"vi", "-R", "/a b"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("%q", cmd.Args)
	}
}

func TestNoEditor(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "/no/such/editor --wait")
	x := opened(t, demo(t), 120, 33)
	x.press("v")
	if !strings.Contains(x.said, "there is no editor /no/such/editor") {
		t.Errorf("said %q", x.said)
	}
}

func TestAsciicastAndHeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.cast")
	cast := `{"version":2,"width":80,"height":24}` + "\n" + `[0.5,"o","\u001b[32mready\u001b[m\r\n"]` + "\n" + `[2.0,"o","done\r\n"]` + "\n"
	if err := os.WriteFile(path, []byte(cast), 0o600); err != nil {
		t.Fatal(err)
	}
	x := opened(t, path, 120, 33)
	x.press("G")
	x.shows("done")
}

// seatOf opens a seat of a recording that the program brings along.
func seatOf(t *testing.T, rec *recording.Recording, territory string) (*stage, *uint64) {
	t.Helper()
	var sought uint64
	s, err := OpenSeat(view.Seat{Recording: rec, Territory: territory, Now: func() uint64 { return 0 }, Seek: func(ms uint64) { sought = ms }})
	if err != nil {
		t.Fatal(err)
	}
	return stageOf(t, s, 120, 33), &sought
}

// A heat whose players are scripts has no transcripts: what was observed is
// stepped through, with the milestones between, and the recorded sessions.
func TestObservedSeat(t *testing.T) {
	rec, err := recording.OpenFS(recordings.Heats(), "primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := rec.World(rec.Len())
	x, sought := seatOf(t, rec, *w.Winner)
	seat := w.Seat(*w.Winner)
	if got := len(x.step.track().rows) - len(x.step.track().marks); got != seat.Actions.Len() {
		t.Errorf("%d steps, %d actions", got, seat.Actions.Len())
	}
	x.press("g", "]")
	if v := x.step.track().value(); v >= 0 {
		t.Errorf("the next milestone is step %d", v)
	}
	x.shows("milestone ")
	x.press("H")
	if ms, _ := x.step.track().when(x.step.track().sel); *sought != uint64(ms) || ms == 0 {
		t.Errorf("the heat was moved to %d, the milestone is at %d", *sought, ms)
	}
	x.press("y")
	if !strings.Contains(x.said, "milestone") || x.copied != "" {
		t.Errorf("copying a milestone: %q, %q", x.said, x.copied)
	}
	mark := x.step.track().sel
	x.press("enter") // to the step that came before it
	if tr := x.step.track(); tr.value() < 0 || tr.sel >= mark || x.step.detail {
		t.Errorf("enter on the milestone in row %d leads to row %d, %q", mark, tr.sel, x.said)
	}
	if v := x.step.track().stepAt(mark); int(x.step.track().value()) != v {
		t.Errorf("that is step %d, not %d", x.step.track().value(), v)
	}
	x.press("g", "}")
	h, ok := x.step.track().chosen()
	if !ok || h.Kind != transcript.ToolCall {
		t.Fatalf("no action: %+v", h)
	}
	if x.step.track().cast(h) == "" {
		t.Fatal("the action has no session")
	}
	x.press("enter")
	if x.failed != nil {
		t.Fatal(x.failed)
	}
	x.shows("asciicast")
	x.press("esc")
	for i, s := range w.Seats() { // and another seat beside it
		if s.ID != seat.ID {
			x.press(fmt.Sprint(i + 1))
			break
		}
	}
	if len(x.step.sides) != 2 {
		t.Fatalf("%d sides", len(x.step.sides))
	}
	x.shows("1 observed", "2 observed")
}

// A heat of the reference system: transcripts are placed on the heat's clock.
func TestReferenceSeat(t *testing.T) {
	rec, err := recording.Open(viewtest.Shared(t, "recordings", "infra-core-primary-failover-round-002"))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, _ := seatOf(t, rec, "failover-three")
	x.shows("the heat's clock ±")
	x.press("}")
	x.press("}")
	x.shows("the reference: validation")
	x.press("G", "[")
	if v := x.step.track().value(); v >= 0 {
		t.Errorf("the milestone before the end is step %d:\n%s", v, x.text())
	}
	x.golden("heat-120x33")
	if _, err := OpenSeat(view.Seat{Recording: rec, Territory: "nowhere"}); err == nil {
		t.Error("a seat that is not there was opened")
	}
}

// Where the system tells nothing of a growing file, it is looked at now and then.
func TestLooksWhereNothingIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		often(ctx, func() {
			select {
			case told <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	<-told
	<-told
	stop()
	<-done
}

func TestClick(t *testing.T) {
	x := opened(t, demo(t), 120, 33)
	x.step.Click(x, 5, 1+demoEdit)
	x.settle()
	x.at(demoEdit)
	x.step.Click(x, 100, 10)
	if !x.step.detail {
		t.Error("a click does not lead to the page")
	}
	x.step.Click(x, 5, 31) // the totals
	x.at(demoEdit)
}

// A live heat: actions and milestones come as they happen.
func TestLiveSeat(t *testing.T) {
	var clock atomic.Uint64
	dir := filepath.Join(t.TempDir(), "heat")
	began := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	w, err := recording.Create(dir, recording.Start{
		Match: recording.Match{ControllerVersion: "test", ArenaID: "demo", ArenaMode: "buildrace", StartedAt: &began}, Seed: []byte("0123456789abcdef"), Clock: clock.Load,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	add := func(ms uint64, bodies ...event.Body) {
		t.Helper()
		clock.Store(ms)
		for _, b := range bodies {
			if _, err := w.Append(ms, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	act := func(ms, number uint64, command string) {
		exit := 0
		add(ms, event.AgentActionStarted{Territory: "one", Agent: "a", Action: number, Channel: "exec", Machine: "main", Command: command})
		add(ms+100, event.AgentActionFinished{Territory: "one", Agent: "a", Action: number, Exit: &exit, TookMS: 100, Output: "ok\n", Bytes: 3})
	}
	add(0, event.MatchStateChanged{From: "preparing", To: "running"}, event.TerritoryRegistered{Territory: "one", Class: "builder", Agent: "a"})
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	x, _ := seatOf(t, rec, "one")
	x.shows("no step yet")
	x.press("G")
	until := func(words string) {
		t.Helper()
		late := time.NewTimer(10 * time.Second)
		defer late.Stop()
		for !strings.Contains(x.text(), words) {
			select {
			case <-x.s.Feed():
			case <-time.After(50 * time.Millisecond):
			case <-late.C:
				t.Fatalf("%q does not come:\n%s", words, x.text())
			}
			if _, err := rec.Refresh(); err != nil { // as the heat's own screen does
				t.Fatal(err)
			}
			x.s.Advance(time.Time{})
		}
	}
	act(1000, 1, "systemctl mask old")
	until("systemctl mask old")
	add(2000, event.MilestonePassed{Territory: "one", Milestone: "fenced", Points: 30})
	act(3000, 2, "systemctl start new")
	until("milestone fenced passed, 30")
	until("systemctl start new")
	x.settle()
	rows := x.step.track().rows
	if len(rows) != 3 || rows[0] < 0 || rows[1] >= 0 || rows[2] < 0 {
		t.Errorf("rows %v", rows)
	}
	if x.step.track().sel != 2 {
		t.Errorf("not at the newest: row %d", x.step.track().sel)
	}
}
