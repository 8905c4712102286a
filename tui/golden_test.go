package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// demoShelf offers one recording.
type demoShelf struct{ dir string }

func (s demoShelf) List(context.Context) ([]recording.Summary, error) {
	list, err := recording.List(s.dir)
	for i := range list {
		list[i].Path = "demo-heat"
	}
	return list, err
}

func (s demoShelf) Open(string) (*recording.Recording, error) { return recording.Open(s.dir) }

func lobbyOf(t testing.TB, w, h int, o canvas.Output, dir string) *driver {
	t.Helper()
	lib := Library{Arenas: []*arena.Package{{Manifest: demoArena()}}, Shelves: []Shelf{demoShelf{dir}}}
	d := drive(t, w, h, o, func(ctx context.Context, cfg Config) screen { return newLobby(ctx, cfg, lib) })
	d.until("the shelf is read", func() bool { return d.m.screens[0].(*lobby).loaded })
	return d
}

// tours are the ways to the screens, from the overview paused at the start.
var tours = []struct {
	name string
	keys func(d *driver)
}{
	{"overview", func(d *driver) { d.goTo("7s") }},
	{"seat", func(d *driver) { d.goTo("7s"); d.press("enter", "j") }},
	{"evidence", func(d *driver) { d.goTo("end"); d.press("enter", "enter", "k") }},
	{"why", func(d *driver) { d.goTo("end"); d.press("w", "j", "j") }},
	{"help", func(d *driver) { d.press("?") }},
	{"branch", func(d *driver) { pressBranch(d, demoPoint) }},
	{"unbranched", func(d *driver) { pressBranch(d, nowhere) }},
	{"zoom", func(d *driver) { d.goTo("7s"); d.press("+") }},
	{"actions", func(d *driver) { d.goTo("7s"); d.press("enter", "tab", "k", "+") }},
	{"sound", func(d *driver) {
		d.until("the recording is checked", func() bool { return d.heat().report.Verified })
		d.goTo("7s")
		d.press("i")
	}},
}

func TestGoldenFrames(t *testing.T) {
	dir := demoHeat(t)
	for _, size := range sizes {
		w, h := size[0], size[1]
		for _, tour := range tours {
			name := fmt.Sprintf("%s-%dx%d", tour.name, w, h)
			t.Run(name, func(t *testing.T) {
				d := replayOf(t, dir, w, h, plainOutput())
				tour.keys(d)
				d.golden(name)
			})
		}
		name := fmt.Sprintf("lobby-%dx%d", w, h)
		t.Run(name, func(t *testing.T) {
			d := lobbyOf(t, w, h, plainOutput(), dir)
			d.press("j")
			d.golden(name)
		})
	}
}

// Every screen without colour: weight, reverse and underline are what is left.
func TestGoldenMono(t *testing.T) {
	dir := demoHeat(t)
	for _, tour := range tours {
		t.Run(tour.name, func(t *testing.T) {
			d := replayOf(t, dir, 80, 24, canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()})
			tour.keys(d)
			viewtest.Fits(t, d.m.View(), 80, 24)
			viewtest.Golden(t, "mono-"+tour.name, d.m.View())
		})
	}
}

func TestGoldenLook(t *testing.T) {
	dir := demoHeat(t)
	for _, tc := range []struct {
		name string
		o    canvas.Output
	}{
		{"dark", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}},
		{"light", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Light()}},
		{"mono", canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()}},
		{"ascii", canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark(), ASCII: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := replayOf(t, dir, 80, 24, tc.o)
			d.goTo("7s")
			frame := d.m.View()
			viewtest.Fits(t, frame, 80, 24)
			viewtest.Golden(t, "look-"+tc.name, frame)
		})
	}
}

func TestGoldenSmall(t *testing.T) {
	dir := demoHeat(t)
	d := replayOf(t, dir, 20, 5, plainOutput())
	viewtest.Fits(t, d.m.View(), 20, 5)
	viewtest.Golden(t, "small-20x5", d.m.View())
	d = replayOf(t, dir, 40, 12, plainOutput())
	d.goTo("7s")
	viewtest.Fits(t, d.m.View(), 40, 12)
	viewtest.Golden(t, "small-40x12", d.m.View())
}

