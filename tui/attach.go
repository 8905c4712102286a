package tui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// typedAhead is how many keys may wait for a console that takes none.
const typedAhead = 4096

// attachment is a person at a machine's console. Two goroutines belong to it: one
// drains what the console prints, which is shown from the recording like
// everything, one types the keys in their order. close ends both and waits.
type attachment struct {
	territory, machine string
	login              control.Login // the zero Login when nobody knows it
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

// consoles are the attachments and the chair of one heat, also those that nobody
// has been told of yet. After close there are none and will be none.
type consoles struct {
	mu     sync.Mutex
	closed bool
	open   map[closer]bool
}

// add keeps an attachment; false, and it is closed, when the heat has been left.
func (c *consoles) add(a closer) bool {
	c.mu.Lock()
	left := c.closed
	if !left {
		if c.open == nil {
			c.open = map[closer]bool{}
		}
		c.open[a] = true
	}
	c.mu.Unlock()
	if left {
		a.close()
	}
	return !left
}

func (c *consoles) drop(a closer) {
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
		a.login, _ = control.LoginAt(conn)
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
			return nil
		}}
	})
}

// bar is the footer while a console is attached: how to get out of it, and how to
// log in to it. The password is for these eyes only: no recording has it.
func (h *heat) bar(keys keymap.Map, c canvas.Canvas) {
	w, _ := c.Size()
	key, word := keys.Hint(keymap.Detach)
	x := c.Put(1, 0, key, canvas.Fg(canvas.Key).With(canvas.Bold))
	x = c.Put(x+1, 0, word, canvas.Fg(canvas.Dim)) + 2
	if l := h.attached.login; l.User != "" {
		x = c.Put(x, 0, "login ", canvas.Fg(canvas.Dim))
		x = c.Put(x, 0, text.Line(l.User), canvas.Fg(canvas.Title).With(canvas.Bold))
		x = c.Put(x, 0, "  password ", canvas.Fg(canvas.Dim))
		x = c.Put(x, 0, text.Line(l.Password), canvas.Fg(canvas.Title).With(canvas.Bold)) + 2
	}
	c.PutFit(x, 0, max(0, w-1-x), fitting(w-1-x, "every key goes there; what it shows is recorded", "keys go there; it is recorded", "recorded"), canvas.Fg(canvas.Dim))
}

// fitting is the first of some ways to say something that has room; else the last.
func fitting(room int, ways ...string) string {
	for _, s := range ways {
		if text.Width(s) <= room {
			return s
		}
	}
	return ways[len(ways)-1]
}

// drawAttached draws the console that is attached over the whole area; false when
// none is.
func (h *heat) drawAttached(c canvas.Canvas, area canvas.Rect) bool {
	if h.attached == nil {
		return false
	}
	seat := h.world.Seat(h.attached.territory)
	if seat == nil {
		return false
	}
	title := "console · " + seat.ID
	if len(h.machinesOf(seat.ID)) > 1 {
		title += " " + h.attached.machine
	}
	in := frameNoted(c, area, canvas.Heavy, title, consoleNote(seat), canvas.Fg(canvas.Focus))
	if in.W > 82 { // a console has 80 columns: those come first
		in.X, in.W = in.X+1, in.W-2
	}
	h.drawConsole(c.Sub(in), seat, h.reel(seat.ID, h.attached.machine), 0)
	return true
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
