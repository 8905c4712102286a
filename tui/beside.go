package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
)

// What takes longer than a frame is read beside the screen: the full check of a
// recording, and what transcripts tell.

// starter is a screen that has something read when it is first shown.
type starter interface{ start() tea.Cmd }

// reportKey is what a report of reading depends on.
type reportKey struct {
	events         int
	complete, live bool
	restarts       int
}

// lookAtIntegrity brings the report up to date with what has been read, at most
// once a second while much is read.
func (h *heat) lookAtIntegrity(now time.Time) {
	key := reportKey{h.rec.Len(), h.rec.Complete(), h.rec.Live(), h.rec.Restarts()}
	if key == h.reportOf {
		return
	}
	same := key.complete == h.reportOf.complete && key.live == h.reportOf.live && key.restarts == h.reportOf.restarts
	if same && !h.reportAt.IsZero() && now.Sub(h.reportAt) < time.Second {
		return
	}
	h.report, h.reportOf, h.reportAt = h.rec.Integrity(), key, now
}

// start checks the recording where that is quick, and reads the transcripts.
func (h *heat) start() tea.Cmd {
	if h.rec.Live() {
		return nil
	}
	ctx, rec := h.ctx, h.rec
	return safe(func() tea.Msg {
		report := rec.Check(ctx)
		told, err := rec.Activities(ctx)
		reported, spells := reportedPicture(rec), readSpells(ctx, rec)
		if ctx.Err() != nil {
			return nil
		}
		return doneMsg{err: err, then: func(*model) tea.Cmd {
			h.checked(report)
			h.told, h.reported, h.spells = told, reported, spells
			return nil
		}}
	})
}

// checked takes over a report that says more than reading does.
func (h *heat) checked(report recording.Report) {
	key := reportKey{h.rec.Len(), h.rec.Complete(), h.rec.Live(), h.rec.Restarts()}
	if report.Verified && key.complete && report.Events == key.events {
		h.report, h.reportOf = report, key
	}
}

// verify checks all that the recording can prove.
func (h *heat) verify() tea.Cmd {
	if h.verifying || h.report.Verified {
		return nil
	}
	h.verifying = true
	ctx, rec := h.ctx, h.rec
	return safe(func() tea.Msg {
		report, err := rec.Verify(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return doneMsg{err: err, then: func(*model) tea.Cmd {
			h.verifying = false
			if err == nil {
				h.checked(report)
			}
			return nil
		}}
	})
}

// readNow does what start does, at once.
func (h *heat) readNow(ctx context.Context) {
	h.checked(h.rec.Check(ctx))
	h.reported, h.spells = reportedPicture(h.rec), readSpells(ctx, h.rec)
	h.told, _ = h.rec.Activities(ctx) //nolint:errcheck // without it there are no actions to show
}
