package step

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"refbox/engine/analysis"
	"refbox/engine/transcript"
	"refbox/tui/keymap"
)

// hunt goes through a track's rows for the next one of a sort, a bounded number
// each frame. It waits where rows are not judged or not read yet.
type hunt struct {
	track *track
	what  string
	want  func(t *track, i int) (yes, known bool)
	dir   int
	at    int
}

const huntedAtOnce = 8_000

// advance looks on. done: it has found a row, or there is none.
func (h *hunt) advance() (row int, found, done bool) {
	t := h.track
	for range huntedAtOnce {
		i := h.at + h.dir
		if i < 0 {
			return 0, false, true
		}
		if i >= len(t.rows) {
			return 0, false, t.tr.Complete() && t.built >= t.tr.Len() && t.ended
		}
		yes, known := h.want(t, i)
		if !known {
			return 0, false, false
		}
		h.at = i
		if yes {
			return i, true, true
		}
	}
	return 0, false, false
}

// progress says how far a hunt that waits has come.
func (h *hunt) progress() string {
	n, total := h.track.reach()
	return fmt.Sprintf("looking for the next %s … %d %%", h.what, 100*n/max(1, total))
}

// reach is the number of steps that were judged, and that there are so far.
func (t *track) reach() (n, total int) {
	n, _ = t.passed()
	return n, t.tr.Len()
}

func ofSort(kind analysis.Kind) func(t *track, i int) (bool, bool) {
	return func(t *track, i int) (yes, known bool) {
		v := t.rows[i]
		if v < 0 {
			return false, true
		}
		got, _, ahead := t.verdict(int(v))
		if ahead && analysis.Acts(t.tr.Head(int(v))) {
			return false, false
		}
		return got == kind, true
	}
}

func ofHead(is func(h transcript.Head) bool) func(t *track, i int) (bool, bool) {
	return func(t *track, i int) (yes, known bool) {
		v := t.rows[i]
		return v >= 0 && is(t.tr.Head(int(v))), true
	}
}

// milestone is a mark between steps, or a marker that the record itself has, but
// for a try that failed: a referee tries again and again.
func milestone(t *track, i int) (yes, known bool) {
	v := t.rows[i]
	if v < 0 {
		return true, true
	}
	h := t.tr.Head(int(v))
	return h.Kind == transcript.Marker && h.Outcome != transcript.Failed, true
}

func failed(h transcript.Head) bool {
	return (h.Outcome == transcript.Failed || h.Outcome == transcript.TimedOut) && h.Kind != transcript.Marker
}

// quests are the sorts of steps that a key goes to.
var quests = map[keymap.Action]hunt{
	keymap.MutationNext:   {what: "mutation", want: ofSort(analysis.Mutation), dir: 1},
	keymap.MutationBack:   {what: "mutation", want: ofSort(analysis.Mutation), dir: -1},
	keymap.LifecycleNext:  {what: "lifecycle step", want: ofSort(analysis.Lifecycle), dir: 1},
	keymap.LifecycleBack:  {what: "lifecycle step", want: ofSort(analysis.Lifecycle), dir: -1},
	keymap.ValidationNext: {what: "validation", want: ofSort(analysis.Validation), dir: 1},
	keymap.ValidationBack: {what: "validation", want: ofSort(analysis.Validation), dir: -1},
	keymap.ErrorNext:      {what: "error", want: ofHead(failed), dir: 1},
	keymap.ErrorBack:      {what: "error", want: ofHead(failed), dir: -1},
	keymap.AnomalyNext:    {what: "anomaly", want: ofHead(func(h transcript.Head) bool { return h.Has(transcript.Anomalous) }), dir: 1},
	keymap.AnomalyBack:    {what: "anomaly", want: ofHead(func(h transcript.Head) bool { return h.Has(transcript.Anomalous) }), dir: -1},
	keymap.ActionNext:     {what: "action", want: ofHead(func(h transcript.Head) bool { return h.Kind == transcript.ToolCall }), dir: 1},
	keymap.ActionBack:     {what: "action", want: ofHead(func(h transcript.Head) bool { return h.Kind == transcript.ToolCall }), dir: -1},
	keymap.MarkNext:       {what: "milestone", want: milestone, dir: 1},
	keymap.MarkBack:       {what: "milestone", want: milestone, dir: -1},
}

