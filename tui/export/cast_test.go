package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"refbox/engine/export/exporttest"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
	"refbox/tui/canvas"
	"refbox/tui/export"
	"refbox/tui/term"
	"refbox/tui/viewtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, dir string) *recording.Recording {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return rec
}

func film(t testing.TB, dir string, f export.Format) ([]byte, export.Filmed) {
	t.Helper()
	var b bytes.Buffer
	done, err := export.Cast(context.Background(), &b, open(t, dir), f)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), done
}

// line is one event of a cast, its time in milliseconds from the start.
type line struct {
	ms   int64
	code string
	data string
}

var seconds = regexp.MustCompile(`^\[(\d+\.\d{3}),`)

// parse reads a cast and holds it against its format.
func parse(t testing.TB, cast []byte, f export.Format) (title string, out []line) {
	t.Helper()
	if !utf8.Valid(cast) || !bytes.HasSuffix(cast, []byte("\n")) {
		t.Fatal("the cast is not lines of UTF-8")
	}
	all := strings.Split(strings.TrimSuffix(string(cast), "\n"), "\n")
	var h struct {
		Version       int
		Width, Height int
		Term          struct {
			Cols, Rows int
			Type       string
		}
		Timestamp int64
		Title     string
	}
	if err := json.Unmarshal([]byte(all[0]), &h); err != nil {
		t.Fatal(err)
	}
	switch {
	case f.V3 && (h.Version != 3 || h.Term.Cols != f.Width || h.Term.Rows != f.Height || h.Width != 0),
		!f.V3 && (h.Version != 2 || h.Width != f.Width || h.Height != f.Height || h.Term.Cols != 0):
		t.Fatalf("header %s", all[0])
	}
	at := int64(0)
	for _, l := range all[1:] {
		m := seconds.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no time: %.80s", l)
		}
		ms, err := strconv.ParseInt(strings.Replace(m[1], ".", "", 1), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if f.V3 {
			ms += at
		}
		if ms < at {
			t.Fatalf("time goes back: %.80s", l)
		}
		at = ms
		var parts []any
		if err := json.Unmarshal([]byte(l), &parts); err != nil || len(parts) != 3 {
			t.Fatalf("%.80s: %v", l, err)
		}
		out = append(out, line{ms, parts[1].(string), parts[2].(string)})
	}
	return h.Title, out
}

// ours is every sequence that a cast may hold.
var ours = regexp.MustCompile(`\x1b\[(\?25[lh]|2J|K|\d+;1H|(\d+(;\d+)*)?m)`)

// check looks at everything that a player would send to a terminal.
func check(t testing.TB, title string, lines []line) {
	t.Helper()
	if text.Line(title) != title {
		t.Errorf("title %q", title)
	}
	last := int64(-1000)
	for _, l := range lines {
		switch l.code {
		case "m":
			if text.Line(l.data) != l.data || l.data == "" {
				t.Errorf("marker %q", l.data)
			}
		case "o":
			if shown := ours.ReplaceAllString(l.data, ""); text.Line(shown) != shown {
				t.Errorf("at %d ms a terminal would obey %.300q", l.ms, shown)
			}
			if strings.Contains(l.data, "\x1b[K") { // a frame
				if l.ms-last < 100 {
					t.Errorf("frames at %d and %d ms", last, l.ms)
				}
				last = l.ms
			}
		default:
			t.Errorf("event %q", l.code)
		}
	}
}

// screen plays the frames of a cast on a terminal.
func screen(lines []line, f export.Format) string {
	s := term.New(f.Width, f.Height)
	for _, l := range lines {
		if l.code == "o" {
			io.WriteString(s, l.data) //nolint:errcheck // an emulator takes everything
		}
	}
	c := canvas.New(f.Width, f.Height)
	s.Draw(c, 0, false)
	return c.Flatten(canvas.Output{})
}

