package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"refbox/engine/heat"
	"refbox/engine/text"
)

// progress shows what something slow is doing: one line that is written over on
// a terminal, a line per step elsewhere.
type progress struct {
	out  io.Writer
	live bool
	pace *pace // nil to remember nothing

	mu      sync.Mutex
	step    string
	part    float64   // done of the step, negative when it does not say
	began   time.Time // of the step
	since   time.Time // of the first step that tells a part of the whole; zero before
	known   float64   // the part it told
	shown   time.Time
	open    bool // a line is on the screen, without its newline
	stop    chan struct{}
	ticking sync.WaitGroup
}

func newProgress(a *app) *progress {
	return &progress{out: a.err, live: isTerminal(a.err) && os.Getenv("TERM") != "dumb" && !a.settings.Reader, pace: openPace()}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// report is a vm.Report. On a terminal the line goes on telling the time until
// the next report or done.
func (p *progress) report(step string, part float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	step = text.Line(step)
	if step != p.step {
		if p.step != "" && whose(p.step) == whose(step) {
			p.pace.took(p.step, now.Sub(p.began))
		}
		p.endLine(whose(p.step) == "" || whose(p.step) == whose(step))
		p.step, p.began, p.shown = step, now, time.Time{}
		if !p.live {
			fmt.Fprintf(p.out, "%s …\n", step)
		}
	}
	p.part = part
	if whose(step) != "" || part < 0 || part < p.known { // seats are each a whole of their own
		p.since = time.Time{}
	}
	if part >= 0 && whose(step) == "" && p.since.IsZero() {
		p.since, p.known = now, part
	}
	if !p.live || now.Sub(p.shown) < 100*time.Millisecond && part < 1 {
		return
	}
	p.draw(now)
	if p.stop == nil {
		stop := make(chan struct{})
		p.stop = stop
		p.ticking.Go(func() { p.tick(stop) })
	}
}

// ofHeat reports a heat's set-up. Its seats are set up side by side: a step of one that
// was told is not told again because another's came between.
func (p *progress) ofHeat() func(heat.Progress) {
	var told sync.Map // by territory: its last step
	return func(h heat.Progress) {
		step := strings.TrimPrefix(h.Territory+": "+h.Step, ": ")
		if last, again := told.Swap(h.Territory, h.Step); again && last == h.Step && !p.current(step) {
			return
		}
		p.report(step, h.Done)
	}
}

// current says that a step is the one that is shown.
func (p *progress) current(step string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.step == text.Line(step)
}

// tick draws the line anew each second: many a step says nothing for half a
// minute, and a line that stands still looks like a program that does.
func (p *progress) tick(stop <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			p.mu.Lock()
			if p.open {
				p.draw(now)
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) draw(now time.Time) {
	p.shown, p.open = now, true
	const width = 24
	bar := ""
	if p.part >= 0 {
		n := int(min(p.part, 1) * width)
		bar = "  " + strings.Repeat("█", n) + strings.Repeat("░", width-n) + fmt.Sprintf(" %3.0f %%", min(p.part, 1)*100)
	}
	if took := now.Sub(p.began); took >= 2*time.Second {
		bar += "  " + took.Round(time.Second).String()
	}
	// What is left is a guess, worth telling once a fair part was seen.
	if did := p.part - p.known; !p.since.IsZero() && p.part < 1 && did >= 0.1 && now.Sub(p.since) >= 5*time.Second {
		left := time.Duration(float64(now.Sub(p.since)) * (1 - p.part) / did)
		bar += fmt.Sprintf(", about %s left", left.Round(time.Second))
	} else if left := p.pace.takes(p.step) - now.Sub(p.began); left >= time.Second && p.part < 1 {
		bar += fmt.Sprintf("%s about %s left", strings.Repeat(",", min(1, len(bar))), left.Round(time.Second))
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s%s", text.Truncate(p.step, 44, text.Ellipsis), bar)
}

// done ends the line, and waits for what draws it.
func (p *progress) done() {
	p.mu.Lock()
	p.endLine(true)
	p.step, p.since = "", time.Time{}
	p.pace.keep()
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		close(stop)
		p.ticking.Wait()
	}
}

// endLine leaves the line as it is to stay. It tells how long the step took, or
// nothing when all that is known is that somebody else's step began: seats are
// prepared side by side.
func (p *progress) endLine(timed bool) {
	if !p.open {
		return
	}
	took := ""
	if timed {
		took = "  " + time.Since(p.began).Round(100*time.Millisecond).String()
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s%s\n", p.step, took)
	p.open = false
}

// whose is the seat that a step is about, "" for all of them.
func whose(step string) string {
	seat, _, found := strings.Cut(step, ": ")
	if !found {
		return ""
	}
	return seat
}
