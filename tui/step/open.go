package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/analysis"
	"refbox/engine/bounded"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/engine/world"
	"refbox/tui/view"
)

// Open opens a record to step through; at is the step to begin with, -1 for the
// first. Beside, when it is not "", is shown beside it on one clock.
func Open(path, beside string, at int) (*Screen, error) {
	s := newScreen()
	for _, p := range []string{path, beside} {
		if p == "" {
			continue
		}
		tr, err := transcript.Open(p)
		if err != nil {
			s.Close()
			return nil, err
		}
		t := newTrack(newRecord(s.ctx, tr, referenceBeside(p), onDisk(p), s.wake), nameOf(p))
		t.owned = true
		s.sides = append(s.sides, &side{stack: []*track{t}})
	}
	first := s.sides[0].top()
	if at >= 0 {
		if n := first.tr.Len(); at >= n && first.tr.Complete() {
			s.Close()
			return nil, fmt.Errorf("%s has no step %d: %s, from 0", text.Line(path), at, view.Plural(n, "step"))
		}
		first.goTo(at)
	}
	if len(s.sides) > 1 {
		s.clock = oneClock(first, s.sides[1].top())
	}
	return s, nil
}

func nameOf(path string) string { return text.Line(filepath.Base(path)) }

// oneClock puts two records on one clock, and says how; "" when one has none.
func oneClock(a, b *track) string {
	ca, za := a.tr.Clock()
	cb, zb := b.tr.Clock()
	switch {
	case ca == transcript.NoClock || cb == transcript.NoClock:
		return ""
	case !za.IsZero() && !zb.IsZero() && zb.Sub(za).Abs() < 24*time.Hour:
		if d := zb.Sub(za).Milliseconds(); d >= 0 {
			b.zero = d
		} else {
			a.zero = -d
		}
		return "one clock: the time of day"
	}
	return "one clock: each from its own start"
}

// maxAnalysis bounds what is read of an analysis beside a transcript.
const maxAnalysis = 64 << 20

// referenceBeside reads the analysis that lies beside a transcript of the
// reference system.
func referenceBeside(path string) references {
	dir, base := filepath.Split(path)
	for _, end := range []string{"transcript.live.json", "transcript.json"} {
		if who, ok := strings.CutSuffix(base, end); ok {
			data, err := bounded.File(filepath.Join(dir, who+"analysis.json"), maxAnalysis)
			if err == nil {
				return referencesOf(data)
			}
		}
	}
	return references{}
}

// referencesOf are the kinds that an analysis.json of somebody else gives.
func referencesOf(data []byte) references {
	ref, err := analysis.ReadReference(data)
	if err != nil {
		return references{}
	}
	out := references{kinds: map[int]analysis.Kind{}, who: "the reference"}
	for _, a := range ref.Actions {
		if a.ReferenceKind != "" {
			out.kinds[a.Index] = a.ReferenceKind
		}
	}
	return out
}

// OpenSeat opens what a seat of a heat did: its transcript, or what was observed
// of it where it has none.
func OpenSeat(seat view.Seat) (view.Screen, error) {
	s := newScreen()
	s.seat = &seat
	t, err := s.openSeat(seat.Territory)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.sides = []*side{{stack: []*track{t}}}
	t.build()
	if now := int64(seat.Now()); t.placed && now > 0 {
		t.choose(t.at(now))
	}
	return &seatScreen{s}, nil
}

// seatScreen is a Screen that is told of the heat when it is first shown.
type seatScreen struct{ *Screen }

// Start implements view.Screen.
func (s *seatScreen) Start(h view.Host) tea.Cmd { return s.place(h, s.track()) }

// place looks beside the screen where a transcript lies on the heat's clock.
func (s *Screen) place(h view.Host, t *track) tea.Cmd {
	if t.placed || s.seat == nil {
		return nil
	}
	rec, began := s.seat.Recording, t.value()
	return h.Beside(func(ctx context.Context) (func(view.Host) tea.Cmd, error) {
		told, err := rec.Activities(ctx)
		return func(h view.Host) tea.Cmd {
			if a := told[t.territory]; a != nil && s.ctx.Err() == nil {
				t.settle(a)
				if now := int64(s.seat.Now()); t.placed && now > 0 && t.value() == began && len(s.sides) == 1 {
					t.build()
					t.choose(t.at(now))
				}
				s.clock = s.heatClock()
			}
			return nil
		}, err
	})
}

// settle takes over what the recording knows of a transcript's clock.
func (t *track) settle(a *recording.Activity) {
	switch {
	case a.Trouble != "":
		t.note = a.Trouble
		return
	case a.Placed:
		t.placed = true
		t.zero, t.slack = int64(a.OffsetMS), int64(a.PlusMinusMS)
		t.note = fmt.Sprintf("the heat's clock ±%.1f s", float64(t.slack)/1000)
	default:
		t.note = "its own clock, taken for the heat's"
	}
	if a.Unproved {
		t.note += "; nothing shows that it is of this heat"
	}
	t.rebuild(t.value()) // milestones go where they belong now
}

// heatClock says what two seats have in common; "" when one has no clock.
func (s *Screen) heatClock() string {
	if len(s.sides) < 2 {
		return ""
	}
	for _, d := range s.sides {
		if !d.top().timed() {
			return ""
		}
	}
	return "the heat's clock"
}

