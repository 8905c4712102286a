package season

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
	"refbox/tui/viewtest"
)

// driver is a screen with the program around it left out.
type driver struct {
	t      testing.TB
	s      view.Screen
	c      canvas.Canvas
	keys   keymap.Map
	said   string
	copied string
	opened []string // paths of the heats that were shown
	ask    struct {
		typed func(string)
		done  func(view.Host, string) tea.Cmd
	}
}

var (
	_ view.Host  = (*driver)(nil)
	_ view.Heats = (*driver)(nil)
)

func (d *driver) Now() time.Time        { return time.Time{} }
func (d *driver) Size() (int, int)      { return d.c.Size() }
func (d *driver) Say(s string)          { d.said = s }
func (d *driver) Copy(s string) tea.Cmd { d.copied = s; return nil }
func (d *driver) Push(view.Screen) tea.Cmd {
	d.t.Fatal("pushed")
	return nil
}
func (d *driver) Pop() { d.t.Fatal("popped") }

func (d *driver) Heat(rec *recording.Recording) tea.Cmd {
	d.opened = append(d.opened, rec.Path())
	rec.Close()
	return nil
}

// Beside does at once what the program does beside the screen.
func (d *driver) Beside(work func(context.Context) (func(view.Host) tea.Cmd, error)) tea.Cmd {
	then, err := work(d.t.Context())
	if err != nil {
		d.said = err.Error()
	}
	if then != nil {
		return then(d)
	}
	return nil
}

func (d *driver) Ask(_ string, typed func(string), done func(view.Host, string) tea.Cmd) {
	d.ask.typed, d.ask.done = typed, done
}

func show(t testing.TB, s view.Screen, w, h int) *driver {
	t.Helper()
	d := &driver{t: t, s: s, c: canvas.New(w, h-2), keys: keymap.Default()}
	s.Start(d)
	t.Cleanup(s.Close)
	d.draw()
	return d
}

// drive shows a source at the size that a terminal of w × h leaves for a body.
func drive(t testing.TB, src Source, w, h int) *driver {
	t.Helper()
	s, err := New(src)
	if err != nil {
		t.Fatal(err)
	}
	return show(t, s, w, h)
}

func (d *driver) screen() *Screen { return d.s.(*Screen) }

func (d *driver) draw() {
	d.c.Clear()
	d.s.Draw(d.c)
}

// press sends keys as the program does, by what they mean.
func (d *driver) press(keys ...string) {
	d.t.Helper()
	for _, k := range keys {
		a := d.keys.Action(k)
		switch a {
		case keymap.None:
			d.t.Fatalf("the key %q means nothing", k)
		case keymap.Back:
			d.s.Back()
		default:
			d.s.Key(d, a, tea.KeyMsg{})
		}
		d.draw()
	}
}

// write answers the question that was asked.
func (d *driver) write(s string) {
	d.t.Helper()
	if d.ask.done == nil {
		d.t.Fatal("nothing was asked")
	}
	for i := range s {
		d.ask.typed(s[:i+1])
		d.draw()
	}
	d.ask.done(d, s)
	d.ask.done = nil
	d.draw()
}

// until takes news until ok, for a few seconds at most.
func (d *driver) until(what string, ok func() bool) {
	d.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for !ok() {
		select {
		case <-d.s.Feed():
			d.s.Advance(time.Time{})
			d.draw()
		case <-late.C:
			d.t.Fatalf("%s: it did not come about; the screen:\n%s", what, d.text())
		}
	}
}

func (d *driver) frame(o canvas.Output) string { return d.c.Flatten(o) }

func (d *driver) text() string { return d.frame(canvas.Output{Profile: canvas.Plain}) }

func (d *driver) status() string {
	c := canvas.New(100, 1)
	d.s.Status(c)
	return c.Flatten(canvas.Output{})
}

func (d *driver) shows(list ...string) {
	d.t.Helper()
	for _, s := range list {
		if !strings.Contains(d.text(), s) {
			d.t.Fatalf("the frame lacks %q:\n%s", s, d.text())
		}
	}
}

// published is one of the published weeks.
func published(t testing.TB, name string) Source {
	t.Helper()
	file := viewtest.Shared(t, "seasons", name+".week.json")
	return Source{Name: name, Load: func() (Week, error) {
		docs, err := season.ReadFile(file)
		if err == nil {
			err = docs.With(strings.Replace(file, ".week.", ".draw.", 1))
		}
		return Week{View: docs.View(nil), Audit: docs.Check(season.Sources{})}, err
	}, Heat: absent}
}

