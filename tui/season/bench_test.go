package season

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/season"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// BenchmarkOpen reads, audits and shows a week of 5,000 heats from disk, as the
// command does, to its first frame.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	docs := made(b, 9_990, -1)
	for name, doc := range map[string]interface{ JSON() ([]byte, error) }{"draw.json": docs.Draw, "week.json": docs.Week} {
		data, err := doc.JSON()
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	docs = season.Documents{}
	runtime.GC()
	heats := 0
	for b.Loop() {
		d := drive(b, Source{Name: "big", Heat: absent, Load: func() (Week, error) {
			docs, err := season.ReadDir(dir)
			return Week{View: docs.View(nil), Audit: docs.Check(season.Sources{})}, err
		}}, 200, 60)
		d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()})
		heats = d.screen().r.all
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(heats), "heats")
	b.ReportMetric(float64(m.Sys)/1e6, "MB-from-system")
}

// BenchmarkFrame is a key and the frame after it, of a week of 5,000 heats.
func BenchmarkFrame(b *testing.B) {
	docs := made(b, 9_990, -1)
	w := Week{View: docs.View(nil), Audit: docs.Check(season.Sources{})}
	d := drive(b, Source{Name: "big", Heat: absent, Load: func() (Week, error) { return w, nil }}, 200, 60)
	o := canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}
	for _, x := range []struct {
		name  string
		focus pane
		keys  []keymap.Action
	}{
		{"bracket", bracket, []keymap.Action{keymap.Left, keymap.Down, keymap.PageDown, keymap.Right}},
		{"standings", standings, []keymap.Action{keymap.Down, keymap.PageDown}},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			d.screen().focus = x.focus
			i := 0
			for b.Loop() {
				d.s.Key(d, x.keys[i%len(x.keys)], tea.KeyMsg{})
				d.draw()
				d.frame(o)
				i++
			}
		})
	}
}