// The overview of what the reference recorded: no topology, no actions, no
// consoles; and of a heat in which nothing has happened yet.
func TestGoldenBare(t *testing.T) {
	dir := demoHeat(t)
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "events.jsonl"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		x := startTape(t, demoArena())
		watchOf(t, x.dir, size[0], size[1], plainOutput(), Desk{}).golden(fmt.Sprintf("bare-%dx%d", size[0], size[1]))
		d := replayOf(t, foreign, size[0], size[1], plainOutput())
		d.goTo("7s")
		d.golden(fmt.Sprintf("foreign-%dx%d", size[0], size[1]))
	}
}

// sizes are those at which every screen has a golden frame.
var sizes = [][2]int{{80, 24}, {120, 34}, {200, 60}}

// A live heat, the question before it is left, a console, the line at the bottom, and
// the note that a live heat takes.
func TestGoldenLive(t *testing.T) {
	for _, size := range sizes {
		x := startTape(t, demoArena())
		x.begin()
		x.middle()
		x.add(7200, event.ConsoleAttached{Territory: demoSeats[1], Machine: "main", Author: "ann"})
		t.Chdir(filepath.Dir(x.dir)) // the question names the folder
		d := watchOf(t, filepath.Base(x.dir), size[0], size[1], plainOutput(), Desk{Desk: &fakeDesk{}, Author: "ann", Owned: true})
		shot := func(name string) { t.Helper(); d.golden(fmt.Sprintf("%s-%dx%d", name, size[0], size[1])) }
		shot("live")
		d.press("q")
		shot("leave")
		d.press("esc", "c")
		d.until("attached", func() bool { return d.heat().attached != nil })
		shot("attached")
		d.press("ctrl+]", ":")
		shot("prompt")
	}
}

// A folder whose name is longer than the screen is wide: the command to watch it
// stands whole and unbroken by any border.
func TestLongPathIsCopied(t *testing.T) {
	x := startTape(t, demoArena())
	x.begin()
	long := filepath.Join(t.TempDir(), strings.Repeat("a-long-name-", 9), "demo-heat")
	if err := os.MkdirAll(filepath.Dir(long), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(x.dir, long); err != nil {
		t.Fatal(err)
	}
	d := watchOf(t, long, 80, 24, plainOutput(), Desk{Desk: &fakeDesk{}, Author: "ann", Owned: true})
	d.press("q")
	viewtest.Fits(t, d.m.View(), 80, 24)
	if !strings.Contains(strings.ReplaceAll(d.text(), "\n", ""), "refbox watch "+long) {
		t.Fatalf("the command is broken:\n%s", d.text())
	}
}

// In ASCII no byte beyond printable ASCII is written, on any screen.
func TestASCII(t *testing.T) {
	dir := demoHeat(t)
	o := canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark(), ASCII: true}
	for _, tour := range tours {
		d := replayOf(t, dir, 120, 34, o)
		tour.keys(d)
		for i, b := range []byte(d.m.View()) {
			if b != '\n' && (b < ' ' || b > '~') {
				t.Fatalf("%s: byte %#x at %d:\n%s", tour.name, b, i, d.m.View())
			}
		}
	}
}

// Without colour the focus and the selection are still seen.
func TestFocusWithoutColour(t *testing.T) {
	d := replayOf(t, demoHeat(t), 120, 34, plainOutput())
	d.goTo("7s")
	if !strings.Contains(d.text(), "┏ 1 failover-one") {
		t.Fatalf("the chosen seat has no heavy frame:\n%s", d.text())
	}
	d.press("2")
	if !strings.Contains(d.text(), "┏ 2 failover-two") || strings.Contains(d.text(), "┏ 1 failover-one") {
		t.Fatalf("the choice is not seen:\n%s", d.text())
	}
	d.press("w")
	d.shows("▌")
}
