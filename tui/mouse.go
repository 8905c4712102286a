package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"refbox/tui/keymap"
)

// pointed is a screen that the mouse can act on; x and y are of its body.
type pointed interface {
	click(m *model, x, y int) tea.Cmd
}

func (m *model) onMouse(e tea.MouseMsg) (cmd tea.Cmd, acted bool) {
	if m.tooSmall() || m.dialog != nil || m.prompt != nil || m.help != nil || e.Action != tea.MouseActionPress {
		return nil, false
	}
	if r, ok := m.top().(rawKeys); ok && r.wantsRaw() {
		return nil, false // the wheel is no key that a guest should get
	}
	switch e.Button {
	case tea.MouseButtonWheelDown:
		return m.top().key(m, keymap.Down, tea.KeyMsg{}), true
	case tea.MouseButtonWheelUp:
		return m.top().key(m, keymap.Up, tea.KeyMsg{}), true
	case tea.MouseButtonLeft:
		if p, ok := m.top().(pointed); ok {
			return p.click(m, e.X, e.Y-1), true
		}
	}
	return nil, false
}
