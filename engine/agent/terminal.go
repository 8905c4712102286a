package agent

import (
	"io"
	"strconv"
	"sync"

	"refbox/engine/text"
)

// ChannelTerminal is the channel of a player's own terminal, on the host: what it
// shows is the player's word.
const ChannelTerminal = "terminal"

// terminalBytes bounds what is kept of a player's terminal.
const terminalBytes = 16 << 20

// Terminal records what a player shows on a terminal of its own.
type Terminal interface {
	io.Writer // never fails
	// Close ends it; exit is the status of what ran in it, nil when it has none.
	Close(exit *int, detail string)
}

// Terminal opens the record of a player's terminal: an action of the seat, with
// a session's cast. Command is what runs in it, without secrets. What is
// written after terminalBytes is counted, not kept.
func (g *Gateway) Terminal(command string, cols, rows int) Terminal {
	n := g.nextSession()
	t := &terminal{act: g.begin(ChannelTerminal, "", command, n), left: terminalBytes}
	t.cast = g.cfg.Observer.SessionStarted(Session{Number: n, Command: command, Term: "xterm-256color", Width: cols, Height: rows})
	return t
}

type terminal struct {
	mu      sync.Mutex
	act     *action
	cast    Cast // nil: none
	out     excerpt
	carry   []byte // a torn rune
	left    int
	dropped uint64
	eye     text.Detector
	hostile string
	closed  bool
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return len(p), nil
	}
	t.out.add(p)
	if t.hostile == "" {
		t.hostile = t.eye.Scan(p)
	}
	if t.cast == nil {
		return len(p), nil
	}
	if t.left < len(p) {
		t.dropped += uint64(len(p))
		t.left = 0
		return len(p), nil
	}
	t.left -= len(p)
	if data := wholeRunes(&t.carry, p); len(data) > 0 {
		t.cast.Event(CastOutput, data)
	}
	return len(p), nil
}

func (t *terminal) Close(exit *int, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.cast != nil {
		if len(t.carry) > 0 {
			t.cast.Event(CastOutput, t.carry)
		}
		if t.dropped > 0 {
			t.cast.Event(CastMarker, []byte(strconv.FormatUint(t.dropped, 10)+" bytes of output are left out"))
		}
		if exit != nil {
			t.cast.Event(CastExit, strconv.AppendInt(nil, int64(*exit), 10))
		}
		if err := t.cast.Close(); err != nil {
			t.act.note("the terminal's recording is incomplete: " + err.Error())
		}
	}
	t.act.hostile = t.hostile
	t.act.finish(exit, t.out.String(), t.out.total, detail)
}