// search reads steps beside the screen for words in them.
type search struct {
	track   *track
	words   string // in lower case
	dir     int
	seen    atomic.Int64
	stop    context.CancelFunc
	found   atomic.Int64 // the step; -1 for none
	done    atomic.Bool
	wrapped atomic.Bool // it went on from the other end
	private bool
}

// searchLimit is what is searched of each body.
const searchLimit = 16 << 20

// seek starts looking for words from a step on, round the whole record.
func (t *track) seek(words string, from, dir int, private bool) *search {
	ctx, stop := context.WithCancel(t.within)
	s := &search{track: t, words: words, dir: dir, stop: stop, private: private}
	s.found.Store(-1)
	lens, f := t.lens, t.filter.clone()
	listed := func(h transcript.Head) bool {
		kind, _, _ := t.verdict(h.Index)
		return (lens < 0 || h.Agent == lens) && (!t.acts || acted(h)) && f.takes(h, kind)
	}
	t.run(func() {
		defer t.ring()
		defer s.done.Store(true)
		defer stop()
		n := -1 // steps, once the end was seen
		if dir > 0 {
			if n = s.look(ctx, from, -1, listed); n >= 0 && s.found.Load() < 0 {
				s.wrapped.Store(true)
				s.look(ctx, 0, min(from, n), listed)
			}
			return
		}
		if s.look(ctx, from, -1, listed); s.found.Load() < 0 && t.tr.Complete() {
			s.wrapped.Store(true)
			s.look(ctx, t.tr.Len()-1, from, listed)
		}
	})
	return s
}

// look looks from a step on, to another (excluded; -1 for the end), and returns
// the number of steps when it came to their end.
func (s *search) look(ctx context.Context, from, to int, listed func(h transcript.Head) bool) (end int) {
	t := s.track
	for i := from; i >= 0 && i != to && ctx.Err() == nil; i += s.dir {
		moved := t.next()
		if n := t.tr.Len(); i >= n {
			if t.tr.Complete() {
				return n
			}
			select { // the rest is being read
			case <-ctx.Done():
			case <-moved:
			}
			i -= s.dir
			continue
		}
		s.seen.Add(1)
		if h := t.tr.Head(i); listed(h) && s.has(h) {
			s.found.Store(int64(i))
			return -1
		}
	}
	return -1
}

func (s *search) has(h transcript.Head) bool {
	if strings.Contains(strings.ToLower(h.Tool), s.words) {
		return true
	}
	full, err := s.track.tr.FullLimit(h.Index, searchLimit)
	if err != nil {
		return false
	}
	for _, p := range full.Parts {
		if p.Role == transcript.PartReasoning && !s.private {
			continue
		}
		raw := p.Text.Raw()
		if strings.IndexByte(raw, 0x1b) >= 0 {
			raw = p.Text.String()
		}
		if contains(raw, s.words) {
			return true
		}
	}
	return false
}

// contains is strings.Contains without regard to case, a piece at a time.
func contains(s, lower string) bool {
	const piece = 1 << 20
	for len(s) > piece {
		if strings.Contains(strings.ToLower(s[:piece]), lower) {
			return true
		}
		s = s[piece-min(piece/2, len(lower)):]
	}
	return strings.Contains(strings.ToLower(s), lower)
}

// progress says how far a search has come.
func (s *search) progress() string {
	return fmt.Sprintf("looking for %s … %d %%", s.words, min(99, 100*s.seen.Load()/max(1, int64(s.track.tr.Len()))))
}
