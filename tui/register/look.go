package register

import (
	"fmt"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

func outcomeSign(o register.Outcome) view.Sign {
	switch o {
	case register.Writable:
		return view.NewSign('●', "write", canvas.Ok)
	case register.ReadOnly:
		return view.NewSign('◐', "read", canvas.Accent)
	case register.RestoreRequired:
		return view.NewSign('↶', "restore", canvas.Warn)
	}
	return view.NewSign('✗', "lost", canvas.Bad)
}

func severitySign(s register.Severity) view.Sign {
	switch s {
	case register.Gap:
		return view.NewSign('✗', "gap", canvas.Bad)
	case register.IsAccepted:
		return view.NewSign('○', "accepted", canvas.Warn)
	}
	return view.NewSign('·', "note", canvas.Dim)
}

func statusSign(running bool) view.Sign {
	if running {
		return view.NewSign('●', "running", canvas.Ok)
	}
	return view.NewSign('○', "planned", canvas.Warn)
}

func drillSign(o register.DrillOutcome) view.Sign {
	switch o {
	case register.Pass:
		return view.NewSign('✓', "pass", canvas.Ok)
	case register.Partial:
		return view.NewSign('◐', "partial", canvas.Warn)
	}
	return view.NewSign('✗', "fail", canvas.Bad)
}

// meets is a value held against what is declared for it.
func meets(ok bool) view.Sign {
	if ok {
		return view.NewSign('✓', "", canvas.Ok)
	}
	return view.NewSign('✗', "", canvas.Bad)
}

func postureWord(p register.Posture) string {
	if p == register.TargetPosture {
		return "planned"
	}
	return "today"
}

var (
	plain = canvas.Fg(canvas.Text)
	dim   = canvas.Fg(canvas.Dim)
	title = canvas.Fg(canvas.Title).With(canvas.Bold)
	loud  = canvas.Fg(canvas.Accent).With(canvas.Bold)
	alarm = canvas.Fg(canvas.Bad)
)

// seg is a piece of a line.
type seg struct {
	text  string
	style canvas.Style
}

// line is a line of a pane, safe to draw.
type line struct {
	segs []seg
	// ask are the rules that x explains on this line.
	ask []register.Code
	// heading: [ and ] go there.
	heading bool
}

// page gathers lines of at most width cells; what does not fit is wrapped.
type page struct {
	width int
	lines []line
	ask   []register.Code
}

func (p *page) blank() {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, line{})
	}
}

func (p *page) heading(s string) {
	p.blank()
	p.lines = append(p.lines, line{segs: []seg{{text.Line(s), title}}, heading: true, ask: p.ask})
}

// row is a line of pieces, cut where it is too long.
func (p *page) row(segs ...seg) {
	for i := range segs {
		segs[i].text = text.Line(segs[i].text)
	}
	p.lines = append(p.lines, line{segs: segs, ask: p.ask})
}

// say wraps a text below a label of n cells.
func (p *page) say(label string, n int, st canvas.Style, format string, a ...any) {
	s := fmt.Sprintf(format, a...)
	for i, l := range text.Wrap(text.Block(s), max(8, p.width-n)) {
		if i > 0 {
			label = ""
		}
		segs := []seg{{l, st}}
		if n > 0 {
			segs = []seg{{text.Pad(text.Truncate(text.Line(label), n-1, text.Ellipsis), n), dim}, {l, st}}
		}
		p.lines = append(p.lines, line{segs: segs, ask: p.ask})
	}
}

// steps are numbered lines.
func (p *page) steps(list []string) {
	for i, s := range list {
		p.say(fmt.Sprintf("%3d", i+1), 5, plain, "%s", s)
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

// plainText is the line's text, for the clipboard.
func (l *line) plainText() string {
	var b strings.Builder
	for _, s := range l.segs {
		b.WriteString(s.text)
	}
	return strings.TrimSpace(b.String())
}

// scroll is a place in a list that is longer than its window.
type scroll struct {
	at, top int
}

// settle keeps the place within n rows, and the window of h rows around it.
func (s *scroll) settle(n, h int) { s.at, s.top = view.Settle(s.at, s.top, n, h) }

// chosen shows row y as the selected one, also without colour; faint where the
// pane has not the focus.
func chosen(c canvas.Canvas, y int, focused bool) {
	if !focused {
		c.Set(0, y, '▏', dim)
		return
	}
	view.Choose(c, y)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
