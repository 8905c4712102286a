package tui

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"

	"refbox/engine/event"
	"refbox/engine/playback"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// folded is the fold of a recording's first n events, made here.
func folded(t *testing.T, h *heat, n int) *world.World {
	t.Helper()
	w := world.New()
	if err := h.rec.Events(0, n, func(_ int, e event.Event) bool { world.Apply(w, e); return true }); err != nil {
		t.Fatal(err)
	}
	return w
}

// same fails unless the heat shows the fold of its first n events.
func same(t *testing.T, h *heat, n int) {
	t.Helper()
	want := folded(t, h, n)
	got, err := h.world.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := want.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(ref), string(got)); diff != "" || h.index != n {
		t.Fatalf("%d events are shown, not the %d that should be:\n%s", h.index, n, diff)
	}
}

func TestSteppingShowsExactPrefixes(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	h := d.heat()
	var forth []int
	for {
		before := h.index
		d.press(".")
		if h.index == before {
			break
		}
		same(t, h, h.index)
		forth = append(forth, h.index)
	}
	if len(forth) < 10 {
		t.Fatalf("%d steps", len(forth))
	}
	for i := len(forth) - 2; i >= 0; i-- {
		d.press(",")
		if h.index != forth[i] {
			t.Fatalf("back at %d, forth it was %d", h.index, forth[i])
		}
	}
	// Keys that come in one read are as many keys.
	d.press("g")
	d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("...")})
	if h.index != forth[2] {
		t.Fatalf("three steps in one read went to %d, not to %d", h.index, forth[2])
	}
	// Keys that come faster than frames are not lost.
	d.press("g", ".", ".", ".")
	if h.index != forth[2] {
		t.Fatalf("three quick steps went to %d, not to %d", h.index, forth[2])
	}
}

func TestSeekingShowsTheFoldOfThePrefix(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	h := d.heat()
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		ms := uint64(r.IntN(9500))
		d.goTo(fmt.Sprintf("%dms", ms))
		same(t, h, h.rec.IndexAt(min(ms, 9000)))
	}
	d.press("g")
	same(t, h, h.rec.IndexAt(0))
}

func TestMilestoneAndActionSteps(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	h := d.heat()
	for _, want := range []uint64{3500, 4400, 8000} {
		d.press("]")
		if h.now != want {
			t.Fatalf("] is at %d, not at %d", h.now, want)
		}
		if e, err := h.rec.Event(h.index - 1); err != nil || e.Body.Kind() != "milestone_passed" {
			t.Fatalf("%v %v", e, err)
		}
	}
	d.press("{")
	if h.now != 5200 {
		t.Fatalf("{ is at %d", h.now)
	}
	d.press("[")
	if h.now != 4400 {
		t.Fatalf("[ is at %d", h.now)
	}
}

func TestPrompt(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	h := d.heat()
	for where, want := range map[string]uint64{"50%": 4500, "3s": 3000, "0m04s": 4000, "00:05": 5000, "12m30s": 9000, "end": 9000, "start": 0} {
		d.goTo(where)
		if h.now != want {
			t.Errorf(":%s is at %d, not at %d", where, h.now, want)
		}
	}
	d.goTo("2s")
	for _, garbage := range []string{"x", "50%%", "-3", "１", "1e400s"} {
		d.goTo(garbage)
		if h.now != 2000 || d.m.notice == "" || !strings.Contains(d.text(), strings.Fields(d.m.notice)[0]) {
			t.Errorf(":%s is at %d and says %q", garbage, h.now, d.m.notice)
		}
	}
	d.press(":", "9", "s", "esc")
	if h.now != 2000 || d.m.prompt != nil {
		t.Errorf("esc did not give up: %d", h.now)
	}
	// A long text keeps its end, and the cursor, in view.
	d.press(":")
	for range 150 {
		d.press("7")
	}
	d.press("8")
	viewtest.Fits(t, d.m.View(), 120, 34)
	d.shows("78")
}

func TestFind(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	h := d.heat()
	found := func(want uint64) {
		t.Helper()
		d.until("found", func() bool { return !strings.HasPrefix(d.m.notice, "looking") })
		if h.now != want {
			t.Fatalf("at %d, not at %d: %s", h.now, want, d.m.notice)
		}
		same(t, h, h.index)
	}
	d.press("/")
	d.write("PASSED")
	found(3500)
	d.shows("PASSED reads-restored, +20")
	d.press("n")
	found(4400)
	d.press("n")
	found(8000)
	d.press("N")
	found(4400)
	d.press("n", "n")
	found(8000) // the first n was given up for the second, from where it stood
	d.goTo("end")
	d.press("n")
	found(3500)
	d.shows("from the start: ")
	d.press("N")
	found(9000)
	d.shows("from the end: ")
	d.goTo("8s")
	d.press("/")
	d.write("no such words")
	d.until("told", func() bool { return strings.HasPrefix(d.m.notice, "no event with") })
	if h.now != 8000 {
		t.Fatalf("moved to %d for nothing", h.now)
	}
}

