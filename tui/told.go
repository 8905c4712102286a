package tui

import (
	"fmt"
	"sort"
	"time"

	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/world"
)

// deeds are a seat's actions as of the playhead: those seen on the wire, or where
// there are none those that its transcript tells of.
type deeds struct {
	seen *world.List[world.Action]
	told []world.Action
	now  uint64
}

func (h *heat) deeds(seat *world.Seat) deeds {
	d := deeds{seen: &seat.Actions, now: h.now}
	if t := h.told[seat.ID]; t != nil && seat.Actions.Len() == 0 {
		d.told = t.Calls[:t.At(h.now)]
	}
	return d
}

func (d deeds) Len() int {
	if d.told != nil {
		return len(d.told)
	}
	return d.seen.Len()
}

func (d deeds) At(i int) world.Action {
	if d.told == nil {
		return d.seen.At(i)
	}
	a := d.told[i]
	if a.EndMS > d.now { // it has begun, and the rest is still to come
		a.Done, a.Exit, a.Output, a.Bytes, a.TookMS = false, nil, "", 0, d.now-a.StartMS
	}
	return a
}

// actionsTitle says where a seat's actions come from, and how far off their clock
// may be.
func (h *heat) actionsTitle(seat *world.Seat) string {
	t := h.told[seat.ID]
	if t == nil || seat.Actions.Len() > 0 || t.Trouble != "" {
		return "actions"
	}
	how := "self-reported"
	if t.Damage != "" {
		how += ", damaged"
	}
	if t.Placed {
		return fmt.Sprintf("actions ±%.1f s, %s", float64(t.PlusMinusMS)/1000, how)
	}
	return "actions by their own clock, " + how
}

// noActions is what the actions' pane says when it has none.
func (h *heat) noActions(seat *world.Seat) string {
	if t := h.told[seat.ID]; t != nil && t.Trouble != "" {
		return t.Trouble
	}
	if len(h.told) > 0 && h.told[seat.ID] == nil {
		return "no transcript was kept"
	}
	if h.foreign {
		return "no action was recorded"
	}
	return "no action yet"
}

// tells says that transcripts take the place of actions.
func (h *heat) tells() bool { return len(h.told) > 0 }

// stepTold goes to the next call of the chosen seat's transcript, or back; false
// when the seat's actions are events.
func (h *heat) stepTold(now time.Time, head playback.Head, dir int) bool {
	seat := h.chosen()
	if seat == nil || seat.Actions.Len() > 0 {
		return false
	}
	t := h.told[seat.ID]
	if t == nil || len(t.Calls) == 0 {
		return false
	}
	i := t.At(h.now) // the first that is still to come
	if dir < 0 {
		i = sort.Search(len(t.Calls), func(i int) bool { return t.Calls[i].StartMS >= h.now }) - 1
	}
	if i < 0 || i >= len(t.Calls) || t.Calls[i].StartMS > head.MS {
		return true
	}
	h.play = h.play.Pause(now, head).Seek(now, head, t.Calls[i].StartMS)
	return true
}

// toldFailed says that a told call failed; how is not told.
func toldFailed(a world.Action) bool {
	return a.Channel == recording.ChannelTold && a.Exit != nil && *a.Exit != 0
}
