package tui

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
)

// panicked is what a panic left: its value and where it happened.
type panicked struct {
	value any
	stack []byte
}

// panicMsg carries a panic of a command to Update, which panics anew: there the
// program's own end is reached.
type panicMsg struct{ fault panicked }

// safe makes a command whose panic becomes a message, so that the terminal is
// restored and the user reads a sentence.
func safe(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = panicMsg{panicked{r, debug.Stack()}}
			}
		}()
		return f()
	}
}

// beside runs f in a goroutine and closes done when it has ended. A panic ends f
// alone.
func beside(done chan<- struct{}, f func()) {
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
}

// fault is a panic as an error of one line; the stack goes to log.
func fault(r any, log io.Writer) error {
	p, ok := r.(panicked)
	if !ok {
		p = panicked{r, debug.Stack()}
	}
	if log != nil {
		fmt.Fprintf(log, "panic: %v\n%s\n", p.value, p.stack)
	}
	return errors.New(text.Line(fmt.Sprintf("internal fault, the terminal was restored: %v%s", p.value, place(p.stack))))
}

// place is the innermost own line of a stack after the panic.
func place(stack []byte) string {
	_, after, found := strings.Cut(string(stack), "\npanic(")
	if !found {
		return ""
	}
	for line := range strings.SplitSeq(after, "\n") {
		file, _, _ := strings.Cut(strings.TrimSpace(line), " +0x")
		if strings.HasPrefix(line, "\t") && !strings.Contains(file, "/runtime/") {
			parts := strings.Split(file, "/")
			return ", at " + strings.Join(parts[max(0, len(parts)-2):], "/")
		}
	}
	return ""
}
