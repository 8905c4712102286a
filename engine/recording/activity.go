package recording

import (
	"context"
	"sort"

	"refbox/engine/text"
	"refbox/engine/world"
)

// Activity is what a seat's transcript tells that its agent did: self-reported, and
// on a clock that begins when the harness does, somewhere after the heat's.
type Activity struct {
	Territory string
	Agent     string
	File      string
	// Trouble says why there are no calls; "" when there may be.
	Trouble string
	// Damage says where the transcript is damaged, of one whose calls are not all
	// there; "" for a whole one.
	Damage string
	// Unproved: nothing shows that the transcript is of this heat.
	Unproved bool
	// Placed: calls are on the heat's clock, give or take PlusMinusMS. Else their
	// own clock is taken for the heat's.
	Placed      bool
	OffsetMS    uint64 // the heat's clock when the transcript's is 0, as estimated
	PlusMinusMS uint64
	// Calls by their start. Channel is ChannelTold, Exit 0 or 1 as the harness says
	// of its success.
	Calls []world.Action

	path string // File as it is
}

// ChannelTold is the channel of an action that only a transcript tells of.
const ChannelTold = "told"

// At is the number of calls that had begun at a clock.
func (a *Activity) At(ms uint64) int {
	return sort.Search(len(a.Calls), func(i int) bool { return a.Calls[i].StartMS > ms })
}

// Activities reads what the transcripts of a reference recording tell, by
// territory; nil for one of ours, whose actions were seen on the wire and are
// events. A transcript of another match is named and not told.
func (r *Recording) Activities(ctx context.Context) (map[string]*Activity, error) {
	if r.Match().Ours() {
		return nil, nil
	}
	x, err := r.listen(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]*Activity{}
	for i := range x.files {
		t := &x.files[i]
		if t.odd {
			continue
		}
		var ended *uint64
		if ms, ok := x.ended[t.agent]; ok {
			ended = &ms
		}
		a := t.activity(x.charged[t.agent], ended)
		// The final file comes first; a live copy stands in for one that tells nothing.
		if had := out[t.territory]; had == nil || had.Trouble != "" && a.Trouble == "" {
			out[t.territory] = a
		}
	}
	return out, nil
}

// OpenTold opens the transcript that an activity was read from, and returns its
// file.
func (r *Recording) OpenTold(a *Activity) (b Blob, file string, err error) {
	b, err = r.source().open(a.path)
	return b, a.path, err
}

// activity places a transcript's calls on the heat's clock.
func (t *told) activity(charged []checkpoint, ended *uint64) *Activity {
	a := &Activity{Territory: t.territory, Agent: t.agent, File: text.Line(t.file), Unproved: t.verdict == unverified, path: t.file}
	switch {
	case t.verdict == foreign:
		a.Trouble = "the transcript is of another match: it is not shown"
		return a
	case t.torn != nil && len(t.calls) == 0:
		a.Trouble = "the transcript " + t.damage()
		return a
	case t.torn != nil:
		a.Damage = "the transcript " + t.damage()
	}
	a.OffsetMS, a.PlusMinusMS, a.Placed = t.place(charged, ended)
	for _, c := range t.calls {
		exit, start := 0, c.startMS+a.OffsetMS
		if c.failed {
			exit = 1
		}
		a.Calls = append(a.Calls, world.Action{
			Agent: t.agent, Channel: ChannelTold, Command: c.command, SelfReported: true, StartMS: start, Start: -1,
			Done: true, EndMS: start + c.tookMS, End: -1, Exit: &exit, TookMS: c.tookMS,
			Bytes: c.bytes, Output: c.output,
		})
	}
	sort.SliceStable(a.Calls, func(i, j int) bool { return a.Calls[i].StartMS < a.Calls[j].StartMS })
	for i := range a.Calls {
		a.Calls[i].Number = uint64(i + 1)
	}
	return a
}

// place estimates when on the heat's clock the transcript's begins. A round had
// ended before the log charged what it used, and a harness before the referee
// heard of its end: each is an upper bound. It began at the heat's start or later.
// The estimate is the middle, its uncertainty half the way. What the drain charges
// carries a clock that stands, and bounds nothing.
func (t *told) place(charged []checkpoint, ended *uint64) (offset, plusMinus uint64, ok bool) {
	latest, ok := uint64(0), false
	bound := func(ms, own uint64) {
		// A bound below zero says that the clocks run apart: it is the start then.
		if by := ms - min(ms, own); !ok || by < latest {
			latest, ok = by, true
		}
	}
	for _, m := range t.meets(charged) {
		if m.fresh {
			bound(m.ms, m.endMS)
		}
	}
	if ended != nil && ok && t.lastsMS > 0 {
		bound(*ended, t.lastsMS)
	}
	return latest / 2, (latest + 1) / 2, ok
}