func TestNothingMovesWhilePaused(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("5s")
	if wait := d.m.top().advance(d.now); wait != 0 {
		t.Fatalf("paused, and wants a frame in %v", wait)
	}
	frame, drawn := d.m.View(), d.m.frames
	d.send(struct{}{})
	d.send(tea.FocusMsg{})
	d.send(tea.WindowSizeMsg{Width: 120, Height: 34})
	d.send(tea.MouseMsg{Action: tea.MouseActionMotion})
	if again := d.m.View(); again != frame || d.m.frames != drawn {
		t.Fatal("a frame was drawn although nothing changed")
	}
	d.press(" ")
	if wait := d.m.top().advance(d.now); wait == 0 {
		t.Fatal("playing, and wants no frame")
	}
	d.wait(time.Second)
	if d.heat().now != 6000 {
		t.Fatalf("a second of playing came to %d", d.heat().now)
	}
	d.wait(10 * time.Second)
	if s := d.heat().play.State(d.now, d.heat().head(d.now)); s != playback.Ended {
		t.Fatalf("at the end it is %s", s)
	}
	if wait := d.m.top().advance(d.now); wait != 0 {
		t.Fatalf("at the end, and wants a frame in %v", wait)
	}
	d.shows("at the end")
}

func TestSpeeds(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("1s")
	d.press(">", ">", " ")
	d.wait(time.Second)
	if d.heat().now != 5000 {
		t.Fatalf("×4 for a second came to %d", d.heat().now)
	}
	d.shows("×4")
	d.press("backspace")
	d.wait(time.Second)
	if d.heat().now != 6000 {
		t.Fatalf("×1 for a second came to %d", d.heat().now)
	}
}

// One tick is pending at most, however many keys come.
func TestTicksDoNotPileUp(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.press(" ")
	before := d.m.ticks
	for range 50 {
		d.press("tab")
	}
	if n := d.m.ticks - before; n > 1 {
		t.Fatalf("%d ticks were scheduled by 50 keys", n)
	}
	// An overtaken tick leaves no second train of ticks behind.
	d.send(tickMsg{d.m.ticks - 1})
	if n := d.m.ticks - before; n > 1 {
		t.Fatalf("an overtaken tick scheduled another: %d", n)
	}
}

func TestScreensShareOneFeed(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	d := watchOf(t, x.dir, 120, 34, plainOutput(), Desk{})
	for range 5 {
		d.press("enter", "esc", "w", "esc")
	}
	if len(d.m.watched) != 1 {
		t.Fatalf("%d waiters for one recording", len(d.m.watched))
	}
	// Coming back to the overview has not ended the recording.
	x.middle()
	d.until("the heat goes on", func() bool { return d.heat().now >= 7000 })
	d.shows("50/100")
}

func TestLiveFollowsAndPauses(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	d := watchOf(t, x.dir, 120, 34, plainOutput(), Desk{})
	d.shows("● LIVE")
	d.shows("×1 following")
	x.middle()
	d.until("what was written is shown", func() bool { return d.heat().index == d.heat().rec.Len() && d.heat().rec.Head() == 7000 })
	d.shows("verifying writes-restored")
	// Between two events a live clock goes on, to a bound, and then nothing ticks.
	d.wait(time.Second)
	if d.heat().now != 8000 {
		t.Fatalf("a second after an event it is %d", d.heat().now)
	}
	d.wait(time.Minute)
	if wait := d.m.top().advance(d.now); wait != 0 || d.heat().now > 7000+uint64(maxAhead/time.Millisecond) {
		t.Fatalf("a quiet minute later it is %d, next frame in %v", d.heat().now, wait)
	}
	d.press(" ")
	d.shows("LIVE, behind")
	paused := d.heat().index
	x.finish()
	d.until("the end was read", func() bool { return !d.heat().rec.Live() && d.heat().rec.Head() == 9000 })
	if d.heat().index != paused {
		t.Fatalf("paused at %d events, %d are shown", paused, d.heat().index)
	}
	d.press("G")
	d.shows("winner failover-one")
	d.shows("at the end")
	same(t, d.heat(), d.heat().rec.Len())
}

