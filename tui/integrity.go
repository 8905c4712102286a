package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// integrityScreen lists what is wrong with the recording, and what was checked.
type integrityScreen struct {
	*heat
	up    int
	lines []styledLine
	of    *recording.Finding // the report that lines were made from, and its width
	n, w  int
}

func (s *integrityScreen) crumbs() []string { return append(s.heat.crumbs(), "integrity") }

func (s *integrityScreen) start() tea.Cmd { return s.verify() }

// badge is the header's word on the recording's integrity; "" when all is well.
func (h *heat) badge() (short, long string, st canvas.Style) {
	breaks := h.report.Breaks()
	switch notes := len(h.report.Findings) - breaks; {
	case breaks > 0:
		return "✗", "✗ " + view.Plural(breaks, "break"), canvas.Fg(canvas.Bad)
	case notes > 0:
		return "○", "○ " + view.Plural(notes, "note"), canvas.Fg(canvas.Warn)
	}
	return "", "", canvas.Style{}
}

func (s *integrityScreen) draw(c canvas.Canvas) {
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	word, st := badgeMark(s.report.Badge())
	in := c.Sub(c.Frame(top, canvas.Heavy, "integrity", word, canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	y := 0
	for _, l := range text.Wrap(s.summary(), w-2) {
		in.Put(1, y, l, st)
		y++
	}
	y++
	lines := s.findings(w - 2)
	room := h - y
	s.up = max(0, min(s.up, len(lines)-room))
	for i := s.up; y < h && i < len(lines); i, y = i+1, y+1 {
		in.PutFit(1, y, w-2, lines[i].text, lines[i].style)
	}
	view.More(c, top, len(lines)-s.up-room)
}

// summary is what was checked, in a sentence.
func (s *integrityScreen) summary() string {
	r := s.report
	seal := "not chained"
	switch {
	case r.Sealed && r.Chained, r.Sealed && !r.Verified:
		seal = "chained and sealed"
	case r.Chained:
		seal = "chained, not sealed"
	}
	checked := "checked: every line"
	if !slices.ContainsFunc(r.Findings, func(f recording.Finding) bool { return f.Code == "missing_file" && f.File == "world.json" }) {
		checked += ", the fold against world.json"
	}
	if r.Chained {
		checked += ", the chain of hashes"
	}
	if s.rec.Match() != nil {
		checked += ", the digests in match.json"
	}
	switch {
	case s.verifying:
		checked = "being checked …"
	case s.rec.Live():
		checked = "still written: what has come was read"
	case !r.Verified:
		checked = "read, not checked"
	}
	breaks := r.Breaks()
	return fmt.Sprintf("%s, %s, %s, %s; %s", view.Plural(r.Events, "event"), seal, view.Plural(breaks, "break"), view.Plural(len(r.Findings)-breaks, "note"), checked)
}

// findings are the lines of the list, breaks first, made once per report.
func (s *integrityScreen) findings(w int) []styledLine {
	fs := s.report.Findings
	var of *recording.Finding
	if len(fs) > 0 {
		of = &fs[0]
	}
	if s.lines != nil && s.of == of && s.n == len(fs) && s.w == w {
		return s.lines
	}
	s.of, s.n, s.w = of, len(fs), w
	s.lines = []styledLine{}
	if len(fs) == 0 {
		s.lines = append(s.lines, styledLine{"nothing is wrong with what is there", canvas.Fg(canvas.Dim)})
	}
	for _, severity := range []recording.Severity{recording.Break, recording.Note} {
		sign, st := "○", canvas.Fg(canvas.Warn)
		if severity == recording.Break {
			sign, st = "✗", canvas.Fg(canvas.Bad)
		}
		for _, f := range fs {
			if f.Severity != severity {
				continue
			}
			s.lines = append(s.lines, styledLine{strings.TrimSpace(fmt.Sprintf("%s %s %s  %s", sign, f.Severity, f.Code, placeOf(f))), st.With(canvas.Bold)})
			for _, l := range text.Wrap(f.Text, max(8, w-2)) {
				s.lines = append(s.lines, styledLine{"  " + l, canvas.Fg(canvas.Text)})
			}
		}
	}
	return s.lines
}

// placeOf is the file, line and byte of a finding, as far as they are known.
func placeOf(f recording.Finding) string {
	at := f.File
	if f.Line > 0 {
		at += fmt.Sprintf(" line %d", f.Line)
	}
	if f.Line > 0 || f.Offset > 0 {
		at += fmt.Sprintf(" byte %d", f.Offset)
	}
	return at
}

func (s *integrityScreen) key(m *model, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	if by := a.Stride(10, 10); by != 0 {
		s.up = max(0, s.up+by)
		return nil
	}
	switch a {
	case keymap.Integrity:
		m.pop()
	default:
		if cmd, moved := s.moveInTime(m, a); moved {
			return cmd
		}
		return s.act(m, a)
	}
	return nil
}

func (s *integrityScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.Down, keymap.Up, keymap.PageDown, keymap.PageUp, keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.Back}
}

func (s *integrityScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }
