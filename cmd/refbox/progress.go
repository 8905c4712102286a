package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"refbox/engine/text"
)

// progress shows what something slow is doing: one line that is written over on
// a terminal, a line per step elsewhere.
type progress struct {
	out  io.Writer
	live bool

	mu    sync.Mutex
	step  string
	began time.Time // of the step
	shown time.Time
	open  bool // a line is on the screen, without its newline
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, live: isTerminal(out) && os.Getenv("TERM") != "dumb"}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// report is a vm.Report.
func (p *progress) report(step string, done float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	step = text.Line(step)
	if step != p.step {
		p.endLine()
		p.step, p.began, p.shown = step, now, time.Time{}
		if !p.live {
			fmt.Fprintf(p.out, "%s …\n", step)
		}
	}
	if !p.live || now.Sub(p.shown) < 100*time.Millisecond && done < 1 {
		return
	}
	p.shown, p.open = now, true
	const width = 24
	bar := ""
	if done >= 0 {
		n := int(min(done, 1) * width)
		bar = "  " + strings.Repeat("█", n) + strings.Repeat("░", width-n) + fmt.Sprintf(" %3.0f %%", min(done, 1)*100)
		if took := now.Sub(p.began); done > 0.05 && done < 1 && took > 2*time.Second {
			left := time.Duration(float64(took) * (1 - done) / done)
			bar += fmt.Sprintf("  %s left", left.Round(time.Second))
		}
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s%s", text.Truncate(step, 44, text.Ellipsis), bar)
}

// done ends the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	p.step = ""
}

func (p *progress) endLine() {
	if !p.open {
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s  %s\n", p.step, time.Since(p.began).Round(100*time.Millisecond))
	p.open = false
}
