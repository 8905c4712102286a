package tui

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// childEnv makes the test binary the program that the terminal tests run: it
// holds the recording to show, and with childPanic where to panic at the key P.
const (
	childEnv   = "REFBOX_TUI_TEST_CHILD"
	childPanic = "REFBOX_TUI_TEST_PANIC"
	childPID   = "REFBOX_TUI_TEST_PID"
)

func childMain() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if name := os.Getenv(childPID); name != "" {
		if err := os.WriteFile(name, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
	}
	rec, err := recording.Open(os.Getenv(childEnv))
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	cfg := Config{Keys: keymap.Default(), Output: canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}}
	first := screen(&overview{heat: openHeat(ctx, rec, Desk{}, time.Now())})
	if where := os.Getenv(childPanic); where != "" {
		first = &bomb{overview: first.(*overview), where: where}
	}
	choice, err := run(ctx, cfg, first, os.Stdin, os.Stdout)
	if err != nil {
		fmt.Printf("error: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("left, choice %+v\n", choice)
}

// bomb is an overview that panics where it is told to.
type bomb struct {
	*overview
	where string
	armed bool
}

func (b *bomb) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if raw.String() != "P" {
		return b.overview.key(m, a, raw)
	}
	switch b.where {
	case "update":
		panic("a fault in Update \x1b[31m" + strings.Repeat("x", 3))
	case "command":
		return safe(func() tea.Msg { panic("a fault in a command") })
	}
	b.armed = true
	return nil
}

func (b *bomb) draw(c canvas.Canvas) {
	if b.armed {
		panic("a fault in View")
	}
	b.overview.draw(c)
}
