package tui

import (
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"
)

// maxCopy is what terminals take of a copy; more is cut.
const maxCopy = 64 << 10

// copyText puts s into the clipboard of the terminal, also over SSH and through
// tmux. Only text of the program's own, or sanitised text, may come here.
func (m *model) copyText(s string) tea.Cmd {
	if s == "" || m.out == nil {
		return nil
	}
	n := min(len(s), maxCopy)
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	seq := osc52.New(s[:n])
	if os.Getenv("TMUX") != "" {
		seq = seq.Tmux()
	}
	out := m.out
	m.say(fmt.Sprintf("copied %d bytes", n))
	return safe(func() tea.Msg {
		if _, err := seq.WriteTo(out); err != nil {
			return doneMsg{err: fmt.Errorf("copy: %w", err)}
		}
		return nil
	})
}
