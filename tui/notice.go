package tui

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
	"refbox/tui/canvas"
)

// say shows a sentence in the footer until the next key, or until it has stood
// there long enough to be read.
func (m *model) say(s string) {
	m.notice, m.saidAt, m.saidFor = s, m.cfg.Clock(), nil
}

// sayWhile shows a sentence for as long as it holds, and no longer than any.
func (m *model) sayWhile(s string, holds func() bool) {
	m.say(s)
	m.saidFor = holds
}

// noticeTime is how long a notice stays when nobody presses a key.
const noticeTime = 8 * time.Second

// unsay takes a notice away whose time is over.
func (m *model) unsay() {
	over := m.saidFor != nil && !m.saidFor()
	if m.notice != "" && (over || m.cfg.Clock().Sub(m.saidAt) >= noticeTime) {
		m.notice, m.dirty = "", true
	}
}

// later says what is to be said of the heat that the program shows, once it has
// ended.
func (m *model) later() tea.Cmd {
	o, ok := m.screens[0].(*overview)
	if !ok || o.desk.Later == nil {
		return nil
	}
	ctx := m.ctx
	return safe(func() tea.Msg {
		said := o.desk.Later(ctx)
		if said == "" {
			return nil
		}
		lines := strings.Split(text.Block(said), "\n")
		return doneMsg{notice: text.Line(strings.Join(lines, "; ")), then: func(*model) tea.Cmd {
			o.after = lines
			return nil
		}}
	})
}

// afterRows is what was said of an ended heat, in rows of a width, at most so many;
// it stays, unlike the notice.
func (h *heat) afterRows(w, most int) []string {
	var rows []string
	for _, l := range h.after {
		for i, part := range text.Wrap(l, max(20, w-4)) {
			if i > 0 {
				part = "  " + part
			}
			rows = append(rows, part)
		}
	}
	if len(rows) > most {
		rows[most-1] = fmt.Sprintf("… %d more lines when this screen is left", len(rows)-most+1)
		rows = rows[:most]
	}
	return rows
}

func drawAfter(c canvas.Canvas, rows []string) {
	w, _ := c.Size()
	for y, l := range rows {
		st := canvas.Fg(canvas.Text)
		if y == 0 {
			c.Set(0, y, '■', canvas.Fg(canvas.Accent).With(canvas.Bold))
			st = st.With(canvas.Bold)
		}
		c.PutFit(2, y, w-3, l, st)
	}
}
