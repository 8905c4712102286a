package export

import (
	"fmt"

	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/world"
)

// The time line is drawn in units of its own: the page scales it.
const (
	lineLeft  = 150 // room for names
	lineRight = 940
	lineWidth = 1000
	laneTop   = 14
	laneStep  = 30
	maxMarks  = 400 // of one lane

	servedBelow = 11
)

// timeline is the picture of the heat: a lane per seat on one clock. Marks differ
// by shape, not by colour alone.
type timeline struct {
	Width, Height int
	Left, Right   int
	Base          int // of the axis
	Lanes         []lane
	Ticks         []tick
	Finish        *mark
	About         string
}

type lane struct {
	Name, Points string
	Y, TextY     int
	Until        int // where the heat stopped
	Runs         []run
	Served       []stretch // in which the canary's writes were acknowledged
	Faults       []stretch // in which a fault was on the seat
	Marks        []mark
}

// run is a stretch of equal failures.
type run struct {
	X1, X2 int
	Title  string
}

// stretch is a line of its own below a lane.
type stretch struct {
	X1, X2, Y int
	Title     string
}

type mark struct {
	Kind  string // passed, durable, revoked, attack, broken, lost, finish
	X, Y  int
	Title string
	Shape string // points of a polygon, for kinds that are one
}

type tick struct {
	X, Y1, Y2 int
	Label     string
}

func newTimeline(w *world.World, standings []world.Standing) timeline {
	end := max(w.ElapsedMS, 1)
	t := timeline{Width: lineWidth, Left: lineLeft, Right: lineRight}
	x := func(ms uint64) int { return lineLeft + int(float64(min(ms, end))/float64(end)*(lineRight-lineLeft)) }
	for i, st := range standings[:min(len(standings), maxSeatsShown)] {
		s := w.Seat(st.Territory)
		l := lane{Name: cell(s.ID), Points: fmt.Sprint(s.Points), Y: laneTop + i*laneStep, Until: x(end)}
		l.TextY = l.Y + 4
		if len([]rune(l.Name)) > 20 {
			l.Name = string([]rune(l.Name)[:19]) + "…"
		}
		l.fill(s, x, end)
		t.Lanes = append(t.Lanes, l)
	}
	t.Base = laneTop + len(t.Lanes)*laneStep
	t.Height = t.Base + 28
	step := tickStep(end)
	for ms := uint64(0); ms <= end && len(t.Ticks) < 20; ms += step {
		t.Ticks = append(t.Ticks, tick{x(ms), t.Base, t.Base + 5, playback.Format(ms)})
	}
	if w.FinishedMS != nil {
		t.Finish = &mark{Kind: "finish", X: x(*w.FinishedMS), Title: "the heat ended at " + playback.Exact(*w.FinishedMS)}
	}
	t.About = fmt.Sprintf("Time line of %s over %s", text.Count(len(t.Lanes), "seat"), playback.Format(w.ElapsedMS))
	return t
}

func (l *lane) fill(s *world.Seat, x func(uint64) int, end uint64) {
	add := func(kind string, ms uint64, format string, args ...any) {
		if len(l.Marks) >= maxMarks {
			return
		}
		m := mark{Kind: kind, X: x(ms), Y: l.Y, Title: cell(playback.Exact(ms) + " " + fmt.Sprintf(format, args...))}
		m.Shape = shape(kind, m.X, m.Y)
		l.Marks = append(l.Marks, m)
	}
	for _, f := range s.Spans.All() {
		until := f.EndMS
		if f.Open {
			until = end
		}
		if from, to := x(f.SinceMS), x(until); to > from && len(l.Runs) < maxMarks {
			l.Runs = append(l.Runs, run{from, to, cell(fmt.Sprintf("%s %s ×%d: %s", playback.Exact(f.SinceMS), f.Milestone, f.Count, f.Detail))})
		}
	}
	for _, c := range s.CanarySpans.All() {
		if c.Outcome == "acknowledged" && len(l.Served) < maxMarks {
			from := x(c.FromMS)
			l.Served = append(l.Served, stretch{from, max(x(c.UptoMS), from+1), l.Y + servedBelow,
				cell(fmt.Sprintf("%d writes acknowledged from %s to %s", c.Writes, playback.Exact(c.FromMS), playback.Exact(c.UptoMS)))})
		}
	}
	for _, f := range s.Faults.All() {
		until := end
		if f.EndedMS != nil {
			until = *f.EndedMS
		}
		if len(l.Faults) < maxMarks {
			from := x(f.InjectedMS)
			l.Faults = append(l.Faults, stretch{from, max(x(until), from+3), l.Y, cell(playback.Exact(f.InjectedMS) + " " + f.Words())})
		}
	}
	for _, a := range s.Attacks.All() {
		switch {
		case !a.Done:
		case a.Held:
			add("attack", a.EndMS, "%s withstood: %s", a.Milestone, a.Attack)
		default:
			add("broken", a.EndMS, "%s did not withstand: %s", a.Milestone, a.Attack)
		}
	}
	for i := range s.Milestones {
		if m := &s.Milestones[i]; m.Passed {
			add("passed", m.PassedMS, "%s passed, %s", m.ID, text.Count(m.Points, "point"))
		}
	}
	for _, r := range s.Revocations.All() {
		add("revoked", r.MS, "%s revoked: %s", r.Milestone, r.Reason)
	}
	if s.DurableAtMS != nil {
		add("durable", *s.DurableAtMS, "durable")
	}
	if s.Unavailable != nil {
		add("lost", s.Unavailable.MS, "unavailable: %s", s.Unavailable.Detail)
	}
}

// shape is a mark's polygon; "" for one that is drawn otherwise.
func shape(kind string, x, y int) string {
	var d [][2]int
	switch kind {
	case "durable": // a star
		d = [][2]int{{0, -10}, {3, -3}, {10, -3}, {4, 2}, {6, 9}, {0, 5}, {-6, 9}, {-4, 2}, {-10, -3}, {-3, -3}}
	case "attack", "broken": // a lozenge above the lane
		d = [][2]int{{0, -13}, {4, -9}, {0, -5}, {-4, -9}}
	case "revoked": // a triangle that points back
		d = [][2]int{{-7, 0}, {5, -6}, {5, 6}}
	default:
		return ""
	}
	out := ""
	for _, p := range d {
		out += fmt.Sprintf("%d,%d ", x+p[0], y+p[1])
	}
	return out[:len(out)-1]
}

func tickStep(end uint64) uint64 {
	for _, s := range []uint64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if end/(s*1000) <= 10 {
			return s * 1000
		}
	}
	return end/10 + 1
}
