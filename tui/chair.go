package tui

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/tui/canvas"
	"refbox/tui/term"
)

// chair is a person's terminal at the seat that they play. Its picture is made of
// what comes from the machine itself and not of the recording, which holds back and
// leaves out what a person at work must see. Two goroutines belong to it, as to an
// attachment; close ends both and waits.
type chair struct {
	territory string
	conn      control.Terminal
	keys      chan []byte
	sizes     chan control.Size // takes one: the newest
	done      chan struct{}
	once      sync.Once
	read      chan struct{}
	typed     chan struct{}
	fresh     chan struct{} // takes one: there is something new; closed at the end
	over      atomic.Bool   // the session has ended

	mu     sync.Mutex
	screen *term.Term
}

func newChair(territory string, conn control.Terminal, size control.Size) *chair {
	c := &chair{territory: territory, conn: conn, keys: make(chan []byte, typedAhead), sizes: make(chan control.Size, 1),
		done: make(chan struct{}), read: make(chan struct{}), typed: make(chan struct{}), fresh: make(chan struct{}, 1),
		screen: term.New(size.Cols, size.Rows)}
	c.screen.OnReply(func(p []byte) { c.press(p) })
	beside(c.read, func() {
		defer close(c.fresh)
		defer c.over.Store(true)
		buf := make([]byte, 32<<10)
		for {
			n, err := conn.Read(buf)
			c.mu.Lock()
			c.screen.Write(buf[:n]) //nolint:errcheck // an emulator takes everything
			c.mu.Unlock()
			if err != nil {
				c.over.Store(true)
			}
			select {
			case c.fresh <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	})
	beside(c.typed, func() {
		for {
			var err error
			select {
			case p := <-c.keys:
				_, err = conn.Write(p)
			case s := <-c.sizes:
				err = conn.Resize(s)
			case <-c.done:
				return
			}
			if err != nil {
				return
			}
		}
	})
	return c
}

// press types what a key sends; false when the machine takes none.
func (c *chair) press(p []byte) bool {
	select {
	case c.keys <- append([]byte(nil), p...):
		return true
	default:
		return false
	}
}

// draw draws the screen, and makes it as large as its place.
func (c *chair) draw(at canvas.Canvas, cursor bool) {
	w, h := at.Size()
	c.mu.Lock()
	defer c.mu.Unlock()
	if sw, sh := c.screen.Size(); (sw != w || sh != h) && w > 0 && h > 0 {
		c.screen.Resize(w, h)
		select {
		case <-c.sizes: // one that nobody has been told of
		default:
		}
		c.sizes <- control.Size{Cols: w, Rows: h}
	}
	at.Clear()
	first := c.screen.Len() - h
	for y := range h {
		at.PutCells(0, y, c.screen.Line(first+y))
	}
	if x, y, shown := c.screen.Cursor(); cursor && shown && x < w && y < h {
		at.Restyle(canvas.Rect{X: x, Y: y, W: 1, H: 1}, canvas.Style{Bg: at.At(x, y).S.Bg, Attr: canvas.Reverse})
	}
}

func (c *chair) close() {
	c.once.Do(func() {
		close(c.done)
		c.conn.Close()
	})
	<-c.read
	<-c.typed
}

// leaveChair ends the person's session, and the wait for one.
func (h *heat) leaveChair() {
	if h.sitDown != nil {
		h.sitDown()
		h.sitDown = nil
	}
	if h.chair != nil {
		h.consoles.drop(h.chair)
		h.chair = nil
	}
}

// takeChair opens the person's terminal at a seat, unless there is one or it is
// being opened; one whose session has ended is replaced.
func (h *heat) takeChair(m *model, territory string, size control.Size) tea.Cmd {
	switch {
	case h.sitDown != nil, h.chair != nil && h.chair.territory == territory && !h.chair.over.Load():
		return nil
	case h.desk.Desk == nil || h.world.Over():
		return nil
	}
	h.leaveChair()
	h.sitTrouble, h.ahead = "", nil
	ctx, stop := context.WithCancel(h.ctx)
	h.sitDown = stop
	desk := h.desk
	return safe(func() tea.Msg {
		conn, err := desk.Sit(ctx, desk.Author, territory, "", size)
		if err != nil {
			stopped := ctx.Err() != nil
			return doneMsg{then: func(*model) tea.Cmd {
				if !stopped {
					stop()
					h.sitDown, h.sitTrouble = nil, fmt.Sprintf("no terminal at %s: %v", territory, err)
				}
				return nil
			}}
		}
		c := newChair(territory, conn, size)
		if !h.consoles.add(c) {
			stop()
			return nil
		}
		return doneMsg{then: func(m *model) tea.Cmd {
			stop()
			h.sitDown = nil
			if !m.shows(h) {
				return nil // it was ended with the heat's screen
			}
			h.chair = c
			if len(h.ahead) > 0 {
				c.press(h.ahead)
				h.ahead = nil
			}
			m.watched[c.fresh] = true
			return waitFeed(m.ctx, c.fresh)
		}}
	})
}