// Data that arrives moves neither the selection nor the scroll.
func TestDataMovesNothing(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	for i := range 60 {
		x.console(demoSeats[1], fmt.Sprintf("\r\nline %d", i))
	}
	for i := range uint64(8) {
		x.action(2000+i, demoSeats[1], i+1, fmt.Sprintf("command %d", i+1), 0)
	}
	d := watchOf(t, x.dir, 120, 34, plainOutput(), Desk{})
	d.press("2", "enter", "tab", "k", "k")
	s := d.m.top().(*seatScreen)
	d.shows("$ command 7")
	chosen := s.action
	d.press("tab", "pgup")
	d.shows("20 lines back")
	console := func() string {
		for _, l := range strings.Split(d.text(), "\n") {
			if i := strings.Index(l, "line 2"); i >= 0 {
				return l[i:]
			}
		}
		return ""
	}
	before := console()
	if before == "" {
		t.Fatalf("no old line is shown:\n%s", d.text())
	}
	head := d.heat().rec.Head()
	for i := range uint64(5) {
		x.console(demoSeats[1], fmt.Sprintf("\r\nnew %d", i))
		x.action(3000+i, demoSeats[1], 9+i, fmt.Sprintf("later %d", i), 0)
	}
	d.until("it was read", func() bool { return d.heat().rec.Head() > head && d.heat().index == d.heat().rec.Len() })
	d.until("the console too", func() bool { d.m.dirty = true; d.m.View(); return s.up == 25 })
	if console() != before || s.action != chosen || s.focus != paneConsole || d.heat().seat != 1 {
		t.Fatalf("moved: %q to %q, action %d to %d\n%s", before, console(), chosen, s.action, d.text())
	}

	// The same of the evidence: who reads a record goes on reading it.
	d.press("esc", "1", "enter", "enter", "tab")
	e := d.m.top().(*evidenceScreen)
	d.m.View()
	record := e.record
	if record == "" {
		t.Fatalf("no record is shown:\n%s", d.text())
	}
	x.fail(4000, demoSeats[0], "reads-restored", 6, "GET /health: 502")
	d.until("it was read", func() bool { return d.heat().now >= 4000 })
	if d.m.View(); e.record != record {
		t.Fatalf("the record changed under the reader: %s to %s", record, e.record)
	}
	d.press("tab")
	if d.m.View(); e.record == record {
		t.Fatal("back at the list the newest record is not shown")
	}
}

func TestResizeStorm(t *testing.T) {
	dir := demoHeat(t)
	overlays := append(tours[:len(tours):len(tours)], struct {
		name string
		keys func(d *driver)
	}{"prompt", func(d *driver) { d.press(":", "1") }}, struct {
		name string
		keys func(d *driver)
	}{"zoom", func(d *driver) { d.goTo("7s"); d.press("+") }}, struct {
		name string
		keys func(d *driver)
	}{"action", func(d *driver) { d.goTo("7s"); d.press("enter", "tab", "k", "enter") }}, struct {
		name string
		keys func(d *driver)
	}{"dialog", func(d *driver) {
		d.m.dirty = true
		d.m.dialog = &dialog{title: "The heat is live", lines: []string{"Leaving the screen need not end the race."}, answers: []answer{{"e", "end it", nil}, {"esc", "stay", nil}}}
	}})
	for _, o := range overlays {
		t.Run(o.name, func(t *testing.T) {
			d := replayOf(t, dir, 120, 34, plainOutput())
			o.keys(d)
			for w := range 41 {
				for h := range 13 {
					d.send(tea.WindowSizeMsg{Width: w, Height: h})
					viewtest.Fits(t, d.m.View(), w, h)
				}
			}
			r := rand.New(rand.NewPCG(3, uint64(len(o.name))))
			for range 60 {
				w, h := 40+r.IntN(260), 12+r.IntN(80)
				d.send(tea.WindowSizeMsg{Width: w, Height: h})
				viewtest.Fits(t, d.m.View(), w, h)
			}
			// After the storm the frame is the one of a calm start.
			d.send(tea.WindowSizeMsg{Width: 120, Height: 34})
			calm := replayOf(t, dir, 120, 34, plainOutput())
			o.keys(calm)
			if a, b := d.text(), calm.text(); a != b {
				t.Fatalf("after the storm:\n%s\nafter a calm start:\n%s", a, b)
			}
		})
	}
	t.Run("lobby", func(t *testing.T) {
		d := lobbyOf(t, 80, 24, plainOutput(), dir)
		for w := range 41 {
			for h := range 13 {
				d.send(tea.WindowSizeMsg{Width: w, Height: h})
				d.press("j", "k")
				viewtest.Fits(t, d.m.View(), w, h)
			}
		}
	})
}