// openSeat makes the track of a territory of the heat.
func (s *Screen) openSeat(territory string) (*track, error) {
	rec := s.seat.Recording
	var grew grows
	if rec.Live() {
		grew = func(ctx context.Context, run func(func())) <-chan struct{} {
			ch := rec.Follow(ctx)
			run(func() {
				<-ctx.Done()
				for range ch { // the follower has ended when it is closed
				}
			})
			return ch
		}
	}
	marks, sessions := marksOf(rec, territory)
	var failed error
	for _, name := range []string{"transcript.json", "transcript.live.json"} {
		b, _, err := rec.OpenArtifact(territory, name)
		if err != nil {
			continue
		}
		tr, err := transcript.OpenBlob(name, b)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if tr.Len() == 0 && name == "transcript.json" {
			tr.Close() //nolint:errcheck // it was only read
			continue
		}
		refs := references{}
		if data, _, err := rec.Artifact(territory, "analysis.json"); err == nil {
			refs = referencesOf(data)
		}
		t := newTrack(newRecord(s.ctx, tr, refs, grew, s.wake), "transcript "+text.Line(territory))
		t.owned, t.territory = true, territory
		t.placeByDay(rec)
		t.setMarks(marks)
		return t, nil
	}
	seat := rec.World(rec.Len()).Seat(territory)
	if seat == nil || seat.Actions.Len() == 0 && !rec.Live() {
		return nil, errors.Join(failed, fmt.Errorf("%s has no transcript, and no action of it was observed", text.Line(territory)))
	}
	tr, err := openLog(rec)
	if err != nil {
		return nil, err
	}
	t := newTrack(newRecord(s.ctx, tr, references{}, grew, s.wake), "observed "+text.Line(territory))
	t.owned, t.territory, t.lane, t.acts = true, territory, territory, true
	t.setMarks(marks)
	t.placed, t.note = true, "observed, on the heat's clock"
	t.cast = func(h transcript.Head) string {
		if h.Kind != transcript.ToolCall {
			return ""
		}
		return t.sessions[h.Pos+1]
	}
	t.sessions = sessions
	return t, nil
}

// heatNews takes over what a live heat has of a seat since: milestones, sessions.
func (t *track) heatNews(rec *recording.Recording) {
	n := rec.Len()
	if t.territory == "" || n == t.heatFor || !rec.Live() && t.heatFor > 0 {
		return
	}
	t.heatFor = n
	marks, sessions := marksOf(rec, t.territory)
	t.sessions = sessions
	if !slices.Equal(marks, t.marks) {
		t.setMarks(marks)
	}
}

// placeByDay places a transcript with times of day on a heat whose start is known.
func (t *track) placeByDay(rec *recording.Recording) {
	_, zero := t.tr.Clock()
	if at, exact := rec.Started(); exact && !zero.IsZero() && zero.Sub(at).Abs() < 24*time.Hour {
		t.placed, t.zero, t.note = true, zero.Sub(at).Milliseconds(), "the heat's clock, by the time of day"
	}
}

// openLog opens a heat's own log as a record of what was observed.
func openLog(rec *recording.Recording) (*transcript.Transcript, error) {
	if tree := rec.Tree(); tree != nil {
		return transcript.OpenFS(tree, "events.jsonl")
	}
	return transcript.Open(rec.Path())
}

// marksOf are the milestones of a seat, and the recorded sessions of its actions
// by their number.
func marksOf(rec *recording.Recording, territory string) (marks []mark, sessions map[int]string) {
	w := rec.World(rec.Len())
	seat := w.Seat(territory)
	if seat == nil {
		return nil, nil
	}
	sessions = map[int]string{}
	for _, a := range seat.Actions.All() {
		if a.Session != "" && fs.ValidPath(a.Session) {
			sessions[int(a.Number)] = a.Session
		}
	}
	marks = milestones(seat)
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.ms, b.ms) })
	return marks, sessions
}

func milestones(seat *world.Seat) []mark {
	var out []mark
	for _, m := range seat.Milestones {
		if m.Passed {
			out = append(out, mark{ms: int64(m.PassedMS), shape: '●', text: fmt.Sprintf("milestone %s passed, %s", text.Line(m.ID), text.Count(m.Points, "point"))})
		}
	}
	for _, r := range seat.Revocations.All() {
		out = append(out, mark{ms: int64(r.MS), shape: '↶', bad: true, text: "milestone " + text.Line(r.Milestone) + " revoked: " + text.Line(r.Reason)})
	}
	if seat.DurableAtMS != nil {
		out = append(out, mark{ms: int64(*seat.DurableAtMS), shape: '★', text: "durable"})
	}
	return out
}

// besideSeat makes seat n of the heat lead, or brings it beside the one that is
// shown.
func (s *Screen) besideSeat(h view.Host, n int) tea.Cmd {
	seats := s.seat.Recording.World(s.seat.Recording.Len()).Seats()
	if n < 0 || n >= len(seats) {
		return nil
	}
	territory := seats[n].ID
	for i, d := range s.sides {
		if d.stack[0].territory == territory {
			s.lead = i
			return nil
		}
	}
	return h.Beside(hold(s.track(), func() (*track, error) { return s.openSeat(territory) }, func(h view.Host, t *track) tea.Cmd {
		t.build()
		if len(s.sides) > 1 { // in place of the one that follows
			old := s.sides[1-s.lead]
			for i := len(old.stack) - 1; i >= 0; i-- {
				if old.stack[i].owned {
					old.stack[i].close() //nolint:errcheck // it was only read
				}
			}
			s.sides[1-s.lead] = &side{stack: []*track{t}}
		} else {
			s.sides = append(s.sides, &side{stack: []*track{t}})
		}
		s.alone = false
		s.clock = s.heatClock()
		s.follow()
		return s.place(h, t)
	}))
}
