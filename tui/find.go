package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/tui/plain"
)

// findChunk is how many events a search looks at between two looks at whether it
// is still wanted.
const findChunk = 2048

// find looks beside the screen for the next event (dir 1) or the previous one
// (-1) whose line has the words that were searched for, and goes there.
func (h *heat) find(m *model, dir int) tea.Cmd {
	if h.words == "" {
		m.say("nothing was searched for yet")
		return nil
	}
	h.stopFinding()
	ctx, stop := context.WithCancel(m.ctx)
	h.stopFind = stop
	rec, words, from := h.rec, h.words, h.index-1
	m.say("looking for " + words + " …")
	return safe(func() tea.Msg {
		i, line, err := lookFor(ctx, rec, words, from, dir)
		around := ""
		if i < 0 && err == nil && ctx.Err() == nil {
			// As in vim: from the other end, and that is said.
			start := -1
			around = "from the start: "
			if dir < 0 {
				start, around = rec.Len(), "from the end: "
			}
			i, line, err = lookFor(ctx, rec, words, start, dir)
		}
		if ctx.Err() != nil {
			return nil // moved on
		}
		return doneMsg{then: func(m *model) tea.Cmd {
			if ctx.Err() != nil {
				return nil // it was found, and then given up
			}
			stop()
			if err != nil {
				m.say(text.Line(err.Error()))
				return nil
			}
			if i < 0 {
				m.say("no event with " + words)
				return nil
			}
			now := m.cfg.Clock()
			h.play = h.play.Pause(now, h.head(now)).Pin(i+1, rec.MS(i))
			m.say(around + line)
			return nil
		}}
	})
}

func (h *heat) stopFinding() {
	if h.stopFind != nil {
		h.stopFind()
		h.stopFind = nil
	}
}

// events is what a search needs of a recording.
type events interface {
	Len() int
	Events(from, to int, yield func(i int, e event.Event) bool) error
}

// lookFor returns the nearest event after from, or before it, whose line has the
// words, in lower case; -1 when there is none.
func lookFor(ctx context.Context, rec events, words string, from, dir int) (at int, line string, err error) {
	at = -1
	look := func(i int, e event.Event) bool {
		l := plain.Line(e)
		if !strings.Contains(strings.ToLower(l), words) {
			return true
		}
		at, line = i, l
		return dir < 0 // backwards the last one of the chunk is the nearest
	}
	n := rec.Len()
	lo, hi := from+1, min(n, from+1+findChunk)
	if dir < 0 {
		lo, hi = max(0, from-findChunk), max(0, from)
	}
	for lo < hi && at < 0 && err == nil && ctx.Err() == nil {
		err = rec.Events(lo, hi, look)
		if dir < 0 {
			lo, hi = max(0, lo-findChunk), lo
		} else {
			lo, hi = hi, min(n, hi+findChunk)
		}
	}
	return at, line, err
}
