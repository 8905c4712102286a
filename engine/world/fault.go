package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/vm/fault"
)

// FaultState is how far a fault has come.
type FaultState string

// States of a fault. Only one that was confirmed counts for anything.
const (
	FaultInjected    FaultState = "injected"     // its witness is asked
	FaultConfirmed   FaultState = "confirmed"    // its witness saw it; it lasts
	FaultCleared     FaultState = "cleared"      // its witness saw that it is gone
	FaultNotInjected FaultState = "not injected" // its target was not fit for it, and is as it was
	FaultNoEffect    FaultState = "no effect"    // its witness saw nothing of it; nothing of it is left
	FaultNotCleared  FaultState = "not cleared"  // its clean-up failed: it may still be there
)

// Fault is a fault on a seat, from its injection to its end.
type Fault struct {
	Fault, Target  string
	Params         json.RawMessage
	Author, Reason string
	Schedule       string  // the arena's id of it; "" for a referee's
	PlannedMS      *uint64 // when the schedule wanted it
	ForMS          *uint64 // how long it is to last; nil until it is undone
	Proves         []string
	Voids          []string // milestones that rested on it, in vain
	Alone          bool     // other seats don't have it
	State          FaultState
	InjectedMS     uint64
	ConfirmedMS    *uint64
	EndedMS        *uint64         // nil while it lasts, or may last
	Receipt        json.RawMessage // of the injection
	Undone         json.RawMessage // of the undoing
	Stage          string          // at which it failed: inject, confirm, clear; "" for none
	Detail         string          // why
	UndoneBy       string          // the referee who asked for it; "" for the schedule, or the heat's end
	UndoneWhy      string
	Index          int // of its latest event
}

// On says that the fault is on the seat, or may be.
func (f Fault) On() bool { return f.EndedMS == nil }

// Bit says that its witness saw it.
func (f Fault) Bit() bool { return f.ConfirmedMS != nil }

// Receipts are the proofs of the injection and of the undoing; the zero Receipt where
// there is none.
func (f Fault) Receipts() (injected, undone fault.Receipt) {
	for from, to := range map[*json.RawMessage]*fault.Receipt{&f.Receipt: &injected, &f.Undone: &undone} {
		if len(*from) > 0 && json.Unmarshal(*from, to) != nil {
			*to = fault.Receipt{} // a log of another make: what is shown is that there is none
		}
	}
	return injected, undone
}

// Words are what became of the fault, in one line, without when.
func (f Fault) Words() string {
	in, out := f.Receipts()
	saw := func(r fault.Receipt) string {
		if r.Saw == "" {
			return ""
		}
		return fmt.Sprintf(" (%s)", text.Line(r.Saw))
	}
	s := f.Fault + " on " + f.Target + " "
	if f.Bit() {
		s += "bit" + saw(in)
		if in.LostBytes != nil {
			s += fmt.Sprintf(", %d unflushed bytes lost", *in.LostBytes)
		}
		s += "; "
	}
	switch f.State {
	case FaultInjected:
		s += "is being confirmed"
	case FaultConfirmed:
		s += "it is still there"
	case FaultCleared:
		s += "cleared" + saw(out)
		if f.UndoneBy != "" {
			s += " by " + f.UndoneBy + ": " + f.UndoneWhy
		}
	case FaultNotInjected:
		s += "was not injected: " + text.Line(f.Detail)
	case FaultNoEffect:
		s += "did not bite" + saw(in) + ": " + text.Line(f.Detail)
	case FaultNotCleared:
		s += "its clean-up FAILED" + saw(out) + ": " + text.Line(f.Detail)
	}
	if len(f.Voids) > 0 {
		s += "; void by that: " + strings.Join(f.Voids, ", ")
	}
	return s
}

