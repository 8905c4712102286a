package ledger

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/ledger"
	"refbox/engine/ledger/ledgertest"
	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
	"refbox/tui/viewtest"
)

// driver is a screen with the program around it left out.
type driver struct {
	t      testing.TB
	s      *Screen
	c      canvas.Canvas
	keys   keymap.Map
	said   string
	copied string
	opened string
	ask    func(view.Host, string) tea.Cmd
}

func (d *driver) Now() time.Time           { return time.Time{} }
func (d *driver) Size() (int, int)         { return d.c.Size() }
func (d *driver) Say(s string)             { d.said = s }
func (d *driver) Copy(s string) tea.Cmd    { d.copied = s; return nil }
func (d *driver) Push(view.Screen) tea.Cmd { return nil }
func (d *driver) Pop()                     { d.t.Fatal("popped") }
func (d *driver) Heat(rec *recording.Recording) tea.Cmd {
	d.opened = rec.Name()
	rec.Close()
	return nil
}

func (d *driver) Beside(work func(context.Context) (func(view.Host) tea.Cmd, error)) tea.Cmd {
	then, err := work(d.t.Context())
	if err != nil {
		d.said = err.Error()
		return nil
	}
	return then(d)
}

func (d *driver) Ask(_ string, _ func(string), done func(view.Host, string) tea.Cmd) { d.ask = done }

// drive shows a source at the size that a terminal of w × h leaves for a body.
func drive(t testing.TB, src Source, w, h int) *driver {
	t.Helper()
	s, err := New(src)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, s: s, c: canvas.New(w, h-2), keys: keymap.Default()}
	s.Start(d)
	t.Cleanup(s.Close)
	d.draw()
	return d
}

func (d *driver) draw() {
	d.c.Clear()
	d.s.Draw(d.c)
}

// press sends keys as the program does, by what they mean.
func (d *driver) press(keys ...string) {
	d.t.Helper()
	for _, k := range keys {
		switch a := d.keys.Action(k); a {
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

// until takes news until ok, for a while at most.
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
			d.t.Fatalf("never: %s\n%s", what, d.text())
		}
	}
}

func (d *driver) frame(o canvas.Output) string { return d.c.Flatten(o) }
func (d *driver) text() string                 { return d.frame(canvas.Output{}) }

func (d *driver) status(w int) string {
	c := canvas.New(w, 1)
	d.s.Status(c)
	return strings.TrimSpace(c.Flatten(canvas.Output{}))
}

var now = time.Date(2026, 11, 10, 9, 0, 0, 0, time.UTC)

// source shows a ledger as it is on its day.
func source(file string) Source {
	return Source{Name: filepath.Base(file), Open: recording.Open, Load: func() (*ledger.Ledger, ledger.Settings, error) {
		set := ledger.Settings{Today: "2026-11-10", Arenas: []ledger.Use{
			{ID: "lab", Exercises: []arena.Exercise{ledgertest.Exercise(), crash, {Scenario: "network-partition", Fault: "link-down"}}},
			{ID: "primary-failover", Exercises: []arena.Exercise{{Scenario: crash.Scenario, Fault: "starts-broken"}}},
			{ID: "hello-service"},
		}}
		p, err := ledger.ParsePolicy("policy.toml", assets.LedgerPolicy())
		if err != nil {
			return nil, set, err
		}
		l, err := ledger.Open(file, p)
		return l, set, err
	}}
}

var crash = arena.Exercise{Scenario: "postgres-process-crash", Fault: "process-kill"}

// book is a ledger of a model with evidence of every kind.
func book(t testing.TB, model []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "book")
	l, err := ledger.Init(dir, model, assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	x := ledgertest.Exercise()
	single := "single-writer"
	x.SingleWriter = &single
	for _, s := range []ledgertest.Story{
		{Exercises: []arena.Exercise{crash}, Sick: true, Brief: "A process kill may come."},
		{Exercises: []arena.Exercise{crash}},
		{Exercises: []arena.Exercise{x}, Pass: []string{single}},
		{Exercises: []arena.Exercise{{Scenario: "network-partition", Fault: "link-down"}}, Lost: 40, LossMS: 20000},
		{Exercises: []arena.Exercise{{Scenario: "client-session-loss", Fault: "connection-reset"}}, Started: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
	} {
		heat := filepath.Join(t.TempDir(), "heat")
		ledgertest.Heat(t, heat, s)
		rec, err := recording.Open(heat)
		if err != nil {
			t.Fatal(err)
		}
		j, err := ledger.Terms{Model: l.Model, Policy: l.Policy}.JudgeHeat(t.Context(), rec, ledger.Review{By: "the keeper"})
		rec.Close()
		if err != nil {
			t.Fatal(err)
		}
		news := l.News(j)
		for i := range news {
			news[i].Kept.Heat = "heats/of-that-day"
		}
		if l, err = l.Append(now, news...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func seed(t testing.TB) string { return viewtest.Shared(t, "seeds", "failure-model.json") }

func seedModel(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(seed(t))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// example is the example model in a file.
func example(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(file, assets.LedgerModel(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
