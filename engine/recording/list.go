package recording

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Summary is a recording's line in a list. Strings are sanitised.
type Summary struct {
	Path       string        `json:"path"`
	Name       string        `json:"name"`
	Arena      string        `json:"arena"`
	State      string        `json:"state"` // empty, preparing, running, finished, aborted, stopped
	Live       bool          `json:"live"`
	Winner     string        `json:"winner"` // a territory, "" for none
	DeadHeat   []string      `json:"dead_heat,omitempty"`
	Reason     string        `json:"reason"`
	StartedAt  time.Time     `json:"started_at"`
	Exact      bool          `json:"started_exact"`
	DurationMS uint64        `json:"duration_ms"`
	Seats      []SummarySeat `json:"seats"`
	Events     *int          `json:"events"`   // null when a large log was not read to its end
	Machines   string        `json:"machines"` // real, simulated, or "" where the recording does not say
	Badge      string        `json:"badge"`    // ok, notes, broken, or unread when it cannot be opened
	Integrity  Report        `json:"integrity"`

	likeness string // of the log; see MarkSame
}

// SummarySeat is one seat of a Summary, as the standings have it.
type SummarySeat struct {
	Rank      int    `json:"rank"`
	Territory string `json:"territory"`
	Agent     string `json:"agent"`
	Model     string `json:"model"`
	Points    uint64 `json:"points"`
	Durable   bool   `json:"durable"`
}

const (
	maxListed   = 5000
	maxVerified = 1 << 20 // logs up to this size are verified for their badge
)

// List summarises heats: each path is a heat's folder or log, or a folder that
// holds heats at most two levels down. Newest first; logs that occur twice are
// noted. A path that is not there is an error; a heat that cannot be opened is
// listed with what is wrong.
func List(paths ...string) ([]Summary, error) {
	var out []Summary
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return nil, fmt.Errorf("list recordings: %w", err)
		}
		for _, heat := range heats(p, 2) {
			if len(out) < maxListed {
				out = append(out, Summarise(heat))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Summary) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.Name, b.Name))
	})
	MarkSame(out)
	return out, nil
}

func heats(dir string, depth int) []string {
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	if !info.IsDir() {
		return []string{dir}
	}
	for _, name := range []string{eventsFile, reportFile} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return []string{dir}
		}
	}
	if depth == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && len(out) < maxListed {
			out = append(out, heats(filepath.Join(dir, e.Name()), depth-1)...)
		}
	}
	return out
}

// Summarise summarises one heat.
func Summarise(path string) Summary {
	r, err := Open(path)
	if err != nil {
		f := Finding{Severity: Note, Code: "unreadable", Text: text.Line(err.Error())}
		return Summary{Path: path, Name: text.Line(baseName(path)), State: "empty", Badge: "unread", Integrity: Report{Findings: []Finding{f}}}
	}
	defer r.Close()
	return r.Summary()
}

// Summary summarises the heat. Of a large log only the beginning and the end are
// looked at.
func (r *Recording) Summary() Summary {
	w := r.World(r.Len())
	s := Summary{Path: r.path, Name: r.Name(), Arena: r.Arena(), Live: r.Live(), DurationMS: r.Head()}
	s.StartedAt, s.Exact = r.Started()
	if r.Complete() {
		n := r.Len()
		s.Events = &n
	} else {
		w = w.Clone()
		r.lastEvents(func(e event.Event) { world.Apply(w, e) })
	}
	if s.Arena == "" {
		s.Arena = arenaBySeats(w)
	}
	switch {
	case w.Simulated():
		s.Machines = "simulated"
	case w.Prepared != nil:
		s.Machines = "real"
	}
	s.State = w.MatchState
	switch {
	case w.Events == 0:
		s.State = "empty"
	case !s.Live && !w.Over():
		s.State = "stopped"
	}
	if w.Winner != nil {
		s.Winner = *w.Winner
	}
	s.DeadHeat = w.DeadHeat
	if w.FinishReason != nil {
		s.Reason = *w.FinishReason
	}
	if w.FinishedMS != nil {
		s.DurationMS = *w.FinishedMS
	}
	for _, st := range world.Standings(w) {
		seat := SummarySeat{Rank: st.Rank, Territory: st.Territory, Agent: st.Agent, Points: st.Points, Durable: st.Durable != nil}
		if a := w.Agent(st.Agent); a != nil {
			seat.Model = a.Model
		}
		s.Seats = append(s.Seats, seat)
	}
	s.Integrity = r.Check(context.Background())
	s.Badge = s.Integrity.Badge()
	s.likeness = r.likeness()
	return s
}

// Check is Verify where that takes a moment only, of a log of up to 1 MiB that
// nobody writes; else what Integrity has.
func (r *Recording) Check(ctx context.Context) Report {
	r.mu.Lock()
	small := r.total <= maxVerified && !r.live
	r.mu.Unlock()
	if small {
		if report, err := r.Verify(ctx); err == nil {
			return report
		}
	}
	return r.Integrity()
}

// lastEvents decodes the lines at the end of a log that was not read that far.
func (r *Recording) lastEvents(yield func(event.Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(r.size, r.total-tailSize)
	buf := make([]byte, r.total-from)
	n, err := r.file.ReadAt(buf, from)
	if err != nil && n == 0 {
		return
	}
	buf = buf[:n]
	if from > r.size {
		buf = buf[min(len(buf), len(firstLine(buf))):]
	}
	for len(buf) > 0 {
		line := firstLine(buf)
		buf = buf[len(line):]
		if e, err := event.Decode(line); err == nil {
			yield(e)
		}
	}
}

// arenaBySeats names the arena of a reference recording without arena.json and
// match.json by its class, which names it well enough for a list.
func arenaBySeats(w *world.World) string {
	for _, s := range w.Seats() {
		if s.Class != "" {
			return s.Class
		}
	}
	return ""
}
