package season

import (
	"fmt"
	"strings"

	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

var (
	plain = canvas.Fg(canvas.Text)
	dim   = canvas.Fg(canvas.Dim)
	title = canvas.Fg(canvas.Title).With(canvas.Bold)
	loud  = canvas.Fg(canvas.Accent).With(canvas.Bold)
	alarm = canvas.Fg(canvas.Bad)
)

// stateSign is a week's state.
func stateSign(state string) view.Sign {
	switch state {
	case "complete":
		return view.NewSign('✓', "complete", canvas.Ok)
	case "running":
		return view.NewSign('●', "running", canvas.Accent)
	case "aborted":
		return view.NewSign('✗', "aborted", canvas.Bad)
	}
	return view.NewSign('○', state, canvas.Dim)
}

// heatSign is a heat's state.
func heatSign(state string) view.Sign {
	switch state {
	case "over":
		return view.NewSign('✓', "over", canvas.Ok)
	case "playing":
		return view.NewSign('●', "playing", canvas.Accent)
	case "drawn":
		return view.NewSign('=', "nobody won", canvas.Warn)
	case "aborted":
		return view.NewSign('✗', "aborted", canvas.Bad)
	}
	return view.NewSign('○', "waiting", canvas.Dim)
}

// resultSign is how a heat went for a seat.
func resultSign(result string) view.Sign {
	switch result {
	case "won":
		return view.NewSign('★', result, canvas.Ok)
	case "durable":
		return view.NewSign('✓', result, canvas.Ok)
	case "dead heat":
		return view.NewSign('=', result, canvas.Accent)
	case "outraced":
		return view.NewSign('◦', result, canvas.Text)
	case "incomplete":
		return view.NewSign('◐', result, canvas.Warn)
	case "failed":
		return view.NewSign('✗', result, canvas.Bad)
	case "forfeit":
		return view.NewSign('⚠', result, canvas.Bad)
	}
	return view.NewSign('○', text.Line(result), canvas.Dim)
}

// verdictSign is what a check came to.
func verdictSign(v season.Verdict) view.Sign {
	switch v {
	case season.Holds:
		return view.NewSign('✓', "holds", canvas.Ok)
	case season.Note:
		return view.NewSign('○', "note", canvas.Warn)
	case season.Broken:
		return view.NewSign('✗', "broken", canvas.Bad)
	}
	return view.NewSign('·', "can't tell", canvas.Dim)
}

// auditSign sums checks up: the badge.
func auditSign(a *season.Audit) view.Sign {
	switch {
	case a.Count(season.Broken) > 0:
		return view.NewSign('✗', "broken", canvas.Bad)
	case a.Count(season.Note) > 0:
		return view.NewSign('○', "holds, with notes", canvas.Warn)
	}
	return view.NewSign('✓', "holds", canvas.Ok)
}

// checkWords is a check on one line.
func checkWords(c *season.Check) string {
	s := c.Code + "  "
	if c.Where != "" {
		s += c.Where + ": "
	}
	return s + c.Text
}

// seg is a piece of a line.
type seg struct {
	text  string
	style canvas.Style
}

// line is a line of a pane.
type line struct {
	segs []seg
	// opens is what enter opens on this line: an attempt, or a recording's name.
	opens   string
	heading bool // [ and ] go there
}

// page gathers lines of at most width cells; what does not fit is wrapped or cut.
type page struct {
	width int
	lines []line
	opens string // of the lines that follow
}

func (p *page) blank() {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, line{})
	}
}

func (p *page) heading(format string, a ...any) {
	p.blank()
	p.lines = append(p.lines, line{segs: []seg{{text.Line(fmt.Sprintf(format, a...)), title}}, heading: true})
}

// row is a line of pieces, cut where it is too long.
func (p *page) row(segs ...seg) {
	for i := range segs {
		segs[i].text = text.Line(segs[i].text)
	}
	p.lines = append(p.lines, line{segs: segs, opens: p.opens})
}

// say wraps a text that is indented by n cells.
func (p *page) say(n int, st canvas.Style, format string, a ...any) {
	for _, l := range text.Wrap(text.Block(fmt.Sprintf(format, a...)), max(8, p.width-n)) {
		p.lines = append(p.lines, line{segs: []seg{{strings.Repeat(" ", n) + l, st}}, opens: p.opens})
	}
}

// cell is a piece of a fixed width.
func cell(s string, w int, st canvas.Style) seg {
	return seg{text.Pad(text.Truncate(text.Line(s), w, text.Ellipsis), w) + " ", st}
}

// right is a piece of a fixed width with its text at the end.
func right(s string, w int, st canvas.Style) seg {
	s = text.Truncate(text.Line(s), w, text.Ellipsis)
	return seg{strings.Repeat(" ", max(0, w-text.Width(s))) + s + " ", st}
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

// scroll is a place in a list that is longer than its window.
type scroll struct {
	at, top int
}

// settle keeps the place within n rows, and the window of h rows around it.
func (s *scroll) settle(n, h int) { s.at, s.top = view.Settle(s.at, s.top, n, h) }

// chosen shows row y as the selected one; faint where the pane has not the focus.
func chosen(c canvas.Canvas, y int, focused bool) {
	if !focused {
		c.Set(0, y, '▏', dim)
		return
	}
	view.Choose(c, y)
}

// seconds is a durable time, to the millisecond where that decides.
func seconds(ms int64) string {
	if ms < 60_000 {
		return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000)
	}
	return view.Span(ms)
}
