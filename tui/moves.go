package tui

import (
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/tui/keymap"
)

// moveInTime handles the keys that move the playhead; moved is false for any
// other.
func (h *heat) moveInTime(m *model, a keymap.Action) (cmd tea.Cmd, moved bool) {
	h.stopFinding() // whoever moves on has given up on it
	now := m.cfg.Clock()
	head := h.head(now)
	switch a {
	case keymap.PlayPause:
		if head.Live && h.play.State(now, head) == playback.Following {
			// What is shown stays, though the clock may have run ahead of events
			// that are still to come.
			h.play = h.play.Pin(h.index, h.now)
			break
		}
		h.play = h.play.Toggle(now, head)
	case keymap.EventBack:
		h.step(now, -1)
	case keymap.EventNext:
		h.step(now, 1)
	case keymap.Back5:
		h.play = h.play.Skip(now, head, -5000)
	case keymap.Next5:
		h.play = h.play.Skip(now, head, 5000)
	case keymap.BackTenth:
		h.play = h.play.Skip(now, head, -int64(head.MS/10))
	case keymap.NextTenth:
		h.play = h.play.Skip(now, head, int64(head.MS/10))
	case keymap.MarkBack:
		h.step(now, -1, recording.ClassMilestone)
	case keymap.MarkNext:
		h.step(now, 1, recording.ClassMilestone)
	case keymap.ActionBack:
		if !h.stepTold(now, head, -1) {
			h.step(now, -1, recording.ClassAction)
		}
	case keymap.ActionNext:
		if !h.stepTold(now, head, 1) {
			h.step(now, 1, recording.ClassAction)
		}
	case keymap.Slower:
		h.play = h.play.Slower(now, head)
	case keymap.Faster:
		h.play = h.play.Faster(now, head)
	case keymap.Normal:
		h.play = h.play.Normal(now, head)
	case keymap.Idle:
		h.toggleIdle(now, head)
	case keymap.Start:
		h.play = h.play.Pause(now, head).Seek(now, head, 0)
	case keymap.End:
		h.play = h.play.Follow()
	case keymap.Command:
		m.ask(":", nil, h.goTo)
		m.prompt.hint = "a time: 12m30s, 45.5, 50%, start, end"
	case keymap.Find:
		m.ask("/", nil, func(m *model, words string) tea.Cmd {
			h.words = strings.ToLower(words)
			return h.find(m, 1)
		})
		m.prompt.hint = "words of an event; n and N go on from there"
	case keymap.FindNext:
		return h.find(m, 1), true
	case keymap.FindPrev:
		return h.find(m, -1), true
	default:
		return nil, false
	}
	return nil, true
}

// idleLimit is the longest that a stretch without events lasts when idle time
// is cut.
const idleLimit = 1500

func (h *heat) toggleIdle(now time.Time, head playback.Head) {
	if h.play.Compressed() {
		h.play = h.play.Compress(now, head, nil)
		return
	}
	h.play = h.play.Compress(now, head, playback.NewIdle(idleLimit, h.rec.Len(), h.rec.MS))
}

// step moves to the event before or after the playhead, of the given classes.
// Stepping is exact: the world shown is the fold up to and with that event.
func (h *heat) step(now time.Time, dir int, classes ...recording.Class) {
	head := h.head(now)
	i := h.index - 1 // the last event that is shown
	to := h.rec.Step(i, dir, classes...)
	if to < 0 {
		if dir < 0 {
			h.play = h.play.Pause(now, head).Seek(now, head, 0)
		}
		return
	}
	h.play = h.play.Pause(now, head).Pin(to+1, h.rec.MS(to))
}

// goTo runs what was typed after ":".
func (h *heat) goTo(m *model, value string) tea.Cmd {
	now := m.cfg.Clock()
	head := h.head(now)
	switch value {
	case "":
		return nil
	case "end":
		h.play = h.play.Follow()
		return nil
	case "start":
		value = "0"
	}
	ms, err := playback.Parse(value, head)
	if err != nil {
		m.say(err.Error())
		return nil
	}
	h.play = h.play.Seek(now, head, ms)
	return nil
}
