package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/viewtest"
)

// However long the command that a dialog shows, and however low the screen, each answer
// is seen.
func TestDialogShowsItsAnswers(t *testing.T) {
	d := replayOf(t, demoHeat(t), 80, 24, plainOutput())
	for _, long := range []int{10, 60, 300, 1000, 4000} {
		d.m.dialog = &dialog{title: "The heat is live", lines: []string{strings.Repeat("Leaving the screen need not end the race. ", 8)},
			command: "refbox watch /" + strings.Repeat("x", long),
			answers: []answer{{"e", "end the heat now", nil}, {"l", "leave the screen", nil}, {"y", "copy the command", nil}, {"esc", "stay", nil}}}
		for _, size := range [][2]int{{80, 24}, {40, 12}, {120, 34}, {200, 60}} {
			d.m.dirty = true
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			viewtest.Fits(t, d.m.View(), size[0], size[1])
			for _, words := range []string{"end the heat now", "leave the screen", "copy the command", "stay", "refbox watch /xxx"} {
				if !strings.Contains(d.text(), words) {
					t.Errorf("a command of %d at %v: no %q in\n%s", long, size, words, d.text())
				}
			}
		}
	}
}

// Rungs without a row are counted.
func TestLadderCountsWhatItDrops(t *testing.T) {
	d := replayOf(t, demoHeat(t), 80, 24, plainOutput())
	h := d.heat()
	rungs := len(h.about(h.chosen().ID).rungs)
	for rows := 1; rows <= rungs+1; rows++ {
		c := canvas.New(80, rows)
		h.drawRungList(c, h.chosen())
		shown := text.Line(c.Flatten(plainOutput()))
		if says := strings.Contains(shown, fmt.Sprintf("+%d more", rungs-rows)); says != (rows < rungs) {
			t.Errorf("%d rows for %d rungs: %s", rows, rungs, shown)
		}
	}
}

// A sentence that is longer than the footer is shown to its end.
func TestNoticeIsNotCut(t *testing.T) {
	d := replayOf(t, demoHeat(t), 80, 24, plainOutput())
	d.m.say(strings.Repeat("words and more words ", 9) + "to the end")
	d.m.dirty = true
	if got := d.text(); !strings.Contains(got, "to the end") {
		t.Errorf("it is cut:\n%s", got)
	}
	viewtest.Fits(t, d.m.View(), 80, 24)
}

// In plain letters no two keys of the help have the same sign, and no speed is another's.
func TestPlainLettersTellKeysAndSpeedsApart(t *testing.T) {
	s := helpScreen{keys: keymap.Default(), ascii: true}
	for _, b := range s.keys.Bindings() {
		if strings.ContainsAny(s.names(b), "←→↑↓") {
			t.Errorf("%s is shown as %s", b.Action, s.names(b))
		}
	}
	for _, speed := range []float64{0.25, 0.5} {
		if name := speedName(speed); strings.ContainsAny(name, "¼½") || name == speedName(1) {
			t.Errorf("%v is shown as %s", speed, name)
		}
	}
}

// A heat of simulated machines says so on each of its screens, at any size.
func TestSimulatedIsMarked(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {80, 24}, {120, 34}, {200, 60}} {
		d := replayOf(t, demoHeat(t), size[0], size[1], plainOutput())
		for _, keys := range [][]string{{"G"}, {"enter"}, {"w"}} {
			d.press(keys...)
			d.shows("simulated")
		}
	}
	w := world.New()
	if w.Simulated() {
		t.Error("a heat that says nothing is simulated")
	}
}