func TestKeysWhileTooSmall(t *testing.T) {
	d := replayOf(t, demoHeat(t), 39, 11, plainOutput())
	before := d.heat().index
	d.press(".", "]", "enter", "2", "?", ":", "T")
	if d.heat().index != before || len(d.m.screens) != 1 || d.m.help != nil || d.m.prompt != nil || d.heat().seat != 0 {
		t.Fatal("a key acted where nothing can be seen")
	}
	d.press("q")
	d.until("q leaves", func() bool { return d.left })
}

func TestSeatsAndZoom(t *testing.T) {
	d := replayOf(t, demoHeat(t), 80, 24, plainOutput())
	d.goTo("7s")
	d.shows("1 failover-one")
	d.lacks("failover-three · ")
	d.press("3")
	d.shows("┏ 3 failover-three")
	d.press("tab")
	d.shows("┏ 1 failover-one")
	d.press("shift+tab", "+")
	d.lacks("2 failover-two")
	d.shows("┏ 3 failover-three")
	d.press("esc")
	d.shows("2 failover-two")
	d.press("esc") // the first screen stays
	if len(d.m.screens) != 1 || d.left {
		t.Fatal("esc left the first screen")
	}
	// The choice outlives a look at the time before there were seats.
	d.press("g", ",", ",")
	d.goTo("7s")
	d.shows("┏ 3 failover-three")
}

// Heats of any number of seats.
func TestAnyNumberOfSeats(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5, 8, 40} {
		x := startTape(t, nil)
		x.add(0, event.MatchStateChanged{From: "preparing", To: "running"})
		for i := range n {
			x.add(1000, event.TerritoryRegistered{Territory: fmt.Sprintf("seat-%02d-%s", i, strings.Repeat("long", i%5)), Class: "c", Agent: "a"})
		}
		d := watchOf(t, x.dir, 80, 24, plainOutput(), Desk{})
		for _, size := range [][2]int{{40, 12}, {80, 24}, {200, 60}} {
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			for range n + 1 {
				d.press("tab")
				viewtest.Fits(t, d.m.View(), size[0], size[1])
				if n > 0 {
					d.shows(fmt.Sprintf("▸seat-%02d", d.heat().seat))
				}
			}
			d.press("enter")
			viewtest.Fits(t, d.m.View(), size[0], size[1])
			d.press("esc", "w")
			viewtest.Fits(t, d.m.View(), size[0], size[1])
			d.press("esc", "9")
			viewtest.Fits(t, d.m.View(), size[0], size[1])
		}
	}
}

// Every recording that there is opens, plays, steps and fits.
func TestAllRecordings(t *testing.T) {
	for _, dir := range viewtest.Recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			d := replayOf(t, dir, 120, 34, plainOutput())
			for _, keys := range []string{". . . ] } 2", ": 5 0 % enter", "enter tab k tab tab enter esc esc", "w j j enter tab j esc esc", "i j pgdown i", "G", "enter enter esc esc", "?"} {
				d.press(strings.Fields(keys)...)
				for _, size := range [][2]int{{80, 24}, {200, 60}, {120, 34}} {
					d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
					viewtest.Fits(t, d.m.View(), size[0], size[1])
				}
			}
		})
	}
}

func TestMouse(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("7s")
	click := func(x, y int) {
		d.send(tea.MouseMsg{X: x, Y: y, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft})
	}
	click(60, 10)
	d.shows("┏ 2 failover-two")
	click(60, 10)
	if _, ok := d.m.top().(*seatScreen); !ok {
		t.Fatal("a click on the chosen seat does not open it")
	}
	d.press("esc")
	d.send(tea.MouseMsg{X: 1, Y: 1, Action: tea.MouseActionPress, Button: tea.MouseButtonWheelDown})
	d.shows("┏ 3 failover-three")
	d.press("m")
	d.shows("mouse on")
	d.press("m")
	d.shows("mouse off")
}

