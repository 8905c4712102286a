package step

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/viewtest"
)

// generate writes a session of about so many megabytes, with a line of 80 MB in
// its middle when it is large. REFBOX_BENCH_DIR keeps it for the next run.
func generate(b *testing.B, megabytes int) string {
	b.Helper()
	dir := os.Getenv("REFBOX_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("step-%d.jsonl", megabytes))
	if info, err := os.Stat(path); err == nil && info.Size() >= int64(megabytes)*1e6 {
		return path
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	s := newSession(b)
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var o strings.Builder
		for o.Len() < n {
			fmt.Fprintf(&o, "word%d \"quoted\"\n", random.IntN(1000))
		}
		return o.String()
	}
	for n, giant := 0, false; n < megabytes*1e6; {
		s.says("## Step\n\n" + words(300))
		s.bash(fmt.Sprintf("systemctl restart unit-%d.service && for i in 1 2 3; do curl -s http://127.0.0.1:8080/$i; done # %d", n%7, n), words(200+random.IntN(6000)))
		if !giant && megabytes >= 200 && n > megabytes*5e5 {
			giant = true
			s.bash("cat core", strings.Repeat("0123456789abcdef", 5<<20))
		}
		n += s.b.Len()
		if _, err := w.WriteString(s.b.String()); err != nil {
			b.Fatal(err)
		}
		s.b.Reset()
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkStep is a step at 200×60 in a large file: key, Advance, Draw and
// Flatten together, while the file is read and judged, and afterwards (figure:
// design, section 7). REFBOX_BENCH_MB sets the size.
func BenchmarkStep(b *testing.B) {
	megabytes := 64
	if n, err := strconv.Atoi(os.Getenv("REFBOX_BENCH_MB")); err == nil {
		megabytes = n
	}
	path := generate(b, megabytes)
	begin := time.Now()
	s, err := Open(path, "", -1)
	if err != nil {
		b.Fatal(err)
	}
	x := &stage{t: b, s: s, step: s, w: 200, h: 60, keys: keymap.Default(), out: canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}}
	defer s.Close()
	s.Advance(x.Now())
	x.text()
	first := time.Since(begin)
	random := rand.New(rand.NewPCG(3, 4))
	step := func() time.Duration {
		at := time.Now()
		switch random.IntN(8) {
		case 0:
			x.run(s.Key(x, keymap.PageDown, viewtest.Key("pgdown")))
		case 1:
			s.track().goTo(random.IntN(s.track().tr.Len()))
		default:
			x.run(s.Key(x, keymap.Down, viewtest.Key("j")))
		}
		s.Advance(x.Now())
		x.text()
		return time.Since(at)
	}
	report := func(took []time.Duration, name string) {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-median-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, name+"-max-ms")
	}
	var during, after []time.Duration
	for !x.idleButForDrawing() || len(during) < 100 {
		during = append(during, step())
		time.Sleep(20 * time.Millisecond) // a person is slower still
	}
	judged := time.Since(begin)
	for b.Loop() {
		after = append(after, step())
		time.Sleep(5 * time.Millisecond)
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-frame-ms")
	b.ReportMetric(judged.Seconds(), "judged-s")
	report(during, "meanwhile")
	report(after, "step")
	b.ReportMetric(float64(s.track().tr.Len()), "steps")
}

// idleButForDrawing says that all is read, judged and listed.
func (x *stage) idleButForDrawing() bool {
	t := x.step.track()
	_, all := t.passed()
	return all && t.tr.Complete() && t.built >= t.tr.Len()
}
