package tui

import (
	"cmp"
	"fmt"
	"slices"

	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// remark is where the heat branched from, or what a person said into the heat's log: an operator's note, or a
// referee's ruling on one seat ("" for all).
type remark struct {
	ms        uint64
	index     int
	territory string
	ruling    bool
	text      string
}

const (
	noteSign   = '✎'
	rulingSign = '§'
)

func (r remark) sign() (rune, canvas.Style) {
	if r.ruling {
		return rulingSign, canvas.Fg(canvas.Warn).With(canvas.Bold)
	}
	return noteSign, canvas.Fg(canvas.Accent).With(canvas.Bold)
}

// remarks are all up to the playhead, in their order.
func (h *heat) remarks() []remark {
	var out []remark
	if from := h.world.BranchedFrom(); from != "" {
		out = append(out, remark{index: -1, text: from})
	}
	for _, n := range h.world.Notes.All() {
		out = append(out, remark{ms: n.MS, index: n.Index, text: n.Author + " notes: " + n.Text})
	}
	for _, r := range h.world.Rulings.All() {
		out = append(out, remark{ms: r.MS, index: r.Index, territory: r.Territory, ruling: true, text: fmt.Sprintf("%s ruled %s: %s", r.Author, rulingWords(r), r.Reason)})
	}
	for _, p := range h.world.Pauses.All() {
		out = append(out, remark{ms: p.SinceMS, index: p.Index, ruling: true, text: p.Author + " paused the heat: " + p.Reason})
		if r := p.Resumed; r != nil {
			out = append(out, remark{ms: p.SinceMS, index: r.Index, ruling: true, text: fmt.Sprintf("%s resumed it after %.1f s: %s", r.Author, float64(r.TookMS)/1000, r.Reason)})
		}
	}
	slices.SortFunc(out, func(a, b remark) int { return cmp.Compare(a.index, b.index) })
	return out
}

// drawRemark writes the newest remark on one row, and how many there are.
func (h *heat) drawRemark(c canvas.Canvas, all []remark) {
	w, _ := c.Size()
	r := all[len(all)-1]
	sign, st := r.sign()
	right := w - 1
	if len(all) > 1 {
		right = c.PutRight(w-1, 0, w/4, text.Count(len(all), "remark"), canvas.Fg(canvas.Dim)) - 2
	}
	c.Set(0, 0, sign, st)
	x := c.Put(2, 0, view.Clock(r.ms), canvas.Fg(canvas.Dim)) + 1
	c.PutFit(x, 0, max(0, right-x), r.text, canvas.Fg(canvas.Text))
}
