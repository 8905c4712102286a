package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muesli/termenv"
	"golang.org/x/term"

	"refbox/engine/event"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/why"
	"refbox/engine/world"
	"refbox/tui"
	"refbox/tui/canvas"
	"refbox/tui/plain"
	"refbox/tui/step"
)

// canShow says whether the screen can be shown, and is wanted: a terminal on both
// sides that understands cursor movement, and nobody who needs lines.
func canShow(a *app) bool {
	return isTerminal(a.in) && isTerminal(a.out) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != "" && !a.settings.Reader
}

// screenConfig reads the terminal's abilities from the environment; the
// terminal itself is never asked, since an answer may come late or as text.
func screenConfig(a *app) tui.Config {
	s := a.settings
	out := canvas.Output{Theme: s.Theme, Profile: canvas.ANSI256, ASCII: s.ASCII}
	switch f, ok := a.out.(*os.File); {
	case os.Getenv("NO_COLOR") != "":
		out.Profile = canvas.Mono
	case ok:
		switch termenv.NewOutput(f).EnvColorProfile() {
		case termenv.TrueColor:
			out.Profile = canvas.TrueColor
		case termenv.ANSI:
			out.Profile = canvas.ANSI16
		case termenv.Ascii:
			out.Profile = canvas.Mono
		}
	}
	return tui.Config{Keys: s.Keys, Output: out, Themes: s.Themes, Mouse: s.Mouse, Log: &lazyLog{path: logFile()}, Transcript: step.OpenSeat, Branch: pointOf}
}

// deskSocket is where a running heat's desk is reached: named after the folder,
// since that is what watch is given.
func deskSocket(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(runtimeDir(), "desk-"+hex.EncodeToString(sum[:6])+".sock")
}

// printEvents prints a line per event, repeats folded, until the heat is no longer written, ended
// is closed, or ctx ends; then it prints what is left.
func printEvents(ctx context.Context, a *app, rec *recording.Recording, ended <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := rec.Follow(ctx)
	done, restarts := 0, rec.Restarts()
	var teller plain.Teller
	say := func(lines []string) error {
		for _, l := range lines {
			if _, err := fmt.Fprintln(a.out, l); err != nil {
				return err
			}
		}
		return nil
	}
	defer func() { say(teller.End(rec.Head())) }() //nolint:errcheck // nobody reads on
	more := func() {
		rec.Refresh() //nolint:errcheck // what was read is printed; the report says what was not
		if n := rec.Restarts(); n != restarts {
			say([]string{"restarted: the log was replaced or cut, and is read from its beginning"}) //nolint:errcheck // the next line meets the same
			done, restarts, teller = 0, n, plain.Teller{}
		}
		//nolint:errcheck // the same
		rec.Events(done, rec.Len(), func(i int, e event.Event) bool {
			done = i + 1
			return say(teller.Next(e)) == nil
		})
	}
	for {
		more()
		// Asked after each reading, not only after a notice: the reading here may
		// be the one that saw the writer leave, and then nobody is told again.
		if ended == nil && begun(rec) && !rec.Live() && rec.Complete() {
			more()
			return
		}
		select {
		case <-ended:
			rec.Load(ctx) //nolint:errcheck // as above
			more()
			return
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// printSummary says who won, why, where the recording is, and how to see it
// again.
func printSummary(a *app, rec *recording.Recording) {
	w := rec.World(rec.Len())
	fmt.Fprintln(a.out)
	if w.Simulated() {
		fmt.Fprintln(a.out, simulatedWords)
	}
	for _, s := range world.Standings(w) {
		if e, ok := why.Explain(w, rec.Manifest(), s.Territory); ok {
			for _, line := range wrapped(a, fmt.Sprintf("%d. %s", s.Rank, e.Headline)) {
				fmt.Fprintln(a.out, line)
			}
			for _, line := range decoyLines(w.Seat(s.Territory)) {
				fmt.Fprintln(a.out, line)
			}
			if r := w.Seat(s.Territory).CanaryResult; r != nil {
				fmt.Fprintf(a.out, "   writes lost: %s; outage: %s\n", r.LossWords(), r.OutageWords())
			}
		}
	}
	state := matchState(w)
	if !w.Over() && rec.Integrity().Stopped != "" {
		state = "stopped while " + state
	}
	if from := w.BranchedFrom(); from != "" {
		fmt.Fprintln(a.out, "\n"+text.Line(from)+": no evidence for seasons, series, registers or ledgers")
	}
	path := text.Shell(rec.Path())
	fmt.Fprintf(a.out, "\nheat      %s after %s\nrecording %s\nreplay    refbox replay %s\nwhy       refbox why %s\n",
		state, playback.Format(w.ElapsedMS), text.Line(rec.Path()), path, path)
}

// wrapped breaks a sentence at a terminal's edge, between words. A pipe gets it
// in one line.
func wrapped(a *app, s string) []string {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 3 {
			return strings.Split(strings.Join(text.Wrap(s, w-3), "\n   "), "\n")
		}
	}
	return []string{s}
}

// matchState is a heat's state, and why it ended.
func matchState(w *world.World) string {
	if w.FinishReason != nil {
		return w.MatchState + ": " + *w.FinishReason
	}
	return w.MatchState
}
