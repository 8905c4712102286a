package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
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
	return safe(func() tea.Msg { return doneMsg{notice: o.desk.Later(ctx)} })
}
