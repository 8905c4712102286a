// Package view is how a screen that is made outside package tui takes part in
// the program: what it must do, and what it may ask for. It hides the program
// from the screen and the screen from the program, so that neither imports the
// other. It also holds what all screens show in the same way: signs of states,
// instants, lengths of time, counts, and a pane's focus, choice and what is below.
//
// The program promises that it calls a screen from one goroutine only, that it
// draws nothing between two changes, and that Close is called once, when the
// screen is left or the program ends, however it ends.
package view

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// Screen is one full-size view. The program draws the header and the footer
// around it, and keeps help, theme, mouse, redraw, suspend, back and leave for
// itself.
type Screen interface {
	// Crumbs say where one is; for a screen over a heat, below that heat.
	Crumbs() []string
	// Status is the header's middle, one row high; it may stay empty.
	Status(c canvas.Canvas)
	// Draw draws the body: all but header and footer.
	Draw(c canvas.Canvas)
	// Key handles an action; raw is the key itself.
	Key(h Host, a keymap.Action, raw tea.KeyMsg) tea.Cmd
	// Hints are the actions of the footer, the most useful first.
	Hints() []keymap.Action
	// Advance brings the screen to now, and says how soon it wants that again:
	// zero when nothing moves by itself.
	Advance(now time.Time) time.Duration
	// Start is called when the screen is first shown; what takes longer than a
	// frame is begun here with Host.Beside. It may return nil.
	Start(h Host) tea.Cmd
	// Feed tells that what is shown grew; nil for never. It is closed at the end.
	Feed() <-chan struct{}
	// Back takes a step back within the screen; false leaves the screen.
	Back() bool
	// Close ends what the screen owns, and waits for it.
	Close()
}

// Clicker is a Screen that the mouse can act on; x and y are of its body.
type Clicker interface {
	Click(h Host, x, y int) tea.Cmd
}

// Host is what a screen may ask of the program. It is valid during the call that
// it was given to, and during what Beside brings back.
type Host interface {
	// Now is the program's clock, the only one that a screen may read.
	Now() time.Time
	// Size is that of the body, in cells.
	Size() (w, h int)
	// Say shows a sentence in the footer until the next key.
	Say(s string)
	// Ask opens the line at the bottom. typed, which may be nil, is called with
	// every change, and with "" when the question is dropped; done with the answer.
	Ask(label string, typed func(string), done func(h Host, value string) tea.Cmd)
	// Copy puts s, the program's own or sanitised text, into the clipboard.
	Copy(s string) tea.Cmd
	// Push opens a screen over this one; Pop leaves the top one.
	Push(s Screen) tea.Cmd
	Pop()
	// Beside runs work outside the program's goroutine and then what it returned,
	// if anything, inside it; an error is said. The context ends with the program.
	Beside(work func(ctx context.Context) (then func(h Host) tea.Cmd, err error)) tea.Cmd
}

// Heats is a Host that shows heats as well; the program's is one.
type Heats interface {
	// Heat shows a recording over this screen, and closes it when it is left.
	Heat(rec *recording.Recording) tea.Cmd
}

// Racer is a Host that can leave for a heat; the program's is one.
type Racer interface {
	// Race asks, and then ends the program with the wish for a heat. Whoever started it
	// races it, and shows the screen again with what came of it.
	Race(r Race) tea.Cmd
}

// Race is a heat that somebody wants for a store of a register.
type Race struct {
	Arena    string // as refbox run takes it
	Register string // the file
	Store    string
	Scenario string // that was chosen; "" for none
	Starts   string // what it starts, as Starts says it
}

// Starts says what a heat of an arena starts, on "real machines" or others: how many of
// them, how large, and how long that may take.
func Starts(m *arena.Manifest, machines string) string {
	n := m.Machines()
	what := strings.TrimSuffix(machines, "s")
	out := fmt.Sprintf("%s starts %s for %s", m.Arena.ID, Plural(len(n), what), Plural(len(m.Territories), "seat"))
	if strings.HasPrefix(machines, "simulated") {
		out += ", in no time."
	} else {
		mib := uint64(0)
		for _, one := range n {
			if one.Resources != nil {
				mib += one.Resources.MemoryMiB
			}
		}
		out += fmt.Sprintf(", %d MiB of memory in all: seconds where they were prepared before, minutes the first time.", mib)
	}
	return out + fmt.Sprintf(" The heat ends by itself, after %s at the latest.", Span(m.Duration().Milliseconds()))
}

// Seat is the seat of a heat that a screen is opened over. The recording stays
// the heat's: the screen does not close it.
type Seat struct {
	Recording *recording.Recording
	Territory string
	// Now is the playhead on the heat's clock, in milliseconds, at each call;
	// Seek pauses the heat there.
	Now  func() uint64
	Seek func(ms uint64)
}
