package tui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/tui/keymap"
)

// typedAhead is how many keys may wait for a console that takes none.
const typedAhead = 4096

// attachment is a person at a machine's console. Two goroutines belong to it: one
// drains what the console prints, which is shown from the recording like
// everything, one types the keys in their order. close ends both and waits.
type attachment struct {
	territory, machine string
	conn               io.ReadWriteCloser
	keys               chan []byte
	once               sync.Once
	read, typed        chan struct{} // closed when the goroutines have ended
}

func newAttachment(territory, machine string, conn io.ReadWriteCloser) *attachment {
	a := &attachment{
		territory: territory, machine: machine, conn: conn,
		keys: make(chan []byte, typedAhead), read: make(chan struct{}), typed: make(chan struct{}),
	}
	beside(a.read, func() {
		io.Copy(io.Discard, conn) //nolint:errcheck // the end of the console, however it comes, is the end of draining
	})
	beside(a.typed, func() {
		for b := range a.keys {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	})
	return a
}

// lastKeys bounds how long the keys that were typed before leaving may take.
const lastKeys = 100 * time.Millisecond

func (a *attachment) close() {
	a.once.Do(func() {
		close(a.keys)
		select {
		case <-a.typed:
		case <-time.After(lastKeys):
		}
		a.conn.Close()
	})
	<-a.read
	<-a.typed
}

// ended says that the console has gone away.
func (a *attachment) ended() bool {
	select {
	case <-a.read:
		return true
	case <-a.typed:
		return true
	default:
		return false
	}
}

// consoles are the attachments of one heat, also those that nobody has been
// told of yet. After close there are none and will be none.
type consoles struct {
	mu     sync.Mutex
	closed bool
	open   map[*attachment]bool
}

// add keeps an attachment; false, and it is closed, when the heat has been left.
func (c *consoles) add(a *attachment) bool {
	c.mu.Lock()
	left := c.closed
	if !left {
		if c.open == nil {
			c.open = map[*attachment]bool{}
		}
		c.open[a] = true
	}
	c.mu.Unlock()
	if left {
		a.close()
	}
	return !left
}

func (c *consoles) drop(a *attachment) {
	a.close()
	c.mu.Lock()
	delete(c.open, a)
	c.mu.Unlock()
}

func (c *consoles) close() {
	c.mu.Lock()
	c.closed = true
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for a := range open {
		a.close()
	}
}

func (h *heat) detach() {
	if h.attached != nil {
		h.consoles.drop(h.attached)
		h.attached = nil
	}
}

// attach joins the console of a seat's machine.
func (h *heat) attach(m *model, territory, machine string) tea.Cmd {
	switch {
	case h.desk.Desk == nil:
		m.say("this heat is not live here: there is no console to attach to")
		return nil
	case machine == "":
		m.say("no machine of " + territory + " is known yet")
		return nil
	}
	ctx, desk := m.ctx, h.desk
	return safe(func() tea.Msg {
		conn, err := desk.Attach(ctx, desk.Author, territory, machine)
		if err != nil {
			return doneMsg{err: fmt.Errorf("attach to %s: %w", territory, err)}
		}
		a := newAttachment(territory, machine, conn)
		if !h.consoles.add(a) {
			return nil
		}
		return doneMsg{then: func(m *model) tea.Cmd {
			if !m.shows(h) {
				h.consoles.drop(a)
				return nil
			}
			h.detach()
			h.attached = a
			h.play = h.play.Follow()
			key, _ := m.cfg.Keys.Hint(keymap.Detach)
			m.say("attached to " + territory + "'s console; " + key + " leaves")
			return nil
		}}
	})
}

// consoleKey handles keys while a console is attached: all of them go to the
// guest but the one that leaves.
func (h *heat) consoleKey(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	switch {
	case a == keymap.Detach:
		h.detach()
		m.say("left the console; what was typed is in the recording")
		return nil
	case h.attached.ended():
		h.detach()
		m.say("the console is gone")
		return nil
	}
	if b := keyBytes(raw); len(b) > 0 {
		select {
		case h.attached.keys <- b:
		default:
			m.say("the console takes no keys")
		}
	}
	return nil
}

// keyBytes are what a terminal sends for a key.
func keyBytes(k tea.KeyMsg) []byte {
	var b []byte
	if k.Alt {
		b = append(b, 0x1b)
	}
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		// What is pasted has line ends; a terminal sends the enter key.
		return append(b, strings.ReplaceAll(string(k.Runes), "\n", "\r")...)
	case tea.KeyUp:
		return append(b, "\x1b[A"...)
	case tea.KeyDown:
		return append(b, "\x1b[B"...)
	case tea.KeyRight:
		return append(b, "\x1b[C"...)
	case tea.KeyLeft:
		return append(b, "\x1b[D"...)
	case tea.KeyHome:
		return append(b, "\x1b[H"...)
	case tea.KeyEnd:
		return append(b, "\x1b[F"...)
	case tea.KeyDelete:
		return append(b, "\x1b[3~"...)
	case tea.KeyPgUp:
		return append(b, "\x1b[5~"...)
	case tea.KeyPgDown:
		return append(b, "\x1b[6~"...)
	case tea.KeyShiftTab:
		return append(b, "\x1b[Z"...)
	}
	// Bubble Tea numbers control keys as ASCII does.
	if k.Type >= 0 && k.Type <= 31 || k.Type == 127 {
		return append(b, byte(k.Type))
	}
	return nil
}
