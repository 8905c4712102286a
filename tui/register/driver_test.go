package register

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/assets"
	"refbox/engine/register"
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
	race   *view.Race
	ask    struct {
		label string
		typed func(string)
		done  func(view.Host, string) tea.Cmd
	}
}

func (d *driver) Now() time.Time        { return time.Time{} }
func (d *driver) Size() (int, int)      { return d.c.Size() }
func (d *driver) Say(s string)          { d.said = s }
func (d *driver) Copy(s string) tea.Cmd { d.copied = s; return nil }
func (d *driver) Push(view.Screen) tea.Cmd {
	d.t.Fatal("pushed")
	return nil
}
func (d *driver) Pop() { d.t.Fatal("popped") }

// Beside works at once.
func (d *driver) Beside(work func(context.Context) (func(view.Host) tea.Cmd, error)) tea.Cmd {
	then, err := work(context.Background())
	if err != nil {
		d.said = err.Error()
	} else if then != nil {
		return then(d)
	}
	return nil
}

func (d *driver) Race(r view.Race) tea.Cmd { d.race = &r; return nil }

func (d *driver) Ask(label string, typed func(string), done func(view.Host, string) tea.Cmd) {
	d.ask.label, d.ask.typed, d.ask.done = label, typed, done
}

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

func (d *driver) lacks(s string) {
	d.t.Helper()
	if strings.Contains(d.text(), s) {
		d.t.Fatalf("the frame has %q:\n%s", s, d.text())
	}
}

// seed is the original register, as on the day of its rendering.
func seed(t testing.TB) Source {
	t.Helper()
	return fileSource(viewtest.Shared(t, "seeds", "datastores.json"), register.Settings{On: "2026-08-15"})
}

func fileSource(file string, set register.Settings) Source {
	return Source{Name: filepath.Base(file), Files: []string{file}, Load: func() (*register.Explainer, error) {
		src, err := register.Load(file)
		if err != nil {
			return nil, err
		}
		return src.Explainer(set)
	}}
}

// example is the register that refbox brings along.
func example() Source {
	return Source{Name: "example", Load: func() (*register.Explainer, error) {
		src, err := register.Parse("example.toml", assets.Register())
		if err != nil {
			return nil, err
		}
		return src.Explainer(register.Settings{})
	}}
}

// exampleFile is the example as a file that a test edits.
func exampleFile(t testing.TB) (file string, text string) {
	t.Helper()
	file, text = filepath.Join(t.TempDir(), "register.toml"), string(assets.Register())
	write(t, file, text)
	return file, text
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
