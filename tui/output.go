package tui

import (
	"fmt"
	"io"
	"os"
	"sync"
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

// syncFile makes the terminal show each frame at once (DEC mode 2026), so that
// a frame that takes several writes of the terminal never tears. Terminals that
// do not know the mode ignore it.
type syncFile struct {
	*os.File
	mu *sync.Mutex // frames and what is copied are not interleaved
}

func syncOutput(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("REFBOX_NO_SYNC") != "" {
		return w
	}
	return syncFile{f, new(sync.Mutex)}
}

func (s syncFile) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	buf := make([]byte, 0, len(p)+16)
	buf = append(buf, "\x1b[?2026h"...)
	buf = append(buf, p...)
	buf = append(buf, "\x1b[?2026l"...)
	if _, err := s.File.Write(buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