func absent(name string) (*recording.Recording, error) {
	return nil, fmt.Errorf("%s: %w", filepath.Base(name), fs.ErrNotExist)
}

// made is a week of n entrants by the reference's rules, in heats of three, of which
// the first so many heats are over; fewer than none: all are.
func made(t testing.TB, n, heats int) season.Documents {
	t.Helper()
	m := &season.Manifest{File: "cup.toml", ID: "cup"}
	for i := range n {
		m.Fleet = append(m.Fleet, season.Entrant{ID: fmt.Sprintf("entrant-%04d", i), Model: "maker/model-" + fmt.Sprint(i%7), Adapter: "script", ReasoningEffort: "high"})
	}
	arenas := []season.Arena{{ID: "primary-failover", Territories: []string{"failover-one", "failover-two", "failover-three"}}, {ID: "durable-job-queue", Territories: []string{"queue-one", "queue-two", "queue-three"}}}
	secret := season.CommitSeed("s")
	d, err := season.NewDraw(m, arenas, season.Order{Week: "2026-W40", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := season.Digest(data)
	if err != nil {
		t.Fatal(err)
	}
	w := season.Week{SchemaVersion: season.Schema, DrawDigest: &digest, SeasonID: d.SeasonID, Week: d.Week, DrawSeed: d.DrawSeed, Commitment: d.Commitment, Rounds: []season.Round{}}
	seater, seating, left := season.NewSeater(d.DrawSeed), d.FirstRound, heats
	for i, stage := range d.Shape {
		x := d.Arenas[d.RoundArenas[i]]
		if i > 0 {
			if w.Rounds[i-1].Wildcards == nil {
				break // the round before is not over
			}
			seating = seater.Seat(stage.Round, w.Rounds[i-1].Field(), x.Territories)
		}
		r := season.Round{Round: stage.Round, ArenaID: x.ID, Byes: seating.Byes}
		for _, p := range seating.Heats {
			if left == 0 {
				break
			}
			left--
			r.Heats = append(r.Heats, ended(x, p, stage.Round, i == len(d.Shape)-1))
		}
		if len(r.Heats) == len(seating.Heats) {
			r.Wildcards = season.Reference.Pick(d.DrawSeed, stage, &r)
		}
		w.Rounds = append(w.Rounds, r)
	}
	if heats < 0 {
		w.Completed, w.VariationSeed, w.Champion = true, &secret, season.ChampionOf(d.Shape, w.Rounds)
	}
	w.Standings = season.Tally(w.Rounds, d.Fleet)
	return season.Documents{Draw: d, Digest: digest, Week: &w}
}

// ended is a heat that somebody won by its number.
func ended(x season.Arena, p season.Pairing, round int, final bool) season.Heat {
	var ends []season.Ended
	yes := true
	for k, t := range x.Territories {
		e := season.Ended{Territory: t, Points: int64(5 * k), CostMicroUSD: int64(1000 * p.Heat), CostComplete: &yes, FailureSource: "player", TerminalState: "incomplete", Detail: "another seat was durable first"}
		switch {
		case k == p.Heat%3:
			at := int64(30_000 + 17*p.Heat)
			e.DurableAtMS, e.Points = &at, 100
		case k == (p.Heat+1)%3 && p.Heat%5 == 3:
			e.FailureSource, e.CostComplete = "provider", nil
		}
		ends = append(ends, e)
	}
	h := season.Heat{Heat: p.Heat, Output: season.Folder(round, p.Heat, 1), Attempts: 1, Seats: p.Seats, Standings: season.Reference.Standings(p.Seats, ends)}
	h.Winner = season.Winner(h.Standings, "", final)
	return h
}

// during is a week that runs: two heats of its second round are over, the third is
// being played.
func during(t testing.TB) Source {
	return Source{Name: "during", Heat: absent, Load: func() (Week, error) {
		docs := made(t, 20, 8)
		here := map[string]bool{}
		for i := range 6 {
			here[season.Folder(1, i+1, 1)] = true
		}
		for i := range 3 {
			here[season.Folder(2, i+1, 1)] = true
		}
		return Week{View: docs.View(func(output string) bool { return here[output] }), Audit: docs.Check(season.Sources{}), Here: here}, nil
	}}
}