func TestTheme(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()})
	dark, text := d.m.View(), d.text()
	d.press("T", "tab", "shift+tab") // the notice goes with a key
	if d.m.View() == dark || d.text() != text {
		t.Fatal("the other theme changes nothing, or more than colours")
	}
	d.press("T", "tab", "shift+tab")
	if d.m.cfg.Output.Theme.Name() != "high-contrast" || d.m.View() == dark {
		t.Fatal("there is no theme of high contrast")
	}
	d.press("T", "tab", "shift+tab")
	if d.m.View() != dark {
		t.Fatal("the first theme does not come back")
	}
}

func TestLobby(t *testing.T) {
	dir := demoHeat(t)
	d := lobbyOf(t, 120, 34, plainOutput(), dir)
	d.press("j", "enter", "enter") // the second enter finds it opening
	d.until("the recording opens", func() bool { return len(d.m.screens) > 1 })
	d.shows("┏ 1 failover-one")
	if len(d.m.screens) != 2 {
		t.Fatalf("%d screens", len(d.m.screens))
	}
	d.press("enter", "esc", "esc")
	d.shows("arenas and recordings")
	if len(d.m.screens) != 1 {
		t.Fatalf("%d screens", len(d.m.screens))
	}
	d.until("its recording is no longer followed", func() bool { return len(d.m.watched) == 0 })
	d.press("/")
	for _, r := range "zzz" {
		d.press(string(r))
	}
	d.shows("nothing matches")
	d.press("esc")
	d.shows("demo-heat")
	d.press("/")
	d.write("demo-h")
	d.shows("filter: demo-h")
	d.press("esc")
	d.lacks("filter")
	d.press("g", "enter")
	d.shows("Race a heat?")
	d.shows("demo-failover starts 3 real machines for 3 seats")
	d.press("esc", "enter")
	if d.left || d.m.choice.Run != "" {
		t.Fatalf("it is raced without an answer: %+v", d.m.choice)
	}
	d.press("enter")
	d.until("an arena is chosen", func() bool { return d.left })
	if d.m.choice.Run != "demo-failover" {
		t.Fatalf("%+v", d.m.choice)
	}
}

// A recording that cannot be opened is a sentence, and can be tried again.
func TestLobbyCannotOpen(t *testing.T) {
	dir := demoHeat(t)
	d := lobbyOf(t, 80, 24, plainOutput(), dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.press("j", "enter")
	d.until("told", func() bool { return d.m.notice != "" })
	if len(d.m.screens) != 1 || d.m.screens[0].(*lobby).opening {
		t.Fatal("it opened, or still tries")
	}
}

// A notice goes by itself: after its time, or when it is no longer true.
func TestNoticesGo(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.press("X")
	d.shows("nothing to end")
	d.wait(noticeTime - time.Second)
	d.shows("nothing to end")
	d.wait(time.Second)
	d.lacks("nothing to end")
	d.shows("q leave")
	if wait := d.m.top().advance(d.now); wait != 0 {
		t.Fatalf("nothing moves, and a frame is wanted in %v", wait)
	}

	l, x, _ := liveOf(t, true)
	l.press("X")
	l.write("enough")
	l.until("told", func() bool { return strings.HasPrefix(l.m.notice, "ending") })
	x.middle()
	x.finish()
	l.until("over", func() bool { return l.heat().world.Over() })
	l.wait(frameTime)
	l.lacks("ending the heat")
}

// The speed is seen while it is chosen, also when nothing moves.
func TestPausedSpeed(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("3s")
	d.lacks("paused ×")
	d.press(">", ">", ">")
	d.shows("paused ×")
	d.press("backspace")
	d.lacks("paused ×")
	d.press("I")
	d.shows("paused, idle cut")
}

// q goes back like esc, and leaves from the first screen only; the footer says so.
func TestLeavingGoesBackFirst(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("7s")
	d.shows("q leave")
	d.press("enter")
	d.shows("esc q back")
	d.press("enter", "q")
	d.shows("esc q back")
	d.press("+", "q") // a zoom is a step of its own
	d.shows("┏ ladder")
	d.press("q")
	d.shows("q leave")
	if d.left {
		t.Fatal("left from below")
	}
	d.press("w", "ctrl+c")
	d.until("left", func() bool { return d.left })
}

// Sideways is a direction: it ends at the last pane.
func TestSidewaysEnds(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("7s")
	d.press("enter", "l")
	d.shows("┏ actions")
	d.press("l")
	d.shows("┏ actions")
	d.press("tab", "h")
	d.shows("┏ ladder")
	d.press("l")
	d.shows("┏ console")
	d.press("h", "h")
	d.shows("┏ ladder")
	d.press("enter", "l", "l")
	d.shows("┏ evidence")
	d.press("h", "h")
	d.shows("┏ reads-restored")
}