// ActiveFaults are those that are on the seat, or may be, the oldest first. They are
// looked for among the seat's latest MaxRunning.
func (s *Seat) ActiveFaults() (out []Fault) {
	for n := max(0, s.Faults.Len()-MaxRunning); n < s.Faults.Len(); n++ {
		if f := s.Faults.At(n); f.On() {
			out = append(out, f)
		}
	}
	return out
}

// Void is the fault that a milestone of the seat rested on in vain, so that it can't
// be passed any more; false when there is none.
func (s *Seat) Void(milestone string) (Fault, bool) {
	for _, f := range s.Faults.All() {
		if slices.Contains(f.Voids, milestone) {
			return f, true
		}
	}
	return Fault{}, false
}

// faulted folds what became of a fault.
func (w *World) faulted(i int, e event.Event) {
	switch b := e.Body.(type) {
	case event.FaultInjected:
		if s := w.seat(b.Territory); s != nil {
			s.Faults.push(Fault{Fault: b.Fault, Target: b.Target, Params: b.Params, Author: b.Author, Reason: clip(b.Reason, maxDetail),
				Schedule: b.Schedule, PlannedMS: b.PlannedMS, ForMS: b.ForMS, Proves: some(b.Proves), Alone: b.Alone,
				State: FaultInjected, InjectedMS: e.ElapsedMS, Index: i})
		}
	case event.FaultConfirmed:
		if f := w.fault(i, e, b.Territory, b.Fault, b.Target); f != nil {
			f.State, f.ConfirmedMS, f.Receipt = FaultConfirmed, at(e), b.Receipt
		}
	case event.FaultCleared:
		if f := w.fault(i, e, b.Territory, b.Fault, b.Target); f != nil {
			f.State, f.EndedMS, f.Undone = FaultCleared, at(e), b.Receipt
			f.UndoneBy, f.UndoneWhy = b.Author, clip(b.Reason, maxDetail)
		}
	case event.FaultFailed:
		f := w.fault(i, e, b.Territory, b.Fault, b.Target)
		if f == nil {
			return
		}
		f.Stage, f.Detail = clip(b.Stage, maxDetail), clip(b.Detail, maxDetail)
		if len(b.Voids) > 0 { // what is void stays so when the next try to undo it fails too
			f.Voids = some(b.Voids)
		}
		switch b.Stage {
		case "clear":
			if f.State = FaultNotCleared; f.ConfirmedMS == nil && len(f.Receipt) == 0 {
				f.Receipt = b.Receipt // that of its injection, which failed halfway
			} else {
				f.Undone = b.Receipt
			}
			return
		case "inject":
			f.State = FaultNotInjected
		default:
			f.State = FaultNoEffect
		}
		f.EndedMS, f.Receipt = at(e), b.Receipt
	}
}

// some bounds a list of milestones.
func some(ids []string) []string { return ids[:min(len(ids), MaxMilestones)] }

// fault returns the latest fault of that name and target that has not ended, or a
// new one: a confirmation without an injection is still shown.
func (w *World) fault(i int, e event.Event, territory, name, target string) *Fault {
	s := w.seat(territory)
	if s == nil {
		return nil
	}
	for n := s.Faults.Len() - 1; n >= 0 && n >= s.Faults.Len()-MaxRunning; n-- {
		if f := s.Faults.At(n); f.Fault == name && f.Target == target && f.EndedMS == nil {
			p := s.Faults.edit(n)
			p.Index = i
			return p
		}
	}
	return s.Faults.edit(s.Faults.push(Fault{Fault: name, Target: target, InjectedMS: e.ElapsedMS, Index: i}))
}

// awaitsFault says that a milestone rests on a scheduled fault that was not confirmed
// yet.
func awaitsFault(s *Seat, m *arena.Manifest, milestone string) bool {
	for _, f := range m.Faults {
		if !slices.Contains(f.Proves, milestone) {
			continue
		}
		bit := false
		for _, had := range s.Faults.All() {
			bit = bit || had.Schedule == f.ID && had.Bit()
		}
		if !bit {
			return true
		}
	}
	return false
}
