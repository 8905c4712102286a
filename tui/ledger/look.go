package ledger

import (
	"fmt"
	"strings"

	"refbox/engine/ledger"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// stateSign is a derived state; the zero sign where an arena says nothing of a
// scenario.
func stateSign(s ledger.State) view.Sign {
	switch s {
	case ledger.NotInjected:
		return view.NewSign('○', "not injected", canvas.Dim)
	case ledger.Inconclusive:
		return view.NewSign('?', "inconclusive", canvas.Warn)
	case ledger.Stale:
		return view.NewSign('↶', "stale", canvas.Warn)
	case ledger.Sampled:
		return view.NewSign('◐', "sampled", canvas.Accent)
	case ledger.Observed:
		return view.NewSign('●', "observed", canvas.Ok)
	case ledger.Contradicted:
		return view.NewSign('✗', "contradicted", canvas.Bad)
	case ledger.Accepted:
		return view.NewSign('□', "accepted", canvas.Text)
	case ledger.Owned:
		return view.NewSign('→', "owned", canvas.Text)
	}
	return view.Sign{}
}

func gateSign(pass bool) view.Sign {
	if pass {
		return view.NewSign('✓', "passed", canvas.Ok)
	}
	return view.NewSign('✗', "refused", canvas.Bad)
}

var (
	plain = canvas.Fg(canvas.Text)
	dim   = canvas.Fg(canvas.Dim)
	title = canvas.Fg(canvas.Title).With(canvas.Bold)
	alarm = canvas.Fg(canvas.Bad)
	warn  = canvas.Fg(canvas.Warn)
)

// seg is a piece of a line.
type seg struct {
	text  string
	style canvas.Style
}

// line is a line of a pane, safe to draw.
type line struct {
	segs    []seg
	heading bool   // [ and ] go there
	heat    string // enter opens it
}

// page gathers lines of at most width cells; what does not fit is wrapped.
type page struct {
	width int
	lines []line
	heat  string
}

func (p *page) blank() {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, line{})
	}
}

func (p *page) heading(format string, a ...any) {
	p.blank()
	p.lines = append(p.lines, line{segs: []seg{{text.Line(fmt.Sprintf(format, a...)), title}}, heading: true, heat: p.heat})
}

// say wraps a text behind a label of n cells.
func (p *page) say(label string, n int, st canvas.Style, format string, a ...any) {
	p.mark(view.Sign{Word: label, Style: dim}, n, st, format, a...)
}

// mark wraps a text behind a sign and its word, of n cells.
func (p *page) mark(s view.Sign, n int, st canvas.Style, format string, a ...any) {
	label := text.Line(s.Word)
	if s.Shape != 0 {
		label = strings.TrimSpace(string(s.Shape) + " " + label)
	}
	for _, l := range text.Wrap(text.Block(fmt.Sprintf(format, a...)), max(8, p.width-n)) {
		segs := []seg{{l, st}}
		if n > 0 {
			segs = []seg{{text.Pad(text.Truncate(label, n-1, text.Ellipsis), n), s.Style}, {l, st}}
		}
		p.lines = append(p.lines, line{segs: segs, heat: p.heat})
		label = ""
	}
}

func (l *line) draw(c canvas.Canvas, x, y, w int) {
	end := x + w
	for _, s := range l.segs {
		if x >= end {
			return
		}
		x = c.PutFit(x, y, end-x, s.text, s.style)
	}
}

// words are the line's text, for the clipboard.
func (l *line) words() string {
	var b strings.Builder
	for _, s := range l.segs {
		b.WriteString(s.text)
	}
	return strings.TrimSpace(b.String())
}

// scroll is a place in a list that is longer than its window.
type scroll struct{ at, top int }

// settle keeps the place within n rows, and the window of h rows around it.
func (s *scroll) settle(n, h int) { s.at, s.top = view.Settle(s.at, s.top, n, h) }
