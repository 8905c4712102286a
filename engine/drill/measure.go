// Package drill makes drill evidence of heats: how long each seat took to recover,
// what that is worth to a store of a datastore register, and which heat would close
// a finding.
//
// It hides the rules of reference/register-and-failure-model.md, part 3: which
// milestone stops the recovery clock and what starts it, when a seat that did not
// finish failed and when it is only censored, and what makes a heat a drill of a
// store and not a rehearsal.
//
// Promises: nothing is inferred from an arena's name; a seat that was cut short is
// never a failure; a heat that did not run on the store's own copy, on real machines,
// in a recording that holds, closes nothing, and every reason is told; nothing is
// written.
package drill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Outcome is what a seat's heat says of a procedure.
type Outcome string

// The outcomes. Censored is a seat whose heat ended before it was there: it would have
// taken at least so long, and that is all that is known.
const (
	Passed   Outcome = "pass"
	Failed   Outcome = "fail"
	Censored Outcome = "censored"
)

// Seat is one seat's time.
type Seat struct {
	Territory string  `json:"territory"`
	Agent     string  `json:"agent"`
	Outcome   Outcome `json:"outcome"`
	// MS is the recovery time; of a seat that did not get there, how long it had.
	MS int64 `json:"ms"`
	// Why says what ended a seat that did not get there.
	Why string `json:"why,omitempty"`
	// Paused: the heat stood still while the seat's clock ran.
	Paused bool `json:"paused,omitempty"`
}

// Minutes are the seat's time in minutes, rounded up to a tenth.
func (s Seat) Minutes() float64 { return register.TenthsUp(s.MS) }

// span is that as all times of a register are shown.
func (s Seat) span() string {
	m := s.Minutes()
	return register.Span(&m)
}

// Words are the seat's time, as far as it is known.
func (s Seat) Words() string {
	switch s.Outcome {
	case Passed:
		return fmt.Sprintf("%s (%d ms)", s.span(), s.MS)
	case Failed:
		return "failed: not there in " + s.span()
	}
	return fmt.Sprintf("at least %d ms, censored: %s", s.MS, s.Why)
}

// Measure is what a heat measured.
type Measure struct {
	Heat      string             `json:"heat"` // where the recording is
	Arena     string             `json:"arena"`
	ID        string             `json:"id"` // what tells the heat from others, wherever it lies
	Day       register.Date      `json:"day"`
	Procedure register.Procedure `json:"procedure"`
	From      string             `json:"from"` // what started the clock
	To        string             `json:"to"`   // the milestone that stopped it
	Store     string             `json:"store,omitempty"`
	Copy      string             `json:"copy,omitempty"`
	Migration string             `json:"migration,omitempty"`
	Seats     []Seat             `json:"seats"`
	// Doubts are the reasons why the heat proves nothing of any store.
	Doubts []string `json:"doubts,omitempty"`
}

// ErrNoProcedure is the error of a heat whose arena says of no procedure that it is
// drilled.
var ErrNoProcedure = errors.New("the arena declares no procedure that its heats drill (procedure and clock in its manifest): nothing is inferred from its name")

// Of measures a heat by what its arena declares. The recording is read to its end. A
// heat that is not over, was aborted or counts for nobody measures nothing.
func Of(ctx context.Context, rec *recording.Recording) (Measure, error) {
	if err := rec.Load(ctx); err != nil {
		return Measure{}, err
	}
	m := rec.Manifest()
	if m == nil || m.Procedure == nil || m.Clock == nil {
		return Measure{}, ErrNoProcedure
	}
	w := rec.World(rec.Len())
	switch {
	case w.Branched != nil:
		return Measure{}, fmt.Errorf("the heat was %s: its clock does not begin with the fault, so it measures nothing", w.BranchedFrom())
	case w.Voided != nil:
		return Measure{}, errors.New("a referee ruled that the heat counts for nobody: it measures nothing")
	case w.MatchState == world.Aborted:
		return Measure{}, errors.New("the heat was aborted: it measures nothing")
	case w.MatchState != world.Finished:
		return Measure{}, errors.New("the heat is not over: it measures nothing yet")
	}
	out := Measure{
		Heat: rec.Path(), Arena: rec.Arena(), ID: rec.Name() + "@" + head(rec), Procedure: register.Procedure(*m.Procedure), To: m.Clock.To,
		Store: deref(m.Store), Copy: deref(m.Copy), Migration: deref(m.Migration), From: startWords(m),
	}
	started, exact := rec.Started()
	out.Day = register.Date(started.UTC().Format(time.DateOnly))
	for _, s := range w.Seats() {
		out.Seats = append(out.Seats, seatOf(w, m, s))
	}
	settle(out.Seats, deref(w.FinishReason))
	rep, err := rec.Verify(ctx)
	if err != nil {
		return Measure{}, err
	}
	doubt := func(when bool, why string) {
		if when {
			out.Doubts = append(out.Doubts, why)
		}
	}
	match := rec.Match()
	doubt(w.Prepared == nil || w.Prepared.Driver != "qemu", "its machines were not real ones")
	doubt(m.Guest != nil && m.Guest.Runner != "", "a script of the arena's own started its machines: nobody knows what they were")
	doubt(match == nil || !match.Ours() || !rep.Chained || !rep.Sealed, "its recording is not chained and sealed by refbox")
	doubt(rep.Breaks() > 0, "its recording does not hold: refbox verify says what is broken")
	doubt(!exact, "nobody wrote down on which day it was")
	return out, nil
}