func TestCastIsTheReplay(t *testing.T) {
	for _, f := range []export.Format{{Width: 120, Height: 34}, {Width: 80, Height: 24, V3: true}, {Width: 40, Height: 12}} {
		t.Run(fmt.Sprintf("%dx%d", f.Width, f.Height), func(t *testing.T) {
			dir := exporttest.Small(t)
			cast, done := film(t, dir, f)
			title, lines := parse(t, cast, f)
			check(t, title, lines)
			again, _ := film(t, dir, f)
			if !bytes.Equal(again, cast) {
				t.Error("the same recording gives another cast")
			}
			still := tui.NewStill(context.Background(), open(t, dir), canvas.Output{}, f.Width, f.Height, "a replay of small-heat")
			defer still.Close()
			want := still.At(done.MS)
			if got := screen(lines, f); got != want {
				t.Errorf("played, the cast ends with\n%s\nand the replay with\n%s", got, want)
			}
			if !strings.Contains(want, "failover-one") {
				t.Errorf("the screen does not show the heat:\n%s", want)
			}
		})
	}
}

// The golden file holds the cast's times and markers, not its frames: those are the
// live screen's, and have golden files of their own.
func TestCastGolden(t *testing.T) {
	f := export.Format{Width: 120, Height: 34}
	cast, _ := film(t, exporttest.Small(t), f)
	_, lines := parse(t, cast, f)
	got := string(cast[:bytes.IndexByte(cast, '\n')+1])
	for _, l := range lines {
		if l.code == "o" {
			l.data = ""
		}
		got += strings.TrimSpace(fmt.Sprintf("%6d %s %s", l.ms, l.code, l.data)) + "\n"
	}
	viewtest.Golden(t, "small", strings.TrimSuffix(got, "\n"))
}

func TestVersionsTellTheSame(t *testing.T) {
	dir := exporttest.Small(t)
	f := export.Format{Width: 80, Height: 24}
	two, _ := film(t, dir, f)
	_, a := parse(t, two, f)
	f.V3 = true
	three, _ := film(t, dir, f)
	_, b := parse(t, three, f)
	if len(a) != len(b) {
		t.Fatalf("%d and %d lines", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("line %d: %.80v and %.80v", i, a[i], b[i])
		}
	}
}

func TestCastOfHostileHeats(t *testing.T) {
	f := export.Format{Width: 200, Height: 60}
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) {
			cast, done := film(t, exporttest.Hostile(t, s), f)
			title, lines := parse(t, cast, f)
			check(t, title, lines)
			if done.Markers == 0 {
				t.Error("no marker was checked")
			}
		})
	}
}

// A clock that says anything must not make a film without end.
func TestCastOfOddClocks(t *testing.T) {
	f := export.Format{Width: 80, Height: 24}
	for name, clocks := range map[string][]string{
		"far":  {"0", "1000", "9000000000000000000", "18446744073709551615"},
		"back": {"5000", "1000", "2000"},
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := ""
			for i, ms := range clocks {
				log += fmt.Sprintf(`{"schema_version":1,"sequence":%d,"elapsed_ms":%s,"kind":"milestone_passed","territory":"one","milestone":"m%d","points":1,"evidence":null}`+"\n", i, ms, i)
			}
			if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(log), 0o600); err != nil {
				t.Fatal(err)
			}
			cast, done := film(t, dir, f)
			if _, lines := parse(t, cast, f); len(lines) > 300 || done.Markers != len(clocks) && name != "far" {
				t.Fatalf("%d lines, %d markers", len(lines), done.Markers)
			}
		})
	}
}

func TestCastOfRecordings(t *testing.T) {
	f := export.Format{Width: 80, Height: 24, V3: true}
	for _, dir := range viewtest.Recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			cast, done := film(t, dir, f)
			title, lines := parse(t, cast, f)
			check(t, title, lines)
			if done.Frames < 2 {
				t.Fatalf("%d frames", done.Frames)
			}
		})
	}
}

func TestCastEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := export.Cast(ctx, io.Discard, open(t, exporttest.Small(t)), export.Format{Width: 80, Height: 24}); err == nil {
		t.Fatal("a cast was made after its context had ended")
	}
}

func BenchmarkCast10k(b *testing.B) {
	dir := exporttest.Large(b, 10_000)
	var done export.Filmed
	for b.Loop() {
		var err error
		if done, err = export.Cast(context.Background(), io.Discard, open(b, dir), export.Format{Width: 120, Height: 34}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(done.Frames), "frames")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/float64(done.Frames), "ms/frame")
}
