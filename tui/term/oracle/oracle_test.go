package oracle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"

	"refbox/tui/term"
)

const width, height = 100, 30

func theirs(data []byte, w, h int) string {
	e := vt.NewEmulator(w, h)
	e.Write(data)
	rows := strings.Split(e.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n ")
}

func ours(data []byte, w, h int) string {
	t := term.New(w, h)
	t.Write(data)
	return strings.TrimRight(t.String(), "\n ")
}

// TestSameScreens leaves out what x/vt lacks: NEL, DECALN, insert mode, wide runes that
// meet the last column (reference/terminal.md 1.1).
func TestSameScreens(t *testing.T) {
	for name, data := range streams() {
		for _, size := range [][2]int{{100, 30}, {80, 24}, {132, 43}} {
			for cut := range 10 {
				part := data[:len(data)*(cut+1)/10]
				if cut > 4 {
					part = part[:min(len(part), 20000*cut)]
				}
				if got, want := ours(part, size[0], size[1]), theirs(part, size[0], size[1]); name != "utf-8" && got != want {
					t.Fatalf("%s, cut %d, %v:\n--- x/vt\n%s\n--- ours\n%s", name, cut, size, want, got)
				}
				if len(part) > 200000 {
					break
				}
			}
		}
	}
	pieces := []string{"plain text ", "[  OK  ] Started", "\r\n", "\r\n", "\x1b[31;1m", "\x1b[m", "\t", "\x1b[H", "\x1b[3;7H", "\x1b[5;12H", "\x1b[2P", "\x1b[3X",
		"\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1b[K", "\x1b[1K", "\x1b[J", "\x1b[2A", "\x1b[B", "\x1b[3C", "\x1b[4D", "\x1b[10G", "\x1b[4d", "\x1b]0;t\x07", "\r", "\b"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		data := []byte("\x1b7")
		for range 40 {
			data = append(data, pieces[r.IntN(len(pieces))]...)
		}
		if got, want := ours(data, 30, 8), theirs(data, 30, 8); got != want {
			t.Errorf("seed %d: %q\n--- x/vt\n%s\n--- ours\n%s", seed, data, want, got)
		}
	}
}

// streams are the console outputs that the figures of design section 7 speak of, made
// from the same seed each time.
func streams() map[string][]byte {
	const size = 1 << 20
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("virtio_blk vda detected capacity change Booting Linux on physical CPU clocksource tsc mask max_cycles Freeing unused kernel memory systemd Started Reached target Multi-User System Network Name Resolution EXT4-fs mounted filesystem ordered data mode")
	sentence := func() string {
		var b strings.Builder
		for range 4 + r.IntN(7) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteByte(' ')
		}
		return b.String()
	}
	fill := func(next func(b *bytes.Buffer)) []byte {
		var b bytes.Buffer
		for b.Len() < size {
			next(&b)
		}
		return b.Bytes()
	}
	stamp := 0.0
	kernel := func(b *bytes.Buffer) {
		stamp += r.Float64() / 50
		fmt.Fprintf(b, "[%12.6f] %s\r\n", stamp, sentence())
	}
	coloured := func(b *bytes.Buffer) {
		fmt.Fprintf(b, "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39m%s.service\x1b[0m - %s.\r\n", words[r.IntN(len(words))], sentence())
	}
	return map[string][]byte{
		"plain":    fill(kernel),
		"coloured": fill(coloured),
		"cursor": fill(func(b *bytes.Buffer) {
			fmt.Fprintf(b, "\x1b[%d;%dH\x1b[%dm%s\x1b[m\x1b[K", 1+r.IntN(24), 1+r.IntN(60), 30+r.IntN(8), words[r.IntN(len(words))])
		}),
		"utf-8": fill(func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s 起動しました ✓ Überprüfung → %s\r\n", words[r.IntN(len(words))], words[r.IntN(len(words))])
		}),
		"boot": fill(func(b *bytes.Buffer) {
			b.WriteString("\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS (version 1.16.2-debian)\r\n\r\nBooting from ROM..\x1b[?7h\x1bc\x1b[2J")
			for range 300 {
				kernel(b)
			}
			for range 40 {
				coloured(b)
			}
			for i := range 20 {
				fmt.Fprintf(b, "\r[\x1b[0;31m*\x1b[0;1;31m*\x1b[0m\x1b[0;31m*\x1b[0m] A start job is running (%ds / no limit)\x1b[K", i)
			}
			b.WriteString("\r\n\r\nDebian GNU/Linux 12 failover-one ttyS0\r\n\r\nfailover-one login: ")
		}),
	}
}

// BenchmarkThroughput prints for each stream what both do and the ratio, with the
// smallest and the largest of the rounds; both run in turn, in one process.
func BenchmarkThroughput(b *testing.B) {
	data := streams()
	for _, name := range []string{"plain", "coloured", "cursor", "utf-8", "boot"} {
		b.Run(name, func(b *testing.B) {
			in := data[name]
			rate := func(write func([]byte)) float64 {
				start := time.Now()
				write(in)
				return float64(len(in)) / 1e6 / time.Since(start).Seconds()
			}
			var us, them, ratio []float64
			for b.Loop() {
				t, e := term.New(width, height), vt.NewEmulator(width, height)
				u := rate(func(p []byte) { t.Write(p) })
				v := rate(func(p []byte) { e.Write(p) })
				us, them, ratio = append(us, u), append(them, v), append(ratio, u/v)
			}
			for _, s := range [][]float64{us, them, ratio} {
				slices.Sort(s)
			}
			mid := func(s []float64) float64 { return s[len(s)/2] }
			b.ReportMetric(mid(us), "MB/s")
			b.ReportMetric(mid(them), "xvt-MB/s")
			b.ReportMetric(ratio[0], "ratio-min")
			b.ReportMetric(mid(ratio), "ratio-median")
			b.ReportMetric(ratio[len(ratio)-1], "ratio-max")
			b.ReportMetric(0, "ns/op")
		})
	}
}