// head tells a log from others.
func head(rec *recording.Recording) string {
	if m := rec.Match(); m != nil && m.End != nil && len(m.End.LogHead) >= 12 {
		return text.Line(m.End.LogHead[:12])
	}
	h := sha256.New()
	for i := range rec.Len() {
		if line, err := rec.Raw(i); err == nil {
			h.Write(line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// startWords name what starts the clock.
func startWords(m *arena.Manifest) string {
	switch {
	case m.Clock.From != nil:
		return *m.Clock.From
	case startsBroken(m):
		return "the heat's start"
	}
	return "the fault's confirmation"
}

// startsBroken says that the arena's machines are broken before the heat: it says so,
// or no fault of it comes later.
func startsBroken(m *arena.Manifest) bool {
	for _, x := range m.Exercises {
		if x.Fault == arena.StartsBroken {
			return true
		}
	}
	return len(m.Exercises)+len(m.Faults) == 0
}

// start is when a seat's clock began; false when it never did.
func start(m *arena.Manifest, s *world.Seat) (uint64, bool) {
	if m.Clock.From != nil {
		if x := s.Milestone(*m.Clock.From); x != nil && x.Passed {
			return x.PassedMS, true
		}
		return 0, false
	}
	if startsBroken(m) {
		return 0, true
	}
	for _, f := range s.Faults.All() {
		if f.ConfirmedMS != nil && meant(m, f) {
			return *f.ConfirmedMS, true
		}
	}
	return 0, false
}

// meant says that a fault is one that the arena exercises, or plans.
func meant(m *arena.Manifest, f world.Fault) bool {
	for _, x := range m.Exercises {
		if x.Fault == f.Fault && (x.Target == nil || *x.Target == f.Target) {
			return true
		}
	}
	return f.Schedule != "" && len(m.Exercises) == 0
}

// seatOf measures one seat. Whether one that is not there failed is settled when all
// are known.
func seatOf(w *world.World, m *arena.Manifest, s *world.Seat) Seat {
	out := Seat{Territory: s.ID, Agent: s.Agent, Outcome: Censored}
	end := w.ElapsedMS
	if w.FinishedMS != nil {
		end = *w.FinishedMS
	}
	if s.Unavailable != nil {
		end = min(end, s.Unavailable.MS)
	}
	from, began := start(m, s)
	if to := s.Milestone(m.Clock.To); began && to != nil && to.Passed && to.PassedMS >= from {
		// A pass that was taken back for good is none; one that was repeated counts from
		// when it held.
		out.Outcome, end = Passed, to.PassedMS
	}
	if !began {
		out.Why = "its clock never started"
		return out
	}
	out.MS = int64(end - min(from, end))
	for _, p := range w.Pauses.All() {
		out.Paused = out.Paused || p.SinceMS >= from && p.SinceMS <= end
	}
	if s.Unavailable != nil && out.Outcome != Passed {
		out.Why = cmp.Or(text.Line(s.Unavailable.Detail), "the seat could not go on")
	}
	return out
}

// timedOut is the reason of a heat that ended with its time.
const timedOut = "match timer expired"

// settle says of the seats that are not there whether they failed: only where the
// heat's whole time was theirs, and nobody else got there either.
func settle(seats []Seat, reason string) {
	finished := false
	for _, s := range seats {
		finished = finished || s.Outcome == Passed
	}
	for i := range seats {
		s := &seats[i]
		switch {
		case s.Outcome == Passed, s.Why != "":
		case finished:
			s.Why = "another seat got there first"
		case reason == timedOut:
			s.Outcome, s.Why = Failed, "its time was over"
		default:
			s.Why = cmp.Or(text.Line(reason), "the heat ended")
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
