package transcript

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// generated is the path of a Claude Code session of about size bytes, with a line
// of 80 MB in it. Another process writes it: what that takes must not count as
// the reader's memory. REFBOX_BENCH_DIR keeps it for the next run.
func generated(b *testing.B, size int64) string {
	b.Helper()
	dir := os.Getenv("REFBOX_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("claude-%d.jsonl", size))
	if info, err := os.Stat(path); err == nil && info.Size() >= size {
		return path
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestGenerate$")
	cmd.Env = append(os.Environ(), "REFBOX_GENERATE="+path, "REFBOX_GENERATE_BYTES="+strconv.FormatInt(size, 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestGenerate is the process that writes the benchmark's file.
func TestGenerate(t *testing.T) {
	path := os.Getenv("REFBOX_GENERATE")
	if path == "" {
		t.Skip("only the benchmark of a gigabyte asks for it")
	}
	size, err := strconv.ParseInt(os.Getenv("REFBOX_GENERATE_BYTES"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	generate(t, path, size)
}

func generate(b testing.TB, path string, size int64) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var s strings.Builder
		for s.Len() < n {
			s.WriteString("word" + strconv.Itoa(random.IntN(1000)) + ` \"q\" `)
		}
		return s.String()
	}
	written, parent, giant := int64(0), "null", false
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	line := func(kind, id, message, more string) {
		at = at.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		n, _ := fmt.Fprintf(w, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"s","version":"2.0","type":%q,"message":%s,"uuid":%q,"timestamp":%q%s}`+"\n",
			parent, kind, message, id, at.Format("2006-01-02T15:04:05.000Z"), more)
		written += int64(n)
		parent = `"` + id + `"`
	}
	for i := 0; written < size; i++ {
		id := func(k string) string { return fmt.Sprintf("%s%08d-0000-4000-8000-000000000000", k, i) }
		use := fmt.Sprintf(`"usage":{"input_tokens":%d,"cache_creation_input_tokens":10,"cache_read_input_tokens":5000,"output_tokens":%d}`, i%100, i%500)
		line("assistant", id("a"), fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"%s"}],%s}`, i, words(300), use), "")
		line("assistant", id("b"), fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"echo %s","description":"step %d"}}],%s}`, i, i, words(200), i, use), "")
		out := words(200 + random.IntN(6000))
		line("user", id("c"), fmt.Sprintf(`{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":"%s","is_error":false}]}`, i, out),
			fmt.Sprintf(`,"toolUseResult":{"stdout":"%s","stderr":"","interrupted":false}`, out))
		if !giant && written > size/2 {
			giant = true
			line("user", id("d"), `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUJD", 20<<20)+`"}}]}`, "")
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGigabyte measures a transcript of 1 GB (REFBOX_BENCH_MB sets another
// size): first frame, steps while it is indexed, steps once it is, memory. A
// frame is 50 titles and one step in full.
func BenchmarkGigabyte(b *testing.B) {
	megabytes := int64(1000)
	if s := os.Getenv("REFBOX_BENCH_MB"); s != "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			b.Fatal(err)
		}
		megabytes = n
	}
	path := generated(b, megabytes*1_000_000)
	frame := func(tr *Transcript, from int) {
		for i := from; i < min(from+50, tr.Len()); i++ {
			tr.Step(i)
		}
		if _, err := tr.Full(min(from, tr.Len()-1)); err != nil {
			b.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for b.Loop() {
		begin := time.Now()
		tr, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		frame(tr, 0)
		first := time.Since(begin)

		done := make(chan error, 1)
		begin = time.Now()
		go func() { done <- tr.Load(context.Background()) }()
		var during []time.Duration
		for !tr.Complete() {
			at := time.Now()
			i := random.IntN(tr.Len())
			tr.Step(i)
			if _, err := tr.Full(i); err != nil {
				b.Fatal(err)
			}
			during = append(during, time.Since(at))
			time.Sleep(5 * time.Millisecond) // a person is slower still; the loader needs the processor
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		indexed := time.Since(begin)
		var after []time.Duration
		for range 3000 {
			at := time.Now()
			frame(tr, random.IntN(tr.Len()))
			after = append(after, time.Since(at))
		}
		slices.Sort(during)
		slices.Sort(after)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		b.ReportMetric(ms(first), "first-frame-ms")
		b.ReportMetric(indexed.Seconds(), "index-s")
		b.ReportMetric(ms(during[len(during)*99/100]), "indexing-p99-ms")
		b.ReportMetric(ms(after[len(after)/2]), "frame-median-ms")
		b.ReportMetric(ms(after[len(after)*99/100]), "frame-p99-ms")
		b.ReportMetric(ms(after[len(after)-1]), "frame-max-ms")
		b.ReportMetric(float64(tr.Len()), "steps")
		b.ReportMetric(resident(b), "peak-resident-MB")
		if err := tr.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// resident is the most memory that the process ever had, in megabytes.
func resident(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Log("no /proc: what Go got from the system is reported instead")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Sys) / 1e6
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n * 1024 / 1e6
		}
	}
	return 0
}
